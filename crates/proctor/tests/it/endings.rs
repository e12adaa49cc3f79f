//! Exit codes of `proctor gate` and `proctor harness`: signals under load, answers that cannot be written, denies that stay off the record.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::support::{Folder, Gate, text};

const ALLOW: &str = "version: \"1\"\ndefault: allow\n";
const LINE: &str = "{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"},\"session\":\"s\"}\n";

#[test]
fn a_signal_under_load_ends_the_gate_with_its_code() {
    for round in 0..12 {
        let folder = Folder::with_policy(ALLOW);
        let mut gate = Gate::start(&folder, &[]);
        let mut stdin = gate.stdin;
        let feeder = std::thread::spawn(move || while stdin.write_all(LINE.as_bytes()).is_ok() {});
        for _ in 0..20 {
            gate.stdout.read_exact(&mut [0; 100]).unwrap();
        }
        let mut stdout = gate.stdout;
        let reader = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        let (signal, code) = match round % 2 {
            0 => (rustix::process::Signal::TERM, 143),
            _ => (rustix::process::Signal::INT, 130),
        };
        let pid = rustix::process::Pid::from_raw(gate.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(gate.child.wait().unwrap().code(), Some(code), "round {round}");
        feeder.join().unwrap();
        reader.join().unwrap().unwrap();
    }
}

#[test]
fn answers_that_cannot_be_written_and_input_that_cannot_be_read_are_failures() {
    let event = "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"ahp/event\",\"params\":{\"event_type\":\"pre_action\",\"session_id\":\"s\",\"agent_id\":\"a\",\"timestamp\":\"\",\"depth\":0,\"payload\":{\"tool_name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}}}\n";
    let folder = Folder::with_policy(ALLOW);
    for (command, line) in [("gate", LINE), ("harness", event)] {
        folder.write("in", line);
        let input = || std::fs::File::open(folder.path("in")).unwrap();
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = folder.command(&[command]).stdin(input()).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command} with a full disk as stdout: {said}");
        assert!(said.contains("stdout"), "{said}");
        let nowhere = std::fs::File::open(folder.dir.path()).unwrap();
        let output = folder.command(&[command]).stdin(nowhere).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command} with a folder as stdin: {said}");
        assert!(said.contains("stdin"), "{said}");
        // A reader that goes away is no failure.
        let (read, write) = rustix::pipe::pipe().unwrap();
        drop(read);
        let output = folder.command(&[command]).stdin(input()).stdout(Stdio::from(write)).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_gap_that_cannot_be_written_is_a_failure() {
    let folder = Folder::with_policy(ALLOW);
    let mut gate = Gate::start(&folder, &["--answer-ms", "3000"]);
    assert_eq!(text(&gate.ask(LINE.trim_end()), "decision"), "allow");
    let pid = rustix::process::Pid::from_raw(gate.child.id().cast_signed());
    let wanted = rustix::process::Rlimit { current: Some(1), maximum: None };
    // Files can grow no more: to a program this is a full disk.
    rustix::process::prlimit(pid, rustix::process::Resource::Fsize, wanted).unwrap();
    for _ in 0..3 {
        assert_eq!(text(&gate.ask(LINE.trim_end()), "rule"), "not-recorded");
    }
    let (code, said) = gate.end();
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("3 actions were denied without a record"), "{said}");
}
