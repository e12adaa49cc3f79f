//! What a judge said.

use serde::Deserialize;

/// One answer of a judge.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// From 0 to 1.
    pub score: f64,
    /// Why.
    pub explanation: String,
}

/// How much of a judge's reasoning is kept.
const LONGEST: usize = 2_000;

impl Sample {
    /// Reads an answer: one JSON object with `score` from 0 to 1 and `explanation`, alone or in a fence of code. Anything else is no
    /// answer: a score that has to be searched for in a text may have been put there by the text that was judged.
    pub fn parse(text: &str) -> Result<Sample, String> {
        #[derive(Deserialize)]
        struct Written {
            score: f64,
            explanation: String,
        }
        let inner = unfenced(text.trim());
        let written: Written = serde_json::from_str(inner)
            .map_err(|error| format!("it is not the JSON object that was asked for ({error})"))?;
        if !(0.0..=1.0).contains(&written.score) {
            return Err(format!("its score {} is not from 0 to 1", written.score));
        }
        let mut explanation = written.explanation;
        if explanation.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|at| explanation.is_char_boundary(*at)).unwrap_or_default();
            explanation.truncate(end);
        }
        Ok(Sample { score: written.score, explanation })
    }
}

/// The text inside a fence of code, if the whole text is one.
fn unfenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}
