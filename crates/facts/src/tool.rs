//! Canonical tool names, and the classes of tools that arguments are read by. The tables are part of the evaluator's semantic version.

use std::collections::HashMap;
use std::sync::LazyLock;

use proctor_core::action::{Action, ActionKind};

/// Class of a tool: how its arguments are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ToolClass {
    /// Arguments are command lines.
    Shell,
    /// Arguments are programs in another language.
    Code,
    /// Arguments are files to read.
    FileRead,
    /// Arguments are folders to list, and patterns of names.
    FileSearch,
    /// Arguments are folders to search, and patterns of content.
    ContentSearch,
    /// Arguments are files to write.
    FileWrite,
    /// Arguments are files to copy from one place to another.
    FileCopy,
    /// Arguments are files to delete.
    FileDelete,
    /// Arguments are patches.
    Patch,
    /// Arguments are hosts and URLs.
    Network,
    /// Arguments are prompts.
    Llm,
    /// Nothing is known about the tool.
    #[default]
    Other,
}

impl ToolClass {
    /// Whether every argument is a path unless it is known to be content.
    pub(crate) const fn is_file(self) -> bool {
        matches!(
            self,
            Self::FileRead
                | Self::FileSearch
                | Self::ContentSearch
                | Self::FileWrite
                | Self::FileCopy
                | Self::FileDelete
                | Self::Patch
        )
    }

    /// Whether the tool itself changes the files that it is given.
    pub(crate) const fn writes(self) -> bool {
        matches!(self, Self::FileWrite | Self::FileCopy | Self::FileDelete | Self::Patch)
    }

    /// The canonical name of tools that are known to be of this class; none for classes without one.
    const fn canonical(self) -> Option<&'static str> {
        match self {
            Self::Shell => Some("shell"),
            Self::FileRead => Some("file_read"),
            Self::FileWrite | Self::FileCopy | Self::Patch => Some("file_write"),
            Self::FileDelete => Some("file_delete"),
            Self::Network => Some("network"),
            Self::Llm => Some("llm_call"),
            Self::Code | Self::FileSearch | Self::ContentSearch | Self::Other => None,
        }
    }
}

/// Names with a canonical one. Compared without case, `_`, `-` and spaces.
const NAMES: &[(ToolClass, &[&str])] = &[
    (
        ToolClass::Shell,
        &[
            "bash",
            "sh",
            "zsh",
            "dash",
            "shell",
            "exec",
            "terminal",
            "run_command",
            "process_exec",
            "run_shell_command",
            "run_in_terminal",
            "run_terminal_cmd",
            "run_terminal_command",
            "execute_command",
            "exec_command",
            "shell_command",
            "shell_exec",
            "execute_bash",
            "execute_shell",
            "local_shell",
            "unified_exec",
            "write_stdin",
            "terminal_exec",
        ],
    ),
    (
        ToolClass::FileRead,
        &[
            "read",
            "file_read",
            "read_file",
            "view_file",
            "open_file",
            "view",
            "read_many_files",
            "read_multiple_files",
            "read_text_file",
            "read_media_file",
            "notebook_read",
            "read_notebook",
            "view_image",
        ],
    ),
    (
        ToolClass::FileWrite,
        &[
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
            "multi_edit",
            "notebook_edit",
            "edit_notebook",
            "str_replace_editor",
            "str_replace_based_edit_tool",
            "replace",
            "replace_in_file",
            "replace_string_in_file",
            "multi_replace_string_in_file",
            "insert_edit_into_file",
            "write_to_file",
            "write_text_file",
            "save_file",
            "create_new_file",
            "create_directory",
            "make_directory",
            "edit_notebook_file",
            "create_new_jupyter_notebook",
        ],
    ),
    (ToolClass::FileCopy, &["copy_file", "move_file", "rename_file"]),
    (
        ToolClass::FileDelete,
        &[
            "delete",
            "file_delete",
            "delete_file",
            "remove_file",
            "unlink",
            "delete_directory",
            "remove_directory",
        ],
    ),
    (ToolClass::Patch, &["apply_patch", "patch", "apply_diff"]),
    (
        ToolClass::Network,
        &[
            "network",
            "network_call",
            "http",
            "http_request",
            "fetch",
            "web_fetch",
            "fetch_url",
            "url_fetch",
            "fetch_webpage",
            "read_url_content",
            "web_request",
            "download_file",
        ],
    ),
    (ToolClass::Llm, &["llm", "llm_call"]),
];

/// Names without a canonical one: rules see them as they are.
const ALIKE: &[(ToolClass, &[&str])] = &[
    (
        ToolClass::Code,
        &[
            "python",
            "python3",
            "ipython",
            "jupyter",
            "code_interpreter",
            "run_python",
            "execute_python",
            "run_code",
            "execute_code",
            "python_exec",
            "python_repl",
            "run_notebook_cell",
            "execute_cell",
            "node",
            "javascript",
            "js",
            "run_javascript",
            "repl",
            "js_repl",
            "ruby",
            "perl",
            "powershell",
            "pwsh",
            "eval",
        ],
    ),
    (
        ToolClass::FileSearch,
        &[
            "glob",
            "ls",
            "list",
            "list_files",
            "list_dir",
            "list_directory",
            "list_directory_with_sizes",
            "directory_tree",
            "find_files",
            "file_search",
            "glob_search",
            "find_by_name",
            "get_file_info",
            "stat_file",
            "list_allowed_directories",
            "read_directory",
            "view_directory",
        ],
    ),
    (
        ToolClass::ContentSearch,
        &["grep", "grep_search", "search_files", "search_file_content", "codebase_search", "search_in_files"],
    ),
    (
        ToolClass::FileRead,
        &["cat", "open_document", "load_file", "get_file", "read_document", "read_resource"],
    ),
    (
        ToolClass::FileWrite,
        &[
            "insert",
            "insert_content",
            "text_editor",
            "fs_write",
            "touch",
            "mkdir",
            "update_file",
            "overwrite_file",
            "edit_block",
            "download",
            "extract_archive",
        ],
    ),
    (
        ToolClass::FileCopy,
        &["copy", "move", "rename", "cp", "mv", "move_directory", "copy_directory", "link_file", "symlink"],
    ),
    (ToolClass::FileDelete, &["rm", "rmdir", "remove", "trash", "delete_files"]),
    (ToolClass::Patch, &["git_apply", "patch_file", "edit_patch"]),
    (
        ToolClass::Network,
        &[
            "http_get",
            "http_post",
            "curl",
            "wget",
            "browse",
            "navigate",
            "browser_navigate",
            "puppeteer_navigate",
            "open_url",
            "open_browser",
            "send_request",
            "api_request",
            "browser_action",
            "ping",
        ],
    ),
    (
        ToolClass::Shell,
        &["start_process", "interact_with_process", "launch_process", "run_process", "run_script", "cmd"],
    ),
];

/// Class of each name, and whether it has a canonical one.
static TABLE: LazyLock<HashMap<String, (ToolClass, bool)>> = LazyLock::new(|| {
    let of = |table: &'static [(ToolClass, &'static [&'static str])], canonical: bool| {
        table
            .iter()
            .flat_map(move |(class, names)| names.iter().map(move |name| (squash(name), (*class, canonical))))
    };
    of(ALIKE, false).chain(of(NAMES, true)).collect()
});

/// A name without the differences between `readFile`, `ReadFile`, `read-file` and `read_file`.
pub(crate) fn squash(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// The canonical name of a tool name as sent; other names are lower-cased.
///
/// ```
/// assert_eq!(proctor_facts::tool::canonical_name("Bash"), "shell");
/// assert_eq!(proctor_facts::tool::canonical_name("writeFile"), "file_write");
/// assert_eq!(proctor_facts::tool::canonical_name("Web_Search"), "web_search");
/// ```
pub fn canonical_name(name: &str) -> String {
    let known = TABLE.get(&squash(name.trim())).filter(|(_, canonical)| *canonical);
    match known.and_then(|(class, _)| class.canonical()) {
        Some(canonical) => canonical.to_owned(),
        None => name.trim().to_lowercase(),
    }
}

/// The class of a tool: by its name, without the server that it comes from; else by the kind that the action claims.
pub(crate) fn class(action: &Action) -> ToolClass {
    let by_name = || candidates(action.name.trim()).find_map(|name| TABLE.get(&squash(name)));
    if !action.name.is_empty()
        && let Some((class, _)) = by_name()
    {
        return *class;
    }
    match action.kind {
        ActionKind::LlmCall => ToolClass::Llm,
        ActionKind::ProcessExec => ToolClass::Shell,
        ActionKind::NetworkCall => ToolClass::Network,
        ActionKind::FileOperation => match action.operation.to_lowercase().as_str() {
            "read" => ToolClass::FileRead,
            "delete" => ToolClass::FileDelete,
            _ => ToolClass::FileWrite,
        },
        ActionKind::AgentSpawn
        | ActionKind::Prompt
        | ActionKind::ToolCall
        | ActionKind::ToolResult
        | ActionKind::Custom => ToolClass::Other,
    }
}

/// The name itself, then what follows the name of a server: `mcp__files__read_file`, `mcp_files_read_file`, `files.read_file`.
fn candidates(name: &str) -> impl Iterator<Item = &str> {
    let is_mcp = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("mcp_"));
    let ends = name
        .match_indices(['.', '/', ':', '_'])
        .filter(move |(at, sign)| {
            *sign != "_" || is_mcp || name.get(at + 1..).is_some_and(|rest| rest.starts_with('_'))
        })
        .filter_map(move |(at, sign)| name.get(at + sign.len()..));
    std::iter::once(name).chain(ends.take(16))
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

/// Whether nothing is known about what a tool does with its arguments.
///
/// ```
/// assert!(proctor_facts::tool::is_unknown_name("render_report"));
/// assert!(!proctor_facts::tool::is_unknown_name("mcp__files__read_file"));
/// ```
pub fn is_unknown_name(name: &str) -> bool {
    class(&Action { name: name.to_owned(), ..Action::default() }) == ToolClass::Other
}

#[cfg(test)]
mod tests;
