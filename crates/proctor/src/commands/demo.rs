//! `proctor demo`: a small sample agent under supervision, from start to end, in a folder of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_clients::ahp::client::{AhpClient, AhpError, ClientOptions, Transport};
use proctor_clients::ahp::{Decision, EventType};
use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_core::record::RecordKind;
use proctor_ledger::store::{Filter, Order};
use tokio_util::sync::CancellationToken;

use super::{Context, init, serve};
use crate::access::Owner;
use crate::config::{Config, Overrides};
use crate::failure::{FAILED, Failure, OK, Outcome};
use crate::output;
use proctor_engine::approvers::{ApproverDecision, ApproverKeys, Statement};
use proctor_engine::state_dir::StateDir;
use proctor_engine::traces::find_session;
use proctor_system::SystemRandomness;

const POLICY: &str = include_str!("demo/policy.yaml");

/// The session and the agent, as the agent calls them.
const SESSION: &str = "demo";
const AGENT: &str = "sample-agent";

/// The whole demonstration ends by itself.
const LONGEST: Duration = Duration::from_secs(60);

pub(super) fn run(context: &Context) -> Outcome {
    let folder = scratch()?;
    let policy = folder.join("policy.yaml");
    std::fs::write(&policy, POLICY).map_err(|error| Failure::io(&policy, &error))?;
    let config = settings(&folder, &policy)?;
    let state = StateDir::new(&config.engine.state);
    state.create(&SystemRandomness)?;
    let key = init::make_credential(
        &folder.join("approver.key"),
        Some("you"),
        &state,
        &folder.join("work"),
        &mut Vec::new(),
    )?;
    let owner = serve::own(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::from(error.to_string()))?;
    let approver = Approver { key, state };
    let steps = runtime.block_on(async {
        let stop = CancellationToken::new();
        let (bound, serving) = serve::start(&config, &owner, &stop).await?;
        let http = bound.http.to_string();
        let steps = tokio::time::timeout(LONGEST, act(&http, &owner, &approver)).await;
        stop.cancel();
        serving.finished().await;
        steps
            .unwrap_or_else(|_| Err(Failure::from("the demonstration took too long")))
            .map(|steps| (http, steps))
    });
    owner.engine.finish();
    runtime.shutdown_background();
    let (http, steps) = steps?;
    report(context, &config, &http, &steps, &owner)
}

/// An action that the agent proposed, and the answer.
struct Step {
    wanted: &'static str,
    expected: &'static str,
    answer: String,
    detail: String,
}

struct Approver {
    key: proctor_ledger::keys::SecretKey,
    state: StateDir,
}

/// The sample agent: it asks before it acts, six times, and once it does not.
async fn act(http: &str, owner: &Owner, approver: &Approver) -> Result<Vec<Step>, Failure> {
    let options = ClientOptions {
        session_id: Some(SESSION.to_owned()),
        agent_id: Some(AGENT.to_owned()),
        ..ClientOptions::default()
    };
    let url = format!("http://{http}/ahp");
    let client = AhpClient::connect(Transport::Http { url, auth: None }, options).await.map_err(failed)?;
    client.handshake(vec!["pre_action".to_owned(), "post_action".to_owned()]).await.map_err(failed)?;
    client
        .notify(EventType::SessionStart, Json::object().with("session_id", SESSION))
        .await
        .map_err(failed)?;
    let mut steps = Vec::new();
    let shell = |command: &str| {
        Json::object().with("tool_name", "bash").with("arguments", Json::object().with("command", command))
    };

    steps.push(ask(&client, "list the files", "allow", shell("ls -la")).await?);
    steps.push(ask(&client, "delete the build folder", "block", shell("rm -rf build")).await?);
    // Put together here, so that no scanner takes this source for a leak.
    let secret = format!("AKIA{}", "QX7Z2M4RT9WLK3VD");
    let note = Json::object()
        .with("tool_name", "send_note")
        .with("arguments", Json::object().with("text", format!("the key is {secret}")));
    steps.push(ask(&client, "send a note with a key in it", "modify", note).await?);
    let search = Json::object()
        .with("tool_name", "search")
        .with("arguments", Json::object().with("query", "parser").with("limit", 5000u32));
    steps.push(ask(&client, "search with 5000 results", "modify", search).await?);
    let push = shell("git push origin main");
    let asked = ask(&client, "publish the branch", "escalate", push.clone()).await?;
    let approval = owner_approves(owner, approver)?;
    steps.push(asked);
    let mut granted = ask(&client, "publish it, now approved", "allow", push).await?;
    granted.detail = format!("approval {approval}, decided by you, good for once");
    steps.push(granted);
    let unasked = Json::object()
        .with("tool_name", "http_get")
        .with("arguments", Json::object().with("url", "https://example.com/data"))
        .with("result", Json::object().with("success", true));
    client.notify(EventType::PostAction, unasked).await.map_err(failed)?;
    steps.push(Step {
        wanted: "fetch a page without asking",
        expected: "alarm",
        answer: "alarm".to_owned(),
        detail: "an enforcement gap: reported as done, but never asked".to_owned(),
    });
    client.notify(EventType::SessionEnd, Json::object().with("session_id", SESSION)).await.map_err(failed)?;
    client.close().await.map_err(failed)?;
    Ok(steps)
}

/// Asks before acting; what is let through is done, and reported.
async fn ask(
    client: &AhpClient,
    wanted: &'static str,
    expected: &'static str,
    payload: Json,
) -> Result<Step, Failure> {
    let decision = client.send_event_decision(EventType::PreAction, payload.clone()).await.map_err(failed)?;
    let (answer, detail, done) = match decision {
        Decision::Allow { metadata, .. } => ("allow", rule(metadata.as_ref()), Some((payload, metadata))),
        Decision::Modify { modified_payload, metadata } => {
            let detail =
                format!("runs as {}", modified_payload.get("arguments").unwrap_or(&modified_payload));
            ("modify", detail, Some((modified_payload, metadata)))
        }
        Decision::Block { reason, .. } => ("block", reason, None),
        Decision::Escalate { reason, .. } => ("escalate", reason, None),
        Decision::Defer { reason, .. } => ("defer", reason.unwrap_or_default(), None),
    };
    if let Some((payload, metadata)) = done {
        let id = metadata.and_then(|metadata| metadata.get("decision_id").cloned()).unwrap_or_default();
        let report = payload
            .with("result", Json::object().with("success", true))
            .with("metadata", Json::object().with("decision_id", id));
        client.notify(EventType::PostAction, report).await.map_err(failed)?;
    }
    Ok(Step { wanted, expected, answer: answer.to_owned(), detail })
}

fn rule(metadata: Option<&Json>) -> String {
    let rule = metadata.and_then(|metadata| metadata.get("rule")?.as_str()).unwrap_or_default();
    format!("rule `{rule}`")
}

/// Grants the approval, as `proctor approve allow` does for a person.
fn owner_approves(owner: &Owner, approver: &Approver) -> Result<String, Failure> {
    let reader = owner.engine.ledger().reader();
    let filter = Filter { kinds: vec![RecordKind::Decision], ..Filter::default() };
    let asked = reader
        .records(filter, Order::Descending)
        .filter_map(Result::ok)
        .find_map(|record| record.envelope.approval)
        .ok_or_else(|| Failure::from("no approval was asked for"))?;
    let ledger = approver.state.key()?.verifier_key().name().to_owned();
    let statement = Statement {
        ledger: ledger.clone(),
        approval: asked,
        decision: ApproverDecision::Allow,
        reason: String::new(),
    };
    let keys = ApproverKeys::read(&approver.state.approvers_file(), &ledger)?;
    owner
        .engine
        .decide_approval(&statement.sign(&approver.key)?, &keys)
        .map_err(|refusal| Failure::from(refusal.to_string()))?;
    Ok(asked.to_string())
}

fn report(context: &Context, config: &Config, http: &str, steps: &[Step], owner: &Owner) -> Outcome {
    let reader = owner.engine.ledger().reader();
    let id = find_session(&reader, SESSION)?;
    let alarms = alarms(&reader, id)?;
    let state = config.engine.state.display().to_string();
    let as_expected =
        steps.iter().all(|step| step.answer == step.expected) && alarms.iter().any(|code| code == "unasked");
    if context.json {
        for step in steps {
            output::data(
                Json::object()
                    .with("wanted", step.wanted)
                    .with("answer", step.answer.as_str())
                    .with("detail", step.detail.as_str()),
            )?;
        }
        output::data(
            Json::object()
                .with("session_id", id.to_string())
                .with("state", state)
                .with("alarms", alarms.iter().map(|code| Json::from(code.as_str())).collect::<Vec<_>>())
                .with("as_expected", as_expected),
        )?;
    } else {
        output::data(format!("A sample agent asked {http} before it acted:"))?;
        output::data("")?;
        for step in steps {
            output::data(format!(
                "  {:<30}  {:<9} {}",
                step.wanted,
                step.answer,
                output::shown(&step.detail, 90)
            ))?;
        }
        output::data("")?;
        output::data("Everything is on record. Look at it:")?;
        output::data(format!("  proctor session show {SESSION} --state {state}"))?;
        output::data(format!("  proctor audit tail --state {state}"))?;
        output::data(format!("The policy that decided: {}", policy_file(config)))?;
    }
    if as_expected {
        return Ok(OK);
    }
    Err(Failure { code: FAILED, lines: vec!["the demonstration did not go as it should".to_owned()] })
}

fn alarms(reader: &proctor_ledger::Reader, id: proctor_core::id::SessionId) -> Result<Vec<String>, Failure> {
    let filter = Filter { session: Some(id), kinds: vec![RecordKind::Alarm], ..Filter::default() };
    reader
        .records(filter, Order::Ascending)
        .map(|record| {
            record.map(|record| record.envelope.code).map_err(|error| Failure::from(error.to_string()))
        })
        .collect()
}

fn policy_file(config: &Config) -> String {
    config.engine.policy.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn failed(error: AhpError) -> Failure {
    Failure::from(format!("the sample agent: {error}"))
}

/// The settings of the demonstration: nothing of the user's own.
fn settings(folder: &Path, policy: &Path) -> Result<Config, Failure> {
    let any = "127.0.0.1:0".parse().ok();
    let overrides = Overrides {
        state: Some(folder.join("state")),
        policy: Some(policy.to_owned()),
        http: any,
        grpc: any,
        ..Overrides::default()
    };
    let mut config = Config::load(folder, &overrides)?;
    config.tls = None;
    config.ahp.tokens.clear();
    config.ahp.hold = Duration::ZERO;
    config.ahp.socket = None;
    config.ahp.workspace = folder.to_owned();
    Ok(config)
}

/// A folder of its own, which stays: the records in it can be looked at.
fn scratch() -> Result<PathBuf, Failure> {
    let mut tail = [0u8; 6];
    SystemRandomness.fill(&mut tail);
    let tail = proctor_core::hex::encode(tail);
    let folder = std::env::temp_dir().join(format!("proctor-demo-{tail}"));
    proctor_system::private::create_folder(&folder)?;
    std::fs::create_dir_all(folder.join("work")).map_err(|error| Failure::io(&folder, &error))?;
    Ok(folder)
}
