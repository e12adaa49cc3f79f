//! A process that answers lines: the engine, or its floor.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failure::Failure;
use crate::inputs::Request;

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Length limit of a shown line.
const SHOWN: usize = 2_000;

/// Answers that were read, of all processes.
static ANSWERS: AtomicU64 = AtomicU64::new(0);
static GAVE_UP: AtomicBool = AtomicBool::new(false);
static RUNNING: Mutex<Vec<Weak<Mutex<Child>>>> = Mutex::new(Vec::new());

/// Ends processes that do not answer any more, so that nobody waits for them for ever.
pub fn watch() {
    std::thread::spawn(|| {
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = ANSWERS.load(Ordering::Relaxed);
            if now != seen {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                GAVE_UP.store(true, Ordering::Relaxed);
                let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
                for child in running.iter().filter_map(Weak::upgrade) {
                    let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
                }
                since = Instant::now();
            }
        }
    });
}

/// A process that answers lines. It is ended when this is dropped.
pub struct Process {
    name: &'static str,
    child: Arc<Mutex<Child>>,
    id: u32,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    answer: Vec<u8>,
    next: u64,
    errors: PathBuf,
    checked: bool,
}

impl Process {
    /// Starts a process whose answers are checked; what it says on standard error goes to the file `errors`.
    pub fn engine(command: &mut Command, errors: &Path) -> Result<Process, Failure> {
        Process::start("the engine", command, errors, true)
    }

    /// Starts a process whose answers mean nothing.
    pub fn floor(command: &mut Command, errors: &Path) -> Result<Process, Failure> {
        Process::start("the floor", command, errors, false)
    }

    fn start(
        name: &'static str,
        command: &mut Command,
        errors: &Path,
        checked: bool,
    ) -> Result<Process, Failure> {
        let file = std::fs::File::create(errors).map_err(|error| format!("{}: {error}", errors.display()))?;
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(|error| format!("{name} `{program}` cannot be started: {error}"))?;
        let (input, output) = match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => (input, BufReader::with_capacity(256 * 1024, output)),
            _ => return Err(format!("{name} has no pipes").into()),
        };
        let id = child.id();
        let child = Arc::new(Mutex::new(child));
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|child| child.strong_count() > 0);
        running.push(Arc::downgrade(&child));
        drop(running);
        let (line, answer) = (Vec::new(), Vec::new());
        Ok(Process {
            name,
            child,
            id,
            input,
            output,
            line,
            answer,
            next: 1,
            errors: errors.to_owned(),
            checked,
        })
    }

    /// Asks once, and says how long the answer took.
    pub fn ask(&mut self, request: &Request) -> Result<Duration, Failure> {
        self.line.clear();
        request.write(self.next, &mut self.line);
        self.answer.clear();
        let begin = Instant::now();
        let written = self.input.write_all(&self.line);
        let read = written.and_then(|()| self.output.read_until(b'\n', &mut self.answer));
        let took = begin.elapsed();
        if !read.is_ok_and(|_| self.answer.ends_with(b"\n")) {
            return Err(self.died(&format!("request {}", self.next)));
        }
        ANSWERS.fetch_add(1, Ordering::Relaxed);
        if self.checked {
            check(&self.answer, request.passes, Some(self.next))
                .map_err(|problem| format!("{} {problem}", self.name))?;
        }
        self.next += 1;
        Ok(took)
    }

    /// Keeps this many requests in flight for this long; says how many were answered, and how long that took.
    pub fn keep_in_flight(
        &mut self,
        request: &Request,
        window: usize,
        time: Duration,
    ) -> Result<(u64, Duration), Failure> {
        let Process { input, output, answer, next, child, .. } = self;
        let (more, wanted) = sync_channel::<usize>(window);
        let begin = Instant::now();
        let read = std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut lines = Vec::with_capacity(window * request.length());
                while let Ok(count) = wanted.recv() {
                    lines.clear();
                    for _ in 0..count {
                        request.write(*next, &mut lines);
                        *next += 1;
                    }
                    if input.write_all(&lines).is_err() {
                        break;
                    }
                }
            });
            let mut answered = 0;
            let mut read = || -> Result<(), Option<Failure>> {
                let mut in_flight = window;
                more.send(window).map_err(|_| None)?;
                let mut ready = 0;
                while in_flight > 0 {
                    answer.clear();
                    let read = output.read_until(b'\n', answer);
                    if !read.is_ok_and(|_| answer.ends_with(b"\n")) {
                        return Err(None);
                    }
                    if self.checked {
                        check(answer, request.passes, None).map_err(Some)?;
                    }
                    ANSWERS.fetch_add(1, Ordering::Relaxed);
                    answered += 1;
                    in_flight -= 1;
                    ready += 1;
                    // What has come is replaced together, as it came.
                    if !output.buffer().contains(&b'\n') && begin.elapsed() < time {
                        more.send(ready).map_err(|_| None)?;
                        in_flight += ready;
                        ready = 0;
                    }
                }
                Ok(())
            };
            let read = read();
            drop(more);
            if read.is_err() {
                // The writer may wait for a reader that there is no more.
                let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
            }
            let _ = writer.join();
            read.map(|()| answered)
        });
        match read {
            Ok(answered) => Ok((answered, begin.elapsed())),
            Err(Some(problem)) => Err(format!("{} {problem}", self.name).into()),
            Err(None) => Err(self.died(&format!("all of {} requests", self.next.saturating_sub(1)))),
        }
    }

    /// The last answer; null if it is no JSON.
    pub fn answer(&self) -> Value {
        serde_json::from_slice(&self.answer).unwrap_or_default()
    }

    /// Length of the last answer.
    pub fn answer_length(&self) -> usize {
        self.answer.len()
    }

    /// The processor time that all its threads took. Ticks of 10 ms count threads that have ended; the scheduler's numbers
    /// are exact and do not. Both are never too large.
    pub fn processor_time(&self) -> Result<Duration, Failure> {
        let stat = self.about("stat")?;
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u64 =
            after_name.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
        let tasks =
            std::fs::read_dir(format!("/proc/{}/task", self.id)).map_err(|error| error.to_string())?;
        let nanos: u64 = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
            .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
            .sum();
        Ok(Duration::from_millis(ticks * 10).max(Duration::from_nanos(nanos)))
    }

    /// The most memory that it ever held, in bytes.
    pub fn peak_memory(&self) -> Result<u64, Failure> {
        let status = self.about("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes
            .map(|count| count * 1024)
            .ok_or_else(|| format!("/proc/{}/status has no `VmHWM`", self.id).into())
    }

    fn about(&self, what: &str) -> Result<String, Failure> {
        let path = format!("/proc/{}/{what}", self.id);
        Ok(std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?)
    }

    /// Cause of a missing answer.
    fn died(&self, asked: &str) -> Failure {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + Duration::from_secs(1);
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break format!("ended ({status})"),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                _ => break "closed its output".to_owned(),
            }
        };
        if GAVE_UP.load(Ordering::Relaxed) {
            return format!(
                "{} did not answer request {} for {} s",
                self.name,
                self.next,
                PATIENCE.as_secs()
            )
            .into();
        }
        let said = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let said = if said.is_empty() { String::new() } else { format!("; it said: {}", shown(said.trim())) };
        format!("{} {status} before it answered {asked}{said}", self.name).into()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Whether an answer is a result in which this many assertions pass.
fn check(answer: &[u8], passes: usize, id: Option<u64>) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(answer);
    // Without reading it as JSON, which would take the time of the engine beside us.
    let same_id = id.is_none_or(|id| text.contains(&format!("\"id\":{id},")));
    if same_id && text.contains("\"result\":") && text.matches("\"status\":\"pass\"").count() == passes {
        return Ok(());
    }
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| format!("answered with what is no JSON ({error}): {}", shown(text.trim())))?;
    if value.get("error").is_some() {
        return Err(format!("answered with an error: {}", shown(text.trim())).into());
    }
    if id.is_some_and(|id| value.get("id").and_then(Value::as_u64) != Some(id)) {
        return Err(format!(
            "answered with another id than {}: {}",
            id.unwrap_or_default(),
            shown(text.trim())
        )
        .into());
    }
    let results = value.pointer("/result/results").and_then(Value::as_array);
    let passed = results.into_iter().flatten().filter(|result| result["status"] == "pass").count();
    if passed == passes {
        return Ok(());
    }
    Err(format!("found {passed} assertions that pass where there are {passes}: {}", shown(text.trim()))
        .into())
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}
