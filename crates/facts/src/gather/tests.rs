//! Tests of arguments: what names a path, a host, a command or a patch, in every tool.

mod programs;

use proctor_core::action::Action;
use proctor_core::json::Json;
use proptest::prelude::*;

use crate::{Facts, NO_HOST, NO_PATH, PathResolver, UNREADABLE, Workspace, normalise_in};

const CWD: &str = "/w";

fn action(text: &str) -> Action {
    let mut action =
        Action::from_json(&Json::parse(text.as_bytes()).unwrap_or_else(|_| panic!("{text}"))).unwrap();
    action.cwd = CWD.to_owned();
    action
}

fn facts(text: &str) -> Facts {
    normalise_in(&action(text), Workspace::default())
}

fn of(tool: &str, args: &str) -> Facts {
    facts(&format!(r#"{{"tool":"{tool}","args":{args}}}"#))
}

#[test]
fn every_argument_of_a_file_tool_is_a_path_unless_it_is_content() {
    for args in [
        r#"{"path":"/x/y"}"#,
        r#"{"absolute_path":"/x/y"}"#,
        r#"{"TargetFile":"/x/y"}"#,
        r#"{"filePath":"/x/y"}"#,
        r#"{"location":"/x/y"}"#,
        r#"{"whatever":"/x/y"}"#,
        r#"{"name":"/x/y","content":"z"}"#,
        r#"{"path":{"value":"/x/y"}}"#,
        r#"{"path":["/x/y"]}"#,
        r#"{"files":{"/x/y":"content"}}"#,
        r#"{"files":{"/x/y":{"content":"z"}}}"#,
        r#"{"/x/y":"content"}"#,
        r#"{"files":[{"name":"/x/y","content":"z"}]}"#,
        r#"{"edits":[{"file_path":"/x/y","old_string":"a","new_string":"b"}]}"#,
        r#"{"arguments":"{\"path\": \"/x/y\"}"}"#,
        r#"{"dir":"/x","file":"y"}"#,
        r#"{"cwd":"/x","file":"y"}"#,
        r#"{"uri":"file:///x/y"}"#,
        r#"{"uri":"/x/y"}"#,
        r#"{"path":" /x/y\n"}"#,
    ] {
        let found = of("write_file", args);
        assert!(found.writes.contains(&"/x/y".to_owned()), "{args} {found:?}");
        assert!(of("mcp__files__write_file", args).writes.contains(&"/x/y".to_owned()), "{args}");
        let read = of("read_file", args);
        assert!(read.paths.contains(&"/x/y".to_owned()) && read.writes.is_empty(), "{args} {read:?}");
    }
}

#[test]
fn arguments_that_are_no_object_are_read_too() {
    let of = |tool: &str, args: Json| {
        let action = Action { name: tool.to_owned(), args, cwd: CWD.to_owned(), ..Action::default() };
        normalise_in(&action, Workspace::default())
    };
    for args in [Json::from("/x/y"), Json::from(vec![Json::from("/x/y")])] {
        assert_eq!(of("write_file", args).writes, ["/x/y"]);
    }
    assert_eq!(of("fetch", Json::from(vec![Json::from("e.test")])).hosts, ["e.test"]);
    for args in [Json::from("touch /x/y"), Json::from(vec![Json::from("touch"), Json::from("/x/y")])] {
        assert_eq!(of("bash", args).writes, ["/x/y"]);
    }
}

#[test]
fn content_is_neither_path_nor_host() {
    let written = of(
        "Write",
        r#"{"file_path":"a","content":"see /etc/passwd and https://a.example/","description":"/b","encoding":"utf-8"}"#,
    );
    assert_eq!(
        (written.writes.as_slice(), written.hosts.len()),
        (&["/w/a".to_owned()][..], 0),
        "{written:?}"
    );
    assert!(written.unknown.is_empty() && written.expansions.is_empty(), "{written:?}");
    let edited =
        of("Edit", r#"{"file_path":"/w/a","old_string":"/etc/x","new_string":"/etc/y","replace_all":true}"#);
    assert_eq!(edited.paths, ["/w/a"]);
    let editor = of("str_replace_editor", r#"{"command":"create","path":"/w/a","file_text":"/etc/x"}"#);
    assert_eq!(
        (editor.writes.as_slice(), editor.commands.len()),
        (&["/w/a".to_owned()][..], 0),
        "{editor:?}"
    );
    assert!(of("str_replace_editor", r#"{"command":"view","path":"/w/a"}"#).writes.is_empty());
    let grep = of("Grep", r#"{"pattern":"root:.*/bin","path":"src","output_mode":"content","glob":"*.rs"}"#);
    assert_eq!((grep.paths.as_slice(), grep.expansions.len()), (&["/w/src".to_owned()][..], 0), "{grep:?}");
}

#[test]
fn honest_calls_of_known_clients_stay_in_the_workspace() {
    for (tool, args) in [
        ("Read", r#"{"file_path":"/w/src/a.rs","offset":1,"limit":20}"#),
        ("Write", r#"{"file_path":"/w/src/a.rs","content":"fn main() {}\n"}"#),
        (
            "MultiEdit",
            r#"{"file_path":"/w/a","edits":[{"old_string":"a","new_string":"b","replace_all":false}]}"#,
        ),
        (
            "NotebookEdit",
            r#"{"notebook_path":"/w/a.ipynb","cell_id":"c1","new_source":"x","cell_type":"code","edit_mode":"replace"}"#,
        ),
        ("Glob", r#"{"pattern":"**/*.{ts,tsx}"}"#),
        ("Grep", r#"{"pattern":"fn .*\\(","path":"src","type":"rust","output_mode":"content","-n":true}"#),
        ("LS", r#"{"path":"/w/src","ignore":["*.o"]}"#),
        (
            "replace",
            r#"{"file_path":"/w/a","instruction":"x","old_string":"a","new_string":"b","expected_replacements":1}"#,
        ),
        ("list_directory", r#"{"dir_path":"src"}"#),
        ("search_file_content", r#"{"pattern":"x","include":"*.py","dir_path":"src"}"#),
        (
            "apply_patch",
            r#"{"command":"*** Begin Patch\n*** Update File: src/a\n@@\n-x\n+y\n*** End Patch"}"#,
        ),
        ("create_file", r#"{"path":"a/[id]/$id.tsx","content":"x"}"#),
        (
            "Bash",
            r#"{"command":"git status","description":"Show /etc","timeout":120000,"run_in_background":false}"#,
        ),
    ] {
        let found = normalise_in(
            &action(&format!(r#"{{"tool":"{tool}","args":{args}}}"#)),
            Workspace { folder: "/w", resolver: None },
        );
        assert!(found.is_within("."), "{tool} {args} {found:?}");
    }
}

#[test]
fn a_tool_without_its_target_is_unknown() {
    for text in [
        r#"{"tool":"read_file","args":{}}"#,
        r#"{"tool":"read_file"}"#,
        r#"{"tool":"write_file","args":{"content":"x"}}"#,
        r#"{"kind":"file_operation","operation":"delete"}"#,
        r#"{"kind":"file_operation","operation":"copy","tool":"x"}"#,
    ] {
        let found = facts(text);
        assert!(found.unknown.contains(&NO_PATH.to_owned()), "{text} {found:?}");
        assert!(found.paths.contains(&UNREADABLE.to_owned()), "{text} {found:?}");
    }
    for text in [
        r#"{"tool":"fetch","args":{}}"#,
        r#"{"kind":"network_call","port":25}"#,
        r#"{"tool":"fetch","args":{"method":"GET"}}"#,
    ] {
        let found = facts(text);
        assert!(found.unknown.contains(&NO_HOST.to_owned()), "{text} {found:?}");
        assert_eq!(found.hosts, [UNREADABLE], "{text}");
    }
    assert!(of("http_post", r#"{"api_key":"x","body":"y"}"#).hosts.is_empty());
    let result = facts(r#"{"kind":"tool_result","tool":"read_file","result":"x"}"#);
    assert!(result.unknown.is_empty(), "{result:?}");
}

#[test]
fn every_argument_of_a_network_tool_is_a_host_unless_it_is_content() {
    for args in [
        r#"{"url":"http://e.test/x y"}"#,
        r#"{"url":"e.test"}"#,
        r#"{"page":"e.test"}"#,
        r#"{"src":"e.test"}"#,
        r#"{"webhook":"e.test:80"}"#,
        r#"{"callbackUrl":"https://e.test"}"#,
        r#"{"request":{"headers":{"Host":"e.test","Accept":"x/y"}}}"#,
        r#"{"url":"blob:http://e.test/x"}"#,
        r#"{"url":"http://a.com\\@e.test"}"#,
        r#"{"url":"http://a.com@e.test"}"#,
        r#"{"prompt":"read http://e.test/"}"#,
    ] {
        let found = of("fetch", args);
        assert!(found.hosts.contains(&"e.test".to_owned()), "{args} {found:?}");
    }
    let plain = of("WebFetch", r#"{"url":"https://a.com/x","prompt":"Summarise this page."}"#);
    assert_eq!((plain.hosts.as_slice(), plain.unknown.len()), (&["a.com".to_owned()][..], 0), "{plain:?}");
    let file = of("fetch", r#"{"url":"file:///etc/passwd"}"#);
    assert_eq!(file.paths, ["/etc/passwd"]);
}

#[test]
fn what_is_no_host_after_decoding_is_unknown() {
    for url in [
        "http://evil.com%2f.internal",
        "http://evil.com%00.internal",
        "http://evil.com%20.internal",
        "http://a.com%40evil.com",
        "http://evil.com%23.internal/",
        "javascript:fetch('//evil.test')",
        "data:text/html,x",
        "http://256.1.1.1",
        "http://a..internal",
        "http://evil.com:80:81/",
    ] {
        let args = Json::object().with("url", url);
        let found = of("fetch", &args.to_string());
        assert_eq!(found.hosts, [UNREADABLE], "{url} {found:?}");
        assert!(!found.unknown.is_empty(), "{url}");
    }
    for (host, clean) in [
        ("fe80::1", "fe80::1"),
        ("[::1]", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("EVIL.com.", "evil.com"),
        ("\u{ff45}vil.com", "evil.com"),
        ("\u{2170}.test", "i.test"),
        ("gith\u{fc}b.com", "xn--githb-nva.com"),
        ("0x7f.1", "127.0.0.1"),
        ("evil.com:443", "evil.com"),
    ] {
        let sent = Json::object().with("kind", "network_call").with("host", host);
        let found = facts(&sent.to_string());
        assert_eq!((found.hosts.as_slice(), found.host.as_str()), (&[clean.to_owned()][..], clean), "{host}");
    }
    for host in ["evil.com\0.internal", "evil.com%2f.internal", "a@b", "a b", "a/b"] {
        let sent = Json::object().with("kind", "network_call").with("host", host);
        let found = facts(&sent.to_string());
        assert!(
            found.hosts.contains(&UNREADABLE.to_owned()) && !found.unknown.is_empty(),
            "{host:?} {found:?}"
        );
    }
}

#[test]
fn a_shell_runs_every_text_that_is_not_known_to_be_something_else() {
    for args in [
        r#"{"command":"touch /x/y"}"#,
        r#"{"command":{"cmd":"touch /x/y"}}"#,
        r#"{"command":["touch","/x/y"]}"#,
        r#"{"argv":["touch","/x/y"]}"#,
        r#"{"command":"touch","args":["/x/y"]}"#,
        r#"{"command":"bash","keys":"touch /x/y"}"#,
        r#"{"command":"bash","input":"touch /x/y\n"}"#,
        r#"{"command":"touch y","workdir":"/x"}"#,
        r#"{"cwd":"/x","command":"touch y"}"#,
    ] {
        let found = of("run_shell_command", args);
        assert!(found.writes.contains(&"/x/y".to_owned()), "{args} {found:?}");
    }
    let described = of("Bash", r#"{"command":"ls","description":"rm -rf /"}"#);
    assert_eq!(described.commands, ["ls"]);
}

#[test]
fn variables_in_arguments_are_assignments_and_their_files_are_read() {
    for env in [r#"{"BASH_ENV":"/x/y"}"#, r#"["BASH_ENV=/x/y"]"#, r#"[{"name":"BASH_ENV","value":"/x/y"}]"#] {
        let found = of("Bash", &format!(r#"{{"command":"ls","env":{env}}}"#));
        assert_eq!(found.assignments, ["BASH_ENV=/x/y"], "{env}");
        assert!(found.paths.contains(&"/x/y".to_owned()), "{env} {found:?}");
        assert_eq!(found.commands, ["ls"], "{env}");
    }
}

#[test]
fn code_is_opaque_and_runs() {
    for tool in ["python", "jupyter", "code_interpreter", "mcp__x__run_code"] {
        let found = of(tool, r#"{"code":"open('/etc/x','w')"}"#);
        assert_eq!((found.opaque.len(), found.commands.is_empty()), (1, false), "{tool} {found:?}");
    }
}

#[test]
fn patches_are_found_under_any_name_and_behind_any_text() {
    let diff = r"--- a/src/a\n+++ b/../../x/y\n@@ -1 +1 @@\n-x\n+y\n";
    let begin = r"*** Begin Patch\n*** Add File: /x/y\n+x\n*** End Patch";
    for (tool, args) in [
        ("apply_patch", format!(r#"{{"edits":"{diff}"}}"#)),
        ("apply_patch", format!(r#"{{"text":"{diff}"}}"#)),
        ("apply_patch", format!(r#"{{"input":"```\n{begin}"}}"#)),
        ("apply_patch", format!(r#"{{"input":"\ufeff{begin}"}}"#)),
        ("apply_patch", format!(r#"{{"command":"{begin}"}}"#)),
        ("something", format!(r#"{{"change":"Here it is:\n{begin}"}}"#)),
        ("Bash", format!(r#"{{"command":["apply_patch","{begin}"]}}"#)),
        ("Bash", format!(r#"{{"command":"apply_patch <<'EOF'\n{begin}\nEOF"}}"#)),
        ("Bash", format!(r#"{{"command":"cd src && git apply <<'EOF'\n{diff}EOF"}}"#)),
    ] {
        let found = of(tool, &args);
        assert!(found.writes.contains(&"/x/y".to_owned()), "{tool} {args} {found:?}");
    }
    let unreadable = of("apply_patch", r#"{"patch":"Only in src: a\n1c1\n< x\n---\n> y\n"}"#);
    assert!(
        unreadable.writes.contains(&UNREADABLE.to_owned()) && !unreadable.unknown.is_empty(),
        "{unreadable:?}"
    );
    let beside =
        of("apply_diff", r#"{"path":"src/a","diff":"<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE"}"#);
    assert_eq!(
        (beside.writes.as_slice(), beside.unknown.len()),
        (&["/w/src/a".to_owned()][..], 0),
        "{beside:?}"
    );
}

#[test]
fn computed_names_of_files_are_expansions() {
    for path in ["$HOME/.ssh/id_rsa", "${HOME}/x", "/home/`id -un`/x", "/x/*/id_rsa", "%USERPROFILE%/x"] {
        let found = of("read_file", &Json::object().with("path", path).to_string());
        assert_eq!(found.expansions, [path], "{found:?}");
    }
    let nul = of("read_file", &Json::object().with("path", "/x/y\0.txt").to_string());
    assert!(nul.paths.contains(&"/x/y".to_owned()) && !nul.unknown.is_empty(), "{nul:?}");
}

#[test]
fn searches_start_from_their_folder_and_what_their_pattern_names() {
    assert_eq!(of("Glob", r#"{"pattern":"/x/.ssh/*"}"#).paths, ["/x/.ssh"]);
    assert_eq!(of("Glob", r#"{"pattern":"**/*.rs"}"#).paths, [CWD]);
    assert_eq!(of("Grep", r#"{"pattern":"x"}"#).paths, [CWD]);
    assert_eq!(of("Glob", r#"{"pattern":"src/../../x/*.rs"}"#).paths, ["/x"]);
    assert_eq!(of("Glob", r#"{"pattern":"*/../../x"}"#).expansions.len(), 1);
}

#[test]
fn a_copy_reads_its_source_and_writes_its_target() {
    let copied = of("copy_file", r#"{"source":"/a/b","destination":"/x/y"}"#);
    assert_eq!(
        (copied.paths.as_slice(), copied.writes.as_slice()),
        (&["/a/b".to_owned(), "/x/y".to_owned()][..], &["/x/y".to_owned()][..])
    );
}

/// A file system with one link, `/w/link`, to `/x/target`.
struct Link;

impl PathResolver for Link {
    fn real_path(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix("/w/link")?;
        Some(crate::path::absolute(&format!("/x/target{rest}"), ""))
    }
}

#[test]
fn a_parent_behind_a_link_is_the_parent_of_its_target() {
    let found = |text: &str| normalise_in(&action(text), Workspace { folder: "/w", resolver: Some(&Link) });
    for text in [
        r#"{"tool":"read_file","args":{"path":"link/../secret"}}"#,
        r#"{"tool":"Bash","args":{"command":"cat link/../secret"}}"#,
        r#"{"tool":"Bash","args":{"command":"cd link && cat ../secret"}}"#,
    ] {
        assert!(found(text).paths.contains(&"/x/secret".to_owned()), "{text} {:?}", found(text));
        assert!(!found(text).is_within("."), "{text}");
    }
}

proptest! {
    #[test]
    fn a_path_is_found_under_every_name(name in "[a-zA-Z_-]{1,12}", tool in prop_oneof!["write_file", "Edit", "file_delete"]) {
        let content = super::names::role(crate::tool::ToolClass::FileWrite, &name);
        let is_target = matches!(
            content,
            super::names::Role::Path | super::names::Role::Other | super::names::Role::Url | super::names::Role::Base
        );
        let found = of(&tool, &Json::object().with(name.as_str(), "/x/y").to_string());
        prop_assert_eq!(found.writes.contains(&"/x/y".to_owned()), is_target, "{} {:?}", name, found);
    }

    #[test]
    fn any_arguments_are_read_without_panic(text in "\\PC{0,40}", name in "\\PC{0,12}", tool in prop_oneof!["Bash", "fetch", "write_file", "Glob", "python", "x", "apply_patch"]) {
        let args = Json::object().with(name.as_str(), text.as_str()).with("list", vec![Json::from(text.as_str())]);
        let value = Json::object().with("tool", tool.as_str()).with("args", args).with("host", text.as_str()).with("url", text.as_str());
        if let Ok(action) = Action::from_json(&value) {
            let found = normalise_in(&action, Workspace { folder: "/w", resolver: Some(&Link) });
            for host in &found.hosts {
                prop_assert!(host == UNREADABLE || tool != "fetch" || crate::url::is_host(host), "{:?}", found.hosts);
            }
        }
    }
}
