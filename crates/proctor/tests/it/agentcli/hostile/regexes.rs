//! Regular expressions of conditions that take exponential time in backtracking engines.

use proctor_core::json::Json;

use super::super::place::{ALLOW, Place, at};
use super::{Attacked, command, file};

const EXPRESSIONS: &[&str] = &[
    "(a+)+$",
    "(a|a)*b",
    "(a|aa)+$",
    "^(a*)*b",
    "(.*a){30}b",
    "(?=(a+)+b)c",
    "(a+)+\\\\1$",
    "a{1000}{1000}",
    "((((((((((a{10}){10}){10}){10}){10}){10}){10}){10}){10}){10})",
    "[a-z]{0,60000}[a-z]{0,60000}b",
    "(?<=(a+)+b)c",
    "\\\\p{L}{1000}{1000}",
];

/// A parent that writes a long line, and a child with this condition.
fn manifest(expression: &str) -> String {
    format!(
        r#"{{"version":"0.2","workflows":[{{"id":"w","name":"W","tasks":[{{"id":"a","name":"A","target":{{"session_target":"shell"}},"shell":{{"program":"/bin/sh","args":["-c","head -c 40000 /dev/zero | tr '\\0' a; echo '!'"]}},"schedule":{{"cron":"0 9 * * *"}}}},{{"id":"b","name":"B","target":{{"session_target":"shell"}},"shell":{{"program":"/bin/true"}},"trigger":{{"parent":"a","on":"success","condition":"regex:{expression}"}}}}]}}]}}"#
    )
}

#[test]
fn conditions_are_read_and_evaluated_in_time() {
    let mut attacked = Attacked::new(Place::with_policy(ALLOW));
    for expression in EXPRESSIONS {
        attacked.manifest(expression, &manifest(expression));
    }
    attacked.manifest("a long expression", &manifest(&"(a|b)*".repeat(20_000)));
    attacked.manifest("deep groups", &manifest(&format!("{}a{}", "(".repeat(20_000), ")".repeat(20_000))));
    let place = attacked.end();
    // Some are evaluated with backtracking, which is given up after half a second. None is taken for a match.
    for expression in ["(a+)+$", "^(a*)*b", "(?=(a+)+b)c", "(a+)+\\\\1$", "[a-z]{0,60000}[a-z]{0,60000}b"] {
        file(&place, "m.json", manifest(expression));
        let (text, _) = command(&place, expression, &["run", "m.json"]);
        let result =
            Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{expression}: {error}: {text}"));
        let Some(child) = result.pointer("/tasks/1") else {
            assert_eq!(at(&result, "/code").as_str(), Some("validation_error"), "{expression}: {result}");
            continue;
        };
        let status = at(child, "/status").as_str().unwrap();
        let is_given_up = child.to_string().contains("the regular expression took longer");
        assert!(status == "skipped" || status == "failed" && is_given_up, "{expression}: {result}");
    }
}
