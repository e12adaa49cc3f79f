//! Layer 6, `llm_judge`: a model scores a text by a rubric.

mod answer;
mod prompt;
mod rubric;

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use answer::{AnswerError, Sample};
pub use prompt::{Probe, Prompts};
pub use rubric::{RUBRICS, Rubric};

use crate::spec::{self, Whole};
use crate::target::{Target, USUAL};
use crate::text::Text;
use crate::threshold::Threshold;
use crate::trace::{Head, Step};
use crate::verdict::{JudgeMetadata, ProbeResult, ThresholdSource, Verdict};

pub(crate) const MEMBERS: &[&str] = &[
    "target",
    "criteria",
    "rubric",
    "dimension",
    "threshold",
    "soft",
    "model",
    "meta_eval",
    "repeat",
    "bias_probes",
];

/// Limit of samples of one judgement.
const MOST_SAMPLES: i64 = 16;

/// Samples that lie further apart than this make a verdict doubtful.
const HIGH_VARIANCE: f64 = 0.2;

#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow, default)]
    target: Option<Text<'a>>,
    #[serde(borrow, default)]
    criteria: Text<'a>,
    #[serde(borrow, default)]
    rubric: Text<'a>,
    #[serde(borrow, default)]
    dimension: Text<'a>,
    #[serde(default)]
    threshold: Threshold,
    #[serde(default)]
    soft: Option<bool>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(default)]
    meta_eval: Option<bool>,
    #[serde(default)]
    repeat: Option<Whole>,
    #[serde(borrow, default)]
    bias_probes: Option<&'a RawValue>,
}

/// An assertion that is decided from what a model says.
#[derive(Debug, Clone)]
pub struct Judgement {
    target: Target,
    criteria: String,
    rubric: &'static Rubric,
    threshold: Threshold,
    soft: bool,
    /// The model that it asks for; empty if any will do.
    pub model: String,
    /// Number of samples; `None` if the assertion does not say.
    pub repeat: Option<u32>,
    /// Changes of the text that the judge is asked about as well.
    pub probes: Vec<Probe>,
}

/// The judge's answers. `E` is why one is missing: asking is the caller's business, so the reasons are too.
#[derive(Debug, Clone)]
pub struct Answers<E> {
    /// The model that answered.
    pub model: String,
    /// The samples; an error says why one is missing.
    pub samples: Vec<Result<Sample, E>>,
    /// The samples of the assertion's probes; an error says why one is missing.
    pub probes: Vec<Result<Sample, E>>,
    /// The cost; `None` if the model's price is not known.
    pub cost_usd: Option<f64>,
}

pub(crate) fn compile(spec: Option<&RawValue>) -> Result<Judgement, Verdict> {
    let spec: Spec<'_> = spec::read(spec)?;
    let (rubric, criteria) = choose_rubric(&spec)?;
    let repeat = match (spec.repeat, spec.meta_eval) {
        (Some(Whole(count)), _) => {
            let count =
                u32::try_from(count).ok().filter(|count| (1..=MOST_SAMPLES).contains(&i64::from(*count)));
            Some(count.ok_or_else(|| Verdict::error(format!("`repeat` must be from 1 to {MOST_SAMPLES}")))?)
        }
        (None, Some(true)) => Some(3),
        (None, _) => None,
    };
    Ok(Judgement {
        target: Target::parse_single(spec.target.as_deref().unwrap_or(USUAL))?,
        criteria,
        rubric,
        threshold: spec.threshold,
        soft: spec.soft.unwrap_or_default(),
        model: spec.model.into_owned(),
        repeat,
        probes: spec.bias_probes.map_or_else(|| Ok(Vec::new()), read_probes)?,
    })
}

/// Resolves the rubric. A dimension is a synonym of a rubric; one that names no rubric is a criterion.
fn choose_rubric(spec: &Spec<'_>) -> Result<(&'static Rubric, String), Verdict> {
    let criteria = spec.criteria.to_string();
    if !spec.rubric.is_empty() {
        let rubric = Rubric::named(&spec.rubric).ok_or_else(|| {
            let names: Vec<&str> = RUBRICS.iter().map(|rubric| rubric.name).collect();
            Verdict::error(format!("there is no rubric `{}`", spec.rubric))
                .evidence(names.join(", "), spec.rubric.as_str())
                .suggest("use one of these rubrics, and say in `criteria` what else matters")
        })?;
        let criteria = match (criteria.is_empty(), spec.dimension.is_empty()) {
            (true, false) => spec.dimension.to_string(),
            _ => criteria,
        };
        return Ok((rubric, criteria));
    }
    match Rubric::named(&spec.dimension) {
        Some(rubric) => Ok((rubric, criteria)),
        None if spec.dimension.is_empty() || !criteria.is_empty() => Ok((&RUBRICS[0], criteria)),
        None => Ok((&RUBRICS[0], spec.dimension.to_string())),
    }
}

fn read_probes(raw: &RawValue) -> Result<Vec<Probe>, Verdict> {
    let mistake =
        || Verdict::error("`bias_probes` must be \"all\" or a list of verbosity, position, self_preference");
    if raw.get() == "null" {
        return Ok(Vec::new());
    }
    if let Ok(text) = serde_json::from_str::<Text<'_>>(raw.get()) {
        return if text.as_str() == "all" { Ok(Probe::ALL.to_vec()) } else { Err(mistake()) };
    }
    let names: Vec<Text<'_>> = serde_json::from_str(raw.get()).map_err(|_| mistake())?;
    let mut probes = Vec::new();
    for name in names {
        let probe = Probe::named(&name).ok_or_else(mistake)?;
        if !probes.contains(&probe) {
            probes.push(probe);
        }
    }
    Ok(probes)
}

impl Judgement {
    /// Folds the next step of the trace.
    pub fn step(&mut self, step: &Step<'_>) {
        self.target.step(step);
    }

    /// The rubric that it judges by.
    pub fn rubric(&self) -> &'static Rubric {
        self.rubric
    }

    /// The prompts for the judge. The fence delimits the agent's text and must be unguessable, so that the text
    /// cannot close it.
    pub fn prompts(&self, head: &Head<'_>, fence: &str) -> Result<Prompts, Verdict> {
        let said = self.target.resolve(head)?.plain().into_owned();
        Ok(prompt::write(self.rubric, &self.criteria, &said, fence, &self.probes))
    }

    /// Decides from the judge's answers. More than half of the samples must be there.
    pub fn verdict<E: fmt::Display>(&self, prompts: &Prompts, answers: &Answers<E>) -> Verdict {
        let scored: Vec<&Sample> = answers.samples.iter().filter_map(|sample| sample.as_ref().ok()).collect();
        let failure = answers.samples.iter().find_map(|sample| sample.as_ref().err());
        if scored.len() * 2 <= answers.samples.len() {
            let why = failure.map_or_else(|| "the judge was not asked".to_owned(), E::to_string);
            let mut verdict =
                Verdict::error(format!("the judge did not answer: {why}")).at(self.target.path());
            verdict.cost_usd = answers.cost_usd.unwrap_or_default();
            return verdict;
        }
        let scores: Vec<f64> = scored.iter().map(|sample| sample.score).collect();
        let score = median(&scores);
        let threshold = self.threshold.value();
        let nearest =
            scored.iter().min_by(|a, b| (a.score - score).abs().total_cmp(&(b.score - score).abs()));
        let mut explanation = nearest.map_or(String::new(), |sample| sample.explanation.clone());
        let metadata = self.metadata(prompts, answers, &scores, score);
        if scores.len() > 1 {
            let agree = scores.iter().filter(|one| (**one >= threshold) == (score >= threshold)).count();
            explanation.push_str(&format!(" ({agree} of {} samples agree", scores.len()));
            explanation.push_str(if metadata.high_variance { "; they lie far apart)" } else { ")" });
        }
        if let Some(problem) = failure {
            let lost = answers.samples.len() - scored.len();
            let are = if lost == 1 { "sample is" } else { "samples are" };
            explanation.push_str(&format!(" ({lost} {are} missing: {problem})"));
        }
        for (probe, sample) in self.probes.iter().zip(&answers.probes) {
            if let Err(problem) = sample {
                explanation.push_str(&format!(" (probe {} is missing: {problem})", probe.name()));
            }
        }
        if answers.cost_usd.is_none() {
            explanation
                .push_str(&format!(" (the price of `{}` is not known: cost is not counted)", answers.model));
        }
        let verdict = if score >= threshold {
            Verdict::pass(explanation)
        } else {
            Verdict::fail(self.soft, explanation)
                .evidence(format!("a score of at least {threshold}"), format!("{score:.3}"))
                .suggest("read the judge's reason; repeat the judgement if the score is near the threshold")
        };
        let mut verdict = verdict.with_score(score).at(self.target.path());
        verdict.threshold_source = Some(ThresholdSource::Static);
        verdict.cost_usd = answers.cost_usd.unwrap_or_default();
        verdict.judge = Some(Box::new(metadata));
        verdict
    }

    fn metadata<E>(
        &self,
        prompts: &Prompts,
        answers: &Answers<E>,
        scores: &[f64],
        score: f64,
    ) -> JudgeMetadata {
        let count = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / count;
        let spread = scores.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let probes = self.probes.iter().zip(&answers.probes).filter_map(|(probe, sample)| {
            let probed = sample.as_ref().ok()?.score;
            Some(ProbeResult { name: probe.name().to_owned(), score: probed, delta: probed - score })
        });
        JudgeMetadata {
            model: answers.model.clone(),
            rubric_name: self.rubric.name.to_owned(),
            rubric_version: self.rubric.version.to_owned(),
            prompt_hash: prompts.hash.clone(),
            sample_scores: scores.to_vec(),
            score_mean: mean,
            score_stddev: if scores.len() > 1 { (spread / (count - 1.0)).sqrt() } else { 0.0 },
            high_variance: most - least > HIGH_VARIANCE,
            bias_probes: probes.collect(),
        }
    }
}

/// The middle one; of an even number, the mean of the two in the middle.
fn median(scores: &[f64]) -> f64 {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    if sorted.len() % 2 == 1 { at(middle) } else { f64::midpoint(at(middle.saturating_sub(1)), at(middle)) }
}

#[cfg(test)]
mod tests;
