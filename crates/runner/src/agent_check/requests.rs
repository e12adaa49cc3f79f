//! Requests of the check: valid ones, and those that an agent has to refuse.

use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_wire::atp::{Constraints, Context, Request};

/// A task that every agent can do, and that needs no tool.
const TASK: &str = "Reply with the single word: ready";

/// Name of the variable whose value must not be emitted.
pub(super) const SECRET_NAME: &str = "PROCTOR_CHECK_SECRET";

/// Bytes of a huge description: above what agents take, below what the protocol's messages may have, so that it is the agent that refuses.
const HUGE: usize = 8 * 1024 * 1024;

/// Levels of deeply nested input: far above what recursive parsers survive, and of what others refuse.
const DEEP: usize = 20_000;

/// A request as text, with the task id that its answer must have.
#[derive(Debug, Clone)]
pub(super) struct Probe {
    pub(super) task_id: String,
    pub(super) text: String,
    /// What is wrong with it, or special, for reasons.
    pub(super) label: &'static str,
}

/// Builds the requests of one check.
pub(super) struct Probes<'p> {
    pub(super) randomness: &'p dyn Randomness,
    /// Value of [`SECRET_NAME`].
    pub(super) secret: String,
    /// The time limit that requests carry.
    pub(super) timeout_seconds: u64,
}

impl<'p> Probes<'p> {
    pub(super) fn new(randomness: &'p dyn Randomness, timeout_seconds: u64) -> Probes<'p> {
        Probes { randomness, secret: format!("check-{}", token(randomness)), timeout_seconds }
    }

    /// A valid request with this description.
    pub(super) fn plain(&self, workspace: &str, description: Option<&str>) -> Probe {
        let task_id = uuid(self.randomness);
        let request = self.request(&task_id, workspace, description.unwrap_or(TASK));
        Probe { task_id, text: request.to_string(), label: "a plain request" }
    }

    pub(super) fn with_version(&self, workspace: &str, version: &str, label: &'static str) -> Probe {
        let task_id = uuid(self.randomness);
        let request = self.request(&task_id, workspace, TASK).with_member("version", version);
        Probe { task_id, text: request.to_string(), label }
    }

    /// Unknown members at every level.
    pub(super) fn unknown_members(&self, workspace: &str) -> Probe {
        let probe = self.plain(workspace, None);
        let unknown = r#""x_unknown":{"list":[1,null,"text"]},"#;
        let mut text = probe.text.clone();
        for at in [r#""description":"#, r#""max_steps":"#, r#""workspace_path":"#, r#""version":"#] {
            text = text.replacen(at, &format!("{unknown}{at}"), 1);
        }
        Probe { text, label: "a request with unknown members", ..probe }
    }

    /// Input that is no JSON object.
    pub(super) fn malformed(&self, workspace: &str) -> Vec<Probe> {
        let probe = self.plain(workspace, None);
        let cut = probe.text.get(..probe.text.len() - 20).unwrap_or_default().to_owned();
        let with = |text: String, label| Probe { text, label, task_id: probe.task_id.clone() };
        vec![
            with("this is not JSON".to_owned(), "text that is no JSON"),
            with(cut, "a request that is cut off"),
            with(format!("[{}]", probe.text), "an array"),
            with(String::new(), "nothing"),
        ]
    }

    /// Objects that violate the document's schema of requests.
    pub(super) fn invalid(&self, workspace: &str) -> Vec<Probe> {
        let task = |description: Json| Json::object().with("description", description);
        let limits = |name: &str, value: Json| Json::object().with(name, value);
        let mut probes: Vec<Probe> = [
            ("task", Json::Null, "a request without `task`"),
            ("task", Json::object(), "a request without `task.description`"),
            ("task", task("".into()), "a request with an empty description"),
            ("task", task(7_u64.into()), "a request whose description is a number"),
            ("constraints", "none".into(), "a request whose `constraints` are a text"),
            ("constraints", limits("max_steps", 0_u64.into()), "a request with `max_steps` 0"),
        ]
        .into_iter()
        .map(|(name, value, label)| {
            let task_id = uuid(self.randomness);
            let request = self.request(&task_id, workspace, TASK).with_member(name, value);
            Probe { task_id, text: without_null(request, name), label }
        })
        .collect();
        let request = self.request("", workspace, TASK).with_member("task_id", Json::Null);
        let text = without_null(request, "task_id");
        probes.push(Probe { task_id: String::new(), text, label: "a request without `task_id`" });
        probes
    }

    /// Requests that are too much for any agent.
    pub(super) fn huge(&self, workspace: &str) -> Vec<Probe> {
        let large = self.plain(workspace, Some(&"a ".repeat(HUGE / 2)));
        let deep = self.plain(workspace, None);
        let nested = format!("{{\"input_data\":{{\"list\":{}{}}},", "[".repeat(DEEP), "]".repeat(DEEP));
        let text = deep.text.replacen(r#""task":{"#, &format!("\"task\":{nested}"), 1);
        vec![
            Probe { label: "a request of 8 MiB", ..large },
            Probe { text, label: "a request nested 20000 levels", ..deep },
        ]
    }

    fn request(&self, task_id: &str, workspace: &str, description: &str) -> Request {
        let constraints = Constraints {
            max_steps: Some(20),
            timeout_seconds: Some(self.timeout_seconds),
            allowed_tools: Some(Vec::new()),
            ..Constraints::default()
        };
        let context = Context {
            tools_endpoint: None,
            workspace_path: Some(workspace),
            environment: vec![(SECRET_NAME, &self.secret)],
        };
        let metadata = Json::object()
            .with("test_id", "check-agent")
            .with("test_name", "check-agent")
            .with("run_number", 1_u64)
            .with("total_runs", 1_u64);
        Request::new(task_id, description)
            .with_constraints(&constraints)
            .with_context(&context)
            .with_metadata(metadata)
    }
}

/// The text of a request; a member that was set to null is left out.
fn without_null(request: Request, name: &str) -> String {
    let mut json = request.into_json();
    if let Json::Object(members) = &mut json {
        members.retain(|(member, value)| member != name || !value.is_null());
    }
    json.to_string()
}

/// An unguessable text.
pub(super) fn token(randomness: &dyn Randomness) -> String {
    uuid(randomness).replace('-', "")
}

fn uuid(randomness: &dyn Randomness) -> String {
    let mut bytes = [0; 16];
    randomness.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

#[cfg(test)]
mod tests {
    use proctor_core::random::SeededRandomness;
    use proctor_wire::atp::Strictness;

    use super::*;

    #[test]
    fn valid_requests_are_valid_by_the_document_and_the_others_are_not() {
        let randomness = SeededRandomness::new(1);
        let probes = Probes::new(&randomness, 5);
        let strict = |probe: &Probe| Request::parse(probe.text.as_bytes(), Strictness::Strict);
        let unknown = probes.unknown_members("/w");
        assert_eq!(unknown.text.matches("x_unknown").count(), 4);
        for probe in [probes.plain("/w", None), unknown, probes.with_version("/w", "1.7", "")] {
            let read = strict(&probe).unwrap();
            assert_eq!(read.message.task_id(), probe.task_id);
            assert!(read.warnings.is_empty());
        }
        let refused = probes.malformed("/w").into_iter().chain(probes.invalid("/w")).chain(probes.huge("/w"));
        for probe in refused.chain([probes.with_version("/w", "2.0", "another major version")]) {
            assert!(strict(&probe).is_err(), "{}", probe.label);
            let lenient = Request::parse(probe.text.as_bytes(), Strictness::Lenient);
            assert!(lenient.is_err(), "{}", probe.label);
        }
    }
}
