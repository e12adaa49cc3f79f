//! One connection of a case, on any transport. Messages are texts, also malformed ones.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};

use proctor_clients::ahp::client::Transport;
use proctor_core::json::Json;

use crate::ahp_hostile::websocket;
use crate::ahp_serve::agent;
use crate::ahp_serve::server::{Caller, Server, post};
use crate::conformance::{calls, proto};
use crate::support::Folder;
use crate::support::harness::Harness;

/// The transport of `proctor harness`.
pub const STDIO: &str = "stdio";

pub struct Connection {
    wire: Wire,
    /// Replies that came before a step waited for them.
    early: Vec<Json>,
}

enum Wire {
    Stdio(Box<Harness>),
    Unix(Caller),
    WebSocket(TcpStream),
    Http(SocketAddr),
    Grpc(calls::Connection),
}

impl Connection {
    pub fn open(name: &str, folder: &Folder, server: Option<&Server>) -> Connection {
        let Some(server) = server else {
            return Connection { wire: Wire::Stdio(Box::new(Harness::start(folder))), early: Vec::new() };
        };
        let (_, transport) =
            agent::all(server).into_iter().find(|(candidate, _)| *candidate == name).unwrap();
        let wire = match transport {
            Transport::Stdio { .. } => panic!("a server has no stdio"),
            Transport::UnixSocket { path } => Wire::Unix(Caller::connect(&path)),
            Transport::Http { .. } => Wire::Http(server.http),
            Transport::WebSocket { url, .. } => {
                let path = url.strip_prefix(&format!("ws://{}", server.http)).unwrap();
                Wire::WebSocket(websocket::upgraded_at(server, path))
            }
            Transport::Grpc { url, .. } => Wire::Grpc(calls::Connection::open(&url)),
        };
        Connection { wire, early: Vec::new() }
    }

    /// Whether a notification is answered by the transport itself.
    pub fn answers_notifications(&self) -> bool {
        matches!(self.wire, Wire::Http(_) | Wire::Grpc(_))
    }

    /// Sends a message; waits for the reply with this id.
    pub fn ask(&mut self, text: &str, id: &Json) -> Json {
        match &mut self.wire {
            Wire::Stdio(harness) => {
                harness.send(text.as_bytes());
                return harness.reply(id);
            }
            Wire::Http(address) => {
                let reply = posted(*address, text).expect("a body");
                assert_eq!(reply.get("id"), Some(id), "{reply}");
                return reply;
            }
            Wire::Grpc(connection) => return called(connection, text, id),
            Wire::Unix(caller) => caller.send(text),
            Wire::WebSocket(stream) => stream.write_all(&websocket::text_frame(text)).unwrap(),
        }
        loop {
            if let Some(at) = self.early.iter().position(|reply| reply.get("id") == Some(id)) {
                return self.early.remove(at);
            }
            let next = self.next().unwrap_or_else(|| panic!("the connection ended before the reply to {id}"));
            self.early.push(next);
        }
    }

    /// Sends a message that has no reply. Gives what the transport itself answers, if that is a refusal.
    pub fn notify(&mut self, text: &str) -> Option<Json> {
        match &mut self.wire {
            Wire::Stdio(harness) => harness.send(text.as_bytes()),
            Wire::Unix(caller) => caller.send(text),
            Wire::WebSocket(stream) => stream.write_all(&websocket::text_frame(text)).unwrap(),
            Wire::Http(address) => return posted(*address, text),
            Wire::Grpc(connection) => return notified(connection, text),
        }
        None
    }

    /// The next message of a stream; none at its end.
    fn next(&mut self) -> Option<Json> {
        match &mut self.wire {
            Wire::Unix(caller) => caller.next(),
            Wire::WebSocket(stream) => websocket::receive(stream),
            Wire::Stdio(_) | Wire::Http(_) | Wire::Grpc(_) => None,
        }
    }

    /// Ends the connection; gives the replies that nothing has waited for.
    pub fn close(mut self) -> Vec<Json> {
        match self.wire {
            Wire::Stdio(harness) => {
                // It looks for unexpected replies itself.
                let (code, said) = harness.close();
                assert_eq!(code, 0, "{said}");
                return self.early;
            }
            Wire::Unix(ref caller) => caller.stream.shutdown(Shutdown::Write).unwrap(),
            Wire::WebSocket(ref mut stream) => stream.write_all(&websocket::close_frame()).unwrap(),
            Wire::Http(_) | Wire::Grpc(_) => return self.early,
        }
        while let Some(reply) = self.next() {
            self.early.push(reply);
        }
        self.early
    }
}

/// Posts a message. Outcomes of the protocol have status 200; text that is no JSON has 400, an accepted notification 204.
fn posted(address: SocketAddr, text: &str) -> Option<Json> {
    let (status, body) = post(address, "/ahp", &[], text.as_bytes());
    if status == 204 {
        assert_eq!(body, "", "a body without content");
        return None;
    }
    let reply = Json::parse(body.as_bytes()).unwrap_or_else(|error| panic!("{status} `{body}`: {error}"));
    let unparsable = reply.pointer("/error/code").and_then(Json::as_i64) == Some(-32700);
    assert_eq!(status, if unparsable { 400 } else { 200 }, "{body}");
    Some(reply)
}

/// Id, method and params as the gRPC service has them. What is no object goes into the params, as it is.
fn parts(text: &str) -> (String, String, String) {
    let Ok(message @ Json::Object(_)) = Json::parse(text.as_bytes()) else {
        return (String::new(), "ahp/event".to_owned(), text.to_owned());
    };
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let id = message.get("id").map(text).unwrap_or_default();
    let method = message.get("method").map(text).unwrap_or_default();
    let params = message.get("params").map(ToString::to_string).unwrap_or_default();
    (id, method, params)
}

/// Calls; gives the answer in the form of JSON-RPC, with the id as it was sent.
fn called(connection: &calls::Connection, text: &str, id: &Json) -> Json {
    let (sent_id, method, params) = parts(text);
    let request =
        Json::object().with("id", sent_id.as_str()).with("method", method).with("params_json", params);
    let answer = grpc(connection, "Harness/Call", &request);
    let found = answer.get("id").and_then(Json::as_str).unwrap_or_default();
    // The service has text for ids only: an empty one stands for null.
    let found = match found {
        found if found == sent_id => id.clone(),
        "" => Json::Null,
        other => Json::from(other),
    };
    let reply = Json::object().with("jsonrpc", "2.0").with("id", found.clone());
    assert_eq!(&found, id, "{answer}");
    match answer.get("result_json").and_then(Json::as_str) {
        Some(result) => reply.with("result", Json::parse(result.as_bytes()).unwrap()),
        None => reply.with("error", answer.get("refusal").cloned().unwrap_or_default()),
    }
}

/// Notifies; gives a refusal in the form of JSON-RPC.
fn notified(connection: &calls::Connection, text: &str) -> Option<Json> {
    let (_, method, params) = parts(text);
    let request = Json::object().with("method", method).with("params_json", params);
    let answer = grpc(connection, "Harness/Notify", &request);
    let refusal = answer.get("refusal")?.clone();
    Some(Json::object().with("jsonrpc", "2.0").with("error", refusal))
}

fn grpc(connection: &calls::Connection, method: &str, request: &Json) -> Json {
    let method = proto::method(method).unwrap();
    let answered = connection.call(&method, std::slice::from_ref(request), &[], 1).unwrap();
    answered.unwrap_or_else(|status| panic!("{request}: {status}")).into_iter().next().expect("an answer")
}
