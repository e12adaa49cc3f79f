//! Actions: what an agent proposes to do, as sent.

mod json;
mod member;

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use rust_decimal::Decimal;
use sha2::Sha256;

use crate::canonical;
use crate::digest::Digest;
use crate::json::Json;

pub use json::{ActionError, ActionProblem};
pub use member::{MemberField, MemberMut, MemberRef, MemberType};

/// The kind of an action, as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum ActionKind {
    /// A call to a language model.
    LlmCall,
    /// A call of a tool.
    #[default]
    ToolCall,
    /// The result of a tool on its way back to the agent.
    ToolResult,
    /// Reading, writing or deleting a file.
    FileOperation,
    /// A connection to a host.
    NetworkCall,
    /// Running a program.
    ProcessExec,
    /// Starting another agent.
    AgentSpawn,
    /// A prompt from a user.
    Prompt,
    /// Any other action.
    Custom,
}

impl ActionKind {
    /// All kinds.
    pub const ALL: [ActionKind; 9] = [
        ActionKind::LlmCall,
        ActionKind::ToolCall,
        ActionKind::ToolResult,
        ActionKind::FileOperation,
        ActionKind::NetworkCall,
        ActionKind::ProcessExec,
        ActionKind::AgentSpawn,
        ActionKind::Prompt,
        ActionKind::Custom,
    ];

    /// The name in documents and records.
    pub const fn word(self) -> &'static str {
        match self {
            ActionKind::LlmCall => "llm_call",
            ActionKind::ToolCall => "tool_call",
            ActionKind::ToolResult => "tool_result",
            ActionKind::FileOperation => "file_operation",
            ActionKind::NetworkCall => "network_call",
            ActionKind::ProcessExec => "process_exec",
            ActionKind::AgentSpawn => "agent_spawn",
            ActionKind::Prompt => "prompt",
            ActionKind::Custom => "custom",
        }
    }
}

impl fmt::Display for ActionKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl FromStr for ActionKind {
    type Err = ();

    fn from_str(word: &str) -> Result<ActionKind, ()> {
        ActionKind::ALL.into_iter().find(|kind| kind.word() == word).ok_or(())
    }
}

/// An action as it was sent. What the message did not say is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Action {
    /// The kind.
    pub kind: ActionKind,
    /// The tool's name, as sent.
    pub name: String,
    /// The arguments.
    pub args: Json,
    /// The result, for `tool_result`.
    pub result: Json,
    /// Further members of the message.
    pub metadata: Json,
    /// `read`, `write`, `append`, `create`, `delete`, for `file_operation`.
    pub operation: String,
    /// The file concerned.
    pub path: String,
    /// The command line, for `process_exec`.
    pub command: String,
    /// The host, for `network_call`.
    pub host: String,
    /// The port, for `network_call`.
    pub port: Option<u16>,
    /// The URL concerned.
    pub url: String,
    /// The model, for `llm_call`.
    pub model: String,
    /// Prompt or other text.
    pub text: String,
    /// Expected tokens.
    pub tokens: u64,
    /// Expected cost in USD.
    pub cost_usd: Decimal,
    /// The directory that relative paths start from.
    pub cwd: String,
    /// Number of agents between this one and the root.
    pub depth: u32,
    /// The door that received it.
    pub door: String,
}

crate::member_table! {
    /// A member of an [`Action`], by its name in the JSON form.
    pub enum ActionMember of Action {
        Kind = "kind": kind as ActionKind,
        Tool = "tool": name as String,
        Args = "args": args as Json,
        Result = "result": result as Json,
        Metadata = "metadata": metadata as Json,
        Operation = "operation": operation as String,
        Path = "path": path as String,
        Command = "command": command as String,
        Host = "host": host as String,
        Port = "port": port as Option<u16>,
        Url = "url": url as String,
        Model = "model": model as String,
        Text = "text": text as String,
        Tokens = "tokens": tokens as u64,
        CostUsd = "cost_usd": cost_usd as Decimal,
        Cwd = "cwd": cwd as String,
        Depth = "depth": depth as u32,
        Door = "door": door as String,
    }
}

impl Action {
    /// Reads the JSON form: `{"kind", "tool", "args", …}`. Unknown members are refused; every problem is reported.
    ///
    /// ```
    /// use proctor_core::action::Action;
    /// use proctor_core::json::Json;
    /// let action = Action::from_json(&Json::parse(br#"{"tool": "bash", "args": {"command": "ls"}}"#).unwrap()).unwrap();
    /// assert_eq!(action.name, "bash");
    /// let problems = Action::from_json(&Json::parse(br#"{"tol": "bash"}"#).unwrap()).unwrap_err();
    /// assert_eq!(problems[0].to_string(), "unknown member `tol`: did you mean `tool`? (at `$.tol`)");
    /// ```
    pub fn from_json(value: &Json) -> Result<Action, Vec<ActionProblem>> {
        json::from_json(value)
    }

    /// The JSON form, without the members that are empty.
    pub fn to_json(&self) -> Json {
        json::to_json(self)
    }

    /// HMAC-SHA-256 over what two asks must share to be the same ask: principal, kind, tool, arguments, target and directory, as
    /// sent; never ids, times, depth or metadata. Keyed, so that the digest of a secret argument cannot be guessed from the ledger.
    pub fn digest(&self, key: &[u8; 32], principal: &str, tool: &str) -> Digest {
        // Written out rather than taken from the table: a member that is added must not change the digests of old asks.
        let text = canonical::claimed(
            &Json::object()
                .with("args", self.args.clone())
                .with("command", self.command.as_str())
                .with("cwd", self.cwd.as_str())
                .with("host", self.host.as_str())
                .with("kind", self.kind.word())
                .with("model", self.model.as_str())
                .with("name", self.name.as_str())
                .with("operation", self.operation.as_str())
                .with("path", self.path.as_str())
                .with("port", self.port.map(u64::from))
                .with("principal", principal)
                .with("result", self.result.clone())
                .with("text", self.text.as_str())
                .with("tool", tool)
                .with("url", self.url.as_str()),
        );
        // INVARIANT: HMAC takes keys of any length, so this cannot fail; a digest without the key would still be a digest.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Digest::of(text.as_bytes()) };
        mac.update(text.as_bytes());
        Digest::from_bytes(mac.finalize().into_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(text: &str) -> Action {
        Action::from_json(&Json::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn digest_covers_what_matters_and_nothing_else() {
        let key = [7; 32];
        let base = action(r#"{"tool":"bash","args":{"a":1,"b":2},"cwd":"/r"}"#);
        let same = action(r#"{"cwd":"/r","args":{"b":2,"a":1},"tool":"bash","depth":3,"metadata":{"x":1}}"#);
        assert_eq!(base.digest(&key, "p", "shell"), same.digest(&key, "p", "shell"));
        for other in [
            r#"{"tool":"bash","args":{"a":1,"b":3},"cwd":"/r"}"#,
            r#"{"tool":"bash","args":{"a":1,"b":2},"cwd":"/s"}"#,
            r#"{"tool":"bash","args":{"a":1,"b":2},"cwd":"/r","kind":"custom"}"#,
            r#"{"tool":"bash","args":{"a":1,"b":2.0},"cwd":"/r"}"#,
        ] {
            assert_ne!(base.digest(&key, "p", "shell"), action(other).digest(&key, "p", "shell"), "{other}");
        }
        assert_ne!(base.digest(&key, "p", "shell"), base.digest(&key, "q", "shell"));
        assert_ne!(base.digest(&key, "p", "shell"), base.digest(&[8; 32], "p", "shell"));
    }

    #[test]
    fn json_form_round_trips() {
        let text = r#"{"kind":"network_call","tool":"fetch","args":{"n":1.50},"host":"example.com","port":443,"cost_usd":"0.25","depth":2}"#;
        let read = action(text);
        assert_eq!(action(&read.to_json().to_string()), read);
        assert_eq!(read.cost_usd.to_string(), "0.25");
    }

    #[test]
    fn every_mistake_is_reported_with_its_path() {
        let value = Json::parse(
            br#"{"kind":"tool_cal","args":3,"port":70000,"cost_usd":"much","tokns":1,"depth":-1}"#,
        )
        .unwrap();
        let problems: Vec<String> =
            Action::from_json(&value).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 6, "{problems:#?}");
        assert!(problems[0].contains("did you mean `tool_call`"), "{problems:#?}");
    }
}
