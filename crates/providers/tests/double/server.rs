//! A server on this machine that speaks every vendor's wire format and says what it is told to say.
//!
//! It checks keys and the shape of requests as the vendors do. What it answers is scripted, in process with [`Double::script`]
//! or over HTTP:
//!
//! * `POST /control` with `{"replies": [REPLY, …]}` adds replies; the fields of a reply are those of [`Reply`]
//! * `GET /control` gives `{"requests": [{"path", "headers", "body"}, …], "held": N}`
//! * `POST /control/release` with `{"hold": NAME}` lets the replies held under that name go
//! * `DELETE /control` forgets all of it
//!
//! Without a scripted reply that fits, it answers [`USUAL_TEXT`].
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "each user needs a part, and a test fails by panicking"
)]

mod shapes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use proctor_providers::vendor::Vendor;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

/// The key it accepts unless told otherwise.
pub const KEY: &str = "double-key-0123456789abcdef";

/// Default answer: that of a judge that is content.
pub const USUAL_TEXT: &str = r#"{"score": 0.9, "explanation": "it is as it should be"}"#;

/// Time limit of an event that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A scripted reply, and its condition.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// Condition: the request's body contains this text.
    pub when: Option<String>,
    /// Number of times; zero is for ever.
    pub times: u32,
    /// The HTTP status; from 400 on, the reply has the vendor's own shape of errors.
    pub status: u16,
    /// More headers.
    pub headers: BTreeMap<String, String>,
    /// Text of the model, or the message of the error.
    pub text: Option<String>,
    /// Stop reason, in the vendor's words.
    pub stop: Option<String>,
    /// A whole body instead, whatever it is.
    pub body: Option<String>,
    /// Wait so long before answering.
    pub delay_ms: u64,
    /// Answer only when this name is released.
    pub hold: Option<String>,
    /// Break the connection in the middle of the body.
    pub broken: bool,
}

impl Default for Reply {
    fn default() -> Reply {
        Reply {
            when: None,
            times: 1,
            status: 200,
            headers: BTreeMap::new(),
            text: None,
            stop: None,
            body: None,
            delay_ms: 0,
            hold: None,
            broken: false,
        }
    }
}

impl Reply {
    pub fn text(text: &str) -> Reply {
        Reply { text: Some(text.to_owned()), ..Reply::default() }
    }

    pub fn status(status: u16) -> Reply {
        Reply { status, ..Reply::default() }
    }

    pub fn body(body: impl Into<String>) -> Reply {
        Reply { body: Some(body.into()), ..Reply::default() }
    }
}

/// A request as it came, without its credentials.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

/// The server, while it runs.
pub struct Double {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Shared {
    key: String,
    script: Mutex<Script>,
    /// Wakes held replies.
    released: Notify,
    /// Wakes a test that waits for held replies.
    held: Condvar,
}

#[derive(Default)]
struct Script {
    replies: Vec<Reply>,
    seen: Vec<Seen>,
    released: BTreeSet<String>,
    held: usize,
}

impl Double {
    /// Starts a server on a port that the system chooses, in a thread of its own.
    pub fn start() -> Double {
        Double::start_with(KEY)
    }

    pub fn start_with(key: &str) -> Double {
        let shared = Arc::new(Shared {
            key: key.to_owned(),
            script: Mutex::default(),
            released: Notify::new(),
            held: Condvar::new(),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let state = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let router = Router::new().fallback(answer).with_state(state);
                tokio::select! {
                    served = axum::serve(listener, router) => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Double { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL under which it is this vendor.
    pub fn url(&self, vendor: Vendor) -> String {
        match vendor {
            Vendor::OpenAi => format!("http://{}/v1", self.address),
            Vendor::Anthropic | Vendor::Gemini | Vendor::Ollama => format!("http://{}", self.address),
        }
    }

    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.script.lock().unwrap().replies.extend(replies);
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.shared.script.lock().unwrap().seen.clone()
    }

    /// Blocks until so many replies are held.
    pub fn wait_for_held(&self, count: usize) {
        let script = self.shared.script.lock().unwrap();
        let (script, timeout) =
            self.shared.held.wait_timeout_while(script, PATIENCE, |script| script.held < count).unwrap();
        assert!(!timeout.timed_out(), "only {} replies are held, not {count}", script.held);
    }

    pub fn release(&self, name: &str) {
        self.shared.release(name);
    }

    /// Serves until the process ends.
    pub fn forever(mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn release(&self, name: &str) {
        self.script.lock().unwrap().released.insert(name.to_owned());
        self.released.notify_waiters();
    }

    /// The next reply that fits; taken from the script when it was given often enough.
    fn next(&self, body: &str) -> Reply {
        let mut script = self.script.lock().unwrap();
        let fits = |reply: &Reply| reply.when.as_ref().is_none_or(|when| body.contains(when));
        let Some(place) = script.replies.iter().position(fits) else { return Reply::default() };
        let reply = script.replies[place].clone();
        match reply.times {
            0 => {}
            1 => drop(script.replies.remove(place)),
            _ => script.replies[place].times -= 1,
        }
        reply
    }

    async fn wait_for_release(&self, name: &str) {
        let _held = Held::count(self);
        loop {
            let released = self.released.notified();
            tokio::pin!(released);
            // Registered before looking, so that no release falls in between.
            released.as_mut().enable();
            if self.script.lock().unwrap().released.contains(name) {
                return;
            }
            released.await;
        }
    }
}

/// Counts a held reply for as long as it is held; a client that leaves ends it too.
struct Held<'shared>(&'shared Shared);

impl Held<'_> {
    fn count(shared: &Shared) -> Held<'_> {
        shared.script.lock().unwrap().held += 1;
        shared.held.notify_all();
        Held(shared)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.script.lock().unwrap().held -= 1;
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let path = uri.path();
    if path == "/control" || path.starts_with("/control/") {
        return control(&shared, &method, path, &body);
    }
    let Some(vendor) = shapes::vendor_of(path).filter(|_| method == Method::POST) else {
        return respond(404, &BTreeMap::new(), json!({"error": "no such path"}).to_string());
    };
    let value: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    shared.script.lock().unwrap().seen.push(Seen {
        path: path.to_owned(),
        headers: recorded(&headers),
        body: value.clone(),
    });
    if let Err((status, message)) = shapes::check(vendor, path, &headers, &value, &shared.key) {
        return respond(status, &BTreeMap::new(), shapes::error(vendor, status, &message).to_string());
    }
    let reply = shared.next(&String::from_utf8_lossy(&body));
    if let Some(name) = &reply.hold {
        shared.wait_for_release(name).await;
    }
    if reply.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
    }
    if reply.broken {
        let pieces = [Ok(Bytes::from_static(b"{\"half\": ")), Err(std::io::Error::other("broken"))];
        return Response::new(Body::from_stream(futures_util::stream::iter(pieces)));
    }
    let text = match reply.body {
        Some(body) => body,
        None if reply.status >= 400 => {
            let message = reply.text.as_deref().unwrap_or("scripted failure");
            shapes::error(vendor, reply.status, message).to_string()
        }
        None => {
            let text = reply.text.as_deref().unwrap_or(USUAL_TEXT);
            shapes::success(vendor, path, &value, text, reply.stop.as_deref()).to_string()
        }
    };
    respond(reply.status, &reply.headers, text)
}

fn control(shared: &Shared, method: &Method, path: &str, body: &[u8]) -> Response<Body> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Order {
        #[serde(default)]
        replies: Vec<Reply>,
    }
    #[derive(Deserialize)]
    struct Release {
        hold: String,
    }
    let wrong = |error: serde_json::Error| (400, json!({"error": error.to_string()}));
    let (status, value) = match (method.as_str(), path) {
        ("POST", "/control") => match serde_json::from_slice::<Order>(body) {
            Ok(order) => {
                shared.script.lock().unwrap().replies.extend(order.replies);
                (200, json!({}))
            }
            Err(error) => wrong(error),
        },
        ("POST", "/control/release") => match serde_json::from_slice::<Release>(body) {
            Ok(release) => {
                shared.release(&release.hold);
                (200, json!({}))
            }
            Err(error) => wrong(error),
        },
        ("GET", "/control") => {
            let script = shared.script.lock().unwrap();
            let requests: Vec<_> = script
                .seen
                .iter()
                .map(|seen| json!({"path": seen.path, "headers": seen.headers, "body": seen.body}))
                .collect();
            (200, json!({"requests": requests, "held": script.held}))
        }
        ("DELETE", "/control") => {
            let mut script = shared.script.lock().unwrap();
            script.replies.clear();
            script.seen.clear();
            script.released.clear();
            (200, json!({}))
        }
        _ => (404, json!({"error": "no such control"})),
    };
    respond(status, &BTreeMap::new(), value.to_string())
}

fn respond(status: u16, headers: &BTreeMap<String, String>, body: String) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Body::from(body)).unwrap_or_default()
}

fn recorded(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers
        .iter()
        .filter(|(name, _)| !["authorization", "x-api-key", "x-goog-api-key"].contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}
