//! `aa-gateway` from the outside: who may reach it, and as what.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_clients::assembly::client::{Client, Identity, Options};
use proctor_wire::assembly::proto::agent::v1::RegisterRequest;
use proctor_wire::assembly::proto::common::v1::{ActionType, AgentId, Decision};
use proctor_wire::assembly::proto::policy::v1::{
    ActionContext, CheckActionRequest, CheckActionResponse, ToolCallContext, action_context::Action,
};

/// A gateway that ends with the test.
struct Gateway(Child);

impl Gateway {
    /// Starts it, and returns what it says on standard output.
    fn start(mut command: Command) -> (Gateway, BufReader<ChildStdout>) {
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        (Gateway(child), said)
    }

    /// Stops it, and returns what it said on standard error.
    fn stop(&mut self) -> String {
        let id = i32::try_from(self.0.id()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.0.wait().unwrap().success(), "{said}");
        said
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program in a folder with a policy, told to listen there.
fn gateway(folder: &Path, address: &str) -> Command {
    let mut command = bare_gateway(folder);
    command.args(["--db-path", "gateway.db", "--listen", address]);
    command
}

/// The program in a folder with a policy.
fn bare_gateway(folder: &Path) -> Command {
    std::fs::write(folder.join("policy.yaml"), "tools: {search: {allow: true}}\n").unwrap();
    gateway_of(folder, "policy.yaml")
}

/// The program in a folder, with this policy.
fn gateway_of(folder: &Path, policy: &str) -> Command {
    let link = folder.join("aa-gateway");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_proctor"), &link).unwrap();
    }
    let mut command = Command::new(link);
    command.env_clear().current_dir(folder).args(["--policy", policy]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts it; the port is the one it says.
fn start(folder: &Path, address: &str) -> (Gateway, u16) {
    let (gateway, mut said) = Gateway::start(gateway(folder, address));
    (gateway, port(&mut said))
}

fn port(said: &mut impl BufRead) -> u16 {
    let ready = line(said);
    assert!(ready.starts_with("gRPC server listening on TCP "), "{ready}");
    ready.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap()
}

fn line(said: &mut impl BufRead) -> String {
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn tool_call(name: &str, arguments: &str) -> CheckActionRequest {
    let tool =
        ToolCallContext { tool_name: name.into(), args_json: arguments.into(), ..ToolCallContext::default() };
    CheckActionRequest {
        action_type: ActionType::ToolCall.into(),
        context: Some(ActionContext { action: Some(Action::ToolCall(tool)) }),
        ..CheckActionRequest::default()
    }
}

/// Answer of this endpoint to a check without a token.
async fn anonymous(endpoint: &str) -> CheckActionResponse {
    let client = Client::connect(endpoint, Options::default()).await.unwrap();
    client.check(tool_call("search", "{}")).await.unwrap()
}

/// The first line of the response to this request.
fn response(port: u16, head: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "{head}\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").unwrap();
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response);
    response.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn other_machines_reach_it_only_with_a_certificate_or_by_an_explicit_word() {
    let folder = tempfile::tempdir().unwrap();
    let refused = gateway(folder.path(), "0.0.0.0:0").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(refused.stdout.is_empty() && said.contains("`assembly.open = true`"), "{said}");
    assert!(said.contains("AA_GATEWAY_OPEN=1"), "{said}");
    // Scripts that start it in a container have variables, and no file.
    for word in ["0", "false", "", "perhaps"] {
        let refused = gateway(folder.path(), "0.0.0.0:0").env("AA_GATEWAY_OPEN", word).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{word}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("AA_GATEWAY_OPEN"), "{word}");
    }
    for word in ["1", "true"] {
        let mut command = gateway(folder.path(), "0.0.0.0:0");
        command.env("AA_GATEWAY_OPEN", word);
        let (_gateway, mut said) = Gateway::start(command);
        port(&mut said);
    }
    std::fs::write(folder.path().join("proctor.toml"), "[assembly]\nopen = true\n").unwrap();
    start(folder.path(), "0.0.0.0:0");
}

// More than one thread: while the test waits for the program to end, its connections must be able to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_takes_the_place_of_the_usual_address() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("gateway.sock");
    let ready = format!("gRPC server listening on Unix socket {}", socket.display());
    let with_socket = || {
        let mut command = bare_gateway(folder.path());
        command.args(["--db-path", "gateway.db", "--mode", "relaxed", "--socket"]).arg(&socket);
        command
    };
    let (mut gateway, mut said) = Gateway::start(with_socket());
    assert_eq!(line(&mut said), ready);
    assert_eq!(anonymous(&format!("unix:{}", socket.display())).await.decision(), Decision::Allow);
    let on_error = gateway.stop();
    assert!(on_error.contains(&ready) && !on_error.contains("TCP"), "{on_error}");
    assert!(!socket.exists());

    let mut command = with_socket();
    command.args(["--listen", "127.0.0.1:0"]);
    let (mut gateway, mut said) = Gateway::start(command);
    let port = port(&mut said);
    assert_eq!(line(&mut said), ready);
    for endpoint in [format!("unix:{}", socket.display()), format!("http://127.0.0.1:{port}")] {
        assert_eq!(anonymous(&endpoint).await.decision(), Decision::Allow, "{endpoint}");
    }
    let on_error = gateway.stop();
    assert!(on_error.contains(&ready) && on_error.contains(&format!("TCP 127.0.0.1:{port}")), "{on_error}");
}

#[tokio::test]
async fn every_word_for_a_mode_is_known_and_only_one_opens() {
    let folder = tempfile::tempdir().unwrap();
    let modes: [(&[&str], Option<&str>, bool); 10] = [
        (&[], None, false),
        (&["--mode", "strict"], None, false),
        (&["--mode", "legacy-grpc"], None, false),
        (&["--mode", "local"], None, false),
        (&["--mode", "remote"], None, false),
        (&["--mode", "relaxed"], None, true),
        (&[], Some("relaxed"), true),
        (&[], Some("local"), false),
        (&["--mode", "strict"], Some("relaxed"), false),
        (&["--mode", "relaxed"], Some("remote"), true),
    ];
    for (arguments, variable, is_relaxed) in modes {
        let mut command = gateway(folder.path(), "127.0.0.1:0");
        command.args(arguments).envs(variable.map(|mode| ("AA_MODE", mode)));
        let (_gateway, mut said) = Gateway::start(command);
        let answer = anonymous(&format!("http://127.0.0.1:{}", port(&mut said))).await;
        let expected = if is_relaxed { Decision::Allow } else { Decision::Deny };
        assert_eq!(answer.decision(), expected, "{arguments:?} {variable:?} {answer:?}");
        if !is_relaxed {
            assert_eq!(answer.policy_rule, "a2a_identity_verification");
        }
    }
    for (arguments, variable) in [(&["--mode", "open"][..], None), (&[], Some("open"))] {
        let mut command = gateway(folder.path(), "127.0.0.1:0");
        let refused = command.args(arguments).envs(variable.map(|mode| ("AA_MODE", mode))).output().unwrap();
        assert!(!refused.status.success() && refused.stdout.is_empty());
        assert!(String::from_utf8_lossy(&refused.stderr).contains("legacy-grpc"));
    }
}

/// Variables, flags, and where state and log are; none: there is no log.
type Place<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a str, Option<&'a str>);

#[test]
fn state_and_log_are_where_flags_and_variables_say() {
    let table: [Place<'_>; 6] = [
        (&[("HOME", "home")], &[], "home/.aa/gateway.proctor", Some("home/.local/share/aa/audit")),
        (
            &[("HOME", "home"), ("XDG_DATA_HOME", "data")],
            &[],
            "home/.aa/gateway.proctor",
            Some("data/aa/audit"),
        ),
        (&[("HOME", "home"), ("AA_AUDIT_DIR", "log")], &[], "home/.aa/gateway.proctor", Some("log")),
        (&[("HOME", "home"), ("AA_GATEWAY_DB_PATH", "x/local.db")], &[], "x/local.proctor", None),
        (
            &[("AA_GATEWAY_DB_PATH", "x/local.db"), ("AA_AUDIT_DIR", "log")],
            &["--db-path", "y/own.db", "--audit-dir", "mine"],
            "y/own.proctor",
            Some("mine"),
        ),
        (&[("HOME", "home"), ("PROCTOR_STATE", "state")], &[], "state", None),
    ];
    for (variables, arguments, state, audit) in table {
        let folder = tempfile::tempdir().unwrap();
        let mut command = bare_gateway(folder.path());
        let placed = variables.iter().map(|(name, path)| (*name, folder.path().join(path)));
        command.envs(placed).args(arguments).args(["--listen", "127.0.0.1:0"]);
        let (mut gateway, mut said) = Gateway::start(command);
        port(&mut said);
        gateway.stop();
        assert!(folder.path().join(state).join("ledger.key").exists(), "{variables:?} {arguments:?}");
        let logs: Vec<String> = ["home/.local/share/aa/audit", "data/aa/audit", "log", "mine", "state/audit"]
            .into_iter()
            .filter(|place| folder.path().join(place).join("gateway-default.jsonl").exists())
            .map(str::to_owned)
            .collect();
        assert_eq!(logs, Vec::from_iter(audit.map(str::to_owned)), "{variables:?} {arguments:?}");
    }
}

#[test]
fn variables_that_it_does_not_use_are_named_and_their_values_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = gateway(folder.path(), "127.0.0.1:0");
    command.envs([("AA_PRICING_FILE", "prices.json"), ("AA_JWT_SECRET", "hush"), ("AAASM_TLS_MODE", "x")]);
    let (mut gateway, mut said) = Gateway::start(command);
    port(&mut said);
    let said = gateway.stop();
    assert!(
        said.contains("not used by this program: AAASM_TLS_MODE, AA_JWT_SECRET, AA_PRICING_FILE"),
        "{said}"
    );
    assert!(!said.contains("hush") && !said.contains("prices.json"), "{said}");
}

/// Asks until the decision is this one.
async fn until(client: &Client, request: &CheckActionRequest, decision: Decision) -> CheckActionResponse {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = client.check(request.clone()).await.unwrap();
        if answer.decision() == decision {
            return answer;
        }
        assert!(Instant::now() < deadline, "{answer:?} and not {decision:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_folder_of_policies_is_read_again_with_its_patterns() {
    let folder = tempfile::tempdir().unwrap();
    let policies = folder.path().join("policies");
    std::fs::create_dir(&policies).unwrap();
    std::fs::write(policies.join("10-global.yaml"), "scope: global\ntools: {search: {allow: true}}\n")
        .unwrap();
    let mut command = gateway_of(folder.path(), "policies");
    command.args(["--db-path", "gateway.db", "--listen", "127.0.0.1:0"]);
    let (_gateway, mut said) = Gateway::start(command);
    let endpoint = format!("http://127.0.0.1:{}", port(&mut said));
    let client = Client::connect(&endpoint, Options::default()).await.unwrap();
    let identity = Identity::generate([7; 32]);
    client.register(&identity, RegisterRequest { name: "agent".into(), ..Default::default() }).await.unwrap();
    let agent_id = Some(AgentId { agent_id: identity.did(), ..AgentId::default() });
    let request = CheckActionRequest { agent_id, ..tool_call("search", r#"{"who": "EMP-123456"}"#) };
    assert_eq!(client.check(request.clone()).await.unwrap().decision(), Decision::Allow);

    let patterns = policies.join("20-patterns.yaml");
    std::fs::write(&patterns, "scope: global\ndata: {sensitive_patterns: ['EMP-[0-9]{6}']}\n").unwrap();
    let answer = until(&client, &request, Decision::Redact).await;
    let rules = answer.redact.unwrap().rules;
    assert!(rules.iter().any(|rule| rule.field_path.contains("who")), "{rules:?}");
    std::fs::remove_file(&patterns).unwrap();
    until(&client, &request, Decision::Allow).await;
}

#[test]
fn what_a_web_page_can_post_is_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let (_gateway, port) = start(folder.path(), "127.0.0.1:0");
    let path = "POST /assembly.agent.v1.AgentLifecycleService/RequestChallenge HTTP/1.1";
    for kind in ["", "\r\ncontent-type: text/plain", "\r\ncontent-type: multipart/form-data; boundary=x"] {
        assert_eq!(response(port, &format!("{path}{kind}")), "HTTP/1.1 415 Unsupported Media Type", "{kind}");
    }
}
