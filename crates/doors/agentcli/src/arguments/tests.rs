//! Reading of command lines.

use super::{ArgumentError, COMMANDS, Command, parse, usage};

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn commands_words_and_options_are_read() {
    let read =
        parse(&words("--json exec manifest.json collect --workflow daily --timeout=500 --dry-run")).unwrap();
    assert_eq!(read.command, Command::Exec);
    assert_eq!(read.words, ["manifest.json", "collect"]);
    assert_eq!((read.value("workflow"), read.value("timeout")), (Some("daily"), Some("500")));
    assert!(read.has("dry-run") && read.has("json") && !read.has("explain"));
    assert_eq!(parse(&words("validate -")).unwrap().words, ["-"]);
    assert_eq!(
        parse(&words("identity validate-delegation m t")).unwrap().command,
        Command::IdentityValidateDelegation
    );
    assert_eq!(parse(&[]).unwrap().command, Command::Help);
    assert_eq!(parse(&words("-v")).unwrap().command, Command::Version);
    assert_eq!(parse(&words("convert m --write out.json")).unwrap().value("output"), Some("out.json"));
}

#[test]
fn every_mistake_is_refused() {
    let unknown = |line: &str| matches!(parse(&words(line)), Err(ArgumentError::UnknownOption { .. }));
    assert!(unknown("validate m --explain") && unknown("validate m -x") && unknown("--nope version"));
    assert_eq!(parse(&words("validate m --json --json")), Err(ArgumentError::Repeated("json")));
    assert_eq!(parse(&words("compile m --target")), Err(ArgumentError::WithoutValue("target")));
    assert_eq!(parse(&words("compile m --target --explain")), Err(ArgumentError::WithoutValue("target")));
    assert_eq!(parse(&words("compile m --target=")), Err(ArgumentError::WithoutValue("target")));
    assert_eq!(parse(&words("compile m --explain=yes")), Err(ArgumentError::SwitchWithValue("explain")));
    assert!(matches!(parse(&words("exec m")), Err(ArgumentError::MissingWord { word: "TASK", .. })));
    assert!(matches!(parse(&words("validate a b")), Err(ArgumentError::SurplusWord { .. })));
    assert_eq!(parse(&words("frobnicate")), Err(ArgumentError::UnknownCommand("frobnicate".to_owned())));
    assert_eq!(
        parse(&words("registry frob")),
        Err(ArgumentError::UnknownCommand("registry frob".to_owned()))
    );
    assert!(matches!(parse(&words("approvals revoke x")), Err(ArgumentError::Elsewhere { .. })));
    assert_eq!(
        parse(&words("run m --root a --all-roots")),
        Err(ArgumentError::Contradiction("root", "all-roots"))
    );
    assert_eq!(parse(&words("help nope")), Err(ArgumentError::UnknownCommand("nope".to_owned())));
    assert!(matches!(parse(&words("help compile more")), Err(ArgumentError::SurplusWord { .. })));
    assert_eq!(parse(&words("help registry add")).unwrap().words, ["registry add"]);
    assert!(matches!(parse(&words("skill-path")), Err(ArgumentError::Elsewhere { .. })));
}

#[test]
fn the_usage_names_every_command() {
    let text = usage("agentcli", None);
    for spec in COMMANDS {
        assert!(text.contains(&format!("agentcli {}", spec.name.join(" "))), "{:?}", spec.name);
    }
    assert!(usage("agentcli", Some("compile")).contains("--explain"));
}
