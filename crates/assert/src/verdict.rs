//! Verdicts: status, score, explanation and evidence of an assertion.

use std::borrow::Cow;

/// Status of an evaluated assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The assertion holds.
    Pass,
    /// The assertion does not hold, and is marked as soft.
    SoftFail,
    /// The assertion does not hold.
    HardFail,
    /// The assertion could not be decided: never a pass.
    Error,
}

impl Status {
    /// Whether the assertion holds.
    pub fn passed(self) -> bool {
        self == Status::Pass
    }

    /// Whether it counts as a hard failure: an assertion that could not be decided does.
    pub fn is_hard(self) -> bool {
        matches!(self, Status::HardFail | Status::Error)
    }

    /// The word for it on the wire; what could not be decided is a hard failure there.
    pub fn word(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::SoftFail => "soft_fail",
            Status::HardFail | Status::Error => "hard_fail",
        }
    }
}

/// Origin of the threshold of a scored assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdSource {
    /// The threshold of the assertion, or the default.
    Static,
    /// A threshold from the scores of earlier runs.
    Dynamic,
    /// A dynamic threshold was requested, but there are too few earlier runs.
    DynamicUnavailable,
}

impl ThresholdSource {
    /// The word for it on the wire.
    pub fn word(self) -> &'static str {
        match self {
            ThresholdSource::Static => "static",
            ThresholdSource::Dynamic => "dynamic",
            ThresholdSource::DynamicUnavailable => "dynamic_unavailable",
        }
    }
}

/// The answer to one assertion, with what a person needs to understand it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Status.
    pub status: Status,
    /// Score, from 0 to 1.
    pub score: f64,
    /// Explanation.
    pub explanation: String,
    /// Path in the trace; empty if nowhere in particular.
    pub path: String,
    /// The expected value; empty on a pass.
    pub expected: String,
    /// The actual value; empty on a pass.
    pub actual: String,
    /// The suggested remedy; empty on a pass.
    pub suggestion: String,
    /// Origin of the threshold, if there is one.
    pub threshold_source: Option<ThresholdSource>,
    /// The cost of model calls.
    pub cost_usd: f64,
    /// Details of the judge's score.
    pub judge: Option<Box<JudgeMetadata>>,
}

/// Details of a judge's score.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JudgeMetadata {
    /// The model.
    pub model: String,
    /// The rubric's name.
    pub rubric_name: String,
    /// The rubric's version.
    pub rubric_version: String,
    /// First 8 bytes of the SHA-256 of the prompt, in hexadecimal.
    pub prompt_hash: String,
    /// The score of each sample.
    pub sample_scores: Vec<f64>,
    /// Mean of the scores.
    pub score_mean: f64,
    /// Sample standard deviation of the scores.
    pub score_stddev: f64,
    /// Whether the scores lie more than 0.2 apart.
    pub high_variance: bool,
    /// The scores of changed texts by the same judge.
    pub bias_probes: Vec<ProbeResult>,
}

/// The score of a changed text.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeResult {
    /// Name of the change.
    pub name: String,
    /// The score of the changed text.
    pub score: f64,
    /// The difference from the score without the change.
    pub delta: f64,
}

impl Verdict {
    /// The assertion holds.
    pub fn pass(explanation: impl Into<String>) -> Verdict {
        Verdict::new(Status::Pass, 1.0, explanation.into())
    }

    /// The assertion does not hold.
    pub fn fail(soft: bool, explanation: impl Into<String>) -> Verdict {
        let status = if soft { Status::SoftFail } else { Status::HardFail };
        Verdict::new(status, 0.0, explanation.into())
    }

    /// The assertion could not be decided; whether it is soft does not matter then.
    pub fn error(explanation: impl Into<String>) -> Verdict {
        Verdict::new(Status::Error, 0.0, explanation.into())
    }

    fn new(status: Status, score: f64, explanation: String) -> Verdict {
        Verdict {
            status,
            score,
            explanation,
            path: String::new(),
            expected: String::new(),
            actual: String::new(),
            suggestion: String::new(),
            threshold_source: None,
            cost_usd: 0.0,
            judge: None,
        }
    }

    /// Sets the score.
    #[must_use]
    pub fn with_score(mut self, score: f64) -> Verdict {
        self.score = score;
        self
    }

    /// Sets the path in the trace.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Verdict {
        self.path = path.into();
        self
    }

    /// Sets the expected and the actual value.
    #[must_use]
    pub fn evidence(mut self, expected: impl Into<String>, actual: impl Into<String>) -> Verdict {
        self.expected = shortened(expected.into());
        self.actual = shortened(actual.into());
        self
    }

    /// Sets the suggestion.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Verdict {
        self.suggestion = suggestion.into();
        self
    }
}

/// Evidence is for reading: more of it than this is cut at a character's border.
const EVIDENCE: usize = 400;

pub(crate) fn shortened(text: String) -> String {
    if text.len() <= EVIDENCE { text } else { cut(&text, EVIDENCE).into_owned() }
}

/// Truncates a text to so many bytes. An ellipsis stands where it is cut: the last word may be half a secret, which the scanner does not
/// recognise.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.get(..text.floor_char_boundary(most)) {
        Some(piece) if piece.len() < text.len() => Cow::Owned(format!("{piece}…")),
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_marked_and_divides_no_character() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc…");
        assert_eq!(cut("aäb", 2), "a…");
        assert_eq!(shortened("x".repeat(EVIDENCE)).len(), EVIDENCE);
        assert!(shortened("x".repeat(EVIDENCE + 1)).ends_with("x…"));
    }
}
