//! `attest-engine calibrate`: how well a judge agrees with people.

use std::sync::Arc;

use proctor_assert::{RUBRICS, Rubric};
use proctor_core::json::Json;
use proctor_providers::store::{Calibration, Store};

use super::{fail, say, variable};
use proctor_door_attest::{Calibrated, Settings, calibrate, read_labels};
use proctor_system::SystemClock;

struct Asked {
    labels: String,
    rubric: String,
    threshold: f64,
    persist: bool,
}

pub(super) fn run(words: &[String]) -> u8 {
    match read(words).and_then(|asked| measure(&asked)) {
        Ok(text) => say(&text),
        Err(problem) => fail(&problem),
    }
}

fn read(words: &[String]) -> Result<Asked, String> {
    let mut asked =
        Asked { labels: String::new(), rubric: "default".to_owned(), threshold: 0.5, persist: false };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let flag = word.trim_start_matches('-');
        let (name, value) =
            flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value.to_owned())));
        let mut text = || {
            value.clone().or_else(|| rest.next().cloned()).ok_or_else(|| format!("`--{name}` needs a value"))
        };
        match name {
            "labels" => asked.labels = text()?,
            "rubric" => asked.rubric = text()?,
            "threshold" => {
                let text = text()?;
                let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1.0);
                asked.threshold = number
                    .ok_or_else(|| format!("`{text}` is not a threshold: use a number between 0 and 1"))?;
            }
            "persist" => asked.persist = true,
            _ => {
                return Err(format!(
                    "`{word}` is not known: use --labels, --rubric, --threshold and --persist"
                ));
            }
        }
    }
    if asked.labels.is_empty() {
        return Err("`--labels FILE` is missing".to_owned());
    }
    Ok(asked)
}

fn measure(asked: &Asked) -> Result<String, String> {
    let rubric = Rubric::named(&asked.rubric).ok_or_else(|| {
        let names: Vec<&str> = RUBRICS.iter().map(|rubric| rubric.name).collect();
        format!("there is no rubric `{}`: use one of {}", asked.rubric, names.join(", "))
    })?;
    let text =
        std::fs::read_to_string(&asked.labels).map_err(|error| format!("{}: {error}", asked.labels))?;
    let labels = read_labels(&asked.labels, &text).map_err(|error| format!("{}: {error}", asked.labels))?;
    let measured = calibrate(&labels, asked.threshold)
        .ok_or_else(|| format!("{}: no row has both a human_label and a judge_score", asked.labels))?;
    if asked.persist {
        keep(rubric, &measured)?;
    }
    Ok(shown(rubric, &measured, asked.threshold))
}

/// Members in the order of their names, two spaces deep, measures with three digits.
fn shown(rubric: &Rubric, measured: &Calibrated, threshold: f64) -> String {
    let rounded = |number: f64| {
        let number = (number * 1000.0).round() / 1000.0;
        format!("{number:?}")
    };
    let text = |text: &str| Json::from(text).to_string();
    let members = [
        ("agreement", rounded(measured.agreement)),
        ("cohen_kappa", rounded(measured.cohen_kappa)),
        ("label_count", measured.label_count.to_string()),
        ("missing_judge", measured.missing_judge.to_string()),
        ("roc_auc", rounded(measured.roc_auc)),
        ("rubric_name", text(rubric.name)),
        ("rubric_version", text(rubric.version)),
        ("threshold", format!("{threshold:?}")),
    ];
    let lines: Vec<String> = members.iter().map(|(name, value)| format!("  \"{name}\": {value}")).collect();
    format!("{{\n{}\n}}", lines.join(",\n"))
}

fn keep(rubric: &Rubric, measured: &Calibrated) -> Result<(), String> {
    let settings = Settings::read(&variable).map_err(|error| error.to_string())?;
    let folder = settings.cache.ok_or("there is no cache to keep it in: set ATTEST_CACHE_DIR")?;
    let store =
        Store::open(&folder, settings.kept, Arc::new(SystemClock)).map_err(|error| error.to_string())?;
    let calibration = Calibration {
        prompt_hash: String::new(),
        label_count: measured.label_count as u64,
        agreement: measured.agreement,
        cohen_kappa: measured.cohen_kappa,
        roc_auc: measured.roc_auc,
    };
    store.keep_calibration(rubric.name, rubric.version, calibration);
    store.flush();
    Ok(())
}
