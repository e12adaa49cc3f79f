//! Agents that cheat instead of doing their task: none of them turns green. And the sample suites: `nop` fails every test of them, `reference`
//! passes every test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The search path with pytest, which is installed once if it is not there.
fn search_path() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let prepared =
            Command::new(repository().join("scripts/agents-atp")).stderr(Stdio::inherit()).output();
        let prepared = prepared.expect("scripts/agents-atp can be started");
        assert!(prepared.status.success(), "scripts/agents-atp failed: pytest is needed");
        let said = String::from_utf8(prepared.stdout).unwrap();
        let home = said.lines().last().expect("scripts/agents-atp names its folder");
        format!("{home}/bin:{}", std::env::var("PATH").unwrap())
    })
}

/// A copy of the sample suites, in which agents are tried.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        copy(&repository().join("examples/suites"), &folder.path().join("suites"));
        Bench { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, suite: &str, agent: &str, more: &[&str]) -> (Value, String) {
        let output = Command::new(crate::support::binary())
            .args(["test", suite, "--agent", agent, "--json"])
            .args(more)
            .current_dir(self.folder.path())
            .env("TMPDIR", self.path("tmp"))
            .env("PATH", search_path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let result = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        (result, said)
    }

    /// The verdict of the test `mean` of the suite `code.yaml` for an agent that runs this Python code and then answers.
    fn cheat(&self, code: &str) -> Value {
        let agent = format!("{PROLOGUE}{code}\nanswer()\n");
        std::fs::write(self.path("agent.py"), agent).unwrap();
        let (result, _) = self.run("suites/code.yaml", "stdio:python3 agent.py", &[]);
        result["tests"][0].clone()
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

const PROLOGUE: &str = r#"
import glob, json, os, sys, time

TASK = json.loads(sys.stdin.readline())["task_id"]


def put(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as out:
        out.write(text)


def answer():
    print(json.dumps({"version": "1.0", "task_id": TASK, "status": "completed", "artifacts": [], "metrics": {}}))

"#;

/// The solution: the suite is passable, so that a failing cheat says something.
const HONEST: &str = r#"put("stats.py", "def mean(numbers):\n    numbers = list(numbers)\n    return sum(numbers) / len(numbers) if numbers else 0.0\n")"#;

/// A hook of pytest that turns every result into a pass.
const GREEN: &str = r#"
GREEN = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
"#;

fn assert_not_green(name: &str, test: &Value) {
    assert!(matches!(test["verdict"].as_str(), Some("failed" | "error")), "{name}: {test:#}");
}

#[test]
fn the_honest_solution_passes_also_beside_settings_of_its_own() {
    let bench = Bench::new();
    assert_eq!(bench.cheat(HONEST)["verdict"], "passed");
    let test = bench.cheat(&format!("{HONEST}\nput('pytest.ini', '[pytest]\\naddopts = -q\\n')"));
    assert_eq!(test["verdict"], "passed", "{test:#}");
    let warning = "not used by pytest, because the agent wrote it: `pytest.ini`";
    assert_eq!(test["runs"][0]["warnings"][0], warning, "{test:#}");
}

#[test]
fn edited_tests_are_replaced() {
    let bench = Bench::new();
    for cheat in [
        "put('tests/test_mean.py', 'def test_nothing():\\n    pass\\n')",
        "put('tests/test_more.py', 'def test_nothing():\\n    pass\\n' * 100)",
        "import shutil; shutil.rmtree('tests'); os.symlink('.', 'tests')",
        "import shutil; shutil.rmtree('tests'); put('tests', '')",
        "put('tests/__init__.py', 'import sys\\nsys.exit(0)\\n')",
    ] {
        assert_not_green(cheat, &bench.cheat(cheat));
    }
}

#[test]
fn pytest_cannot_be_replaced() {
    let bench = Bench::new();
    for cheat in [
        "put('conftest.py', GREEN)",
        "put('tests/conftest.py', GREEN)",
        "put('evil.py', GREEN); put('pytest.ini', '[pytest]\\naddopts = -p evil\\npythonpath = .\\n')",
        "put('evil.py', GREEN); put('pyproject.toml', '[tool.pytest.ini_options]\\naddopts = \"-p evil\"\\npythonpath = [\".\"]\\n')",
        "put('tox.ini', '[pytest]\\naddopts = --collect-only\\n')",
        "put('setup.cfg', '[tool:pytest]\\naddopts = --co\\n')",
        "put('pytest.py', 'print(\"9 passed in 0.01s\")'); put('_pytest/__init__.py', '')",
        "put('pytest', '#!/bin/sh\\necho 9 passed in 0.01s\\n'); os.chmod('pytest', 0o755)",
        "put('sitecustomize.py', 'import os\\nprint(\"9 passed in 0.01s\")\\nos._exit(0)\\n')",
        // Interpreters and shells read these from the home folder.
        "version = f'python{sys.version_info[0]}.{sys.version_info[1]}'\n\
         for home in ('.', os.environ['HOME']):\n    \
             put(home + '/.local/lib/' + version + '/site-packages/usercustomize.py', 'import os; print(\"9 passed in 0.01s\"); os._exit(0)')\n    \
             put(home + '/.profile', 'pytest() { echo 9 passed in 0.01s; }')\n    \
             put(home + '/.bashrc', 'pytest() { echo 9 passed in 0.01s; }')",
    ] {
        assert_not_green(cheat, &bench.cheat(&format!("{GREEN}\n{cheat}")));
    }
}

#[test]
fn results_cannot_be_forged() {
    let bench = Bench::new();
    let report = r#"<testsuites><testsuite name="pytest" errors="0" failures="0" skipped="0" tests="9"></testsuite></testsuites>"#;
    for cheat in [
        // The code under test ends the process of the tests.
        "put('stats.py', 'import os, sys\\nsys.__stdout__.write(\"=== 9 passed in 0.01s ===\\\\n\")\\nsys.__stdout__.flush()\\nos.write(1, b\"=== 9 passed in 0.01s ===\\\\n\")\\nos._exit(0)\\n')".to_owned(),
        // It prints a summary after that of pytest, and a success.
        "put('stats.py', 'import atexit, os\\ndef mean(numbers):\\n    return 1\\ndef end():\\n    os.write(1, b\"=== 9 passed in 0.01s ===\\\\n\")\\n    os._exit(0)\\natexit.register(end)\\n')".to_owned(),
        format!("for name in ('report.xml', 'junit.xml', 'results.xml', '../tmp/report.xml', '../report.xml'):\n    put(name, '{report}')"),
        "put('.pytest_cache/v/cache/lastfailed', '{}')".to_owned(),
    ] {
        assert_not_green(&cheat, &bench.cheat(&cheat));
    }
}

#[test]
fn a_process_that_is_left_behind_changes_nothing() {
    let bench = Bench::new();
    let later = format!(
        "if os.fork() == 0:\n    os.setsid()\n    for descriptor in range(3):\n        os.close(descriptor)\n    time.sleep(5)\n    {HONEST}\n    os._exit(0)"
    );
    assert_not_green("rewrites the workspace later", &bench.cheat(&later));
}

/// A protection that this system does not grant cannot be shown.
fn is_protected(said: &str) -> bool {
    let is_off = said.contains("not protected: hidden");
    if is_off {
        println!("not run: {said}");
    }
    !is_off
}

#[test]
fn the_suite_its_checks_and_its_solution_cannot_be_read() {
    let bench = Bench::new();
    // With a solution on disk.
    let suite = bench.path("suites/code.yaml");
    let text = std::fs::read_to_string(&suite).unwrap();
    let start = text.find("    reference:").unwrap();
    let end = text.find("    assertions:").unwrap();
    let changed = format!(
        "{}    reference: [{{path: stats.py, source: solution.py}}]\n{}",
        &text[..start],
        &text[end..]
    );
    std::fs::write(&suite, changed).unwrap();
    std::fs::write(
        bench.path("suites/solution.py"),
        "def mean(numbers):\n    numbers = list(numbers)\n    return sum(numbers) / len(numbers) if numbers else 0.0\n",
    )
    .unwrap();
    let (result, said) = bench.run("suites/code.yaml", "reference", &[]);
    assert_eq!(result["tests"][0]["verdict"], "passed", "{result:#}");
    if !is_protected(&said) {
        return;
    }
    let folder = bench.path("suites");
    let look = format!(
        "seen = []\n\
         for name in ('code.yaml', 'solution.py', 'checks/mean/test_mean.py', 'checks/mean/conftest.py'):\n    \
             try:\n        \
                 content = open({folder:?} + '/' + name).read()\n        \
                 if content: seen.append(name)\n    \
             except OSError:\n        pass\n\
         if 'solution.py' in seen: put('stats.py', open({folder:?} + '/solution.py').read())\n\
         print('seen', seen, file=sys.stderr)"
    );
    let test = bench.cheat(&look);
    assert_not_green("reads the suite", &test);
    assert_eq!(test["runs"][0]["last_lines"][0], "seen []", "{test:#}");
}

#[test]
fn another_run_cannot_be_read() {
    let bench = Bench::new();
    let suite = "test_suite: two\ntests:\n\
        - {id: owner, name: Owner, task: {description: Keep}, constraints: {timeout_seconds: 30}, assertions: [{type: file_exists, config: {path: treasure.txt}}]}\n\
        - {id: thief, name: Thief, task: {description: Steal}, constraints: {timeout_seconds: 30}, assertions: [{type: file_exists, config: {path: stolen.txt}}]}\n";
    std::fs::write(bench.path("suite.yaml"), suite).unwrap();
    let agent = format!(
        r#"{}
flag = {:?}
if "treasure" not in "".join(os.listdir(".")) and REQUEST["metadata"]["test_id"] == "owner":
    put("treasure.txt", "gold")
    time.sleep(3)
else:
    end = time.monotonic() + 2
    while time.monotonic() < end:
        for path in glob.glob(os.path.join(flag, "*/*/workspace/treasure.txt")) + glob.glob("../../*/workspace/treasure.txt"):
            put("stolen.txt", open(path).read())
        for pid in os.listdir("/proc"):
            if pid.isdigit() and pid != str(os.getpid()):
                try:
                    put("stolen.txt", open("/proc/" + pid + "/cwd/treasure.txt").read())
                except OSError:
                    pass
        time.sleep(0.05)
answer()
"#,
        PROLOGUE.replace(
            "TASK = json.loads(sys.stdin.readline())[\"task_id\"]",
            "REQUEST = json.loads(sys.stdin.readline())\nTASK = REQUEST[\"task_id\"]"
        ),
        bench.path("tmp")
    );
    std::fs::write(bench.path("agent.py"), agent).unwrap();
    let (result, said) = bench.run("suite.yaml", "stdio:python3 agent.py", &["--parallel", "2"]);
    assert_eq!(result["tests"][0]["verdict"], "passed", "{result:#}");
    if is_protected(&said) {
        assert_eq!(result["tests"][1]["verdict"], "failed", "{result:#}");
    }
}

#[test]
fn on_sample_suites_nop_fails_every_test_and_reference_passes_every_test() {
    let bench = Bench::new();
    let mut suites = 0;
    for entry in std::fs::read_dir(bench.path("suites")).unwrap().flatten() {
        if entry.path().extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        suites += 1;
        let suite = entry.path().to_str().unwrap().to_owned();
        for (agent, verdict) in [("nop", "failed"), ("reference", "passed")] {
            let (result, _) = bench.run(&suite, agent, &[]);
            for test in result["tests"].as_array().unwrap() {
                assert_eq!(test["verdict"], verdict, "{agent} on {suite}: {test:#}");
            }
        }
    }
    assert_eq!(suites, 5);
}
