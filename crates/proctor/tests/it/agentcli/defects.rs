//! Known weaknesses of the released program, each with the test that shows that this one does not have it.

use std::path::Path;

use proctor_core::json::Json;

use super::place::{ALLOW, Place, at, echo, manifest};

/// Paths and codes of a list of findings.
fn found(list: &Json) -> Vec<String> {
    let text = |finding: &Json, name: &str| at(finding, name).as_str().unwrap().to_owned();
    list.as_array()
        .unwrap()
        .iter()
        .map(|finding| format!("{} {}", text(finding, "/code"), text(finding, "/path")))
        .collect()
}

#[test]
fn results_have_the_shapes_of_the_document_and_not_those_of_the_released_code() {
    let place = Place::new();
    let mut server = place.serve();
    let old = echo("x").replace(r#""version":"0.2""#, r#""version":"0.1""#);
    let converted = server.good("agentcli.convert", &format!(r#"{{"manifest":{old}}}"#));
    assert_eq!(at(&converted, "/manifest/version").as_str(), Some("0.2"));
    assert!(converted.get("workflows").is_none(), "{converted}");
    for (method, list, names) in [
        ("authorizationProof.methods", "methods", &["none", "jwt", "detached-signature", "certificate"][..]),
        ("authorization.providers", "providers", &["none", "opa"]),
        ("evidence.providers", "providers", &["none", "ssh"]),
    ] {
        let result = server.good(&format!("agentcli.{method}"), "{}");
        let items = at(&result, &format!("/{list}")).as_array().unwrap().to_vec();
        for (item, name) in items.iter().zip(names) {
            assert_eq!(at(item, "/name").as_str(), Some(*name), "{result}");
            assert!(at(item, "/capabilities").as_object().is_some(), "{result}");
        }
        assert!(items.len() >= names.len());
    }
    let asked = manifest(
        r#""shell":{"program":"/bin/true"},"authorization":{"ref":"z"}"#,
        r#""authorization_profiles":[{"id":"z","provider":"none"}],"#,
    );
    let evaluated =
        server.good("agentcli.authorization.evaluate", &format!(r#"{{"manifest":{asked},"taskId":"a"}}"#));
    assert_eq!(at(&evaluated, "/decision/allowed"), &Json::Bool(true));
    at(&evaluated, "/decision/reason");
    for member in ["decision", "provider", "reason", "policy_ref", "escalation"] {
        at(&evaluated, &format!("/authorization/{member}"));
    }
    let schema = server.good("agentcli.schema", "{}");
    assert!(at(&schema, "/schema").as_object().is_some() && schema.get("schema_format").is_some());
    server.end();
}

#[test]
fn every_finding_has_a_code_besides_path_and_message() {
    let place = Place::new();
    let broken = r#"{"version":"0.3","x":1,"identity_profiles":[{"provider":""}],"workflows":[{"id":"-","tasks":[
        {"id":"a","id2":1,"target":{"session_target":"cloud"},"command":null},
        {"id":"a","name":"\u0001","target":{"session_target":"shell"},"prompt":"p","schedule":{},"trigger":{},"output":{"preview_bytes":1},"shell":{"program":"a b","args":[""]}}]}]}"#;
    let mut server = place.serve();
    let params = format!(r#"{{"manifest":{}}}"#, broken.replace('\n', ""));
    let result = server.good("agentcli.validate", &params);
    assert_eq!(at(&result, "/ok"), &Json::Bool(false));
    let errors = at(&result, "/errors").as_array().unwrap();
    assert!(errors.len() > 12, "{result}");
    for finding in errors.iter().chain(at(&result, "/warnings").as_array().unwrap()) {
        let code = at(finding, "/code").as_str().unwrap();
        assert!(
            !code.is_empty()
                && code.bytes().all(|byte| byte.is_ascii_lowercase() || b"_0123456789".contains(&byte))
        );
        assert!(!at(finding, "/message").as_str().unwrap().is_empty());
        assert!(at(finding, "/path").as_str().unwrap().starts_with('$'));
    }
    server.end();
    // The command line has the same findings on standard error, and through YAML with their lines.
    place.write("m.yaml", "version: \"0.2\"\nworkflows:\n  - id: w\n    name: W\n    tasks: []\n");
    let refused = place.refused(&["validate", "m.yaml"], "validation_error");
    assert_eq!(at(&refused, "/validation/errors/0/path").as_str(), Some("$.workflows[0].tasks"));
    assert_eq!(at(&refused, "/validation/errors/0/line").as_u64(), Some(5), "{refused}");
    at(&refused, "/validation/errors/0/code");
}

#[test]
fn cycles_crons_zones_and_unfit_kinds_are_warnings_after_the_documented_ones() {
    let task = |id: &str, rest: &str| format!(r#"{{"id":"{id}","name":"{id}",{rest}}}"#);
    let shell = r#""target":{"session_target":"shell"},"shell":{"program":"x"}"#;
    let tasks = [
        task("a", &format!(r#"{shell},"trigger":{{"parent":"c","on":"success"}}"#)),
        task("b", &format!(r#"{shell},"trigger":{{"parent":"a","on":"success"}}"#)),
        task("c", &format!(r#"{shell},"trigger":{{"parent":"b","on":"success"}}"#)),
        task("d", &format!(r#"{shell},"schedule":{{"cron":"every day"}}"#)),
        task("e", &format!(r#"{shell},"schedule":{{"cron":"0 0 30 2 *"}}"#)),
        task("f", &format!(r#"{shell},"schedule":{{"cron":"0 9 * * *","tz":"Europe/Atlantis"}}"#)),
        task(
            "g",
            r#""target":{"session_target":"main","payload_kind":"agentTurn"},"prompt":"p","schedule":{"cron":"0 9 * * *"}"#,
        ),
        task("h", &format!(r#"{shell},"schedule":{{"cron":"0 9 * * *"}},"intent":{{"mode":"plan"}}"#)),
    ];
    let document =
        format!(r#"{{"version":"0.2","workflows":[{{"id":"w","name":"W","tasks":[{}]}}]}}"#, tasks.join(","));
    let place = Place::new();
    place.write("m.json", &document);
    let result = place.good(&["validate", "m.json"]);
    assert_eq!(at(&result, "/errors").to_string(), "[]", "{result}");
    let warnings = found(at(&result, "/warnings"));
    assert!(warnings[0].ends_with(" $.workflows[0].tasks[7].intent"), "{warnings:?}");
    assert!(!warnings[0].starts_with("proctor_"), "{warnings:?}");
    assert!(warnings[1..].iter().all(|warning| warning.starts_with("proctor_")), "{warnings:?}");
    for expected in [
        "proctor_cron_invalid $.workflows[0].tasks[3].schedule.cron",
        "proctor_cron_never_fires $.workflows[0].tasks[4].schedule.cron",
        "proctor_timezone_unknown $.workflows[0].tasks[5].schedule.tz",
        "proctor_target_kind $.workflows[0].tasks[6].target.payload_kind",
    ] {
        assert!(warnings.iter().any(|warning| warning == expected), "{expected}: {warnings:?}");
    }
    let cycles: Vec<_> = warnings.iter().filter(|warning| warning.starts_with("proctor_cycle ")).collect();
    assert_eq!(cycles.len(), 1, "{warnings:?}");
}

#[test]
fn a_prompt_task_with_a_shell_payload_is_refused_by_compile_and_does_not_crash_it() {
    let place = Place::new();
    let mut server = place.serve();
    for session in ["main", "isolated"] {
        let document = format!(
            r#"{{"version":"0.2","workflows":[{{"id":"w","name":"W","tasks":[{{"id":"a","name":"A","target":{{"session_target":"{session}","payload_kind":"shellCommand"}},"prompt":"p","schedule":{{"cron":"0 9 * * *"}}}}]}}]}}"#
        );
        let valid = server.good("agentcli.validate", &format!(r#"{{"manifest":{document}}}"#));
        assert_eq!(at(&valid, "/ok"), &Json::Bool(true));
        assert_eq!(at(&valid, "/errors").to_string(), "[]");
        for target in ["openclaw-scheduler", "standalone"] {
            let params = format!(r#"{{"manifest":{document},"target":"{target}"}}"#);
            let error = server.refused("agentcli.compile", &params, -32602, "validation_error");
            let errors = at(&error, "/data/validation/errors");
            assert_eq!(
                found(errors),
                ["compile_payload_kind $.workflows[0].tasks[0].target.payload_kind"],
                "{error}"
            );
        }
    }
    server.end();
}

#[test]
fn proofs_whose_methods_the_scheduler_does_not_know_are_documented() {
    // The method names of openclaw-scheduler 0.2.4, none of which a compiled job can have.
    let known = ["signed-jwt", "hmac", "api-key", "bearer", "mtls", "oidc", "saml", "custom"];
    let place = Place::new();
    let mut server = place.serve();
    let methods = server.good("agentcli.authorizationProof.methods", "{}");
    for method in at(&methods, "/methods").as_array().unwrap() {
        let name = at(method, "/name").as_str().unwrap();
        assert!(!known.contains(&name));
    }
    let document = manifest(
        r#""shell":{"program":"/bin/true"},"authorization_proof":{"ref":"p"}"#,
        r#""authorization_proof_profiles":[{"id":"p","method":"jwt","public_key":"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n","proof":{"value_from":{"env":"P"}}}],"#,
    );
    let params = format!(r#"{{"manifest":{document},"target":"openclaw-scheduler"}}"#);
    let compiled = server.good("agentcli.compile", &params);
    assert_eq!(at(&compiled, "/output/jobs/0/authorization_proof/method").as_str(), Some("jwt"));
    server.end();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = page.lines().find(|line| line.contains("authorization proofs on openclaw-scheduler 0.2.4"));
    assert!(row.is_some_and(|row| row.contains("none of the four methods")), "{row:?}");
}

#[test]
fn an_identity_whose_configuration_compile_drops_still_works_in_a_run() {
    let mut place = Place::with_policy(ALLOW);
    place.set("THE_TOKEN", "tok-4f1c2a9d77e05b36");
    let document = manifest(
        r#""shell":{"program":"/bin/sh","args":["-c","test \"$TOKEN\" = tok-4f1c2a9d77e05b36"]},"identity":{"ref":"p"}"#,
        r#""identity_profiles":[{"id":"p","provider":"env-bearer","auth":{"mode":"service","provider_config":{"token_env":"THE_TOKEN"}},"presentation":{"bindings":[{"source":"credentials.access_token.value","target":{"kind":"env","name":"TOKEN"}}]}}],"#,
    );
    place.write("m.json", &document);
    let compiled = place.good(&["compile", "m.json", "--target", "openclaw-scheduler"]);
    assert_eq!(at(&compiled, "/jobs/0/identity/auth/provider_config"), &Json::Null, "{compiled}");
    assert!(!compiled.to_string().contains("THE_TOKEN"), "{compiled}");
    place.good(&["exec", "m.json", "a"]);
}

/// Whether a run that needs a sandbox was refused because this machine has none.
fn lacks(result: &Json) -> bool {
    let is_lacking = result.get("code").and_then(Json::as_str) == Some("sandbox_enforcement_unavailable");
    if is_lacking {
        eprintln!("not run: this machine lacks a sandbox: {result}");
    }
    is_lacking
}

#[test]
fn a_sandbox_on_linux_is_enforced_and_not_only_declared() {
    let place = Place::with_policy(ALLOW);
    for name in ["in", "out"] {
        std::fs::create_dir(place.path(name)).unwrap();
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let tasks = |contract: &str, script: &str| {
        manifest(
            &format!(
                r#""shell":{{"program":"/bin/bash","args":["-c",{}]}},"contract":{contract}"#,
                Json::from(script)
            ),
            "",
        )
    };
    let strict = r#"{"sandbox":"strict","allowed_paths":["in"],"network":"none"}"#;
    let attack = format!(
        "echo x > in/made || exit 1
         echo x 2>/dev/null > out/made && exit 2
         echo x 2>/dev/null >> policy.yaml && exit 3
         ls state/ledger.key 2>/dev/null && exit 4
         (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 5
         kill -0 $PARENT 2>/dev/null && exit 6
         exit 0"
    );
    place.write("m.json", &tasks(strict, &attack.replace("$PARENT", &std::process::id().to_string())));
    let (result, code) = place.json(&["exec", "m.json", "a"]);
    if lacks(&result) {
        return;
    }
    assert_eq!(code, 0, "{result}");
    assert!(place.path("in/made").exists() && !place.path("out/made").exists());
    assert_eq!(std::fs::read_to_string(place.path("policy.yaml")).unwrap(), ALLOW);
    // Without a contract the same writes work: it is the contract that holds them.
    place.write("m.json", &tasks("{}", &format!("echo x > out/made && exec 3<>/dev/tcp/127.0.0.1/{port}")));
    place.good(&["exec", "m.json", "a"]);
    assert!(place.path("out/made").exists());
    // A working directory outside of the allowed paths is an escape, also through a link.
    std::os::unix::fs::symlink("/", place.path("in/link")).unwrap();
    for cwd in ["..", "in/link", "/etc"] {
        let escape = format!(
            r#""shell":{{"program":"/bin/true","cwd":"{cwd}"}},"contract":{{"allowed_paths":["in"]}}"#
        );
        place.write("m.json", &manifest(&escape, ""));
        place.refused(&["exec", "m.json", "a"], "sandbox_path_escape");
    }
}

#[test]
fn a_server_is_ready_without_opening_state_or_starting_anything() {
    let place = Place::with_policy(ALLOW);
    let before = listing(place.root());
    let mut server = place.serve();
    let params = format!(r#"{{"manifest":{}}}"#, echo("x"));
    assert_eq!(at(&server.good("agentcli.validate", &params), "/ok"), &Json::Bool(true));
    let process = format!("/proc/{}", server.child.id());
    // The main thread, and the one that waits for signals.
    let threads = std::fs::read_dir(format!("{process}/task")).unwrap().count();
    assert!(threads <= 2, "{threads} threads");
    let children = std::fs::read_to_string(format!("{process}/task/{}/children", server.child.id()));
    assert_eq!(children.unwrap_or_default(), "");
    assert_eq!(listing(place.root()), before, "no state directory is made");
    server.end();
}

fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
