//! Tests of sections.

use proctor_core::action::Action;
use proctor_core::decision::{Decision, Effect};
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use crate::evaluate::evaluate;
use crate::input::Input;
use crate::policy::{Policy, Source};
use crate::prepare::prepare;
use crate::state::State;

fn decide(document: &str, action: &str) -> Decision {
    let policy = Policy::compile(vec![Source::document("policy.yaml", document)]).unwrap();
    let action = Action::from_json(&Json::parse(action.as_bytes()).unwrap()).unwrap();
    let prepared = prepare(&policy, &action, None);
    let (caller, session) = (Caller::default(), SessionId::from_bytes([7; 16]));
    let (digest, now) = (Digest::of(b"action"), Timestamp::from_micros(1_763_239_507_000_000));
    let input = Input {
        facts: prepared.facts,
        findings: prepared.findings,
        caller: caller.clone(),
        agent: String::new(),
        session,
        digest,
        now,
        fresh_approval: ApprovalId::from_bytes([9; 16]),
    };
    evaluate(&policy, &input, &State::new().view(&caller, session, digest, now)).decision
}

#[test]
fn aliases_widen_denied_capabilities_only() {
    let effect = |document: &str, tool: &str| decide(document, &format!(r#"{{"tool":"{tool}"}}"#)).effect;
    let allow = "version: \"1\"\ncapabilities: { allow: [\"mcp_tool:bash\"] }\n";
    let deny = "version: \"1\"\ncapabilities: { deny: [\"mcp_tool:bash\"] }\n";
    for (tool, by_allow) in [("bash", Effect::Allow), ("BASH", Effect::Allow), ("terminal", Effect::Deny)] {
        assert_eq!((effect(allow, tool), effect(deny, tool)), (by_allow, Effect::Deny), "{tool}");
    }
    assert_eq!(
        effect("version: \"1\"\ncapabilities: { allow: [terminal_exec] }\n", "terminal"),
        Effect::Allow
    );
}

#[test]
fn a_tool_that_nobody_knows_counts_as_writing_its_paths() {
    let deny = "version: \"1\"\ndefault: allow\ncapabilities: { deny: [file_write] }\n";
    for (action, effect) in [
        (r#"{"tool":"render_report","args":{"out_file":"/etc/x"}}"#, Effect::Deny),
        (r#"{"tool":"render_report","args":{"where":"/etc/x"}}"#, Effect::Deny),
        (r#"{"tool":"render_report","args":{"colour":"red"}}"#, Effect::Allow),
        (r#"{"tool":"read_file","args":{"path":"/etc/x"}}"#, Effect::Allow),
        (r#"{"tool":"Grep","args":{"pattern":"x","path":"/etc"}}"#, Effect::Allow),
    ] {
        assert_eq!(decide(deny, action).effect, effect, "{action}");
    }
}

#[test]
fn a_host_that_cannot_be_read_is_in_no_allowlist() {
    let list = "version: \"1\"\nnetwork: { allowlist: [\"*.internal\", api.ok.com] }\n";
    for (action, effect) in [
        (r#"{"kind":"network_call","host":"a.internal"}"#, Effect::Allow),
        (r#"{"kind":"network_call","host":"evil.com%2f.internal"}"#, Effect::Deny),
        (r#"{"tool":"fetch","args":{"url":"http://evil.com%00.internal/"}}"#, Effect::Deny),
        (r#"{"tool":"fetch","args":{"url":"http://api.ok.com\\@evil.com/"}}"#, Effect::Deny),
        (r#"{"tool":"fetch","args":{}}"#, Effect::Deny),
    ] {
        assert_eq!(decide(list, action).effect, effect, "{action}");
    }
}
