//! Fixtures of the program's tests: a scratch folder with a policy, and the program itself.

pub mod attest;
pub mod harness;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use proctor_core::json::Json;

/// Number of repetitions of a random test: the whole count with `scripts/test --full`, else a twentieth.
pub fn count(full: usize) -> usize {
    if std::env::var("PROCTOR_FULL").is_ok_and(|value| value == "1") { full } else { (full / 20).max(1) }
}

/// The seed of this run; printed, so that a failure can be repeated.
pub fn seed() -> u64 {
    let seed = std::env::var("PROCTOR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_115);
    println!("seed {seed} (PROCTOR_SEED)");
    seed
}

/// A scratch folder in which commands run.
pub struct Folder {
    pub dir: tempfile::TempDir,
}

impl Folder {
    /// A folder with this policy.
    pub fn with_policy(policy: &str) -> Folder {
        let folder = Folder { dir: tempfile::tempdir().unwrap() };
        folder.write("policy.yaml", policy);
        folder.write("proctor.toml", "policy = \"policy.yaml\"\n");
        folder
    }

    /// The same, with an approver.
    pub fn with_approver(policy: &str) -> Folder {
        let folder = Folder::with_policy(policy);
        let output = folder.run(&["init", "--approver", "ann"]);
        assert!(output.status.success(), "{output:?}");
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.path(".proctor")
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Replaced in one step, as editors do.
        let next = path.with_extension("next");
        std::fs::write(&next, text).unwrap();
        std::fs::rename(&next, &path).unwrap();
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir(self.dir.path().join("work"));
        command.env("XDG_CONFIG_HOME", self.dir.path().join("config"));
        command.env("XDG_STATE_HOME", self.dir.path().join("states"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PROCTOR_")) {
            command.env_remove(name);
        }
        command.env("NO_COLOR", "1");
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    pub fn run_with(&self, args: &[&str], input: &str) -> Output {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let writer = std::thread::spawn(move || {
            // A program that ends early does not read everything; that is not this thread's affair.
            let _ = stdin.write_all(input.as_bytes());
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    }

    /// The lines of JSON that a command prints.
    pub fn json(&self, args: &[&str]) -> Vec<Json> {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        lines(&output)
    }

    /// Exports the ledger, and verifies it; returns the report and the exit code.
    pub fn verify(&self, trust: Option<&Path>) -> (Json, i32) {
        let bundle = self.path("ledger.bundle");
        let exported = self.run(&["audit", "export", "--output", bundle.to_str().unwrap()]);
        assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
        let mut args = vec!["audit", "verify", bundle.to_str().unwrap(), "--json"];
        if let Some(trust) = trust {
            args.extend(["--trust", trust.to_str().unwrap()]);
        }
        let output = self.run(&args);
        let report = lines(&output).into_iter().next();
        (
            report.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr))),
            output.status.code().unwrap(),
        )
    }
}

/// The program under test: the released build if the test script made one, else this build.
pub fn binary() -> PathBuf {
    std::env::var_os("PROCTOR_RELEASE_BINARY")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_proctor")), PathBuf::from)
}

pub fn lines(output: &Output) -> Vec<Json> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines()
        .map(|line| Json::parse(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

pub fn text<'a>(value: &'a Json, name: &str) -> &'a str {
    value.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// A gate that is running.
pub struct Gate {
    pub child: Child,
    pub stdin: ChildStdin,
    pub stdout: BufReader<ChildStdout>,
}

impl Gate {
    pub fn start(folder: &Folder, args: &[&str]) -> Gate {
        let mut all = vec!["gate"];
        all.extend(args);
        Gate::spawn(folder.command(&all))
    }

    pub fn spawn(mut command: Command) -> Gate {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Gate { child, stdin, stdout }
    }

    pub fn send(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
        self.stdin.flush().unwrap();
    }

    pub fn receive(&mut self) -> Json {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        Json::parse(line.as_bytes()).unwrap_or_else(|error| panic!("`{line}`: {error}"))
    }

    pub fn ask(&mut self, line: &str) -> Json {
        self.send(line);
        self.receive()
    }

    /// Ends the gate by ending its input; returns the exit code and what it said on stderr.
    pub fn end(mut self) -> (i32, String) {
        drop(self.stdin);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).unwrap();
        assert_eq!(rest, "", "answers that nobody asked for");
        let output = self.child.wait_with_output().unwrap();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Stops a process; it does not run any more when this returns.
pub fn stop_process(pid: rustix::process::Pid) {
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    // Each thread notices by itself.
    let runs = |task: std::io::Result<std::fs::DirEntry>| {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with(['T', 't']))
    };
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    while std::fs::read_dir(&tasks).unwrap().any(runs) {
        assert!(std::time::Instant::now() < deadline, "the process does not stop");
        std::thread::yield_now();
    }
}
