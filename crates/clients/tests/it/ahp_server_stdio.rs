//! Standard input and output, in a process of its own: this test program again, as the harness.

use std::process::Stdio;

use crate::support::probe::{Probe, ask, assert_decides, assert_refuses, value};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const CHILD: &str = "PROCTOR_TEST_STDIO_HARNESS";

/// Does nothing unless it is the child.
#[tokio::test]
async fn harness() {
    if std::env::var_os(CHILD).is_some() {
        Probe::server().run_stdio().await.unwrap();
    }
}

struct Harness {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Harness {
    fn start() -> Harness {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ahp_server_stdio::harness", "--nocapture", "--quiet"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Harness { input: child.stdin.take(), child, output }
    }

    async fn answer(&mut self, line: &[u8]) -> Value {
        let input = self.input.as_mut().unwrap();
        input.write_all(&[line, b"\n"].concat()).await.unwrap();
        loop {
            // The test program says a little of its own.
            let line = self.output.next_line().await.unwrap().unwrap();
            if line.starts_with('{') {
                return value(&line);
            }
        }
    }
}

#[tokio::test]
async fn a_harness_survives_what_it_is_told_and_ends_with_its_input() {
    let mut harness = Harness::start();
    assert_decides(&harness.answer(ask("1", "ok").as_bytes()).await, "1", "allow");
    assert_refuses(&harness.answer(b"\xff\xfe").await, json!(null), -32700);
    assert_decides(&harness.answer(ask("2", "panic").as_bytes()).await, "2", "block");
    assert_decides(&harness.answer(ask(3, "ok").as_bytes()).await, 3, "allow");
    drop(harness.input.take());
    assert!(harness.child.wait().await.unwrap().success());
}
