//! SIGKILL under load: what was answered is on record.

use std::collections::HashSet;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proctor_core::json::Json;
use proctor_core::random::SeededRandomness;
use rustix::process::Signal;

use crate::ahp_serve::server::{
    Caller, POLICY, Server, assert_verifies, decision_id, pre_action, records, until,
};
use crate::support::{Folder, count, seed, text};

const CALLERS: usize = 16;

/// Kills the server at a random moment while callers stream through it. Returns the ids that were answered.
fn kill_under_load(folder: &Folder, answers: usize) -> Vec<String> {
    let mut server = Server::start(folder);
    let (answered, seen) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
    let mut threads = Vec::new();
    for caller in 0..CALLERS {
        let Caller { mut stream, lines } = server.connect();
        threads.push(std::thread::spawn(move || {
            for index in 0..100_000u32 {
                let tool = ["look", "wipe", "search"][index as usize % 3];
                let line = pre_action(&format!("c{caller}-{index}"), &format!("s{}", index % 3), tool);
                if stream.write_all(format!("{line}\n").as_bytes()).is_err() {
                    return;
                }
            }
        }));
        let (answered, seen) = (Arc::clone(&answered), Arc::clone(&seen));
        threads.push(std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                // The last line may be torn by the kill; then it was not an answer.
                let Ok(answer) = Json::parse(line.as_bytes()) else { continue };
                let id = decision_id(answer.get("result").unwrap_or_else(|| panic!("{answer}")));
                answered.lock().unwrap().push(id);
                seen.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    until("enough is answered", || (seen.load(Ordering::Relaxed) >= answers).then_some(()));
    server.signal(Signal::KILL);
    server.ended();
    for thread in threads {
        thread.join().unwrap();
    }
    std::mem::take(&mut *answered.lock().unwrap())
}

#[test]
fn killed_under_the_load_of_sixteen_callers_every_answer_is_on_record() {
    let random = SeededRandomness::new(seed());
    let folder = Folder::with_policy(POLICY);
    let mut answered = HashSet::new();
    let rounds = count(40);
    for _ in 0..rounds {
        let wanted = usize::try_from(random.below(3000)).unwrap();
        for id in kill_under_load(&folder, wanted) {
            assert!(answered.insert(id), "an id was answered twice");
        }
    }
    // It starts again, and serves.
    let server = Server::start(&folder);
    answered.insert(decision_id(&server.connect().tool("again", "look")));
    server.stop();
    let mut recorded = HashSet::new();
    for record in records(&folder, "decision") {
        assert!(recorded.insert(text(&record, "id").to_owned()), "a record is there twice");
    }
    let lost = answered.difference(&recorded).count();
    assert_eq!(lost, 0, "of {} answered decisions so many are not on record", answered.len());
    println!("{rounds} kills, {} answers, {} records", answered.len(), recorded.len());
    let fsck = folder.run(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
    assert_verifies(&folder);
}
