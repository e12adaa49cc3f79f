//! Reports outlive the program.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_wire::assembly::frames::ClientFrame;
use proctor_wire::assembly::proto::audit::v1::AuditEvent;
use proctor_wire::assembly::proto::common::v1::AgentId;

use crate::assembly_runtime::AGENT;
use crate::assembly_runtime::program::{Program, command};
use proctor_test_support::gateway::GatewayDouble;

fn report(index: usize) -> ClientFrame {
    let agent_id = Some(AgentId { agent_id: AGENT.into(), ..AgentId::default() });
    ClientFrame::EventReport(AuditEvent {
        event_id: format!("{index:04}"),
        agent_id,
        ..AuditEvent::default()
    })
}

/// Waits until the file is this long.
async fn until_length(path: &Path, length: u64) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = std::fs::metadata(path).unwrap().len();
        if found == length {
            return;
        }
        assert!(Instant::now() < deadline, "{found} bytes, not {length}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn events_of_a_killed_runtime_reach_the_gateway_that_comes_back() {
    let scratch = tempfile::tempdir().unwrap();
    let buffer = scratch.path().join("events");
    let gateway = scratch.path().join("gateway.sock");
    let endpoint = format!("unix:{}", gateway.display());
    // Fewer fit into memory than are reported.
    let variables = [
        ("AA_GATEWAY_ENDPOINT", endpoint.as_str()),
        ("AA_AUDIT_BUFFER_PATH", buffer.to_str().unwrap()),
        ("AA_PIPELINE_INPUT_BUFFER", "20"),
        ("AA_PIPELINE_BATCH_SIZE", "7"),
    ];
    let start = || Program::start(tempfile::tempdir().unwrap(), &variables, &[]);
    let mut program = start().await;
    assert!(!program.said.borrow().contains("not used"), "{}", *program.said.borrow());
    let mut library = program.library().await;
    let mut length = 16;
    for index in 0..250 {
        let mut frame = Vec::new();
        report(index).encode(&mut frame).unwrap();
        length += 12 + frame.len() as u64;
        library.send(&report(index)).await;
    }
    until_length(&buffer, length).await;
    assert_eq!(std::fs::metadata(&buffer).unwrap().permissions().mode() & 0o777, 0o600);
    program.signal(rustix::process::Signal::KILL);
    assert!(!program.ends().await.success());

    // A record that was not written to its end is none.
    let mut bytes = std::fs::read(&buffer).unwrap();
    bytes.extend_from_slice(&[200, 0, 0, 0, 1, 2, 3]);
    std::fs::write(&buffer, bytes).unwrap();
    let mut program = start().await;
    let mut library = program.library().await;
    library.send(&report(250)).await;
    let double = GatewayDouble::listen(&gateway);
    double.until(|seen| seen.events.len() >= 251).await;
    let expected: Vec<_> = (0..251).map(|index| (format!("{index:04}"), AGENT.to_owned())).collect();
    assert_eq!(double.seen.borrow().events, expected);
    // What was taken is not kept, and not sent again.
    until_length(&buffer, 16).await;
    program.signal(rustix::process::Signal::TERM);
    assert!(program.ends().await.success());
    let program = start().await;
    program.library().await.send(&report(251)).await;
    double.until(|seen| seen.events.len() > 251).await;
    assert_eq!(double.seen.borrow().events.last().unwrap().0, "0251");
}

#[tokio::test]
async fn a_stop_leaves_what_is_not_delivered_for_the_next_start() {
    let scratch = tempfile::tempdir().unwrap();
    let gateway = scratch.path().join("gateway.sock");
    let endpoint = format!("unix:{}", gateway.display());
    // A folder, as several runtimes may share it.
    let variables = [
        ("AA_GATEWAY_ENDPOINT", endpoint.as_str()),
        ("AA_AUDIT_BUFFER_PATH", scratch.path().to_str().unwrap()),
        ("AA_RUNTIME_SHUTDOWN_TIMEOUT_SECS", "1"),
    ];
    let start = || Program::start(tempfile::tempdir().unwrap(), &variables, &[]);
    let mut program = start().await;
    let mut library = program.library().await;
    library.send(&report(0)).await;
    program.says("reports wait for the gateway").await;
    let mut second = command(scratch.path(), &variables, &["--socket", "other.sock"]);
    let refused = second.env("AA_AGENT_ID", AGENT).output().await.unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("another runtime uses it"), "{said}");
    program.signal(rustix::process::Signal::TERM);
    assert!(program.ends().await.success());
    program.says("1 events wait in ").await;
    assert!(scratch.path().join("aa-runtime-agent-001.events").exists());
    let double = GatewayDouble::listen(&gateway);
    let _program = start().await;
    double.until(|seen| seen.events.len() == 1).await;
}
