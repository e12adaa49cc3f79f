//! Harnesses on the official crate.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use a3s_ahp::server::EventHandler;
use a3s_ahp::transport::http::HttpServer;
use a3s_ahp::transport::websocket::WebSocketServer;
use a3s_ahp::{
    AhpError, AhpEvent, AhpNotification, AhpRequest, AhpServer, ConfirmationDecision, ConfirmationEvent,
    ContextPerceptionDecision, ContextPerceptionEvent, Decision, EventContext, HarnessInfo, IdleDecision,
    IdleEvent, IntentDetectionDecision, IntentDetectionEvent, MemoryRecallDecision, MemoryRecallEvent,
    PlanningDecision, PlanningEvent, QueryRequest, QueryResponse, RateLimitDecision, RateLimitEvent,
    ReasoningDecision, ReasoningEvent, Result,
};
use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::process::own_listening_port;

/// The exit code of a harness that was told to die.
pub const DIED: i32 = 7;

/// Allows everything: the least that a harness can do.
#[derive(Debug)]
pub struct AllowAll;

#[async_trait]
impl EventHandler for AllowAll {
    async fn handle_event(&self, _event: &AhpEvent) -> Result<Decision> {
        Ok(Decision::Allow { modified_payload: None, metadata: None })
    }
}

/// Does what the payload says: `answer` is the decision, `fail` makes the handler fail, `die` ends the process. All that it saw can be
/// asked for with the query `seen`.
#[derive(Debug, Default)]
pub struct Scripted {
    seen: Mutex<Vec<Value>>,
}

impl Scripted {
    fn see(&self, form: &str, event: &AhpEvent) {
        let event = serde_json::to_value(event).unwrap_or_default();
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(json!({ "form": form, "event": event }));
    }

    fn answer<T: DeserializeOwned>(&self, event: &AhpEvent) -> Result<T> {
        self.see("request", event);
        script(&event.payload)
    }
}

fn script<T: DeserializeOwned>(payload: &Value) -> Result<T> {
    if payload["die"] == true {
        std::process::exit(DIED);
    }
    if let Some(reason) = payload["fail"].as_str() {
        return Err(AhpError::Other(reason.to_owned()));
    }
    let answer = match &payload["answer"] {
        Value::Null => json!({ "decision": "allow" }),
        answer => answer.clone(),
    };
    Ok(serde_json::from_value(answer)?)
}

#[async_trait]
impl EventHandler for Scripted {
    async fn handle_event(&self, event: &AhpEvent) -> Result<Decision> {
        self.answer(event)
    }

    async fn handle_notification(&self, event: &AhpEvent) -> Result<()> {
        self.see("notification", event);
        Ok(())
    }

    async fn handle_query(&self, query: &QueryRequest) -> Result<QueryResponse> {
        let response = |answer| QueryResponse { answer, reason: None, alternatives: None };
        match query.query_type.as_str() {
            "seen" => {
                let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(response(Value::Array(seen.clone())))
            }
            "who" => Ok(response(json!([query.session_id, query.agent_id]))),
            "echo" => Ok(QueryResponse {
                answer: query.payload.clone(),
                reason: Some("because".to_owned()),
                alternatives: Some(vec!["one".to_owned(), "two".to_owned()]),
            }),
            _ => Err(AhpError::UnsupportedCapability(query.query_type.clone())),
        }
    }

    async fn handle_idle(&self, asked: &IdleEvent, context: &EventContext) -> Result<IdleDecision> {
        Ok(match (&context.current_task, asked.idle_reason.as_str()) {
            (Some(task), _) => IdleDecision::Defer { reason: Some(task.clone()) },
            (None, "busy") => IdleDecision::Defer { reason: None },
            _ => IdleDecision::Allow,
        })
    }

    async fn handle_context_perception(
        &self,
        event: &AhpEvent,
        _asked: &ContextPerceptionEvent,
    ) -> Result<ContextPerceptionDecision> {
        self.answer(event)
    }

    async fn handle_memory_recall(
        &self,
        event: &AhpEvent,
        _asked: &MemoryRecallEvent,
    ) -> Result<MemoryRecallDecision> {
        self.answer(event)
    }

    async fn handle_planning(&self, event: &AhpEvent, _asked: &PlanningEvent) -> Result<PlanningDecision> {
        self.answer(event)
    }

    async fn handle_reasoning(&self, event: &AhpEvent, _asked: &ReasoningEvent) -> Result<ReasoningDecision> {
        self.answer(event)
    }

    async fn handle_rate_limit(
        &self,
        event: &AhpEvent,
        _asked: &RateLimitEvent,
    ) -> Result<RateLimitDecision> {
        self.answer(event)
    }

    async fn handle_confirmation(
        &self,
        event: &AhpEvent,
        _asked: &ConfirmationEvent,
    ) -> Result<ConfirmationDecision> {
        self.answer(event)
    }

    async fn handle_intent_detection(
        &self,
        event: &AhpEvent,
        _asked: &IntentDetectionEvent,
    ) -> Result<IntentDetectionDecision> {
        self.answer(event)
    }
}

/// The official server around a handler.
pub fn server(handler: Arc<dyn EventHandler>) -> Arc<AhpServer> {
    Arc::new(AhpServer::new(handler).with_harness_info(HarnessInfo {
        name: "judge".to_owned(),
        version: "1.2.3".to_owned(),
        capabilities: vec!["pre_action".to_owned(), "query".to_owned()],
    }))
}

/// Serves HTTP; says where on standard output.
pub async fn serve_http(server: Arc<AhpServer>) -> Result<()> {
    tokio::spawn(announce());
    HttpServer::new(server).run(([127, 0, 0, 1], 0)).await
}

/// Serves WebSockets; says where on standard output.
pub async fn serve_websocket(server: Arc<AhpServer>) -> Result<()> {
    tokio::spawn(announce());
    WebSocketServer::new(server).run(([127, 0, 0, 1], 0)).await
}

/// The official server takes an address and does not tell the port that the kernel chose.
async fn announce() {
    loop {
        if let Some(port) = own_listening_port() {
            println!("{}", json!({ "address": format!("127.0.0.1:{port}") }));
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// Serves a Unix socket. The official crate has no server for it: this reads a line, has the crate's own dispatch answer it, and
/// writes a line, one message at a time on each connection, as the crate's server on standard input does.
pub async fn serve_unix(server: Arc<AhpServer>, path: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    println!("{}", json!({ "socket": path }));
    loop {
        let (stream, _) = listener.accept().await?;
        let server = Arc::clone(&server);
        tokio::spawn(async move { serve_connection(&server, stream).await });
    }
}

async fn serve_connection(server: &AhpServer, stream: UnixStream) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Some(line) = lines.next_line().await? {
        if let Ok(request) = serde_json::from_str::<AhpRequest>(&line) {
            let mut reply = serde_json::to_string(&server.handle_request(request).await)?;
            reply.push('\n');
            writer.write_all(reply.as_bytes()).await?;
        } else if let Ok(notification) = serde_json::from_str::<AhpNotification>(&line) {
            let _ = server.handle_notification(notification).await;
        }
    }
    Ok(())
}
