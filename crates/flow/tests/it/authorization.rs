//! Authorization: embedded policies, and stand-ins of OPA and Topaz on loopback.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proctor_core::json::Json;
use proctor_flow::authorization::{AuthorizationError, Decision, SessionView, Word, evaluate};
use proctor_identity::environment::Environment;
use proctor_identity::http::Client;
use proctor_wire::agentcli::effective::{EffectiveTask, select};
use proctor_wire::agentcli::error::Code;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

const TOKEN: &str = "sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789ABCD";

/// A task with an authorization by that provider; `further` are members of the profile.
fn task(provider: &str, config: &Json, further: &str) -> EffectiveTask {
    let text = format!(
        r#"{{"version":"0.2","authorization_profiles":[{{"id":"p","provider":"{provider}","provider_config":{config}{further}}}],
            "workflows":[{{"id":"w","name":"W","authorization":{{"ref":"p"}},"contract":{{"allowed_paths":["/srv"]}},"tasks":[{{"id":"a","name":"A",
            "target":{{"session_target":"shell"}},"shell":{{"program":"git","args":["push","origin"]}},"schedule":{{"cron":"0 9 * * *"}}}}]}}]}}"#
    );
    select(&Json::parse(text.as_bytes()).unwrap(), None, "a").unwrap()
}

const SESSION: SessionView<'static> = SessionView {
    principal: Some("agent://ops/deploy"),
    declared_trust: Some("autonomous"),
    effective_trust: Some("supervised"),
    actor: None,
    step_up: None,
    token: Some(TOKEN),
};

async fn ask(task: &EffectiveTask) -> Result<Decision, AuthorizationError> {
    ask_in(task, Path::new("/")).await
}

async fn ask_in(task: &EffectiveTask, folder: &Path) -> Result<Decision, AuthorizationError> {
    evaluate(task, &SESSION, folder, &client()).await
}

/// Client of an environment whose proxy answers nobody.
fn client() -> Client {
    let proxies = ["http_proxy", "https_proxy", "all_proxy"].map(|name| (name, "http://127.0.0.1:1"));
    Client::new(&Environment::new(proxies, "/"))
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

fn config(name: &str, value: &str) -> Json {
    Json::object().with(name, value)
}

/// Behaviour of a stand-in.
#[derive(Clone)]
enum Reply {
    Body(&'static str),
    Status(&'static str),
    Redirect(String),
    Never,
    Huge,
    Hangup,
}

/// Bodies that a stand-in got, each after its request line.
type Got = Arc<Mutex<Vec<(String, Json)>>>;

async fn serve(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), reply: &Reply, got: &Got) {
    let mut bytes = Vec::new();
    let body = loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            if body.len() >= length.map_or(0, |length| length.trim().parse::<usize>().unwrap()) {
                break bytes.split_off(bytes.len() - body.len());
            }
        }
    };
    let line = String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned();
    got.lock().unwrap().push((line, Json::parse(&body).unwrap()));
    let answer = match reply {
        Reply::Body(body) => {
            format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
        }
        Reply::Status(status) => format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}"),
        Reply::Redirect(to) => {
            format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
        }
        Reply::Never => return std::future::pending().await,
        Reply::Huge => {
            let _sent = stream
                .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"result\":true,\"x\":\"")
                .await;
            while stream.write_all(&[b'x'; 8192]).await.is_ok() {}
            return;
        }
        Reply::Hangup => return,
    };
    let _sent = stream.write_all(answer.as_bytes()).await;
    let _sent = stream.flush().await;
}

/// Starts a stand-in and returns its address.
async fn stand_in(reply: Reply) -> (String, Got) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let got = Got::default();
    let shared = Arc::clone(&got);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (reply, got) = (reply.clone(), Arc::clone(&shared));
            tokio::spawn(async move { serve(&mut stream, &reply, &got).await });
        }
    });
    (address, got)
}

async fn opa(reply: Reply, further: &str) -> (Result<Decision, AuthorizationError>, Got) {
    let (address, got) = stand_in(reply).await;
    let endpoint = config("endpoint", &format!("{address}/v1/data/deploy"));
    (ask(&task("opa", &endpoint, further)).await, got)
}

#[tokio::test]
async fn opa_is_asked_with_the_documented_request() {
    let (decision, got) = opa(Reply::Body(r#"{"result":{"allow":true,"reason":"on call"}}"#), "").await;
    let decision = decision.unwrap();
    assert!(decision.is_allowed() && !decision.weakened);
    assert_eq!(decision.summary().to_string(), r#"{"allowed":true,"reason":"on call"}"#);
    let (line, body) = got.lock().unwrap()[0].clone();
    assert_eq!(line, "POST /v1/data/deploy HTTP/1.1");
    assert_eq!(
        body.to_string(),
        concat!(
            r#"{"input":{"source":{"workflow_id":"w","task_id":"a"},"identity":{"principal":"agent://ops/deploy","trust_level":"supervised"},"#,
            r#""contract":{"required_trust_level":null,"allowed_paths":["/srv"]},"command":{"program":"git","args":["push","origin"]}}}"#
        )
    );
    let include = r#","request":{"include":["trust","resource","trust","actor","nonsense"]}"#;
    let (_, got) = opa(Reply::Body(r#"{"result":true}"#), include).await;
    assert_eq!(
        got.lock().unwrap()[0].1.to_string(),
        r#"{"input":{"source":{"workflow_id":"w","task_id":"a"},"trust":{"declared_level":"autonomous","effective_level":"supervised"},"resource":null,"actor":null}}"#
    );
}

#[tokio::test]
async fn answers_without_a_clear_permit_deny() {
    for body in [
        "{}",
        r#"{"result":null}"#,
        r#"{"result":{"allow":"false"}}"#,
        r#"{"result":{"allow":"true"}}"#,
        r#"{"result":[]}"#,
        r#"{"result":"allow"}"#,
    ] {
        let (decision, _) = opa(Reply::Body(body), r#","on_error":"warn""#).await;
        let decision = decision.unwrap();
        assert_eq!((decision.word, decision.weakened), (Word::Deny, false), "{body}");
    }
    let mapping = r#","decision":{"escalate_values":["ask"]}"#;
    let (decision, _) = opa(Reply::Body(r#"{"result":"ask"}"#), mapping).await;
    let decision = decision.unwrap();
    assert_eq!(decision.word, Word::RequireEscalation);
    assert_eq!(decision.to_json()["decision"], "require-escalation");
}

#[tokio::test]
async fn failures_deny_and_only_warn_where_the_profile_says_so() {
    let (elsewhere, other) = stand_in(Reply::Body(r#"{"result":true}"#)).await;
    let replies = [
        (Reply::Status("500 Internal Server Error"), "status 500"),
        (Reply::Status("204 No Content"), "status 204"),
        (Reply::Redirect(elsewhere), "redirects"),
        (Reply::Body("[true]"), "not a JSON object"),
        (Reply::Body("true or so"), "not a JSON object"),
        (Reply::Body(r#"{"result":false,"result":true}"#), "not a JSON object"),
        (Reply::Huge, "longer than 1048576 bytes"),
        (Reply::Hangup, "cannot be reached"),
    ];
    for (reply, text) in replies {
        let error = opa(reply.clone(), "").await.0.unwrap_err();
        assert_eq!(error.code(), Code::AuthorizationError);
        assert!(error.to_string().contains(text), "{text}: {error}");
        let decision = opa(reply, r#","on_error":"warn""#).await.0.unwrap();
        assert!(decision.is_allowed() && decision.weakened, "{text}");
        assert_eq!(decision.to_json()["weakened"], Json::Bool(true));
    }
    assert!(other.lock().unwrap().is_empty(), "a redirect was followed");
    let nobody = config("endpoint", "http://127.0.0.1:1/v1/data/x");
    assert!(matches!(ask(&task("opa", &nobody, "")).await, Err(AuthorizationError::Provider { .. })));
    for endpoint in ["file:///etc/passwd", "http://user:pw@127.0.0.1/", "nonsense"] {
        let error = ask(&task("opa", &config("endpoint", endpoint), "")).await.unwrap_err();
        assert!(
            error.to_string().contains("`endpoint`: the URL") && !error.to_string().contains("pw@"),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_answer_is_given_up() {
    let start = Instant::now();
    let error = opa(Reply::Never, "").await.0.unwrap_err();
    assert!(error.to_string().contains("longer than 10 s"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5), "the clock of the test is not the machine's");
}

const MODULE: &str = r#"package deploy
default allow := false
allow if input.command.program == "git"
verdict := "ask" if count(input.command.args) > 1
broken := to_number(input.command.program)
"#;

#[tokio::test]
async fn a_rego_module_is_evaluated_here() {
    let ask_rule = async |rule: &str, further: &str| {
        let config = config("module", MODULE).with("query", format!("data.deploy.{rule}"));
        ask(&task("opa", &config, further)).await
    };
    assert_eq!(ask_rule("allow", "").await.unwrap().word, Word::Permit);
    let mapping = r#","decision":{"escalate_values":["ask"]}"#;
    assert_eq!(ask_rule("verdict", mapping).await.unwrap().word, Word::RequireEscalation);
    assert_eq!(ask_rule("verdict", "").await.unwrap().word, Word::Deny);
    assert_eq!(ask_rule("broken", "").await.unwrap_err().code(), Code::AuthorizationError);
    for query in ["missing", "allow; data.x.y", "allow[_]", ""] {
        assert_eq!(ask_rule(query, "").await.unwrap_err().code(), Code::AuthorizationError, "{query}");
    }
    let clock = config("module", "package a\nallow if time.now_ns() > 0").with("query", "data.a.allow");
    assert!(ask(&task("opa", &clock, "")).await.is_err());
    let missing = config("module_file", "does/not/exist.rego").with("query", "data.a.allow");
    assert!(ask(&task("opa", &missing, "")).await.unwrap_err().to_string().contains("module_file"));
}

#[tokio::test]
async fn files_of_the_configuration_are_relative_to_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("deploy.rego"), MODULE).unwrap();
    let rego = config("module_file", "deploy.rego").with("query", "data.deploy.allow");
    let decision = ask_in(&task("opa", &rego, ""), folder.path()).await.unwrap();
    assert!(decision.is_allowed());
    let no_file = config("module_file", ".").with("query", "data.a.b");
    assert!(ask_in(&task("opa", &no_file, ""), folder.path()).await.is_err());
}

#[tokio::test]
async fn cedar_policies_see_the_documented_entities() {
    let decide = async |policies: &str, further: &str| {
        let mut config = config("policies", policies);
        if let Json::Object(members) = json(further) {
            for (name, value) in members {
                config.push(&name, value);
            }
        }
        ask(&task("cedar", &config, "")).await
    };
    let permit = r#"@id("git-only") permit(principal == Agent::"agent://ops/deploy", action == Action::"run", resource == Task::"w/a")
        when { context.command.program == "git" && context.command.args.contains("push") };"#;
    let decision = decide(permit, "{}").await.unwrap();
    assert!(decision.is_allowed());
    assert_eq!(decision.policy_ref.as_deref(), Some("git-only"));
    let forbid = format!(
        "{permit} forbid(principal, action, resource) when {{ context.identity.trust_level == \"supervised\" }};"
    );
    assert_eq!(decide(&forbid, "{}").await.unwrap().word, Word::Deny);
    assert_eq!(decide("// nothing", "{}").await.unwrap().word, Word::Deny);
    // A policy that fails is an error, although another one permits.
    let failing = format!("{permit} forbid(principal, action, resource) when {{ context.nothing == 1 }};");
    assert_eq!(decide(&failing, "{}").await.unwrap_err().code(), Code::AuthorizationError);
    assert!(decide("permit(", "{}").await.is_err());
    // Entities, and another mapping.
    let group = r#"permit(principal in Team::"ops", action, resource == Cluster::"prod");"#;
    let mapped = r#"{"principal":"User","resource":"Cluster::\"prod\"","entities":[{"uid":{"type":"User","id":"agent://ops/deploy"},"attrs":{},"parents":[{"type":"Team","id":"ops"}]}]}"#;
    assert!(decide(group, mapped).await.unwrap().is_allowed());
    assert_eq!(decide(group, r#"{"principal":"User"}"#).await.unwrap().word, Word::Deny);
    assert!(decide(group, r#"{"principal":"not a type"}"#).await.is_err());
    assert!(decide(group, r#"{"entities":"text"}"#).await.is_err());
    // A schema refuses policies that do not fit it.
    let schema = r#"{"schema":"entity Agent; entity Task; action run appliesTo { principal: Agent, resource: Task, context: {} };"}"#;
    assert!(
        decide("permit(principal, action, resource) when { context.other == 1 };", schema).await.is_err()
    );
}

#[tokio::test]
async fn topaz_is_asked_for_its_decision() {
    let decide = async |body: &'static str, further: &str| {
        let (address, got) = stand_in(Reply::Body(body)).await;
        let mut config = config("endpoint", &address).with("policy_path", "deploy.allow");
        if let Json::Object(members) = json(further) {
            for (name, value) in members {
                config.push(&name, value);
            }
        }
        (ask(&task("topaz", &config, "")).await, got)
    };
    let permit = r#"{"decisions":[{"decision":"other","is":false},{"decision":"allowed","is":true}]}"#;
    let (decision, got) =
        decide(permit, r#"{"resource_context":{"cluster":"prod","request":"forged"}}"#).await;
    assert!(decision.unwrap().is_allowed());
    let (line, body) = got.lock().unwrap()[0].clone();
    assert_eq!(line, "POST /api/v2/authz/is HTTP/1.1");
    assert_eq!(
        body["identityContext"].to_string(),
        r#"{"type":"IDENTITY_TYPE_SUB","identity":"agent://ops/deploy"}"#
    );
    assert_eq!(body["policyContext"].to_string(), r#"{"path":"deploy.allow","decisions":["allowed"]}"#);
    assert_eq!(body["resourceContext"]["cluster"], "prod");
    assert_eq!(body.pointer("/resourceContext/request/command/program").and_then(Json::as_str), Some("git"));
    let (_, got) = decide(permit, r#"{"identity_type":"jwt","decision":"visible"}"#).await;
    assert_eq!(got.lock().unwrap()[0].1["identityContext"]["identity"], TOKEN);
    for body in [
        "{}",
        r#"{"decisions":[]}"#,
        r#"{"decisions":[{"decision":"allowed","is":"true"}]}"#,
        r#"{"decisions":[{"decision":"allowed","is":"permit"}]}"#,
        r#"{"decisions":[{"decision":"other","is":true}]}"#,
        r#"{"decisions":[{"decision":"allowed","is":true},{"decision":"allowed","is":false}]}"#,
        r#"{"decisions":[{"decision":"allowed","is":true},{"decision":"allowed"}]}"#,
    ] {
        assert_eq!(decide(body, "{}").await.0.unwrap().word, Word::Deny, "{body}");
    }
    assert!(decide(permit, r#"{"identity_type":"root"}"#).await.0.is_err());
    // A token goes to no host in the clear.
    let clear =
        config("endpoint", "http://topaz.example").with("policy_path", "p").with("identity_type", "jwt");
    let error = ask(&task("topaz", &clear, "")).await.unwrap_err();
    assert!(error.to_string().contains("must begin with https://"), "{error}");
    assert!(decide(permit, r#"{"ca_certificate":"-----BEGIN nonsense"}"#).await.0.is_err());
}

#[tokio::test]
async fn a_private_authority_is_trusted_by_its_certificate_alone() {
    let authority = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![authority.cert.der().clone()],
            rustls::pki_types::PrivateKeyDer::try_from(authority.signing_key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(server));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        let reply = Reply::Body(r#"{"decisions":[{"decision":"allowed","is":true}]}"#);
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                serve(&mut stream, &reply, &Got::default()).await;
            }
        }
    });
    let endpoint = config("endpoint", &address).with("policy_path", "deploy.allow");
    let trusting = endpoint.clone().with("ca_certificate", authority.cert.pem());
    assert!(ask(&task("topaz", &trusting, "")).await.unwrap().is_allowed());
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    for config in [endpoint.clone(), endpoint.with("ca_certificate", other.cert.pem())] {
        let error = ask(&task("topaz", &config, "")).await.unwrap_err();
        assert!(error.to_string().contains("cannot be reached"), "{error}");
    }
}

#[tokio::test]
async fn none_permits_and_unknown_providers_are_errors() {
    let permit = ask(&task("none", &Json::Null, "")).await.unwrap();
    assert_eq!(
        permit.to_json().to_string(),
        r#"{"decision":"permit","provider":"none","reason":"the provider `none` permits everything","policy_ref":null,"escalation":null}"#
    );
    let error = ask(&task("oracle", &Json::Null, "")).await.unwrap_err();
    assert_eq!(error.code(), Code::UnknownAuthorizationProvider);
    // An unknown provider is a mistake, not a failure that may be warned about.
    assert!(ask(&task("oracle", &Json::Null, r#","on_error":"warn""#)).await.is_err());
    assert!(!format!("{SESSION:?}").contains("Abcdefgh"));
}
