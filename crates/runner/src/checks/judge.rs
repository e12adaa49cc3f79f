//! `llm_eval`: a model scores the text of an artifact.

use proctor_assert::{Assertion, Compiled, Prompts, Sample, Tools, Trace};
use proctor_core::json::Json;
use proctor_core::quoted;

use super::evidence::Evidence;
use super::result::{CheckError, CheckResult};

/// Characters of an artifact that are sent to a judge.
const MAX_JUDGED_CHARACTERS: usize = 50_000;

/// The named criteria, and what the judge is told about each.
pub const CRITERIA: [(&str, &str); 7] = [
    (
        "factual_accuracy",
        "Is what the text states true? Wrong, invented or unsupported statements cost score.",
    ),
    ("completeness", "Does the text cover everything that the task asks for? Each missing part costs score."),
    ("relevance", "Does the text answer the task and stay with it? Passages beside the point cost score."),
    ("coherence", "Does the text hang together? Contradictions and leaps in the argument cost score."),
    (
        "clarity",
        "Can the intended reader understand the text at the first reading? Obscure passages cost score.",
    ),
    ("actionability", "Can the reader act on the text? Advice without concrete steps costs score."),
    ("quality", "How good is the text as a whole: right, complete, well organised and well written?"),
];

/// The explanation of a named criterion.
pub fn criterion(name: &str) -> Option<&'static str> {
    CRITERIA.iter().find(|(known, _)| *known == name).map(|(_, explanation)| *explanation)
}

/// A judgement by a model.
#[derive(Debug, Clone, PartialEq)]
pub struct LlmEval {
    /// Name of a criterion.
    pub criteria: Option<String>,
    /// Text of the author's own.
    pub prompt: Option<String>,
    /// The lowest score that passes.
    pub threshold: f64,
    /// Path or name of the artifact; the first with text if absent.
    pub path: Option<String>,
    /// Number of samples.
    pub num_runs: u32,
}

/// Prompts for a judge.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeNeed {
    /// The prompts, of the form that the providers answer.
    pub prompts: Prompts,
    /// Number of replies to ask for.
    pub samples: u32,
}

/// A reply of a judge.
#[derive(Debug, Clone, PartialEq)]
pub enum JudgeReply {
    /// The reply as it came.
    Text(String),
    /// The score that it gave.
    Scored(Sample),
    /// The reason why there is none.
    Missing(String),
}

impl LlmEval {
    /// The prompts; `None` if there is no text to judge.
    pub(super) fn need(&self, evidence: &Evidence<'_>, fence: &str) -> Option<JudgeNeed> {
        let text = evidence.text(self.path.as_deref()).ok()??;
        let text: String = text.chars().take(MAX_JUDGED_CHARACTERS).collect();
        let trace = Json::object()
            .with("trace_id", "evaluation")
            .with("output", Json::object().with("message", text))
            .to_string();
        let trace = Trace::parse(&trace).ok()?;
        let spec = Json::object().with("criteria", self.question()).to_string();
        let assertion = Assertion::new("llm_eval", "llm_judge", &spec).ok()?;
        match assertion.compile(&Tools::default()) {
            Compiled::Judgement(judgement) => {
                let prompts = judgement.prompts(&trace.head, fence).ok()?;
                Some(JudgeNeed { prompts, samples: self.num_runs })
            }
            _ => None,
        }
    }

    fn question(&self) -> String {
        let named = self.criteria.as_deref().and_then(criterion).unwrap_or_default();
        match &self.prompt {
            Some(prompt) if named.is_empty() => prompt.clone(),
            Some(prompt) => format!("{named} {prompt}"),
            None => named.to_owned(),
        }
    }

    /// The mean of the scores decides. A reply without a score is no score; more than half of the replies must have one.
    pub(super) fn fold(&self, replies: &[JudgeReply]) -> Result<Vec<CheckResult>, CheckError> {
        let mut samples: Vec<Sample> = Vec::new();
        let mut reason = None;
        for reply in replies {
            match reply {
                JudgeReply::Text(text) => match Sample::parse(text) {
                    Ok(sample) => samples.push(sample),
                    Err(error) => {
                        reason.get_or_insert_with(|| format!("a reply cannot be used, {error}"));
                    }
                },
                JudgeReply::Scored(sample) => samples.push(sample.clone()),
                JudgeReply::Missing(why) => {
                    reason.get_or_insert_with(|| why.clone());
                }
            }
        }
        let asked = replies.len().max(self.num_runs as usize);
        if samples.len() * 2 <= asked {
            let reason = reason.unwrap_or_else(|| "the judge was not asked often enough".to_owned());
            return Err(CheckError::NoScore { given: samples.len(), asked, reason });
        }
        let score = samples.iter().map(|sample| sample.score).sum::<f64>() / samples.len() as f64;
        let passed = score >= self.threshold;
        let explanation = samples.first().map(|sample| sample.explanation.as_str()).unwrap_or_default();
        let bound = if passed { "reaches" } else { "is below" };
        let mut message = format!("the score {score:.2} {bound} {}: {explanation}", self.threshold);
        if let Some(reason) = reason {
            message
                .push_str(&format!(" ({} of {asked} replies had no score: {reason})", asked - samples.len()));
        }
        let scores: Vec<Json> = samples.iter().map(|sample| number(sample.score)).collect();
        let details = Json::object()
            .with("scores", scores)
            .with("threshold", number(self.threshold))
            .with("criteria", self.criteria.clone());
        Ok(vec![CheckResult { name: "llm_eval".to_owned(), passed, score, message, details }])
    }

    /// Without text to judge the assertion fails; with text, the judge should have been asked.
    pub(super) fn without_reply(&self, evidence: &Evidence<'_>) -> Result<Vec<CheckResult>, CheckError> {
        if evidence.text(self.path.as_deref())?.is_some() {
            return Err(CheckError::NotAnswered("the judge was not asked"));
        }
        let place = self.path.as_deref().map_or_else(|| "any artifact".to_owned(), quoted);
        let message = format!("there is no text of {place} to judge");
        Ok(vec![CheckResult::new("llm_eval", false, message)])
    }
}

fn number(value: f64) -> Json {
    Json::Number(value.to_string().into())
}
