use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use proctor_core::action::{Action, ActionKind};
use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_ledger::Reader;
use proctor_wire::assembly::chain::{Chain, Entry, EventType, Outcome, Verifier};

use super::*;
use crate::fixture::{Fixture, SECRET, append, decide, decide_on, envelope, lines, registered};

const SOON: Duration = Duration::from_secs(60);

fn written(fixture: &Fixture) -> Vec<u8> {
    fs::read(fixture.audit().join("gateway-default.jsonl")).unwrap()
}

fn entries(fixture: &Fixture) -> Vec<Entry> {
    lines(&fixture.audit()).iter().map(|line| Entry::parse(line).unwrap()).collect()
}

fn payload(entry: &Entry) -> Json {
    Json::parse(entry.payload.as_bytes()).unwrap()
}

fn verified(fixture: &Fixture) -> u64 {
    let mut verifier = Verifier::default();
    for line in lines(&fixture.audit()) {
        verifier.line(&line);
    }
    match verifier.finish() {
        Outcome::Verified { entries } => entries,
        other => panic!("{other:?}"),
    }
}

/// Writes the log of a ledger that nobody owns, to its end.
fn complete(fixture: &Fixture) {
    complete_with(fixture, &Reader::open(fixture.state().path()).unwrap());
}

fn complete_with(fixture: &Fixture, reader: &Reader) {
    let stop = Stop::default();
    stop.ask(Instant::now() + SOON);
    Writer::open(&fixture.audit(), reader.clone()).unwrap().run(&stop).unwrap();
}

/// A ledger with a record of every kind that has a line, and of some that have none.
fn varied() -> Fixture {
    let fixture = Fixture::new();
    let engine = fixture.engine();
    decide(&engine, "look", "a", Effect::Allow);
    decide(&engine, "publish", "b", Effect::Ask);
    decide(&engine, "drop", "c", Effect::Deny);
    decide(&engine, "look", SECRET, Effect::Redact);
    engine.finish();
    drop(engine);
    let ledger = fixture.ledger();
    let asked = {
        let reader = ledger.reader();
        let ask = (0..reader.size().unwrap())
            .find(|seq| reader.envelope(*seq).unwrap().decision == Some(Effect::Ask))
            .unwrap();
        (ask, reader.envelope(ask).unwrap().approval)
    };
    append(&ledger, registered("root", "", 0), None);
    append(&ledger, registered("a", "agent:root", 1), None);
    let mut approval = envelope(RecordKind::Approval, "allow");
    approval.principal = "approver:ann".to_owned();
    approval.approval = asked.1;
    approval.links = vec![asked.0];
    append(&ledger, approval, None);
    append(
        &ledger,
        envelope(RecordKind::Observation, "event"),
        Some(
            r#"{"data":{"event_id":"e1","action_type":"TOOL_CALL","trace_id":"trace-2","detail":{"tool_call":{"tool_name":"grep","latency_ms":3}}}}"#,
        ),
    );
    append(&ledger, envelope(RecordKind::Observation, "response"), Some("{}"));
    for percent in [80, 95, 100] {
        let body = format!(
            r#"{{"key":"daily","account":"agent","unit":"usd","percent":{percent},"spent":"4","limit":"5"}}"#
        );
        append(&ledger, envelope(RecordKind::Alarm, "budget_threshold"), Some(&body));
    }
    let mut alarm = envelope(RecordKind::Alarm, "loop");
    alarm.links = vec![asked.0];
    append(&ledger, alarm, None);
    append(&ledger, envelope(RecordKind::Agent, "suspended"), None);
    append(&ledger, envelope(RecordKind::Agent, "forgotten"), None);
    append(&ledger, envelope(RecordKind::Session, ""), None);
    ledger.close();
    fixture
}

#[test]
fn each_record_that_is_expected_is_one_line_in_order() {
    let fixture = varied();
    complete(&fixture);
    let entries = entries(&fixture);
    let types: Vec<u32> = entries.iter().map(|entry| entry.event_type.number()).collect();
    // The policy; four decisions; two registrations; a grant; an event; three thresholds; an alarm; two more of the agent.
    assert_eq!(types, [22, 0, 3, 1, 2, 22, 22, 4, 0, 6, 6, 7, 1, 22, 11]);
    assert_eq!(verified(&fixture), 15);
    let reader = Reader::open(fixture.state().path()).unwrap();
    let places: Vec<u64> = entries
        .iter()
        .map(|entry| reader.by_id(&entry.decision_id.as_ref().unwrap().parse().unwrap()).unwrap().unwrap())
        .collect();
    assert!(places.is_sorted_by(|one, next| one < next));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&fixture.audit()), 0o700);
    assert_eq!(mode(&fixture.audit().join("gateway-default.jsonl")), 0o600);
}

#[test]
fn a_check_says_what_auditors_look_for() {
    let fixture = varied();
    complete(&fixture);
    let entries = entries(&fixture);
    let allowed = payload(&entries[1]);
    let names: Vec<&str> = allowed.as_object().unwrap().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "action_type",
            "action",
            "decision",
            "verdict",
            "latency_ms",
            "latency_us",
            "reason",
            "policy_rule",
            "policy_doc_id",
            "agent_id_claimed",
            "agent_identity_assurance",
            "caller_agent_id",
            "callee_agent_id",
            "trace_id",
            "span_id",
            "org_id",
            "team_id",
            "agent_id_hex",
            "session_id_hex",
            "root_agent_id",
            "parent_agent_id",
            "depth",
            "delegation_reason",
            "spawned_by_tool",
        ]
    );
    assert_eq!(allowed["action"].as_str(), Some("look"));
    assert_eq!(allowed["action_type"].as_u64(), Some(2));
    assert_eq!(allowed["policy_rule"].as_str(), Some("looking-is-fine"));
    assert_eq!(allowed["agent_identity_assurance"].as_str(), Some("bound"));
    assert_eq!(allowed["span_id"].as_str(), Some("span-1"));
    let verdicts: Vec<String> =
        entries[1..5].iter().map(|entry| payload(entry)["verdict"].as_str().unwrap().to_owned()).collect();
    assert_eq!(verdicts, ["allow", "pending", "deny", "scrub"]);
    let digest = proctor_core::digest::Digest::of(b"did:key:zA");
    assert_eq!(entries[1].agent_id, digest.as_bytes()[..16]);
    let trace = proctor_core::digest::Digest::of(b"trace-1");
    assert_eq!(entries[1].session_id, trace.as_bytes()[..16]);
    assert_eq!((entries[1].team_id.as_deref(), entries[1].org_id.as_deref()), (Some("t"), Some("o")));
    assert!(entries[1].policy_doc_id.as_ref().unwrap().starts_with("sha256:"));
    // Later records of the agent tell of its lineage; earlier ones did not know it yet.
    assert_eq!(entries[1].root_agent_id, None);
    let root = proctor_core::digest::Digest::of(b"o/t/did:key:zROOT");
    for entry in [&entries[6], &entries[8], &entries[14]] {
        assert_eq!(entry.root_agent_id.unwrap(), root.as_bytes()[..16]);
        assert_eq!(entry.parent_agent_id.unwrap(), root.as_bytes()[..16]);
        assert_eq!(entry.depth, Some(1));
        assert_eq!(entry.spawned_by_tool.as_deref(), Some("spawn"));
    }
    // The whole event that was reported.
    let event = payload(&entries[8]);
    assert_eq!(event["action"].as_str(), Some("grep"));
    assert_eq!(event.pointer("/event/detail/tool_call/latency_ms").unwrap().as_u64(), Some(3));
}

#[test]
fn secrets_are_named_and_never_written() {
    let fixture = varied();
    complete(&fixture);
    let redacted = &entries(&fixture)[4];
    assert_eq!(redacted.event_type, EventType::CredentialLeakBlocked);
    assert!(!redacted.credential_findings.is_empty());
    assert!(redacted.redacted_payload.as_ref().unwrap().contains("REDACTED"), "{redacted:?}");
    assert!(!String::from_utf8(written(&fixture)).unwrap().contains(SECRET));
    for entry in entries(&fixture).iter().filter(|entry| !entry.credential_findings.is_empty()) {
        let payload = entry.redacted_payload.as_ref().unwrap();
        assert!(Json::parse(payload.as_bytes()).is_ok(), "{payload}");
    }
}

#[test]
fn a_secret_in_a_path_is_named_and_never_written() {
    let fixture = Fixture::new();
    let engine = fixture.engine();
    decide_on(
        &engine,
        Action {
            kind: ActionKind::FileOperation,
            operation: "read".to_owned(),
            path: format!("/home/me/{SECRET}/notes"),
            ..Action::default()
        },
        Effect::Deny,
    );
    engine.finish();
    drop(engine);
    complete(&fixture);
    let last = entries(&fixture).pop().unwrap();
    assert!(!last.credential_findings.is_empty());
    let payload = Json::parse(last.redacted_payload.unwrap().as_bytes()).unwrap();
    assert_eq!(payload["text"].as_str(), Some("/home/me/[REDACTED:AwsAccessKey]/notes"));
    assert!(!String::from_utf8(written(&fixture)).unwrap().contains(SECRET));
}

#[test]
fn a_kill_at_any_byte_of_the_last_lines_leaves_the_same_log() {
    let fixture = varied();
    complete(&fixture);
    let whole = written(&fixture);
    let path = fixture.audit().join("gateway-default.jsonl");
    let breaks: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place + 1).collect();
    let from = breaks[breaks.len() - 3];
    let reader = Reader::open(fixture.state().path()).unwrap();
    for end in (from..whole.len()).chain([0, 1]) {
        fs::write(&path, &whole[..end]).unwrap();
        complete_with(&fixture, &reader);
        assert!(written(&fixture) == whole, "cut at {end}");
    }
    // Blocks that were never written read as zeros.
    fs::write(&path, [&whole[..from], &[0; 5000]].concat()).unwrap();
    complete(&fixture);
    assert!(written(&fixture) == whole);
    // A last line that was damaged with its end in place.
    fs::write(&path, [&whole[..from + 40], b"\n"].concat()).unwrap();
    complete(&fixture);
    assert!(written(&fixture) == whole);
}

#[test]
fn a_log_that_follows_live_is_the_one_that_is_written_later() {
    let fixture = Fixture::new();
    let engine = fixture.engine();
    let live = ChainFollower::start(&fixture.audit(), engine.ledger().reader(), |_| ()).unwrap();
    for number in 0..600 {
        decide(&engine, "look", &number.to_string(), Effect::Allow);
    }
    engine.finish();
    live.finish(Instant::now() + SOON).unwrap();
    assert_eq!(verified(&fixture), 601);
    let first = written(&fixture);
    drop(engine);
    // Another start adds what came since, and nothing twice.
    let engine = fixture.engine();
    let live = ChainFollower::start(&fixture.audit(), engine.ledger().reader(), |_| ()).unwrap();
    decide(&engine, "drop", "x", Effect::Deny);
    engine.finish();
    live.finish(Instant::now() + SOON).unwrap();
    assert_eq!(verified(&fixture), 602);
    assert!(written(&fixture).starts_with(&first));
    let both = written(&fixture);
    fs::remove_dir_all(fixture.audit()).unwrap();
    complete(&fixture);
    assert!(written(&fixture) == both);
}

#[test]
fn a_log_of_another_program_goes_on() {
    let fixture = varied();
    complete(&fixture);
    let own = lines(&fixture.audit()).len() as u64;
    let path = fixture.audit().join("gateway-default.jsonl");
    let mut chain = Chain::default();
    let foreign = |chain: &mut Chain, id: Option<&str>| {
        let mut entry = Entry::new(EventType::ToolCallIntercepted, 5, [1; 16], [2; 16], "{}".to_owned());
        entry.decision_id = id.map(str::to_owned);
        let sealed = chain.seal(entry).unwrap();
        chain.written(&sealed);
        format!("{}\n", sealed.line)
    };
    let other = "0190f6a0-0000-7000-8000-000000000001";
    let text = [None, Some("not an id"), Some(other)].map(|id| foreign(&mut chain, id)).concat();
    fs::write(&path, &text).unwrap();
    complete(&fixture);
    assert_eq!(verified(&fixture), 3 + own);
    assert!(written(&fixture).starts_with(text.as_bytes()));
    // Lines of the other program behind ours: ours are found, and not written again.
    let mut chain = Chain::after(entries(&fixture).last().unwrap());
    let more: String = (0..50).map(|_| foreign(&mut chain, None)).collect();
    fs::write(&path, [written(&fixture), more.into_bytes()].concat()).unwrap();
    complete(&fixture);
    assert_eq!(verified(&fixture), 3 + own + 50);
}

#[test]
fn what_is_no_log_is_left_alone() {
    let fixture = varied();
    fs::create_dir(fixture.audit()).unwrap();
    let path = fixture.audit().join("gateway-default.jsonl");
    for text in ["notes\n", "notes\nmore notes\n"] {
        fs::write(&path, text).unwrap();
        let reader = Reader::open(fixture.state().path()).unwrap();
        let problem = ChainFollower::start(&fixture.audit(), reader, |_| ()).unwrap_err().to_string();
        assert!(problem.contains("audit log"), "{problem}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_log_that_was_tampered_with_is_reported_at_the_start() {
    let fixture = varied();
    let path = fixture.audit().join("gateway-default.jsonl");
    let reported = || {
        let reader = Reader::open(fixture.state().path()).unwrap();
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let follower = ChainFollower::start(&fixture.audit(), reader, move |problem| {
            tell.send(problem.to_owned()).unwrap();
        });
        follower.unwrap().finish(Instant::now() + SOON).unwrap();
        told.try_recv().ok()
    };
    assert_eq!(reported(), None);
    assert_eq!(reported(), None, "a whole log");
    let whole = fs::read_to_string(&path).unwrap();
    let removed: String = whole.lines().skip(1).step_by(2).flat_map(|line| [line, "\n"]).collect();
    for (changed, line) in [
        (whole.replacen("drop", "look", 1), "line 4: "),
        (removed, "line 2: "),
        (format!("{whole}{}\n", whole.lines().next().unwrap()), "line 16: "),
    ] {
        fs::write(&path, changed).unwrap();
        let problem = reported().unwrap();
        assert!(problem.contains(line) && problem.contains("gateway-default.jsonl"), "{problem}");
    }
}

#[test]
fn only_one_program_writes_a_log() {
    let fixture = varied();
    let reader = || Reader::open(fixture.state().path()).unwrap();
    let first = ChainFollower::start(&fixture.audit(), reader(), |_| ()).unwrap();
    let problem = ChainFollower::start(&fixture.audit(), reader(), |_| ()).unwrap_err().to_string();
    assert!(problem.contains("another program writes it"), "{problem}");
    first.finish(Instant::now() + SOON).unwrap();
    complete(&fixture);
    assert_eq!(verified(&fixture), 15);
}

#[test]
fn after_an_error_the_log_goes_on_behind_its_last_whole_line() {
    let fixture = varied();
    complete(&fixture);
    let whole = written(&fixture);
    fs::remove_file(fixture.audit().join("gateway-default.jsonl")).unwrap();
    let reader = Reader::open(fixture.state().path()).unwrap();
    let mut writer = Writer::open(&fixture.audit(), reader).unwrap();
    let stop = Stop::default();
    stop.ask(Instant::now() + SOON);
    // Somebody writes into the file: that is an error, and the next round finds its way.
    let path = fixture.audit().join("gateway-default.jsonl");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(writer.round(&stop).unwrap_err().to_string().contains("another program has changed it"));
    assert!(writer.round(&stop).unwrap());
    assert!(written(&fixture) == whole);
    // A file that is gone is written anew.
    fs::remove_file(&path).unwrap();
    assert!(writer.round(&stop).unwrap_err().to_string().contains("moved or removed"));
    assert!(writer.round(&stop).unwrap());
    assert!(written(&fixture) == whole);
}

#[test]
fn an_erased_body_still_has_its_line() {
    let fixture = varied();
    let ledger = fixture.ledger();
    let reader = ledger.reader();
    let size = reader.size().unwrap();
    let decisions: Vec<u64> =
        (0..size).filter(|seq| reader.envelope(*seq).unwrap().kind == RecordKind::Decision).collect();
    for seq in &decisions {
        let mut erasure = envelope(RecordKind::Erasure, "erased");
        erasure.links = vec![*seq];
        ledger.erase(*seq, erasure).wait().unwrap();
    }
    ledger.close();
    complete(&fixture);
    assert_eq!(verified(&fixture), 15);
    let denied = payload(&entries(&fixture)[3]);
    assert_eq!(denied["verdict"].as_str(), Some("deny"));
    assert_eq!(denied["action"].as_str(), Some("drop"));
    assert_eq!(denied["reason"].as_str(), Some(""));
}

const ALONE: &str = "PROCTOR_TEST_FILE_LIMIT";

#[test]
fn a_full_disk_is_waited_out() {
    // The limit on the size of files holds for a whole process, so this test has one of its own.
    if std::env::var_os(ALONE).is_none() {
        let name = "chain::tests::a_full_disk_is_waited_out";
        let own = std::env::current_exe().unwrap();
        let run = std::process::Command::new(own).args(["--exact", name]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let fixture = varied();
    complete(&fixture);
    let whole = written(&fixture);
    let path = fixture.audit().join("gateway-default.jsonl");
    fs::remove_file(&path).unwrap();
    let reader = Reader::open(fixture.state().path()).unwrap();
    let mut writer = Writer::open(&fixture.audit(), reader).unwrap();
    let stop = Stop::default();
    stop.ask(Instant::now() + SOON);
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default()).unwrap();
    let limit = |bytes: Option<u64>| {
        let limit = rustix::process::Rlimit { current: bytes, maximum: None };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    };
    for share in [5, 3, 2] {
        limit(Some(whole.len() as u64 / share));
        let problem = writer.round(&stop).unwrap_err().to_string();
        assert!(problem.contains("gateway-default.jsonl"), "{problem}");
        assert!(whole.starts_with(&written(&fixture)));
    }
    limit(None);
    assert!(writer.round(&stop).unwrap());
    assert!(written(&fixture) == whole);
}
