//! Snapshots of what people see: transcripts of commands with stdin, stdout, stderr and exit code.
//!
//! A missing or different snapshot fails and writes nothing (`.config/insta.yaml`). `INSTA_UPDATE=always` accepts the present
//! output; the changed files are then reviewed like code.

mod agents;
mod approvals;
mod assertions;
mod errors;
mod gate;
mod help;
mod ledger;
mod placeholders;
mod policies;
mod sessions;
mod start;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{Folder, binary, lines, text};

/// The policy of most transcripts: commands are allowed, deleting is denied, deploying is asked about.
const POLICY: &str = r#"version: "1"
default: deny
tools:
  shell: { allow: true }
rules:
  - { id: no-delete, when: 'action.commands.exists(c, c.startsWith("rm "))', then: deny, reason: Nothing is deleted here. }
  - { id: deploys, when: action.tool == "deploy", then: ask, expires: 1h, reason: Deploying needs a person. }
  - { id: searches, when: action.tool == "search", then: allow }
  - { id: short-searches, when: action.tool == "search", then: modify, set: { /args/limit: 10 } }
"#;

/// Actions of two agents: two allowed, one denied, one asked about, and an observation.
const ACTIONS: &str = r#"{"tool":"bash","args":{"command":"ls needle-in-a-body"},"session":"s1","agent":"coder"}
{"tool":"bash","args":{"command":"rm -rf build"},"session":"s1","agent":"coder"}
{"tool":"bash","args":{"command":"pwd"},"session":"s1","agent":"coder"}
{"tool":"deploy","args":{"to":"prod"},"session":"s2","agent":"helper"}
{"observation":{"code":"response","data":"done"},"session":"s1","agent":"coder"}
"#;

/// Commands that ran in a scratch folder, with what they read and printed.
struct Transcript {
    folder: Folder,
    text: String,
}

impl Transcript {
    /// A transcript in an empty folder.
    fn empty() -> Transcript {
        let folder = Folder { dir: tempfile::tempdir().unwrap() };
        for name in ["work", "user", "scratch"] {
            std::fs::create_dir(folder.dir.path().join(name)).unwrap();
        }
        Transcript { folder, text: String::new() }
    }

    /// A transcript in a folder with settings and this policy.
    fn with_policy(policy: &str) -> Transcript {
        let transcript = Transcript::empty();
        transcript.write("policy.yaml", policy);
        transcript.write("proctor.toml", "policy = \"policy.yaml\"\n");
        transcript
    }

    /// A transcript in a folder whose ledger holds [`ACTIONS`], with an approver called ann.
    fn with_ledger() -> Transcript {
        let transcript = Transcript::with_policy(POLICY);
        transcript.prepare("init --approver ann");
        let output = transcript.execute("gate", ACTIONS);
        assert_eq!(lines(&output).len(), 5, "{}", String::from_utf8_lossy(&output.stderr));
        transcript
    }

    fn write(&self, name: &str, text: &str) {
        self.folder.write(name, text);
    }

    /// Writes a file and shows it in the transcript: messages speak of its lines.
    fn write_shown(&mut self, name: &str, text: &str) {
        self.write(name, text);
        self.show(name);
    }

    /// Shows a file in the transcript.
    fn show(&mut self, name: &str) {
        let text = std::fs::read_to_string(self.folder.path(name)).unwrap();
        self.begin();
        self.text.push_str(&format!("# {name}\n{text}"));
    }

    /// The program with an environment of its own: nothing of the surrounding one reaches a snapshot.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(binary());
        command.args(words(line)).current_dir(self.folder.path("")).env_clear();
        command.env("NO_COLOR", "1").env("COLUMNS", "100").env("USER", "ann");
        for (name, folder) in [("HOME", "user"), ("XDG_CONFIG_HOME", "config"), ("TMPDIR", "scratch")] {
            command.env(name, self.folder.dir.path().join(folder));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn execute(&self, line: &str, input: &str) -> Output {
        let mut child = self.command(line).spawn().unwrap();
        // A program that ends early does not read everything. No input is longer than a pipe's buffer.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs a command that is not part of the transcript and must succeed.
    fn prepare(&self, line: &str) -> Output {
        let output = self.execute(line, "");
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Runs a command.
    fn run(&mut self, line: &str) {
        self.run_with(line, "");
    }

    /// Runs a command with this input.
    fn run_with(&mut self, line: &str, input: &str) {
        let output = self.execute(line, input);
        self.append(line, input, &output);
    }

    /// Runs several commands.
    fn run_all(&mut self, lines: &[&str]) {
        for line in lines {
            self.run(line);
        }
    }

    fn begin(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    fn append(&mut self, line: &str, input: &str, output: &Output) {
        self.begin();
        self.text.push_str(&format!("$ proctor {line}\n"));
        let stdout = String::from_utf8(output.stdout.clone()).unwrap();
        let stderr = String::from_utf8(output.stderr.clone()).unwrap();
        for (name, part) in [("stdin", input), ("stdout", &stdout), ("stderr", &stderr)] {
            if !part.is_empty() {
                let end = if part.ends_with('\n') { "" } else { "\n(without a line break at the end)\n" };
                self.text.push_str(&format!("--- {name}\n{part}{end}"));
            }
        }
        let code = output.status.code().map_or_else(|| output.status.to_string(), |code| code.to_string());
        self.text.push_str(&format!("--- exit code {code}\n"));
    }

    /// The member of the only line that a command prints with `--json`.
    fn member(&self, line: &str, name: &str) -> String {
        let found = lines(&self.prepare(&format!("{line} --json")));
        text(&found[0], name).to_owned()
    }

    /// Compares the transcript with its snapshot.
    fn check(self, name: &str) {
        let table = placeholders::table(self.folder.dir.path());
        compare(name, &placeholders::replace(&self.text, &table));
    }
}

/// Compares a text with the snapshot of this name in `snapshots/`.
fn compare(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Words of a command line; single quotes keep spaces together.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            ' ' if !is_quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    assert!(!is_quoted, "`{line}` ends within quotes");
    words.extend(word);
    words
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots")
}

/// Name and text of every file with this extension in `snapshots/`.
fn files(extension: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|is| is == extension) {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

#[test]
fn a_missing_snapshot_fails_and_writes_nothing() {
    if std::env::var_os("INSTA_UPDATE").is_some() {
        println!("not run: INSTA_UPDATE is set");
        return;
    }
    let failed = std::panic::catch_unwind(|| compare("never-accepted", "text"));
    assert!(failed.is_err(), "a missing snapshot passes");
    for name in ["never-accepted.snap", "never-accepted.snap.new"] {
        assert!(!folder().join(name).exists(), "{name} was written");
    }
}

#[test]
fn every_snapshot_belongs_to_a_test() {
    let sources: String = files("rs").into_iter().map(|(_, text)| text).collect();
    let unused: Vec<String> = files("snap")
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| !sources.contains(&format!("\"{name}\"")))
        .collect();
    assert!(unused.is_empty(), "no test compares {unused:?}");
}

#[test]
fn snapshots_hold_nothing_of_this_machine() {
    let snapshots = files("snap");
    let table = placeholders::table(Path::new("/no/such/root"));
    for (name, text) in &snapshots {
        for part in ["/tmp/", "/root", "/home/", "\u{1b}"] {
            assert!(!text.contains(part), "{name} holds {part:?}");
        }
        assert_eq!(&placeholders::replace(text, &table), text, "{name} holds text that varies");
    }
    for row in &table {
        let shown = if row.is_numbered { format!("[{}-1]", row.name) } else { format!("[{}]", row.name) };
        assert!(snapshots.iter().any(|(_, text)| text.contains(&shown)), "no snapshot holds `{shown}`");
    }
}
