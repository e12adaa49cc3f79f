//! `aa-runtime` as an agent's library and a gateway see it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use proctor_net::assembly::services::audit::audit_service_server::{AuditService, AuditServiceServer};
use proctor_net::assembly::services::policy::policy_service_server::{PolicyService, PolicyServiceServer};
use proctor_wire::assembly::frames::{ClientFrame, ServerDecoder, ServerFrame};
use proctor_wire::assembly::handshake;
use proctor_wire::assembly::proto::audit::v1::{
    AuditEvent, ReportEventsRequest, ReportEventsResponse, StreamEventsResponse,
};
use proctor_wire::assembly::proto::common::v1::{ActionType, Decision};
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, BatchCheckResponse, CheckActionRequest, CheckActionResponse, OpControlMessage,
    OpControlSignal, OpControlSubscribeRequest, RedactInstructions, RedactRule,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, broadcast, watch};
use tonic::{Request, Response, Status, Streaming};

const AGENT: &str = "agent-001";
const DID: &str = "did:key:z6MkAgent";

/// What the double of a gateway saw.
#[derive(Default)]
struct Seen {
    /// Tokens of checks, in the header and in the body, and the agent.
    checks: Vec<(String, String, String)>,
    events: Vec<(String, String)>,
    event_token: String,
    subscribed: Option<OpControlSubscribeRequest>,
    refuse_reports: usize,
}

/// A gateway that does what the trace says.
#[derive(Clone)]
struct Double {
    seen: Arc<watch::Sender<Seen>>,
    operations: broadcast::Sender<OpControlMessage>,
    /// Lets a query named `think` through.
    gate: Arc<Notify>,
}

fn token<T>(request: &Request<T>) -> String {
    let token = request.metadata().get("x-aa-credential-token");
    token.map(|token| token.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[tonic::async_trait]
impl PolicyService for Double {
    type OpControlStreamStream = Pin<Box<dyn Stream<Item = Result<OpControlMessage, Status>> + Send>>;

    async fn check_action(
        &self,
        request: Request<CheckActionRequest>,
    ) -> Result<Response<CheckActionResponse>, Status> {
        let header = token(&request);
        let request = request.into_inner();
        let agent = request.agent_id.unwrap_or_default().agent_id;
        self.seen.send_modify(|seen| seen.checks.push((header, request.credential_token, agent)));
        let mut answer = CheckActionResponse {
            decision: Decision::Allow.into(),
            policy_rule: "of-the-gateway".into(),
            reason: request.trace_id.clone(),
            ..Default::default()
        };
        match request.trace_id.as_str() {
            "never" => std::future::pending().await,
            "think" => self.gate.notified().await,
            "refuse" => return Err(Status::invalid_argument("no context")),
            "busy" => return Err(Status::unavailable("busy")),
            "nothing" => answer.decision = 0,
            "redact" => {
                let rule = RedactRule { field_path: "$.args.key".into(), replacement: "[X]".into() };
                answer.decision = Decision::Redact.into();
                answer.redact = Some(RedactInstructions { rules: vec![rule] });
            }
            _ => {}
        }
        Ok(Response::new(answer))
    }

    async fn batch_check(
        &self,
        _: Request<BatchCheckRequest>,
    ) -> Result<Response<BatchCheckResponse>, Status> {
        Err(Status::unimplemented("not asked"))
    }

    async fn op_control_stream(
        &self,
        request: Request<OpControlSubscribeRequest>,
    ) -> Result<Response<Self::OpControlStreamStream>, Status> {
        assert_eq!(token(&request), "secret-token");
        let messages = stream::unfold(self.operations.subscribe(), |mut receiver| async move {
            receiver.recv().await.ok().map(|message| (Ok(message), receiver))
        });
        let request = request.into_inner();
        self.seen.send_modify(|seen| seen.subscribed = Some(request));
        Ok(Response::new(Box::pin(messages)))
    }
}

#[tonic::async_trait]
impl AuditService for Double {
    async fn report_events(
        &self,
        request: Request<ReportEventsRequest>,
    ) -> Result<Response<ReportEventsResponse>, Status> {
        let header = token(&request);
        let events = request.into_inner().events;
        let mut refused = false;
        self.seen.send_modify(|seen| {
            refused = seen.refuse_reports > 0;
            seen.refuse_reports = seen.refuse_reports.saturating_sub(1);
        });
        if refused {
            return Err(Status::unavailable("later"));
        }
        if events.iter().any(|event| event.event_id == "foreign") {
            return Err(Status::permission_denied("an event of another agent"));
        }
        let event_ids: Vec<String> = events.iter().map(|event| event.event_id.clone()).collect();
        self.seen.send_modify(|seen| {
            seen.event_token = header;
            seen.events.extend(
                events.into_iter().map(|event| (event.event_id, event.agent_id.unwrap_or_default().agent_id)),
            );
        });
        Ok(Response::new(ReportEventsResponse { event_ids }))
    }

    async fn stream_events(
        &self,
        _: Request<Streaming<AuditEvent>>,
    ) -> Result<Response<StreamEventsResponse>, Status> {
        Err(Status::unimplemented("not asked"))
    }
}

impl Double {
    fn listen(path: &Path) -> Double {
        let double =
            Double { seen: Arc::default(), operations: broadcast::Sender::new(16), gate: Arc::default() };
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(path).unwrap();
        let incoming = stream::unfold(listener, |listener| async move {
            Some((listener.accept().await.map(|(stream, _)| stream), listener))
        });
        let serving = tonic::transport::Server::builder()
            .add_service(PolicyServiceServer::new(double.clone()))
            .add_service(AuditServiceServer::new(double.clone()))
            .serve_with_incoming(incoming);
        tokio::spawn(serving);
        double
    }

    async fn until(&self, what: impl FnMut(&Seen) -> bool) {
        self.seen.subscribe().wait_for(what).await.unwrap();
    }

    fn tell(&self, op_id: &str, signal: OpControlSignal) {
        let message = OpControlMessage { op_id: op_id.into(), signal: signal.into(), sequence: 0 };
        self.operations.send(message).unwrap();
    }
}

/// The program under its name, in a folder of its own.
struct Program {
    child: Child,
    socket: PathBuf,
    said: watch::Receiver<String>,
    folder: tempfile::TempDir,
}

fn command(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
    let link = folder.join("aa-runtime");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_proctor"), &link).unwrap();
    }
    let mut command = Command::new(link);
    command.env_clear().envs(variables.iter().copied()).args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

impl Program {
    async fn start(folder: tempfile::TempDir, variables: &[(&str, &str)], arguments: &[&str]) -> Program {
        let socket = folder.path().join("runtime.sock");
        let mut all = vec![("AA_AGENT_ID", AGENT), ("AA_POLICY_PATH", "")];
        all.extend(variables.iter().copied());
        let mut command = command(folder.path(), &all, &["--socket", socket.to_str().unwrap()]);
        let mut child = command.args(arguments).spawn().unwrap();
        let (sender, said) = watch::channel(String::new());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                sender.send_modify(|said| said.push_str(&(line + "\n")));
            }
        });
        let program = Program { child, socket, said, folder };
        program.says("listening on").await;
        program
    }

    /// Waits until the program has said this.
    async fn says(&self, text: &str) {
        let mut said = self.said.clone();
        let found =
            tokio::time::timeout(Duration::from_secs(30), said.wait_for(|said| said.contains(text))).await;
        assert!(matches!(found, Ok(Ok(_))), "`{text}` was not said, but: {}", *self.said.borrow());
    }

    async fn library(&self) -> Library {
        let mut library = Library {
            stream: UnixStream::connect(&self.socket).await.unwrap(),
            decoder: ServerDecoder::new(),
        };
        let challenge = library.frame().await;
        library.send(&handshake::answer(AGENT, "0.0.1", &challenge).unwrap()).await;
        library.send(&ClientFrame::Heartbeat).await;
        library
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    async fn ends(&mut self) -> ExitStatus {
        tokio::time::timeout(Duration::from_secs(30), self.child.wait()).await.unwrap().unwrap()
    }
}

struct Library {
    stream: UnixStream,
    decoder: ServerDecoder,
}

impl Library {
    async fn send(&mut self, frame: &ClientFrame) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes).unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn frame(&mut self) -> ServerFrame {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return frame;
            }
            let mut chunk = vec![0; 65536];
            let length = self.stream.read(&mut chunk).await.unwrap();
            assert!(length > 0, "the runtime closed the connection");
            assert!(self.decoder.feed(&chunk[..length]).is_empty());
        }
    }

    async fn answer(&mut self) -> CheckActionResponse {
        match self.frame().await {
            ServerFrame::PolicyResponse(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    async fn ask(&mut self, request: CheckActionRequest) -> CheckActionResponse {
        self.send(&ClientFrame::PolicyQuery(request)).await;
        self.answer().await
    }

    async fn trace(&mut self, trace_id: &str) -> CheckActionResponse {
        self.ask(tracing(trace_id)).await
    }
}

fn tracing(trace_id: &str) -> CheckActionRequest {
    CheckActionRequest {
        trace_id: trace_id.into(),
        span_id: "s".into(),
        action_type: ActionType::ToolCall.into(),
        ..Default::default()
    }
}

fn denied_by(answer: &CheckActionResponse) -> &str {
    assert_eq!(answer.decision(), Decision::Deny, "{answer:?}");
    assert!(!answer.reason.is_empty(), "{answer:?}");
    &answer.policy_rule
}

/// A folder with a double in it, and the double's endpoint.
fn with_gateway() -> (tempfile::TempDir, Double, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.sock");
    let double = Double::listen(&path);
    (folder, double, format!("unix:{}", path.display()))
}

#[tokio::test]
async fn queries_go_to_the_gateway_and_its_answers_come_back_as_they_are() {
    let (folder, double, endpoint) = with_gateway();
    let variables = [("AA_GATEWAY_ENDPOINT", endpoint.as_str()), ("AA_METRICS_ADDR", "127.0.0.1:0")];
    let mut program = Program::start(folder, &variables, &[]).await;
    program.says("not used by this program: AA_METRICS_ADDR").await;
    let mut library = program.library().await;
    let answer = library.trace("one").await;
    assert_eq!((answer.decision(), answer.policy_rule.as_str()), (Decision::Allow, "of-the-gateway"));
    assert!(answer.decision_latency_us > 0);
    // What the released runtime turns into a denial.
    let answer = library.trace("redact").await;
    assert_eq!(answer.decision(), Decision::Redact);
    assert_eq!(answer.redact.unwrap().rules[0].field_path, "$.args.key");
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
    let _double = Double::listen(&path);
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
    let program = Program::start(tempfile::tempdir().unwrap(), &[], &[]).await;
    let answer = program.library().await.trace("one").await;
    assert_eq!(denied_by(&answer), "runtime.local_rules");
    assert!(answer.reason.contains("set AA_GATEWAY_ENDPOINT"), "{}", answer.reason);
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
    let subscribed = double.seen.borrow().subscribed.clone().unwrap().agent_id.unwrap();
    assert_eq!((subscribed.agent_id.as_str(), subscribed.team_id.as_str()), (DID, "team"));
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
    let _double = Double::listen(&state.join("run").join("assembly.sock"));
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
