//! Talk on stderr that never blocks: a reader may be slow, or not be there at all.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

static SENDER: OnceLock<SyncSender<Message>> = OnceLock::new();

enum Message {
    Line(String),
    Flush(SyncSender<()>),
}

/// Says one line; drops it if nobody has read the last thousand.
pub fn say(line: &str) {
    raw(&format!("proctor: {line}"));
}

/// Says one line as it is.
pub fn raw(line: &str) {
    let sender = SENDER.get_or_init(|| {
        let (sender, receiver) = sync_channel(1024);
        // If no thread can be had, lines are dropped, which is what saying to nobody means.
        let _ = std::thread::Builder::new().name("log".to_owned()).spawn(move || write_lines(&receiver));
        sender
    });
    let _ = sender.try_send(Message::Line(format!("{line}\n")));
}

/// Waits a moment for what was said to be written.
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
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            Message::Flush(done) => {
                let _ = done.send(());
            }
        }
    }
}
