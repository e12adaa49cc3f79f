//! Programs as harnesses.

use std::path::Path;
use std::time::{Duration, Instant};

use proctor_clients::ahp::EventType;
use proctor_clients::ahp::client::{AhpClient, AhpError, ClientOptions, Transport};
use serde_json::json;

/// A shell program that answers each request as soon as it has read it, and does `then` with the second one.
fn program(then: &str) -> Transport {
    let script = format!(
        r#"
        answer() {{
            id=$(printf '%s' "$line" | sed 's/.*"id":"\([^"]*\)".*/\1/')
            printf '{{"jsonrpc":"2.0","id":"%s","result":%s}}\n' "$id" "$1"
        }}
        read -r line
        answer '{{"protocol_version":"2.4","harness_info":{{"name":"sh","version":"1","capabilities":[]}}}}'
        {then}
        "#
    );
    Transport::Stdio { program: "sh".to_owned(), args: vec!["-c".to_owned(), script] }
}

fn quick() -> ClientOptions {
    ClientOptions { close_timeout: Duration::from_millis(300), ..ClientOptions::default() }
}

async fn started(then: &str) -> AhpClient {
    let client = AhpClient::connect(program(then), quick()).await.unwrap();
    client.handshake(vec![]).await.unwrap();
    client
}

fn is_alive(pid: &str) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

async fn gone(pid: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "the program is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_program_is_asked_and_answers() {
    let client =
        started(r#"while read -r line; do answer '{"decision":"block","reason":"sh says no"}'; done"#).await;
    let answer = client.send_event(EventType::PreAction, json!({"tool_name": "rm"})).await.unwrap();
    assert_eq!(answer.to_string(), r#"{"decision":"block","reason":"sh says no"}"#);
    assert_eq!(client.harness().unwrap().harness_info.name, "sh");
    client.close().await.unwrap();
}

#[tokio::test]
async fn the_death_of_the_program_is_noticed_at_once() {
    let client = started("read -r line; exit 3").await;
    let started = Instant::now();
    let error = client.send_event(EventType::PreAction, json!({})).await.unwrap_err();
    assert_eq!(error, AhpError::ConnectionClosed);
    assert!(started.elapsed() < Duration::from_secs(1));
}

/// Calls end also when a descendant still holds the output open.
#[tokio::test]
async fn the_death_of_the_program_is_noticed_while_its_output_is_held_open() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script =
        format!("read -r line; sleep 60 </dev/null 2>/dev/null & echo $! > {}; exit 3", file.display());
    let client = started(&script).await;
    let started = Instant::now();
    let error = client.send_event(EventType::PreAction, json!({})).await.unwrap_err();
    assert_eq!(error, AhpError::ConnectionClosed);
    assert!(started.elapsed() < Duration::from_secs(1));
    let sleeper: i32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(sleeper).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

#[tokio::test]
async fn the_last_words_of_a_program_count() {
    let client = started(r#"read -r line; answer '{"decision":"allow"}'; exit 0"#).await;
    client.send_event(EventType::PreAction, json!({})).await.unwrap();
}

#[tokio::test]
async fn a_dead_program_is_started_again_and_greeted() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("starts");
    let script = format!(r#"echo x >> {}; read -r line; answer '{{"decision":"allow"}}'"#, count.display());
    let client = started(&script).await;
    for _ in 0..3 {
        // Each program answers one question and ends.
        while let Err(error) = client.send_event(EventType::PreAction, json!({})).await {
            // The question may have met a program that was just ending.
            assert_eq!(error, AhpError::ConnectionClosed);
        }
    }
    assert!(std::fs::read_to_string(count).unwrap().lines().count() >= 3);
}

#[tokio::test]
async fn bytes_that_are_no_text_do_not_stop_the_reader() {
    let client = started(
        r#"while read -r line; do printf '\377\376 noise\n'; echo starting; answer '{"decision":"allow"}'; done"#,
    )
    .await;
    for _ in 0..3 {
        client.send_event(EventType::PreAction, json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn closing_ends_the_programs_input_and_collects_it() {
    let folder = tempfile::tempdir().unwrap();
    let (pid, end) = (folder.path().join("pid"), folder.path().join("end"));
    let script = format!(
        "echo $$ > {}; answer null; while read -r line; do :; done; echo polite > {}",
        pid.display(),
        end.display()
    );
    let client = started(&script).await;
    client.notify(EventType::SessionEnd, json!({})).await.unwrap();
    client.close().await.unwrap();
    assert_eq!(std::fs::read_to_string(end).unwrap(), "polite\n");
    assert!(!is_alive(std::fs::read_to_string(pid).unwrap().trim()));
}

#[tokio::test]
async fn a_program_that_does_not_go_is_ended_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let stubborn = format!("echo $$ > {}; read -r line; answer 1; exec sleep 60", pid.display());
    for drop_it in [false, true] {
        let client = started(&stubborn).await;
        client.send_event(EventType::PreAction, json!({})).await.unwrap();
        let pid = std::fs::read_to_string(&pid).unwrap();
        assert!(is_alive(pid.trim()));
        let started = Instant::now();
        if drop_it {
            drop(client);
            gone(pid.trim()).await;
        } else {
            client.close().await.unwrap();
            assert!(!is_alive(pid.trim()));
        }
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}

/// A program that never reads: the pipe fills, and the write ends in time.
#[tokio::test]
async fn a_program_that_does_not_read_freezes_nobody() {
    let options = ClientOptions { write_timeout: Duration::from_millis(300), ..quick() };
    let client = AhpClient::connect(program("exec sleep 60"), options).await.unwrap();
    client.handshake(vec![]).await.unwrap();
    let large = json!({"text": "x".repeat(1024 * 1024)});
    let error = client.send_event(EventType::PreAction, large).await.unwrap_err();
    assert_eq!(error, AhpError::Timeout { what: "write", ms: 300 });
}

#[tokio::test]
async fn a_program_that_is_not_there_is_reported() {
    let missing = Transport::Stdio { program: "/nonexistent/harness".to_owned(), args: vec![] };
    let error = AhpClient::new(missing).await.unwrap_err();
    assert!(matches!(&error, AhpError::Transport(text) if text.contains("/nonexistent/harness")), "{error}");
}
