//! Sessions of the ledger, and what is put on record.

use super::*;

/// A session with two steps, one of which cost more than expected, and one denied action.
fn recorded() -> Folder {
    let folder = folder();
    let mut gate = crate::support::Gate::start(&folder, &[]);
    let decided = gate.ask(r#"{"session":"s1","agent":"coder","kind":"llm_call","model":"m","tokens":100,"cost_usd":"0.10","text":"hello"}"#);
    let id = decided["decision_id"].as_str().unwrap().to_owned();
    gate.ask(r#"{"session":"s1","agent":"coder","tool":"search","args":{"query":"x"}}"#);
    gate.ask(r#"{"session":"s1","agent":"coder","tool":"drop_table","args":{"what":"everything"}}"#);
    gate.ask(&format!(
        r#"{{"session":"s1","agent":"coder","outcome":{{"decision_id":"{id}","tokens":150,"cost_usd":"0.25","result":{{"text":"I am done."}}}}}}"#
    ));
    let (code, problem) = gate.end();
    assert_eq!(code, 0, "{problem}");
    folder
}

fn on_session(folder: &Folder, assertions: &str, more: &[&str]) -> Output {
    folder.write("assertions.yaml", assertions);
    let mut args = vec!["assert", "--session", "s1", "--assertions", "assertions.yaml"];
    args.extend(more);
    command(folder, &args).output().unwrap()
}

const ON_SESSION: &str = r"
- { assertion_id: done, type: content, spec: { check: contains, value: done } }
- { assertion_id: searched, type: trace, spec: { check: required_tools, tools: [search] } }
- { assertion_id: kept, type: trace, spec: { check: forbidden_tools, tools: [drop_table] } }
- { assertion_id: cost, type: constraint, spec: { field: metadata.cost_usd, operator: eq, value: 0.25 } }
- { assertion_id: tokens, type: constraint, spec: { field: metadata.total_tokens, operator: eq, value: 150 } }
- { assertion_id: time, type: constraint, spec: { field: metadata.latency_ms, operator: lt, value: 600000 } }
";

#[test]
fn a_session_of_the_ledger_is_a_trace_like_any_other() {
    let folder = recorded();
    let output = on_session(&folder, ON_SESSION, &["--gate"]);
    ends(&output, 0);
    assert!(printed(&output).contains("6 assertions: 6 passed"), "{}", printed(&output));
    // The same from the outside: what `session show` prints can be checked as a file.
    let trace = folder.run(&["session", "show", "s1", "--trace"]);
    let trace = String::from_utf8(trace.stdout).unwrap();
    folder.write("trace.json", &trace);
    let output = command(&folder, &["assert", "--trace", "trace.json", "--assertions", "assertions.yaml"])
        .output()
        .unwrap();
    ends(&output, 0);
    let trace = Json::parse(trace.as_bytes()).unwrap();
    assert_eq!(trace["agent_id"], "coder");
    assert_eq!(trace.pointer("/metadata/denied/0/tool").unwrap(), &Json::from("drop_table"));
    let times = |step: &str| {
        let time = |name: &str| trace.pointer(&format!("/steps/{step}/{name}")).and_then(Json::as_u64);
        (time("started_at_ms"), time("ended_at_ms"))
    };
    let (Some(started), Some(ended)) = times("0") else { panic!("{trace}") };
    assert!(started > 1_700_000_000_000 && ended >= started, "{trace}");
    assert!(matches!(times("1"), (Some(_), None)), "{trace}");
}

#[test]
fn what_nobody_said_about_cost_is_not_a_pass() {
    let folder = folder();
    let mut gate = crate::support::Gate::start(&folder, &[]);
    gate.ask(r#"{"session":"s1","agent":"coder","tool":"search","args":{"query":"x"}}"#);
    gate.end();
    let output = on_session(
        &folder,
        "- { type: constraint, spec: { field: metadata.cost_usd, operator: lte, value: 1 } }\n",
        &[],
    );
    ends(&output, 10);
}

fn verdicts(folder: &Folder) -> Vec<Json> {
    folder
        .json(&["audit", "tail", "--json", "--kind", "observation", "-n", "100"])
        .into_iter()
        .filter(|record| record["code"] == "verdicts")
        .collect()
}

fn bodies(folder: &Folder) -> Vec<Json> {
    verdicts(folder)
        .iter()
        .flat_map(|record| folder.json(&["session", "show", record["session"].as_str().unwrap(), "--json"]))
        .filter(|record| record["code"] == "verdicts")
        .map(|record| record.pointer("/body/data").unwrap().clone())
        .collect()
}

#[test]
fn results_on_a_session_are_on_record_without_the_trace_again() {
    let folder = recorded();
    let before = folder.json(&["session", "show", "s1", "--json"]).len();
    ends(&on_session(&folder, ON_SESSION, &["--no-record"]), 0);
    assert_eq!(verdicts(&folder).len(), 0);
    ends(&on_session(&folder, ON_SESSION, &[]), 0);
    let found = bodies(&folder);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].get("verdicts").unwrap().as_array().unwrap().len(), 6);
    assert!(found[0].get("trace").is_none(), "{}", found[0]);
    // What was said about the session is not a part of it.
    assert_eq!(folder.json(&["session", "show", "s1", "--json"]).len(), before);
    assert_eq!(folder.verify(None).1 % 13, 0);
}

#[test]
fn a_trace_is_recorded_only_where_a_state_directory_is_named() {
    let folder = folder();
    ends(&check(&folder, &[HOLDS], &[]), 0);
    assert!(!folder.state().exists());
    ends(&check(&folder, &[HOLDS], &["--state", ".proctor", "--no-record"]), 0);
    assert!(!folder.state().exists());
    ends(&check(&folder, &[FAILS], &["--state", ".proctor"]), 10);
    let found = bodies(&folder);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].pointer("/verdicts/0/status").unwrap(), &Json::from("hard_fail"));
    assert_eq!(found[0].pointer("/trace/trace_id").unwrap(), &Json::from("refund-1"));
}

#[test]
fn an_owner_that_is_running_records_for_the_command() {
    let folder = recorded();
    let mut gate = crate::support::Gate::start(&folder, &[]);
    gate.ask(r#"{"session":"s2","agent":"coder","tool":"search"}"#);
    let output = on_session(&folder, ON_SESSION, &[]);
    ends(&output, 0);
    gate.end();
    assert_eq!(verdicts(&folder).len(), 1);
}
