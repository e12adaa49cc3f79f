//! Judges and the Attest engine, as the runner needs them.

use proctor_assert::{Assertion, Trace, Verdict};

use crate::checks::{JudgeNeed, JudgeReply};

/// A judge and an evaluator of Attest assertions. Both may wait for a model, so they are called on a thread that may block.
pub trait Judges: Send + Sync {
    /// A text that no judged text can guess, around which a prompt is built.
    fn fence(&self) -> String;

    /// Replies of the judge, as many as are needed.
    fn replies(&self, need: &JudgeNeed) -> Vec<JudgeReply>;

    /// Verdicts on a trace, in the order of the assertions.
    fn verdicts(&self, trace: &Trace<'_>, assertions: &[Assertion<'_>]) -> Vec<Verdict>;
}
