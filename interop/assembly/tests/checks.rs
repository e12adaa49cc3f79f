//! Every kind of action under the published example policies.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use aa_proto::assembly::common::v1::Decision::{self, Allow, Deny, Pending, Redact};
use aa_proto::assembly::policy::v1::action_context::Action;
use aa_proto::assembly::policy::v1::{BatchCheckRequest, CheckActionResponse};
use interop_assembly::actions::{file, llm, network, process, question, spawn_question, tool, tool_result};
use interop_assembly::gateway::{Gateway, Place, Way};
use interop_assembly::policies::{AUDIT_ONLY, BALANCED, OPEN, STRICT};

/// An action, and what the strict, the balanced and the audit-only example say about it.
fn cases() -> Vec<(Action, [(Decision, &'static str); 3])> {
    let open = (Allow, "default");
    let outside = (Deny, "stay-in-the-workspace");
    let listed = "network.allowlist";
    vec![
        (llm("claude-3-5-sonnet", 100), [(Allow, "thinking-is-allowed"), (Allow, "ordinary-work"), open]),
        (tool("web_search", r#"{"q":"x"}"#), [(Deny, "default"), (Allow, "tool:web_search"), open]),
        (tool("mystery", "{}"), [(Deny, "default"), (Pending, "default"), open]),
        (file("read", "/srv/notes"), [outside, (Pending, "reading-outside-is-asked"), open]),
        (file("write", "/srv/notes"), [outside, (Pending, "writing-outside-is-asked"), open]),
        (file("append", "/srv/notes"), [outside, (Pending, "writing-outside-is-asked"), open]),
        (file("create", "/srv/notes"), [outside, (Pending, "writing-outside-is-asked"), open]),
        (file("write", "/tmp/notes"), [outside, (Allow, "tool:file_write"), open]),
        (file("write", "/etc/passwd"), [outside, (Pending, "writing-outside-is-asked"), open]),
        (file("write", "/etc/shadow"), [outside, (Deny, "secrets-stay-closed"), open]),
        (network("github.com"), [(Deny, listed), (Allow, listed), open]),
        (network("malicious.example.com"), [(Deny, listed), (Deny, listed), open]),
        (process("ls", &["-l"]), [(Allow, "tool:shell"), (Allow, "tool:shell"), open]),
        (process("rm", &["-rf", "/"]), [outside, (Deny, "no-recursive-delete-outside"), open]),
        (process("bash", &["-c", "rm -rf /"]), [outside, (Deny, "no-recursive-delete-outside"), open]),
        (
            tool_result("web_search", r#"{"hits":[]}"#),
            [(Allow, "thinking-is-allowed"), (Allow, "tool:web_search"), open],
        ),
        (
            tool_result("web_search", r#"{"hits":["AKIAIOSFODNN7EXAMPLE"]}"#),
            [(Deny, "data_pattern_scan"), (Redact, "data_pattern_scan"), open],
        ),
    ]
}

#[tokio::test]
async fn the_examples_decide_the_same_for_every_kind_of_action_and_on_every_way_in() {
    for (column, policy) in [STRICT, BALANCED, AUDIT_ONLY].into_iter().enumerate() {
        let place = Place::new(policy);
        let gateway = place.start();
        for way in Way::ALL {
            checks(&gateway, way, column).await;
        }
    }
}

async fn checks(gateway: &Gateway, way: Way, column: usize) {
    let link = gateway.link_by(way).await;
    let agent = link.register("platform").await;
    for (action, expected) in cases() {
        let (decision, rule) = expected[column];
        let answer = link.check(&agent, action.clone()).await;
        assert_eq!(
            (answer.decision(), answer.policy_rule.as_str()),
            (decision, rule),
            "{way:?} {action:?}: {answer:?}"
        );
        follows_the_form(&answer);
    }
    let spawn = link.ask(spawn_question(&agent)).await.unwrap();
    assert_eq!(spawn.decision(), [Deny, Pending, Allow][column], "{way:?}: {spawn:?}");
}

/// Asserts the form of an answer.
fn follows_the_form(answer: &CheckActionResponse) {
    assert!(!answer.policy_rule.is_empty(), "{answer:?}");
    assert!(!answer.decision_id.is_empty(), "{answer:?}");
    assert!(answer.decision_latency_us > 0, "{answer:?}");
    assert_eq!(answer.approval_id.is_empty(), answer.decision() != Pending, "{answer:?}");
    assert_eq!(answer.redact.is_some(), answer.decision() == Redact, "{answer:?}");
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order() {
    let place = Place::new("version: \"1\"\ndefault: allow\ntools:\n  odd: { allow: false }\n");
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("").await;
    let name = |number: usize| if number.is_multiple_of(3) { "odd" } else { "even" };
    let requests: Vec<_> = (0..100).map(|number| question(&agent, tool(name(number), "{}"))).collect();
    let answers = link.policy().batch_check(BatchCheckRequest { requests }).await.unwrap().into_inner();
    let decisions: Vec<Decision> = answers.responses.iter().map(CheckActionResponse::decision).collect();
    let expected: Vec<Decision> =
        (0..100_usize).map(|number| if number.is_multiple_of(3) { Deny } else { Allow }).collect();
    assert_eq!(decisions, expected);
}

#[tokio::test]
async fn decisions_have_ids_of_their_own() {
    let place = Place::new(OPEN);
    let gateway = place.start();
    let link = gateway.link().await;
    let agent = link.register("").await;
    let one = link.check(&agent, tool("web_search", "{}")).await.decision_id;
    let other = link.check(&agent, tool("web_search", "{}")).await.decision_id;
    assert_ne!(one, other);
    assert_eq!(one.len(), 36, "{one}");
    assert_eq!(one.as_bytes()[14], b'7', "a UUID of version 7: {one}");
}
