//! Tests of canonical names and classes.

use proctor_core::action::{Action, ActionKind};

use super::{ToolClass, canonical_name, class};

#[test]
fn one_tool_has_one_name_in_every_spelling() {
    for (name, canonical) in [
        ("Bash", "shell"),
        ("run_shell_command", "shell"),
        ("runInTerminal", "shell"),
        ("WriteFile", "file_write"),
        ("write-file", "file_write"),
        ("MultiEdit", "file_write"),
        ("applyPatch", "file_write"),
        ("web_fetch", "network"),
        ("Grep", "grep"),
        ("Deploy", "deploy"),
        ("mcp__files__read_file", "mcp__files__read_file"),
    ] {
        assert_eq!(canonical_name(name), canonical, "{name}");
        assert_eq!(canonical_name(canonical), canonical, "{name}");
    }
}

#[test]
fn a_server_in_front_of_a_name_does_not_hide_what_the_tool_does() {
    let named = |name: &str| class(&Action { name: name.to_owned(), ..Action::default() });
    for name in [
        "write_file",
        "mcp__files__write_file",
        "mcp_files_write_file",
        "files.write_file",
        "files/WriteFile",
    ] {
        assert_eq!(named(name), ToolClass::FileWrite, "{name}");
    }
    assert_eq!(named("my_write_file"), ToolClass::Other);
    let claimed = Action { name: "x".to_owned(), kind: ActionKind::NetworkCall, ..Action::default() };
    assert_eq!(class(&claimed), ToolClass::Network);
}
