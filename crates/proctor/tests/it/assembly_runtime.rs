//! `aa-runtime` as an agent's library and a gateway see it.

pub mod buffer;
pub mod framings;
pub mod program;
pub mod streams;

use proctor_test_support::gateway::{GatewayDouble, with_gateway};
use proctor_wire::assembly::frames::{ClientFrame, ServerFrame};
use proctor_wire::assembly::proto::audit::v1::AuditEvent;
use proctor_wire::assembly::proto::common::v1::{ActionType, Decision};
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, OpControlSignal};

use program::{Program, command, denied_by, tracing};

const AGENT: &str = "agent-001";
const DID: &str = "did:key:z6MkAgent";

#[tokio::test]
async fn queries_go_to_the_gateway_and_its_answers_come_back_as_they_are() {
    let (folder, double, endpoint) = with_gateway();
    let variables = [("AA_GATEWAY_ENDPOINT", endpoint.as_str()), ("AA_NATS_CONFIG_PATH", "x")];
    let mut program = Program::start(folder, &variables, &[]).await;
    program.says("not used by this program: AA_NATS_CONFIG_PATH").await;
    let mut library = program.library().await;
    let answer = library.trace("one").await;
    assert_eq!((answer.decision(), answer.policy_rule.as_str()), (Decision::Allow, "of-the-gateway"));
    assert!(answer.decision_latency_us > 0);
    // Libraries read the decision alone, and would run the action with its secrets.
    assert_eq!(denied_by(&library.trace("redact").await), "runtime.redaction");
    assert_eq!(denied_by(&library.trace("nothing").await), "runtime.answer");
    assert_eq!(denied_by(&library.trace("refuse").await), "runtime.refused");
    assert_eq!(denied_by(&library.trace("busy").await), "runtime.gateway");
    let own = CheckActionRequest { credential_token: "own".into(), ..tracing("two") };
    library.ask(own).await;
    let checks = double.seen.borrow().checks.clone();
    assert_eq!(checks.first().unwrap(), &(String::new(), String::new(), AGENT.to_owned()));
    assert_eq!(checks.last().unwrap(), &("own".to_owned(), "own".to_owned(), AGENT.to_owned()));

    program.signal(rustix::process::Signal::TERM);
    assert!(program.ends().await.success());
    assert!(!program.socket.exists());
}

#[tokio::test]
async fn without_a_gateway_that_answers_everything_is_denied() {
    let (folder, _double, endpoint) = with_gateway();
    let variables = [("AA_GATEWAY_ENDPOINT", endpoint.as_str()), ("AA_GATEWAY_TIMEOUT_MS", "200")];
    let program = Program::start(folder, &variables, &[]).await;
    let mut library = program.library().await;
    // The slow one denies itself only, and keeps its place.
    for trace in ["never", "one"] {
        library.send(&ClientFrame::PolicyQuery(tracing(trace))).await;
    }
    let late = library.answer().await;
    assert_eq!(
        (denied_by(&late), late.reason.as_str()),
        ("runtime.timeout", "gateway did not answer in time")
    );
    assert_eq!(library.answer().await.decision(), Decision::Allow);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later.sock");
    let endpoint = format!("unix:{}", path.display());
    let program = Program::start(folder, &[("AA_GATEWAY_ENDPOINT", endpoint.as_str())], &[]).await;
    let mut library = program.library().await;
    assert_eq!(denied_by(&library.trace("one").await), "runtime.gateway");
    // It is found as soon as it is there.
    let _double = GatewayDouble::listen(&path);
    assert_eq!(library.trace("one").await.decision(), Decision::Allow);
}

const RULES: &str = r#"
[[rules]]
name = "no-shell"
blocked_actions = ["PROCESS_EXEC"]
[[rules]]
name = "ask-first"
requires_approval_actions = ["AGENT_SPAWN"]
approval_timeout_secs = 1
"#;

#[tokio::test]
async fn local_rules_decide_only_where_they_may() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, RULES).unwrap();
    let endpoint = format!("unix:{}", folder.path().join("nobody.sock").display());
    let asking = |kind: ActionType| CheckActionRequest { action_type: kind.into(), ..tracing("") };
    let fails_open = [
        ("AA_GATEWAY_ENDPOINT", endpoint.as_str()),
        ("AA_GATEWAY_FAIL_CLOSED", "false"),
        ("AA_POLICY_PATH", rules.to_str().unwrap()),
    ];
    let alone = [("AA_POLICY_PATH", rules.to_str().unwrap())];
    for variables in [&fails_open[..], &alone[..]] {
        let program = Program::start(tempfile::tempdir().unwrap(), variables, &[]).await;
        let mut library = program.library().await;
        assert_eq!(library.ask(asking(ActionType::ToolCall)).await.decision(), Decision::Allow);
        assert_eq!(denied_by(&library.ask(asking(ActionType::ProcessExec)).await), "no-shell");
        let pending = library.ask(asking(ActionType::AgentSpawn)).await;
        assert_eq!((pending.decision(), pending.policy_rule.as_str()), (Decision::Pending, "ask-first"));
        // Nobody here can approve: it is refused when its time is over.
        let ServerFrame::ApprovalDecision(decided) = library.frame().await else { panic!() };
        assert_eq!((decided.approval_id, decided.approved), (pending.approval_id, false));
        assert_eq!(decided.decided_by, "timeout");
    }
    // A gateway that refuses is not gone around.
    let (folder, _double, endpoint) = with_gateway();
    let variables = [("AA_GATEWAY_ENDPOINT", endpoint.as_str()), fails_open[1], fails_open[2]];
    let program = Program::start(folder, &variables, &[]).await;
    assert_eq!(denied_by(&program.library().await.trace("refuse").await), "runtime.refused");
    // Without a file there is nothing to decide by.
    let program = Program::start(tempfile::tempdir().unwrap(), &fails_open[..2], &[]).await;
    let answer = program.library().await.trace("one").await;
    assert_eq!(denied_by(&answer), "runtime.gateway");
    assert!(answer.reason.contains("no local rules"), "{}", answer.reason);
    let missing = [("AA_POLICY_PATH", "missing.toml")];
    let program = Program::start(tempfile::tempdir().unwrap(), &missing, &[]).await;
    let answer = program.library().await.trace("one").await;
    assert_eq!(denied_by(&answer), "runtime.local_rules");
    assert!(answer.reason.contains("set AA_GATEWAY_ENDPOINT"), "{}", answer.reason);
}

#[tokio::test]
async fn a_runtime_alone_with_an_empty_path_allows_everything_and_warns() {
    let program = Program::start(tempfile::tempdir().unwrap(), &[("AA_POLICY_PATH", "")], &[]).await;
    program.says("EVERY ACTION IS ALLOWED").await;
    let mut library = program.library().await;
    let answer = library.trace("one").await;
    assert_eq!((answer.decision(), answer.policy_rule.as_str()), (Decision::Allow, "runtime.local_rules"));
}

#[tokio::test]
async fn sigterm_ends_the_program_within_five_seconds_whatever_is_in_flight() {
    let (folder, double, endpoint) = with_gateway();
    double.seen.send_modify(|seen| seen.refuse_reports = usize::MAX);
    let mut program = Program::start(folder, &[("AA_GATEWAY_ENDPOINT", endpoint.as_str())], &[]).await;
    // A query that the gateway does not answer, half a frame, an event that is not taken, a client that does not read.
    let mut waiting = program.library().await;
    waiting.send(&ClientFrame::EventReport(AuditEvent { event_id: "e".into(), ..Default::default() })).await;
    waiting.send(&ClientFrame::PolicyQuery(tracing("never"))).await;
    let mut half = program.library().await;
    half.bytes(&[1, 200]).await;
    double.until(|seen| !seen.checks.is_empty()).await;
    let began = std::time::Instant::now();
    program.signal(rustix::process::Signal::TERM);
    assert!(program.ends().await.success());
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn metrics_are_served_where_the_variable_says() {
    let (folder, _double, endpoint) = with_gateway();
    let variables = [("AA_GATEWAY_ENDPOINT", endpoint.as_str()), ("AA_METRICS_ADDR", "127.0.0.1:0")];
    let program = Program::start(folder, &variables, &[]).await;
    program.library().await.trace("one").await;
    let said = program.said.borrow().clone();
    let address = said.split("metrics at http://").nth(1).unwrap().split('/').next().unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("aa_runtime_queries_total{decision=\"allow\"} 1\n"), "{answer}");
}

#[tokio::test]
async fn operations_are_stopped_from_outside() {
    let (folder, double, endpoint) = with_gateway();
    let variables = [
        ("AA_GATEWAY_ENDPOINT", endpoint.as_str()),
        ("AA_GATEWAY_CREDENTIAL_TOKEN", "secret-token"),
        ("AA_GATEWAY_AGENT_ID", DID),
        ("AA_AGENT_TEAM_ID", "team"),
    ];
    let program = Program::start(folder, &variables, &[]).await;
    double.until(|seen| seen.subscribed.is_some()).await;
    let (subscribed, token) = double.seen.borrow().subscribed.clone().unwrap();
    let subscribed = subscribed.agent_id.unwrap();
    assert_eq!((subscribed.agent_id.as_str(), subscribed.team_id.as_str()), (DID, "team"));
    assert_eq!(token, "secret-token");
    let mut library = program.library().await;
    assert_eq!(library.trace("t").await.decision(), Decision::Allow);
    let checks = double.seen.borrow().checks.clone();
    assert_eq!(checks, [("secret-token".to_owned(), "secret-token".to_owned(), DID.to_owned())]);

    for (index, key) in ["t:s", "*", "agent:agent-001", "agent:did:key:z6MkAgent"].into_iter().enumerate() {
        double.tell(key, OpControlSignal::Pause);
        program.says(&format!("`{key}`: Pause")).await;
        let paused = library.trace("t").await;
        assert_eq!((denied_by(&paused), paused.reason.as_str()), ("operation.paused", "operation is paused"));
        if index == 0 {
            assert_eq!(library.trace("other").await.decision(), Decision::Allow);
        }
        double.tell(key, OpControlSignal::Resume);
        program.says(&format!("`{key}`: Resume")).await;
        assert_eq!(library.trace("t").await.decision(), Decision::Allow);
    }
    double.tell("t:s", OpControlSignal::Terminate);
    double.tell("t:s", OpControlSignal::Resume);
    double.tell("last:s", OpControlSignal::Pause);
    program.says("`last:s`: Pause").await;
    assert_eq!(denied_by(&library.trace("t").await), "operation.terminated");
    // One that is stopped while the gateway thinks is denied, too.
    let before = double.seen.borrow().checks.len();
    library.send(&ClientFrame::PolicyQuery(tracing("think"))).await;
    double.until(|seen| seen.checks.len() > before).await;
    double.tell("think:s", OpControlSignal::Pause);
    program.says("`think:s`: Pause").await;
    double.gate.notify_one();
    assert_eq!(denied_by(&library.answer().await), "operation.paused");
    assert!(!program.said.borrow().contains("secret-token"));
}

#[tokio::test]
async fn events_reach_the_gateway_all_of_them_and_in_order() {
    let (folder, double, endpoint) = with_gateway();
    double.seen.send_modify(|seen| seen.refuse_reports = 2);
    let mut program = Program::start(folder, &[("AA_GATEWAY_ENDPOINT", endpoint.as_str())], &[]).await;
    let mut library = program.library().await;
    library.ask(CheckActionRequest { credential_token: "own".into(), ..tracing("one") }).await;
    let report = |index: usize| {
        ClientFrame::EventReport(AuditEvent { event_id: index.to_string(), ..Default::default() })
    };
    for index in 0..250 {
        library.send(&report(index)).await;
    }
    double.until(|seen| seen.events.len() == 250).await;
    let expected: Vec<_> = (0..250).map(|index| (index.to_string(), AGENT.to_owned())).collect();
    assert_eq!(double.seen.borrow().events, expected);
    assert_eq!(double.seen.borrow().event_token, "own");
    // One that the gateway does not take stops no others; and a stop delivers what is left.
    let foreign = AuditEvent { event_id: "foreign".into(), ..Default::default() };
    library.send(&ClientFrame::EventReport(foreign)).await;
    library.send(&report(250)).await;
    library.trace("both were taken").await;
    program.signal(rustix::process::Signal::INT);
    assert!(program.ends().await.success());
    assert_eq!(double.seen.borrow().events.last().unwrap().0, "250");
    program.says("an event was dropped").await;
}

#[tokio::test]
async fn the_gateway_of_a_named_state_directory_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let _double = GatewayDouble::listen(&state.join("run").join("assembly.sock"));
    std::fs::write(folder.path().join("proctor.toml"), "state = \"state\"\n").unwrap();
    let program = Program::start(folder, &[], &["--framing", "tagged"]).await;
    assert_eq!(program.library().await.trace("one").await.policy_rule, "of-the-gateway");
    let named = [("PROCTOR_STATE", state.to_str().unwrap())];
    let other = Program::start(tempfile::tempdir().unwrap(), &named, &[]).await;
    assert_eq!(other.library().await.trace("one").await.policy_rule, "of-the-gateway");
    drop(program.folder);
}

/// Variables, flags, and a part of what is said.
type Wrong<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a str);

#[tokio::test]
async fn what_cannot_work_is_said_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, "rules = 3").unwrap();
    let socket = folder.path().join("s.sock");
    let socket = socket.to_str().unwrap();
    let wrong: [Wrong<'_>; 5] = [
        (&[], &[], "AA_AGENT_ID"),
        (&[("AA_AGENT_ID", "../x")], &[], "`/` or `..`"),
        (
            &[("AA_AGENT_ID", "a"), ("AA_GATEWAY_ENDPOINT", "ftp://x")],
            &["--socket", socket],
            "http://host:port",
        ),
        (
            &[("AA_AGENT_ID", "a"), ("AA_POLICY_PATH", rules.to_str().unwrap())],
            &["--socket", socket],
            "rules.toml",
        ),
        (&[("AA_AGENT_ID", "a")], &["--framing", "loud"], "tagged-s"),
    ];
    for (variables, arguments, problem) in wrong {
        let output = command(folder.path(), variables, arguments).output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(problem), "{text}");
    }
    let version = command(folder.path(), &[], &["--version"]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("aa-runtime "), "{version:?}");
    let help = command(folder.path(), &[], &["--help"]).output().await.unwrap();
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("AA_GATEWAY_ENDPOINT"));
}
