//! The agent under test, which is this program started again, and the floors: what the same work costs without Proctor.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// First argument of the agent. The environment of an agent is emptied, so its role is an argument.
const ROLE: &str = "--agent-with-events";

/// Task id in the requests of the floors.
const TASK: &str = "550e8400-e29b-41d4-a716-446655440000";

/// Address of the agent for `--agent`.
pub fn agent(events: usize) -> Result<String, Failure> {
    let program = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    Ok(format!("stdio:'{}' {ROLE} {events}", program.display()))
}

/// Is the agent, if this process was started as one.
pub fn run() -> Option<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(ROLE) {
        return None;
    }
    let events = arguments.next()?.parse().ok()?;
    Some(if answer(events).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn answer(events: usize) -> std::io::Result<()> {
    let mut request = String::new();
    std::io::stdin().read_to_string(&mut request)?;
    let task = task_id(&request);
    if events > 0 {
        let mut out = std::io::BufWriter::new(std::io::stderr().lock());
        for sequence in 0..events {
            writeln!(out, "{}", event(task, sequence))?;
        }
        out.flush()?;
    }
    std::io::stdout().write_all(response(task).as_bytes())
}

/// Task id of a request.
pub fn task_id(request: &str) -> &str {
    let after = request.split_once("\"task_id\":\"").map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default()
}

/// Response of a completed task.
pub fn response(task: &str) -> String {
    format!(
        r#"{{"version":"1.0","task_id":"{task}","status":"completed","artifacts":[{{"type":"file","path":"out.txt","content":"hello"}}],"metrics":{{"total_steps":1,"total_tokens":120}}}}"#
    )
}

fn event(task: &str, sequence: usize) -> String {
    format!(
        r#"{{"version":"1.0","task_id":"{task}","timestamp":"2026-01-01T00:00:00Z","sequence":{sequence},"event_type":"tool_call","payload":{{"tool":"search","input":{{"query":"the weather in place {sequence}","limit":10}},"output":{{"results":["sunny","warm"]}},"duration_ms":12,"status":"success"}}}}"#
    )
}

/// Request like those that Proctor sends.
pub fn request() -> String {
    format!(
        r#"{{"version":"1.0","task_id":"{TASK}","task":{{"description":"Say hello"}},"constraints":{{"timeout_seconds":300}},"context":{{"workspace_path":"/tmp/workspace"}},"metadata":{{"test_id":"t1","test_name":"T","run_number":1,"total_runs":1}}}}"#
    )
}

/// Time to start the agent, send it a request, and read and parse everything it writes.
pub fn spawn(events: usize) -> Result<Duration, Failure> {
    let program = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let begin = Instant::now();
    let mut child = Command::new(program)
        .args([ROLE, &events.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the agent cannot be started: {error}"))?;
    let (Some(mut stdin), Some(mut stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("the agent has no pipes".into());
    };
    let read = || -> Result<(), std::io::Error> {
        stdin.write_all(request().as_bytes())?;
        stdin.write_all(b"\n")?;
        drop(stdin);
        let mut seen = 0;
        let mut lines = BufReader::with_capacity(64 * 1024, stderr);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            let value: serde_json::Value = serde_json::from_slice(&line)?;
            seen += usize::from(value.get("event_type").is_some());
            line.clear();
        }
        let mut response = Vec::new();
        stdout.read_to_end(&mut response)?;
        let value: serde_json::Value = serde_json::from_slice(&response)?;
        if seen != events || value.get("status").is_none() {
            return Err(std::io::Error::other("the agent said something else"));
        }
        child.wait().map(drop)
    };
    read().map_err(|error| format!("the agent: {error}"))?;
    Ok(begin.elapsed())
}
