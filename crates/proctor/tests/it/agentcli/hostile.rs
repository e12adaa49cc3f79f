//! Hostile input: a finding or an error in time and within memory, nothing executed, the next line served.

mod files;
mod lines;
mod regexes;
mod services;
mod strings;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use proctor_core::json::Json;

use super::place::{Place, Server, at};
use crate::ahp_serve::server::peak;

/// Time of one answer. A released build has a second; this is for one without optimisation on a busy machine.
const TIME: Duration = Duration::from_secs(5);
/// Memory of the program, without the pages of its file.
const MEMORY: u64 = 100 << 20;

/// A server that is attacked.
struct Attacked {
    place: Place,
    server: Server,
}

impl Attacked {
    fn new(place: Place) -> Attacked {
        let server = place.serve();
        Attacked { place, server }
    }

    /// Calls a method: the answer is in time, and the next line is served.
    fn call(&mut self, what: &str, method: &str, params: &str) -> Json {
        let start = Instant::now();
        let reply = self.server.call(&format!("agentcli.{method}"), params);
        assert!(start.elapsed() < TIME, "{what}: {method} took {:?}", start.elapsed());
        assert!(reply.get("result").is_some() != reply.get("error").is_some(), "{what}: {reply}");
        let next = self.server.call("agentcli.ping", "{}");
        assert_eq!(at(&next, "/result/pong"), &Json::Bool(true), "{what}");
        reply
    }

    /// Gives a manifest to every method that reads one.
    fn manifest(&mut self, what: &str, manifest: &str) {
        for (method, more) in [
            ("validate", ""),
            ("compile", ""),
            ("compile", r#","target":"openclaw-scheduler","explain":true"#),
            ("convert", ""),
            ("identity.resolve", r#","taskId":"a""#),
            ("authorization.evaluate", r#","taskId":"a""#),
            ("authorizationProof.verify", r#","taskId":"a""#),
        ] {
            self.call(what, method, &format!(r#"{{"manifest":{manifest}{more}}}"#));
        }
    }

    /// The program had enough memory, ends well, and executed nothing.
    fn end(self) -> Place {
        let used = peak(self.server.child.id()).unwrap();
        assert!(used < MEMORY, "{} MiB", used >> 20);
        self.server.end();
        assert_unharmed(&self.place);
        self.place
    }
}

/// Nothing that a manifest named was executed: every attack would leave this file somewhere.
fn assert_unharmed(place: &Place) {
    let mut waiting = vec![place.root().parent().unwrap().to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            assert_ne!(entry.file_name().unwrap().to_str(), Some("PWNED"), "{}", entry.display());
            if entry.symlink_metadata().unwrap().is_dir() {
                waiting.push(entry);
            }
        }
    }
}

/// Runs the program with these arguments, in time and within memory: its output, and its exit code.
fn command(place: &Place, what: &str, arguments: &[&str]) -> (String, i32) {
    let mut command = place.command(&place.path("agentcli"), arguments);
    let start = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let (out, error) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reading = [read(out), read(error)];
    let mut used = 0;
    // The highest value of a process is gone with it, so that the last look before its end counts.
    let status = loop {
        used = used.max(peak(pid).unwrap_or_default());
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(start.elapsed() < TIME, "{what}: {arguments:?} takes too long");
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(used < MEMORY, "{what}: {} MiB", used >> 20);
    let [out, error] = reading.map(|thread| thread.join().unwrap());
    (out + &error, status.code().unwrap_or(-1))
}

fn read(mut stream: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// File in the place with this content.
fn file(place: &Place, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    std::fs::write(place.path(name), content).unwrap();
    place.path(name)
}
