//! Lines: the Unix socket, and standard input.

use std::io::{BufRead, Read, Write};
use std::os::unix::net::UnixStream;

use proctor_core::json::Json;

use crate::ahp_hostile::{Attack, MOST, messages};
use crate::ahp_serve::server::{POLICY, Server, decided, peak, pre_action, request, result, until, wait};
use crate::support::{Folder, Gate, text};

pub fn attacks() -> Vec<Attack> {
    vec![
        ("odd ids (unix)", odd_ids),
        ("broken messages (unix)", broken_messages),
        ("200 MB without a newline (unix)", endless_line),
        ("2 MB of empty lines (unix)", empty_lines),
        ("connections cut in the middle (unix)", cut),
        ("callers that do not read (unix)", slow_readers),
        ("callers that send a byte at a time (unix)", slow_writers),
    ]
}

fn odd_ids(server: &Server) {
    let mut caller = server.connect();
    for (line, id) in messages::odd_ids() {
        let answer = caller.ask(&line);
        assert_eq!(answer.get("id"), Some(&id), "{answer}");
        assert_eq!(decided(&result(&answer)), "allow", "{answer}");
    }
}

fn broken_messages(server: &Server) {
    let mut caller = server.connect();
    for (index, message) in messages::broken().into_iter().enumerate() {
        caller.stream.write_all(&message).unwrap();
        let good = format!("good-{index}");
        caller.send(&format!("\n{}", pre_action(&good, "s", "look")));
        // It may be answered or not, but what comes after it is.
        loop {
            let answer = caller.next().unwrap();
            if text(&answer, "id") == good {
                assert_eq!(decided(&result(&answer)), "allow", "{answer}");
                break;
            }
            messages::assert_refused(&answer);
        }
    }
}

fn endless_line(server: &Server) {
    let mut caller = server.connect();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        caller.stream.write_all(&piece).unwrap();
    }
    caller.send(&format!("\n{}", pre_action("after", "s", "look")));
    let refused = caller.next().unwrap();
    assert_eq!(
        refused.pointer("/error/code").map(ToString::to_string).as_deref(),
        Some("-32600"),
        "{refused}"
    );
    assert_eq!(text(&caller.next().unwrap(), "id"), "after");
}

fn empty_lines(server: &Server) {
    let mut caller = server.connect();
    let piece = vec![b'\n'; 1 << 20];
    for _ in 0..2 {
        caller.stream.write_all(&piece).unwrap();
    }
    assert_eq!(decided(&caller.tool("after", "look")), "allow");
}

fn cut(server: &Server) {
    let good = pre_action("cut", "s", "look");
    for length in [1, good.len() / 2, good.len()] {
        for _ in 0..50 {
            let mut caller = server.connect();
            caller.stream.write_all(&good.as_bytes()[..length]).unwrap();
        }
    }
    // Gone before the answer.
    for _ in 0..50 {
        server.connect().send(&good);
    }
    // Only half gone: who has no more to say still gets its answer.
    let mut caller = server.connect();
    caller.send(&pre_action("half", "s", "look"));
    caller.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(text(&caller.next().unwrap(), "id"), "half");
    assert_eq!(caller.next(), None);
}

/// Writes as much as goes in without anybody reading the answers.
pub fn stuff(stream: &mut UnixStream, line: &str) -> usize {
    stream.set_nonblocking(true).unwrap();
    let block: String = format!("{line}\n").repeat(100);
    let mut total = 0;
    let mut refused = 0;
    // Full for good, not only for the moment.
    while refused < 50 && total < (64 << 20) {
        match stream.write(block.as_bytes()) {
            Ok(written) => {
                total += written;
                refused = 0;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                refused += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            Err(_) => break,
        }
    }
    total
}

fn slow_readers(server: &Server) {
    let query = r#"{"jsonrpc":"2.0","id":"q","method":"ahp/query","params":{"session_id":"s","agent_id":"a","query_type":"policy","payload":{}}}"#;
    let mut callers: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for caller in &mut callers {
        let taken = stuff(&mut caller.stream, query);
        assert!(taken < (64 << 20), "the server reads on although nobody takes its answers");
    }
    crate::ahp_hostile::assert_well(server, "callers that do not read, while they are there");
}

fn slow_writers(server: &Server) {
    let line = pre_action("slow", "s", "look") + "\n";
    let mut callers: Vec<_> = (0..16).map(|_| server.connect()).collect();
    for byte in line.as_bytes() {
        for caller in &mut callers {
            caller.stream.write_all(&[*byte]).unwrap();
        }
    }
    for caller in &mut callers {
        assert_eq!(text(&caller.next().unwrap(), "id"), "slow");
    }
}

#[test]
fn a_harness_outlives_everything_on_its_standard_input() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Gate::spawn(folder.command(&["harness"]));
    let pid = harness.child.id();
    hostile_input(&mut harness);
    let most = peak(pid).unwrap();
    assert!(most < MOST, "{} MiB", most >> 20);
    let (code, said) = harness.end();
    assert_eq!(code, 0, "{said}");
    println!("{} MiB", most >> 20);
    crate::ahp_serve::server::assert_verifies(&folder);
}

#[test]
fn a_relay_outlives_everything_on_its_standard_input_and_so_does_the_owner() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let mut relay = Gate::spawn(folder.command(&["harness"]));
    let pid = relay.child.id();
    hostile_input(&mut relay);
    let most = peak(pid).unwrap();
    assert!(most < MOST, "{} MiB", most >> 20);
    crate::ahp_hostile::assert_well(&server, "a hostile relay");
    let (code, said) = relay.end();
    assert_eq!(code, 0, "{said}");
    server.stop();
}

fn hostile_input(harness: &mut Gate) {
    for (line, id) in messages::odd_ids() {
        let answer = harness.ask(&line);
        assert_eq!(answer.get("id"), Some(&id), "{answer}");
        assert_eq!(decided(&result(&answer)), "allow", "{answer}");
    }
    for (index, message) in messages::broken().into_iter().enumerate() {
        harness.stdin.write_all(&message).unwrap();
        assert_next(harness, &format!("good-{index}"));
    }
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        harness.stdin.write_all(&piece).unwrap();
    }
    assert_next(harness, "after");
}

/// Asserts that the next request is served, whatever else is answered.
fn assert_next(harness: &mut Gate, id: &str) {
    harness.send(&format!("\n{}", pre_action(id, "s", "look")));
    loop {
        let answer = harness.receive();
        if text(&answer, "id") == id {
            assert_eq!(decided(&result(&answer)), "allow", "{answer}");
            return;
        }
        messages::assert_refused(&answer);
    }
}

#[test]
fn a_harness_whose_input_ends_in_the_middle_ends() {
    let folder = Folder::with_policy(POLICY);
    let good = pre_action("1", "s", "look");
    for length in [1, good.len() / 2] {
        let output = folder.run_with(&["harness"], &good[..length]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_harness_whose_answers_nobody_reads_waits_and_stays_small() {
    let folder = Folder::with_policy(POLICY);
    let mut harness = Gate::spawn(folder.command(&["harness"]));
    let total = 20_000;
    let mut stdin = harness.stdin;
    let writer = std::thread::spawn(move || {
        for index in 0..total {
            let line = request(&format!("{index}"), "pre_action", "s", r#"{"tool_name":"look"}"#);
            stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
    });
    // It has nothing more to do when it sleeps and its processor time stands still.
    let time = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let pid = harness.child.id();
    let (mut last, mut same) = (String::new(), 0);
    until("it waits for its reader", || {
        let now = time(pid);
        same = if now == last { same + 1 } else { 0 };
        last = now;
        (same > 100).then_some(())
    });
    assert!(!writer.is_finished(), "everything was read although nobody takes the answers");
    assert!(peak(pid).unwrap() < MOST);
    let mut line = String::new();
    let mut answered = 0;
    while harness.stdout.read_line(&mut line).unwrap() != 0 {
        let answer = Json::parse(line.as_bytes()).unwrap();
        assert_eq!(decided(&result(&answer)), "allow");
        answered += 1;
        line.clear();
    }
    writer.join().unwrap();
    assert_eq!(answered, total);
    assert_eq!(wait(&mut harness.child).code(), Some(0));
    let mut said = String::new();
    harness.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
}
