//! A process that says when it is ready.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::Failure;

/// Time limit of a process for being ready, and for ending.
const PATIENCE: Duration = Duration::from_secs(60);

/// Length limit of shown output of a process.
const SHOWN: usize = 2000;

/// Stream on which a process says that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Output,
    Errors,
}

/// A running process. It is ended when this is dropped.
pub struct Process {
    name: &'static str,
    child: Child,
    /// Address that it says it listens on.
    pub place: String,
    /// From starting it until it said so.
    pub took: Duration,
    errors: PathBuf,
    /// Kept open: the floor ends when it closes.
    _input: Option<ChildStdin>,
}

impl Process {
    /// Starts a process and waits for the line that holds `sign`; what it says on standard error goes to the file `errors` as well.
    pub fn start(
        name: &'static str,
        command: &mut Command,
        sign: &'static str,
        stream: Stream,
        errors: &Path,
    ) -> Result<Process, Failure> {
        let file = std::fs::File::create(errors).map_err(|error| format!("{}: {error}", errors.display()))?;
        command.stdin(Stdio::piped());
        match stream {
            Stream::Output => command.stdout(Stdio::piped()).stderr(file),
            Stream::Errors => command.stdout(Stdio::null()).stderr(Stdio::piped()),
        };
        let program = command.get_program().to_string_lossy().into_owned();
        let begin = Instant::now();
        let mut child =
            command.spawn().map_err(|error| format!("{name} `{program}` cannot be started: {error}"))?;
        let output: Option<Box<dyn Read + Send>> = match stream {
            Stream::Output => child.stdout.take().map(|output| Box::new(output) as _),
            Stream::Errors => child.stderr.take().map(|output| Box::new(output) as _),
        };
        let input = child.stdin.take();
        let (found, place) = mpsc::sync_channel(1);
        let copy = (stream == Stream::Errors).then(|| errors.to_owned());
        if let Some(output) = output {
            std::thread::spawn(move || listen(output, sign, &found, copy.as_deref()));
        }
        let mut process = Process {
            name,
            child,
            place: String::new(),
            took: Duration::ZERO,
            errors: errors.to_owned(),
            _input: input,
        };
        let (place, at) =
            place.recv_timeout(PATIENCE).map_err(|_| process.trouble("did not say that it is ready"))?;
        (process.place, process.took) = (place, at.duration_since(begin));
        Ok(process)
    }

    /// Asks it to end, and waits until it has.
    pub fn end(mut self) -> Result<(), Failure> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| self.trouble("has no number"))?;
        kill_process(id, Signal::TERM).map_err(|error| self.trouble(&format!("cannot be ended: {error}")))?;
        match self.wait() {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.trouble(&format!("ended with {status}"))),
            None => Err(self.trouble("does not end")),
        }
    }

    fn wait(&mut self) -> Option<ExitStatus> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// The processor time that all its threads took. Ticks of 10 ms count threads that have ended; the scheduler's numbers are exact
    /// and do not. Both are never too large.
    pub fn processor_time(&self) -> Result<Duration, Failure> {
        let stat = self.about("stat")?;
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u64 =
            after_name.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()))
            .map_err(|error| error.to_string())?;
        let nanos: u64 = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
            .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
            .sum();
        Ok(Duration::from_millis(ticks * 10).max(Duration::from_nanos(nanos)))
    }

    /// The memory that it holds now, in bytes.
    pub fn memory(&self) -> Result<u64, Failure> {
        let status = self.about("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.map(|count| count * 1024).ok_or_else(|| self.trouble("says nothing of its memory"))
    }

    fn about(&self, what: &str) -> Result<String, Failure> {
        let path = format!("/proc/{}/{what}", self.child.id());
        Ok(std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?)
    }

    fn trouble(&self, what: &str) -> Failure {
        let said = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let said: String = said.trim().chars().take(SHOWN).collect();
        let said = if said.is_empty() { said } else { format!("; it said: {said}") };
        format!("{} {what}{said}", self.name).into()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks for the line, and then reads on, so that the process never waits for us.
fn listen(
    output: Box<dyn Read + Send>,
    sign: &str,
    found: &mpsc::SyncSender<(String, Instant)>,
    copy: Option<&Path>,
) {
    let mut kept = String::new();
    for line in BufReader::new(output).lines() {
        let at = Instant::now();
        let Ok(line) = line else { return };
        if let Some((_, place)) = line.split_once(sign) {
            let _ = found.try_send((place.trim().to_owned(), at));
        }
        if let Some(copy) = copy
            && kept.len() < SHOWN
        {
            kept.push_str(&line);
            kept.push('\n');
            let _ = std::fs::write(copy, &kept);
        }
    }
}
