//! The client of a gateway against a double of one, over every transport.

use std::sync::Arc;
use std::time::Duration;

use proctor_clients::assembly::client::{Client, ClientError, Code, Identity, Options, Token};
use proctor_net::tls::{ClientTls, ServerTls};
use proctor_test_support::gateway::{GatewayDouble, GatewayServer, TOKEN};
use proctor_wire::assembly::MAX_GRPC_MESSAGE;
use proctor_wire::assembly::proto::agent::v1::{
    ControlStreamRequest, DeregisterRequest, HeartbeatRequest, RegisterRequest, control_command,
};
use proctor_wire::assembly::proto::approval::v1::DecideRequest;
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, ReportEventsRequest};
use proctor_wire::assembly::proto::common::v1::{AgentId, Decision};
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, CheckActionRequest, OpControlMessage, OpControlSubscribeRequest,
};
use proctor_wire::assembly::proto::topology::v1::{
    GetAgentTreeRequest, GetLineageRequest, GetTeamMembersRequest, ReportEdgeRequest,
};

fn short() -> Options {
    Options { call_timeout: Duration::from_millis(200), ..Options::default() }
}

fn identity() -> Identity {
    Identity::generate([7; 32])
}

fn asking(trace_id: &str) -> CheckActionRequest {
    CheckActionRequest { trace_id: trace_id.to_owned(), ..Default::default() }
}

fn double() -> GatewayDouble {
    GatewayDouble::deciding(Decision::Redact)
}

fn operation(sequence: u64) -> OpControlMessage {
    OpControlMessage { sequence, ..Default::default() }
}

fn event(event_id: &str) -> AuditEvent {
    AuditEvent { event_id: event_id.to_owned(), ..Default::default() }
}

/// Every call once, with the token wherever it belongs.
async fn whole_life(client: &Client, double: &GatewayDouble) {
    let registered = client
        .register(&identity(), RegisterRequest { name: "a".into(), ..Default::default() })
        .await
        .unwrap();
    assert_eq!(registered.credential_token, TOKEN);
    assert!(client.has_token());
    // The double checks the proof; here is what it saw.
    let seen = double.registered();
    assert_eq!(seen.agent_id.unwrap().agent_id, identity().did());
    assert_eq!(seen.public_key, identity().public_key());

    assert!(client.heartbeat(HeartbeatRequest::default()).await.unwrap().should_suspend);
    let mut commands = client.control_stream(ControlStreamRequest::default()).await.unwrap();
    let command = commands.next().await.unwrap().unwrap().command.unwrap();
    assert!(matches!(command, control_command::Command::Suspend(_)));
    assert_eq!(commands.next().await.unwrap(), None);

    let answer = client.check(asking("one")).await.unwrap();
    assert_eq!((answer.decision(), answer.reason.as_str()), (Decision::Redact, "one"));
    let batch = BatchCheckRequest { requests: vec![asking("one"), asking("two")] };
    let answers = client.batch_check(batch).await.unwrap().responses;
    assert_eq!(answers.iter().map(|answer| answer.reason.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    double.seen.send_modify(|seen| seen.stopped = (0..3).map(operation).collect());
    let mut operations = client.op_control_stream(OpControlSubscribeRequest::default()).await.unwrap();
    for sequence in 0..3 {
        assert_eq!(operations.next().await.unwrap().unwrap().sequence, sequence);
    }
    double.hang_up();
    assert_eq!(operations.next().await.unwrap(), None);

    let events = vec![event("e1"), event("e2")];
    let reported = client.report_events(ReportEventsRequest { events }).await.unwrap();
    assert_eq!(reported.event_ids, ["e1", "e2"]);
    let streamed =
        client.stream_events(futures_util::stream::iter([event("e3"), event("e4")])).await.unwrap();
    assert_eq!(streamed.events_received, 2);
    assert_eq!(double.events(), ["e1", "e2", "e3", "e4"]);

    assert_eq!(client.list_pending().await.unwrap().requests[0].request_id, "p1");
    let decided = DecideRequest { request_id: "p1".into(), ..Default::default() };
    assert!(client.decide(decided).await.unwrap().success);
    let mut waiting = client.watch_approvals().await.unwrap();
    assert_eq!(waiting.next().await.unwrap().unwrap().request_id, "p2");

    assert!(client.get_agent_tree(GetAgentTreeRequest::default()).await.unwrap().root.is_some());
    assert_eq!(client.get_lineage(GetLineageRequest::default()).await.unwrap().ancestors.len(), 1);
    assert_eq!(client.get_team_members(GetTeamMembersRequest::default()).await.unwrap().members.len(), 2);
    assert_eq!(client.report_edge(ReportEdgeRequest::default()).await.unwrap().id, 5);

    let mut changes = client.subscribe_invalidations("runtime-1", 41).await.unwrap();
    let subscriptions = double.seen.borrow().subscriptions.clone();
    assert_eq!(subscriptions, [("runtime-1".to_owned(), TOKEN.to_owned(), 41)]);
    double.publish(42);
    assert_eq!(changes.next().await.unwrap().unwrap().seq, 42);
    changes.acknowledge(42).await.unwrap();
    double.until(|seen| seen.acknowledged == 42).await;
    double.publish(43);
    assert_eq!(changes.next().await.unwrap().unwrap().seq, 43);

    assert!(client.health().await.unwrap());
    assert!(client.deregister(DeregisterRequest::default()).await.unwrap().success);
    let strangers = double.calls_without_token();
    assert_eq!(strangers, ["RequestChallenge", "Register"], "all other calls carry the token");
}

#[tokio::test]
async fn every_call_over_tcp() {
    let gateway = GatewayServer::tcp(double(), None).await;
    let client = Client::connect(&gateway.endpoint, Options::default()).await.unwrap();
    whole_life(&client, &gateway.double).await;
}

#[tokio::test]
async fn every_call_over_a_unix_socket() {
    let gateway = GatewayServer::unix(double());
    let client = Client::connect(&gateway.endpoint, Options::default()).await.unwrap();
    whole_life(&client, &gateway.double).await;
    let longer = gateway.endpoint.replace("unix:", "unix://");
    assert!(Client::connect(&longer, Options::default()).await.is_ok());
}

#[tokio::test]
async fn every_call_over_tls_with_certificates_of_both_sides() {
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem();
    let tls = ServerTls::from_pem(
        certificate.as_bytes(),
        key.serialize_pem().as_bytes(),
        Some(certificate.as_bytes()),
    )
    .unwrap();
    let gateway = GatewayServer::tcp(double(), Some(tls)).await;

    let folder = tempfile::tempdir().unwrap();
    let (chain, secret) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    std::fs::write(&chain, &certificate).unwrap();
    std::fs::write(&secret, key.serialize_pem()).unwrap();
    let options = Options::default()
        .with_authority_file(&chain)
        .unwrap()
        .with_certificate_files(&chain, &secret)
        .unwrap();
    let client = Client::connect(&gateway.endpoint, options).await.unwrap();
    whole_life(&client, &gateway.double).await;

    let stranger = Client::connect(&gateway.endpoint, Options::default()).await.unwrap_err();
    assert!(matches!(stranger, ClientError::Unreachable(_)), "{stranger}");
    // Without a certificate of its own a client is not served, even if it trusts the gateway.
    let tls = ClientTls::default().with_authority(certificate);
    let refused = match Client::connect(&gateway.endpoint, Options { tls, ..short() }).await {
        Ok(client) => client.check(asking("x")).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(refused.may_pass(), "{refused}");
}

#[tokio::test]
async fn refusals_and_absent_gateways_are_told_apart() {
    let gateway = GatewayServer::tcp(double(), None).await;
    let client = Client::connect(&gateway.endpoint, short()).await.unwrap();
    let refused = client.check(asking("refuse")).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::InvalidArgument));
    assert_eq!(refused.to_string(), "the gateway refused `CheckAction`: no context (InvalidArgument)");
    assert!(!refused.may_pass());
    let late = client.check(asking("never")).await.unwrap_err();
    assert_eq!(late, ClientError::Timeout { method: "CheckAction", ms: 200 });
    let wrong = client.batch_check(BatchCheckRequest { requests: vec![asking("one too few")] }).await;
    assert!(matches!(wrong, Err(ClientError::Protocol { .. })), "{wrong:?}");

    let nobody = Client::connect("unix:/nobody/is/there", Options::default()).await.unwrap_err();
    assert!(matches!(&nobody, ClientError::Unreachable(why) if why.contains("/nobody/is/there")), "{nobody}");
    for endpoint in
        ["", "localhost", "ftp://x", "unix:", "unix://", "http://", "http://me:secret@x", "http://a b"]
    {
        let wrong = Client::connect(endpoint, Options::default()).await.unwrap_err();
        assert!(matches!(wrong, ClientError::Endpoint { .. }), "{endpoint}: {wrong}");
    }
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let error = Client::connect_later("http://127.0.0.1:1", Options::default()).unwrap_err();
    assert!(matches!(error, ClientError::Settings(_)), "{error}");
}

#[tokio::test]
async fn a_lost_gateway_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.sock");
    let client = Client::connect_later(&format!("unix:{}", path.display()), Options::default()).unwrap();
    let away = client.check(asking("one")).await.unwrap_err();
    assert!(matches!(away, ClientError::Unreachable(_)), "{away}");
    for _ in 0..2 {
        let gateway = GatewayServer::unix_at(double(), &path);
        assert_eq!(client.check(asking("one")).await.unwrap().reason, "one");
        gateway.end().await;
        assert!(client.check(asking("one")).await.unwrap_err().may_pass());
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_at_the_gateway_too() {
    let gateway = GatewayServer::tcp(double(), None).await;
    let client = Client::connect(&gateway.endpoint, Options::default()).await.unwrap();
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.check(asking("never")).await }
    });
    gateway.double.until(|seen| seen.traces.iter().any(|trace| trace == "never")).await;
    calling.abort();
    gateway.double.cancelled().await;
    assert_eq!(client.check(asking("next")).await.unwrap().reason, "next");
}

#[tokio::test]
async fn an_identity_is_not_borrowed_and_only_nonces_are_signed() {
    let gateway = GatewayServer::tcp(double(), None).await;
    let client = Client::connect(&gateway.endpoint, Options::default()).await.unwrap();
    let agent_id = Some(AgentId { agent_id: "did:key:zOther".into(), ..Default::default() });
    let other = client.register(&identity(), RegisterRequest { agent_id, ..Default::default() }).await;
    assert!(matches!(other, Err(ClientError::Request { .. })), "{other:?}");
    assert!(gateway.double.calls_without_token().is_empty());

    let gateway = GatewayServer::tcp(GatewayDouble::with_nonce(vec![1; 33]), None).await;
    let client = Client::connect(&gateway.endpoint, Options::default()).await.unwrap();
    let signed = client.register(&identity(), RegisterRequest::default()).await.unwrap_err();
    assert!(matches!(signed, ClientError::Protocol { .. }), "{signed}");
    assert_eq!(gateway.double.calls_without_token(), ["RequestChallenge"]);
}

#[tokio::test]
async fn a_registration_without_a_proof_is_sent_as_it_is() {
    let gateway = GatewayServer::tcp(double(), None).await;
    let client = Client::connect(&gateway.endpoint, Options::default()).await.unwrap();
    let agent_id = AgentId { agent_id: "agent-001".into(), ..Default::default() };
    let request =
        RegisterRequest { agent_id: Some(agent_id), public_key: "free".into(), ..Default::default() };
    client.register_plain(request.clone()).await.unwrap();
    assert_eq!(gateway.double.registered(), request);
    assert!(client.has_token());
}

#[tokio::test]
async fn a_token_in_the_request_goes_before_ours_and_none_is_shown() {
    let gateway = GatewayServer::tcp(double(), None).await;
    let client = Client::connect(&gateway.endpoint, Options::default()).await.unwrap();
    client.set_token(Token::new("ours"));
    client.check(asking("one")).await.unwrap();
    let own = CheckActionRequest { credential_token: "theirs".into(), ..asking("two") };
    client.check(own).await.unwrap();
    let tokens = gateway.double.check_tokens();
    assert_eq!(tokens, [("ours".into(), "ours".into()), ("theirs".into(), "theirs".into())]);
    assert!(!format!("{client:?}").contains("ours"));
}

#[tokio::test]
async fn what_is_too_large_is_not_sent() {
    let gateway = GatewayServer::tcp(double(), None).await;
    let client = Client::connect(&gateway.endpoint, Options::default()).await.unwrap();
    let large = client.check(asking(&"x".repeat(MAX_GRPC_MESSAGE))).await.unwrap_err();
    assert!(matches!(large, ClientError::TooLarge { method: "CheckAction", .. }), "{large}");
    assert!(gateway.double.check_tokens().is_empty());
    let answer = client.check(asking("large answer")).await.unwrap_err();
    assert!(!matches!(answer, ClientError::TooLarge { .. }), "{answer}");
}

#[tokio::test]
async fn a_stream_of_events_may_wait_for_its_source_but_not_for_the_gateway() {
    let gateway = GatewayServer::unix(double());
    let client = Client::connect(&gateway.endpoint, short()).await.unwrap();
    let slow = futures_util::stream::unfold(0, |count| async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        (count < 3).then(|| (event("slow"), count + 1))
    });
    assert_eq!(client.stream_events(slow).await.unwrap().events_received, 3);
    let stuck = client.stream_events(futures_util::stream::iter([event("stuck")])).await.unwrap_err();
    assert!(matches!(stuck, ClientError::Timeout { method: "StreamEvents", .. }), "{stuck}");
}

#[tokio::test]
async fn many_calls_share_a_connection() {
    let gateway = GatewayServer::tcp(double(), None).await;
    let client = Arc::new(Client::connect(&gateway.endpoint, Options::default()).await.unwrap());
    let calls = (0..200).map(|index| {
        let client = Arc::clone(&client);
        async move { client.check(asking(&index.to_string())).await.unwrap().reason }
    });
    for (index, reason) in futures_util::future::join_all(calls).await.iter().enumerate() {
        assert_eq!(reason, &index.to_string());
    }
}
