//! Agents that use the folders of their run, or of its checks, against Proctor: links, pipes and replaced folders, code that changes the next
//! check, files that take the place of modules, work after the time limit. Proctor itself reads and writes there, outside of the sandbox.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Folder with a suite, in which agents are tried.
struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new(suite: &str) -> Ground {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        std::fs::create_dir(folder.path().join("home")).unwrap();
        std::fs::write(folder.path().join("suite.yaml"), suite).unwrap();
        Ground { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn command(&self, agent: &str, more: &[&str]) -> Command {
        let mut command = Command::new(crate::support::binary());
        command
            .args(["test", "suite.yaml", "--json", "--agent", agent])
            .args(more)
            .current_dir(self.path(""))
            .env("TMPDIR", self.path("tmp"))
            .env("HOME", self.path("home"))
            .env("PROCTOR_STATE", self.path("state"));
        command
    }

    /// Result of the suite.
    fn run(&self, agent: &str, more: &[&str]) -> Value {
        let output = self.command(agent, more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"))
    }

    /// Verdicts of the suite's tests, by their ids.
    fn verdicts(&self, agent: &str) -> Vec<(String, String)> {
        let result = self.run(agent, &[]);
        let text = |test: &Value, name: &str| test[name].as_str().unwrap().to_owned();
        let tests = result["tests"].as_array().unwrap();
        tests.iter().map(|test| (text(test, "id"), text(test, "verdict"))).collect()
    }
}

const INLINE: &str = r#"
test_suite: inline
defaults: {timeout_seconds: 20}
tests:
  - id: t
    name: T
    task: {description: x}
    files: [{path: check.txt, content: "of the suite\n"}]
    assertions: [{type: file_contains, config: {path: check.txt, pattern: of the suite}}]
"#;

#[test]
fn text_of_the_suite_is_not_written_through_a_link_or_into_a_pipe() {
    let ground = Ground::new(INLINE);
    ground.put("victim", "precious\n");
    let victim = ground.path("victim");
    for script in [
        format!(
            "for f in $TMPDIR $HOME . ..; do ln -s {0} $f/inline; ln -s {0} $f/check.txt; done",
            victim.display()
        ),
        "for f in $TMPDIR $HOME . ..; do mkfifo $f/inline $f/check.txt; done".to_owned(),
    ] {
        let begin = Instant::now();
        let result = ground.run(&format!("plain:sh -c '{script}; echo done'"), &[]);
        assert_eq!(result["tests"][0]["verdict"], "passed", "{script}: {result:#}");
        assert!(begin.elapsed() < Duration::from_secs(15), "{script}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    }
}

#[test]
fn a_workspace_that_was_replaced_shows_nothing_from_elsewhere_and_changes_nothing_there() {
    let suite = r"
test_suite: swap
tests:
  - id: t
    name: T
    task: {description: x}
    reference: [{path: out.txt, source: solution/out.txt}]
    assertions: [{type: file_contains, config: {path: out.txt, pattern: the answer}}]
";
    for sandbox in ["auto", "off"] {
        let ground = Ground::new(suite);
        ground.put("solution/out.txt", "the answer\n");
        ground.put("solution/closed/file", "x");
        let closed = ground.path("solution/closed");
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o050)).unwrap();
        let swap = format!(
            "cd ..; mv workspace aside && ln -s {} workspace; echo done",
            ground.path("solution").display()
        );
        let result = ground.run(&format!("plain:sh -c '{swap}'"), &["--sandbox", sandbox]);
        assert_eq!(result["tests"][0]["verdict"], "failed", "{sandbox}: {result:#}");
        let mode = closed.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o050, "{sandbox}");
        assert_eq!(
            std::fs::read_dir(ground.path("tmp"))
                .unwrap()
                .flatten()
                .map(|entry| { std::fs::read_dir(entry.path()).unwrap().count() })
                .sum::<usize>(),
            0,
            "{sandbox}: nothing is left"
        );
    }
}

const CHECKS: &str = r"
test_suite: checks
tests:
  - id: files
    name: Code of one check rewrites the next
    task: {description: files}
    files: [{path: checks, source: checks}]
    assertions:
      - {type: custom_command, config: {command: python3 solution.py}}
      - {type: custom_command, config: {command: python3 checks/check.py}, critical: true}
      - {type: custom_command, config: {command: python3 solution.py}}
  - id: home
    name: Code of one check leaves settings for the next
    task: {description: home}
    assertions:
      - {type: custom_command, config: {command: python3 solution.py}}
      - {type: custom_command, config: {command: python3 -c 'raise SystemExit(1)'}, critical: true}
  - id: evidence
    name: Code of a check writes what a later assertion looks for
    task: {description: evidence}
    assertions:
      - {type: custom_command, config: {command: python3 solution.py}}
      - {type: file_exists, config: {path: made.txt}, critical: true}
  - id: shell
    name: Code of a check changes the script that is being run
    task: {description: shell}
    files: [{path: check.sh, source: check.sh}]
    assertions: [{type: custom_command, config: {command: sh check.sh}, critical: true}]
";

#[test]
fn code_that_runs_in_a_check_changes_no_other() {
    let ground = Ground::new(CHECKS);
    ground.put("checks/check.py", "import sys\nsys.exit(1)\n");
    ground.put("check.sh", "python3 solution.py\nsleep 0\nexit 1\n");
    ground.put(
        "agent.py",
        r#"
what = open(0).read()
code = {
    "files": "open('checks/check.py', 'w').write('')",
    "home": """
import os, site
folder = site.getusersitepackages()
os.makedirs(folder)
for name in ("usercustomize.py", "x.pth"):
    open(folder + "/" + name, "w").write("import os; os._exit(0)\\n")
""",
    "evidence": "open('made.txt', 'w')",
    "shell": """
try:
    open("check.sh", "r+").write("exit 0\\n" * 3)
except OSError:
    pass
""",
}[what]
open("solution.py", "w").write(code)
print("done")
"#,
    );
    let result = ground.run("plain:python3 agent.py", &[]);
    for test in result["tests"].as_array().unwrap() {
        let holds = |name: &str| {
            let list = result["isolation"]["protections"].as_array().unwrap();
            list.iter().any(|entry| entry["name"] == name && entry.get("held_by").is_some())
        };
        // Only mounts keep a single file from being written.
        if test["id"] == "shell" && !(holds("writes confined") && holds("hidden paths out of reach")) {
            println!("not run: {}", result["isolation"]);
            continue;
        }
        assert_eq!(test["verdict"], "failed", "{test:#}");
    }
}

const SHADOWS: &str = r#"
test_suite: shadows
tests:
  - id: script
    name: A module that the check imports
    task: {description: x}
    files: [{path: check.py, source: check.py}]
    assertions: [{type: custom_command, config: {command: python3 check.py}, critical: true}]
  - id: module
    name: A module that the check runs
    task: {description: x}
    files: [{path: check.py, source: check.py}]
    assertions: [{type: custom_command, config: {command: python3 -m json.tool check.py}, critical: true}]
  - id: make
    name: Another file for make
    task: {description: x}
    files: [{path: Makefile, content: "check:\n\tfalse\n"}]
    assertions: [{type: custom_command, config: {command: make check}, critical: true}]
"#;

/// The check starts the solution as a program of its own, so that its result can be trusted.
const CHECK: &str = "import json, subprocess, sys\n\
    out = subprocess.run([sys.executable, 'solution.py'], capture_output=True, text=True).stdout\n\
    sys.exit(0 if json.loads(out or '0') == 42 else 1)\n";

#[test]
fn files_of_the_agent_do_not_take_the_place_of_what_checks_use() {
    let ground = Ground::new(SHADOWS);
    ground.put("check.py", CHECK);
    let green = "import os\\nos._exit(0)\\n";
    ground.put(
        "cheat.py",
        &format!(
            "import os\n\
             for name in ('json.py', 'subprocess.py', 'sys.py', 'encodings.py'):\n    open(name, 'w').write('{green}')\n\
             os.mkdir('collections')\n\
             open('collections/__init__.py', 'w').write('{green}')\n\
             open('GNUmakefile', 'w').write('check:\\n\\ttrue\\n')\n\
             print('done')\n"
        ),
    );
    for (id, verdict) in ground.verdicts("plain:python3 cheat.py") {
        assert!(verdict == "failed" || verdict == "error", "{id}: {verdict}");
    }
    // The honest solution passes, also if it has a name that Python knows.
    ground.put("honest.py", "open('solution.py', 'w').write('print(42)')\nprint('done')\n");
    let verdicts = ground.verdicts("plain:python3 honest.py");
    assert_eq!(verdicts.first().unwrap(), &("script".to_owned(), "passed".to_owned()));
}

#[test]
fn a_module_that_the_suite_asks_for_may_have_a_name_that_python_knows() {
    let ground = Ground::new(
        r#"
test_suite: names
tests:
  - id: t
    name: T
    task: {description: Write queue.py}
    files: [{path: check.py, content: "import queue\nassert queue.own == 42\n"}]
    reference: [{path: queue.py, content: "own = 42\n"}]
    assertions: [{type: custom_command, config: {command: python3 check.py}, critical: true}]
"#,
    );
    assert_eq!(ground.verdicts("reference"), [("t".to_owned(), "passed".to_owned())]);
    assert_eq!(ground.verdicts("nop"), [("t".to_owned(), "failed".to_owned())]);
}

#[test]
fn work_after_the_time_limit_does_not_count() {
    let ground = Ground::new(
        r"
test_suite: late
tests:
  - id: t
    name: T
    task: {description: x}
    constraints: {timeout_seconds: 1}
    assertions: [{type: file_exists, config: {path: late.txt}}]
",
    );
    ground.put(
        "agent.py",
        r#"
import json, os, signal, sys, time
begin = time.monotonic()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
task = json.loads(sys.stdin.readline())["task_id"]
print(json.dumps({"version": "1.0", "task_id": task, "status": "completed", "artifacts": [], "metrics": {}}), flush=True)
os.close(1)
os.close(2)
while time.monotonic() - begin < 1.7:
    time.sleep(0.01)
open("late.txt", "w")
time.sleep(60)
"#,
    );
    let result = ground.run("stdio:python3 agent.py", &[]);
    assert_eq!(result["tests"][0]["verdict"], "failed", "{result:#}");
}

#[test]
fn a_workspace_that_cannot_be_copied_is_an_error_with_that_reason() {
    let ground = Ground::new(
        "test_suite: deep\ntests:\n  - {id: t, name: T, task: {description: x}, assertions: [{type: no_errors}]}\n",
    );
    ground.put(
        "agent.py",
        "import os\nfor _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\nprint('done')\n",
    );
    let result = ground.run("plain:python3 agent.py", &[]);
    let run = &result["tests"][0]["runs"][0];
    assert_eq!(run["verdict"], "error", "{run:#}");
    let error = run["error"].as_str().unwrap();
    assert!(error.contains("the workspace could not be copied for the checks"), "{error}");
    let left: usize = std::fs::read_dir(ground.path("tmp"))
        .unwrap()
        .flatten()
        .map(|entry| std::fs::read_dir(entry.path()).unwrap().count())
        .sum();
    assert_eq!(left, 0);
}

#[test]
fn the_home_of_the_account_is_hidden_too() {
    let ground = Ground::new(
        "test_suite: home\ntests:\n  - {id: t, name: T, task: {description: x}, assertions: [{type: contains, config: {pattern: LISTED}}]}\n",
    );
    let account = proctor_sandbox::homes(None, &ground.path("")).pop().unwrap();
    let key = account.join(".ssh");
    if !key.is_dir() {
        println!("not run: {} does not exist", key.display());
        return;
    }
    let agent =
        format!("plain:sh -c 'ls {} > list.txt 2> errors.txt && echo LISTED; echo done'", key.display());
    for home in [None, Some(ground.path("home"))] {
        let mut command = ground.command(&agent, &[]);
        match &home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        let output = command.output().unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        if String::from_utf8_lossy(&output.stderr).contains("not protected: hidden") {
            println!("not run: {}", result["isolation"]);
            return;
        }
        assert_eq!(result["tests"][0]["verdict"], "failed", "{home:?}: {result:#}");
    }
}

#[test]
fn an_artifact_without_content_and_without_a_file_does_not_exist() {
    let ground = Ground::new(
        r"
test_suite: claims
tests:
  - {id: t, name: T, task: {description: x}, assertions: [{type: artifact_exists, config: {path: report.pdf}}]}
",
    );
    let agent = |artifact: &str, code: &str| {
        format!(
            "import json, sys\ntask = json.loads(sys.stdin.readline())['task_id']\n{code}\n\
             print(json.dumps({{'version': '1.0', 'task_id': task, 'status': 'completed', 'artifacts': [{artifact}], 'metrics': {{}}}}))\n"
        )
    };
    let zeros = "0".repeat(64);
    for (artifact, code, verdict, reason) in [
        ("{'type': 'file', 'path': 'report.pdf'}".to_owned(), "", "failed", ""),
        ("{'type': 'file', 'path': 'report.pdf', 'content': 'x'}".to_owned(), "", "passed", ""),
        ("{'type': 'file', 'path': 'report.pdf'}".to_owned(), "open('report.pdf', 'w')", "passed", ""),
        (
            format!(
                "{{'type': 'file', 'path': 'report.pdf', 'size_bytes': 123, 'content_hash': 'sha256:{zeros}'}}"
            ),
            "",
            "failed",
            "$.artifacts[0].size_bytes",
        ),
        (
            "{'type': 'file', 'path': 'report.pdf', 'content_hash': 'md5:00'}".to_owned(),
            "open('report.pdf', 'w')",
            "failed",
            "$.artifacts[0].content_hash",
        ),
        (
            "{'type': 'file', 'path': 'report.pdf', 'size_bytes': 5}".to_owned(),
            "open('report.pdf', 'w').truncate(65 << 20)",
            "failed",
            "$.artifacts[0].size_bytes",
        ),
    ] {
        ground.put("agent.py", &agent(&artifact, code));
        let result = ground.run("stdio:python3 agent.py", &[]);
        let run = &result["tests"][0]["runs"][0];
        assert_eq!(run["verdict"], verdict, "{artifact} {code}: {run:#}");
        assert!(run["error"].as_str().unwrap_or_default().starts_with(reason), "{artifact}: {run:#}");
    }
}
