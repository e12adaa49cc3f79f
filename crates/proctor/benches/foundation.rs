//! The hot paths, each beside its floor in the same run: `cargo bench -p proctor --bench foundation`.
//! Prints a table for `docs/performance.md`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    unreachable_pub,
    clippy::needless_pass_by_value,
    clippy::items_after_statements,
    clippy::drop_non_drop,
    clippy::needless_for_each,
    reason = "measured on demand, by people"
)]

use std::collections::VecDeque;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_core::action::Action;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::random::SeededRandomness;
use proctor_core::record::{Envelope, RecordKind};
use proctor_core::session::Caller;
use proctor_core::time::{ManualClock, Timestamp};
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::store::Durability;
use proctor_ledger::{Draft, Ledger, Options};
use proctor_policy::evaluate::evaluate;
use proctor_policy::input::Input;
use proctor_policy::judge::{Request, judge};
use proctor_policy::policy::{Policy, Source};
use proctor_policy::prepare::prepare;
use proctor_policy::state::State;

fn main() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    println!("| what | measured |\n|---|---|");
    row(
        "floor: SHA-256 of 500 bytes",
        micros(per_call(20_000, || {
            black_box(Digest::of(black_box(&[7u8; 500])));
        })),
    );
    row("floor: fdatasync of 500 bytes, p50", micros(fdatasync(scratch.path())));
    row("floor: SQLite, one row a commit, WAL, FULL, p50", micros(sqlite_single(scratch.path())));
    row("floor: SQLite, 1000 rows a commit, WAL, FULL", per_second(sqlite_batches(scratch.path())));
    row("floor: pipe echo through `cat`, p50", micros(pipe_echo(Command::new("cat"), "x")));
    decisions();
    row("append, one at a time, power, p50", micros(append_single(&scratch.path().join("single"))));
    row(
        "append, 1000 in flight, power, 500-byte bodies",
        per_second(append_many(&scratch.path().join("many"))),
    );
    gate(scratch.path());
    let spawn = spawn_time("true", &[]);
    let version = spawn_time(env!("CARGO_BIN_EXE_proctor"), &["--version"]);
    row("floor: spawning `true`, p50", micros(spawn));
    row(
        "`proctor --version`, p50",
        format!("{} ({:.1} × floor)", micros(version), version.as_secs_f64() / spawn.as_secs_f64()),
    );
}

fn row(what: &str, measured: String) {
    println!("| {what} | {measured} |");
}

fn micros(time: Duration) -> String {
    format!("{:.2} µs", time.as_secs_f64() * 1e6)
}

fn per_second(rate: f64) -> String {
    format!("{rate:.0}/s")
}

fn per_call(calls: u32, mut call: impl FnMut()) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed() / calls
}

/// The median of single calls.
fn median(calls: usize, mut call: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..calls)
        .map(|_| {
            let start = Instant::now();
            call();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn fdatasync(folder: &std::path::Path) -> Duration {
    let mut file = std::fs::File::create(folder.join("fdatasync")).expect("a file");
    median(500, || {
        file.write_all(&[7; 500]).expect("a write");
        file.sync_data().expect("a sync");
    })
}

fn sqlite(folder: &std::path::Path, name: &str) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(folder.join(name)).expect("a database");
    connection
        .execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t(seq INTEGER PRIMARY KEY, leaf BLOB);")
        .expect("a table");
    connection
}

fn sqlite_single(folder: &std::path::Path) -> Duration {
    let connection = sqlite(folder, "single.db");
    median(500, || {
        connection.execute("INSERT INTO t(leaf) VALUES (?1)", [&[7u8; 500][..]]).expect("an insert");
    })
}

fn sqlite_batches(folder: &std::path::Path) -> f64 {
    let mut connection = sqlite(folder, "batches.db");
    let start = Instant::now();
    for _ in 0..200 {
        let transaction = connection.transaction().expect("a transaction");
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO t(leaf) VALUES (?1)").expect("a statement");
            for _ in 0..1000 {
                insert.execute([&[7u8; 500][..]]).expect("an insert");
            }
        }
        transaction.commit().expect("a commit");
    }
    200_000.0 / start.elapsed().as_secs_f64()
}

fn pipe_echo(mut command: Command, line: &str) -> Duration {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let mut stdin = child.stdin.take().expect("its input");
    let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
    let mut answer = String::new();
    let time = median(3000, || {
        writeln!(stdin, "{line}").expect("a write");
        answer.clear();
        stdout.read_line(&mut answer).expect("an answer");
    });
    drop(stdin);
    let _ = child.wait();
    time
}

/// 100 rules over 20 tools, half of them with a session condition. `indexed`: each names its tool, so five are left.
fn hundred_rules(indexed: bool) -> Policy {
    let mut text = String::from("version: \"1\"\ndefault: allow\nrules:\n");
    for tool in 0..20 {
        for rule in 0..5 {
            let tool_part = if indexed {
                format!("action.tool == \"tool_{tool}\" && ")
            } else {
                format!("action.depth < {} && ", 1000 + tool)
            };
            let rest = if (tool * 5 + rule) % 2 == 0 {
                format!("session.called(\"read_{rule}_*\") && action.args.command.contains(\"secret\")")
            } else {
                "action.args.command.contains(\"rm -rf\")".to_owned()
            };
            text.push_str(&format!(
                "  - id: r-{tool}-{rule}\n    when: '{tool_part}{rest}'\n    then: deny\n"
            ));
        }
    }
    Policy::compile(vec![Source::document("bench.yaml", &text)])
        .unwrap_or_else(|problems| panic!("{}", problems[0]))
}

fn decisions() {
    let sent = br#"{"tool":"tool_7","args":{"command":"cargo build --release","timeout":30},"cwd":"/repo","session":"s"}"#;
    let value = Json::parse(sent).expect("JSON");
    let Json::Object(members) = value else { panic!("an object") };
    let action =
        Action::from_json(&Json::Object(members.into_iter().filter(|(name, _)| name != "session").collect()))
            .expect("an action");
    let randomness = SeededRandomness::new(1);
    let now = Timestamp::from_micros(1_790_000_000_000_000);
    let caller = Caller { principal: "uid:1000/bench".into(), team: String::new(), org: String::new() };
    let session = SessionId::new(now, &randomness);
    let fresh_approval = ApprovalId::new(now, &randomness);
    let record = RecordId::new(now, &randomness);
    let mut state = State::default();
    for index in 0..200u64 {
        let mut envelope = Envelope::new(RecordId::new(now, &randomness), now, RecordKind::Decision);
        envelope.session = Some(session);
        envelope.principal.clone_from(&caller.principal);
        envelope.tool = format!("tool_{}", index % 20);
        envelope.decision = Some(proctor_core::decision::Effect::Allow);
        state.apply(index, &envelope);
    }
    for (name, policy) in [
        ("five of 100 conditions left by the index", hundred_rules(true)),
        ("all 100 conditions run", hundred_rules(false)),
    ] {
        let prepared = prepare(&policy, &action, None);
        let digest = action.digest(&[7; 32], &caller.principal, &prepared.facts.tool);
        let input = Input {
            facts: prepared.facts.clone(),
            findings: Vec::new(),
            caller: caller.clone(),
            agent: "bench".into(),
            session,
            digest,
            now,
            fresh_approval,
        };
        let view = state.view(&caller, session, digest, now);
        assert!(evaluate(&policy, &input, &view).decision.effect.lets_through());
        let evaluated = median(20_000, || drop(black_box(evaluate(&policy, black_box(&input), &view))));
        row(&format!("decision, {name}, p50"), micros(evaluated));
        let whole = median(20_000, || {
            let prepared = prepare(&policy, black_box(&action), None);
            let request = Request {
                action: &action,
                prepared,
                caller: &caller,
                agent: "bench",
                session,
                digest,
                now,
                record,
                fresh_approval,
            };
            drop(black_box(judge(&policy, request, &view)));
        });
        row(
            &format!("the same with normalising, scanning and the record's body, {name}, p50"),
            micros(whole),
        );
    }
}

fn ledger(folder: &std::path::Path) -> Ledger {
    let key = SecretKey::from_seed("bench", Algorithm::Ed25519, &[3; 32]).expect("a key");
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_790_000_000_000_000)));
    let mut options = Options::new(key, clock, Arc::new(SeededRandomness::new(7)));
    options.durability = Durability::Power;
    Ledger::open(folder, options).expect("a ledger")
}

fn draft(randomness: &SeededRandomness) -> Draft {
    let now = Timestamp::from_micros(1_790_000_000_000_000);
    let mut envelope = Envelope::new(RecordId::new(now, randomness), now, RecordKind::Observation);
    envelope.principal = "uid:1000/bench".into();
    envelope.agent = "bench".into();
    envelope.code = "measured".into();
    let mut draft = Draft::new(envelope);
    draft.body = Some(vec![b'x'; 500]);
    draft
}

fn append_single(folder: &std::path::Path) -> Duration {
    let ledger = ledger(folder);
    let randomness = SeededRandomness::new(2);
    median(500, || drop(ledger.append(draft(&randomness)).wait().expect("a receipt")))
}

fn append_many(folder: &std::path::Path) -> f64 {
    const RECORDS: usize = 300_000;
    let ledger = ledger(folder);
    let randomness = SeededRandomness::new(3);
    let mut waiting = VecDeque::with_capacity(1000);
    let start = Instant::now();
    for _ in 0..RECORDS {
        if waiting.len() == 1000 {
            let pending: proctor_ledger::Pending = waiting.pop_front().expect("one waits");
            pending.wait().expect("a receipt");
        }
        waiting.push_back(ledger.append(draft(&randomness)));
    }
    waiting.into_iter().for_each(|pending| drop(pending.wait().expect("a receipt")));
    RECORDS as f64 / start.elapsed().as_secs_f64()
}

/// The program from the outside: one line at a time, a stream of lines, and what verifying them costs.
fn gate(scratch: &std::path::Path) {
    let program = env!("CARGO_BIN_EXE_proctor");
    let folder = scratch.join("gate");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("policy.yaml"), include_str!("../../../schemas/examples/balanced.yaml"))
        .expect("a policy");
    std::fs::write(folder.join("proctor.toml"), "policy = \"policy.yaml\"\n").expect("settings");
    let line =
        r#"{"tool":"read_file","args":{"path":"src/main.rs","offset":10},"cwd":"/repo","session":"bench"}"#;
    let mut command = Command::new(program);
    command.arg("gate").current_dir(&folder);
    row("gate, one line at a time, balanced policy, p50", micros(pipe_echo(command, line)));
    const LINES: usize = 4_000;
    let mut child = Command::new(program)
        .arg("gate")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a gate");
    let mut stdin = child.stdin.take().expect("its input");
    let writer = std::thread::spawn(move || {
        for index in 0..LINES * 10 {
            // Other sessions and tools, so that the hourly limits of the policy do not end the run.
            writeln!(stdin, r#"{{"kind":"prompt","text":"line {index}","session":"s{}"}}"#, index % 50)
                .expect("a write");
        }
    });
    let start = Instant::now();
    let answers = BufReader::new(child.stdout.take().expect("its output")).lines().count();
    let took = start.elapsed();
    writer.join().expect("the writer");
    let _ = child.wait();
    assert_eq!(answers, LINES * 10);
    row("gate, a stream of lines, recorded decisions", per_second(answers as f64 / took.as_secs_f64()));
    let bundle = folder.join("b.bundle");
    let run = |arguments: &[&str]| {
        let start = Instant::now();
        let output = Command::new(program).args(arguments).current_dir(&folder).output().expect("a run");
        assert!(matches!(output.status.code(), Some(0 | 13)), "{}", String::from_utf8_lossy(&output.stderr));
        start.elapsed()
    };
    let path = bundle.to_str().expect("a path");
    run(&["audit", "export", "--output", path]);
    let records = (answers + 3000) as f64;
    let hashes = run(&["audit", "verify", path, "--no-derivation"]);
    row(
        "verify, hashes and proofs (records of the gate, whole process)",
        per_second(records / hashes.as_secs_f64()),
    );
    let derived = run(&["audit", "verify", path]);
    row(
        "verify with every decision derived again (whole process)",
        per_second(records / derived.as_secs_f64()),
    );
}

fn spawn_time(program: &str, arguments: &[&str]) -> Duration {
    median(200, || {
        let status = Command::new(program).args(arguments).stdout(Stdio::null()).status().expect("a process");
        assert!(status.success());
    })
}
