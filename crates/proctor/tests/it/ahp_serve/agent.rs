//! An agent that uses the client library: the same session on every transport.

use std::path::Path;

use proctor_clients::ahp::client::{AhpClient, AuthConfig, ClientOptions, Result, Transport};
use proctor_clients::ahp::{AhpEvent, Decision, EventType};
use proctor_core::json::Json;

use crate::ahp_serve::server::Server;

pub fn http(server: &Server, auth: Option<AuthConfig>) -> Transport {
    Transport::Http { url: format!("http://{}/ahp", server.http), auth }
}

pub fn websocket(server: &Server, path: &str, auth: Option<AuthConfig>) -> Transport {
    Transport::WebSocket { url: format!("ws://{}{path}", server.http), auth }
}

pub fn grpc(server: &Server, auth: Option<AuthConfig>) -> Transport {
    Transport::Grpc { url: format!("http://{}", server.grpc), auth }
}

pub fn unix(server: &Server) -> Transport {
    Transport::UnixSocket { path: server.socket.clone() }
}

/// `proctor harness` as the client's own child.
pub fn stdio(state: &Path, policy: &Path, more: &[&str]) -> Transport {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let mut args =
        vec!["harness".to_owned(), "--state".to_owned(), text(state), "--policy".to_owned(), text(policy)];
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    Transport::Stdio { program: text(&crate::support::binary()), args }
}

/// Every transport of a server that wants no credentials, by name.
pub fn all(server: &Server) -> Vec<(&'static str, Transport)> {
    vec![
        ("http", http(server, None)),
        ("websocket", websocket(server, "/ahp", None)),
        ("websocket-ws", websocket(server, "/ahp/ws", None)),
        ("unix", unix(server)),
        ("grpc", grpc(server, None)),
    ]
}

/// An agent that claims to be `name`, in a session of the same name, introduced.
pub async fn connect(transport: Transport, name: &str) -> Result<AhpClient> {
    connect_with(transport, name, ClientOptions::default()).await
}

pub async fn connect_with(transport: Transport, name: &str, options: ClientOptions) -> Result<AhpClient> {
    let options =
        ClientOptions { session_id: Some(name.to_owned()), agent_id: Some(name.to_owned()), ..options };
    let client = AhpClient::connect(transport, options).await?;
    client.handshake(vec!["pre_action".to_owned()]).await?;
    Ok(client)
}

fn call(client: &AhpClient, tool: &str) -> Json {
    // An approval is for an action of a principal: so that agents do not get each other's, theirs differ.
    let arguments =
        Json::object().with("query", "parser").with("limit", 5000u32).with("of", client.agent_id());
    Json::object().with("tool_name", tool).with("arguments", arguments)
}

pub async fn ask(client: &AhpClient, tool: &str) -> Decision {
    client.send_event_decision(EventType::PreAction, call(client, tool)).await.unwrap()
}

/// Sends one request of each kind. Returns the ids of the decisions, in order.
pub async fn whole_session(client: &AhpClient) -> Vec<String> {
    let mut ids = Vec::new();
    let harness = client.harness().unwrap();
    assert_eq!(harness.harness_info.name, "proctor");
    assert!(harness.harness_info.capabilities.iter().any(|it| it == "approvals"));

    let Decision::Allow { metadata, .. } = ask(client, "look").await else { panic!("not allowed") };
    let allowed = id_of(metadata.as_ref());
    ids.push(allowed.clone());
    let report = call(client, "look")
        .with("result", Json::object().with("success", true))
        .with("metadata", Json::object().with("decision_id", allowed.as_str()));
    client.notify(EventType::PostAction, report).await.unwrap();

    let Decision::Block { reason, metadata } = ask(client, "wipe").await else { panic!("not blocked") };
    assert_eq!(reason, "nothing is wiped here");
    ids.push(id_of(metadata.as_ref()));

    let Decision::Modify { modified_payload, metadata } = ask(client, "search").await else {
        panic!("not modified")
    };
    assert_eq!(modified_payload.pointer("/arguments/limit").and_then(Json::as_u64), Some(10));
    assert_eq!(modified_payload.pointer("/arguments/query").and_then(Json::as_str), Some("parser"));
    ids.push(id_of(metadata.as_ref()));

    let Decision::Escalate { reason, approval_id, retry_after_ms, expires_at, metadata, .. } =
        ask(client, "publish").await
    else {
        panic!("not asked")
    };
    let approval = approval_id.unwrap();
    assert!(reason.contains(&approval) && retry_after_ms.is_some() && expires_at.is_some());
    ids.push(id_of(metadata.as_ref()));
    let Decision::Defer { approval_id, metadata, .. } = ask(client, "publish").await else {
        panic!("not deferred")
    };
    assert_eq!(approval_id.as_deref(), Some(approval.as_str()), "it is the same approval");
    ids.push(id_of(metadata.as_ref()));

    let event = |tool: &str| AhpEvent {
        event_type: EventType::PreAction,
        session_id: client.session_id().to_owned(),
        agent_id: client.agent_id().to_owned(),
        timestamp: "2026-06-02T09:15:00Z".to_owned(),
        depth: 1,
        payload: call(client, tool),
        context: None,
        metadata: None,
    };
    let batch = client.send_batch(vec![event("look"), event("wipe")]).await.unwrap();
    assert!(
        matches!(batch.decisions.as_slice(), [Decision::Allow { .. }, Decision::Block { .. }]),
        "{batch:?}"
    );
    for decision in &batch.decisions {
        if let Decision::Allow { metadata, .. } | Decision::Block { metadata, .. } = decision {
            ids.push(id_of(metadata.as_ref()));
        }
    }

    let may = client.query("may_i", call(client, "look")).await.unwrap();
    assert_eq!(may.answer, Json::Bool(true), "{may:?}");
    let may = client.query("may_i", call(client, "wipe")).await.unwrap();
    assert_eq!(may.answer, Json::Bool(false), "{may:?}");
    let status =
        client.query("approval", Json::object().with("approval_id", approval.as_str())).await.unwrap();
    assert!(status.answer.to_string().contains("waiting"), "{status:?}");

    let beat = Json::object().with("uptime_ms", 90_000u32).with("current_state", "active");
    client.notify(EventType::Heartbeat, beat).await.unwrap();
    client.notify(EventType::SessionEnd, Json::object()).await.unwrap();
    ids
}

fn id_of(metadata: Option<&Json>) -> String {
    let id = metadata.and_then(|metadata| metadata.get("decision_id")?.as_str());
    id.unwrap_or_else(|| panic!("a decision without an id: {metadata:?}")).to_owned()
}

pub fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(crate::ahp_serve::server::LONG * 2, future).await.expect("in time")
    })
}
