//! Conversion of a check's context to an action.

use proctor_core::action::{Action, ActionKind};
use proctor_core::json::Json;
use proctor_policy::scan::Scanner;
use proctor_wire::assembly::proto::common::v1::ActionType;
use proctor_wire::assembly::proto::policy::v1::action_context::Action as Context;
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, NetworkCallContext, ProcessExecContext};

use super::DOOR;

/// Assumed tokens of a model call without an estimate.
const DEFAULT_TOKENS: u64 = 1000;

/// Refusal of a check that does not describe one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoAction {
    /// Violation of the protocol, answered with an error.
    Invalid(String),
    /// Contradictory or opaque content, answered with a denial.
    Denied(String),
}

/// Reads the action of a check. `depth` is that of the agent in the registry; `identifier` gives what records hold.
pub(super) fn action(
    request: &CheckActionRequest,
    depth: u32,
    identifier: &dyn Fn(&str) -> String,
) -> Result<Action, NoAction> {
    let context = request.context.as_ref().and_then(|context| context.action.as_ref());
    let context = context.ok_or_else(|| NoAction::Invalid("`context` is missing".to_owned()))?;
    let kind = kind(request.action_type, context)?;
    let mut metadata = Json::object();
    for (name, value) in [("trace_id", &request.trace_id), ("span_id", &request.span_id)] {
        if !value.is_empty() {
            metadata.push(name, identifier(value));
        }
    }
    if !request.trace_id.is_empty() && !request.span_id.is_empty() {
        metadata.push("operation", identifier(&format!("{}:{}", request.trace_id, request.span_id)));
    }
    let mut action = Action { kind, depth, door: DOOR.to_owned(), ..Action::default() };
    match context {
        Context::LlmCall(call) => {
            "llm_call".clone_into(&mut action.name);
            action.model.clone_from(&call.model);
            action.tokens =
                u64::try_from(call.prompt_tokens).ok().filter(|tokens| *tokens > 0).unwrap_or(DEFAULT_TOKENS);
            metadata.push("contains_pii", call.contains_pii);
        }
        Context::ToolCall(call) => {
            action.name.clone_from(&call.tool_name);
            action.args = arguments(&call.args_json)?;
            action.url.clone_from(&call.target_url);
            said(&mut metadata, "tool_source", &call.tool_source);
        }
        Context::ToolResult(result) => {
            action.name.clone_from(&result.tool_name);
            action.result = text_or_json(&result.result_json);
            action.url.clone_from(&result.source_url);
            said(&mut metadata, "tool_source", &result.tool_source);
        }
        Context::FileOp(file) => {
            let operation = file.operation.to_ascii_lowercase();
            if !["read", "write", "append", "create", "delete"].contains(&operation.as_str()) {
                let known = "it is one of read, write, append, create, delete";
                return Err(NoAction::Invalid(format!(
                    "unknown file operation `{}`: {known}",
                    file.operation
                )));
            }
            action.operation = operation;
            action.path.clone_from(&file.path);
            metadata.push("is_sensitive_path", file.is_sensitive_path);
        }
        Context::NetworkCall(call) => network(&mut action, &mut metadata, call)?,
        Context::ProcessExec(process) => action.command = command_line(process),
    }
    metadata.push("action_type", type_of(context, kind).as_str_name());
    action.metadata = metadata;
    Ok(action)
}

/// Determines the kind from the context, except that a tool call may spawn an agent. Any other contradiction is denied.
fn kind(claimed: i32, context: &Context) -> Result<ActionKind, NoAction> {
    let kind = match context {
        Context::LlmCall(_) => ActionKind::LlmCall,
        Context::ToolCall(_) if claimed == i32::from(ActionType::AgentSpawn) => ActionKind::AgentSpawn,
        Context::ToolCall(_) => ActionKind::ToolCall,
        Context::ToolResult(_) => ActionKind::ToolResult,
        Context::FileOp(_) => ActionKind::FileOperation,
        Context::NetworkCall(_) => ActionKind::NetworkCall,
        Context::ProcessExec(_) => ActionKind::ProcessExec,
    };
    let own = type_of(context, kind);
    if claimed == i32::from(ActionType::ActionUnspecified) || claimed == i32::from(own) {
        return Ok(kind);
    }
    let claimed =
        ActionType::try_from(claimed).map_or_else(|_| claimed.to_string(), |it| it.as_str_name().to_owned());
    Err(NoAction::Denied(format!(
        "`action_type` is {claimed}, but the context is that of {}",
        own.as_str_name()
    )))
}

fn type_of(context: &Context, kind: ActionKind) -> ActionType {
    match context {
        Context::LlmCall(_) => ActionType::LlmCall,
        Context::ToolCall(_) if kind == ActionKind::AgentSpawn => ActionType::AgentSpawn,
        Context::ToolCall(_) => ActionType::ToolCall,
        Context::ToolResult(_) => ActionType::ToolResult,
        Context::FileOp(_) => ActionType::FileOperation,
        Context::NetworkCall(_) => ActionType::NetworkCall,
        Context::ProcessExec(_) => ActionType::ProcessExec,
    }
}

fn said(metadata: &mut Json, name: &str, value: &str) {
    if !value.is_empty() {
        metadata.push(name, value);
    }
}

/// Parses arguments. Unparsable ones are denied, since rules could not inspect them.
fn arguments(bytes: &[u8]) -> Result<Json, NoAction> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Json::Null);
    }
    Json::parse(bytes).map_err(|error| NoAction::Denied(format!("`args_json` is not JSON: {error}")))
}

/// Parses a result as JSON, or keeps it as text.
fn text_or_json(bytes: &[u8]) -> Json {
    if bytes.is_empty() {
        return Json::Null;
    }
    Json::parse(bytes).unwrap_or_else(|_| Json::String(String::from_utf8_lossy(bytes).into_owned()))
}

fn network(action: &mut Action, metadata: &mut Json, call: &NetworkCallContext) -> Result<(), NoAction> {
    let port = u16::try_from(call.port)
        .map_err(|_| NoAction::Invalid(format!("port {} is not between 0 and 65535", call.port)))?;
    action.host.clone_from(&call.host);
    action.port = (port != 0).then_some(port);
    said(metadata, "protocol", &call.protocol);
    metadata.push("in_allowlist", call.in_allowlist);
    action.url = network_url(call);
    Ok(())
}

/// Builds the URL of a connection; empty without a host.
pub(super) fn network_url(call: &NetworkCallContext) -> String {
    if call.host.is_empty() {
        return String::new();
    }
    let host = if call.host.contains(':') && !call.host.starts_with('[') {
        format!("[{}]", call.host)
    } else {
        call.host.clone()
    };
    let port = if call.port == 0 { String::new() } else { format!(":{}", call.port) };
    let url = |protocol: &str| format!("{protocol}://{host}{port}");
    let is_clean = |text: &str| Scanner::standard().scan(text).is_empty();
    let whole = url(if call.protocol.is_empty() { "tcp" } else { &call.protocol });
    // `postgres://db:5432` holds no password, but looks like a URL that does: what is no secret must not be cut.
    let is_plain = !call.host.contains('@') && is_clean(&call.host) && is_clean(&call.protocol);
    if is_plain && !is_clean(&whole) { url("tcp") } else { whole }
}

/// Joins command and arguments with shell quoting. A command without arguments is taken as a line: that is how some
/// callers send it, and a program whose name has blanks is judged no less strictly for it.
pub(super) fn command_line(process: &ProcessExecContext) -> String {
    command_words(process).join(" ")
}

/// Shell-quoted words of the command line.
pub(super) fn command_words(process: &ProcessExecContext) -> Vec<String> {
    if process.args.is_empty() {
        return vec![process.command.clone()];
    }
    // In quotes the first word is a program, even if it looks like an assignment or a word of the shell's own.
    let is_path = |character: char| character.is_ascii_alphanumeric() || "_-./".contains(character);
    let is_program = process.command.contains('/') && process.command.chars().all(is_path);
    let program = if is_program { process.command.clone() } else { in_quotes(&process.command) };
    std::iter::once(program).chain(process.args.iter().map(|word| quoted(word))).collect()
}

fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-./:=@%+,".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    in_quotes(word)
}

fn in_quotes(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        let process = ProcessExecContext {
            command: "bash".into(),
            args: vec!["-c".into(), "rm -rf /tmp/it's".into(), String::new()],
        };
        assert_eq!(command_line(&process), r"'bash' -c 'rm -rf /tmp/it'\''s' ''");
    }

    #[test]
    fn a_command_without_arguments_is_a_line() {
        let process = ProcessExecContext { command: "rm -rf / # x".into(), args: Vec::new() };
        assert_eq!(command_line(&process), "rm -rf / # x");
    }
}
