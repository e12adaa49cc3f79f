//! Several programs, one file: nothing is lost, nothing is damaged, and what cannot work says why.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use proctor_core::time::{Clock, ManualClock, Timestamp};
use proctor_providers::store::{Row, Store, StoreError, StoreOptions};

const TASK: &str = "STORE_SHARED_TASK";
const DIR: &str = "STORE_SHARED_DIR";

fn open(dir: &Path) -> Result<Store, StoreError> {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(Timestamp::from_micros(1_763_239_507_000_000)));
    Store::open(dir, StoreOptions { history_max_rows: 1_000_000, ..StoreOptions::default() }, clock)
}

fn rows(writer: &str, number: u32) -> Vec<Row> {
    let row = |place: u32| Row {
        trace_id: format!("{writer}-{number}"),
        assertion_id: format!("{writer}-{place}"),
        kind: "content".to_owned(),
        key: "shared".to_owned(),
        score: f64::from(number),
        status: "pass".to_owned(),
    };
    (0..4).map(row).collect()
}

fn count(dir: &Path, condition: &str) -> i64 {
    let file = rusqlite::Connection::open(dir.join("attest.db")).unwrap();
    let query = format!("SELECT count(*) FROM assertion_history WHERE {condition}");
    file.query_row(&query, (), |row| row.get(0)).unwrap()
}

fn is_sound(dir: &Path) -> bool {
    let file = rusqlite::Connection::open(dir.join("attest.db")).unwrap();
    file.query_row("PRAGMA integrity_check", (), |row| row.get::<_, String>(0)).unwrap() == "ok"
}

/// Command that runs one task of this program in a process of its own.
fn child(program: &Path, task: &str, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--exact", "store_shared::the_task_of_a_child", "--nocapture"])
        .env(TASK, task)
        .env(DIR, dir);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn start(task: &str, dir: &Path) -> Child {
    child(&std::env::current_exe().unwrap(), task, dir).spawn().unwrap()
}

/// Does nothing unless it runs in a process that another test started.
#[test]
fn the_task_of_a_child() {
    let (Ok(task), Ok(dir)) = (std::env::var(TASK), std::env::var(DIR)) else { return };
    let dir = Path::new(&dir);
    match task.split_once(' ') {
        Some(("write", writer)) => write_batches(&open(dir).unwrap(), writer),
        Some(("forever", writer)) => {
            let store = open(dir).unwrap();
            for number in 0.. {
                store.record(rows(writer, number));
                store.flush();
                println!("\nflushed {number}");
            }
        }
        Some(("refused", expected)) => {
            let error = open(dir).unwrap_err();
            assert!(matches!(error, StoreError::Unwritable { .. }), "{error:?}");
            let message = error.to_string();
            assert!(
                message.contains("cannot be opened for writing") && message.contains(expected),
                "{message}"
            );
        }
        _ => panic!("there is no task `{task}`"),
    }
}

/// 500 batches, some of them one by one and some in bursts, and uses of the caches in between.
fn write_batches(store: &Store, writer: &str) {
    for number in 0..500 {
        store.record(rows(writer, number));
        store.keep_vector(&format!("text-{number}"), "model", vec![1.0; 8]);
        if number % 50 == 0 {
            store.flush();
            assert!(store.scores("shared", 1).is_ok());
            assert_eq!(store.vector(&format!("text-{number}"), "model"), Some(vec![1.0; 8]));
        }
    }
    store.flush();
    assert_eq!(store.dropped(), 0);
}

#[test]
fn four_processes_and_two_threads_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let writers = ["p0", "p1", "p2", "p3"];
    let children: Vec<Child> =
        writers.iter().map(|writer| start(&format!("write {writer}"), dir.path())).collect();
    std::thread::scope(|scope| {
        for writer in ["t0", "t1"] {
            let dir = dir.path();
            scope.spawn(move || write_batches(&open(dir).unwrap(), writer));
        }
    });
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    for writer in writers.iter().chain(&["t0", "t1"]) {
        assert_eq!(count(dir.path(), &format!("assertion_id LIKE '{writer}-%'")), 2_000, "{writer}");
    }
    assert!(is_sound(dir.path()));
    let drift = open(dir.path()).unwrap().drift("p2-3", 1_000).unwrap();
    assert_eq!((drift.count, drift.latest, drift.mean.round()), (500, 499.0, 250.0));
}

#[test]
fn a_process_that_is_killed_leaves_what_it_committed() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = start("forever k", dir.path());
    let mut flushed = 0;
    // Kept until the end: a pipe that closes would end the child before the signal does.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines.by_ref() {
        if let Some(number) = line.unwrap().strip_prefix("flushed ") {
            flushed = number.parse::<i64>().unwrap();
        }
        if flushed >= 100 {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(lines);
    assert_eq!(flushed, 100);
    let store = open(dir.path()).unwrap();
    let scores = store.scores("shared", 1_000_000).unwrap();
    assert!(scores.len() >= 404 && scores.len().is_multiple_of(4), "{} rows", scores.len());
    store.record(rows("after", 1));
    assert_eq!(store.drift("after-0", 50).unwrap().count, 1);
    assert!(is_sound(dir.path()));
}

/// Permissions do not bind a superuser, so the attempt is made as nobody, by a copy of this program that nobody can reach.
#[test]
fn what_may_not_be_written_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    allow(dir.path(), 0o755);
    let program = dir.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    allow(&program, 0o755);

    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let used = dir.path().join("used");
    open(&used).unwrap().record(rows("first", 1));
    let file = used.join("attest.db");
    let before = fs::read(&file).unwrap();
    allow(&file, 0o444);
    allow(&empty, 0o555);
    allow(&used, 0o555);

    for (place, expected) in [(&empty, "empty/attest.db"), (&used, "used/attest.db")] {
        let mut command = child(&program, &format!("refused {expected}"), place);
        if is_superuser() {
            command.uid(65_534).gid(65_534);
        }
        let output = command.stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    allow(&empty, 0o755);
    allow(&used, 0o755);
}

fn is_superuser() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}
