//! `aa-gateway` from the outside: who may reach it, and as what.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A gateway that ends with the test.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program in a folder with a policy, told to listen there.
fn gateway(folder: &Path, address: &str) -> Command {
    let link = folder.join("aa-gateway");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_proctor"), &link).unwrap();
    }
    std::fs::write(folder.join("policy.yaml"), "tools: {search: {allow: true}}\n").unwrap();
    let mut command = Command::new(link);
    command.env_clear().current_dir(folder);
    command.args(["--policy", "policy.yaml", "--db-path", "gateway.db", "--listen", address]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts it; the port is the one it says.
fn start(folder: &Path, address: &str) -> (Gateway, u16) {
    let mut child = gateway(folder, address).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let port = ready.trim_end().rsplit(':').next().and_then(|port| port.parse().ok());
    (Gateway(child), port.unwrap_or_else(|| panic!("not ready: {ready}")))
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
    std::fs::write(folder.path().join("proctor.toml"), "[assembly]\nopen = true\n").unwrap();
    start(folder.path(), "0.0.0.0:0");
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
