//! Actions of agents, in the messages of the released clients.

use aa_proto::assembly::common::v1::ActionType;
use aa_proto::assembly::policy::v1::action_context::Action;
use aa_proto::assembly::policy::v1::{
    ActionContext, CheckActionRequest, FileOpContext, LlmCallContext, NetworkCallContext, ProcessExecContext,
    ToolCallContext, ToolResultContext,
};

use crate::agent::Agent;

/// A call of a model.
pub fn llm(model: &str, prompt_tokens: i32) -> Action {
    Action::LlmCall(LlmCallContext { model: model.into(), prompt_tokens, contains_pii: false })
}

/// A call of a tool; the arguments are JSON.
pub fn tool(name: &str, args: &str) -> Action {
    Action::ToolCall(ToolCallContext {
        tool_name: name.into(),
        tool_source: "mcp".into(),
        args_json: args.as_bytes().to_vec(),
        target_url: String::new(),
    })
}

/// The result of a tool; it is JSON.
pub fn tool_result(name: &str, result: &str) -> Action {
    Action::ToolResult(ToolResultContext {
        tool_name: name.into(),
        tool_source: "mcp".into(),
        result_json: result.as_bytes().to_vec(),
        source_url: String::new(),
    })
}

/// An operation on a file.
pub fn file(operation: &str, path: &str) -> Action {
    Action::FileOp(FileOpContext { operation: operation.into(), path: path.into(), is_sensitive_path: false })
}

/// A connection. The caller claims that the host is allowed, which must not count.
pub fn network(host: &str) -> Action {
    Action::NetworkCall(NetworkCallContext {
        host: host.into(),
        port: 443,
        protocol: "https".into(),
        in_allowlist: true,
    })
}

/// A program that is run.
pub fn process(command: &str, args: &[&str]) -> Action {
    Action::ProcessExec(ProcessExecContext {
        command: command.into(),
        args: args.iter().map(|word| (*word).to_owned()).collect(),
    })
}

/// The question whether an agent may do this.
pub fn question(agent: &Agent, action: Action) -> CheckActionRequest {
    CheckActionRequest {
        agent_id: Some(agent.id.clone()),
        credential_token: agent.token.clone(),
        trace_id: "trace".into(),
        span_id: "span".into(),
        action_type: action_type(&action).into(),
        context: Some(ActionContext { action: Some(action) }),
        caller_agent_id: None,
    }
}

/// The question whether an agent may start another; it travels as a call of a tool.
pub fn spawn_question(agent: &Agent) -> CheckActionRequest {
    let action = tool("agent_spawn", r#"{"child_type":"reader"}"#);
    CheckActionRequest { action_type: ActionType::AgentSpawn.into(), ..question(agent, action) }
}

fn action_type(action: &Action) -> ActionType {
    match action {
        Action::LlmCall(_) => ActionType::LlmCall,
        Action::ToolCall(_) => ActionType::ToolCall,
        Action::FileOp(_) => ActionType::FileOperation,
        Action::NetworkCall(_) => ActionType::NetworkCall,
        Action::ProcessExec(_) => ActionType::ProcessExec,
        Action::ToolResult(_) => ActionType::ToolResult,
    }
}
