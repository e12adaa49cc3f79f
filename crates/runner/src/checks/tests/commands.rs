use super::*;

fn run(kind: &str, config: &str, code: i32, stdout: &str) -> (Status, String) {
    with_answers(&loaded(kind, config), "{}", &Memory::default(), &exited(code, stdout))
}

#[test]
fn pytest_counts_and_exit_codes() {
    use Status::{Error, Failed, Passed};
    for (config, code, output, expected) in [
        ("{}", 0, "===== 3 passed in 0.12s =====", Passed),
        ("{}", 0, "3 passed in 0.12s", Passed),
        (
            "{}",
            0,
            "\u{1b}[32m==== \u{1b}[32m\u{1b}[1m3 passed\u{1b}[0m\u{1b}[32m in 61.12s (0:01:01)\u{1b}[0m\u{1b}[32m ====\u{1b}[0m",
            Passed,
        ),
        ("{}", 0, "=== 2 passed, 1 skipped in 0.1s ===", Failed),
        ("{threshold: 0.6}", 0, "=== 2 passed, 1 skipped in 0.1s ===", Passed),
        ("{}", 1, "=== 1 failed, 2 passed in 0.1s ===", Failed),
        ("{threshold: 0.6}", 1, "=== 1 failed, 2 passed in 0.1s ===", Passed),
        ("{threshold: 0.6}", 2, "=== 1 failed, 2 passed in 0.1s ===", Failed),
        ("{}", 1, "=== 3 passed in 0.1s ===", Failed),
        ("{}", 0, "=== 3 passed, 2 warnings, 1 xfailed in 0.1s ===", Passed),
        ("{}", 2, "=== 1 error in 0.10s ===", Failed),
        ("{}", 0, "3 passed in 0.01s\n=== 1 failed in 0.1s ===", Failed),
        ("{}", 0, "all 3 passed in 0.01s, trust me", Error),
        ("{}", 5, "=== no tests ran in 0.00s ===", Error),
        ("{}", 4, "ERROR: file or directory not found: tests", Error),
        ("{}", 0, "", Error),
        ("{}", 0, "=== 2 deselected in 0.00s ===", Error),
        ("{}", 127, "", Error),
    ] {
        assert_eq!(run("pytest", config, code, output).0, expected, "{config} {code} {output}");
    }
    let (_, message) = run("pytest", "{}", 1, "=== 3 passed in 0.1s ===");
    assert_eq!(
        message,
        "3 of 3 tests passed (0 failed, 0 skipped, 0 errors), exit code 1; the exit code says that something else failed"
    );
    let (_, message) = run("pytest", "{}", 4, "ERROR: file not found\n");
    assert_eq!(message, "no counts of tests were found in the output (exit code 4): `ERROR: file not found`");
}

#[test]
fn javascript_summaries() {
    use Status::{Error, Failed, Passed};
    for (code, output, expected) in [
        (0, "Tests:       3 passed, 3 total\nSnapshots:   0 total", Passed),
        (1, "Tests:       1 failed, 1 skipped, 2 passed, 4 total", Failed),
        (0, " Test Files  1 passed (1)\n      Tests  2 passed (2)\n   Duration  5ms", Passed),
        (1, "      Tests  1 failed | 2 passed (3)", Failed),
        (0, "  3 passing (5ms)\n", Passed),
        (1, "  3 passing (5ms)\n  1 pending\n  1 failing\n", Failed),
        (0, "# tests 3\n# pass 3\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n", Passed),
        (1, "ℹ tests 3\nℹ pass 2\nℹ fail 1\n", Failed),
        (0, "> test\n> echo ok\n\nok\n", Error),
        (1, "Error: no test specified", Error),
        (127, "sh: 1: jest: not found", Error),
    ] {
        assert_eq!(run("npm", "{}", code, output).0, expected, "{code} {output}");
    }
    let (status, _) = run("npm", "{threshold: 0.6}", 1, "Tests: 1 failed, 2 passed, 3 total");
    assert_eq!(status, Passed);
    assert_eq!(run("npm", "{}", 1, "Tests: 3 passed, 3 total").0, Failed);
}

#[test]
fn custom_commands() {
    use Status::{Error, Failed, Passed};
    let pattern = r"{command: x, pattern: '(?P<passed>\d+)/(?P<total>\d+) ok'}";
    let failures = r"{command: x, threshold: 0.5, pattern: '(?P<failed>\d+) of (?P<total>\d+) failed'}";
    for (config, code, output, expected) in [
        ("{command: x}", 0, "", Passed),
        ("{command: x}", 3, "broken", Failed),
        ("{command: x}", 127, "", Error),
        ("{command: x, success_pattern: 'all good'}", 0, "all good", Passed),
        ("{command: x, success_pattern: 'all good'}", 0, "bad", Failed),
        ("{command: x, success_pattern: 'all good', expect_zero: false}", 9, "all good", Passed),
        (pattern, 0, "3/3 ok", Passed),
        (pattern, 0, "2/3 ok", Failed),
        (pattern, 0, "3/3 ok\n1/3 ok", Failed),
        (pattern, 1, "3/3 ok", Failed),
        (pattern, 0, "nothing", Error),
        (pattern, 0, "0/0 ok", Error),
        (failures, 0, "1 of 3 failed", Passed),
        (failures, 0, "2 of 3 failed", Failed),
    ] {
        assert_eq!(run("custom_command", config, code, output).0, expected, "{config} {code} {output}");
    }
}

#[test]
fn linters() {
    use Status::{Error, Failed, Passed};
    let ruff = r#"[{"code": "F401"}, {"code": null}]"#;
    for (config, code, output, expected) in [
        ("{linter: ruff}", 0, "[]", Passed),
        ("{linter: ruff}", 1, ruff, Failed),
        ("{linter: ruff, max_violations: 2}", 1, ruff, Failed),
        ("{linter: ruff, max_violations: 2, max_errors: 1}", 1, ruff, Passed),
        ("{linter: ruff}", 2, "", Error),
        ("{linter: ruff}", 0, "", Error),
        ("{linter: ruff}", 0, "All checks passed!", Error),
        ("{linter: ruff}", 1, "[]", Error),
        ("{linter: ruff}", 127, "", Error),
        ("{linter: eslint}", 0, r#"[{"errorCount": 0, "warningCount": 0}]"#, Passed),
        ("{linter: eslint, max_violations: 1}", 0, r#"[{"errorCount": 0, "warningCount": 1}]"#, Passed),
        ("{linter: eslint, max_violations: 9}", 1, r#"[{"errorCount": 1, "warningCount": 1}]"#, Failed),
    ] {
        assert_eq!(run("lint", config, code, output).0, expected, "{config} {code} {output}");
    }
}

#[test]
fn other_ends_of_a_command() {
    for (outcome, expected) in [
        (CommandOutcome::TimedOut, Status::Failed),
        (CommandOutcome::Signalled { signal: 9, stderr: String::new() }, Status::Failed),
        (CommandOutcome::NotFound { program: "pytest".to_owned() }, Status::Error),
        (CommandOutcome::NotStarted { reason: "no memory".to_owned() }, Status::Error),
    ] {
        for (kind, config) in [
            ("pytest", "{}"),
            ("npm", "{}"),
            ("lint", "{linter: ruff}"),
            ("custom_command", "{command: x, expect_zero: false, success_pattern: a}"),
        ] {
            let answers = [Answer { leaf: 0, reply: Reply::Command(outcome.clone()) }];
            assert_eq!(
                with_answers(&loaded(kind, config), "{}", &Memory::default(), &answers).0,
                expected,
                "{kind} {outcome:?}"
            );
        }
    }
    let (status, message) = judged(&loaded("pytest", "{}"), "{}", &Memory::default());
    assert_eq!((status, message.as_str()), (Status::Error, "the command was not run"));
}

#[test]
fn needs_name_the_command() {
    let response = Json::object();
    let evidence = Evidence { response: &response, events: &[], files: &NoFiles, has_tools: false };
    let check = loaded("lint", "{linter: eslint, path: src, args: [--quiet], timeout: 9, working_dir: sub}");
    let needs = needs(&check, &evidence, "fence");
    let Request::Command(command) = &needs[0].request else { panic!("a command") };
    assert_eq!(command.words, ["eslint", "--format=json", "--quiet", "src"]);
    assert_eq!((command.timeout_seconds, command.working_dir.as_ref().unwrap().as_str()), (9, "sub"));
    assert!(super::needs(&loaded("no_errors", "{}"), &evidence, "fence").is_empty());
}
