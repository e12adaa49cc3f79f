//! Parsing of a judge's reply.

use serde::Deserialize;

use crate::verdict::cut;

/// An answer of a judge.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Score, from 0 to 1.
    pub score: f64,
    /// Reasoning.
    pub explanation: String,
}

/// Limit of kept bytes of a judge's reasoning.
const LONGEST: usize = 2_000;

/// Limit of the message about an unreadable answer: the answer's own words may be in it.
const LONGEST_REASON: usize = 200;

/// Error of parsing a judge's reply.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AnswerError {
    /// The reply is not an object.
    #[error("it is not the JSON object that was asked for")]
    NotAnObject,
    /// The object cannot be read.
    #[error("it is not the JSON object that was asked for ({0})")]
    Malformed(String),
    /// The score is out of range.
    #[error("its score {0} is not from 0 to 1")]
    Score(f64),
}

impl Sample {
    /// Reads an answer: one JSON object with `score` from 0 to 1 and `explanation`, alone or in a fence of code. Anything else is no
    /// answer: a score that has to be searched for in a text may have been put there by the text that was judged.
    pub fn parse(text: &str) -> Result<Sample, AnswerError> {
        #[derive(Deserialize)]
        struct Written {
            score: f64,
            explanation: String,
        }
        let inner = unfenced(text.trim());
        // A list would be taken for the members in their order.
        if !inner.starts_with('{') {
            return Err(AnswerError::NotAnObject);
        }
        let written: Written = serde_json::from_str(inner)
            .map_err(|error| AnswerError::Malformed(cut(&error.to_string(), LONGEST_REASON).into_owned()))?;
        if !(0.0..=1.0).contains(&written.score) {
            return Err(AnswerError::Score(written.score));
        }
        Ok(Sample { score: written.score, explanation: cut(&written.explanation, LONGEST).into_owned() })
    }
}

/// The text inside a fence of code, if the whole text is one.
fn unfenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else { return text };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_is_an_answer() {
        for text in [r#"[1,"ok"]"#, "```json\n[1, \"ok\"]\n```", "null", "1", r#""ok""#] {
            assert!(Sample::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_cut_is_marked() {
        let long = format!(r#"{{"score":1,"explanation":"{}"}}"#, "ä".repeat(LONGEST));
        let explanation = Sample::parse(&long).unwrap().explanation;
        assert!(explanation.ends_with("ä…") && explanation.len() <= LONGEST + '…'.len_utf8());
        let wrong = format!(r#"{{"score":"{}","explanation":""}}"#, "x".repeat(5_000));
        let said = Sample::parse(&wrong).unwrap_err().to_string();
        assert!(said.contains("x…") && said.len() < 400, "{said}");
    }
}
