//! Dynamic thresholds, derived from the scores of earlier runs.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::text::Text;
use crate::verdict::{Status, ThresholdSource, Verdict};

/// Number of earlier scores that count, newest first.
pub const WINDOW: usize = 50;

/// Minimum of earlier scores for a dynamic threshold; with fewer, the usual thresholds hold.
pub const MINIMUM_RUNS: usize = 10;

/// A score below this is never a pass, whatever the past was: what always failed is not good because it always did.
const FLOOR: f64 = 0.5;

/// Whether a spec asks for a threshold from earlier runs.
pub fn is_dynamic(spec: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct Asked<'a> {
        #[serde(borrow, default)]
        threshold: Option<&'a RawValue>,
    }
    // Most specs do not, and need not be read for it.
    let Some(text) = spec.map(RawValue::get).filter(|text| text.contains("dynamic")) else { return false };
    serde_json::from_str::<Asked<'_>>(text)
        .ok()
        .and_then(|asked| serde_json::from_str::<Text<'_>>(asked.threshold?.get()).ok())
        .is_some_and(|threshold| threshold.as_str() == "dynamic")
}

/// Decides a verdict anew from its score and the scores of earlier runs, newest first. What could not be decided stays so.
#[must_use]
pub fn dynamic(mut verdict: Verdict, earlier: &[f64]) -> Verdict {
    if verdict.status == Status::Error {
        return verdict;
    }
    let window = earlier.get(..WINDOW).unwrap_or(earlier);
    let (status, threshold, source) = if window.len() < MINIMUM_RUNS {
        let status = match verdict.score {
            score if score >= 0.8 => Status::Pass,
            score if score >= FLOOR => Status::SoftFail,
            _ => Status::HardFail,
        };
        (status, 0.8, ThresholdSource::DynamicUnavailable)
    } else {
        let count = window.len() as f64;
        let mean = window.iter().sum::<f64>() / count;
        let variance = window.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / count;
        let threshold = (mean - 2.0 * variance.sqrt()).max(FLOOR);
        let status = if verdict.score >= threshold { Status::Pass } else { Status::HardFail };
        (status, threshold, ThresholdSource::Dynamic)
    };
    verdict.status = status;
    verdict.threshold_source = Some(source);
    let runs = window.len();
    if status == Status::Pass && source == ThresholdSource::Dynamic {
        verdict.explanation = format!(
            "score {:.3} is at least {threshold:.3}, which follows from {runs} earlier runs: {}",
            verdict.score, verdict.explanation
        );
    } else if status != Status::Pass {
        verdict.explanation = format!(
            "{} (score {:.3}, threshold {threshold:.3} from {runs} earlier runs)",
            verdict.explanation, verdict.score
        );
        if verdict.expected.is_empty() {
            verdict = verdict.evidence_of_score(threshold);
        }
    }
    verdict
}

impl Verdict {
    fn evidence_of_score(self, threshold: f64) -> Verdict {
        let score = self.score;
        self.evidence(format!("a score of at least {threshold:.3}"), format!("{score:.3}"))
    }
}

/// The threshold that a scored assertion is written with.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) enum Threshold {
    /// The usual one.
    #[default]
    Usual,
    /// A number.
    Number(f64),
    /// A threshold from earlier runs.
    Dynamic,
}

impl Threshold {
    const USUAL: f64 = 0.8;

    /// The threshold without earlier runs.
    pub(crate) fn value(self) -> f64 {
        match self {
            Threshold::Number(number) if number > 0.0 => number,
            _ => Threshold::USUAL,
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Threshold, D::Error> {
        struct ThresholdVisitor;

        impl serde::de::Visitor<'_> for ThresholdVisitor {
            type Value = Threshold;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("`threshold` as a number or \"dynamic\"")
            }

            fn visit_unit<E>(self) -> Result<Threshold, E> {
                Ok(Threshold::Usual)
            }

            fn visit_f64<E>(self, number: f64) -> Result<Threshold, E> {
                Ok(Threshold::Number(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Threshold, E> {
                Ok(Threshold::Number(number as f64))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Threshold, E> {
                Ok(Threshold::Number(number as f64))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Threshold, E> {
                match text {
                    "dynamic" => Ok(Threshold::Dynamic),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }
        }

        deserializer.deserialize_any(ThresholdVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(score: f64, earlier: &[f64]) -> Status {
        dynamic(Verdict::fail(false, "x").with_score(score), earlier).status
    }

    #[test]
    fn few_runs_have_the_usual_bands() {
        assert_eq!(decided(0.8, &[]), Status::Pass);
        assert_eq!(decided(0.79, &[1.0; 9]), Status::SoftFail);
        assert_eq!(decided(0.49, &[]), Status::HardFail);
    }

    #[test]
    fn many_runs_decide_by_their_spread() {
        let earlier = [0.7, 0.9, 0.7, 0.9, 0.7, 0.9, 0.7, 0.9, 0.7, 0.9];
        // Mean 0.8, deviation 0.1: the threshold is 0.6.
        assert_eq!(decided(0.61, &earlier), Status::Pass);
        assert_eq!(decided(0.59, &earlier), Status::HardFail);
    }

    #[test]
    fn what_always_failed_does_not_become_good() {
        assert_eq!(decided(0.0, &[0.0; 50]), Status::HardFail);
    }

    #[test]
    fn what_could_not_be_decided_stays_so() {
        assert_eq!(dynamic(Verdict::error("x"), &[0.0; 50]).status, Status::Error);
    }

    #[test]
    fn asking_for_it() {
        let asks = |spec: &str| {
            is_dynamic(Some(&serde_json::value::RawValue::from_string(spec.to_owned()).unwrap()))
        };
        assert!(asks(r#"{"threshold": "dynamic"}"#));
        assert!(asks(r#"{"threshold":"dyn\u0061mic", "value": "dynamic"}"#));
        assert!(!asks(r#"{"threshold": 0.5, "value": "dynamic"}"#));
        assert!(!asks("[]"));
        assert!(!is_dynamic(None));
    }
}
