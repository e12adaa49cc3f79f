//! Assertions that wait for the result of a plugin.

use std::collections::{HashMap, VecDeque};

use proctor_providers::store::Row;
use proctor_wire::attest::message::SubmitPluginResult;
use proctor_wire::attest::rpc::cut;

/// How many may wait; the oldest are forgotten first.
const MOST: usize = 10_000;

/// How much of a trace's or an agent's name is remembered: names are as long as clients like, and there are many.
const LONGEST_NAME: usize = 1024;

/// The assertions that wait, by trace and name.
#[derive(Default)]
pub(crate) struct Plugins {
    waiting: HashMap<(String, String), Waiting>,
    order: VecDeque<(String, String)>,
}

struct Waiting {
    count: usize,
    agent: String,
}

/// A trace's or an agent's name as it is remembered.
pub(crate) fn kept(name: &str) -> &str {
    cut(name.trim(), LONGEST_NAME)
}

/// A result that an assertion waited for.
pub struct AcceptedResult {
    /// The trace.
    pub trace_id: String,
    /// The assertion.
    pub assertion_id: String,
    /// Whose trace it is; empty if it does not say.
    pub agent: String,
    /// The plugin.
    pub plugin: String,
    /// How it ended.
    pub status: &'static str,
    /// From 0 to 1.
    pub score: f64,
    /// Why.
    pub explanation: String,
}

impl AcceptedResult {
    /// The row that it is remembered as.
    pub fn row(&self) -> Row {
        Row {
            trace_id: self.trace_id.clone(),
            assertion_id: self.assertion_id.clone(),
            kind: "plugin".to_owned(),
            key: String::new(),
            score: self.score,
            status: self.status.to_owned(),
        }
    }
}

impl Plugins {
    /// An assertion waits from now on.
    pub(crate) fn wait_for(&mut self, trace_id: &str, assertion_id: &str, agent: &str) {
        let name = (kept(trace_id).to_owned(), assertion_id.to_owned());
        let waiting = self
            .waiting
            .entry(name.clone())
            .or_insert_with(|| Waiting { count: 0, agent: kept(agent).to_owned() });
        waiting.count += 1;
        self.order.push_back(name);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.done(&oldest);
        }
    }

    /// Takes a result if an assertion waits for it. A result that no assertion could have is an error, whether it is waited for or not.
    pub(crate) fn accept(&mut self, result: &SubmitPluginResult) -> Result<Option<AcceptedResult>, String> {
        let found = result.result.as_ref().ok_or("`result` is missing")?;
        let status = match found.status.as_deref().unwrap_or_default() {
            "pass" => "pass",
            "soft_fail" => "soft_fail",
            // Plugins of the official examples say `fail`.
            "hard_fail" | "fail" => "hard_fail",
            other => return Err(format!("`result.status` is `{other}`: use pass, soft_fail or hard_fail")),
        };
        let score = found.score.unwrap_or(if status == "pass" { 1.0 } else { 0.0 });
        if !(0.0..=1.0).contains(&score) {
            return Err(format!("`result.score` is {score}: use a number from 0 to 1"));
        }
        let assertion_id = result.assertion_id.clone().unwrap_or_default();
        let trace_id = kept(result.trace_id.as_deref().unwrap_or_default()).to_owned();
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
        for index in 0..=MOST {
            plugins.wait_for("t", &index.to_string(), "");
        }
        assert_eq!(plugins.waiting.len(), MOST);
        assert!(plugins.accept(&result("t", "0", "pass", 1.0)).unwrap().is_none());
        assert!(plugins.accept(&result("t", "1", "pass", 1.0)).unwrap().is_some());
    }
}
