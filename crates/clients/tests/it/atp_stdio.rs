//! The client of agents that run as a process, over pipes and with real processes.

use std::process::Stdio;

use bytes::Bytes;
use proctor_clients::atp::client::stdio::{Pipes, execute};
use proctor_clients::atp::client::{Exchange, ExecuteError, Item, MAX_MESSAGE, OutputError};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::process::{Child, Command};

use crate::support::atp::{EVENT, REQUEST, RESPONSE, Transcript, transcript};

/// The agent's ends of the pipes.
struct Agent {
    stdin: DuplexStream,
    stdout: DuplexStream,
    stderr: DuplexStream,
}

/// Pipes as small as they can be, so that everything blocks that can block.
fn agent(capacity: usize) -> (Exchange, Agent) {
    let (stdin, agent_stdin) = duplex(capacity);
    let (stdout, agent_stdout) = duplex(capacity);
    let (stderr, agent_stderr) = duplex(capacity);
    let pipes = Pipes { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr) };
    let agent = Agent { stdin: agent_stdin, stdout: agent_stdout, stderr: agent_stderr };
    (execute(pipes, Bytes::from_static(REQUEST.as_bytes())), agent)
}

/// What an agent that writes this gives.
async fn said(stdout: impl Into<Vec<u8>>, stderr: impl Into<Vec<u8>>) -> Transcript {
    let (exchange, agent) = agent(1024);
    let Agent { mut stdin, stdout: mut out, stderr: mut err } = agent;
    let (stdout, stderr) = (stdout.into(), stderr.into());
    let running = async move {
        let mut request = Vec::new();
        stdin.read_to_end(&mut request).await.unwrap();
        assert_eq!(request, format!("{REQUEST}\n").as_bytes());
        let writing_out = async move {
            out.write_all(&stdout).await.unwrap();
        };
        let writing_err = async move {
            err.write_all(&stderr).await.unwrap();
        };
        tokio::join!(writing_out, writing_err);
    };
    tokio::join!(transcript(exchange), running).0
}

#[tokio::test]
async fn the_request_is_one_line_and_the_end_of_input() {
    let (mut exchange, mut agent) = agent(8);
    let mut request = Vec::new();
    let reading = async {
        agent.stdin.read_to_end(&mut request).await.unwrap();
        drop((agent.stdout, agent.stderr));
    };
    let (_, ()) = tokio::join!(exchange.next(), reading);
    assert_eq!(request, format!("{REQUEST}\n").as_bytes());
}

#[tokio::test]
async fn events_come_from_among_log_lines_and_before_the_response() {
    let log = format!("INFO starting\r\n{EVENT}\n\n{{not json}}\n[1]\n  {EVENT}\n\u{1b}[31mdone");
    let got = said(format!("{RESPONSE}\n"), log).await;
    let event = EVENT.to_owned();
    let padded = format!("  {EVENT}");
    assert_eq!(got.messages, [(event, false), (padded, false), (RESPONSE.to_owned(), true)]);
    assert_eq!(got.lines, ["INFO starting", "", "{not json}", "[1]", "\u{1b}[31mdone"]);
    assert_eq!(got.errors, []);
}

#[tokio::test]
async fn the_response_may_stand_among_other_lines_or_over_several() {
    let pretty = RESPONSE.replace(',', ",\n  ");
    for (stdout, expected) in [
        (RESPONSE.to_owned(), RESPONSE),
        (format!("Loading model…\n{RESPONSE}\nBye\n"), &format!("Loading model…\n{RESPONSE}\nBye")),
        (format!("{pretty}\n\n"), &pretty),
    ] {
        let got = said(stdout.clone(), "").await;
        assert_eq!(got.messages, [(expected.to_owned(), true)], "{stdout}");
        assert_eq!(got.errors, []);
    }
    let twice = said(format!("{RESPONSE}\n{RESPONSE}\n"), "").await;
    assert_eq!(twice.texts(), [format!("{RESPONSE}\n{RESPONSE}")]);
}

/// Defect 11: crashes and bad output are reported without a reason.
#[tokio::test]
async fn defect_11_an_output_without_a_response_says_what_it_was() {
    for (stdout, expected) in [
        ("", OutputError::Empty),
        (" \n\n", OutputError::Empty),
        (
            "Segmentation fault\n",
            OutputError::NoResponse { start: "Segmentation fault".to_owned(), syntax: None },
        ),
        (
            "{\"status\":\"completed\"",
            OutputError::NoResponse {
                start: "{\"status\":\"completed\"".to_owned(),
                syntax: Some("EOF while parsing an object at line 2 column 0".to_owned()),
            },
        ),
        ("[1]\n", OutputError::NoResponse { start: "[1]".to_owned(), syntax: None }),
    ] {
        let error = said(stdout, "").await.error();
        assert_eq!(error, ExecuteError::Output { problem: expected, request_was_read: true });
    }
}

#[tokio::test]
async fn the_last_lines_are_kept_for_a_diagnosis() {
    let (mut exchange, mut agent) = agent(64 * 1024);
    for number in 0..30 {
        agent.stderr.write_all(format!("line {number}\n{EVENT}\n").as_bytes()).await.unwrap();
    }
    drop(agent);
    let mut errors = Vec::new();
    loop {
        match exchange.next().await {
            Ok(Item::End) => break,
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    assert_eq!(errors.len(), 1);
    let lines = exchange.last_lines();
    assert_eq!((lines.len(), lines[0].as_str(), lines[19].as_str()), (20, "line 10", "line 29"));
}

/// An agent that answers without reading its request is not blamed; one that does not answer is told about it.
#[tokio::test]
async fn a_closed_input_is_an_error_only_without_a_response() {
    let (exchange, mut silent) = agent(8);
    drop(silent.stdin);
    silent.stdout.write_all(b"x\n").await.unwrap();
    drop((silent.stdout, silent.stderr));
    let error = transcript(exchange).await.error();
    assert!(matches!(error, ExecuteError::Output { request_was_read: false, .. }), "{error:?}");

    let (exchange, mut hasty) = agent(1024);
    drop(hasty.stdin);
    hasty.stdout.write_all(RESPONSE.as_bytes()).await.unwrap();
    drop((hasty.stdout, hasty.stderr));
    assert_eq!(transcript(exchange).await.texts(), [RESPONSE]);

    // Nor is one that leaves its input open and unread.
    let (exchange, mut deaf) = agent(8);
    let stdin = deaf.stdin;
    let answering = async move {
        deaf.stdout.write_all(RESPONSE.as_bytes()).await.unwrap();
        drop((deaf.stdout, deaf.stderr));
    };
    let (got, ()) = tokio::join!(transcript(exchange), answering);
    assert_eq!(got.texts(), [RESPONSE]);
    drop(stdin);
}

/// Processes that the agent left behind may hold its standard error open: the response comes all the same.
#[tokio::test]
async fn an_open_standard_error_does_not_hold_back_the_response() {
    let (mut exchange, agent) = agent(1024);
    let Agent { stdin, mut stdout, mut stderr } = agent;
    stderr.write_all(format!("{EVENT}\n").as_bytes()).await.unwrap();
    stdout.write_all(RESPONSE.as_bytes()).await.unwrap();
    drop((stdin, stdout));
    let mut next = async || match exchange.next().await.unwrap() {
        Item::Message(message) => message.text,
        item => panic!("{item:?}"),
    };
    assert_eq!(next().await, EVENT);
    assert_eq!(next().await, RESPONSE);
    // What still comes is still read.
    stderr.write_all(format!("{EVENT}\n").as_bytes()).await.unwrap();
    assert_eq!(next().await, EVENT);
    drop(stderr);
    assert_eq!(exchange.next().await, Ok(Item::End));
}

/// Defect 10: more than 64 KiB in an event line fail the run.
#[tokio::test]
async fn defect_10_event_lines_may_be_long() {
    let long = format!("{{\"event_type\":\"{}\"}}", "x".repeat(5 << 20));
    let got = said(RESPONSE, format!("{long}\n{}\n", "y".repeat(1 << 20))).await;
    // The two outputs have no common order.
    let mut lengths: Vec<usize> = got.texts().iter().map(|text| text.len()).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [RESPONSE.len(), long.len()]);
    assert_eq!(got.lines[0].len(), 1 << 20);
}

#[tokio::test]
async fn overlong_lines_are_cut_off_and_block_nobody() {
    let long = vec![b'x'; 3 * MAX_MESSAGE];
    let mut stderr = long.clone();
    stderr.extend_from_slice(format!("\n{EVENT}\n").as_bytes());
    let got = said(RESPONSE, stderr).await;
    assert_eq!(got.errors, [ExecuteError::TooLong]);
    assert_eq!(got.messages.len(), 2, "reading goes on after the line");

    let mut stdout = long.clone();
    stdout.extend_from_slice(format!("\n{RESPONSE}\n").as_bytes());
    assert_eq!(said(stdout, "").await.texts(), [RESPONSE]);
    let error = said(long, "").await.error();
    assert!(matches!(error, ExecuteError::Output { problem: OutputError::TooLong, .. }), "{error:?}");
}

#[tokio::test]
async fn floods_on_both_outputs_are_read_at_the_same_time() {
    let stdout = format!("{}{RESPONSE}\n", "noise\n".repeat(200_000));
    let stderr = format!("{EVENT}\n").repeat(20_000);
    let got = said(stdout, stderr).await;
    assert_eq!((got.messages.len(), got.errors.len()), (20_001, 0));
}

#[tokio::test]
async fn silence_can_be_cancelled_and_nothing_is_lost() {
    let (mut exchange, mut agent) = agent(1024);
    let (first, second) = EVENT.split_at(20);
    agent.stderr.write_all(first.as_bytes()).await.unwrap();
    tokio::select! {
        biased;
        item = exchange.next() => panic!("{item:?}"),
        () = tokio::task::yield_now() => {}
    }
    agent.stderr.write_all(format!("{second}\n").as_bytes()).await.unwrap();
    assert!(matches!(exchange.next().await, Ok(Item::Message(message)) if message.text == EVENT));
    drop(exchange);
    // The agent sees that nobody reads any more.
    assert!(agent.stderr.write_all(b"x").await.is_err() && agent.stdout.write_all(b"x").await.is_err());
}

/// A real process, with real pipes.
fn start(script: &str) -> (Exchange, Child) {
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pipes = Pipes {
        stdin: Box::new(child.stdin.take().unwrap()),
        stdout: Box::new(child.stdout.take().unwrap()),
        stderr: Box::new(child.stderr.take().unwrap()),
    };
    (execute(pipes, Bytes::from_static(REQUEST.as_bytes())), child)
}

/// Defect 10: megabytes on standard output, while standard error is open, block the agent until its time limit.
#[tokio::test]
async fn defect_10_megabytes_on_standard_output_before_standard_error_closes() {
    let script = format!(
        "head -c 3000000 /dev/zero | tr '\\0' ' '; echo '{RESPONSE}'; exec >&-; echo '{EVENT}' >&2; cat >/dev/null"
    );
    let (exchange, mut child) = start(&script);
    let got = transcript(exchange).await;
    assert_eq!(got.errors, []);
    assert_eq!(got.messages.len(), 2);
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_process_that_reads_nothing_may_answer() {
    let (exchange, mut child) = start(&format!("exec <&-; echo '{EVENT}' >&2; echo '{RESPONSE}'"));
    assert_eq!(transcript(exchange).await.texts(), [EVENT, RESPONSE]);
    child.wait().await.unwrap();
}

#[tokio::test]
async fn a_crash_leaves_its_last_words() {
    let (mut exchange, _child) = start("echo 'Traceback: no module' >&2; exit 3");
    let mut error = None;
    loop {
        match exchange.next().await {
            Ok(Item::End) => break,
            Ok(_) => {}
            Err(problem) => error = Some(problem),
        }
    }
    assert!(matches!(error, Some(ExecuteError::Output { problem: OutputError::Empty, .. })), "{error:?}");
    assert_eq!(exchange.last_lines(), ["Traceback: no module"]);
}
