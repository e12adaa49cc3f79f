//! Every string of a manifest, and every word of the command line, as an attack.

use proctor_core::json::Json;

use super::super::place::{ALLOW, Place};
use super::{Attacked, assert_unharmed, command, file};

/// A manifest with a string in every place that takes one.
const DOCUMENT: &str = r#"{"version":"0.2",
  "identity_profiles":[{"id":"p","provider":"env-bearer","subject":{"kind":"service","principal":"s","display_name":"d","issuer":"i","run_as":"r","attributes":{"k":"v"}},"auth":{"mode":"service","scopes":["x"],"audience":"a","resource":"r","provider_config":{"token_env":"T"}},"trust":{"level":"supervised"},"presentation":{"handoff":"none","cleanup":"always","bindings":[{"source":"credentials.access_token.value","target":{"kind":"file","name":"n","prefix":"q","expose_as":"F"},"required":false}]}},
    {"id":"f","provider":"file-bearer","auth":{"mode":"service","required":false,"provider_config":{"token_file":"token"}}},
    {"id":"o","provider":"oidc-client-credentials","auth":{"mode":"service","required":false,"provider_config":{"token_endpoint":"http://127.0.0.1:1/","client_id":"c","client_secret":"s"}}}],
  "authorization_proof_profiles":[{"id":"q","method":"detached-signature","allowed_signers":"signers","principal":"me","namespace":"agentcli","proof":{"value_from":{"file":"proof"}}}],
  "authorization_profiles":[{"id":"z","provider":"opa","provider_config":{"module":"package x\nallow := true","query":"data.x.allow"},"on_error":"warn","decision":{"allow_values":["y"]}},{"id":"c","provider":"cedar","provider_config":{"policies_file":"policies"}}],
  "evidence_profiles":[{"id":"e","provider":"ssh","provider_config":{"key_file":"key"}}],
  "workflows":[{"id":"w","name":"W","child_credential_policy":"none","tasks":[
    {"id":"a","name":"A","target":{"session_target":"shell","agent_id":"m"},"shell":{"program":"/does/not/exist","args":["x"],"env":{"E":"v"},"cwd":".","stdin":"in"},"schedule":{"cron":"0 9 * * *","tz":"UTC"},"identity":{"ref":"p","scope":"s"},"authorization":{"ref":"z"},"contract":{"sandbox":"none","allowed_paths":["."],"network":"unrestricted"},"verify":{"shell":"true"},"auth_profile":"x","delivery":{"mode":"announce","channel":"c","to":"t"},"session":{"preferred_key":"k"},"model_policy":{"provider":"p","model":"m","thinking":"t"},"approval":{"policy":"auto-approve","approver_scope":"s"},"on_failure":{"id":"h","name":"H","prompt":"p","condition":"contains:x"}}]}]}"#;

const ATTACKS: &[&str] = &[
    "../../../../../../etc/passwd",
    "/dev/zero",
    "/proc/self/environ",
    "link/passwd",
    "$(touch PWNED)",
    "`touch PWNED`",
    "; touch PWNED #",
    "x'; touch PWNED; '",
    "--output=PWNED",
    "-e",
    "file:///etc/passwd",
    "http://127.0.0.1:1/",
    "a\nb: {PWNED: 1}",
    "%s%s%s%n",
    "{{constructor.constructor('return 1')()}}",
    "\u{202e}gnp",
    "",
    " ",
    "__proto__",
];

/// Replaces the string with this number, depth first; returns whether there is one.
fn replace(value: &mut Json, left: &mut usize, attack: &str) -> bool {
    match value {
        Json::String(text) => {
            if *left == 0 {
                *text = attack.to_owned();
                return true;
            }
            *left -= 1;
            false
        }
        Json::Array(items) => items.iter_mut().any(|item| replace(item, left, attack)),
        Json::Object(members) => members.iter_mut().any(|(_, member)| replace(member, left, attack)),
        _ => false,
    }
}

fn place() -> Place {
    let place = Place::with_policy(ALLOW);
    std::os::unix::fs::symlink("/etc", place.path("link")).unwrap();
    file(&place, "policies", "permit(principal, action, resource);");
    place
}

#[test]
fn no_string_of_a_manifest_is_a_path_out_or_a_command() {
    let mut attacked = Attacked::new(place());
    let document = Json::parse(DOCUMENT.replace('\n', " ").as_bytes()).unwrap();
    let before = attacked.server.call("agentcli.validate", &format!(r#"{{"manifest":{document}}}"#));
    assert_eq!(before.pointer("/result/errors").unwrap().to_string(), "[]", "{before}");
    let mut strings = 0;
    // One attack a string: the next string gets the next one, and each run of the test all of them.
    loop {
        let attack = ATTACKS[strings % ATTACKS.len()];
        let mut changed = document.clone();
        if !replace(&mut changed, &mut { strings }, attack) {
            break;
        }
        let text = changed.to_string();
        for (method, more) in [
            ("validate", ""),
            ("compile", ""),
            ("compile", r#","target":"openclaw-scheduler""#),
            ("identity.resolve", r#","taskId":"a""#),
            ("authorization.evaluate", r#","taskId":"a""#),
        ] {
            let params = format!(r#"{{"manifest":{text}{more}}}"#);
            let reply = attacked.server.call(&format!("agentcli.{method}"), &params).to_string();
            assert!(!reply.contains("root:x:0"), "{attack} in string {strings}: {reply}");
        }
        strings += 1;
    }
    assert!(strings > 80, "{strings} strings");
    attacked.end();
}

#[test]
fn paths_of_credentials_and_programs_are_taken_as_they_are() {
    let place = place();
    // A program or an argument is never read by a shell, and a working directory never left by `..` or a link unnoticed.
    for (what, shell) in [
        (
            "an argument",
            r#"{"program":"/bin/echo","args":["$(touch PWNED)","; touch PWNED","`touch PWNED`"]}"#,
        ),
        ("a variable", r#"{"program":"/bin/echo","env":{"A":"$(touch PWNED)"}}"#),
        ("an input", r#"{"program":"/bin/cat","stdin":"$(touch PWNED)"}"#),
    ] {
        let document = super::super::place::manifest(&format!(r#""shell":{shell}"#), "");
        file(&place, "m.json", document);
        let (text, code) = command(&place, what, &["exec", "m.json", "a"]);
        assert_eq!(code, 0, "{what}: {text}");
    }
    let verify = super::super::place::manifest(
        r#""shell":{"program":"/bin/true"},"identity":{"ref":"p"}"#,
        r#""identity_profiles":[{"id":"p","provider":"file-bearer","auth":{"mode":"service","provider_config":{"token_file":"/dev/zero"}}}],"#,
    );
    file(&place, "m.json", verify);
    let (text, code) = command(&place, "a device as token", &["exec", "m.json", "a"]);
    assert_eq!(code, 1, "{text}");
    assert_unharmed(&place);
}

#[test]
fn words_of_the_command_line_stay_words() {
    let place = place();
    file(&place, "m.json", super::super::place::echo("x"));
    std::os::unix::fs::symlink("/tmp", place.path("out")).unwrap();
    for arguments in [
        vec!["validate", "../../../../../../etc/passwd"],
        vec!["validate", "/dev/zero"],
        vec!["validate", "link/passwd"],
        vec!["validate", "$(touch PWNED)"],
        vec!["exec", "m.json", "../a"],
        vec!["exec", "m.json", "$(touch PWNED)"],
        vec!["exec", "m.json", "a", "--workflow", "; touch PWNED"],
        vec!["compile", "m.json", "--write", "out/PWNED"],
        vec!["compile", "m.json", "--write", "../PWNED"],
        vec!["compile", "m.json", "--write", "/tmp/PWNED"],
        vec!["registry", "add", "m.json", "--name", "../PWNED"],
        vec!["registry", "show", "../../policy.yaml"],
        vec!["registry", "remove", "../../m"],
        vec!["inspect", "--db", "link/passwd"],
        vec!["inspect", "jobs;DROP TABLE jobs", "--db", "m.json"],
        vec!["apply", "m.json", "--scheduler-bin", "$(touch PWNED)"],
        vec!["apply", "m.json", "--scheduler-prefix", "--eval=PWNED"],
        vec!["verify", "../../../state/ledger.key"],
        vec!["verify", "0123456789abcdef0123456789abcdef"],
        vec!["serve", "--db", "x", "--db", "y"],
    ] {
        let (text, code) = command(&place, "the command line", &arguments);
        assert_eq!(code, 1, "{arguments:?}: {text}");
        assert!(!text.contains("root:x:0"), "{arguments:?}: {text}");
    }
    assert!(place.path("m.json").exists());
    assert_unharmed(&place);
}
