//! Judges of suites: those of the assertion engine.

use std::time::Instant;

use proctor_assert::{Assertion, Trace, Verdict};
use proctor_core::random::Randomness;
use proctor_door_attest::Evaluator;
use proctor_runner::checks::{JudgeNeed, JudgeReply};
use proctor_runner::judging::Judges;

/// The evaluator of the assertion engine, for suites.
pub struct EngineJudges<R> {
    evaluator: Evaluator,
    randomness: R,
}

impl<R: Randomness> EngineJudges<R> {
    /// Uses an evaluator.
    pub fn new(evaluator: Evaluator, randomness: R) -> EngineJudges<R> {
        EngineJudges { evaluator, randomness }
    }
}

impl<R: Randomness> Judges for EngineJudges<R> {
    fn fence(&self) -> String {
        let mut bytes = [0; 12];
        self.randomness.fill(&mut bytes);
        proctor_core::hex::encode(bytes)
    }

    fn replies(&self, need: &JudgeNeed) -> Vec<JudgeReply> {
        let Some(judge) = self.evaluator.models.judge() else {
            let missing = "no judge is configured; set ATTEST_OPENAI_API_KEY, ATTEST_ANTHROPIC_API_KEY, ATTEST_GEMINI_API_KEY, ATTEST_OLLAMA_BASE_URL or ATTEST_JUDGE_BASE_URL";
            return vec![JudgeReply::Missing(missing.to_owned())];
        };
        let until = Instant::now() + self.evaluator.model_time();
        let samples = judge.samples(&need.prompts, need.samples, until);
        let reply = |sample: Result<_, proctor_door_attest::SampleError>| match sample {
            Ok(sample) => JudgeReply::Scored(sample),
            Err(error) => JudgeReply::Missing(format!("the judge failed: {error}")),
        };
        samples.into_iter().map(reply).collect()
    }

    fn verdicts(&self, trace: &Trace<'_>, assertions: &[Assertion<'_>]) -> Vec<Verdict> {
        let batch = self.evaluator.evaluate(trace, assertions);
        let mut verdicts: Vec<Option<Verdict>> = assertions.iter().map(|_| None).collect();
        for found in batch.found {
            let verdict = if found.waiting {
                Verdict::error("no plugin can answer here: nobody would submit its result")
            } else {
                found.verdict
            };
            if let Some(place) = verdicts.get_mut(found.index) {
                *place = Some(verdict);
            }
        }
        let not_run = || Verdict::error("not evaluated: an assertion of a lower layer failed");
        verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(not_run)).collect()
    }
}
