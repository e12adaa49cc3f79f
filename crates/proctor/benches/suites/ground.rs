//! Folder with suites, and runs of `proctor` in it.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// Bytes of the pipe that a run's results go through: it blocks in writing them while its memory is read.
const SMALL_PIPE: usize = 4096;

pub struct Ground {
    folder: tempfile::TempDir,
}

/// A suite by its number of tests.
#[derive(Clone, Copy)]
pub enum Size {
    /// Tests with one assertion.
    Small(usize),
    /// Tests of 23 values, as suites have them.
    Large(usize),
}

impl Ground {
    pub fn new() -> Result<Ground, Failure> {
        let folder = tempfile::tempdir().map_err(|error| format!("a folder: {error}"))?;
        std::fs::create_dir(folder.path().join("tmp")).map_err(|error| format!("a folder: {error}"))?;
        Ok(Ground { folder })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_proctor"));
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path().join("tmp"))
            .env("PROCTOR_STATE", self.folder.path().join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Command that runs a suite.
    fn test(&self, size: Size, agent: &str, arguments: &[&str]) -> Result<Command, Failure> {
        let name = match size {
            Size::Small(count) => format!("small-{count}.yaml"),
            Size::Large(count) => format!("large-{count}.yaml"),
        };
        let path = self.folder.path().join(&name);
        if !path.exists() {
            std::fs::write(&path, suite(size)).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let mut command = self.command();
        command.args(["test", &name, "--json", "--agent", agent]).args(arguments);
        Ok(command)
    }

    /// Time of a whole suite run.
    pub fn time(&self, size: Size, agent: &str, arguments: &[&str]) -> Result<Duration, Failure> {
        let mut command = self.test(size, agent, arguments)?;
        let begin = Instant::now();
        let status = command.status().map_err(|error| format!("proctor cannot be started: {error}"))?;
        let took = begin.elapsed();
        // Some of the agents fail their tests; an error of the command line is another code.
        match status.code() {
            Some(0 | 10) => Ok(took),
            _ => Err(format!("`proctor test` with {agent} ended with {status}").into()),
        }
    }

    /// Time of `proctor gate` on one line.
    pub fn gate(&self) -> Result<Duration, Failure> {
        let failed = |error: std::io::Error| format!("proctor gate: {error}");
        let mut command = self.command();
        let begin = Instant::now();
        let mut child =
            command.arg("gate").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let line = "{\"tool\":\"read_file\",\"args\":{\"path\":\"src/main.rs\"},\"cwd\":\"/repo\",\"session\":\"bench\"}\n";
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(line.as_bytes()).map_err(failed)?;
        }
        let output = child.wait_with_output().map_err(failed)?;
        let took = begin.elapsed();
        if output.stdout.is_empty() { Err("proctor gate gave no answer".into()) } else { Ok(took) }
    }

    /// Peak of the resident memory of a suite run, in bytes, read while it writes its results.
    pub fn peak(&self, size: Size, agent: &str) -> Result<u64, Failure> {
        let failed = |error: std::io::Error| format!("proctor test: {error}");
        let (mut reader, writer) = std::io::pipe().map_err(failed)?;
        rustix::pipe::fcntl_setpipe_size(&writer, SMALL_PIPE).map_err(|error| failed(error.into()))?;
        let mut command = self.test(size, agent, &["--parallel", "8"])?;
        let mut child = command.stdout(writer).spawn().map_err(failed)?;
        // The command keeps a copy of the writing end.
        drop(command);
        reader.read_exact(&mut [0]).map_err(failed)?;
        let peak = high_water(&Path::new("/proc").join(child.id().to_string()).join("status"));
        std::io::copy(&mut reader, &mut std::io::sink()).map_err(failed)?;
        child.wait().map_err(failed)?;
        peak.ok_or_else(|| "the memory of proctor cannot be read".into())
    }
}

fn high_water(status: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn suite(size: Size) -> String {
    let mut text = String::from("test_suite: bench\ntests:\n");
    let count = match size {
        Size::Small(count) | Size::Large(count) => count,
    };
    for at in 0..count {
        let _ = match size {
            Size::Small(_) => writeln!(
                text,
                "  - {{id: t{at}, name: T, task: {{description: Say hello}}, assertions: [{{type: no_errors}}]}}"
            ),
            Size::Large(_) => writeln!(
                text,
                "  - id: test-{at}\n    name: Test number {at}\n    tags: [bench, part-{}]\n    task:\n      description: Write the word hello into the file out.txt, and say what was done\n      expected_artifacts: [out.txt]\n    constraints: {{max_steps: 20, max_tokens: 10000, timeout_seconds: 60}}\n    assertions:\n      - {{type: artifact_exists, config: {{path: out.txt}}}}\n      - {{type: contains, config: {{pattern: hello}}}}\n      - {{type: no_errors}}",
                at % 10
            ),
        };
    }
    text
}
