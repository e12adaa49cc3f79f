//! Secrets of runs: emitted in every way and spelling, they are nowhere afterwards, and the run fails with their names.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

const AGENT: &str = include_str!("test_secrets/agent.py");
const SPELL: &str = include_str!("test_secrets/spell.py");

/// Values of the suite's environment.
const VALUES: &[(&str, &str)] = &[
    ("PLAIN", "zQ7plainSecretvalueX"),
    ("MULTI", "first-line-of-it-AAAA\nsecond-line-of-it-BBBB\nthird-line-of-it-CCCC"),
    ("ACCENT", "pässwörter-über-alles-7"),
    ("SLASH", "ab/cd/ef>gh?ij-kéy"),
    ("DIGITS", "48215550937261"),
    ("SPACE", "two words & many more"),
];

/// Places that the agent writes a secret to.
const WAYS: &[&str] = &[
    "event",
    "event_member",
    "event_type",
    "event_number",
    "log",
    "log_before",
    "log_long",
    "log_crash",
    "stdout_log",
    "stdout_garbage",
    "artifact",
    "artifact_data",
    "artifact_path",
    "artifact_file",
    "checked_file",
    "error",
    "trace_id",
    "status",
    "tool_input",
    "tool_member",
    "tool_name",
];

/// Reports of all formats.
const REPORTS: &str = "json=r.json,html=r.html,junit=r.xml,markdown=r.md,sarif=r.sarif,jsonl=r.jsonl";

struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(suite: &str) -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(bench.path().join("given")).unwrap();
        bench.write("given/suite.yaml", suite);
        bench.write("given/agent.py", AGENT);
        bench.write("given/spell.py", SPELL);
        bench
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn proctor(&self, arguments: &[&str]) -> Output {
        let mut command = std::process::Command::new(crate::support::binary());
        command.args(arguments).current_dir(self.path()).env_remove("PROCTOR_STATE");
        command.envs(VALUES.iter().copied()).output().unwrap()
    }

    /// Runs the suite with reports of all formats, and gives the result and all other output.
    fn test(&self, agent: &str) -> (Value, Output) {
        let arguments =
            ["test", "given/suite.yaml", "--agent", agent, "--report", REPORTS, "--parallel", "4"];
        let output = self.proctor(&arguments);
        let report = std::fs::read(self.path().join("r.json"));
        let report = report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        (serde_json::from_slice(&report).unwrap(), output)
    }

    /// Fails if a part of one of these texts is in a file other than those that were given, or in an output.
    fn assert_absent(&self, texts: &BTreeMap<String, String>, output: &Output) {
        let mut files = vec![
            (PathBuf::from("stdout"), output.stdout.clone()),
            (PathBuf::from("stderr"), output.stderr.clone()),
        ];
        let shown = self.proctor(&["audit", "export", "-o", "bundle"]);
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
        read_all(self.path(), &mut files);
        assert!(files.len() > 9, "{}", files.len());
        // Parts: a text that was shortened shows only its beginning.
        let parts: HashMap<&[u8], &str> = texts
            .iter()
            .flat_map(|(name, text)| text.as_bytes().windows(PART).map(move |part| (part, name.as_str())))
            .collect();
        for (path, bytes) in &files {
            for (at, part) in bytes.windows(PART).enumerate() {
                if let Some(name) = parts.get(part) {
                    let around = &bytes[at.saturating_sub(60)..(at + 40).min(bytes.len())];
                    panic!("{name} in {}: {}", path.display(), String::from_utf8_lossy(around));
                }
            }
        }
    }
}

/// Base64 of the text before the secret in `base64_lines`.
const NEIGHBOURS: &str = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh";

/// Bytes of a spelling that must not be seen together.
const PART: usize = 10;

fn read_all(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name() != Some("given".as_ref()) {
            read_all(&path, files);
        } else if path.is_file() {
            files.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
}

/// Spellings by name: the variable, and the text.
fn spellings() -> BTreeMap<String, (String, String)> {
    let output = std::process::Command::new("python3")
        .args(["-c", SPELL])
        .envs(VALUES.iter().copied())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn environment() -> String {
    let names: Vec<String> = VALUES.iter().map(|(name, _)| format!("{name}: \"${{{name}}}\"")).collect();
    format!("environment: {{{}}}\n", names.join(", "))
}

/// The reason of each test's only run.
fn reasons(result: &Value) -> BTreeMap<String, String> {
    let tests = result["tests"].as_array().unwrap();
    let reason = |test: &Value| {
        let run = &test["runs"][0];
        format!("{}: {}", run["verdict"].as_str().unwrap(), run["error"].as_str().unwrap_or_default())
    };
    tests.iter().map(|test| (test["id"].as_str().unwrap().to_owned(), reason(test))).collect()
}

#[test]
fn every_way_and_spelling_fails_the_run_and_is_nowhere_afterwards() {
    let spellings = spellings();
    let all = std::env::var_os("PROCTOR_FULL").is_some();
    let mut suite = format!(
        "test_suite: leaks\n{}mock_tools: [{{name: search, default: {{output: {{hits: 0}}}}}}]\ntests:\n",
        environment()
    );
    let mut expected = BTreeMap::new();
    for (row, way) in WAYS.iter().enumerate() {
        for (column, (spelling, (variable, text))) in spellings.iter().enumerate() {
            // A path with control characters is no route of the endpoint, and kept nowhere.
            if *way == "tool_name" && text.chars().any(char::is_control) {
                continue;
            }
            if all || (row + column) % 5 == 0 || *way == "log" || spelling == "raw" {
                let id = format!("{way}.{spelling}");
                suite.push_str(&format!(
                    "  - {{id: {id}, name: T, task: {{description: x, input_data: {{way: {way}, spelling: {spelling}}}}}, assertions: [{{type: file_contains, config: {{path: checked.txt, pattern: nothing-of-it}}}}]}}\n"
                ));
                expected.insert(id, variable.clone());
            }
        }
    }
    let bench = Bench::new(&suite);
    let (result, output) = bench.test("stdio:python3 given/agent.py");
    assert_eq!(output.status.code(), Some(10), "{}", String::from_utf8_lossy(&output.stderr));
    // Of base64 text around a secret, the neighbours stay.
    let texts = spellings.into_iter().map(|(name, (_, text))| (name, text.replace(NEIGHBOURS, "")));
    let values = VALUES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    bench.assert_absent(&texts.chain(values).collect(), &output);
    let reasons = reasons(&result);
    assert_eq!(reasons.len(), expected.len());
    let wrong: Vec<String> = expected
        .iter()
        .filter(|(id, variable)| {
            let wanted = format!("failed: the agent emitted the secret {variable}");
            !reasons[*id].starts_with(&wanted)
        })
        .map(|(id, variable)| format!("{id}, {variable}: {}", reasons[id]))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), expected.len(), wrong.join("\n"));
}

#[test]
fn plain_programs_that_emit_a_secret_fail_too() {
    let mut suite = format!("test_suite: leaks\n{}tests:\n", environment());
    let ways = [
        ("output", "echo \"it is $PLAIN\""),
        ("lines", "echo \"$MULTI\" >&2"),
        ("crash", "echo \"$PLAIN\" >&2; exit 3"),
        (
            "before",
            "echo \"$PLAIN\" >&2; for i in 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3; do echo $i >&2; done",
        ),
        ("long", "printf '%2040s' x >&2; echo \"$PLAIN\" >&2"),
    ];
    for (id, _) in &ways {
        suite.push_str(&format!(
            "  - {{id: {id}, name: T, task: {{description: {id}}}, assertions: [{{type: no_errors}}]}}\n"
        ));
    }
    let bench = Bench::new(&suite);
    let cases: Vec<String> = ways.iter().map(|(id, script)| format!("{id}) {script} ;;")).collect();
    let script = format!("read -r way\ncase \"$way\" in\n{}\nesac\n", cases.join("\n"));
    bench.write("given/agent.sh", &script);
    let (result, output) = bench.test("plain:sh given/agent.sh");
    for (id, reason) in reasons(&result) {
        assert!(reason.starts_with("failed: the agent emitted the secret "), "{id}: {reason}");
    }
    let values = VALUES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    bench.assert_absent(&values.collect(), &output);
}

#[test]
fn texts_of_the_suite_and_names_of_files_show_no_secret() {
    let suite = format!(
        r#"test_suite: texts
{}tests:
  - {{id: setup, name: T, task: {{description: x}}, setup: ["sh -c 'printf %0190d 0 >&2; echo ${{PLAIN}} >&2; exit 1'"], assertions: [{{type: no_errors}}]}}
  - {{id: teardown, name: T, task: {{description: x}}, teardown: ["sh -c 'cat leak >&2; exit 1'", "sh -c 'exit 1 # ${{PLAIN}}'"], assertions: [{{type: contains, config: {{pattern: nothing-of-it}}}}]}}
  - {{id: check, name: T, task: {{description: x}}, assertions: [{{type: custom_command, config: {{command: "sh -c 'cat long; exit 1'"}}}}]}}
  - {{id: signal, name: T, task: {{description: x}}, assertions: [{{type: custom_command, config: {{command: "sh -c 'cat long >&2; kill -9 $$'"}}}}]}}
  - {{id: pattern, name: T, task: {{description: x, input_data: {{k: "${{PLAIN}}"}}}}, assertions: [{{type: contains, config: {{pattern: "${{PLAIN}}"}}}}]}}
  - {{id: attest, name: T, task: {{description: x}}, assertions: [{{type: no_errors}}], attest: [{{assertion_id: said, type: content, spec: {{target: output.message, check: contains, value: "${{PLAIN}}"}}}}]}}
"#,
        environment()
    );
    let bench = Bench::new(&suite);
    let script = r#"printf %s "$PLAIN" > leak
printf '%0190d' 0 > long; printf '%s%0300d' "$PLAIN" 0 >> long
ln -s "/$PLAIN" link; mkfifo "$PLAIN"
echo hello
"#;
    bench.write("given/agent.sh", script);
    let (result, output) = bench.test("plain:sh given/agent.sh");
    let values = VALUES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    bench.assert_absent(&values.collect(), &output);
    // The texts are there, each with the secret cut.
    let shown = result.to_string();
    for wanted in [
        "failed: status 1: 0000",
        "teardown `sh -c exit 1 # [REDACTED:PLAIN]` failed",
        "teardown `sh -c cat leak >&2; exit 1` failed: status 1: [REDACTED:PLAIN]",
        "not copied for the checks",
        "`[REDACTED:PLAIN]` was not found",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let texts = String::from_utf8_lossy(&output.stdout);
    assert!(texts.contains("setup"), "{texts}");
}

#[test]
fn settings_of_agents_are_secrets_too() {
    let token = "tok-5f1c2a9d77e05b36";
    let answer =
        format!(r#"{{"version":"1.0","task_id":"x","status":"failed","error":"no access for {token}"}}"#);
    let server = crate::tool_server::ToolServer::start(answer);
    let suite = format!(
        r#"test_suite: settings
agents:
  - {{name: program, type: cli, config: {{command: sh, args: ["-c", "echo key $MODEL_KEY >&2; exit 1"], environment: {{MODEL_KEY: "{token}"}}}}}}
  - {{name: endpoint, type: http, config: {{endpoint: "{}/x", headers: {{Authorization: "Bearer {token}"}}}}}}
tests:
  - {{id: t, name: T, task: {{description: x}}, assertions: [{{type: no_errors}}]}}
"#,
        server.base()
    );
    for (agent, name) in [("program", "MODEL_KEY"), ("endpoint", "Authorization")] {
        let bench = Bench::new(&suite);
        let (result, output) = bench.test(agent);
        let reason = &reasons(&result)["t"];
        assert!(reason.starts_with(&format!("failed: the agent emitted the secret {name}")), "{reason}");
        bench.assert_absent(&BTreeMap::from([(name.to_owned(), token.to_owned())]), &output);
    }
}

#[test]
fn files_of_the_fixture_and_public_values_are_no_emission() {
    let suite = format!(
        r#"test_suite: fixture
{}public: [DIGITS]
tests:
  - {{id: t, name: T, task: {{description: x, workspace_fixture: fixture}}, assertions: [{{type: file_contains, config: {{path: config.txt, pattern: "key ="}}}}, {{type: contains, config: {{pattern: "{}"}}}}]}}
"#,
        environment(),
        VALUES[4].1
    );
    let bench = Bench::new(&suite);
    std::fs::create_dir(bench.path().join("given/fixture")).unwrap();
    bench.write("given/fixture/config.txt", &format!("key = {}\n", VALUES[0].1));
    bench.write("given/agent.sh", "echo \"it is $DIGITS\"\n");
    let (result, output) = bench.test("plain:sh given/agent.sh");
    assert_eq!(output.status.code(), Some(0), "{result}");
    bench.assert_absent(&BTreeMap::from([("PLAIN".to_owned(), VALUES[0].1.to_owned())]), &output);
}
