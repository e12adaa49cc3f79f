//! `proctor audit …`

use std::path::Path;

use super::Transcript;

#[test]
fn tail() {
    let mut transcript = Transcript::with_ledger();
    transcript.run_all(&[
        "audit tail",
        "audit tail --kind decision --session s1 -n 1",
        "audit tail --json -n 2",
    ]);
    transcript.check("audit_tail");
}

#[test]
fn tail_of_nothing() {
    let mut transcript = Transcript::with_ledger();
    transcript.run_all(&[
        "audit tail --kind gap",
        "audit tail --kind decison",
        "audit tail --kind everything",
        "audit tail --since yesterday",
        "audit tail --session nobody",
        "audit tail -n x",
    ]);
    transcript.check("audit_tail_mistakes");
}

#[test]
fn export() {
    let mut transcript = Transcript::with_ledger();
    transcript.run_all(&[
        "audit export -o whole.bundle",
        "audit export -o whole.bundle --json",
        "audit export --session s2 -o part.bundle",
        "audit export --tiles tiles",
        "audit export --kind gap -o none.bundle",
        "audit export",
        "audit export -o no/such/folder",
    ]);
    transcript.check("audit_export");
}

/// Writes a trust file with the key of this ledger.
fn trust(transcript: &Transcript) {
    let key = transcript.member("init", "ledger");
    transcript.write("trust.txt", &format!("log {key}\n"));
}

#[test]
fn verify() {
    let mut transcript = Transcript::with_ledger();
    transcript.prepare("audit export -o whole.bundle");
    trust(&transcript);
    transcript.run_all(&[
        "audit verify whole.bundle",
        "audit verify whole.bundle --trust trust.txt",
        "audit verify whole.bundle --trust trust.txt --json",
        "audit verify whole.bundle --trust trust.txt --no-derivation",
    ]);
    transcript.check("audit_verify");
}

/// Changes the first occurrence of some bytes of a file to others of the same length.
fn change(path: &Path, from: &[u8], to: &[u8]) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn verify_of_what_was_changed() {
    let mut transcript = Transcript::with_ledger();
    transcript.prepare("audit export -o whole.bundle");
    trust(&transcript);
    let whole = transcript.folder.path("whole.bundle");
    for name in ["envelope.bundle", "body.bundle", "short.bundle"] {
        std::fs::copy(&whole, transcript.folder.path(name)).unwrap();
    }
    change(&transcript.folder.path("envelope.bundle"), b"coder", b"codex");
    change(&transcript.folder.path("body.bundle"), b"needle-in-a-body", b"Needle-in-a-body");
    let short = std::fs::File::options().write(true).open(transcript.folder.path("short.bundle")).unwrap();
    short.set_len(100).unwrap();
    let other = Transcript::with_ledger();
    trust(&other);
    std::fs::copy(other.folder.path("trust.txt"), transcript.folder.path("strangers.txt")).unwrap();
    transcript.write("misspelt.txt", "lgo x\n");
    transcript.run_all(&[
        "audit verify envelope.bundle",
        "audit verify body.bundle",
        "audit verify short.bundle",
        "audit verify whole.bundle --trust strangers.txt",
        "audit verify whole.bundle --at-least 100",
        "audit verify whole.bundle --trust misspelt.txt",
        "audit verify policy.yaml",
        "audit verify nowhere.bundle",
    ]);
    transcript.check("audit_verify_mistakes");
}

#[test]
fn fsck() {
    let mut transcript = Transcript::with_ledger();
    transcript.run_all(&["audit fsck", "audit fsck --json"]);
    let database = transcript.folder.state().join("ledger.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    change(&database, b"needle-in-a-body", b"Needle-in-a-body");
    transcript.run_all(&["audit fsck", "audit fsck --json"]);
    transcript.check("audit_fsck");
}

#[test]
fn prove() {
    let mut transcript = Transcript::with_ledger();
    trust(&transcript);
    transcript.run("audit prove 2");
    let proof = String::from_utf8(transcript.prepare("audit prove 2").stdout).unwrap();
    let check = |transcript: &mut Transcript, arguments: &str, proof: &str| {
        let line = format!("audit prove --check{arguments}");
        let output = transcript.execute(&line, proof);
        transcript.append(&line, "", &output);
    };
    check(&mut transcript, "", &proof);
    check(&mut transcript, " --trust trust.txt", &proof);
    check(&mut transcript, " --trust trust.txt", &proof.replacen("index 2", "index 1", 1));
    check(&mut transcript, "", "nonsense\n");
    transcript.run_all(&["audit prove --consistency 3", "audit prove 99", "audit prove x", "audit prove"]);
    transcript.check("audit_prove");
}

#[test]
fn erase() {
    let mut transcript = Transcript::with_ledger();
    transcript.run_all(&[
        "audit erase 2 --reason 'personal data'",
        "audit erase 2 --reason again",
        "audit erase 3 --reason 'personal data' --json",
        "audit erase 99 --reason x",
        "audit erase 4",
        "audit tail --kind erasure",
        "session show s1",
    ]);
    transcript.check("audit_erase");
}

#[test]
fn witness() {
    let mut transcript = Transcript::with_ledger();
    transcript.run_all(&[
        "audit witness --witness ../witness --name archive",
        "audit witness --witness ../witness --json",
    ]);
    std::fs::remove_file(transcript.folder.dir.path().join("witness/seen")).unwrap();
    transcript.run("audit witness --witness ../witness");
    transcript.check("audit_witness");
}

#[test]
fn verify_chain() {
    let mut transcript = Transcript::empty();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/audit.md");
    let page = std::fs::read_to_string(page).unwrap();
    let entry = page.lines().find(|line| line.contains(r#"'{"seq":0,"#)).unwrap();
    let entry = entry.split('\'').nth(1).unwrap();
    transcript.write("log.jsonl", &format!("{entry}\n"));
    transcript.write("late.jsonl", &format!("{}\n", &entry[..entry.len() - 9]));
    transcript.write("changed.jsonl", &format!("{}\n", entry.replace("\"seq\":0", "\"seq\":1")));
    transcript.write("empty.jsonl", "");
    transcript.run_all(&[
        "audit verify-chain log.jsonl",
        "audit verify-chain log.jsonl --json",
        "audit verify-chain changed.jsonl",
        "audit verify-chain changed.jsonl --json",
        "audit verify-chain late.jsonl",
        "audit verify-chain empty.jsonl",
        "audit verify-chain nowhere.jsonl",
    ]);
    transcript.check("audit_verify_chain");
}
