//! Explanations of `proctor test` and its sisters: mistakes that are named before anything runs, and failures that say what to do.

use std::path::Path;
use std::process::{Command, Output};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn proctor(&self, arguments: &[&str]) -> Output {
        Command::new(crate::support::binary())
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", self.path().join("home"))
            .env_remove("XDG_CONFIG_HOME")
            .output()
            .unwrap()
    }

    /// Exit code, stdout and stderr.
    fn says(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = self.proctor(arguments);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

fn suite(test: &str) -> String {
    format!("test_suite: s\ntests:\n  - id: a\n    name: A\n    task: {{description: d}}\n    {test}\n")
}

#[test]
fn files_that_are_not_there_are_mistakes_before_anything_runs() {
    let folder = Folder::new();
    folder.write("suite.yaml", &suite("files: [{path: a.py, source: ./nofile.py}]"));
    for arguments in [&["test", "suite.yaml", "--check"][..], &["test", "suite.yaml", "--agent", "nop"]] {
        let (code, _, error) = folder.says(arguments);
        assert_eq!(code, 1);
        let expected = "suite.yaml:6:34: $.tests[0].files[0].source: there is no file `./nofile.py`";
        assert!(error.contains(expected), "{error}");
    }
    assert!(!folder.path().join(".proctor").exists(), "nothing is run");
    folder.write("nofile.py", "");
    let (code, shown, warnings) = folder.says(&["test", "suite.yaml", "--check"]);
    assert_eq!((code, shown.as_str()), (0, "suite.yaml: 1 test, 1 selected\n"));
    assert!(warnings.contains("the test has no assertions"), "{warnings}");
    // Relative paths start from the suite's folder, wherever the command is started.
    std::fs::create_dir(folder.path().join("below")).unwrap();
    folder.write("below/suite.yaml", &suite("reference: solution\n    assertions: [{type: no_errors}]"));
    assert_eq!(folder.says(&["test", "below/suite.yaml", "--check"]).0, 1);
    std::fs::create_dir(folder.path().join("below/solution")).unwrap();
    assert_eq!(folder.says(&["test", "below/suite.yaml", "--check"]).0, 0);
}

#[test]
fn a_failure_says_what_was_there_and_how_to_see_the_rest() {
    let folder = Folder::new();
    folder.write("suite.yaml", &suite("assertions: [{type: contains, config: {pattern: hello}}]"));
    let (code, shown, _) = folder.says(&["test", "suite.yaml", "--agent", "plain:echo goodbye"]);
    assert_eq!(code, 10);
    assert!(shown.contains("which begins `goodbye`"), "{shown}");
    let task = shown.split("`proctor session show ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    assert_eq!(folder.says(&["session", "show", task]).0, 0);
    let (_, exported, _) = folder.says(&["runs", "export", "last"]);
    let exported: serde_json::Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(exported["file"], "suite.yaml");
    assert!(exported["ended"].is_string(), "{exported}");
    folder.says(&["runs", "export", "last", "--report", "sarif=s.sarif"]);
    let sarif = std::fs::read_to_string(folder.path().join("s.sarif")).unwrap();
    assert!(sarif.contains(r#""uri":"suite.yaml""#), "{sarif}");
}

#[test]
fn a_score_that_does_not_count_stands_in_parentheses() {
    let folder = Folder::new();
    folder.write(
        "suite.yaml",
        &suite("environment: {API_KEY: s3cr3t-v4lue}\n    assertions: [{type: contains, config: {pattern: hello}}]"),
    );
    let (code, shown, _) =
        folder.says(&["test", "suite.yaml", "--agent", "plain:sh -c 'echo hello $API_KEY'"]);
    assert_eq!(code, 10);
    assert!(shown.contains("(100.00)") && shown.contains("emitted the secret API_KEY"), "{shown}");
}

#[test]
fn agents_that_cannot_be_started_or_reached_are_explained() {
    let folder = Folder::new();
    folder.write("suite.yaml", &suite("assertions: [{type: no_errors}]"));
    folder.write("agent.sh", "#!/bin/sh\r\necho\r\n");
    let (code, shown, _) = folder.says(&["test", "suite.yaml", "--agent", "stdio:./agent.sh"]);
    assert_eq!(code, 10);
    assert!(shown.contains("is not executable: run `chmod +x` on it"), "{shown}");
    let (code, _, error) = folder.says(&["test", "suite.yaml", "--agent", "http://127.0.0.1:99999"]);
    assert_eq!(code, 1);
    assert!(error.contains("the port `99999` is no number from 1 to 65535"), "{error}");
    let (_, _, error) = folder.says(&["test", "suite.yaml", "--agent", "stdio:python3 missing.py"]);
    assert!(error.contains("`missing.py` is no file in the working directory"), "{error}");
    let (_, shown, error) = folder.says(&["test", "suite.yaml", "--agent", "plain:cat | cat"]);
    assert!(error.contains("`|` is an ordinary word: there is no shell"), "{shown}{error}");
    // Nobody listens on a port that was just given back.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let address = format!("http://127.0.0.1:{port}");
    let (_, shown, _) =
        folder.says(&["test", "suite.yaml", "--agent", &format!("{address}/execute?token=x")]);
    assert!(shown.contains(&format!("({address})")) && !shown.contains("network: true"), "{shown}");
}

#[test]
fn a_check_of_an_agent_that_does_not_work_is_short() {
    let folder = Folder::new();
    folder.write("agent.py", "import sys\nsys.exit('no module named agents')\n");
    let (code, shown, _) = folder.says(&["atp", "check-agent", "stdio:python3 agent.py"]);
    assert_eq!(code, 10);
    assert_eq!(shown.lines().count(), 4, "{shown}");
    assert!(shown.contains("\n  | no module named agents\n20 duties not tried: "), "{shown}");
    let (code, _, error) = folder.says(&["atp", "check-agent", "agent.py"]);
    assert_eq!(code, 1);
    assert!(error.contains("give stdio:COMMAND, http://…, ws://… or grpc://…"), "{error}");
    assert!(!error.contains("nop"), "{error}");
}

#[test]
fn beginners_are_pointed_to_the_next_command() {
    let folder = Folder::new();
    let (code, _, error) = folder.says(&["runs", "list"]);
    assert_eq!(code, 0);
    assert!(error.contains("no suite run yet: `proctor test` records them"), "{error}");
    let (code, _, error) = folder.says(&["atp", "validate", "suite", "suite.yaml"]);
    assert_eq!(code, 1);
    assert!(error.contains("suites are checked by `proctor test FILE --check`"), "{error}");
    let (code, files, _) = folder.says(&["test", "--init"]);
    assert_eq!((code, files.as_str()), (0, "first/suite.yaml\nfirst/agent.py\n"));
    let two = "test_suite: s\nagents: [{name: one, type: nop}, {name: two, type: nop}]\ntests: [{id: a, name: A, task: {description: d}, assertions: [{type: no_errors}]}]\n";
    folder.write("suite.yaml", two);
    let (code, _, error) = folder.says(&["test", "suite.yaml"]);
    assert_eq!(code, 1);
    assert!(error.contains("(the suite has `one`, `two`)"), "{error}");
}

#[test]
fn the_name_of_an_approver_is_not_ignored() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    std::fs::create_dir(folder.path().join("work/.git")).unwrap();
    let run = |name: &str| {
        let output = Command::new(crate::support::binary())
            .args(["init", "--approver", name, "--credential", "../approver.key", "--state", ".proctor"])
            .current_dir(folder.path().join("work"))
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run("ann").0, 0);
    assert_eq!(run("ann").0, 0);
    let (code, error) = run("bob");
    assert_eq!(code, 1);
    assert!(error.contains("is the credential of `ann`; for `bob` name another file"), "{error}");
    let ignored = std::fs::read_to_string(folder.path().join("work/.proctor/.gitignore")).unwrap();
    assert_eq!(ignored, "*\n");
}
