//! Output and exit codes of a check.

use super::*;

#[test]
fn assertions_that_hold_are_exit_zero_and_a_calm_table() {
    let output = check(&folder(), &[HOLDS], &[]);
    ends(&output, 0);
    assert_eq!(
        printed(&output),
        "RESULT     LAYER  TYPE     ID           SCORE  EXPLANATION\n\
         pass       4      content  says-refund  1.00   `output.message` contains `refund`\n\
         1 assertion: 1 passed\n"
    );
    assert_eq!(said(&output), "");
}

#[test]
fn a_failure_is_exit_ten_and_says_where_and_why() {
    let output = check(&folder(), &[HOLDS, FAILS], &[]);
    ends(&output, 10);
    let text = printed(&output);
    assert!(text.contains("hard fail  2      constraint  cheap"), "{text}");
    for line in ["at        metadata.cost_usd", "actual    0.02", "2 assertions: 1 passed, 1 hard fail"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn soft_failures_fail_only_if_that_is_asked_for() {
    let folder = folder();
    let output = check(&folder, &[HOLDS, FAILS_SOFTLY], &[]);
    ends(&output, 0);
    assert!(printed(&output).contains("soft fail  2      constraint  brief"), "{}", printed(&output));
    ends(&check(&folder, &[HOLDS, FAILS_SOFTLY], &["--gate"]), 0);
    let strict = check(&folder, &[HOLDS, FAILS_SOFTLY], &["--strict"]);
    ends(&strict, 10);
    assert!(
        printed(&strict)
            .ends_with("2 assertions: 1 passed, 1 soft fail; failed: soft failures count (`--strict`)\n"),
        "{}",
        printed(&strict)
    );
    ends(&check(&folder, &[HOLDS], &["--strict"]), 0);

    let args = ["assert", "--trace", "trace.json", "--assertions", "assertions.yaml"];
    folder.write("assertions.yaml", &format!("- {FAILS_SOFTLY}\n"));
    for (allowed, code) in [("0", 10), ("1", 0)] {
        let output = command(&folder, &args).env("ATTEST_BUDGET_MAX_COST", allowed).output().unwrap();
        ends(&output, code);
        let said = printed(&output).contains("failed: soft failures count (`ATTEST_BUDGET_MAX_COST`)");
        assert_eq!(said, code != 0, "{}", printed(&output));
    }
}

#[test]
fn what_could_not_be_evaluated_is_an_error_and_never_a_pass() {
    let folder = folder();
    for (assertion, says) in [
        (NEEDS_A_JUDGE, "no judge is configured"),
        (
            "{ assertion_id: near, type: embedding, spec: { target: output.message, reference: x } }",
            "no embedding provider",
        ),
        ("{ assertion_id: mine, type: plugin, spec: { plugin_id: p } }", "no plugin can answer here"),
    ] {
        let output = check(&folder, &[HOLDS, assertion], &[]);
        ends(&output, 10);
        let text = printed(&output);
        let line = text.lines().find(|line| line.starts_with("error ")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(says), "{line}");
        assert!(text.ends_with("2 assertions: 1 passed, 1 error\n"), "{text}");
        let output = check(&folder, &[HOLDS, assertion], &["--gate"]);
        ends(&output, 13);
        assert!(said(&output).contains("not enough to decide"), "{}", said(&output));
    }
}

#[test]
fn what_was_not_run_is_listed_as_not_run() {
    let folder = folder();
    let output = check(&folder, &[NEEDS_A_JUDGE, HOLDS, FAILS], &[]);
    ends(&output, 10);
    let text = printed(&output);
    assert!(
        text.contains("not run    6      llm_judge   kind         -      `cheap` (constraint) failed hard\n"),
        "{text}"
    );
    assert!(text.ends_with("3 assertions: 1 passed, 1 hard fail, 1 not run\n"), "{text}");
    // What failed is enough to say no, whatever was not run.
    ends(&check(&folder, &[NEEDS_A_JUDGE, HOLDS, FAILS], &["--gate"]), 10);
    let document = document(&check(&folder, &[NEEDS_A_JUDGE, HOLDS, FAILS], &["--json"]));
    assert_eq!(document.pointer("/not_run/0/assertion_id").unwrap(), &Json::from("kind"));
    assert_eq!(document.pointer("/not_run/0/status").unwrap(), &Json::from("not_run"));
    assert_eq!(
        document.pointer("/not_run/0/explanation").unwrap(),
        &Json::from("not run: `cheap` (constraint) failed hard")
    );

    // Not run because of an error: nothing is decided. No value that lies so deep can be held against a schema.
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    folder.write("trace.json", &TRACE.replace("\"Your refund is on its way.\"", &deep));
    let odd = "{ assertion_id: odd, type: schema, spec: { target: output, schema: { type: object } } }";
    let output = check(&folder, &[NEEDS_A_JUDGE, odd], &["--gate"]);
    ends(&output, 13);
    assert!(printed(&output).contains("`odd` (schema) could not be evaluated\n"), "{}", printed(&output));
}

#[test]
fn simulated_results_pass_no_gate() {
    let folder = folder();
    folder.write("assertions.yaml", &format!("- {HOLDS}\n"));
    let run = |more: &[&str]| {
        let mut args = vec!["assert", "--trace", "trace.json", "--assertions", "assertions.yaml"];
        args.extend(more);
        command(&folder, &args).env("ATTEST_SIMULATION", "1").output().unwrap()
    };
    let output = run(&[]);
    ends(&output, 0);
    assert!(printed(&output).contains("1 passed (simulated"), "{}", printed(&output));
    let output = run(&["--gate"]);
    ends(&output, 13);
    assert!(said(&output).contains("simulated"), "{}", said(&output));
    assert_eq!(document(&run(&["--json"])).get("simulated"), Some(&Json::Bool(true)));
    // A failure in a simulation is as simulated as a pass.
    folder.write("assertions.yaml", &format!("- {FAILS}\n"));
    ends(&run(&["--gate"]), 13);
    ends(&run(&[]), 10);
}

#[test]
fn json_is_one_document_with_everything_in_it() {
    let folder = folder();
    let output = check(&folder, &[FAILS, HOLDS], &["--json"]);
    ends(&output, 10);
    let document = document(&output);
    assert_eq!(document["trace_id"], "refund-1");
    assert_eq!(
        document.get("summary").unwrap().to_string(),
        r#"{"total":2,"passed":1,"soft_fail":0,"hard_fail":1,"error":0,"not_run":0}"#
    );
    // In the order of the file, not of the layers.
    let first = document.pointer("/results/0").unwrap();
    assert_eq!(first["assertion_id"], "cheap");
    assert_eq!(first["status"], "hard_fail");
    assert_eq!(first["trace_node_path"], "metadata.cost_usd");
    assert_eq!(first.get("layer").unwrap().as_u64(), Some(2));
    assert_eq!(document.pointer("/results/1/status").unwrap(), &Json::from("pass"));
    assert_eq!(document.get("total_cost").unwrap().to_string(), "0");
    assert_eq!(document.get("simulated"), Some(&Json::Bool(false)));
}

#[test]
fn control_characters_are_shown_not_obeyed() {
    let folder = folder();
    folder.write("trace.json", &TRACE.replace("on its way", "on\\u001b[31m its way"));
    let output = check(&folder, &["{ type: content, spec: { check: contains, value: money } }"], &[]);
    ends(&output, 10);
    assert!(!printed(&output).contains('\u{1b}'), "{}", printed(&output));
    assert!(printed(&output).contains("\\u{1b}[31m"), "{}", printed(&output));
}

#[test]
fn a_reader_that_goes_away_does_not_turn_red_into_green() {
    let folder = folder();
    folder.write("assertions.yaml", &format!("- {FAILS}\n"));
    let mut child = command(&folder, &["assert", "--trace", "trace.json", "--assertions", "assertions.yaml"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(10));
}

#[test]
fn one_of_both_may_come_from_stdin() {
    let folder = folder();
    folder.write("assertions.yaml", &format!("- {HOLDS}\n"));
    let run = |trace: &str, assertions: &str, input: &str| {
        folder.write("input", input);
        let output = command(&folder, &["assert", "--trace", trace, "--assertions", assertions])
            .stdin(std::fs::File::open(folder.path("input")).unwrap())
            .output()
            .unwrap();
        (output.status.code().unwrap(), said(&output))
    };
    assert_eq!(run("-", "assertions.yaml", TRACE), (0, String::new()));
    assert_eq!(run("trace.json", "-", &format!("- {HOLDS}\n")), (0, String::new()));
    let (code, problem) = run("-", "-", "");
    assert_eq!(code, 1);
    assert!(problem.contains("not both"), "{problem}");
    let (code, problem) = run("-", "assertions.yaml", "{\n\"trace_id\": 5}");
    assert_eq!(code, 1);
    assert!(problem.contains("stdin:2:"), "{problem}");
}
