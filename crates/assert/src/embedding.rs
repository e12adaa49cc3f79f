//! Layer 5, `embedding`: the cosine similarity of two texts.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::spec;
use crate::target::{Target, USUAL};
use crate::text::Text;
use crate::threshold::Threshold;
use crate::trace::{Head, Step};
use crate::verdict::{ThresholdSource, Verdict};

pub(crate) const MEMBERS: &[&str] = &["target", "reference", "threshold", "soft", "model"];

#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow, default)]
    target: Option<Text<'a>>,
    #[serde(borrow, default)]
    reference: Text<'a>,
    #[serde(default)]
    threshold: Threshold,
    #[serde(default)]
    soft: Option<bool>,
    #[serde(borrow, default)]
    model: Text<'a>,
}

/// An assertion that is decided from the vectors of two texts.
#[derive(Debug, Clone)]
pub struct Similarity {
    target: Target,
    reference: String,
    threshold: Threshold,
    soft: bool,
    /// The model that it asks for; empty if any will do.
    pub model: String,
}

pub(crate) fn compile(spec: Option<&RawValue>) -> Result<Similarity, Verdict> {
    let spec: Spec<'_> = spec::read(spec)?;
    if spec.reference.is_empty() {
        return Err(spec::missing("reference", "an embedding assertion"));
    }
    Ok(Similarity {
        target: Target::parse_single(spec.target.as_deref().unwrap_or(USUAL))?,
        reference: spec.reference.into_owned(),
        threshold: spec.threshold,
        soft: spec.soft.unwrap_or_default(),
        model: spec.model.into_owned(),
    })
}

impl Similarity {
    /// Folds the next step of the trace.
    pub fn step(&mut self, step: &Step<'_>) {
        self.target.step(step);
    }

    /// The two texts whose vectors decide it: what the trace says, and what it is compared with.
    pub fn texts(&self, head: &Head<'_>) -> Result<[String; 2], Verdict> {
        let said = self.target.resolve(head)?.plain().into_owned();
        if said.trim().is_empty() {
            return Err(Verdict::fail(
                false,
                format!("`{}` is empty: nothing to compare", self.target.path()),
            )
            .at(self.target.path())
            .evidence("a text", "nothing")
            .suggest("check that the agent answers at all"));
        }
        Ok([said, self.reference.clone()])
    }

    /// Decides from the two vectors.
    pub fn verdict(&self, said: &[f32], reference: &[f32]) -> Verdict {
        let Some(similarity) = cosine(said, reference) else {
            return Verdict::error(format!(
                "the vectors cannot be compared: they have {} and {} numbers, or only zeros",
                said.len(),
                reference.len()
            ));
        };
        let threshold = self.threshold.value();
        let score = similarity.max(0.0);
        let verdict = if similarity >= threshold {
            Verdict::pass(format!("similarity {similarity:.3} is at least {threshold}"))
        } else {
            Verdict::fail(self.soft, format!("similarity {similarity:.3} is below {threshold}"))
                .evidence(format!("similarity of at least {threshold}"), format!("{similarity:.3}"))
                .suggest(
                    "read both texts; if the answer is right, reword the reference or lower the threshold",
                )
        };
        let mut verdict = verdict.with_score(score).at(self.target.path());
        verdict.threshold_source = Some(ThresholdSource::Static);
        verdict
    }
}

/// The cosine of the angle between two vectors; `None` if they differ in length, or one has no direction.
pub fn cosine(left: &[f32], right: &[f32]) -> Option<f64> {
    if left.len() != right.len() {
        return None;
    }
    let sum = |pairs: &mut dyn Iterator<Item = (f32, f32)>| {
        pairs.map(|(a, b)| f64::from(a) * f64::from(b)).sum::<f64>()
    };
    let length = |vector: &[f32]| sum(&mut vector.iter().map(|number| (*number, *number))).sqrt();
    let product = sum(&mut left.iter().copied().zip(right.iter().copied()));
    let cosine = product / (length(left) * length(right));
    cosine.is_finite().then(|| cosine.clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Assertion, Compiled};
    use crate::tools::Tools;
    use crate::trace::Trace;
    use crate::verdict::Status;

    fn similarity(spec: &str) -> Result<Similarity, Verdict> {
        match Assertion::new("a", "embedding", spec).unwrap().compile(&Tools::default()) {
            Compiled::Similarity(similarity) => Ok(similarity),
            Compiled::Failed(verdict) => Err(verdict),
            _ => unreachable!("an embedding assertion"),
        }
    }

    #[test]
    fn cosines() {
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 2.0]), Some(0.0));
        assert_eq!(cosine(&[1.0, 0.0], &[3.0, 0.0]), Some(1.0));
        assert_eq!(cosine(&[1.0, 0.0], &[-3.0, 0.0]), Some(-1.0));
        assert_eq!(cosine(&[1.0], &[1.0, 1.0]), None);
        assert_eq!(cosine(&[0.0], &[1.0]), None);
        assert_eq!(cosine(&[], &[]), None);
    }

    #[test]
    fn the_threshold_decides_and_the_score_is_never_negative() {
        let hard = similarity(r#"{"reference": "r", "threshold": 0.5}"#).unwrap();
        assert_eq!(hard.verdict(&[1.0, 1.0], &[1.0, 0.0]).status, Status::Pass);
        let opposite = hard.verdict(&[-1.0, 0.0], &[1.0, 0.0]);
        assert_eq!((opposite.status, opposite.score), (Status::HardFail, 0.0));
        let soft = similarity(r#"{"reference": "r", "soft": true, "model": null}"#).unwrap();
        assert_eq!(
            soft.verdict(&[1.0, 1.0], &[1.0, 0.0]).status,
            Status::SoftFail,
            "the usual threshold is 0.8"
        );
        assert_eq!(soft.verdict(&[1.0], &[1.0, 0.0]).status, Status::Error);
        let dynamic = similarity(r#"{"reference": "r", "threshold": "dynamic"}"#).unwrap();
        assert!(dynamic.verdict(&[1.0], &[1.0]).status.passed());
    }

    #[test]
    fn what_it_needs() {
        assert!(
            similarity(r#"{"target": "output.message"}"#).unwrap_err().explanation.contains("`reference`")
        );
        assert!(
            similarity(r#"{"reference": "r", "threshold": "high"}"#)
                .unwrap_err()
                .explanation
                .contains("threshold")
        );
        let trace = Trace::parse(r#"{"trace_id": "t", "output": {"message": " "}}"#).unwrap();
        let asked = similarity(r#"{"reference": "r"}"#).unwrap();
        assert_eq!(asked.texts(&trace.head).unwrap_err().status, Status::HardFail);
        let trace = Trace::parse(r#"{"trace_id": "t", "output": {"message": "said"}}"#).unwrap();
        assert_eq!(asked.texts(&trace.head).unwrap()[0], "said");
    }

    #[test]
    fn members_that_stand_twice_cannot_be_compared() {
        let trace =
            Trace::parse(r#"{"trace_id": "t", "output": {"message": {"a": "x", "a": "y"}}}"#).unwrap();
        let asked = similarity(r#"{"reference": "r"}"#).unwrap();
        let verdict = asked.texts(&trace.head).unwrap_err();
        assert_eq!(verdict.status, Status::Error);
        assert!(verdict.explanation.contains("`a` twice"), "{}", verdict.explanation);
    }
}
