//! Judge calibration: human labels from a file, and agreement, Cohen's kappa and ROC AUC of the judge's scores.

use proctor_core::json::Json;

/// Human label and judge score of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// The human label.
    pub human: f64,
    /// The judge's score, if there is one.
    pub judge: Option<f64>,
}

/// Position and reason of a mistake in a file of labels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LabelError {
    /// Line number, from 1.
    pub line: usize,
    /// The mistake.
    pub problem: String,
}

/// Agreement of a judge with human labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated {
    /// Number of texts with both values.
    pub label_count: usize,
    /// Number of texts without a judge score.
    pub missing_judge: usize,
    /// Share of texts on which both are above or both below the threshold.
    pub agreement: f64,
    /// Cohen's kappa: agreement corrected for chance.
    pub cohen_kappa: f64,
    /// Area under the ROC curve: probability that the judge scores a good text above a bad one.
    pub roc_auc: f64,
}

/// Reads labels: lines of JSON with `human_label` and `judge_score`, or comma-separated `input, human_label[, judge_score]`.
pub fn read_labels(name: &str, text: &str) -> Result<Vec<Label>, LabelError> {
    let json = match name.rsplit('.').next() {
        Some("jsonl" | "ndjson" | "json") => true,
        Some("csv") => false,
        _ => text.trim_start().starts_with('{'),
    };
    if json { read_jsonl(text) } else { read_csv(text) }
}

fn read_jsonl(text: &str) -> Result<Vec<Label>, LabelError> {
    let mut labels = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |problem: String| LabelError { line: index + 1, problem };
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let value = Json::parse(line.as_bytes()).map_err(|error| wrong(error.to_string()))?;
        let number = |name: &str| match value.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(found) => found
                .to_string()
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())
                .map(Some)
                .ok_or_else(|| wrong(format!("`{name}` is not a number"))),
        };
        let human = number("human_label")?.ok_or_else(|| wrong("`human_label` is missing".to_owned()))?;
        labels.push(Label { human, judge: number("judge_score")? });
    }
    Ok(labels)
}

fn read_csv(text: &str) -> Result<Vec<Label>, LabelError> {
    let mut labels = Vec::new();
    let mut first = true;
    for (line, fields) in rows(text)? {
        let wrong = |problem: String| LabelError { line, problem };
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let human = fields.get(1).map(String::as_str).unwrap_or_default();
        let header = std::mem::take(&mut first) && number(human).is_none();
        if header {
            continue;
        }
        let human = number(human)
            .ok_or_else(|| wrong("the second column (human_label) is not a number".to_owned()))?;
        let judge = match fields.get(2).map(|text| text.trim()).filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(
                number(text)
                    .ok_or_else(|| wrong("the third column (judge_score) is not a number".to_owned()))?,
            ),
        };
        labels.push(Label { human, judge });
    }
    Ok(labels)
}

/// Rows of a comma-separated text, each with its first line number. Quoted fields may hold commas, quotes and line breaks.
fn rows(text: &str) -> Result<Vec<(usize, Vec<String>)>, LabelError> {
    let mut rows = Vec::new();
    let mut fields = vec![String::new()];
    let (mut quoted, mut line, mut begin, mut comment) = (false, 1, 1, false);
    let mut characters = text.chars().peekable();
    let mut finish = |fields: &mut Vec<String>, begin: usize| {
        let row = std::mem::replace(fields, vec![String::new()]);
        if row.len() > 1 || row.first().is_some_and(|field| !field.trim().is_empty()) {
            rows.push((begin, row));
        }
    };
    while let Some(character) = characters.next() {
        if character == '\n' {
            line += 1;
        }
        let empty = fields.len() == 1 && fields.first().is_some_and(String::is_empty);
        match character {
            _ if comment && character != '\n' => {}
            '#' if empty && !quoted => comment = true,
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                push(&mut fields, '"');
            }
            '"' if quoted => quoted = false,
            '"' if fields.last().is_some_and(String::is_empty) => quoted = true,
            ',' if !quoted => fields.push(String::new()),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                finish(&mut fields, begin);
                (begin, comment) = (line, false);
            }
            other => push(&mut fields, other),
        }
    }
    if quoted {
        return Err(LabelError { line: begin, problem: "a quotation mark is never closed".to_owned() });
    }
    finish(&mut fields, begin);
    Ok(rows)
}

fn push(fields: &mut [String], character: char) {
    if let Some(field) = fields.last_mut() {
        field.push(character);
    }
}

/// Measures agreement at a threshold. `None` if no text has both values.
pub fn calibrate(labels: &[Label], threshold: f64) -> Option<Calibrated> {
    let both: Vec<(f64, f64)> = labels.iter().filter_map(|label| Some((label.human, label.judge?))).collect();
    if both.is_empty() {
        return None;
    }
    let count = both.len() as f64;
    let share = |test: &dyn Fn(f64, f64) -> bool| {
        both.iter().filter(|(human, judge)| test(*human, *judge)).count() as f64 / count
    };
    let agreement = share(&|human, judge| (human >= threshold) == (judge >= threshold));
    let humans = share(&|human, _| human >= threshold);
    let judges = share(&|_, judge| judge >= threshold);
    let chance = humans * judges + (1.0 - humans) * (1.0 - judges);
    let cohen_kappa = if (1.0 - chance).abs() < 1e-12 { 0.0 } else { (agreement - chance) / (1.0 - chance) };
    Some(Calibrated {
        label_count: both.len(),
        missing_judge: labels.len() - both.len(),
        agreement,
        cohen_kappa,
        roc_auc: roc_auc(&both, threshold),
    })
}

/// Area under the ROC curve: share of pairs of a good and a bad text in which the judge prefers the good one; a tie counts half.
fn roc_auc(both: &[(f64, f64)], threshold: f64) -> f64 {
    let mut sorted: Vec<(f64, bool)> =
        both.iter().map(|(human, judge)| (*judge, *human >= threshold)).collect();
    sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
    let good = sorted.iter().filter(|(_, good)| *good).count() as f64;
    let bad = sorted.len() as f64 - good;
    if good == 0.0 || bad == 0.0 {
        return 0.0;
    }
    let (mut wins, mut bad_below) = (0.0, 0.0);
    for tie in sorted.chunk_by(|left, right| left.0.total_cmp(&right.0).is_eq()) {
        let good_here = tie.iter().filter(|(_, good)| *good).count() as f64;
        let bad_here = tie.len() as f64 - good_here;
        wins += good_here * (bad_below + bad_here / 2.0);
        bad_below += bad_here;
    }
    wins / (good * bad)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_formats_say_the_same() {
        let csv = "input,human_label,judge_score\n# a comment, with a comma\n\"one, \"\"two\"\"\nlines\",1,0.9\nbad,0,\n";
        let jsonl = "{\"input\":\"x\",\"human_label\":1,\"judge_score\":0.9}\n\n{\"human_label\":0.0,\"judge_score\":null}\n";
        let expected = [Label { human: 1.0, judge: Some(0.9) }, Label { human: 0.0, judge: None }];
        assert_eq!(read_labels("x.csv", csv).unwrap(), expected);
        assert_eq!(read_labels("x.jsonl", jsonl).unwrap(), expected);
        assert_eq!(read_labels("labels", jsonl).unwrap(), expected);
    }

    #[test]
    fn mistakes_have_a_line() {
        assert_eq!(read_labels("x.csv", "a,1\nb,two\n").unwrap_err().line, 2);
        assert_eq!(read_labels("x.csv", "a,1\n\"b,2\n").unwrap_err().line, 2);
        assert_eq!(read_labels("x.jsonl", "{\"human_label\":1}\n{\"human\":1}").unwrap_err().line, 2);
        assert_eq!(read_labels("x.jsonl", "{\"human_label\":\"1\"}").unwrap_err().line, 1);
    }

    #[test]
    fn known_values() {
        let label = |human, judge| Label { human, judge: Some(judge) };
        let perfect = calibrate(&[label(1.0, 0.9), label(0.0, 0.1)], 0.5).unwrap();
        assert_eq!((perfect.agreement, perfect.cohen_kappa, perfect.roc_auc), (1.0, 1.0, 1.0));
        let opposite = calibrate(&[label(1.0, 0.1), label(0.0, 0.9)], 0.5).unwrap();
        assert_eq!((opposite.agreement, opposite.cohen_kappa, opposite.roc_auc), (0.0, -1.0, 0.0));
        let one_class = calibrate(&[label(1.0, 0.9), label(1.0, 0.8)], 0.5).unwrap();
        assert_eq!((one_class.cohen_kappa, one_class.roc_auc), (0.0, 0.0));
        assert_eq!(calibrate(&[Label { human: 1.0, judge: None }], 0.5), None);
    }

    proptest! {
        #[test]
        fn the_area_is_the_share_of_pairs(pairs in prop::collection::vec((any::<bool>(), 0..5u8), 1..30)) {
            let both: Vec<(f64, f64)> = pairs.iter().map(|(good, score)| (f64::from(u8::from(*good)), f64::from(*score))).collect();
            let good: Vec<f64> = both.iter().filter(|pair| pair.0 >= 0.5).map(|pair| pair.1).collect();
            let bad: Vec<f64> = both.iter().filter(|pair| pair.0 < 0.5).map(|pair| pair.1).collect();
            let mut wins = 0.0;
            for one in &good {
                for other in &bad {
                    wins += if one > other { 1.0 } else if (one - other).abs() < 1e-9 { 0.5 } else { 0.0 };
                }
            }
            let slow = if good.is_empty() || bad.is_empty() { 0.0 } else { wins / (good.len() * bad.len()) as f64 };
            prop_assert!((roc_auc(&both, 0.5) - slow).abs() < 1e-9);
        }
    }
}
