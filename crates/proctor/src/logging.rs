//! The sink of the `log` facade: lines on stderr, written by a thread of their own, so that a slow or missing reader never blocks.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::output::live;

static SENDER: OnceLock<SyncSender<Message>> = OnceLock::new();

enum Message {
    Line(String),
    Flush(SyncSender<()>),
}

/// The text in front of each line: the name of the program.
static PREFIX: OnceLock<&'static str> = OnceLock::new();

/// Installs the sink. `prefix` stands in front of each line of the facade.
pub fn install(prefix: &'static str) {
    let _ = PREFIX.set(prefix);
    // Fails only if a sink is installed already, which then does the same.
    if log::set_logger(&Sink).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
}

struct Sink;

impl log::Log for Sink {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // Dependencies log too; only our own crates speak to people.
        metadata.level() <= log::Level::Info && metadata.target().starts_with("proctor")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            raw(&format!("{}{}", PREFIX.get().copied().unwrap_or("proctor: "), record.args()));
        }
    }

    fn flush(&self) {
        flush();
    }
}

/// Writes one line as it is; drops it if the last thousand have not been read.
pub fn raw(line: &str) {
    let sender = SENDER.get_or_init(|| {
        let (sender, receiver) = sync_channel(1024);
        // If no thread can be had, lines are dropped, which is what saying to nobody means.
        let _ = std::thread::Builder::new().name("log".to_owned()).spawn(move || write_lines(&receiver));
        sender
    });
    let _ = sender.try_send(Message::Line(format!("{line}\n")));
}

/// Waits until queued lines are written, at most 200 ms.
pub fn flush() {
    let Some(sender) = SENDER.get() else { return };
    let (done, wait) = sync_channel(1);
    if sender.try_send(Message::Flush(done)).is_ok() {
        let _ = wait.recv_timeout(Duration::from_millis(200));
    }
}

fn write_lines(receiver: &Receiver<Message>) {
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Line(line) => {
                if !live::print_above(line.trim_end()) {
                    let _ = std::io::stderr().write_all(line.as_bytes());
                }
            }
            Message::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}
