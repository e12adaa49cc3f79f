//! Users of this machine: loopback without tokens is for the user whom the server runs as.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;

use proctor_core::json::Json;
use proctor_ledger::reader::BodyState;
use rustix::process::Signal;

use crate::ahp_serve::server::{Server, pre_action, records};
use crate::support::{Folder, text};

const NOBODY: u32 = 65534;

/// Sends a request over HTTP/1 and returns the reply, as another user or as this one.
fn exchange(address: SocketAddr, request: &str, uid: Option<u32>) -> String {
    let mut command = Command::new("bash");
    let script = "exec 3<>/dev/tcp/127.0.0.1/$0 && printf '%s' \"$1\" >&3 && timeout 30 cat <&3";
    command.args(["-c", script, &address.port().to_string(), request]).current_dir("/");
    if let Some(uid) = uid {
        command.uid(uid).gid(uid);
    }
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}

fn requests(server: &Server) -> [(&'static str, SocketAddr, String); 4] {
    let body = pre_action("1", "s", "look");
    let head = |path: &str, kind: &str, length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let upgrade = "GET /ahp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned();
    let call = |path: &str| head(path, "application/grpc", 0);
    [
        ("http", server.http, format!("{}{body}", head("/ahp", "application/json", body.len()))),
        ("websocket", server.http, upgrade),
        ("grpc", server.grpc, call("/proctor.ahp.v1.Harness/Call")),
        ("assembly", server.grpc, call("/assembly.agent.v1.AgentLifecycleService/Register")),
    ]
}

fn is_refused(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 401") || answer.to_lowercase().contains("grpc-status: 16")
}

#[test]
fn another_user_is_refused_on_every_loopback_transport_and_this_one_is_not() {
    let folder = Folder::with_policy(super::server::POLICY);
    let server = Server::start(&folder);
    for (name, address, request) in requests(&server) {
        let answer = exchange(address, &request, None);
        assert!(answer.starts_with("HTTP/1.1 ") && !is_refused(&answer), "{name}: {answer}");
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root can call as another user");
        return server.stop();
    }
    for _ in 0..5 {
        for (name, address, request) in requests(&server) {
            let answer = exchange(address, &request, Some(NOBODY));
            assert!(is_refused(&answer), "{name}: {answer}");
        }
    }
    server.end(Signal::TERM);
    // One at once, and one for the other nineteen.
    let alarms = records(&folder, "alarm");
    let refused: Vec<_> = alarms.iter().filter(|alarm| text(alarm, "code") == "caller_refused").collect();
    assert_eq!(refused.len(), 2, "{alarms:?}");
    let reader = proctor_ledger::Reader::open(&folder.state()).unwrap();
    let counted: u64 = refused
        .iter()
        .map(|alarm| {
            let sequence = alarm.get("seq").unwrap().as_u64().unwrap();
            let BodyState::Present { bytes, .. } = reader.body(sequence).unwrap() else { panic!("no body") };
            let body = Json::parse(&bytes).unwrap();
            let about = body.get("about").unwrap();
            assert_eq!(text(about, "peer"), "uid:65534");
            about.get("count").unwrap().as_u64().unwrap()
        })
        .sum();
    assert_eq!(counted, 20);
}
