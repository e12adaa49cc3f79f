//! Processes that tests start and end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Time limit of a process to start, and to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server process. It is ended when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    _stdout: BufReader<ChildStdout>,
    /// Announcement of the process: one line of JSON.
    pub said: Value,
}

impl Server {
    /// Starts it and waits for its line.
    pub fn start(command: &mut Command) -> Server {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        let read = stdout.read_line(&mut line);
        let said = serde_json::from_str(&line);
        match (read, said) {
            (Ok(1..), Ok(said)) => Server { child, _stdout: stdout, said },
            (read, said) => {
                let _ = child.kill();
                let status = child.wait();
                panic!("{command:?} did not say where it listens: {read:?}, {line:?}, {said:?}, {status:?}");
            }
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A member of what it said, as text.
    pub fn text(&self, member: &str) -> &str {
        self.said[member].as_str().unwrap_or_else(|| panic!("no `{member}` in {}", self.said))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Asks a process to end, and ends it by force if it does not.
pub fn end(child: &mut Child) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process(pid, Signal::TERM);
    }
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            _ => return,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The time that a process has used the processors for, all its threads together.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    used(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The time that the threads of this name have used the processors for.
pub fn thread_time(pid: u32, name: &str) -> Duration {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Duration::ZERO };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok())
        .filter(|stat| stat.contains(&format!("({name})")))
        .filter_map(|stat| used(&stat))
        .sum()
}

fn used(stat: &str) -> Option<Duration> {
    // The name of the program is in parentheses and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// The TCP port that this very process listens on, if there is exactly one. For servers that take an address and do not say what
/// the kernel made of port 0.
pub fn own_listening_port() -> Option<u16> {
    let inodes: Vec<String> = fs::read_dir("/proc/self/fd")
        .ok()?
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter_map(|link| socket_inode(&link))
        .collect();
    let table = fs::read_to_string("/proc/self/net/tcp").ok()?;
    let mut ports = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = *fields.get(3)? == "0A";
        let ours = inodes.iter().any(|inode| Some(&inode.as_str()) == fields.get(9));
        let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        (listens && ours).then_some(port)
    });
    ports.next().filter(|_| ports.next().is_none())
}

fn socket_inode(link: &Path) -> Option<String> {
    Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
}
