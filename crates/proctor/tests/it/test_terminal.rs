//! `proctor test` on a terminal: the live line, the lines above it, and what is left of both.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

const SUITE: &str = r"
test_suite: sample
defaults: {timeout_seconds: 30}
tests:
  - id: bye
    name: Says good bye
    task: {description: Say good bye}
    assertions: [{type: artifact_exists, critical: true, config: {path: bye.txt}}]
  - id: wide
    name: 日本語のテスト
    task: {description: Say hello}
    assertions: [{type: artifact_exists, critical: true, config: {path: hello.txt}}]
";

/// `proctor test` on a pseudo terminal, with an agent that says hello once `go` exists, and never good bye.
struct Session {
    folder: tempfile::TempDir,
    screen: File,
    bytes: Vec<u8>,
    output: String,
    child: Child,
}

impl Session {
    fn start(columns: u16, variables: &[(&str, &str)]) -> Session {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("suite.yaml"), SUITE).unwrap();
        let go = folder.path().join("go");
        let agent =
            format!("plain:sh -c 'until [ -e {} ]; do sleep 0.02; done; echo > hello.txt'", go.display());
        let (screen, terminal) = pseudo_terminal(columns);
        let mut command = Command::new(crate::support::binary());
        command
            .args(["test", "suite.yaml", "--sandbox", "off", "--agent", &agent])
            .current_dir(folder.path())
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal);
        let child = command.spawn().unwrap();
        // The command keeps the terminal open until it is dropped.
        drop(command);
        Session { folder, screen, bytes: Vec::new(), output: String::new(), child }
    }

    fn go(&self) -> PathBuf {
        self.folder.path().join("go")
    }

    /// Reads until the text has been written; false if the program ended before.
    fn read_until(&mut self, text: &str) -> bool {
        let mut bytes = [0; 4096];
        while !self.output.contains(text) {
            // The terminal is closed with an error, not with an end of file.
            let Ok(count @ 1..) = self.screen.read(&mut bytes) else { return false };
            self.bytes.extend_from_slice(&bytes[..count]);
            self.output = String::from_utf8_lossy(&self.bytes).into_owned();
        }
        true
    }

    /// The exit code and all output.
    fn end(mut self) -> (Option<i32>, String) {
        self.read_until("\u{0}never\u{0}");
        (self.child.wait().unwrap().code(), self.output)
    }
}

/// Both ends of a terminal of this width.
fn pseudo_terminal(columns: u16) -> (File, File) {
    let screen = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    rustix::pty::grantpt(&screen).unwrap();
    rustix::pty::unlockpt(&screen).unwrap();
    let name = rustix::pty::ptsname(&screen, Vec::new()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&screen, size).unwrap();
    let terminal = File::options().read(true).write(true).open(Path::new(name.to_str().unwrap())).unwrap();
    (File::from(screen), terminal)
}

/// Rows that the terminal shows, without colours.
fn rows(output: &str) -> Vec<String> {
    let colours = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    let mut rows = vec![String::new()];
    for part in colours.replace_all(output, "").replace("\r\n", "\n").split_inclusive(['\r', '\n']) {
        let row = rows.last_mut().unwrap();
        // Each line begins by writing over or erasing the one before, and ends by erasing the rest.
        let text = part.trim_end_matches(['\r', '\n']);
        if !text.is_empty() {
            *row = text.replace("\u{1b}[K", "");
        }
        if part.ends_with('\n') {
            rows.push(String::new());
        }
    }
    rows
}

#[test]
fn a_live_line_shows_what_runs_and_leaves_nothing_behind() {
    let mut session = Session::start(100, &[]);
    assert!(session.read_until("0/2 tests, 0 passed, 0 failed, 0:0"), "{}", session.output);
    assert!(session.read_until(": Says good bye\u{1b}[K"), "{}", session.output);
    std::fs::write(session.go(), "").unwrap();
    let (code, output) = session.end();
    assert_eq!(code, Some(10));
    assert!(output.contains("\u{1b}[31mfailed"), "{output:?}");
    let rows = rows(&output);
    let count = |text: &str| rows.iter().filter(|row| row.contains(text)).count();
    // The test that passed is in the result only; the other one was also shown as it ended, with its reason.
    assert_eq!((count("passed  日本語のテスト"), count("failed  Says good bye")), (1, 2), "{rows:#?}");
    assert_eq!((count("artifact_exists (critical)"), count("/2 tests")), (2, 0), "{rows:#?}");
    let place = |text: &str| rows.iter().position(|row| row.starts_with(text));
    assert!(place("failed  Says good bye") < place("proctor: recorded as suite run"), "{rows:#?}");
    assert_eq!(count("sample: 1 passed, 1 failed with"), 1, "{rows:#?}");
}

#[test]
fn a_narrow_terminal_without_colours_has_lines_that_fit() {
    let mut session = Session::start(24, &[("NO_COLOR", "1")]);
    assert!(session.read_until("\r0/2 tests, 0 passed, …\u{1b}[K"), "{:?}", session.output);
    std::fs::write(session.go(), "").unwrap();
    let (code, output) = session.end();
    assert_eq!(code, Some(10));
    assert!(!output.replace("\u{1b}[K", "").contains('\u{1b}'), "{output:?}");
    for frame in output.split('\r').filter_map(|part| part.strip_suffix("\u{1b}[K")) {
        assert!(frame.chars().count() < 24, "{frame:?}");
    }
}

#[test]
fn an_interrupt_removes_the_live_line() {
    let mut session = Session::start(100, &[]);
    assert!(session.read_until(": Says good bye\u{1b}[K"), "{}", session.output);
    let pid = rustix::process::Pid::from_child(&session.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let (code, output) = session.end();
    assert_eq!(code, Some(130));
    let rows = rows(&output);
    assert!(!rows.iter().any(|row| row.contains("/2 tests")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.starts_with("sample: 0 passed")), "{rows:#?}");
}

#[test]
fn a_terminal_that_cannot_erase_gets_the_result_only() {
    // Continuous integration must not bring the colours back.
    let session = Session::start(100, &[("TERM", "dumb"), ("CI", "true")]);
    std::fs::write(session.go(), "").unwrap();
    let (code, output) = session.end();
    assert_eq!(code, Some(10));
    assert!(!output.contains('\u{1b}'), "{output:?}");
    assert_eq!(output.matches("Says good bye").count(), 1, "{output}");
}

#[test]
fn a_file_for_stderr_has_a_plain_line_for_each_test() {
    let (_screen, terminal) = pseudo_terminal(100);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("suite.yaml"), SUITE).unwrap();
    let mut command = Command::new(crate::support::binary());
    command.args(["test", "suite.yaml", "--agent", "nop"]).current_dir(folder.path()).stdin(Stdio::null());
    let output = command.env("TERM", "xterm").stdout(terminal).stderr(Stdio::piped()).output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = talk.lines().filter(|line| line.contains("failed")).collect();
    assert_eq!(lines.len(), 2, "{talk}");
    assert!(lines.iter().all(|line| line.starts_with("proctor: failed  ")), "{talk}");
}
