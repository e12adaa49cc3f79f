//! Assertions that wait for a plugin result.

use std::collections::{HashMap, VecDeque};

use proctor_policy::scan::{Identifiers, Scanner};
use proctor_providers::store::Row;
use proctor_wire::attest::message::SubmitPluginResult;
use proctor_wire::attest::rpc::cut;

/// Limit of waiting assertions; the oldest are evicted first.
const MAX_WAITING: usize = 10_000;

/// Length limit of stored trace and agent ids, in bytes: clients may send long ones, and many.
const MAX_ID_LENGTH: usize = 1024;

/// Waiting assertions, by trace and assertion id, with their order of arrival.
#[derive(Default)]
pub(crate) struct Plugins {
    waiting: HashMap<(String, String), Waiting>,
    order: VecDeque<(String, String)>,
}

struct Waiting {
    count: usize,
    agent: String,
}

/// Trims and truncates a trace or agent id for storage.
pub(crate) fn stored_id(name: &str) -> &str {
    cut(name.trim(), MAX_ID_LENGTH)
}

/// An id as the history holds it: itself, or, if the scanner takes it for a secret, a digest, always the same. There may be no state directory
/// and so no secret to key it with; the file is for its owner alone.
pub(crate) fn recorded_id(id: &str) -> String {
    Identifiers::new(Scanner::standard(), b"attest.db identifiers of history").text(id)
}

/// A plugin result that matched a waiting assertion.
pub struct AcceptedResult {
    /// Trace of the assertion.
    pub trace_id: String,
    /// Id of the assertion.
    pub assertion_id: String,
    /// Agent of the trace; empty if the trace names none.
    pub agent: String,
    /// Name of the plugin.
    pub plugin: String,
    /// Status word: `pass`, `soft_fail` or `hard_fail`.
    pub status: &'static str,
    /// Score from 0 to 1.
    pub score: f64,
    /// The plugin's explanation.
    pub explanation: String,
}

/// Error in a plugin result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PluginResultError {
    /// The message has no result.
    #[error("`result` is missing")]
    Missing,
    /// The status is unknown.
    #[error("`result.status` is `{0}`: use pass, soft_fail or hard_fail")]
    Status(String),
    /// The score is out of range.
    #[error("`result.score` is {0}: use a number from 0 to 1")]
    Score(f64),
}

impl AcceptedResult {
    /// Row of the history for this result.
    pub fn row(&self) -> Row {
        Row {
            trace_id: recorded_id(&self.trace_id),
            assertion_id: recorded_id(&self.assertion_id),
            kind: "plugin".to_owned(),
            key: String::new(),
            score: self.score,
            status: self.status.to_owned(),
        }
    }
}

impl Plugins {
    /// Registers an assertion that waits for a result.
    pub(crate) fn wait_for(&mut self, trace_id: &str, assertion_id: &str, agent: &str) {
        let name = (stored_id(trace_id).to_owned(), assertion_id.to_owned());
        let waiting = self
            .waiting
            .entry(name.clone())
            .or_insert_with(|| Waiting { count: 0, agent: stored_id(agent).to_owned() });
        waiting.count += 1;
        self.order.push_back(name);
        if self.order.len() > MAX_WAITING
            && let Some(oldest) = self.order.pop_front()
        {
            self.done(&oldest);
        }
    }

    /// Matches a result to a waiting assertion, once. An invalid result is an error even if no assertion waits for it.
    pub(crate) fn accept(
        &mut self,
        result: &SubmitPluginResult,
    ) -> Result<Option<AcceptedResult>, PluginResultError> {
        let found = result.result.as_ref().ok_or(PluginResultError::Missing)?;
        let status = match found.status.as_deref().unwrap_or_default() {
            "pass" => "pass",
            "soft_fail" => "soft_fail",
            // Plugins of the official examples say `fail`.
            "hard_fail" | "fail" => "hard_fail",
            other => return Err(PluginResultError::Status(other.to_owned())),
        };
        let score = found.score.unwrap_or(if status == "pass" { 1.0 } else { 0.0 });
        if !(0.0..=1.0).contains(&score) {
            return Err(PluginResultError::Score(score));
        }
        let assertion_id = result.assertion_id.clone().unwrap_or_default();
        let trace_id = stored_id(result.trace_id.as_deref().unwrap_or_default()).to_owned();
        let name = (trace_id, assertion_id);
        let Some(agent) = self.waiting.get(&name).map(|waiting| waiting.agent.clone()) else {
            return Ok(None);
        };
        self.done(&name);
        if let Some(at) = self.order.iter().position(|one| *one == name) {
            self.order.remove(at);
        }
        let (trace_id, assertion_id) = name;
        Ok(Some(AcceptedResult {
            trace_id,
            assertion_id,
            agent,
            plugin: result.plugin_name.clone().unwrap_or_default(),
            status,
            score,
            explanation: found.explanation.clone().unwrap_or_default(),
        }))
    }

    fn done(&mut self, name: &(String, String)) {
        if let Some(waiting) = self.waiting.get_mut(name) {
            waiting.count -= 1;
            if waiting.count == 0 {
                self.waiting.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_wire::attest::message::PluginResult;

    fn result(trace: &str, assertion: &str, status: &str, score: f64) -> SubmitPluginResult {
        SubmitPluginResult {
            trace_id: Some(trace.into()),
            plugin_name: Some("p".into()),
            assertion_id: Some(assertion.into()),
            result: Some(PluginResult { status: Some(status.into()), score: Some(score), explanation: None }),
        }
    }

    #[test]
    fn only_what_is_waited_for_is_taken_and_only_once() {
        let mut plugins = Plugins::default();
        plugins.wait_for(" t ", "a", "me");
        assert!(plugins.accept(&result("t", "b", "pass", 1.0)).unwrap().is_none());
        assert!(plugins.accept(&result("u", "a", "pass", 1.0)).unwrap().is_none());
        let taken = plugins.accept(&result("t", "a", "fail", 0.5)).unwrap().unwrap();
        assert_eq!((taken.status, taken.agent.as_str()), ("hard_fail", "me"));
        assert!(plugins.accept(&result("t", "a", "pass", 1.0)).unwrap().is_none());
        assert!(plugins.waiting.is_empty() && plugins.order.is_empty());
    }

    #[test]
    fn results_that_cannot_be_are_refused_and_still_waited_for() {
        let mut plugins = Plugins::default();
        plugins.wait_for("t", "a", "");
        assert!(plugins.accept(&result("t", "a", "great", 1.0)).is_err());
        assert!(plugins.accept(&result("t", "a", "pass", 1.5)).is_err());
        assert!(plugins.accept(&result("t", "a", "pass", 1.0)).unwrap().is_some());
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut plugins = Plugins::default();
        for index in 0..=MAX_WAITING {
            plugins.wait_for("t", &index.to_string(), "");
        }
        assert_eq!(plugins.waiting.len(), MAX_WAITING);
        assert!(plugins.accept(&result("t", "0", "pass", 1.0)).unwrap().is_none());
        assert!(plugins.accept(&result("t", "1", "pass", 1.0)).unwrap().is_some());
    }
}
