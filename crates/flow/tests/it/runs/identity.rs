//! Presented credentials: handed over, masked everywhere, cleaned up.

use std::sync::Arc;

use proctor_core::json::Json;
use proctor_flow::run::{Parts, Runner};
use proctor_identity::session::TrustLevel;
use proctor_wire::agentcli::error::Code;

use super::fixture::{ALLOW, IDENTITY, PROFILE, Planted, World, code, exec, manifest_with, script};

/// Not found by the scanner: only the mask can have removed it.
const SECRET: &str = "plain words/with \"quotes\"";

fn planted(world: &World, planted: Planted) -> Runner {
    Runner::new(Parts { identities: Arc::new(planted), ..world.parts() }).unwrap()
}

fn secret() -> Planted {
    Planted { secret: SECRET.to_owned(), ..Planted::default() }
}

/// Every file below a folder that has the text in it.
fn files_with(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|window| window == text.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn presented_values_reach_the_process_and_nothing_else() {
    let world = World::new(Some(ALLOW));
    let cleaned = secret();
    let runner = planted(&world, cleaned.clone());
    // In pieces, escaped, encoded, on both streams, in a file that is offloaded.
    let text = r#"
        [ "$TOKEN" = "$(cat "$TOKEN_FILE")" ] || exit 9
        printf '%s' "$TOKEN"; echo
        printf '%s' "${TOKEN%??????????}"; sleep 0.2; printf '%s\n' "${TOKEN#???????????????}"
        printf '%s' "$TOKEN" | base64
        printf 'x%s' "$TOKEN" | base64
        printf 'xy%s' "$TOKEN" | base64 -w 7
        printf '%s' "$TOKEN" | od -An -v -tx1 | tr -d ' \n'; echo
        printf '%s\n' "$TOKEN" >&2
        head -c 3000 /dev/zero | tr '\0' .
        printf '%s\n' "$TOKEN"
        cat /proc/self/cmdline /proc/$PPID/cmdline"#;
    let task = script("t", text, &format!(r#"{IDENTITY},"output":{{"offload":"always"}}"#));
    let result = exec(&runner, &manifest_with(&task, PROFILE), "t").await.unwrap();
    assert!(result.is_ok, "{}", result.json);
    let shown = result.json.to_string();
    assert!(!shown.contains("plain words") && shown.contains("[REDACTED]"), "{shown}");
    assert_eq!(result.json.pointer("/resolved_identity/careless"), Some(&Json::from("[REDACTED]")));
    let encoded = base64(SECRET);
    assert!(!shown.contains(&encoded[..12]), "{shown}");
    let digits: String = SECRET.bytes().take(8).map(|byte| format!("{byte:02x}")).collect();
    assert!(!shown.contains(&digits), "{shown}");
    for text in ["plain words", &encoded[..12], "with \\\"quotes", &digits] {
        assert_eq!(files_with(&world.state(), text), Vec::<std::path::PathBuf>::new(), "{text}");
    }
    assert_eq!(*cleaned.cleaned.lock().unwrap(), [true]);
    assert!(world.records().iter().all(|(_, body)| !body.contains("plain words")));
}

fn base64(text: &str) -> String {
    use std::io::Write as _;
    let mut child = std::process::Command::new("base64")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn no_command_line_shows_a_presented_value() {
    let world = World::new(Some(ALLOW));
    let runner = planted(&world, Planted { as_input: true, ..secret() });
    // The process looks at all command lines that it can see while it has the credential.
    let text =
        "read -r line; [ \"$line\" = \"$TOKEN\" ] || exit 9; grep -la 'plain words' /proc/[0-9]*/cmdline";
    let task = script("t", text, IDENTITY);
    let result = exec(&runner, &manifest_with(&task, PROFILE), "t").await.unwrap();
    let shown = result.json.pointer("/result/stdout").and_then(Json::as_str).unwrap().to_owned();
    // Only the searching commands themselves have the words in their arguments: sh and grep.
    assert!(shown.lines().count() <= 3, "{shown}");
    assert_eq!(result.json.pointer("/result/exit_code").and_then(Json::as_i64), Some(0));
}

#[tokio::test]
async fn credentials_are_cleaned_up_after_failures_too() {
    let world = World::new(Some(ALLOW));
    let identity = secret();
    let runner = planted(&world, identity.clone());
    let task = script("t", "exit 1", IDENTITY);
    assert!(!exec(&runner, &manifest_with(&task, PROFILE), "t").await.unwrap().is_ok);
    let missing = task.replace(r#""sh""#, r#""no-such-program""#);
    assert_eq!(
        code(&exec(&runner, &manifest_with(&missing, PROFILE), "t").await),
        Some(Code::InvalidArgument)
    );
    assert_eq!(*identity.cleaned.lock().unwrap(), [false, false]);
}

#[tokio::test]
async fn a_credential_and_the_task_cannot_both_be_the_input() {
    let world = World::new(Some(ALLOW));
    let identity = Planted { as_input: true, ..secret() };
    let runner = planted(&world, identity.clone());
    let task =
        super::fixture::shell("t", "", "", &format!(r#""shell":{{"program":"cat","stdin":"x"}},{IDENTITY}"#));
    let result = exec(&runner, &manifest_with(&task, PROFILE), "t").await;
    assert_eq!(code(&result), Some(Code::PresentationStdinConflict));
    assert_eq!(*identity.cleaned.lock().unwrap(), [false]);
}

#[tokio::test]
async fn the_verify_command_gets_no_credentials() {
    let world = World::new(Some(ALLOW));
    let runner = planted(&world, secret());
    let task =
        script("t", "true", &format!(r#"{IDENTITY},"verify":{{"shell":"[ -z \"$TOKEN$TOKEN_FILE\" ]"}}"#));
    let result = exec(&runner, &manifest_with(&task, PROFILE), "t").await.unwrap();
    assert!(result.is_ok, "{}", result.json);
}

#[tokio::test]
async fn trust_is_advisory_unless_the_contract_says_otherwise() {
    let world = World::new(Some(ALLOW));
    let runner = planted(&world, Planted { trust: Some(TrustLevel::Restricted), ..secret() });
    let contract = r#""contract":{"required_trust_level":"supervised"}"#;
    let task = script("t", "true", &format!("{IDENTITY},{contract}"));
    let result = exec(&runner, &manifest_with(&task, PROFILE), "t").await.unwrap();
    assert!(result.is_ok);
    let warnings = result.json.get("warnings").and_then(Json::as_array).unwrap().to_vec();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

#[tokio::test]
async fn conditions_and_evidence_see_masked_output_only() {
    let world = World::new(Some(ALLOW));
    let runner = planted(&world, secret());
    let child = |id: &str, condition: &str| {
        let trigger =
            format!(r#""trigger":{{"parent":"t","on":"success","condition":{}}}"#, Json::from(condition));
        script(id, "true", &trigger)
    };
    let tasks = [
        script("t", "printf '%s' \"$TOKEN\"", &format!(r#"{IDENTITY},"verify":{{"shell":"true"}}"#)),
        child("raw", "contains:plain words"),
        child("expression", "regex:^plain"),
        child("masked", "contains:[REDACTED]"),
    ];
    let manifest = manifest_with(&tasks.join(","), PROFILE);
    let options = proctor_flow::run::Options {
        evidence_provider: Some("ledger".to_owned()),
        ..proctor_flow::run::Options::default()
    };
    let done = runner
        .run_workflow(&manifest, None, None, &options, &mut proctor_flow::run::Cancel::never())
        .await
        .unwrap();
    let statuses: Vec<String> = done.json["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| format!("{} {}", task["task_id"].as_str().unwrap(), task["status"].as_str().unwrap()))
        .collect();
    assert_eq!(statuses, ["t ok", "raw skipped", "expression skipped", "masked ok"]);
    assert!(!done.json.to_string().contains("plain words"));
    assert!(done.json.pointer("/tasks/0/execution/evidence/path").is_some(), "{}", done.json);
    assert_eq!(files_with(&world.state(), "plain words"), Vec::<std::path::PathBuf>::new());
}
