//! `proctor audit verify-chain` from the outside.

use std::io::Write;
use std::process::{Output, Stdio};

use crate::support::{Folder, lines, text};
use proctor_core::json::Json;
use proctor_wire::assembly::chain::{Chain, Entry, EventType, Finding, MAX_LINE_BYTES};

/// A log of so many entries, without those whose sequences are lost.
fn log(count: u64, lost: &[u64]) -> Vec<String> {
    let mut chain = Chain::default();
    let mut log = Vec::new();
    for seq in 0..count {
        if lost.contains(&seq) {
            chain.lost();
            continue;
        }
        let payload = format!("{{\"action\":\"tool-{seq}\"}}");
        let entry = Entry::new(EventType::ToolCallIntercepted, 1_000 + seq, [1; 16], [2; 16], payload);
        let sealed = chain.seal(entry).unwrap();
        log.push(sealed.line.clone());
        chain.written(&sealed);
    }
    log
}

fn folder() -> Folder {
    let folder = Folder { dir: tempfile::tempdir().unwrap() };
    std::fs::create_dir_all(folder.path("")).unwrap();
    folder
}

/// Result of the command for a file with these lines: the exit code, the text and the JSON.
fn verify<L: AsRef<str>>(lines_of_file: &[L]) -> (i32, String, Json) {
    let text: String = lines_of_file.iter().map(|line| format!("{}\n", line.as_ref())).collect();
    verify_bytes(text.as_bytes())
}

fn verify_bytes(bytes: &[u8]) -> (i32, String, Json) {
    let folder = folder();
    std::fs::write(folder.path("log.jsonl"), bytes).unwrap();
    let plain = folder.run(&["audit", "verify-chain", "log.jsonl"]);
    let json = folder.run(&["audit", "verify-chain", "log.jsonl", "--json"]);
    assert_eq!(plain.status.code(), json.status.code());
    assert_eq!(said(&plain), "");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 1, "it leaves nothing behind");
    let report = lines(&json).remove(0);
    (plain.status.code().unwrap(), String::from_utf8(plain.stdout).unwrap(), report)
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn number(report: &Json, name: &str) -> u64 {
    report.get(name).and_then(Json::as_u64).unwrap_or_else(|| panic!("{name}: {report}"))
}

fn hex(hash: [u8; 32]) -> String {
    proctor_core::hex::encode(hash)
}

#[test]
fn a_whole_log_is_verified() {
    let log = log(3, &[]);
    let head = hex(Entry::parse(&log[2]).unwrap().entry_hash);
    let (code, printed, report) = verify(&log);
    assert_eq!(code, 0);
    assert!(printed.starts_with("verified\n  entries     3, seq 0 to 2\n"), "{printed}");
    assert!(printed.contains(&head), "{printed}");
    assert_eq!(text(&report, "verdict"), "verified");
    assert_eq!(text(&report, "head"), head);
    assert_eq!(["entries", "first_seq", "last_seq"].map(|name| number(&report, name)), [3, 0, 2]);
}

#[test]
fn an_empty_log_is_verified_and_says_what_that_is_worth() {
    let (code, printed, report) = verify::<&str>(&[]);
    assert_eq!(code, 0);
    assert!(printed.contains("nothing is in it"), "{printed}");
    assert!(report.get("head").unwrap().is_null());
}

#[test]
fn entries_that_never_reached_the_file_make_it_incomplete() {
    let (code, printed, report) = verify(&log(10, &[2, 3, 6]));
    assert_eq!(code, 13);
    assert!(printed.starts_with("incomplete\n  entries     7, seq 0 to 9\n"), "{printed}");
    assert!(printed.contains("missing     3 in 2 gaps: seq 2 to 3, seq 6\n"), "{printed}");
    assert_eq!((number(&report, "missing"), number(&report, "gap_count")), (3, 2));
    assert_eq!(report.get("gaps").unwrap().to_string(), r#"[{"first":2,"last":3},{"first":6,"last":6}]"#);
}

#[test]
fn many_gaps_are_counted_and_a_few_are_shown() {
    let odd: Vec<u64> = (0..100).filter(|seq| seq % 2 == 1).collect();
    let (code, printed, report) = verify(&log(101, &odd));
    assert_eq!(code, 13);
    assert!(printed.contains("seq 15, and 42 more gaps\n"), "{printed}");
    assert_eq!(report.get("gaps").unwrap().as_array().unwrap().len(), 32);
}

#[test]
fn a_log_that_begins_later_is_incomplete() {
    let (code, printed, report) = verify(&log(5, &[])[2..]);
    assert_eq!(code, 13);
    assert!(printed.contains("begins      with seq 2, after an entry that is not here: "), "{printed}");
    assert_eq!(report.get("begins_late").and_then(Json::as_bool), Some(true));
    let (code, printed, _) = verify(&log(3, &[0]));
    assert_eq!(code, 13);
    assert!(printed.contains("begins      with seq 1: nothing was written before it\n"), "{printed}");
}

#[test]
fn a_last_line_that_was_cut_off_is_incomplete() {
    let log = log(3, &[]);
    let whole = log.join("\n");
    let (code, printed, report) = verify_bytes(&whole.as_bytes()[..whole.len() - 40]);
    assert_eq!(code, 13);
    assert!(printed.contains("cut off     line 3, the last: it is not whole JSON: "), "{printed}");
    assert_eq!(report.pointer("/torn/line").and_then(Json::as_u64), Some(3));
    // Without its last line break a line is whole.
    assert_eq!(verify_bytes(whole.as_bytes()).0, 0);
}

/// The exit code, and the problem's kind, line, expected and found.
fn problem<L: AsRef<str>>(lines_of_file: &[L]) -> (String, u64, String, String) {
    let (code, printed, report) = verify(lines_of_file);
    assert_eq!(code, 12, "{printed}");
    assert!(printed.starts_with("tampered\n  line        "), "{printed}");
    let problem = report.get("problem").unwrap();
    for name in ["expected", "found"] {
        assert!(printed.contains(text(problem, name)), "{printed}");
    }
    let texts = |name| text(problem, name).to_owned();
    (texts("kind"), number(problem, "line"), texts("expected"), texts("found"))
}

#[test]
fn a_changed_entry_is_found() {
    let mut log = log(4, &[]);
    let stated = hex(Entry::parse(&log[1]).unwrap().entry_hash);
    log[1] = log[1].replace("tool-1", "tool-7");
    let computed = hex(Entry::parse(&log[1]).unwrap().hash());
    assert_eq!(problem(&log), ("hash".to_owned(), 2, computed, stated));
}

#[test]
fn a_removed_entry_is_found() {
    let mut log = log(4, &[]);
    let hashes = [0, 1].map(|at: usize| hex(Entry::parse(&log[at]).unwrap().entry_hash));
    log.remove(1);
    let [expected, found] = hashes;
    assert_eq!(problem(&log), ("link".to_owned(), 2, expected, found));
}

#[test]
fn an_entry_with_a_sequence_that_was_there_is_found() {
    let log = log(2, &[]);
    let mut again = Entry::parse(&log[1]).unwrap();
    again.previous_hash = again.entry_hash;
    again.entry_hash = again.hash();
    let expected = ("order".to_owned(), 3, "a sequence above 1".to_owned(), "1".to_owned());
    assert_eq!(problem(&[&log[0], &log[1], &again.to_line()]), expected);
}

#[test]
fn a_finding_that_was_given_another_kind_is_found() {
    let mut entry = Entry::new(EventType::CredentialLeakBlocked, 5, [1; 16], [2; 16], "{}".to_owned());
    entry.credential_findings.push(Finding::new("OpenAiKey", 7));
    let line = Chain::default().seal(entry).unwrap().line;
    let line = line.replace(r#""kind":"OpenAiKey""#, r#""kind":"Custom""#);
    let expected = ("label".to_owned(), 1, "[REDACTED:OpenAiKey]".to_owned(), "Custom".to_owned());
    assert_eq!(problem(&[line]), expected);
}

#[test]
fn lines_that_cannot_be_read_are_found_and_shown_tamely() {
    let log = log(2, &[]);
    for bad in ["\u{1b}[31mred", "{}", &log[1].replace("ToolCallIntercepted", "New\\u001b[2J")] {
        assert_eq!(problem(&[&log[0], bad, &log[1]]).0, "unreadable", "{bad}");
        let (_, printed, _) = verify(&[&log[0], bad, &log[1]]);
        assert!(!printed.contains('\u{1b}') && printed.contains("1 valid before it, seq 0\n"), "{printed}");
    }
}

/// The line is longer than any memory for it, and never ends; the command does not wait for its end.
#[test]
fn a_line_without_end_is_given_up() {
    let folder = folder();
    let mut command = folder.command(&["audit", "verify-chain", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let block = vec![b'x'; 1 << 20];
    let mut written = 0;
    while stdin.write_all(&block).is_ok() {
        written += block.len();
        assert!(written < 4 * MAX_LINE_BYTES, "it reads without end");
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(12));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("longer than 16777216 bytes"), "{printed}");
}

#[test]
fn a_dash_is_stdin() {
    let text: String = log(3, &[]).iter().map(|line| format!("{line}\n")).collect();
    let output = folder().run_with(&["audit", "verify-chain", "-", "--json"], &text);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(number(&lines(&output)[0], "entries"), 3);
}

#[test]
fn a_file_that_cannot_be_read_is_no_verdict() {
    let folder = folder();
    std::fs::create_dir(folder.path("folder")).unwrap();
    for file in ["absent.jsonl", "folder"] {
        let output = folder.run(&["audit", "verify-chain", file]);
        assert_eq!(output.status.code(), Some(1), "{file}");
        assert!(output.stdout.is_empty() && said(&output).contains(file), "{}", said(&output));
    }
}
