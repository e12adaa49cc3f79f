use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_core::time::{ManualClock, Timestamp};
use proctor_ledger::Ledger;

use super::*;
use crate::fixture::{Fixture, SECRET, append, decide, envelope, registered};

const SOON: Duration = Duration::from_secs(60);

/// Request as the receiver read it.
struct Got {
    head: Vec<String>,
    text: String,
}

impl Got {
    fn json(&self) -> Json {
        Json::parse(self.text.as_bytes()).unwrap()
    }

    fn header(&self, name: &str) -> Option<String> {
        let line =
            self.head.iter().find_map(|line| line.split_once(": ").filter(|(found, _)| *found == name));
        line.map(|(_, value)| value.to_owned())
    }

    fn kind(&self) -> String {
        self.json()["event_type"].as_str().unwrap().to_owned()
    }
}

/// A receiver on loopback that gives these answers in turn, and then 204 for ever. It ends with the test.
fn receiver(answers: &[&str]) -> (String, Receiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook/path-token?q=1", listener.local_addr().unwrap());
    let (tell, got) = sync_channel(10_000);
    let mut answers: Vec<String> = answers.iter().rev().map(|answer| (*answer).to_owned()).collect();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while let Some(request) = request(&mut reader) {
                let answer = answers.pop().unwrap_or_else(|| "204 No Content\r\n".to_owned());
                if tell.send(request).is_err() {
                    return;
                }
                if answer == "hang up" {
                    break;
                }
                write!(&stream, "HTTP/1.1 {answer}content-length: 0\r\n\r\n").unwrap();
            }
        }
    });
    (url, got)
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<Got> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Got { head, text: String::from_utf8(body).unwrap() })
}

fn settings(url: &str) -> WebhookSettings {
    let secret = Some(Zeroizing::new("shared-secret".to_owned()));
    WebhookSettings { url: url.to_owned(), secret, events: EventKind::usual() }
}

/// Pauses of a millisecond, and a clock that stands still.
fn quick() -> Timing {
    Timing {
        first: Duration::from_millis(1),
        longest: Duration::from_millis(4),
        jitter: Box::new(|pause| pause),
        clock: Arc::new(ManualClock::new(Timestamp::from_micros(1_700_000_000_000_000))),
        ..Timing::usual()
    }
}

fn follow(fixture: &Fixture, settings: WebhookSettings, ledger: &Ledger) -> Handle {
    start(settings, ledger.reader(), fixture.state().path(), quick()).unwrap()
}

fn alarm(ledger: &Ledger, code: &str) -> u64 {
    append(ledger, envelope(RecordKind::Alarm, code), None)
}

fn names(got: &Receiver<Got>) -> Vec<String> {
    got.try_iter()
        .map(|got| got.json().pointer("/payload/alert_name").unwrap().as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn records_become_events_of_their_kind() {
    let fixture = Fixture::new();
    let (url, got) = receiver(&[]);
    let engine = fixture.engine();
    let mut wanted = settings(&url);
    wanted.events.insert(EventKind::AuditAction);
    let handle = follow(&fixture, wanted.clone(), engine.ledger());
    decide(&engine, "publish", "x", Effect::Ask);
    decide(&engine, "publish", "x", Effect::Ask);
    decide(&engine, "look", SECRET, Effect::Redact);
    engine.finish();
    handle.finish(Instant::now() + SOON).unwrap();
    let events: Vec<Got> = got.try_iter().collect();
    let kinds: Vec<String> = events.iter().map(Got::kind).collect();
    assert_eq!(
        kinds,
        ["approval.requested", "audit.action", "audit.action", "audit.action"],
        "an approval that waits is not new"
    );
    let asked = events[0].json();
    assert_eq!(asked["source"].as_str(), Some("aa-gateway"));
    assert!(asked.pointer("/published_at/unix_ms").unwrap().as_u64().unwrap() > 1_600_000_000_000);
    assert_eq!(asked.pointer("/payload/agent_id/agent_id").unwrap().as_str(), Some("did:key:zA"));
    assert_eq!(asked.pointer("/payload/action_summary").unwrap().as_str(), Some("tool call: publish"));
    assert_eq!(asked.pointer("/payload/action_context_json").unwrap().as_str(), Some(r#"{"text":"x"}"#));
    assert!(asked.pointer("/payload/expires_at_unix_ms").unwrap().as_u64().unwrap() > 0);
    let names: Vec<String> =
        asked["payload"].as_object().unwrap().iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(
        names,
        [
            "approval_id",
            "agent_id",
            "action_summary",
            "action_context_json",
            "expires_at_unix_ms",
            "notify_user_ids"
        ]
    );
    assert_eq!(events[1].json().pointer("/payload/decision").unwrap().as_str(), Some("PENDING"));
    let redacted = events[3].json();
    assert_eq!(redacted.pointer("/payload/decision").unwrap().as_str(), Some("REDACT"));
    assert_eq!(redacted.pointer("/payload/trace_id").unwrap().as_str(), Some("trace-1"));
    drop(engine);

    let ledger = fixture.ledger();
    let handle = follow(&fixture, wanted, &ledger);
    append(&ledger, registered("a", "", 0), None);
    append(&ledger, envelope(RecordKind::Agent, "told"), None);
    append(&ledger, envelope(RecordKind::Agent, "killed"), None);
    let body = r#"{"key":"daily","account":"agent","unit":"usd","percent":80,"spent":"4.10","limit":"5"}"#;
    append(&ledger, envelope(RecordKind::Alarm, "budget_threshold"), Some(body));
    let redacted = (0..ledger.reader().size().unwrap())
        .find(|seq| ledger.reader().envelope(*seq).unwrap().decision == Some(Effect::Redact));
    let mut leak = envelope(RecordKind::Alarm, "exfiltration");
    leak.links = vec![redacted.unwrap()];
    append(&ledger, leak, None);
    ledger.finish();
    handle.finish(Instant::now() + SOON).unwrap();
    let events: Vec<Got> = got.try_iter().collect();
    let kinds: Vec<String> = events.iter().map(Got::kind).collect();
    assert_eq!(
        kinds,
        [
            "agent.status_changed",
            "agent.status_changed",
            "budget.threshold_hit",
            "alert.triggered",
            "data.leak"
        ]
    );
    let member = |index: usize, name: &str| {
        let event: &Got = &events[index];
        event.json().pointer(&format!("/payload/{name}")).unwrap().to_string()
    };
    assert_eq!(
        (member(0, "old_status"), member(0, "new_status")),
        (r#""""#.to_owned(), r#""active""#.to_owned())
    );
    assert_eq!(member(1, "old_status"), r#""active""#);
    assert_eq!(member(1, "new_status"), r#""killed""#);
    assert_eq!((member(2, "current_spend"), member(2, "percent_used")), ("4.10".to_owned(), "80".to_owned()));
    assert_eq!(member(3, "severity"), r#""CRITICAL""#);
    assert_ne!(member(4, "finding_count"), "0");
    assert!(!events.iter().any(|event| event.text.contains(SECRET)));
}

#[test]
fn what_agents_report_is_an_action_too() {
    let fixture = Fixture::new();
    let (url, got) = receiver(&[]);
    let ledger = fixture.ledger();
    let mut wanted = settings(&url);
    wanted.events.insert(EventKind::AuditAction);
    let handle = follow(&fixture, wanted, &ledger);
    let body = r#"{"data":{"event_id":"e-1","action_type":"TOOL_CALL","occurred_at_s":1700000000.123,"trace_id":"t","labels":{"a":"b"},"detail_kind":"tool_call","detail":{"tool_name":"grep","succeeded":true,"args":{"q":1}}}}"#;
    append(&ledger, envelope(RecordKind::Observation, "event"), Some(body));
    append(&ledger, envelope(RecordKind::Observation, "edge"), Some("{}"));
    // Its body was erased, or says nothing.
    append(&ledger, envelope(RecordKind::Observation, "event"), None);
    ledger.finish();
    handle.finish(Instant::now() + SOON).unwrap();
    let events: Vec<Got> = got.try_iter().collect();
    assert_eq!(events.iter().map(Got::kind).collect::<Vec<_>>(), ["audit.action", "audit.action"]);
    let reported = events[0].json();
    let payload = reported["payload"].to_string();
    let expected = r#"{"event_id":"e-1","agent_id":{"org_id":"o","team_id":"t","agent_id":"did:key:zA"},"occurred_at":{"unix_ms":1700000000123},"action_type":"TOOL_CALL","trace_id":"t","labels":{"a":"b"},"tool_call":{"tool_name":"grep","succeeded":true,"args_json":"{\"q\":1}"}}"#;
    assert_eq!(payload, expected);
    let bare = events[1].json();
    assert_eq!(bare["event_id"], *bare.pointer("/payload/event_id").unwrap());
}

#[test]
fn an_event_is_signed_and_carries_its_identifier() {
    let fixture = Fixture::new();
    let (url, got) = receiver(&[]);
    let ledger = fixture.ledger();
    let handle = follow(&fixture, settings(&url), &ledger);
    alarm(&ledger, "loop");
    ledger.finish();
    handle.finish(Instant::now() + SOON).unwrap();
    let event = got.try_recv().unwrap();
    assert_eq!(event.head[0], "POST /hook/path-token?q=1 HTTP/1.1");
    assert_eq!(event.header("content-type").unwrap(), "application/json");
    assert_eq!(event.header("x-proctor-event-id").as_deref(), event.json()["event_id"].as_str());
    assert_eq!(event.header("x-proctor-timestamp").unwrap(), "1700000000");
    // What HMAC is, is checked beside the function; here, that it is over what arrived.
    let expected = send::signature(b"shared-secret", "1700000000", event.text.as_bytes());
    assert_eq!(event.header("x-proctor-signature").unwrap(), expected);
    assert!(!event.head.concat().contains("shared-secret") && !event.text.contains("shared-secret"));
}

#[test]
fn without_a_secret_nothing_is_signed() {
    let fixture = Fixture::new();
    let (url, got) = receiver(&[]);
    let ledger = fixture.ledger();
    let handle = follow(&fixture, WebhookSettings { secret: None, ..settings(&url) }, &ledger);
    alarm(&ledger, "loop");
    ledger.finish();
    handle.finish(Instant::now() + SOON).unwrap();
    assert_eq!(got.try_recv().unwrap().header("x-proctor-signature"), None);
}

#[test]
fn failures_are_tried_again_in_order_and_refusals_are_left_out() {
    let fixture = Fixture::new();
    let (url, got) = receiver(&[
        "500 Broken\r\n",
        "hang up",
        "429 Slow down\r\nretry-after: 0\r\n",
        "302 Found\r\nlocation: http://127.0.0.1:1/\r\n",
        "408 Timeout\r\n",
        "204 Taken\r\n",
        "410 Gone\r\n",
    ]);
    let ledger = fixture.ledger();
    let handle = follow(&fixture, settings(&url), &ledger);
    for code in ["one", "two", "three"] {
        alarm(&ledger, code);
    }
    ledger.finish();
    handle.finish(Instant::now() + SOON).unwrap();
    assert_eq!(names(&got), ["one", "one", "one", "one", "one", "one", "two", "three"]);
}

#[test]
fn it_begins_with_what_is_new_and_goes_on_where_it_was() {
    let fixture = Fixture::new();
    let ledger = fixture.ledger();
    alarm(&ledger, "before");
    let (url, got) = receiver(&[]);
    let handle = follow(&fixture, settings(&url), &ledger);
    alarm(&ledger, "first");
    // Delivered while the ledger is open.
    assert_eq!(
        got.recv_timeout(SOON).unwrap().json().pointer("/payload/alert_name").unwrap().as_str(),
        Some("first")
    );
    handle.finish(Instant::now() + SOON).unwrap();
    // Nobody follows meanwhile.
    alarm(&ledger, "second");
    let handle = follow(&fixture, settings(&url), &ledger);
    alarm(&ledger, "third");
    ledger.finish();
    handle.finish(Instant::now() + SOON).unwrap();
    assert_eq!(names(&got), ["second", "third"]);
}

#[test]
fn what_cannot_be_delivered_in_time_is_delivered_at_the_next_start() {
    let fixture = Fixture::new();
    let ledger = fixture.ledger();
    // Takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let handle = follow(&fixture, settings(&url), &ledger);
    alarm(&ledger, "one");
    alarm(&ledger, "two");
    let problem = handle.finish(Instant::now() + Duration::from_millis(300)).unwrap_err().to_string();
    assert!(problem.contains("the next start goes on at record"), "{problem}");
    let (url, got) = receiver(&[]);
    let handle = follow(&fixture, settings(&url), &ledger);
    ledger.finish();
    handle.finish(Instant::now() + SOON).unwrap();
    assert_eq!(names(&got), ["one", "two"]);
}

#[test]
fn a_position_that_cannot_be_read_is_said() {
    let fixture = Fixture::new();
    let ledger = fixture.ledger();
    std::fs::write(fixture.state().path().join("run/webhook.position"), "here\n").unwrap();
    let problem =
        WebhookFollower::start(settings("http://127.0.0.1:1"), ledger.reader(), fixture.state().path())
            .unwrap_err()
            .to_string();
    assert!(problem.contains("expected a number"), "{problem}");
}

#[test]
fn settings_show_no_secret() {
    let shown = format!("{:?}", settings("https://hooks.example/path-token"));
    assert!(!shown.contains("shared-secret") && !shown.contains("path-token"), "{shown}");
    assert!("audit.action".parse::<EventKind>().is_ok());
    assert!(
        "audit.actions"
            .parse::<EventKind>()
            .unwrap_err()
            .to_string()
            .contains("there are approval.requested")
    );
}

#[test]
fn pauses_are_shortened_by_half_at_most() {
    for _ in 0..100 {
        let pause = jittered(Duration::from_secs(60));
        assert!((Duration::from_secs(30)..=Duration::from_secs(60)).contains(&pause));
    }
}
