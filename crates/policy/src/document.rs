//! A policy document: the sections of the Agent Assembly document, and `default`, `rules`, `modules`, `advice`, `observe`,
//! `anomalies`.

mod advice;
mod anomalies;
mod budget;
mod fields;
mod keys;
mod problems;
mod read;
mod rules;
pub mod schema;
mod sections;
pub mod target;

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_yaml::Limits;
use rust_decimal::Decimal;

pub use proctor_yaml::Position;
pub use read::read_document;
pub use rules::{DEFAULT_RETRY_AFTER_MS, MAX_RULES, MAX_WHEN_BYTES};

/// The largest document, in bytes.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;
/// Deepest nesting of mappings and lists.
pub const MAX_DEPTH: usize = 64;
/// Most values of a document, aliases expanded.
pub const MAX_NODES: usize = 100_000;
/// Most text of a document in bytes, aliases expanded.
pub const MAX_TEXT_BYTES: usize = MAX_SOURCE_BYTES;

/// Limits under which documents are parsed; also used for our other files in YAML.
pub const YAML_LIMITS: Limits = Limits {
    source_bytes: MAX_SOURCE_BYTES,
    depth: MAX_DEPTH,
    nodes: MAX_NODES,
    text_bytes: MAX_TEXT_BYTES,
    errors: problems::MAX_PROBLEMS,
};

/// A value with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Position of the value.
    pub at: Position,
}

impl Located<String> {
    /// The position in the file of a line and column (from 1) inside the text.
    pub(crate) fn inside(&self, line: usize, column: usize) -> Position {
        let before: usize =
            self.value.lines().take(line.saturating_sub(1)).map(|line| line.chars().count() + 1).sum();
        self.at.inside(&self.value, before + column.saturating_sub(1))
    }
}

/// Problem in a policy source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The source's name: a file, or what the caller called it.
    pub file: String,
    /// Position in it.
    pub at: Position,
    /// Description of the problem, and the remedy.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}:{}: {}", self.file, self.at.line, self.at.column, self.message)
    }
}

/// Scope of a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum DocumentScope {
    /// All agents.
    #[default]
    Global,
    /// An organisation.
    Org(String),
    /// A team.
    Team(String),
    /// An agent: its principal, or the UUID that Agent Assembly derives from its id.
    Agent(String),
    /// A tool (either name).
    Tool(String),
}

/// A document, read and checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    /// The source's name.
    pub file: String,
    /// `metadata.name` of the envelope form, if given.
    pub name: String,
    /// `version`, if given.
    pub version: String,
    /// Position of `version` in the document itself: only there it says how the document is to be read.
    pub version_at: Option<Position>,
    /// `scope`.
    pub scope: DocumentScope,
    /// `default`.
    pub default: Option<Located<Effect>>,
    /// `rules`; `None` if the key is absent.
    pub rules: Option<Vec<Rule>>,
    /// `modules`.
    pub modules: Vec<Located<Module>>,
    /// `network.allowlist`; `None`: no such section.
    pub network_allowlist: Option<Vec<Located<String>>>,
    /// `tools`.
    pub tools: Vec<ToolSection>,
    /// `data`.
    pub data: Option<DataSection>,
    /// `budget`.
    pub budget: Option<BudgetSection>,
    /// `schedule.active_hours`.
    pub active_hours: Option<ActiveHours>,
    /// Position of the active hours.
    pub active_hours_at: Position,
    /// `capabilities`.
    pub capabilities: Option<CapabilitySection>,
    /// `advice`.
    pub advice: Option<crate::advice::AdviceSection>,
    /// `approval_timeout_secs` or `approval.timeout_seconds` (the latter wins); default 300.
    pub approval_timeout_secs: Option<u32>,
    /// `approval.escalation_role`: who may approve, if a rule does not say.
    pub escalation_role: Option<String>,
    /// `observe`: agents that may ask to be only observed: globs on the agent's id, its name or its principal.
    pub observe: Vec<Located<String>>,
    /// `anomalies`.
    pub anomalies: Option<AnomalySection>,
}

/// `anomalies`: what behaviour is out of the ordinary, and what happens then. A part that is not written has its usual value; `off`
/// turns it off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnomalySection {
    /// `loops`: the same action, again and again.
    pub loops: Option<LoopWatch>,
    /// `spikes`: far more actions in a minute than usual.
    pub spikes: Option<SpikeWatch>,
    /// `leaks`: secrets in one action.
    pub leaks: Option<LeakWatch>,
    /// `unknown_hosts`: what happens on a host that is not in the network allowlist of any document.
    pub unknown_hosts: Option<Response>,
    /// `exfiltration`: what happens when an action that reaches a host carries a secret.
    pub exfiltration: Option<Response>,
    /// Position of the section.
    pub at: Position,
}

/// `anomalies.loops`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopWatch {
    /// Number of repetitions; default 50.
    pub count: u32,
    /// Window in seconds; default 300.
    pub window_secs: u32,
    /// `then`; default `alarm`.
    pub then: Response,
}

/// `anomalies.spikes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpikeWatch {
    /// Standard deviations above the mean of the last hour, in tenths; default 30.
    pub sigma_tenths: u32,
    /// Fewest actions in the minute; default 20.
    pub at_least: u32,
    /// `then`; default `alarm`.
    pub then: Response,
}

/// `anomalies.leaks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeakWatch {
    /// Number of findings; default 3.
    pub findings: u32,
    /// `then`; default `alarm`.
    pub then: Response,
}

/// Response to an anomaly. An alarm is raised in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// The alarm only.
    Alarm,
    /// The action needs an approval.
    Ask,
    /// The action is denied.
    Deny,
    /// The action is denied and the agent suspended.
    Suspend,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// `id`.
    pub id: String,
    /// `when`: a CEL condition; absent: always.
    pub when: Option<Located<String>>,
    /// `then`.
    pub then: Effect,
    /// `reason`.
    pub reason: String,
    /// `expires` of ask, in microseconds.
    pub expires_micros: Option<u64>,
    /// `approvers` of ask.
    pub approvers: Vec<String>,
    /// `retry_after` of defer, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// `set` of modify: JSON pointer into the action, and the value.
    pub set: Vec<(String, Json)>,
    /// `paths` of redact: JSONPaths from the action; `None`: what the scanner found.
    pub paths: Option<Vec<String>>,
    /// `taint`: taints that are set when the rule matches and the action is let through.
    pub taints: Vec<String>,
    /// Position of the rule.
    pub at: Position,
}

/// A module named by a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Module {
    /// A Cedar policy set.
    Cedar(String),
    /// A Rego module.
    Rego(String),
}

/// `tools.NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSection {
    /// The key: a name, or `*`.
    pub name: String,
    /// `allow`; absent is false.
    pub allow: bool,
    /// Whether `allow` was written.
    pub allow_written: bool,
    /// `limit_per_hour`.
    pub limit_per_hour: Option<u32>,
    /// `requires_approval_if`, read.
    pub requires_approval_if: Option<crate::expression::Expression>,
    /// Position of the key.
    pub at: Position,
}

/// Response to a secret in an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CredentialAction {
    /// Cut it and answer redact.
    #[default]
    RedactOnly,
    /// Deny.
    Block,
    /// Leave the answer alone.
    AlertOnly,
    /// Cut it, answer redact, and raise an alarm.
    AlertAndRedact,
}

/// `data`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DataSection {
    /// `sensitive_patterns`: regular expressions.
    pub sensitive_patterns: Vec<Located<String>>,
    /// `credential_action`; `None` if not written.
    pub credential_action: Option<CredentialAction>,
    /// Position of `credential_action`, else of the section.
    pub at: Position,
}

/// `budget`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BudgetSection {
    /// Every limit that is written, with the name of its key for messages (`daily_limit_usd`, `tokens.team_daily`, …).
    pub limits: Vec<Limit>,
    /// `timezone`, an IANA name; empty is UTC.
    pub timezone: String,
    /// `window`: a rolling window instead of the calendar day, in microseconds.
    pub window_micros: Option<u64>,
    /// `action_on_exceed: suspend`: a principal at a limit is suspended until the limit has capacity again.
    pub suspend: bool,
    /// `trust_reports`: what an agent reports of its own costs gives budget back.
    pub trust_reports: bool,
}

/// A limit of a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The key it was written under, below `budget`.
    pub key: String,
    /// Account that is charged.
    pub account: crate::question::Account,
    /// Unit of the amount.
    pub unit: crate::question::Unit,
    /// A calendar month rather than a day (or the rolling window).
    pub monthly: bool,
    /// Limit of the amount spent.
    pub most: Decimal,
}

/// `schedule.active_hours`: `[start, end)` in minutes of the day; overnight if start > end; `23:59` as end means the end of
/// the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveHours {
    /// First minute.
    pub start: u16,
    /// Minute after the last; 1440 for the end of the day.
    pub end: u16,
    /// IANA name.
    pub timezone: String,
}

/// `capabilities`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CapabilitySection {
    /// `allow`; `None` if absent.
    pub allow: Option<Vec<String>>,
    /// `deny`.
    pub deny: Vec<String>,
    /// Position of the section.
    pub at: Position,
}

#[cfg(test)]
mod tests;
