//! Messages that a gateway sends unasked, also when the stream breaks.

use proctor_wire::assembly::frames::ServerFrame;
use proctor_wire::assembly::proto::common::v1::{AgentId, Decision};
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, OpControlSignal};

use crate::assembly_runtime::program::{Library, Program, denied_by, tracing};
use crate::assembly_runtime::{AGENT, DID};
use proctor_test_support::gateway::{operation as operation_message, with_gateway};

#[tokio::test]
async fn a_pause_that_was_lifted_while_the_stream_was_broken_ends() {
    let (folder, double, endpoint) = with_gateway();
    let pause = |operation: &str| operation_message(operation, OpControlSignal::Pause);
    double.seen.send_modify(|seen| seen.stopped = vec![pause("t:s"), pause("u:s")]);
    let variables = [
        ("AA_GATEWAY_ENDPOINT", endpoint.as_str()),
        ("AA_GATEWAY_CREDENTIAL_TOKEN", "secret-token"),
        ("AA_GATEWAY_AGENT_ID", DID),
    ];
    let program = Program::start(folder, &variables, &[]).await;
    program.says("`u:s`: Pause").await;
    let mut library = program.library().await;
    for trace in ["t", "u"] {
        assert_eq!(denied_by(&library.trace(trace).await), "operation.paused");
    }
    double.seen.send_modify(|seen| seen.stopped = vec![pause("t:s")]);
    double.hang_up();
    program.says("`u:s`: no longer paused").await;
    assert_eq!(library.trace("u").await.decision(), Decision::Allow);
    assert_eq!(denied_by(&library.trace("t").await), "operation.paused");
}

/// A query with a token of its own, as SDKs send it.
fn own(trace: &str) -> CheckActionRequest {
    let agent_id = Some(AgentId { agent_id: DID.into(), team_id: "team".into(), ..AgentId::default() });
    CheckActionRequest { credential_token: "own".into(), agent_id, ..tracing(trace) }
}

async fn pending(library: &mut Library, trace: &str, approval_id: &str) {
    let answer = library.ask(own(trace)).await;
    assert_eq!((answer.decision(), answer.approval_id.as_str()), (Decision::Pending, approval_id));
}

async fn pushed(library: &mut Library) -> (String, bool) {
    match library.frame().await {
        ServerFrame::ApprovalDecision(decided) => {
            assert!(decided.decided_at_unix_ms > 0);
            (decided.approval_id, decided.approved)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_token_of_a_query_is_enough_to_hear_of_outcomes_and_commands() {
    let (folder, double, endpoint) = with_gateway();
    let program = Program::start(folder, &[("AA_GATEWAY_ENDPOINT", endpoint.as_str())], &[]).await;
    let mut library = program.library().await;
    // Asked twice, told once.
    pending(&mut library, "ask a1", "a1").await;
    pending(&mut library, "ask a1", "a1").await;
    // Whoever knows that it waits can rely on hearing the outcome.
    let subscriptions = double.seen.borrow().subscriptions.clone();
    assert_eq!(subscriptions, [(AGENT.to_owned(), "own".to_owned(), 0)]);
    double.decide("a1", true);
    assert_eq!(pushed(&mut library).await, ("a1".to_owned(), true));
    // One of somebody else is not pushed; one that is decided before the query is answered is.
    double.decide("of-another", true);
    pending(&mut library, "fast a2", "a2").await;
    assert_eq!(pushed(&mut library).await, ("a2".to_owned(), true));

    double.until(|seen| seen.subscribed.is_some()).await;
    let (request, token) = double.seen.borrow().subscribed.clone().unwrap();
    let agent = request.agent_id.unwrap();
    assert_eq!((agent.agent_id.as_str(), agent.team_id.as_str(), token.as_str()), (DID, "team", "own"));
    double.tell("agent:did:key:z6MkAgent", OpControlSignal::Pause);
    program.says("`agent:did:key:z6MkAgent`: Pause").await;
    assert_eq!(denied_by(&library.ask(own("t")).await), "operation.paused");
    assert!(!program.said.borrow().contains("own"), "{}", *program.said.borrow());
}

#[tokio::test]
async fn an_outcome_that_falls_into_a_reconnect_is_pushed() {
    let (folder, double, endpoint) = with_gateway();
    let program = Program::start(folder, &[("AA_GATEWAY_ENDPOINT", endpoint.as_str())], &[]).await;
    let mut library = program.library().await;
    pending(&mut library, "ask a1", "a1").await;
    let seen = double.decide("a1", true);
    assert_eq!(pushed(&mut library).await, ("a1".to_owned(), true));
    double.until(|now| now.acknowledged >= seen).await;
    pending(&mut library, "ask a2", "a2").await;
    double.seen.send_modify(|seen| seen.is_away = true);
    double.hang_up();
    program.says("outcomes of approvals are not heard").await;
    double.decide("a2", false);
    double.seen.send_modify(|seen| seen.is_away = false);
    assert_eq!(pushed(&mut library).await, ("a2".to_owned(), false));
    program.says("outcomes of approvals are heard again").await;
    // It said what it had seen: nothing is told twice.
    let last = double.seen.borrow().subscriptions.last().cloned();
    assert_eq!(last, Some((AGENT.to_owned(), "own".to_owned(), seen)));
}
