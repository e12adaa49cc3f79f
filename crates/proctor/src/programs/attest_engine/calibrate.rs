//! `attest-engine calibrate`: how well a judge agrees with people.

use std::sync::Arc;

use proctor_assert::{RUBRICS, Rubric};
use proctor_core::json::Json;
use proctor_providers::store::{Calibration, Store, StoreError};

use super::{fail, say, variable};
use proctor_door_attest::{Calibrated, LabelError, Settings, calibrate, read_labels};
use proctor_system::SystemClock;

/// Error of `calibrate`: its flags, its file of labels, or the store that keeps the result.
#[derive(Debug, thiserror::Error)]
enum CalibrateError {
    #[error("`--{0}` needs a value")]
    NoValue(String),
    #[error("`{0}` is not a threshold: use a number between 0 and 1")]
    Threshold(String),
    #[error("`{0}` is not known: use --labels, --rubric, --threshold and --persist")]
    UnknownFlag(String),
    #[error("`--labels FILE` is missing")]
    NoLabels,
    #[error("there is no rubric `{name}`: use one of {known}")]
    UnknownRubric { name: String, known: String },
    #[error("{file}: {source}")]
    Read { file: String, source: std::io::Error },
    #[error("{file}: {source}")]
    Label { file: String, source: LabelError },
    #[error("{0}: no row has both a human_label and a judge_score")]
    NothingToCompare(String),
    #[error("there is no cache to keep it in: set ATTEST_CACHE_DIR")]
    NoCache,
    #[error(transparent)]
    Store(#[from] StoreError),
}

struct Asked {
    labels: String,
    rubric: String,
    threshold: f64,
    persist: bool,
}

pub(super) fn run(words: &[String]) -> u8 {
    match read(words).and_then(|asked| measure(&asked)) {
        Ok(text) => say(&text),
        Err(problem) => fail(&problem.to_string()),
    }
}

fn read(words: &[String]) -> Result<Asked, CalibrateError> {
    let mut asked =
        Asked { labels: String::new(), rubric: "default".to_owned(), threshold: 0.5, persist: false };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let flag = word.trim_start_matches('-');
        let (name, value) =
            flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value.to_owned())));
        let mut text = || {
            let value = value.clone().or_else(|| rest.next().cloned());
            value.ok_or_else(|| CalibrateError::NoValue(name.to_owned()))
        };
        match name {
            "labels" => asked.labels = text()?,
            "rubric" => asked.rubric = text()?,
            "threshold" => {
                let text = text()?;
                let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number < 1.0);
                asked.threshold = number.ok_or(CalibrateError::Threshold(text))?;
            }
            "persist" => asked.persist = true,
            _ => return Err(CalibrateError::UnknownFlag(word.clone())),
        }
    }
    if asked.labels.is_empty() {
        return Err(CalibrateError::NoLabels);
    }
    Ok(asked)
}

fn measure(asked: &Asked) -> Result<String, CalibrateError> {
    let rubric = Rubric::named(&asked.rubric).ok_or_else(|| {
        let names: Vec<&str> = RUBRICS.iter().map(|rubric| rubric.name).collect();
        CalibrateError::UnknownRubric { name: asked.rubric.clone(), known: names.join(", ") }
    })?;
    let text = std::fs::read_to_string(&asked.labels)
        .map_err(|source| CalibrateError::Read { file: asked.labels.clone(), source })?;
    let labels = read_labels(&asked.labels, &text)
        .map_err(|source| CalibrateError::Label { file: asked.labels.clone(), source })?;
    let measured = calibrate(&labels, asked.threshold)
        .ok_or_else(|| CalibrateError::NothingToCompare(asked.labels.clone()))?;
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

fn keep(rubric: &Rubric, measured: &Calibrated) -> Result<(), CalibrateError> {
    let settings = Settings::read(&variable);
    let folder = settings.cache.ok_or(CalibrateError::NoCache)?;
    let store = Store::open(&folder, settings.kept, Arc::new(SystemClock))?;
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
