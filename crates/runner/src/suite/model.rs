//! The typed form of a suite, with defaults applied.

use std::fmt;
use std::sync::Arc;

use proctor_core::json::Json;
use proctor_yaml::Position;

use super::mock_tools::MockTool;
use crate::checks::{Assertion, WorkspacePath};
use crate::scoring::Weights;

/// A suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// Name.
    pub name: String,
    /// Version of the suite, free text.
    pub version: String,
    /// Description; empty if there is none.
    pub description: String,
    /// Agents that can be named.
    pub agents: Vec<Agent>,
    /// Tests, in the order in which they are written.
    pub tests: Vec<TestCase>,
}

/// A test.
#[derive(Debug, Clone, PartialEq)]
pub struct TestCase {
    /// Id, unique in the suite.
    pub id: String,
    /// Name.
    pub name: String,
    /// Description; empty if there is none.
    pub description: String,
    /// Position of the test in the source.
    pub at: Position,
    /// Tags; equal lists are shared between tests.
    pub tags: Arc<[String]>,
    /// The task.
    pub task: Task,
    /// Assertions; equal lists are shared between tests.
    pub assertions: Arc<[Assertion]>,
    /// Settings. Most tests of a suite have the same, so they are shared.
    pub settings: Arc<TestSettings>,
}

/// Settings of a test, those of the suite included.
#[derive(Debug, Clone, PartialEq)]
pub struct TestSettings {
    /// Constraints.
    pub constraints: Constraints,
    /// Attest assertions.
    pub attest: Vec<AttestAssertion>,
    /// Weights of the score.
    pub weights: Weights,
    /// Names of the agents that the test is for; all if empty.
    pub agents: Vec<String>,
    /// Number of runs.
    pub runs: u32,
    /// Share of runs that must pass.
    pub pass_rate: f64,
    /// Whether the status `partial` can pass.
    pub allow_partial: bool,
    /// Whether invalid events and events out of sequence fail the run.
    pub strict: bool,
    /// The reason why the test is not run, if it is not.
    pub skip: Option<String>,
    /// Variables for `context.environment`: those of the suite, overridden by those of the test.
    pub environment: Arc<[(String, SecretValue)]>,
    /// Names of variables whose values are no secrets.
    pub public: Arc<[String]>,
    /// Whether the agent may use the network.
    pub network: bool,
    /// Commands before a run: those of the suite, then those of the test.
    pub setup: Arc<[Command]>,
    /// Commands after a run: those of the test, then those of the suite.
    pub teardown: Arc<[Command]>,
    /// Files that come into the copy of the workspace before checks run.
    pub files: Vec<FileItem>,
    /// Files of the reference solution.
    pub reference: Vec<FileItem>,
    /// Answers to questions of the policy, first match first: those of the test, then those of the suite.
    pub approvals: Arc<[Approval]>,
    /// Mock tools: those of the test, then those of the suite with other names.
    pub mock_tools: Arc<[MockTool]>,
}

impl TestCase {
    /// Whether an assertion needs the assertion engine: an Attest assertion, or a judgement by a model.
    pub fn needs_engine(&self) -> bool {
        !self.settings.attest.is_empty()
            || self.assertions.iter().any(|assertion| assertion.check.needs_judge())
    }
}

/// The task of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Description for the agent.
    pub description: String,
    /// Structured input.
    pub input_data: Option<Json>,
    /// Expected artifacts, as written: strings or objects.
    pub expected_artifacts: Option<Arc<[Json]>>,
    /// Directory that is copied into the workspace, as written.
    pub workspace_fixture: Option<String>,
}

/// Constraints of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraints {
    /// Most steps.
    pub max_steps: Option<u64>,
    /// Most tokens.
    pub max_tokens: Option<u64>,
    /// Time limit.
    pub timeout_seconds: u32,
    /// Tools that may be used; `None` for all that the policy or the mock tools allow.
    pub allowed_tools: Option<Arc<[String]>>,
    /// Highest cost, as written.
    pub budget_usd: Option<f64>,
}

/// An assertion of the Attest layers; its spec was compiled once to find mistakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttestAssertion {
    /// Id.
    pub id: String,
    /// Type: `content`, `trace`, …
    pub kind: String,
    /// The spec, as JSON.
    pub spec: String,
    /// The request id, echoed in results; empty if there is none.
    pub request_id: String,
}

/// A value that is shown to nobody but the agent.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(pub(super) String);

impl SecretValue {
    /// The value.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SecretValue(…)")
    }
}

/// An agent of a suite.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Name, unique in the suite.
    pub name: String,
    /// Kind and settings.
    pub kind: AgentKind,
    /// Time limit of the agent itself, in seconds; the smaller of this and the test's counts.
    pub timeout_seconds: Option<f64>,
    /// Attempts after one that ended in an error.
    pub retry_count: u32,
    /// Pause before another attempt, in seconds.
    pub retry_delay_seconds: f64,
    /// Position in the source.
    pub at: Position,
}

/// Kinds of agents.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentKind {
    /// A program that reads a request on stdin.
    Cli(ProcessAgent),
    /// An HTTP endpoint.
    Http(HttpAgent),
    /// A WebSocket endpoint.
    Ws(RemoteAgent),
    /// A gRPC endpoint.
    Grpc(RemoteAgent),
    /// A program that reads the description on stdin and writes the artifact on stdout.
    Plain(ProcessAgent),
    /// An agent that does nothing.
    Nop,
    /// An agent that lays down the reference files of the test.
    Reference,
    /// Only a name: the agent is defined elsewhere.
    Named,
}

/// An agent that is a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessAgent {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Working directory, as written.
    pub working_dir: Option<String>,
    /// Variables of the process.
    pub environment: Vec<(String, SecretValue)>,
    /// Whether the process gets the variables of its parent.
    pub inherit_environment: bool,
    /// Variables of the parent that the process gets although their names look like secrets.
    pub allowed_env_vars: Vec<String>,
}

/// An agent behind HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAgent {
    /// Address of requests.
    pub endpoint: String,
    /// Address of streamed requests.
    pub stream_endpoint: Option<String>,
    /// Headers of every request.
    pub headers: Vec<(String, SecretValue)>,
    /// Whether certificates are verified.
    pub verify_ssl: bool,
    /// Address of health checks.
    pub health_endpoint: Option<String>,
    /// Whether private addresses are allowed.
    pub allow_internal: Option<bool>,
}

/// An agent behind WebSocket or gRPC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteAgent {
    /// Address.
    pub endpoint: String,
    /// Headers of the handshake, or metadata.
    pub headers: Vec<(String, SecretValue)>,
    /// Whether certificates are verified.
    pub verify_ssl: bool,
}

/// A command of `setup` or `teardown`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments; there is no shell.
    pub words: Vec<String>,
    /// Time limit.
    pub timeout_seconds: u32,
}

/// A file or directory of `files` or `reference`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileItem {
    /// Path in the workspace. A directory's content goes there.
    pub path: WorkspacePath,
    /// The content.
    pub source: FileSource,
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSource {
    /// Text in the suite.
    Inline(String),
    /// A file or directory, as written; see [`locate`](super::locate()).
    Path(String),
}

/// An answer to a question of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The tool, or `*` for every tool.
    pub tool: String,
    /// The answer.
    pub decision: ApprovalDecision,
    /// The reason, for records.
    pub reason: String,
}

/// Answers of approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// The action may happen.
    Approve,
    /// The action must not happen.
    Deny,
}

impl Approval {
    /// Whether the approval answers a question about this tool.
    pub fn answers(&self, tool: &str) -> bool {
        self.tool == "*" || self.tool == tool
    }
}
