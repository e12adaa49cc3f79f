//! A session that is longer than memory should have to be.

use std::io::Write;
use std::sync::mpsc::sync_channel;

use proctor_core::json::Json;

use crate::ahp_serve::server::{
    Caller, LONG, POLICY, Server, decision_id, measured, notification, pre_action, result,
};
use crate::support::{Folder, count, lines, text};

/// Memory limit of the server and of every command.
const MOST: u64 = 150 << 20;

/// Number of events between a decision and its report.
const LAG: usize = 400;

#[test]
fn a_long_session_is_recorded_listed_and_shown_in_little_memory() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let events = count(300_000);
    let Caller { mut stream, lines: mut answers } = server.connect();
    let (decided, reports) = sync_channel::<String>(events);
    let writer = std::thread::spawn(move || {
        let mut out = std::io::BufWriter::with_capacity(64 * 1024, &stream);
        for index in 0..events {
            let line = match index % 4 {
                0 => pre_action(&index.to_string(), "long", "look"),
                // What was asked a while ago is done by now; an agent does nothing before it is answered.
                1 if index < LAG => notification("session_start", "long", "{}"),
                1 => {
                    out.flush().unwrap();
                    let id = reports.recv_timeout(LONG).unwrap();
                    let done = format!(
                        r#"{{"tool_name":"look","result":{{"success":true}},"metadata":{{"decision_id":"{id}"}}}}"#
                    );
                    notification("post_action", "long", &done)
                }
                2 => {
                    let beat = format!(r#"{{"uptime_ms":{index},"current_state":"active"}}"#);
                    notification("heartbeat", "long", &beat)
                }
                _ => notification("task_list", "long", &task_list(index)),
            };
            out.write_all(line.as_bytes()).unwrap();
            out.write_all(b"\n").unwrap();
        }
        out.flush().unwrap();
        drop(out);
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.flush().unwrap();
    });
    let mut allowed = 0;
    let mut line = String::new();
    // The server ends the connection when everything that came is done.
    while std::io::BufRead::read_line(&mut answers, &mut line).unwrap() != 0 {
        let answer = result(&Json::parse(line.as_bytes()).unwrap());
        assert_eq!(text(&answer, "decision"), "allow", "{answer}");
        let _ = decided.send(decision_id(&answer));
        allowed += 1;
        line.clear();
    }
    writer.join().unwrap();
    assert_eq!(allowed, events.div_ceil(4));
    let peak = server.peak();
    assert!(peak < MOST, "the server used {peak} bytes");

    // While the server runs, and after it.
    let (listed, list_peak) = measured(folder.command(&["session", "list", "--json"]));
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert!(list_peak < MOST, "`session list` used {list_peak} bytes");
    let sessions = lines(&listed);
    let long = sessions.iter().find(|session| text(session, "claimed") == "long").unwrap();
    assert_eq!(long.get("let_through").and_then(Json::as_u64), Some(allowed as u64), "{long}");
    assert_eq!(long.get("alarms").and_then(Json::as_u64), Some(0), "{long}");
    server.stop();

    let (shown, show_peak) = measured(folder.command(&["session", "show", "long", "--json"]));
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    assert!(show_peak < MOST, "`session show --json` used {show_peak} bytes");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.lines().count() >= events, "{} records of {events} events", shown.lines().count());
    let (human, human_peak) = measured(folder.command(&["session", "show", "long"]));
    assert!(human.status.success());
    assert!(human_peak < MOST, "`session show` used {human_peak} bytes");
    let human = String::from_utf8(human.stdout).unwrap();
    assert!(human.contains("run run-9:"), "the run's state: {}", human.lines().last().unwrap());
    println!(
        "{events} events: server {} MiB, list {} MiB, show {} MiB (JSON), {} MiB",
        peak >> 20,
        list_peak >> 20,
        show_peak >> 20,
        human_peak >> 20
    );
}

fn task_list(index: usize) -> String {
    format!(
        r#"{{"run_id":"run-9","session_id":"long","updated_at":"2026-06-02T09:20:00Z","tasks":[{{"id":"t1","title":"step {index}","status":"in_progress"}}]}}"#
    )
}
