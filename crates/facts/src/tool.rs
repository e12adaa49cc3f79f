//! Canonical tool names. The table is part of the evaluator's semantic version.

use proctor_core::action::{Action, ActionKind};

const SHELL: &[&str] = &["bash", "sh", "shell", "exec", "terminal", "run_command", "process_exec"];
const FILE_READ: &[&str] = &["read", "file_read", "read_file", "readfile", "view_file", "open_file"];
const FILE_WRITE: &[&str] = &[
    "write",
    "append",
    "create",
    "edit",
    "file_write",
    "write_file",
    "append_file",
    "create_file",
    "edit_file",
    "file_edit",
    "multiedit",
    "notebookedit",
    "str_replace_editor",
    "str_replace_based_edit_tool",
    "apply_patch",
    "patch",
];
const FILE_DELETE: &[&str] = &["delete", "file_delete", "delete_file", "remove_file", "unlink"];
const NETWORK: &[&str] =
    &["network", "network_call", "http", "http_request", "fetch", "webfetch", "web_fetch"];
const LLM: &[&str] = &["llm", "llm_call"];

/// The canonical name of a tool name as sent; other names are lower-cased.
///
/// ```
/// assert_eq!(proctor_facts::tool::canonical_name("Bash"), "shell");
/// assert_eq!(proctor_facts::tool::canonical_name("Web_Search"), "web_search");
/// ```
pub fn canonical_name(name: &str) -> String {
    let lower = name.trim().to_lowercase();
    let table = [
        (SHELL, "shell"),
        (FILE_READ, "file_read"),
        (FILE_WRITE, "file_write"),
        (FILE_DELETE, "file_delete"),
        (NETWORK, "network"),
        (LLM, "llm_call"),
    ];
    match table.iter().find(|(names, _)| names.contains(&lower.as_str())) {
        Some((_, canonical)) => (*canonical).to_owned(),
        None => lower,
    }
}

/// The canonical tool of an action: by its name if it has one, else by its kind.
pub fn canonical_tool(action: &Action) -> String {
    if !action.name.is_empty() {
        return canonical_name(&action.name);
    }
    match action.kind {
        ActionKind::LlmCall => "llm_call".to_owned(),
        ActionKind::ProcessExec => "shell".to_owned(),
        ActionKind::NetworkCall => "network".to_owned(),
        ActionKind::AgentSpawn => "agent_spawn".to_owned(),
        ActionKind::Prompt => "prompt".to_owned(),
        ActionKind::FileOperation => match action.operation.to_lowercase().as_str() {
            "read" => "file_read".to_owned(),
            "write" | "append" | "create" | "edit" => "file_write".to_owned(),
            "delete" => "file_delete".to_owned(),
            _ => "file_operation".to_owned(),
        },
        ActionKind::ToolCall | ActionKind::ToolResult | ActionKind::Custom => String::new(),
    }
}
