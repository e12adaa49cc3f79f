//! Runs a line in bash and says what ran.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Number of canaries, so that a line can say which of them ran.
pub(super) const CANARIES: usize = 8;

/// The program writes its name into the log of its folder: the line cannot choose another place.
const CANARY: &str = "#!/bin/sh\nprintf '%s\\n' \"${0##*/}\" >> \"${0%/*}/log\"\n";

/// Time that a line may take.
const TIME: Duration = Duration::from_secs(4);

/// What a line did.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The canaries that ran.
    pub(super) ran: Vec<String>,
    /// The files in the folder afterwards.
    pub(super) written: Vec<String>,
    /// Whether it was stopped because it took too long.
    pub(super) stopped: bool,
}

type Deadlines = Arc<(Mutex<(BTreeMap<(Instant, i32), Arc<AtomicBool>>, bool)>, Condvar)>;

/// Folders for lines, and a thread that stops those that take too long.
pub(super) struct Runner {
    folder: tempfile::TempDir,
    deadlines: Deadlines,
    watchdog: Option<JoinHandle<()>>,
}

impl Runner {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("canary");
        std::fs::write(&program, CANARY).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let deadlines = Deadlines::default();
        let watched = Arc::clone(&deadlines);
        let watchdog = std::thread::spawn(move || watch(&watched));
        Self { folder, deadlines, watchdog: Some(watchdog) }
    }

    /// Runs a line in an empty folder, with nothing but canaries on PATH.
    pub(super) fn run(&self, number: u64, line: &str) -> Observed {
        let folder = self.folder.path().join(number.to_string());
        let (programs, empty) = (folder.join("bin"), folder.join("empty"));
        std::fs::create_dir_all(&programs).unwrap();
        std::fs::create_dir(&empty).unwrap();
        for canary in 0..CANARIES {
            std::fs::hard_link(self.folder.path().join("canary"), programs.join(format!("canary{canary}")))
                .unwrap();
        }
        let stopped = self.execute(line, &programs, &empty);
        let log = std::fs::read_to_string(programs.join("log")).unwrap_or_default();
        let mut ran: Vec<String> = log.lines().map(str::to_owned).collect();
        ran.sort();
        ran.dedup();
        let mut written: Vec<String> = std::fs::read_dir(&empty)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        written.sort();
        // A process that was left behind may still be there.
        let _ = std::fs::remove_dir_all(&folder);
        Observed { ran, written, stopped }
    }

    fn execute(&self, line: &str, programs: &PathBuf, empty: &PathBuf) -> bool {
        let (mut output, input) = std::io::pipe().unwrap();
        // The limits are a line of their own: bash reads the next one after it ran.
        let code = format!("ulimit -t 2 -f 1024 -v 500000 -c 0\n{line}");
        let mut child = Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c", &code])
            .env_clear()
            .env("PATH", programs)
            .env("HOME", empty)
            .current_dir(empty)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(input.try_clone().unwrap())
            .stderr(input)
            .spawn()
            .expect("the test needs bash");
        let group = Pid::from_child(&child);
        let stopped = Arc::new(AtomicBool::new(false));
        let key = (Instant::now() + TIME, group.as_raw_nonzero().get());
        let (state, changed) = &*self.deadlines;
        state.lock().unwrap_or_else(PoisonError::into_inner).0.insert(key, Arc::clone(&stopped));
        changed.notify_one();
        // Whatever the line left in the background holds the pipe.
        let mut buffer = [0; 4096];
        while output.read(&mut buffer).is_ok_and(|read| read > 0) {}
        // The group's number stays taken until the child is reaped.
        let _ = waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        state.lock().unwrap_or_else(PoisonError::into_inner).0.remove(&key);
        let _ = kill_process_group(group, Signal::KILL);
        child.wait().unwrap();
        stopped.load(Ordering::Relaxed)
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.deadlines.0.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.deadlines.1.notify_one();
        let _ = self.watchdog.take().map(JoinHandle::join);
    }
}

fn watch(deadlines: &Deadlines) {
    let (state, changed) = &**deadlines;
    let mut guard = state.lock().unwrap_or_else(PoisonError::into_inner);
    while !guard.1 {
        let now = Instant::now();
        let wait = match guard.0.first_key_value() {
            Some(((deadline, group), stopped)) if *deadline <= now => {
                stopped.store(true, Ordering::Relaxed);
                let _ = Pid::from_raw(*group).map(|group| kill_process_group(group, Signal::KILL));
                guard.0.pop_first();
                continue;
            }
            Some(((deadline, _), _)) => deadline.duration_since(now),
            None => TIME,
        };
        guard = changed.wait_timeout(guard, wait).unwrap_or_else(PoisonError::into_inner).0;
    }
}
