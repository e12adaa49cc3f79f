//! Crash safety: SIGKILL under load, a full disk, truncated and damaged files.

use std::collections::HashSet;
use std::io::{BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::support::{Folder, Gate, count, seed, text};
use proctor_core::json::Json;
use proctor_core::random::SeededRandomness;

const POLICY: &str = r#"
version: "1"
default: deny
tools:
  shell: { allow: true }
rules:
  - id: no-upload-after-secrets
    when: action.tool == "upload" && session.called("read_secret")
    then: deny
  - { id: others, when: action.tool == "upload" || action.tool == "read_secret", then: allow }
"#;

/// Kills the gate at a random moment while lines stream through it. Returns the ids that were answered.
fn kill_under_load(folder: &Folder, random: &SeededRandomness) -> Vec<String> {
    let mut gate = Gate::start(folder, &[]);
    let mut stdin = gate.stdin;
    let writer = std::thread::spawn(move || {
        for index in 0..200_000u32 {
            let tool = ["upload", "read_secret", "bash"][index as usize % 3];
            let line = format!(
                "{{\"tool\":\"{tool}\",\"args\":{{\"command\":\"ls {index}\"}},\"session\":\"s{}\"}}\n",
                index % 7
            );
            if stdin.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let (sender, receiver) = sync_channel::<String>(100_000);
    let stdout = gate.stdout;
    let reader = std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            // The last line may be torn by the kill; then it was not an answer.
            let Ok(answer) = Json::parse(line.as_bytes()) else { continue };
            assert_eq!(answer.get("recorded"), Some(&Json::Bool(true)), "{answer}");
            let _ = sender.send(text(&answer, "decision_id").to_owned());
        }
    });
    // The moment is random in the number of answers, and then in time.
    let mut answered = Vec::new();
    for _ in 0..random.below(3000) {
        match receiver.recv_timeout(Duration::from_secs(20)) {
            Ok(id) => answered.push(id),
            Err(_) => break,
        }
    }
    let spins = random.below(200_000);
    for _ in 0..spins {
        std::hint::spin_loop();
    }
    gate.child.kill().unwrap();
    gate.child.wait().unwrap();
    writer.join().unwrap();
    reader.join().unwrap();
    answered.extend(receiver.try_iter());
    answered
}

#[test]
fn killed_under_load_every_answer_is_on_record_and_nothing_twice() {
    let random = SeededRandomness::new(seed());
    let folder = Folder::with_policy(POLICY);
    let mut answered = HashSet::new();
    let rounds = count(200);
    for round in 0..rounds {
        for id in kill_under_load(&folder, &random) {
            assert!(answered.insert(id), "an id was answered twice");
        }
        // Looking every time would take most of the time; the last look sees everything.
        if round % 20 == 19 || round + 1 == rounds {
            let fsck = folder.run(&["audit", "fsck"]);
            assert!(fsck.status.success(), "round {round}: {}", String::from_utf8_lossy(&fsck.stdout));
        }
    }
    let mut recorded = HashSet::new();
    let output = folder.run(&["audit", "tail", "--json", "--kind", "decision", "-n", "100000000"]);
    for record in crate::support::lines(&output) {
        assert!(recorded.insert(text(&record, "id").to_owned()), "a record is there twice");
    }
    let lost: Vec<_> = answered.difference(&recorded).collect();
    assert!(lost.is_empty(), "{} of {} answered decisions are not on record", lost.len(), answered.len());
    println!("{rounds} kills, {} answers, {} records", answered.len(), recorded.len());
    let (report, _) = folder.verify(None);
    assert_eq!(report.pointer("/derivation/different").unwrap().as_u64(), Some(0), "{report}");
}

#[test]
fn a_full_disk_denies_and_the_gap_is_on_record_afterwards() {
    let folder = Folder::with_policy(POLICY);
    let mut gate = Gate::start(&folder, &["--answer-ms", "3000"]);
    let list = r#"{"tool":"bash","args":{"command":"ls"},"session":"s"}"#;
    assert_eq!(text(&gate.ask(list), "decision"), "allow");
    let pid = rustix::process::Pid::from_raw(gate.child.id().cast_signed());
    let limit = |bytes: Option<u64>| {
        let wanted = rustix::process::Rlimit { current: bytes, maximum: None };
        rustix::process::prlimit(pid, rustix::process::Resource::Fsize, wanted).unwrap();
    };
    // Files can grow no more: to a program this is a full disk.
    limit(Some(1));
    for _ in 0..5 {
        let full = gate.ask(list);
        assert_eq!((text(&full, "decision"), text(&full, "rule")), ("deny", "not-recorded"), "{full}");
    }
    limit(None);
    let again = gate.ask(list);
    assert_eq!(text(&again, "decision"), "allow", "it recovers: {again}");
    let (code, _) = gate.end();
    assert_eq!(code, 0);
    let gaps = folder.json(&["audit", "tail", "--json", "--kind", "gap"]);
    let counted: u64 = gaps.iter().map(|gap| text(gap, "code").parse::<u64>().unwrap()).sum();
    assert_eq!(counted, 5, "{gaps:?}");
    let decisions = folder.json(&["audit", "tail", "--json", "--kind", "decision"]);
    assert_eq!(decisions.len(), 2);
    let fsck = folder.run(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
}

fn populated() -> Folder {
    let folder = Folder::with_policy(POLICY);
    let lines: String = (0..700)
        .map(|index| {
            format!(
                "{{\"tool\":\"bash\",\"args\":{{\"command\":\"ls {index}\"}},\"session\":\"s{}\"}}\n",
                index % 5
            )
        })
        .collect();
    let output = folder.run_with(&["gate"], &lines);
    assert_eq!(crate::support::lines(&output).len(), 700);
    folder
}

/// Content of the ledger: every record with its body.
fn everything(folder: &Folder) -> Option<Vec<u8>> {
    let bundle = folder.path("everything.bundle");
    let exported = folder.run(&["audit", "export", "--output", bundle.to_str().unwrap()]);
    exported.status.success().then(|| std::fs::read(bundle).unwrap())
}

#[test]
fn a_truncated_ledger_is_refused_and_explained() {
    let folder = populated();
    let database = folder.state().join("ledger.db");
    let length = std::fs::metadata(&database).unwrap().len();
    for cut in [length - 1, length - 4096, length / 2, 4096, 100, 0] {
        let copy = copy_of(&folder);
        let file = std::fs::OpenOptions::new().write(true).open(copy.state().join("ledger.db")).unwrap();
        file.set_len(cut).unwrap();
        drop(file);
        let before = std::fs::read(copy.state().join("ledger.db")).unwrap();
        let gate = copy.run_with(&["gate"], "{\"tool\":\"bash\"}\n");
        assert_ne!(gate.status.code(), Some(0), "cut at {cut}");
        assert!(gate.stdout.is_empty(), "cut at {cut}");
        assert!(!gate.stderr.is_empty());
        assert_eq!(
            std::fs::read(copy.state().join("ledger.db")).unwrap(),
            before,
            "a damaged ledger was written over"
        );
        let fsck = copy.run(&["audit", "fsck"]);
        assert_eq!(fsck.status.code(), Some(12), "cut at {cut}: {}", String::from_utf8_lossy(&fsck.stdout));
    }
}

#[test]
fn a_flipped_byte_is_found_or_changes_nothing() {
    let random = SeededRandomness::new(seed());
    let folder = populated();
    let original = everything(&folder).unwrap();
    let length = std::fs::metadata(folder.state().join("ledger.db")).unwrap().len();
    for _ in 0..count(200).max(20) {
        let copy = copy_of(&folder);
        let at = random.below(length);
        let mut file =
            std::fs::OpenOptions::new().read(true).write(true).open(copy.state().join("ledger.db")).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        let mut byte = [0u8];
        file.read_exact(&mut byte).unwrap();
        file.write_all_at(&[byte[0] ^ (1 << random.below(8))], at).unwrap();
        drop(file);
        let fsck = copy.run(&["audit", "fsck"]);
        match fsck.status.code() {
            Some(12) => {}
            // Space that is not in use: then nothing that can be read differs.
            Some(0) => assert_eq!(
                everything(&copy).as_ref(),
                Some(&original),
                "a flipped bit at byte {at} was not found"
            ),
            other => panic!("byte {at}: {other:?} {}", String::from_utf8_lossy(&fsck.stderr)),
        }
    }
}

#[test]
fn a_torn_last_page_of_the_log_loses_nothing_that_was_committed_before_it() {
    let folder = Folder::with_policy(POLICY);
    let mut gate = Gate::start(&folder, &[]);
    for index in 0..50 {
        gate.ask(&format!("{{\"tool\":\"bash\",\"args\":{{\"command\":\"ls {index}\"}}}}"));
    }
    gate.child.kill().unwrap();
    gate.child.wait().unwrap();
    let log = folder.state().join("ledger.db-wal");
    let length = std::fs::metadata(&log).unwrap().len();
    assert!(length > 4096, "the log holds what was committed last");
    let file = std::fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.write_all_at(&[0xAA; 2000], length - 2000).unwrap();
    drop(file);
    // The last commit is gone as a whole; the ledger before it is sound.
    let mut gate = Gate::start(&folder, &[]);
    assert_eq!(text(&gate.ask("{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}"), "decision"), "allow");
    gate.end();
    let fsck = folder.run(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
    let decisions = folder.json(&["audit", "tail", "--json", "--kind", "decision", "-n", "100"]);
    assert!(decisions.len() >= 45, "{}", decisions.len());
}

fn copy_of(folder: &Folder) -> Folder {
    let copy = Folder { dir: tempfile::tempdir().unwrap() };
    std::fs::create_dir_all(copy.state().join("run")).unwrap();
    for entry in std::fs::read_dir(folder.state()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, copy.state().join(path.file_name().unwrap())).unwrap();
        }
    }
    for name in ["policy.yaml", "proctor.toml"] {
        std::fs::copy(folder.path(name), copy.path(name)).unwrap();
    }
    copy
}
