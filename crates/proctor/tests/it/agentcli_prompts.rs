//! Prompt tasks from the outside: the agents of `[flow.agent.ID]` get the prompt, and only an agent that ends well is a success.

use proctor_core::json::Json;

use crate::agentcli::place::{Place, at};

/// An agent of the Agent Test Protocol that answers with the prompt in capitals, then ends with this status.
const AGENT: &str = r#"
import json, sys
request = json.loads(sys.stdin.readline())
text = request["task"]["description"].upper()
response = {"version": "1.0", "task_id": request["task_id"], "status": "completed",
            "artifacts": [{"type": "file", "path": "answer.txt", "content": text}],
            "metrics": {"total_tokens": 12, "cost_usd": 0.01}}
print(json.dumps(response))
sys.exit(int(sys.argv[1]))
"#;

/// A place with a policy that allows everything, and the agent `writer` at this address.
fn place(address: &str) -> Place {
    let place = Place::new();
    place.write("agent.py", AGENT);
    place.write("policy.yaml", "version: \"1\"\ndefault: allow\n");
    place.write(
        "proctor.toml",
        &format!(
            "policy = \"policy.yaml\"\nstate = \"state\"\n[flow.agent.writer]\naddress = \"{address}\"\n"
        ),
    );
    place.write("m.json", &prompt("writer"));
    place
}

fn prompt(agent: &str) -> String {
    format!(
        r#"{{"version":"0.2","workflows":[{{"id":"w","name":"W","tasks":[{{"id":"a","name":"A","target":{{"session_target":"isolated","agent_id":"{agent}"}},"prompt":"write a line","schedule":{{"cron":"0 9 * * *"}}}}]}}]}}"#
    )
}

fn exec(place: &Place) -> (Json, i32) {
    place.json(&["exec", "m.json", "a"])
}

#[test]
fn a_prompt_goes_to_its_agent_and_comes_back_as_output() {
    let (result, code) = exec(&place("stdio:python3 agent.py 0"));
    assert_eq!((code, at(&result, "/ok")), (0, &Json::Bool(true)), "{result}");
    assert_eq!(at(&result, "/result/stdout").as_str(), Some("WRITE A LINE"), "{result}");
    // A program without protocol reads the prompt and writes the answer.
    let (result, code) = exec(&place("plain:tr a-z A-Z"));
    assert_eq!((code, at(&result, "/result/stdout").as_str()), (0, Some("WRITE A LINE")), "{result}");
}

#[test]
fn an_agent_that_crashes_or_says_nothing_is_no_success() {
    for (address, said) in [
        ("stdio:python3 agent.py 3", "exited with status 3"),
        (
            "plain:sh -c 'echo half; echo broken pipe to model >&2; exit 4'",
            "exited with status 4: broken pipe to model",
        ),
        ("plain:sh -c 'echo half; kill -9 $$'", "killed by signal 9"),
        ("stdio:true", "wrote nothing on standard output"),
        ("plain:/does/not/exist", "cannot be started"),
        ("http://127.0.0.1:1", "agent `writer`"),
    ] {
        let (result, code) = exec(&place(address));
        assert_eq!((code, at(&result, "/ok")), (1, &Json::Bool(false)), "{address}: {result}");
        assert!(at(&result, "/result/stderr").as_str().unwrap().contains(said), "{address}: {result}");
    }
}

#[test]
fn an_agent_that_nobody_configured_is_no_runtime() {
    let place = place("plain:cat");
    place.write("m.json", &prompt("reader"));
    let (result, code) = exec(&place);
    assert_eq!((code, at(&result, "/code").as_str()), (1, Some("no_runtime")), "{result}");
    assert!(at(&result, "/error").as_str().unwrap().contains("[flow.agent.reader]"), "{result}");
    // An agent of tests does no work.
    let place = self::place("nop");
    let output = place.run(&["exec", "m.json", "a"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("agent `writer`") && said.contains("agents of tests"), "{said}");
}
