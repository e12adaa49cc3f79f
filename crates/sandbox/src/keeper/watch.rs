//! Loop of the supervisor: reaps, samples, and ends the run.

use super::processes::{self, Table};
use super::{CROSSED, END, EXITED, LEFT};
use crate::limits::Limit;
use crate::plan::Watch;
use crate::sys::process::{self, Children};
use crate::sys::{Errno, files, sockets};
use std::os::fd::RawFd;

/// Time between samples. A memory bomb fills about 50 MB in that time.
const SAMPLE_MILLISECONDS: u64 = 25;
/// Part of its time that the supervisor may spend on samples: one in this many.
const SAMPLE_SHARE: u64 = 20;
/// Rounds of stopping processes before they are killed anyway. One is enough unless the run forks all the time.
const STOP_ROUNDS: u32 = 200;
/// Time after which killing is given up; only a process stuck in the kernel survives that long.
const KILL_MILLISECONDS: u64 = 10_000;

struct Supervisor {
    watch: Watch,
    program: i32,
    table: Option<Table>,
    /// Time of the KILL that follows a TERM.
    kill_at: Option<u64>,
}

/// Watches a run until none of its processes is left. Returns the exit status of the supervisor.
pub(super) fn until_the_end(watch: Watch, program: i32) -> i32 {
    let Ok(events) = process::child_events() else {
        return 1;
    };
    let mut supervisor = Supervisor { watch, program, table: Table::new().ok(), kill_at: None };
    supervisor.run(events)
}

impl Supervisor {
    fn run(&mut self, events: RawFd) -> i32 {
        let mut wall_at = Some(process::milliseconds().saturating_add(self.watch.wall_milliseconds));
        let mut sample_at =
            self.watch.samples.then(|| process::milliseconds().saturating_add(SAMPLE_MILLISECONDS));
        loop {
            if !self.reap() {
                return 0;
            }
            let now = process::milliseconds();
            let next = [wall_at, sample_at, self.kill_at].into_iter().flatten().min();
            let wait = next.map_or(-1, |at| i32::try_from(at.saturating_sub(now)).unwrap_or(i32::MAX));
            let Ok((has_message, has_event)) = sockets::wait_readable(self.watch.channel, events, wait)
            else {
                return self.end_everything();
            };
            if has_event {
                let mut record = [0_u8; 128];
                while files::read(events, &mut record).is_ok() {}
            }
            if has_message {
                match sockets::receive(self.watch.channel, false) {
                    Ok(Some([END, grace, _])) => {
                        let left = self.sums_now().processes;
                        self.tell([LEFT, i32::try_from(left).unwrap_or(i32::MAX), 0]);
                        self.begin_end(u64::try_from(grace).unwrap_or(0));
                    }
                    Ok(Some(_)) | Err(Errno(libc::EAGAIN)) => {}
                    // The caller has gone, or does not want the run any more.
                    Ok(None) | Err(_) => return self.end_everything(),
                }
            }
            let now = process::milliseconds();
            if wall_at.is_some_and(|at| at <= now) {
                wall_at = None;
                self.tell([CROSSED, Limit::WallTime as i32, 0]);
                self.begin_end(self.watch.grace_milliseconds);
            }
            if self.kill_at.is_some_and(|at| at <= now) {
                // Again until nothing is left: without a namespace a fork may slip through.
                self.kill_at = Some(now.saturating_add(SAMPLE_MILLISECONDS));
                self.kill_all();
            }
            if sample_at.is_some_and(|at| at <= now) {
                sample_at = self.sample();
            }
        }
    }

    /// Reaps ended processes: whether any is left.
    fn reap(&mut self) -> bool {
        loop {
            match process::reap(Children::Any, false) {
                Ok(Some(ended)) if ended.pid == self.program => {
                    // A program that could not fork ends by itself, maybe before the next sample.
                    let is_full = ended.status != 0
                        && self.watch.samples
                        && self.kill_at.is_none()
                        && self.sums_now().tasks >= self.watch.processes;
                    if is_full {
                        self.tell([CROSSED, Limit::Processes as i32, 0]);
                    }
                    self.tell([EXITED, ended.code, ended.status]);
                }
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn tell(&self, words: sockets::Words) {
        // A caller that has gone is noticed by the next wait.
        let _ = sockets::send(self.watch.channel, words);
    }

    fn sums_now(&mut self) -> processes::Sums {
        let Some(table) = &mut self.table else { return processes::Sums::default() };
        if table.walk().is_ok() { table.sums() } else { processes::Sums::default() }
    }

    /// Compares the run with its limits. Returns the time of the next sample, if the run goes on.
    fn sample(&mut self) -> Option<u64> {
        let begin = process::microseconds();
        let sums = self.sums_now();
        let Watch { memory, processes, page, .. } = self.watch;
        let crossed = if sums.tasks > processes {
            Some(Limit::Processes)
        } else if sums.resident_pages.saturating_mul(page) > memory
            // The cheap sum counts shared pages several times, and pages of files: look closer only now.
            && self.table.as_ref().is_some_and(|table| table.proportional_memory(page) > memory)
        {
            Some(Limit::Memory)
        } else {
            None
        };
        if let Some(limit) = crossed {
            self.tell([CROSSED, limit as i32, 0]);
            self.kill_at = Some(0);
            return None;
        }
        let cost = process::microseconds().saturating_sub(begin);
        let interval = SAMPLE_MILLISECONDS.max(cost.saturating_mul(SAMPLE_SHARE) / 1000);
        Some(process::milliseconds().saturating_add(interval))
    }

    /// Sends TERM to everything, and sets the time of the KILL.
    fn begin_end(&mut self, grace: u64) {
        self.signal_all(libc::SIGTERM);
        self.kill_at = Some(process::milliseconds().saturating_add(grace));
    }

    fn signal_all(&mut self, signal: i32) {
        if self.watch.is_first {
            let _ = process::send_signal(-1, signal);
        } else if let Some(table) = &mut self.table
            && table.walk().is_ok()
        {
            for entry in table.run().filter(|entry| !entry.is_zombie()) {
                processes::signal(entry, signal);
            }
        }
    }

    fn kill_all(&mut self) {
        if self.watch.is_first {
            // One call under the kernel's lock: no fork escapes it.
            let _ = process::send_signal(-1, libc::SIGKILL);
            return;
        }
        // Stop first, so that nothing forks while the table is read.
        for _ in 0..STOP_ROUNDS {
            let Some(table) = &mut self.table else { return };
            if table.walk().is_err() {
                return;
            }
            let mut is_quiet = true;
            for entry in table.run().filter(|entry| !entry.is_zombie() && !entry.is_stopped()) {
                processes::signal(entry, libc::SIGSTOP);
                is_quiet = false;
            }
            if is_quiet {
                break;
            }
        }
        self.signal_all(libc::SIGKILL);
    }

    /// Kills everything and waits for its end.
    fn end_everything(&mut self) -> i32 {
        if self.watch.is_first {
            // The namespace ends with its first process, and the kernel waits for all others before this one counts as ended.
            return 0;
        }
        let give_up = process::milliseconds().saturating_add(KILL_MILLISECONDS);
        while self.reap() && process::milliseconds() < give_up {
            self.kill_all();
            let _ = sockets::wait_readable(-1, -1, 1);
        }
        0
    }
}
