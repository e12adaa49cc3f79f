//! With a state directory each batch is a record, and a session on record can be judged by its name.

use proctor_core::json::Json;
use serde_json::{Value, json};

use crate::support::attest::{Engine, Place, assertion, contains, trace};
use crate::support::{Folder, Gate, text};

const POLICY: &str = r#"
version: "1"
default: deny
rules:
  - { id: looking, when: action.tool == "look", then: allow }
"#;

/// Shaped like a key, known to everybody as an example.
const SECRET: &str = "AKIAIOSFODNN7EXAMPLE";

fn engine(place: &Place, folder: &Folder) -> Engine {
    let mut command = place.command(&["--log-level=debug"]);
    command.env("PROCTOR_STATE", folder.state()).env("PROCTOR_POLICY", folder.path("policy.yaml"));
    Engine::spawn(command)
}

fn ready(place: &Place, folder: &Folder) -> Engine {
    let mut engine = engine(place, folder);
    engine.initialize();
    engine
}

/// The records that the door wrote for this trace, with their bodies.
fn records(folder: &Folder, name: &str) -> Vec<Value> {
    let shown: Vec<Json> = folder.json(&["session", "show", name, "--json"]);
    shown
        .into_iter()
        .filter(|record| text(record, "kind") == "observation")
        .map(|record| serde_json::from_str(&record.to_string()).unwrap())
        .collect()
}

fn assert_not_stored(folder: &Folder, secret: &str) {
    let mut folders = vec![folder.state()];
    while let Some(directory) = folders.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                assert!(
                    !bytes.windows(secret.len()).any(|window| window == secret.as_bytes()),
                    "the secret is in {}",
                    path.display()
                );
            }
        }
    }
}

fn secret_trace(id: &str) -> Value {
    let mut trace = trace(id);
    trace["steps"][1]["args"]["query"] = json!(format!("use {SECRET} please"));
    trace["output"]["message"] = json!(format!("hello, the key is {SECRET}"));
    trace
}

/// Sends a batch and a plugin's result, and returns their records.
fn judge_and_look(place: &Place, folder: &Folder, id: &str) {
    let mut engine = ready(place, folder);
    let batch = json!([
        contains("good", "hello"),
        contains("bad", SECRET),
        contains("worse", "absent"),
        assertion("late", "plugin", &json!({"plugin_id": "p"})),
        assertion("never", "llm_judge", &json!({})),
    ]);
    let results = engine.evaluate(&secret_trace(id), &batch);
    assert_eq!(results.len(), 4, "{results:?}");
    let submit = json!({"trace_id": id, "assertion_id": "late", "plugin_name": "p", "result": {"status": "pass", "score": 1, "explanation": SECRET}});
    assert_eq!(engine.result("submit_plugin_result", &submit)["accepted"], true);
    let (code, said) = engine.close();
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains(SECRET), "{said}");

    let records = records(folder, id);
    let codes: Vec<&str> = records.iter().map(|record| record["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["verdicts", "plugin_verdict"], "{records:?}");
    let data = &records[0]["body"]["data"];
    assert_eq!(data["trace_id"], id);
    assert_eq!(data["not_run"], json!(["never"]));
    let statuses: Vec<(&str, &str)> = data["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| (verdict["assertion_id"].as_str().unwrap(), verdict["status"].as_str().unwrap()))
        .collect();
    assert_eq!(statuses, [("good", "pass"), ("bad", "pass"), ("worse", "hard_fail"), ("late", "soft_fail")]);
    assert_eq!(data["trace"]["steps"][1]["name"], "search");
    let argument = data["trace"]["steps"][1]["args"]["query"].as_str().unwrap();
    assert!(argument.contains("REDACTED") && argument.starts_with("use "), "{argument}");
    assert_eq!(records[1]["body"]["data"]["status"], "pass");
    assert_not_stored(folder, SECRET);
}

#[test]
fn each_batch_is_one_record_without_secrets() {
    let (place, folder) = (Place::new(), Folder::with_policy(POLICY));
    judge_and_look(&place, &folder, "as-owner");
    let (report, code) = folder.verify(None);
    assert_eq!(code, 13, "{report}");
    let listed = folder.json(&["session", "list", "--json"]);
    assert_eq!(listed.len(), 1, "{listed:?}");
}

#[test]
fn the_same_beside_another_owner() {
    let (place, folder) = (Place::new(), Folder::with_policy(POLICY));
    let mut gate = Gate::start(&folder, &[]);
    assert_eq!(text(&gate.ask(r#"{"tool":"look","session":"s"}"#), "decision"), "allow");
    judge_and_look(&place, &folder, "beside");
    // A trace as long as a line may be goes through the owner too.
    let mut engine = ready(&place, &folder);
    let long =
        json!({"trace_id": "long", "output": {"message": format!("hello {}", "word ".repeat(1_900_000))}});
    assert_eq!(engine.verdict(&long, contains("a", "hello"))["status"], "pass");
    assert_eq!(engine.close().0, 0);
    assert_eq!(records(&folder, "long").len(), 1);
    assert_eq!(gate.end().0, 0);
    assert_not_stored(&folder, SECRET);
}

#[test]
fn an_owner_that_ends_is_followed_by_the_engine() {
    let (place, folder) = (Place::new(), Folder::with_policy(POLICY));
    let mut gate = Gate::start(&folder, &[]);
    assert_eq!(text(&gate.ask(r#"{"tool":"look","session":"s"}"#), "decision"), "allow");
    let mut engine = ready(&place, &folder);
    for trace in ["before", "after"] {
        let judged = json!({"trace_id": trace, "output": {"message": "hello"}});
        assert_eq!(engine.verdict(&judged, contains("a", "hello"))["status"], "pass", "{trace}");
        if trace == "before" {
            gate.child.kill().unwrap();
            gate.child.wait().unwrap();
        }
    }
    assert_eq!(engine.close().0, 0);
    assert_eq!((records(&folder, "before").len(), records(&folder, "after").len()), (1, 1));
}

/// Traces that the ledger's own reader refuses are kept as text, and are as free of secrets.
#[test]
fn odd_traces_are_recorded_without_secrets_too() {
    let (place, folder) = (Place::new(), Folder::with_policy(POLICY));
    let mut engine = ready(&place, &folder);
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    let body = "q7Zt2Kx9LmPv4RsWbYcN8dFhJ1gTuE5aQoXi6MzSkBvCwDyHnGr3";
    let pem = format!(r"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
    for (index, args) in [
        format!(r#"{{"deep":{deep},"key":"{SECRET}"}}"#),
        format!(r#"{{"a":1,"a":2,"key":"{SECRET}"}}"#),
        format!(r#"{{"a":1,"a":2,"key":"{pem}"}}"#),
        r#"{"a":1,"a":2,"key":"\u0041KIAIOSFODNN7EXAMPLE"}"#.to_owned(),
        r#"{"key":"\u0041KIAIOSFODNN7EXAMPLE"}"#.to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"evaluate_batch","params":{{"trace":{{"trace_id":"odd-{index}","steps":[{{"type":"tool_call","name":"n","args":{args}}}],"output":{{"message":"hello"}}}},"assertions":[{{"assertion_id":"a","type":"content","spec":{{"check":"contains","value":"hello"}}}}]}}}}"#
        );
        let reply = engine.exchange(&line);
        assert_eq!(reply["result"]["results"][0]["status"], "pass", "{reply}");
    }
    assert_eq!(engine.close().0, 0);
    for index in 0..5 {
        assert_eq!(records(&folder, &format!("odd-{index}")).len(), 1, "odd-{index}");
    }
    assert_not_stored(&folder, SECRET);
    assert_not_stored(&folder, "KIAIOSFODNN7EXAMPLE");
    assert_not_stored(&folder, body);
}

/// A session of the ledger, longer than any line, and judged by its name.
#[test]
fn a_stored_session_is_judged_by_reference() {
    let (place, folder) = (Place::new(), Folder::with_policy(POLICY));
    let mut gate = Gate::start(&folder, &[]);
    let filling = "word ".repeat(200_000);
    for index in 0..12 {
        let line = format!(r#"{{"tool":"look","args":{{"n":{index},"text":"{filling}"}},"session":"big"}}"#);
        assert_eq!(text(&gate.ask(&line), "decision"), "allow");
    }
    let asked = |session: &str| {
        json!({"session": session, "assertions": [
            assertion("count", "constraint", &json!({"field": "steps.length", "operator": "eq", "value": 12})),
            assertion("tools", "trace", &json!({"check": "required_tools", "tools": ["look"]})),
            assertion("args", "schema", &json!({"target": "steps[?name=='look'].args", "schema": {"required": ["n", "text"]}})),
        ]})
    };
    // While the gate owns the state directory, and after.
    for round in ["beside", "alone"] {
        let mut engine = engine(&place, &folder);
        let started = engine.result(
            "initialize",
            &json!({"protocol_version": 1, "required_capabilities": ["layers_1_4", "proctor_sessions"]}),
        );
        assert_eq!(started["compatible"], true, "{started}");
        let result = engine.result("evaluate_batch", &asked("big"));
        for one in result["results"].as_array().unwrap() {
            assert_eq!(one["status"], "pass", "{round}: {one}");
        }
        let (code, detail) = engine.refusal("evaluate_batch", &asked("no such session"));
        assert!(code == 1001 && detail.contains("no such session"), "{code} {detail}");
        assert_eq!(engine.refusal("evaluate_batch", &json!({"session": 5})).0, 1001);
        // Traces are still judged as always.
        engine.assert_well("sessions by reference");
        assert_eq!(engine.close().0, 0);
        if round == "beside" {
            gate.end();
            gate = Gate::start(&folder, &["--state", place.path("elsewhere").to_str().unwrap()]);
        }
    }
    gate.end();
    // Without the capability the member means nothing: the trace counts, and none is an invalid one.
    let mut plain = ready(&place, &folder);
    assert_eq!(plain.refusal("evaluate_batch", &asked("big")).0, 1001);
    let mut both = asked("big");
    both["trace"] = trace("t");
    both["assertions"] = json!([assertion(
        "count",
        "constraint",
        &json!({"field": "steps.length", "operator": "eq", "value": 3})
    )]);
    assert_eq!(plain.result("evaluate_batch", &both)["results"][0]["status"], "pass");
    // Nor can an engine without a state directory promise it.
    let mut without = place.start(&[]);
    let started = without
        .result("initialize", &json!({"protocol_version": 1, "required_capabilities": ["proctor_sessions"]}));
    assert_eq!((&started["compatible"], &started["missing"]), (&json!(false), &json!(["proctor_sessions"])));
    assert_eq!(without.refusal("evaluate_batch", &asked("big")).0, 1001);
}

/// Without a named state directory nothing is written anywhere but into the cache.
#[test]
fn nothing_is_recorded_unasked() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    engine.assert_well("nothing");
    assert_eq!(engine.close().0, 0);
    assert_eq!(std::fs::read_dir(place.path("work")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(place.path("home")).unwrap().count(), 0);
}

/// Answered batches are on record, also when the process is asked to end right after.
#[test]
fn a_signal_loses_no_record() {
    let (place, folder) = (Place::new(), Folder::with_policy(POLICY));
    let mut engine = ready(&place, &folder);
    for index in 0..20 {
        engine.verdict(&trace(&format!("s{index}")), contains("a", "hello"));
    }
    engine.signal(rustix::process::Signal::TERM);
    assert_eq!(engine.wait().0, 1);
    assert_eq!(folder.json(&["session", "list", "--json"]).len(), 20);
    assert_eq!(place.rows().len(), 20);
    assert_eq!(folder.verify(None).1, 13);
}
