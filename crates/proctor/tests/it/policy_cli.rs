//! `proctor policy …` from the outside.

use std::fmt::Write;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::support::{Folder, lines, text};
use proctor_core::json::Json;

const POLICY: &str = r#"version: "1"
default: deny
rules:
  - { id: reading, when: action.tool == "file_read", then: allow }
  - { id: deploys, when: action.tool == "deploy", then: ask, reason: Deploying needs a person. }
  - { id: later, when: action.tool == "later", then: defer, retry_after: 2s }
  - { id: searches, when: action.tool == "search", then: allow }
  - { id: short, when: action.tool == "search", then: modify, set: { /args/limit: 10 } }
  - { id: no-delete, when: 'action.commands.exists(c, c.startsWith("rm "))', then: deny, reason: Nothing is deleted here. }
  - { id: commands, when: action.tool == "shell", then: allow }
"#;

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The decision, its rule, and the exit code.
fn checked(folder: &Folder, args: &[&str]) -> (String, String, i32) {
    let mut all = vec!["policy", "check", "--json"];
    all.extend(args);
    let output = folder.run(&all);
    let decision = lines(&output).into_iter().next().unwrap_or_else(|| panic!("{}", said(&output)));
    (
        text(&decision, "decision").to_owned(),
        text(&decision, "rule").to_owned(),
        output.status.code().unwrap(),
    )
}

fn is(decision: &str, rule: &str, code: i32) -> (String, String, i32) {
    (decision.to_owned(), rule.to_owned(), code)
}

#[test]
fn lint_reports_all_problems_with_their_places() {
    let folder = Folder::with_policy(
        "version: \"1\"\nrules:\n  - { id: a, then: alow }\n  - { id: b, then: deny, sett: 1 }\nnetwrk: {}\n",
    );
    let output = folder.run(&["policy", "lint", "policy.yaml"]);
    assert_eq!(output.status.code(), Some(10));
    let places: Vec<String> = printed(&output).lines().map(str::to_owned).collect();
    assert_eq!(places.len(), 3, "{places:?}");
    assert!(
        places[0].starts_with("policy.yaml:3:20: ") && places[0].contains("did you mean `allow`?"),
        "{places:?}"
    );
    assert!(
        places[1].starts_with("policy.yaml:4:26: ") && places[1].contains("did you mean `set`?"),
        "{places:?}"
    );
    assert!(
        places[2].starts_with("policy.yaml:5:1: ") && places[2].contains("did you mean `network`?"),
        "{places:?}"
    );
    assert!(said(&output).contains("3 problems"), "{}", said(&output));

    let output = folder.run(&["policy", "lint", "--json"]);
    assert_eq!(output.status.code(), Some(10));
    let report = lines(&output).remove(0);
    assert_eq!(report.get("ok"), Some(&Json::Bool(false)));
    let first = report.pointer("/problems/0").unwrap();
    assert_eq!(
        (first.get("line").unwrap().as_u64(), first.get("column").unwrap().as_u64()),
        (Some(3), Some(20)),
        "{report}"
    );
}

#[test]
fn lint_warns_about_what_is_weaker_than_it_looks() {
    let folder = Folder::with_policy("version: \"1\"\ndefault: allow\ntools:\n  \"*\": { allow: true }\n");
    let output = folder.run(&["policy", "lint"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text_form = printed(&output);
    assert!(text_form.contains("policy.yaml:2:10: warning: `default: allow`"), "{text_form}");
    let report = folder.json(&["policy", "lint", "--json"]).remove(0);
    let warnings = report.get("warnings").and_then(Json::as_array).unwrap();
    assert_eq!(warnings.len(), text_form.lines().count() - 1, "{report}");
    assert_eq!(text(&report, "digest").len(), 64);

    // A document of sections alone allows what they do not restrict; that is said too.
    folder.write("policy.yaml", "version: \"1\"\nnetwork: { allowlist: [example.com] }\n");
    assert!(printed(&folder.run(&["policy", "lint"])).contains("neither `rules` nor `default`"));
    folder.write("policy.yaml", POLICY);
    assert!(!printed(&folder.run(&["policy", "lint"])).contains("warning"));
}

#[test]
fn lint_without_a_policy_is_called_wrongly() {
    let folder = Folder::with_policy(POLICY);
    folder.write("proctor.toml", "");
    let output = folder.run(&["policy", "lint"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("no policy is named"), "{}", said(&output));
}

#[test]
fn check_decides_and_says_so_in_its_exit_code() {
    let folder = Folder::with_policy(POLICY);
    for (args, expected) in [
        (&["--tool", "read", "--path", "/x"][..], is("allow", "reading", 0)),
        (&["--tool", "search", "--arg", "q=x"], is("modify", "short", 0)),
        (&["--tool", "read", "--arg", "key=sk-a1B2c3D4e5F6g7H8i9J0"], is("redact", "data_pattern_scan", 0)),
        (&["--tool", "deploy"], is("ask", "deploys", 13)),
        (&["--tool", "later"], is("defer", "later", 13)),
        (&["--tool", "unknown"], is("deny", "default", 11)),
        (&["--tool", "bash", "--arg", "command=sudo rm -rf x"], is("deny", "no-delete", 11)),
        (&["--kind", "process_exec", "--command", "rm x"], is("deny", "no-delete", 11)),
        (&["--kind", "file_operation", "--operation", "read", "--path", "/x"], is("allow", "reading", 0)),
        (&[r#"{"tool":"bash","args":{"command":["rm","x"]}}"#], is("deny", "no-delete", 11)),
        (
            &[r#"{"tool":"bash","args":{"command":"ls"},"session":"s","agent":"a","ref":1}"#],
            is("allow", "commands", 0),
        ),
        (&[r#"{"tool":"bash"}"#, "--arg", "command=rm x"], is("deny", "no-delete", 11)),
    ] {
        assert_eq!(checked(&folder, args), expected, "{args:?}");
    }
    let from_stdin =
        folder.run_with(&["policy", "check", "-", "--json"], r#"{"tool":"bash","args":{"command":"rm x"}}"#);
    assert_eq!(from_stdin.status.code(), Some(11));
    assert_eq!(text(&lines(&from_stdin)[0], "rule"), "no-delete");
    let modified = folder
        .json(&["policy", "check", "--json", "--tool", "search", "--arg", "limit=99", "--arg", "q=x y"])
        .remove(0);
    assert_eq!(modified.get("args").unwrap().to_string(), r#"{"limit":10,"q":"x y"}"#);
    assert_eq!(modified.get("recorded"), Some(&Json::Bool(false)));
    let for_people = folder.run(&["policy", "check", "--tool", "deploy"]);
    assert_eq!(printed(&for_people), "ask  deploys\n  Deploying needs a person.\n");
    assert!(for_people.stderr.is_empty());
}

#[test]
fn check_refuses_what_is_no_action() {
    let folder = Folder::with_policy(POLICY);
    for (args, problem) in [
        (&[][..], "no action is given"),
        (&["{"], "not JSON"),
        (&["[1]"], "an action is an object"),
        (&[r#"{"tool":"a","tool":"b"}"#], "not JSON"),
        (&["--kind", "tool_cal"], "did you mean `tool_call`?"),
        (&[r#"{"tol":"x"}"#], "did you mean `tool`?"),
        (&["--tool", "x", "--arg", "y"], "NAME=VALUE"),
    ] {
        let mut all = vec!["policy", "check"];
        all.extend(args);
        let output = folder.run(&all);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(said(&output).contains(problem), "{args:?}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn check_records_nothing_unless_asked_to() {
    let folder = Folder::with_policy(POLICY);
    for args in [
        &["policy", "check", "--tool", "read"][..],
        &["policy", "explain", "--tool", "read"],
        &["policy", "lint"],
    ] {
        folder.run(args);
        assert!(!folder.state().exists(), "{args:?}");
    }
    let recorded =
        folder.json(&["policy", "check", "--record", "--json", "--tool", "read", "--session", "s"]).remove(0);
    assert_eq!(
        (text(&recorded, "decision"), recorded.get("recorded")),
        ("allow", Some(&Json::Bool(true))),
        "{recorded}"
    );
    let denied = folder.run(&["policy", "check", "--record", "--json", r#"{"tool":"x","session":"s"}"#]);
    assert_eq!(denied.status.code(), Some(11));
    folder.run(&["policy", "check", "--tool", "read"]);
    let decisions = folder.json(&["audit", "tail", "--json", "--kind", "decision"]);
    let kept: Vec<(&str, &str)> =
        decisions.iter().map(|record| (text(record, "decision"), text(record, "door"))).collect();
    assert_eq!(kept, [("allow", "check"), ("deny", "check")]);
    assert_eq!(folder.json(&["session", "list", "--json"]).len(), 1);
}

#[test]
fn explain_shows_every_opinion_with_its_place() {
    let folder = Folder::with_policy(POLICY);
    let output = folder.run(&[
        "policy",
        "explain",
        "--json",
        "--tool",
        "bash",
        "--cwd",
        "/w",
        "--arg",
        "command=sudo rm -rf x",
    ]);
    assert_eq!(output.status.code(), Some(11));
    let explained = lines(&output).remove(0);
    let opinions: Vec<(String, u64)> = explained
        .get("opinions")
        .and_then(Json::as_array)
        .unwrap()
        .iter()
        .map(|opinion| (text(opinion, "rule").to_owned(), opinion.get("line").unwrap().as_u64().unwrap()))
        .collect();
    assert_eq!(opinions, [("no-delete".to_owned(), 9), ("commands".to_owned(), 10)], "{explained}");
    assert!(explained.get("read_set").unwrap().to_string().contains("rm -rf x"), "{explained}");
    let for_people = printed(&folder.run(&["policy", "explain", "--tool", "bash", "--arg", "command=rm x"]));
    assert!(
        for_people.contains("no-delete")
            && for_people.contains("commands")
            && for_people.contains("policy.yaml:9"),
        "{for_people}"
    );
    assert!(for_people.contains(r#"commands = ["rm x"]"#), "what the rules saw: {for_people}");
    let nothing = folder.run(&["policy", "explain", "--tool", "unknown"]);
    assert!(printed(&nothing).contains("the default decides"), "{}", printed(&nothing));
}

#[test]
fn explain_shows_the_rules_that_did_not_speak_and_why() {
    let folder = Folder::with_policy(
        "default: deny\nrules:\n  - {id: reads, when: action.tool == \"file_read\", then: allow}\n  - {id: deep, when: action.depth > 3 && action.commands.size() > 0, then: ask}\n  - {id: lists, when: 'action.commands.all(c, c == \"ls\") && action.tool == \"shell\"', then: allow}\n",
    );
    let action = ["--tool", "bash", "--arg", "command=ls"];
    let explained = lines(&folder.run(&[&["policy", "explain", "--json"], &action[..]].concat())).remove(0);
    let file = text(&explained.get("opinions").and_then(Json::as_array).unwrap()[0], "file").to_owned();
    assert_eq!(
        explained.get("silent").unwrap().to_string(),
        format!(
            r#"[{{"effect":"allow","rule":"reads","file":"{file}","line":3,"causes":["it is only about the tool file_read; this is shell"]}},{{"effect":"ask","rule":"deep","file":"{file}","line":4,"causes":["`action.depth > 3` is false"]}}]"#
        )
    );
    let for_people = printed(&folder.run(&[&["policy", "explain"], &action[..]].concat()));
    assert!(
        for_people.contains(&format!(
            "rules that did not speak, and why:\n  allow  reads  {file}:3\n    it is only about the tool file_read; this is shell\n  ask  deep  {file}:4\n    `action.depth > 3` is false\n\nwhat the rules saw:\n"
        )),
        "{for_people}"
    );
}

#[test]
fn a_file_of_cases_is_run_and_failures_are_told() {
    let folder = Folder::with_policy(POLICY);
    let good = "- { name: reads, action: { tool: read }, expect: allow, rule: reading }\n  - { name: deletes, action: { tool: bash, args: { command: rm x } }, expect: deny, reason: Nothing }\n";
    folder.write("cases.yaml", &format!("cases:\n  {good}"));
    let output = folder.run(&["policy", "test", "cases.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(printed(&output).ends_with("2 passed, 0 failed\n"), "{}", printed(&output));

    for (case, problem) in [
        ("{ name: x, action: { tool: read }, expect: deny }", "expected deny, got allow by `reading`"),
        ("{ name: x, action: { tool: read }, expect: allow, rule: other }", "expected rule `other`"),
        (
            "{ name: x, action: { tool: deploy }, expect: ask, reason: nonsense }",
            "expected a reason with `nonsense`",
        ),
        (
            "{ name: x, steps: [{ action: { tool: read }, expect: allow }, { action: { tool: x }, expect: allow }] }",
            "step 2: expected allow",
        ),
    ] {
        folder.write("cases.yaml", &format!("cases:\n  {good}  - {case}\n"));
        let output = folder.run(&["policy", "test", "cases.yaml"]);
        assert_eq!(output.status.code(), Some(10), "{case}: {}", said(&output));
        assert!(printed(&output).contains(problem), "{case}: {}", printed(&output));
        let results = lines(&folder.run(&["policy", "test", "cases.yaml", "--json"]));
        assert_eq!(results.iter().filter(|result| result.get("ok") == Some(&Json::Bool(true))).count(), 2);
    }
}

#[test]
fn a_file_of_cases_that_tests_nothing_is_an_error() {
    let folder = Folder::with_policy(POLICY);
    for (cases, problem) in [
        ("", "empty"),
        ("cases: []\n", "nothing would be tested"),
        ("{}\n", "`cases` is a list"),
        ("cases:\n  - { name: x, steps: [] }\n", "nothing would be tested"),
        ("cases:\n  - { name: x, action: { tool: a } }\n", "`expect` is missing"),
        ("cases:\n  - { action: { tool: a }, expect: deny }\n", "`name`"),
        ("cases:\n  - { name: x, expect: deny }\n", "`action` is missing"),
        ("cases:\n  - { name: x, action: { tool: a }, expect: denied }\n", "`denied` is not a decision"),
        ("cases:\n  - { name: x, action: { tool: a }, expct: deny }\n", "did you mean `expect`?"),
        ("cases:\n  - { name: x, action: { tol: a }, expect: deny }\n", "did you mean `tool`?"),
        ("case: []\n", "did you mean `cases`?"),
        (
            "policy: nowhere.yaml\ncases:\n  - { name: x, action: { tool: a }, expect: deny }\n",
            "no such file",
        ),
        ("cases:\n  - { name: x, action: { tool: a }, expect: deny, at: noon }\n", "`noon` is not a moment"),
        ("cases: [\n", "cases.yaml:"),
    ] {
        folder.write("cases.yaml", cases);
        let output = folder.run(&["policy", "test", "cases.yaml"]);
        assert_eq!(output.status.code(), Some(1), "{cases}: {}", printed(&output));
        assert!(said(&output).contains(problem), "{cases}: {}", said(&output));
    }
    assert_eq!(folder.run(&["policy", "test", "nowhere.yaml"]).status.code(), Some(1));
}

#[test]
fn scan_finds_and_cuts_secrets() {
    let folder = Folder::with_policy(POLICY);
    let output = folder.run_with(&["policy", "scan", "--json"], "é AKIAIOSFODNN7EXAMPLE and\n123-45-6789");
    assert_eq!(output.status.code(), Some(0));
    let report = lines(&output).remove(0);
    let findings: Vec<(&str, u64, u64)> = report
        .get("findings")
        .and_then(Json::as_array)
        .unwrap()
        .iter()
        .map(|finding| {
            let number = |name: &str| finding.get(name).and_then(Json::as_u64).unwrap();
            (text(finding, "kind"), number("offset"), number("end"))
        })
        .filter(|(kind, ..)| *kind != "GenericHighEntropy")
        .collect();
    assert_eq!(findings, [("AwsAccessKey", 3, 23), ("SsnPattern", 28, 39)], "{report}");
    assert_eq!(text(&report, "redacted"), "é [REDACTED:AwsAccessKey] and\n[REDACTED:SsnPattern]");
    let members: Vec<&str> = report.as_object().unwrap().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(members, ["findings", "redacted"]);

    let clean = folder.run_with(&["policy", "scan"], "nothing here\n");
    assert_eq!((printed(&clean).as_str(), said(&clean).as_str()), ("nothing here\n", ""));
    let found = folder.run_with(&["policy", "scan"], "AKIAIOSFODNN7EXAMPLE\n");
    assert_eq!(printed(&found), "[REDACTED:AwsAccessKey]\n");
    assert!(said(&found).contains("AwsAccessKey at bytes 0 to 20"));
}

#[test]
fn the_schema_is_a_schema_of_every_document_key() {
    let folder = Folder::with_policy(POLICY);
    let output = folder.run(&["policy", "schema"]);
    assert_eq!(output.status.code(), Some(0));
    let schema = Json::parse(&output.stdout).unwrap();
    assert!(text(&schema, "$schema").contains("json-schema.org"), "{schema}");
    let properties = schema.pointer("/definitions/document/properties").unwrap();
    for key in [
        "version",
        "default",
        "rules",
        "network",
        "tools",
        "data",
        "budget",
        "schedule",
        "capabilities",
        "scope",
        "modules",
    ] {
        assert!(properties.get(key).is_some(), "{key}");
    }
}

#[test]
fn hostile_documents_are_refused_quickly_and_clearly() {
    let folder = Folder::with_policy(POLICY);
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, before) in "bcdefghij".chars().zip("abcdefghi".chars()) {
        let _ = writeln!(bomb, "{name}: &{name} [{}]", vec![format!("*{before}"); 10].join(", "));
    }
    let mut nested = String::new();
    for depth in 0..1000 {
        let _ = writeln!(nested, "{}a:", " ".repeat(depth));
    }
    let documents: [(&str, Vec<u8>, &str); 8] = [
        ("large", vec![b'#'; 100 << 20], "over the limit"),
        ("deep brackets", ["[".repeat(10_000), "]".repeat(10_000)].concat().into_bytes(), "limit"),
        ("deep braces", "{a: ".repeat(10_000).into_bytes(), "limit"),
        ("deep lines", nested.into_bytes(), "deep"),
        ("aliases", bomb.into_bytes(), "more than"),
        ("bytes", b"version: \"1\"\ndefault: d\xffeny\n".to_vec(), "UTF-8"),
        ("twice", b"version: \"1\"\ndefault: deny\ndefault: allow\n".to_vec(), "duplicate key `default`"),
        (
            "twice in a rule",
            b"version: \"1\"\nrules: [{ id: a, then: deny, then: allow }]\n".to_vec(),
            "duplicate key `then`",
        ),
    ];
    for (name, bytes, problem) in documents {
        std::fs::write(folder.path("hostile.yaml"), bytes).unwrap();
        for (args, code) in [
            (&["policy", "lint", "hostile.yaml"][..], 10),
            (&["policy", "check", "--policy", "hostile.yaml", "--tool", "x"], 1),
            (&["gate", "--policy", "hostile.yaml"], 1),
        ] {
            let start = Instant::now();
            let output = folder.run(args);
            assert!(start.elapsed() < Duration::from_secs(5), "{name}: {args:?} took {:?}", start.elapsed());
            assert_eq!(output.status.code(), Some(code), "{name}: {args:?}");
            let told = printed(&output) + &said(&output);
            assert!(told.contains("hostile.yaml:") && told.contains(problem), "{name}: {args:?}: {told}");
            assert!(told.len() < 2000, "{name}: {args:?}: {} bytes of complaint", told.len());
        }
    }
}

#[test]
fn documents_in_a_folder_speak_together_within_their_scopes() {
    let folder = Folder::with_policy("");
    let ending = |name: &str| format!("policies/{name}");
    folder.write(&ending("a.yaml"), "version: \"1\"\ndefault: deny\nrules:\n  - { id: everybody, when: 'action.tool in [\"ls\", \"x\", \"deploy\"]', then: allow }\n");
    folder.write(&ending("b.yml"), "version: \"1\"\nscope: team:blue\nrules:\n  - { id: blue, when: action.tool == \"x\", then: deny }\n");
    folder.write(
        &ending("c.json"),
        r#"{"version":"1","scope":"tool:deploy","rules":[{"id":"tool","then":"ask"}]}"#,
    );
    folder.write(
        &ending("d.yaml"),
        "version: \"1\"\nscope: org:acme\nrules:\n  - { id: acme, when: action.tool == \"ls\", then: ask }\n",
    );
    folder.write(
        &ending("e.yaml"),
        &format!(
            "version: \"1\"\nscope: agent:uid:{}/bot\nrules:\n  - {{ id: bot, then: deny }}\n",
            rustix::process::getuid().as_raw()
        ),
    );
    folder.write(&ending("notes.txt"), "not a document");
    folder.write("proctor.toml", "policy = \"policies\"\n");
    for (args, expected) in [
        (&["--tool", "x"][..], is("allow", "everybody", 0)),
        (&["--tool", "x", "--team", "blue"], is("deny", "blue", 11)),
        (&["--tool", "x", "--team", "red"], is("allow", "everybody", 0)),
        (&["--tool", "ls", "--team", "blue"], is("allow", "everybody", 0)),
        (&["--tool", "ls", "--org", "acme"], is("ask", "acme", 13)),
        (&["--tool", "deploy"], is("ask", "tool", 13)),
        (&["--tool", "Deploy"], is("ask", "tool", 13)),
        (&["--tool", "ls", "--agent", "bot"], is("deny", "bot", 11)),
        (&["--tool", "ls", "--agent", "bot2"], is("allow", "everybody", 0)),
        (&["--tool", "unknown"], is("deny", "default", 11)),
    ] {
        assert_eq!(checked(&folder, args), expected, "{args:?}");
    }
    assert!(printed(&folder.run(&["policy", "lint"])).contains("5 documents, 5 rules"));
    // One bad document is one too many: nothing of the folder is in force.
    folder.write(&ending("f.yaml"), "version: \"1\"\ndefalt: allow\n");
    let output = folder.run(&["policy", "check", "--tool", "ls"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("f.yaml:2:1"), "{}", said(&output));
    std::fs::create_dir_all(folder.path("nothing")).unwrap();
    assert!(
        said(&folder.run(&["policy", "check", "--policy", "nothing", "--tool", "x"])).contains("holds no")
    );
}

#[test]
fn modules_have_a_say() {
    let folder = Folder::with_policy(
        "version: \"1\"\ndefault: deny\nmodules:\n  - cedar: rules/access.cedar\n  - rego: rules/limits.rego\n",
    );
    folder.write(
        "rules/access.cedar",
        "permit(principal, action, resource == Tool::\"ls\");\n\
         @id(\"no-rm\")\n@reason(\"Nothing is deleted.\")\nforbid(principal, action, resource == Tool::\"rm\");\n\
         @effect(\"ask\")\n@id(\"deploys\")\nforbid(principal, action, resource == Tool::\"deploy\");\n",
    );
    folder.write(
        "rules/limits.rego",
        "package proctor\nimport rego.v1\ndecision := {\"effect\": \"deny\", \"id\": \"too-big\", \"reason\": \"too big\"} if input.action.args.n > 5\n",
    );
    assert_eq!(checked(&folder, &["--tool", "ls"]).0, "allow");
    assert_eq!(checked(&folder, &["--tool", "rm"]), is("deny", "no-rm", 11));
    assert_eq!(checked(&folder, &["--tool", "deploy"]), is("ask", "deploys", 13));
    assert_eq!(checked(&folder, &["--tool", "ls", "--arg", "n=7"]), is("deny", "too-big", 11));
    assert_eq!(checked(&folder, &["--tool", "other"]), is("deny", "default", 11));

    let input = "{\"tool\":\"ls\"}\n{\"tool\":\"rm\"}\n{\"tool\":\"deploy\"}\n{\"tool\":\"ls\",\"args\":{\"n\":7}}\n{\"tool\":\"other\"}\n";
    let answers = lines(&folder.run_with(&["gate"], input));
    let decisions: Vec<&str> = answers.iter().map(|answer| text(answer, "decision")).collect();
    assert_eq!(decisions, ["allow", "deny", "ask", "deny", "deny"]);
    let (report, _) = folder.verify(None);
    assert_eq!(report.pointer("/derivation/same").and_then(Json::as_u64), Some(5), "{report}");

    folder.write("rules/access.cedar", "permit(principal,\n");
    let broken = folder.run(&["policy", "lint"]);
    assert_eq!(broken.status.code(), Some(10));
    assert!(printed(&broken).contains("access.cedar:"), "{}", printed(&broken));
    std::fs::remove_file(folder.path("rules/access.cedar")).unwrap();
    let missing = folder.run(&["policy", "lint"]);
    assert!(printed(&missing).contains("policy.yaml:4:"), "{}", printed(&missing));
}
