use proctor_core::action::{Action, ActionKind};
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use super::*;
use crate::policy::Source;
use crate::prepare::prepare;
use crate::state::State;

fn silent(sources: &[&str], tool: &str, args: &str) -> Vec<(String, Vec<String>)> {
    let source = |(index, text): (usize, &&str)| Source::document(&format!("p{index}"), text);
    let policy = Policy::compile(sources.iter().enumerate().map(source).collect()).unwrap();
    let action = Action {
        kind: ActionKind::ToolCall,
        name: tool.to_owned(),
        args: Json::parse(args.as_bytes()).unwrap(),
        ..Action::default()
    };
    let prepared = prepare(&policy, &action, None);
    let (session, digest, now) = (SessionId::from_bytes([0; 16]), Digest::of(b""), Timestamp::from_micros(0));
    let caller = Caller::default();
    let input = Input {
        facts: prepared.facts,
        findings: prepared.findings,
        caller: caller.clone(),
        agent: String::new(),
        session,
        digest,
        now,
        fresh_approval: ApprovalId::from_bytes([0; 16]),
    };
    let state = State::default();
    let answers = state.view(&caller, session, digest, now);
    silent_rules(&policy, &input, &answers).into_iter().map(|rule| (rule.rule, rule.causes)).collect()
}

#[test]
fn every_rule_that_did_not_speak_says_why() {
    let rules = r#"
rules:
  - {id: speaks, when: 'action.tool == "shell"', then: ask}
  - {id: changes, when: 'action.commands.size() > 0', then: redact, paths: ['$.args.x']}
  - {id: other-kind, when: 'action.kind == "llm_call" && action.depth > 0', then: deny}
  - {id: other-tool, when: 'action.tool in ["file_read", "file_write"]', then: deny}
  - {id: one-false, when: 'action.tool == "shell" && action.commands.exists(c, c == "rm")', then: deny}
  - {id: none-true, when: 'action.depth > 3 || (action.tool == "shell" && action.port == 1)', then: deny}
  - {id: missing, when: 'action.args.path == "/etc"', then: deny}
  - {id: absorbed, when: 'action.args.path == "/etc" && action.depth > 3', then: deny}
  - {id: failed, when: 'int(action.args.command) > 1 && action.depth > 3', then: deny}
  - {id: never, when: 'false', then: deny}
"#;
    let found = silent(
        &[rules, "scope: team:x\nrules: [{id: elsewhere, then: deny}]\n"],
        "bash",
        r#"{"command": "ls -l"}"#,
    );
    let expected: Vec<(&str, Vec<&str>)> = vec![
        ("other-kind", vec!["it is only about actions of the kind llm_call; this is tool_call"]),
        ("other-tool", vec!["it is only about the tool file_read, file_write; this is shell"]),
        ("one-false", vec![r#"`action.commands.exists(c, c == "rm")` is false"#]),
        ("none-true", vec!["`action.depth > 3` is false", "`action.port == 1` is false"]),
        ("missing", vec![r#"`action.args.path == "/etc"` reads a member that is not there"#]),
        (
            "absorbed",
            vec![
                r#"`action.args.path == "/etc"` reads a member that is not there, which does not matter, because another part is false"#,
                "`action.depth > 3` is false",
            ],
        ),
        ("never", vec!["its condition is never true"]),
        ("elsewhere", vec!["its document is only for the team `x`"]),
    ];
    let shown: Vec<(&str, Vec<&str>)> = found
        .iter()
        .filter(|(rule, _)| rule != "failed")
        .map(|(rule, causes)| (rule.as_str(), causes.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(shown, expected);
    let (_, failed) = found.iter().find(|(rule, _)| rule == "failed").unwrap();
    assert!(
        failed[0].starts_with("`int(action.args.command) > 1` failed (")
            && failed[0].contains("another part is false"),
        "{failed:?}"
    );
}
