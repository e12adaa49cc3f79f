//! Clients that do not read, do not stop, or go away.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::attest::{Engine, PATIENCE, Place, contains, reply, request, trace};
use crate::support::count;

fn batch(id: i64) -> String {
    request(
        id,
        "evaluate_batch",
        &json!({"trace": trace(&format!("t{id}")), "assertions": [contains("a", "hello")]}),
    )
}

fn start_of_session() -> String {
    request(0, "initialize", &json!({"protocol_version": 1}))
}

/// Official clients open stderr and never read it.
#[test]
fn nobody_reads_the_log() {
    let place = Place::new();
    let mut command = place.command(&["--log-level=debug"]);
    // A program that fails to start with everything it could say about it.
    command
        .env("ATTEST_CACHE_DIR", "/proc/none")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdin, stderr) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut exchange = |line: &str| {
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut line = Vec::new();
        stdout.read_until(b'\n', &mut line).unwrap();
        reply(&line)
    };
    exchange(&start_of_session());
    let begin = Instant::now();
    for id in 1..=5_000 {
        let line = match id % 3 {
            0 => batch(id),
            1 => request(id, "query_drift", &json!({"assertion_id": "a"})),
            _ => "not a request".to_owned(),
        };
        exchange(&line);
    }
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stderr);
}

/// The same with a log that is full from the beginning.
#[test]
fn the_log_is_full_from_the_beginning() {
    let place = Place::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let mut command = place.command(&["--debug"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut stdin = child.stdin.take().unwrap();
    let lines: Vec<String> = std::iter::once(start_of_session()).chain((1..100).map(batch)).collect();
    stdin.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for id in 0..100 {
        let mut line = Vec::new();
        stdout.read_until(b'\n', &mut line).unwrap();
        assert_eq!(reply(&line)["id"], id);
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(reader);
}

/// A client that writes all requests before it reads: the engine stops reading, and loses nothing.
#[test]
fn a_client_that_writes_first_and_reads_later() {
    let place = Place::new();
    let mut command = place.command(&["--log-level=error"]);
    command.env("ATTEST_HISTORY_MAX_ROWS", "1000000");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let requests = i64::try_from(count(40_000).max(4_000)).unwrap();
    let (told, writing) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        stdin.write_all(format!("{}\n", start_of_session()).as_bytes()).unwrap();
        for id in 1..=requests {
            stdin.write_all(format!("{}\n", batch(id)).as_bytes()).unwrap();
            told.send(id).unwrap();
        }
    });
    // Until the pipes are full: nothing more goes in for a while.
    let mut written = 0;
    while let Ok(id) = writing.recv_timeout(Duration::from_millis(300)) {
        written = id;
    }
    assert!(written < requests, "the engine reads on although nobody reads its replies: {written}");
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for id in 0..=requests {
        let mut line = Vec::new();
        stdout.read_until(b'\n', &mut line).unwrap();
        let reply = reply(&line);
        assert_eq!(reply["id"], id);
        assert!(reply.get("error").is_none(), "{reply}");
    }
    writer.join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.rows().len(), usize::try_from(requests).unwrap());
}

#[test]
fn five_hundred_requests_at_once() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let lines: String = (1..=500).map(|id| batch(id) + "\n").collect();
    engine.write(lines.as_bytes());
    for id in 1..=500 {
        let reply = engine.receive();
        assert_eq!((&reply["id"], &reply["result"]["results"][0]["status"]), (&json!(id), &json!("pass")));
    }
    assert_eq!(engine.close().0, 0);
    assert_eq!(place.rows().len(), 500);
}

/// A client that is gone: the engine ends, and what it found is on disk.
#[test]
fn nobody_reads_any_more() {
    let place = Place::new();
    let mut command = place.command(&["--log-level=error"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdin.write_all(format!("{}\n{}\n", start_of_session(), batch(1)).as_bytes()).unwrap();
    let mut some = [0; 10];
    stdout.read_exact(&mut some).unwrap();
    drop(stdout);
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        let _ = stdin.write_all(format!("{}\n", batch(2)).as_bytes());
        assert!(begin.elapsed() < PATIENCE, "the engine does not notice");
    }
    assert_ne!(child.wait().unwrap().code(), None, "it must not be ended by a signal");
    assert!(!place.rows().is_empty());
}

#[test]
fn a_signal_keeps_everything() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    for id in 1..=50 {
        engine.exchange(batch(id));
    }
    engine.signal(Signal::TERM);
    let (code, said) = engine.wait();
    assert_eq!(code, 1, "{said}");
    assert_eq!(place.rows().len(), 50);
}

#[test]
fn a_kill_leaves_a_usable_file() {
    let place = Place::new();
    for round in 0..5 {
        let mut engine = place.ready(&[]);
        let lines: String = (1..=200).map(|id| batch(id) + "\n").collect();
        engine.write(lines.as_bytes());
        for _ in 0..=round * 30 {
            engine.receive();
        }
        engine.signal(Signal::KILL);
        drop(engine);
        let connection = rusqlite::Connection::open(place.database()).unwrap();
        let check: String = connection.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
    }
    let mut engine = place.ready(&[]);
    let before = place.rows().len();
    engine.assert_well("five kills");
    assert_eq!(engine.close().0, 0);
    assert_eq!(place.rows().len(), before + 1);
}

#[test]
fn engines_share_a_cache_and_lose_nothing() {
    let place = Place::new();
    let each = count(10_000).max(500);
    let lines: String = (1..=i64::try_from(each).unwrap()).map(|id| batch(id) + "\n").collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut engine = place.ready(&[("ATTEST_HISTORY_MAX_ROWS", "1000000")]);
                let mut stdin = engine.stdin.take().unwrap();
                let lines = &lines;
                let writer = scope.spawn(move || {
                    stdin.write_all(lines.as_bytes()).unwrap();
                    stdin
                });
                for _ in 0..each {
                    let reply = engine.receive();
                    assert!(reply.get("error").is_none(), "{reply}");
                }
                engine.stdin = Some(writer.join().unwrap());
                let (code, said) = engine.close();
                assert_eq!(code, 0, "{said}");
            });
        }
    });
    assert_eq!(place.rows().len(), 4 * each);
}

#[test]
fn memory_stays_where_it_is() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    let text = "some words of an answer ".repeat(40_000);
    let mut filled = trace("t");
    filled["steps"][1]["result"] = json!(text);
    let batch = |round: usize| {
        let assertions: Vec<Value> = vec![
            contains(&format!("a{round}"), "hello"),
            crate::support::attest::assertion(
                "s",
                "schema",
                &json!({"target": "output", "schema": {"title": round, "type": "object"}}),
            ),
            crate::support::attest::content(
                "r",
                &json!({"check": "regex_match", "value": format!("hello.*{round}?")}),
            ),
        ];
        json!({"trace": filled, "assertions": assertions})
    };
    let mut after_few = 0;
    for round in 0..200 {
        assert_eq!(engine.result("evaluate_batch", &batch(round))["results"].as_array().unwrap().len(), 3);
        if round == 40 {
            after_few = engine.resident();
        }
    }
    let after_many = engine.resident();
    println!("{} MiB after 40 batches, {} MiB after 200", after_few >> 20, after_many >> 20);
    assert!(after_many < after_few + (16 << 20), "{} and {} MiB", after_few >> 20, after_many >> 20);
    assert!(engine.peak() < 128 << 20, "{} MiB", engine.peak() >> 20);
}

/// Fast start and nothing on the network: an engine without a route to anywhere answers at once.
#[test]
fn it_starts_without_asking_anybody() {
    let place = Place::new();
    let mut engine: Engine = place.start(&[
        ("ATTEST_OPENAI_API_KEY", "k"),
        ("ATTEST_JUDGE_BASE_URL", "http://127.0.0.1:9/v1"),
        ("ATTEST_EMBEDDING_BASE_URL", "http://127.0.0.1:9/v1"),
    ]);
    let begin = Instant::now();
    engine.initialize();
    engine.assert_well("the start");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}
