//! The live line of `proctor test` on stderr, drawn by a thread of its own, so that a stopped terminal never blocks a run.

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use proctor_report::LiveLine;

/// Time between frames.
const INTERVAL: Duration = Duration::from_millis(100);

/// The live line, while there is one. All lines for stderr then go above it.
static LIVE: Mutex<Option<LiveLine>> = Mutex::new(None);

/// Guard of the live line: dropping it removes the line.
pub struct Live(Option<(SyncSender<()>, JoinHandle<()>)>);

impl Live {
    /// Shows a live line, if stderr is a terminal that can erase text.
    pub fn start(total: usize) -> Live {
        if !std::io::stderr().is_terminal() || std::env::var_os("TERM").is_none_or(|term| term == "dumb") {
            return Live(None);
        }
        let (stop, stopped) = sync_channel(1);
        let started = Instant::now();
        let draw = move || {
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                // Written after the lock is free: runs wait for it, and a terminal may be slow.
                let frame = lock().as_mut().map(|live| live.frame(columns(), started.elapsed()));
                write(&frame.unwrap_or_default());
            }
        };
        let thread = std::thread::Builder::new().name("live line".to_owned()).spawn(draw);
        let Ok(thread) = thread else { return Live(None) };
        *lock() = Some(LiveLine::new(total));
        Live(Some((stop, thread)))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.0.take() else { return };
        drop(stop);
        let _ = thread.join();
        let live = lock().take();
        write(&live.map(LiveLine::end).unwrap_or_default());
    }
}

/// Changes the live line; false if there is none.
pub fn with(change: impl FnOnce(&mut LiveLine)) -> bool {
    lock().as_mut().map(change).is_some()
}

/// Prints a line above the live line, without colours if stderr shows none; false if there is no live line.
pub fn print_above(line: &str) -> bool {
    with(|live| match anstream::AutoStream::choice(&std::io::stderr()) {
        anstream::ColorChoice::Never => live.print_above(&anstream::adapter::strip_str(line).to_string()),
        _ => live.print_above(line),
    })
}

fn lock() -> MutexGuard<'static, Option<LiveLine>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Past `anstream`, which takes away erasing together with colours.
fn write(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Width of the terminal; 80 if it does not say.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(80)
}
