//! The scheduler's database: read only, with fields, limit and sanitize.

use proctor_core::json::Json;

use super::super::place::at;
use super::{place, two_tasks};

#[test]
fn rows_have_the_fields_that_were_asked_for_and_the_database_stays_as_it_is() {
    let place = place(&[]);
    place.write("m.json", &two_tasks("0.2", ""));
    place.good(&["apply", "m.json"]);
    let hostile = "UPDATE jobs SET payload_message = char(27) || '[31mred' || char(7) || '```' WHERE name = 'Collect';
        INSERT INTO runs (id, job_id, status, started_at) VALUES ('r1', 'j', 'ok', '2026-01-01 00:00:00'), ('r2', 'j', 'error', '2026-01-02 00:00:00');
        PRAGMA wal_checkpoint(TRUNCATE);";
    rusqlite::Connection::open(place.path("scheduler.db")).unwrap().execute_batch(hostile).unwrap();
    let before = std::fs::read(place.path("scheduler.db")).unwrap();

    let jobs = place.good(&["inspect"]);
    for (member, expected) in
        [("/target", "\"openclaw-scheduler\""), ("/entity", "\"jobs\""), ("/count", "2"), ("/ok", "true")]
    {
        assert_eq!(at(&jobs, member).to_string(), expected, "{jobs}");
    }
    let mut server = place.serve();
    let runs = server.good("agentcli.inspect", r#"{"entity":"runs","limit":"1","fields":["id","nothing"]}"#);
    assert_eq!(at(&runs, "/items").to_string(), r#"[{"id":"r2"}]"#, "{runs}");
    for entity in ["queue", "approvals"] {
        let rows = server.good("agentcli.inspect", &format!(r#"{{"entity":"{entity}"}}"#));
        assert_eq!(at(&rows, "/count").to_string(), "0");
    }
    let message = |sanitize: &str| {
        let rows =
            place.good(&["inspect", "jobs", "--fields", "name,payload_message", "--sanitize", sanitize]);
        let rows = at(&rows, "/items").as_array().unwrap().to_vec();
        let row = rows.into_iter().find(|row| at(row, "/name").as_str() == Some("Collect")).unwrap();
        at(&row, "/payload_message").as_str().unwrap().to_owned()
    };
    assert_eq!(message("none"), "\u{1b}[31mred\u{7}```");
    let clean = message("basic");
    assert!(clean.starts_with("red") && !clean.contains("```") && !clean.contains('\u{7}'), "{clean:?}");
    let lines = place.run(&["inspect", "runs", "--ndjson", "--fields", "id"]);
    assert_eq!(String::from_utf8(lines.stdout).unwrap(), "{\"id\":\"r2\"}\n{\"id\":\"r1\"}\n");

    for params in [
        r#"{"entity":"jobs; DROP TABLE jobs"}"#,
        r#"{"limit":0}"#,
        r#"{"limit":"-1"}"#,
        r#"{"limit":1.5}"#,
        r#"{"fields":7}"#,
        r#"{"sanitize":"full"}"#,
        r#"{"dbPath":"absent.db"}"#,
        r#"{"dbPath":"/etc"}"#,
        r#"{"dbPath":7}"#,
    ] {
        server.refused("agentcli.inspect", params, -32602, "invalid_argument");
    }
    server.end();
    assert!(!place.path("absent.db").exists());
    assert_eq!(std::fs::read(place.path("scheduler.db")).unwrap(), before);
    // A database that `serve` was started with is the one that is read.
    let mut command = place.command(&place.path("agentcli"), &["serve", "--db", "other.db"]);
    command.env_remove("AGENTCLI_SCHEDULER_DB");
    rusqlite::Connection::open(place.path("other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE jobs (id TEXT, created_at TEXT); INSERT INTO jobs VALUES ('own', 'x');")
        .unwrap();
    let asked = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agentcli.inspect\"}\n";
    let output = crate::agentcli::place::with_input(command, asked.as_bytes());
    let reply = Json::parse(output.lines().nth(1).unwrap().as_bytes()).unwrap();
    assert_eq!(at(&reply, "/result/items/0/id").as_str(), Some("own"), "{reply}");
}
