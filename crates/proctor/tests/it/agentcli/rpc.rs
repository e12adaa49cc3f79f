//! JSON-RPC of `agentcli serve`: envelopes, methods, codes.

use proctor_core::json::Json;
use proctor_door_agentcli::methods::METHODS;

use super::place::{Place, at, echo, manifest};

#[test]
fn envelopes_follow_the_protocol() {
    let place = Place::new();
    let mut server = place.serve();
    let code = |reply: &Json| at(reply, "/error/code").to_string();
    assert_eq!(code(&server.ask("{nope")), "-32700");
    assert_eq!(code(&server.ask("[]")), "-32600");
    assert_eq!(code(&server.ask("3")), "-32600");
    assert_eq!(code(&server.ask(r#"{"jsonrpc":"1.0","id":1,"method":"agentcli.ping"}"#)), "-32600");
    assert_eq!(code(&server.ask(r#"{"jsonrpc":"2.0","id":1,"method":"agentcli.nope"}"#)), "-32601");
    assert_eq!(
        code(&server.ask(r#"{"jsonrpc":"2.0","id":1,"method":"agentcli.ping","params":[]}"#)),
        "-32602"
    );
    assert_eq!(code(&server.ask(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"agentcli.ping"}"#)), "-32700");
    // Blank lines and notifications get no answer; ids come back as they were sent.
    server.send("   ");
    server.send(r#"{"jsonrpc":"2.0","method":"agentcli.nope"}"#);
    let reply = server.ask("{\"jsonrpc\":\"2.0\",\"id\":{\"a\":[1.50]},\"method\":\"agentcli.ping\"}\r");
    assert_eq!(reply.to_string(), r#"{"jsonrpc":"2.0","id":{"a":[1.50]},"result":{"ok":true,"pong":true}}"#);
    let reply = server.call("agentcli.schema", r#"{"target":"x"}"#);
    assert_eq!(at(&reply, "/error/data/code").as_str(), Some("invalid_argument"));
    assert_eq!(at(&reply, "/error/data/error_type").as_str(), Some("invalid_argument"));
    server.end();
}

#[test]
fn every_method_answers_with_its_members() {
    let place = Place::new();
    let mut server = place.serve();
    let document = echo("hi");
    let identity = manifest(
        r#""shell":{"program":"/bin/true"},"identity":{"ref":"p"},"authorization":{"ref":"z"}"#,
        r#""identity_profiles":[{"id":"p","provider":"none","subject":{"kind":"service","principal":"svc"}}],"authorization_profiles":[{"id":"z","provider":"none"}],"#,
    );
    let old = document.replace(r#""version":"0.2""#, r#""version":"0.1""#);
    let task = format!(r#"{{"manifest":{identity},"taskId":"a"}}"#);
    let cases: Vec<(&str, String, Vec<&str>)> = vec![
        ("ping", "{}".to_owned(), vec!["pong"]),
        ("version", "{}".to_owned(), vec!["package_version", "manifest_version"]),
        ("schema", r#"{"target":"scheduler-job"}"#.to_owned(), vec!["schema", "schema_format"]),
        (
            "describe",
            r#"{"target":"rpc"}"#.to_owned(),
            vec!["description/methods", "description/notifications"],
        ),
        ("validate", format!(r#"{{"manifest":{document}}}"#), vec!["errors", "warnings"]),
        ("convert", format!(r#"{{"manifest":{old}}}"#), vec!["manifest"]),
        ("compile", format!(r#"{{"manifest":{document},"explain":true}}"#), vec!["target", "output/explain"]),
        ("identity.providers", "{}".to_owned(), vec!["providers/10/name", "providers/0/capabilities"]),
        ("identity.schema", r#"{"provider":"none"}"#.to_owned(), vec!["provider", "capabilities"]),
        ("identity.resolve", task.clone(), vec!["declared_identity", "resolved_identity", "principal_used"]),
        ("identity.validateDelegation", task.clone(), vec!["delegation"]),
        ("authorizationProof.methods", "{}".to_owned(), vec!["methods/3/name", "methods/0/capabilities"]),
        ("authorizationProof.schema", r#"{"method":"jwt"}"#.to_owned(), vec!["method", "verifier"]),
        (
            "authorizationProof.verify",
            task.clone(),
            vec!["authorization_proof", "effective_task_hash", "manifest_digest"],
        ),
        ("authorization.providers", "{}".to_owned(), vec!["providers/3/name", "providers/0/capabilities"]),
        ("authorization.schema", r#"{"provider":"opa"}"#.to_owned(), vec!["provider", "capabilities"]),
        (
            "authorization.evaluate",
            task,
            vec!["decision/allowed", "decision/reason", "authorization/decision"],
        ),
        ("evidence.providers", "{}".to_owned(), vec!["providers/2/name", "providers/0/capabilities"]),
        ("evidence.schema", r#"{"provider":"ssh"}"#.to_owned(), vec!["provider", "methods/0"]),
        ("targets", "{}".to_owned(), vec!["targets"]),
        ("paths", "{}".to_owned(), vec!["paths/home"]),
        ("audit", "{}".to_owned(), vec!["count", "records", "warnings"]),
        ("approvals.list", "{}".to_owned(), vec!["count", "records"]),
        ("registry.list", "{}".to_owned(), vec!["entries"]),
    ];
    for (method, params, members) in &cases {
        let reply = server.call(&format!("agentcli.{method}"), params);
        let result = reply.get("result").unwrap_or_else(|| panic!("{method}: {reply}"));
        assert_eq!(result.as_object().unwrap()[0], ("ok".to_owned(), Json::Bool(true)), "{method}");
        for member in members {
            at(result, &format!("/{member}"));
        }
    }
    // Those that need a scheduler, a database or a registered manifest fail with a code of the closed list.
    for (method, params, code) in [
        ("inspect", "{}".to_owned(), "invalid_argument"),
        ("registry.show", r#"{"name":"x"}"#.to_owned(), "invalid_argument"),
        ("apply", format!(r#"{{"manifest":{},"adoptBy":"x"}}"#, echo("x")), "invalid_argument"),
        (
            "apply",
            format!(r#"{{"manifest":{},"schedulerBin":"/does/not/exist"}}"#, echo("x")),
            "scheduler_error",
        ),
        ("validate", "{}".to_owned(), "invalid_argument"),
        ("compile", r#"{"manifest":{"version":"0.2"}}"#.to_owned(), "validation_error"),
        ("identity.resolve", format!(r#"{{"manifest":{},"taskId":"b"}}"#, echo("x")), "invalid_argument"),
        (
            "authorization.evaluate",
            format!(r#"{{"manifest":{},"taskId":"a"}}"#, echo("x")),
            "invalid_argument",
        ),
    ] {
        let reply = server.call(&format!("agentcli.{method}"), &params);
        assert_eq!(at(&reply, "/error/data/code").as_str(), Some(code), "{method}: {reply}");
    }
    let described = server.call("agentcli.describe", r#"{"target":"rpc"}"#);
    let described: Vec<&str> = at(&described, "/result/description/methods")
        .as_array()
        .unwrap()
        .iter()
        .map(|method| at(method, "/method").as_str().unwrap())
        .collect();
    for method in METHODS {
        assert!(described.contains(method), "{method} is not described");
    }
    assert_eq!(described.len(), METHODS.len());
    server.end();
}

#[test]
fn an_invalid_manifest_is_a_result_of_validate_and_a_failure_of_the_rest() {
    let place = Place::new();
    let mut server = place.serve();
    for bad in ["null", "[]", "3", r#"{"version":"0.2","workflows":[]}"#] {
        let reply = server.call("agentcli.validate", &format!(r#"{{"manifest":{bad}}}"#));
        assert_eq!(at(&reply, "/result/ok"), &Json::Bool(false), "{bad}: {reply}");
    }
    let cyclic = r#"{"version":"0.2","workflows":[{"id":"w","name":"W","tasks":[
        {"id":"a","name":"A","target":{"session_target":"shell"},"shell":{"program":"x"},"trigger":{"parent":"b","on":"success"}},
        {"id":"b","name":"B","target":{"session_target":"shell"},"shell":{"program":"x"},"trigger":{"parent":"a","on":"success"}}]}]}"#
        .replace('\n', " ");
    let reply = server.call("agentcli.validate", &format!(r#"{{"manifest":{cyclic}}}"#));
    assert_eq!(at(&reply, "/result/ok"), &Json::Bool(true), "{reply}");
    assert_eq!(at(&reply, "/result/warnings/0/code").as_str(), Some("proctor_cycle"), "{reply}");
    server.end();
}
