//! Tests of containment in the workspace.

use proctor_core::action::Action;
use proctor_core::json::Json;
use proptest::prelude::*;

use super::{Workspace, contains, is_inner_folder};
use crate::{Facts, RELATIVE_PATH, normalise_in};

fn facts(workspace: &str, text: &str) -> Facts {
    let action = Action::from_json(&Json::parse(text.as_bytes()).unwrap()).unwrap();
    normalise_in(&action, Workspace { folder: workspace, resolver: None })
}

#[test]
fn only_what_is_known_to_stay_inside_is_within() {
    let cases = [
        (r#"{"tool":"Read","args":{"path":"src/a"}}"#, true, true),
        (r#"{"tool":"Read","args":{"path":"/w/src"}}"#, true, true),
        (r#"{"tool":"Read","args":{"path":"/w/srcs"}}"#, false, true),
        (r#"{"tool":"Read","args":{"path":"src/../../x"}}"#, false, false),
        (r#"{"tool":"Read","args":{"path":"~/x"}}"#, false, false),
        (r#"{"tool":"Read","args":{"path":"a"},"cwd":"src"}"#, true, true),
        (r#"{"tool":"Read","args":{"path":"a"},"cwd":"/elsewhere"}"#, false, false),
        (r#"{"tool":"Bash","args":{"command":"git status"},"cwd":"/w/src"}"#, true, true),
        (r#"{"tool":"Bash","args":{"command":"git status"}}"#, false, true),
        (r#"{"tool":"Bash","args":{"command":"cat src/a > /dev/null"}}"#, true, true),
        (r#"{"tool":"Bash","args":{"command":"cat /w/src/a"},"cwd":"/elsewhere"}"#, false, false),
        (r#"{"tool":"Bash","args":{"command":"cat src/a /etc/passwd"}}"#, false, false),
        (r#"{"tool":"deploy","args":{"environment":"production"}}"#, false, false),
    ];
    for (text, in_src, in_workspace) in cases {
        let facts = facts("/w", text);
        assert_eq!(
            (facts.is_within("src"), facts.is_within(".")),
            (in_src, in_workspace),
            "{text} {facts:?}"
        );
    }
}

#[test]
fn nothing_is_within_a_workspace_that_is_not_pinned_or_while_something_is_unknown() {
    let read = r#"{"tool":"Read","args":{"path":"/a"},"cwd":"/"}"#;
    assert!(!facts("", read).is_within(".") && !facts("", read).writes_within("."));
    assert!(facts("/", read).is_within("."));
    let mut known = facts("/w", r#"{"tool":"Read","args":{"path":"a"}}"#);
    assert!(known.is_within(".") && known.writes_within("src"));
    known.expansions.push("$x".to_owned());
    assert!(!known.is_within(".") && !known.writes_within("."));
    known.expansions.clear();
    known.unknown.push("?".to_owned());
    assert!(!known.is_within(".") && !known.writes_within("."));
}

#[test]
fn writes_may_be_bound_more_tightly_than_reads() {
    let facts = facts("/w", r#"{"tool":"Bash","args":{"command":"cp /etc/hosts src/a"}}"#);
    assert!(!facts.is_within(".") && facts.paths.contains(&"/etc/hosts".to_owned()), "{facts:?}");
    assert!(facts.writes_within("src") && !facts.writes_within("docs"), "{facts:?}");
}

#[test]
fn a_relative_path_without_a_directory_is_unknown() {
    let read = r#"{"tool":"Read","args":{"path":"a"}}"#;
    assert_eq!(facts("", read).unknown, [RELATIVE_PATH]);
    assert_eq!(facts("/w", read).paths, ["/w/a"]);
    let relative_cwd = r#"{"tool":"Read","args":{"path":"a"},"cwd":"b"}"#;
    assert_eq!(facts("", relative_cwd).unknown, [RELATIVE_PATH]);
    assert_eq!(facts("/w", relative_cwd).paths, ["/w/b/a"]);
    assert_eq!(facts("/w", read).cwd, "/w");
}

#[test]
fn folders_of_conditions_stay_in_the_workspace() {
    for folder in ["", ".", "src", "src/", "./a//b", "..."] {
        assert!(is_inner_folder(folder), "{folder}");
    }
    for folder in ["..", "a/../b", "/", "/src", "~", "~/x", "file:///etc", "C:/x", "\\\\server\\share"] {
        assert!(!is_inner_folder(folder), "{folder}");
    }
}

proptest! {
    #[test]
    fn containment_is_that_of_components(folder in "/[ab]{1,2}(/[ab]{1,2}){0,2}", path in "/[ab]{1,2}(/[ab]{1,2}){0,3}") {
        let parts = |path: &str| path.split('/').map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(contains(&folder, &path), parts(&path).starts_with(&parts(&folder)));
        prop_assert!(contains("/", &path));
    }

    #[test]
    fn no_spelling_of_a_path_outside_is_within(path in "[a./~]{0,20}", cwd in prop_oneof!["/w", "/w/src", "/x", ""]) {
        let action = Json::object()
            .with("tool", "Read")
            .with("cwd", cwd.as_str())
            .with("args", Json::object().with("path", path.as_str()));
        let facts = facts("/w", &action.to_string());
        if facts.is_within("src") {
            // A slow reference: components one by one, from the root.
            let joined = if path.starts_with('/') { path.clone() } else { format!("{}/{path}", facts.cwd) };
            let mut stack: Vec<&str> = Vec::new();
            for part in joined.split('/') {
                match part {
                    "" | "." => {}
                    ".." => { stack.pop(); }
                    part => stack.push(part),
                }
            }
            prop_assert!(stack.starts_with(&["w", "src"]), "{} {:?}", path, facts);
        }
    }
}
