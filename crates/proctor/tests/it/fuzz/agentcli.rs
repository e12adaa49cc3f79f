//! The agentcli protocol: manifests, lines, tokens, signatures and lists of signers.

mod keys;

use proctor_core::json::Json;
use proctor_wire::agentcli::compile::{Target, compile};
use proctor_wire::agentcli::finding::Validation;
use proctor_wire::agentcli::validate::validate;

use crate::fuzz::{Material, drive};

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "1e999",
    "-1",
    "0.5",
    "\"version\":\"0.2\"",
    "\"version\":\"0.1\"",
    "\"workflows\":[",
    "\"tasks\":[",
    "\"id\":\"a\"",
    "\"id\":\"a.failure\"",
    "\"target\":{\"session_target\":\"shell\"}",
    "\"target\":{\"session_target\":\"main\",\"payload_kind\":\"shellCommand\"}",
    "\"prompt\":\"p\"",
    "\"shell\":{\"program\":\"x\"}",
    "\"schedule\":{\"cron\":\"0 0 31 2 *\"}",
    "\"trigger\":{\"parent\":\"a\",\"on\":\"success\"}",
    "\"on_failure\":{\"prompt\":\"p\"}",
    "\"condition\":\"regex:(a+)+$\"",
    "\"identity\":{\"ref\":\"i\"}",
    "\"identity\":{\"principal\":\"p\"}",
    "\"contract\":{\"required_trust_level\":\"autonomous\"}",
    "\"approval\":{\"policy\":\"auto-reject\"}",
    "\"provider_config\":{\"1\":2,\"0\":1}",
    "\\ud800",
    "\\u0000",
    "\u{7f}",
    "\u{e9}",
];

const PROFILES: &str = r#"{"version":"0.2","identity_profiles":[{"id":"i","provider":"env-bearer","subject":{"kind":"service","principal":"p","attributes":{"10":1,"9":2}},"auth":{"mode":"service","provider_config":{"token_env":"T"},"scopes":["a"]},"trust":{"level":"supervised","constraints":{"max_autonomy":"autonomous"}},"presentation":{"bindings":[{"source":"credentials.access_token.value","target":{"kind":"env","name":"N"}}]}}],"authorization_proof_profiles":[{"id":"p","method":"none"}],"authorization_profiles":[{"id":"z","provider":"opa","provider_config":{"endpoint":"https://h"},"on_error":"warn"}],"evidence_profiles":[{"id":"e","provider":"ssh"}],"workflows":[{"id":"w","name":"W","identity":{"ref":"i"},"authorization":{"ref":"z"},"tasks":[{"id":"a","name":"A","target":{"session_target":"shell"},"shell":{"program":"x","args":["a'b"],"cwd":"/tmp"},"schedule":{"cron":"0 9 * * *","tz":"UTC"},"contract":{"sandbox":"strict","allowed_paths":["."]},"authorization_proof":{"ref":"p"},"evidence":{"ref":"e"},"on_failure":{"prompt":"why","delay_s":5,"condition":"contains:x"}},{"id":"b","name":"B","target":{"session_target":"isolated"},"prompt":"p","trigger":{"parent":"a","on":"complete","condition":"regex:^a"},"output":{"preview_bytes":64,"offload":"always","format":"json"},"approval":{"policy":"manual","timeout_s":5}}]}]}"#;

const FLAT: &str = r#"{"version":"0.1","workflows":[{"id":"w","name":"W","identity":{"principal":"p","run_as":"r","attestation":"a"},"tasks":[{"id":"a","name":"A","target":{"session_target":"main"},"prompt":"p","schedule":{"cron":"* * * * *"}}]}]}"#;

/// Laws of a manifest: what compiles is valid, the same for both targets where neither refuses, and digests do not fail after it.
fn laws(manifest: &Json) -> Result<(), String> {
    let validation = validate(manifest);
    let _ = proctor_flow::lint::findings(manifest);
    for target in [Target::Standalone, Target::OpenclawScheduler] {
        match compile(manifest, target, true) {
            Ok(output) if !validation.is_ok() => return Err(format!("invalid, and compiled: {output}")),
            Ok(output) => {
                let text = output.to_string();
                if Json::parse(text.as_bytes()).as_ref() != Ok(&output) {
                    return Err(format!("the output does not read back: {text}"));
                }
            }
            Err(failure) if failure.validation.as_ref().is_none_or(Validation::is_ok) => {
                return Err(format!("refused without an error: {}", failure.message));
            }
            Err(_) => {}
        }
    }
    if let Ok(converted) = proctor_wire::agentcli::convert::convert(manifest)
        && !validate(&converted).is_ok()
    {
        return Err(format!("converted to an invalid manifest: {converted}"));
    }
    Ok(())
}

#[test]
fn agentcli_manifests() {
    let valid: &[&[u8]] = &[PROFILES.as_bytes(), FLAT.as_bytes()];
    for document in valid {
        assert!(validate(&Json::parse(document).unwrap()).is_ok());
    }
    let documents: Vec<Json> = valid.iter().map(|document| Json::parse(document).unwrap()).collect();
    let mut pool: Vec<Json> = documents.iter().flat_map(nodes).collect();
    pool.extend(
        ["null", "-1", "1e308", "{}", "[]", "\"\"", "\"../x\"", "true", "\"main\"", "\"none\""]
            .map(|text| Json::parse(text.as_bytes()).unwrap()),
    );
    drive("agentcli manifest", &Material { words: WORDS, valid }, |data| {
        // What is JSON no more says instead which parts of a manifest are exchanged, and for what.
        let manifest =
            Json::parse_bounded(data, 10_000).unwrap_or_else(|_| exchanged(data, &documents, &pool));
        laws(&manifest).map_err(Into::into)
    });
}

/// A value and all that lies in it.
fn nodes(value: &Json) -> Vec<Json> {
    let mut found = vec![value.clone()];
    match value {
        Json::Array(items) => found.extend(items.iter().flat_map(nodes)),
        Json::Object(members) => found.extend(members.iter().flat_map(|(_, member)| nodes(member))),
        _ => {}
    }
    found
}

/// A manifest in which parts are others of the pool; each three bytes say which part, and which other.
fn exchanged(data: &[u8], documents: &[Json], pool: &[Json]) -> Json {
    let (first, rest) = data.split_first().unwrap_or((&0, &[]));
    let mut manifest = documents[usize::from(*first) % documents.len()].clone();
    for recipe in rest.chunks_exact(3).take(4) {
        let other = pool[(usize::from(recipe[1]) * 256 + usize::from(recipe[2])) % pool.len()].clone();
        let mut at = usize::from(recipe[0]) % nodes(&manifest).len();
        *nth(&mut manifest, &mut at).expect("there are that many") = other;
    }
    manifest
}

/// The part of this number, depth first.
fn nth<'a>(value: &'a mut Json, left: &mut usize) -> Option<&'a mut Json> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Json::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Json::Object(members) => members.iter_mut().find_map(|(_, member)| nth(member, left)),
        _ => None,
    }
}

#[test]
fn agentcli_manifests_in_yaml() {
    use proctor_yaml::{Limits, parse};

    const LIMITS: Limits =
        Limits { source_bytes: 1 << 20, depth: 64, nodes: 10_000, text_bytes: 1 << 20, errors: 20 };
    let words = &[
        "version:",
        "\"0.2\"",
        "0.2",
        "workflows:",
        "- id:",
        "tasks:",
        "target:",
        "{session_target: shell}",
        "shell:",
        "program:",
        "&a",
        "*a",
        "<<:",
        "|",
        ">-",
        "\"",
        "'",
        "#",
        "\t",
        "\n  ",
        "\n    ",
        "---",
        "...",
        "!!str",
        "~",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\u{feff}",
        "\u{85}",
        "? ",
        ": ",
    ];
    let valid: &[&[u8]] = &[
        b"version: \"0.2\"\nworkflows:\n  - id: w\n    name: W\n    tasks:\n      - id: a\n        name: A\n        target: {session_target: shell}\n        shell: {program: /bin/echo, args: [\"x\"]}\n        schedule: {cron: \"0 6 * * *\", tz: Europe/Berlin}\n",
        b"version: \"0.2\"\nworkflows:\n  - &w\n    id: w\n    name: W\n    tasks:\n      - id: a\n        name: A\n        target: {session_target: main}\n        prompt: |\n          line\n          another\n        schedule: {cron: \"* * * * *\"}\n",
    ];
    drive("agentcli manifest in YAML", &Material { words, valid }, |data| match parse(data, &LIMITS) {
        Ok(tree) => laws(&tree.to_json()).map_err(Into::into),
        Err(errors) if errors.is_empty() => Err("refused without a reason".into()),
        Err(_) => Ok(()),
    });
}

#[test]
fn agentcli_lines() {
    use proctor_wire::agentcli::rpc::{Line, read};

    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"jsonrpc\":\"2.0\"",
        "\"id\":1",
        "\"id\":{\"a\":[1.50]}",
        "\"id\":null",
        "\"method\":\"agentcli.ping\"",
        "\"method\":7",
        "\"params\":{}",
        "\"params\":[]",
        "\"params\":null",
        "\r",
        " ",
        "\"",
        "\\",
        "\\ud800",
        "1e999",
        "\u{feff}",
    ];
    let valid: &[&[u8]] = &[
        br#"{"jsonrpc":"2.0","id":1,"method":"agentcli.validate","params":{"manifest":{"version":"0.2"}}}"#,
        br#"{"jsonrpc":"2.0","method":"agentcli.ping"}"#,
        br#"{"jsonrpc":"2.0","id":null,"method":"agentcli.schema","params":{"target":"rpc-request","legacy":true}}"#,
    ];
    drive("agentcli line", &Material { words, valid }, |data| {
        let reply = match read(data) {
            Line::Blank => return Ok(()),
            Line::Refused(reply) => reply,
            Line::Call(call) => call.reply(Ok(Json::object().with("ok", true))),
        };
        let Some(reply) = reply else { return Ok(()) };
        let parsed = Json::parse(reply.as_bytes()).map_err(|error| format!("{error}: {reply}"))?;
        if reply.contains('\n') || parsed.get("result").is_some() == parsed.get("error").is_some() {
            return Err(format!("not one line with one of result and error: {reply}").into());
        }
        Ok(())
    });
}
