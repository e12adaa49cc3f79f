//! Duties of an agent, and the result of checking one.

use proctor_core::json::Json;

/// A duty that the protocol's document gives to agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Duty {
    /// One response to a request.
    Answers,
    /// `version` in every message.
    Version,
    /// The task id of the request in every message.
    TaskId,
    /// A status of the document.
    Status,
    /// Artifacts as the document has them, with paths inside of the workspace and true sizes and hashes.
    Artifacts,
    /// Metrics as the document has them.
    Metrics,
    /// A reason in every failed response.
    ErrorText,
    /// Events as the document has them.
    Events,
    /// Sequence numbers that increase, and no event after the response.
    EventOrder,
    /// Only tools that the request allows.
    AllowedTools,
    /// Requests of a higher minor version are executed.
    HigherMinor,
    /// Requests of another major version are refused.
    OtherMajor,
    /// Unknown members are ignored.
    UnknownMembers,
    /// Input that is no JSON object is refused.
    Malformed,
    /// Requests that violate the document's schema are refused.
    Invalid,
    /// Huge and deeply nested input ends in an answer or a refusal.
    Huge,
    /// A valid request is answered after all of these.
    Recovers,
    /// Requests at the same time are answered, each with its own task id.
    Concurrent,
    /// The process ends by itself, without an error.
    Exit,
    /// Values of `context.environment` are not emitted.
    Secrets,
    /// Commands in the description are not run.
    Canary,
}

/// The result of checking one duty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// No violation was seen.
    Passed,
    /// A violation was seen.
    Failed(String),
    /// The duty does not concern this agent, or could not be checked.
    NotApplicable(String),
    /// The agent does not work at all, so that nothing was tried.
    NotTried,
}

/// A duty with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DutyResult {
    /// The duty.
    pub duty: Duty,
    /// The result.
    pub outcome: Outcome,
}

/// The results of all duties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// Name of the agent.
    pub agent: String,
    /// One result for each duty.
    pub results: Vec<DutyResult>,
    /// Last lines of the standard error of an agent that does not work at all.
    pub last_lines: Vec<String>,
}

impl Duty {
    /// All duties, in the order of reports.
    pub const ALL: [Duty; 21] = [
        Duty::Answers,
        Duty::Version,
        Duty::TaskId,
        Duty::Status,
        Duty::Artifacts,
        Duty::Metrics,
        Duty::ErrorText,
        Duty::Events,
        Duty::EventOrder,
        Duty::AllowedTools,
        Duty::HigherMinor,
        Duty::OtherMajor,
        Duty::UnknownMembers,
        Duty::Malformed,
        Duty::Invalid,
        Duty::Huge,
        Duty::Recovers,
        Duty::Concurrent,
        Duty::Exit,
        Duty::Secrets,
        Duty::Canary,
    ];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Duty::Answers => "answers",
            Duty::Version => "version",
            Duty::TaskId => "task_id",
            Duty::Status => "status",
            Duty::Artifacts => "artifacts",
            Duty::Metrics => "metrics",
            Duty::ErrorText => "error_text",
            Duty::Events => "events",
            Duty::EventOrder => "event_order",
            Duty::AllowedTools => "allowed_tools",
            Duty::HigherMinor => "higher_minor",
            Duty::OtherMajor => "other_major",
            Duty::UnknownMembers => "unknown_members",
            Duty::Malformed => "malformed_input",
            Duty::Invalid => "invalid_request",
            Duty::Huge => "huge_input",
            Duty::Recovers => "recovers",
            Duty::Concurrent => "concurrent",
            Duty::Exit => "exit",
            Duty::Secrets => "secrets",
            Duty::Canary => "canary",
        }
    }

    /// The duty in words.
    pub fn text(self) -> &'static str {
        match self {
            Duty::Answers => "answers a request with one response",
            Duty::Version => "puts its version, 1.x, into every message",
            Duty::TaskId => "repeats the task id of the request in every message",
            Duty::Status => "uses a status of the document",
            Duty::Artifacts => "describes its artifacts truly, with paths inside of the workspace",
            Duty::Metrics => "reports metrics as the document has them",
            Duty::ErrorText => "says in `error` why it failed",
            Duty::Events => "sends events as the document has them",
            Duty::EventOrder => "numbers its events in order, all before the response",
            Duty::AllowedTools => "uses only tools that the request allows",
            Duty::HigherMinor => "executes requests of a higher minor version",
            Duty::OtherMajor => "refuses requests of another major version",
            Duty::UnknownMembers => "ignores members that it does not know",
            Duty::Malformed => "refuses input that is no JSON object",
            Duty::Invalid => "refuses requests that violate the schema",
            Duty::Huge => "answers or refuses huge and deeply nested input",
            Duty::Recovers => "answers a valid request after invalid ones",
            Duty::Concurrent => "answers requests at the same time, each with its own task id",
            Duty::Exit => "ends with exit status 0 after its response",
            Duty::Secrets => "emits no value of `context.environment`",
            Duty::Canary => "runs no command that stands in the description",
        }
    }
}

impl Outcome {
    /// The result as a word.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Passed => "pass",
            Outcome::Failed(_) => "fail",
            Outcome::NotApplicable(_) => "not applicable",
            Outcome::NotTried => "not tried",
        }
    }

    /// The reason of a result that is not a pass.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Passed => None,
            Outcome::Failed(reason) | Outcome::NotApplicable(reason) => Some(reason),
            Outcome::NotTried => Some("the agent does not answer a plain request"),
        }
    }
}

impl CheckReport {
    /// Whether no duty failed.
    pub fn has_passed(&self) -> bool {
        self.count("fail") == 0
    }

    /// The numbers of results in words.
    pub fn summary(&self) -> String {
        let mut text = format!("{}: {} pass, {} fail", self.agent, self.count("pass"), self.count("fail"));
        for word in ["not applicable", "not tried"] {
            let count = self.count(word);
            if count > 0 || word == "not applicable" {
                text.push_str(&format!(", {count} {word}"));
            }
        }
        text
    }

    /// One sentence about the duties that were not tried, if there are some.
    pub fn not_tried(&self) -> Option<String> {
        let count = self.count("not tried");
        let reason = Outcome::NotTried;
        (count > 0).then(|| format!("{count} duties not tried: {}", reason.reason().unwrap_or_default()))
    }

    /// The report as an object.
    pub fn to_json(&self) -> Json {
        let duties = self.results.iter().map(|DutyResult { duty, outcome }| {
            let json = Json::object()
                .with("duty", duty.name())
                .with("text", duty.text())
                .with("outcome", outcome.word().replace(' ', "_"));
            match outcome.reason() {
                Some(reason) => json.with("reason", reason),
                None => json,
            }
        });
        let json = Json::object()
            .with("agent", self.agent.as_str())
            .with("passed", self.has_passed())
            .with("duties", duties.collect::<Vec<_>>());
        if self.last_lines.is_empty() {
            return json;
        }
        json.with(
            "last_lines",
            self.last_lines.iter().map(|line| Json::from(line.as_str())).collect::<Vec<_>>(),
        )
    }

    fn count(&self, word: &str) -> usize {
        self.results.iter().filter(|result| result.outcome.word() == word).count()
    }
}
