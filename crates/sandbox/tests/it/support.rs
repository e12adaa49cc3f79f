//! Runs of small programs under a sandbox.

use proctor_sandbox::{Exit, Features, Mode, Process, Protection, Sandbox, Spec, Standing, Workspace};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Variable that marks the processes of one run, so that survivors are found.
pub(crate) const MARK: &str = "SANDBOX_TEST_MARK";

/// Grace period of runs that end by themselves.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// Time limit of what comes by itself, also on a machine under load.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Folder for runs, sandbox, and the workspace of a run.
pub(crate) struct Bench {
    pub(crate) base: tempfile::TempDir,
    pub(crate) sandbox: Sandbox,
    pub(crate) workspace: Workspace,
    pub(crate) mark: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Mode::Auto, Features::all())
    }

    pub(crate) fn with(mode: Mode, features: Features) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let base = tempfile::tempdir().unwrap();
        let sandbox = Sandbox::new(mode, features, base.path()).unwrap();
        let workspace = Workspace::create(base.path()).unwrap();
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self { base, sandbox, workspace, mark }
    }

    /// Specification of a program with a fixed `PATH`, marked, writing to its own tree only.
    pub(crate) fn spec(&self, program: &str) -> Spec {
        Spec::new(program, self.workspace.workspace())
            .environment("PATH", "/usr/local/bin:/usr/bin:/bin")
            .environment("HOME", self.workspace.home())
            .environment("TMPDIR", self.workspace.tmp())
            .environment(MARK, &self.mark)
            .folders(&self.workspace)
    }

    /// Specification of a shell script.
    pub(crate) fn script(&self, script: &str) -> Spec {
        self.spec("/bin/sh").arguments(["-c", script])
    }

    /// Specification of this binary in the role of a helper.
    pub(crate) fn helper(&self, command: &str) -> Spec {
        let program = own_program();
        self.spec(program.to_str().unwrap())
            .arguments(["helper::entry", "--exact", "--nocapture", "--test-threads=1"])
            .environment(crate::helper::COMMAND, command)
    }

    /// Runs to the end: report, standard output, standard error.
    pub(crate) fn run(&self, spec: Spec) -> (Exit, String, String) {
        let mut process = self.sandbox.spawn(spec).unwrap();
        drop(process.stdin.take());
        let (stdout, stderr) = drain(&mut process);
        // Ended by itself or by a limit; only what it left behind is terminated.
        assert!(process.wait(PATIENCE).unwrap().is_some());
        let exit = process.terminate(GRACE).unwrap();
        (exit, stdout.join().unwrap(), stderr.join().unwrap())
    }

    /// Whether a protection is held here; says so if not, because the test is not run then.
    pub(crate) fn holds(&self, protection: Protection) -> bool {
        let standing = self.sandbox.protections().get(protection);
        let is_held = matches!(standing, Standing::Held { .. });
        if !is_held {
            println!("not run: {protection}: {standing}");
        }
        is_held
    }

    /// Processes with the mark of this bench.
    pub(crate) fn survivors(&self) -> Vec<String> {
        marked(&self.mark)
    }
}

type Text = std::thread::JoinHandle<String>;

/// Reads both outputs to their ends, on threads of their own.
pub(crate) fn drain(process: &mut Process) -> (Text, Text) {
    let read = |stream: Option<OwnedFd>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(stream) = stream {
                File::from(stream).read_to_end(&mut bytes).unwrap();
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    (read(process.stdout.take()), read(process.stderr.take()))
}

/// Reads one line of a process's standard output.
pub(crate) fn first_line(process: &mut Process) -> String {
    let mut stdout = File::from(process.stdout.take().unwrap());
    let mut line = Vec::new();
    let mut byte = [0];
    while stdout.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    process.stdout = Some(stdout.into());
    String::from_utf8(line).unwrap()
}

/// Processes whose environment has the given mark, as `pid command`. A process that is between two programs has no environment for a moment:
/// both a missing process and the last one must be asked for until the answer holds.
pub(crate) fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted) {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(format!("{} {}", entry.path().display(), String::from_utf8_lossy(&command)));
        }
    }
    found
}

/// Waits until a condition holds; fails when [`PATIENCE`] is over.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Start time of a living process; a zombie waits for its parent only. With the time a reused number is another process.
pub(crate) fn start_time(pid: &str) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may have spaces; after its parenthesis come the state and 18 numbers before the time.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" { None } else { fields.nth(18)?.parse().ok() }
}

/// This test binary, at a path that every user can execute.
pub(crate) fn own_program() -> &'static Path {
    static PROGRAM: OnceLock<std::path::PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| std::env::current_exe().unwrap())
}
