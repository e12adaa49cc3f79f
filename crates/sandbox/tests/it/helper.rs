//! Roles that this binary plays when a test starts it again.

use crate::support::MARK;
use proctor_sandbox::{Feature, Features, Mode, Sandbox, Spec, Stream, Workspace};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;

/// Variable with the role and its arguments, separated by spaces.
pub(crate) const COMMAND: &str = "SANDBOX_TEST_COMMAND";

/// Entry point of the roles; an ordinary run of the tests finds nothing to do here.
#[test]
fn entry() {
    let Ok(command) = std::env::var(COMMAND) else { return };
    let words: Vec<&str> = command.split(' ').collect();
    let code = match *words.as_slice() {
        ["attempts", ref targets @ ..] => {
            crate::attack::Targets::from_words(targets).attack();
            0
        }
        ["memory", mebibytes] => {
            fill(mebibytes.parse().unwrap());
            0
        }
        ["connect", ref sockets @ ..] => {
            connect(sockets);
            0
        }
        ["connect-after-input", ref sockets @ ..] => {
            std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
            connect(sockets);
            0
        }
        ["caller", base, mode] => caller(Path::new(base), mode),
        ["leaks", base] => crate::leaks::count(Path::new(base)),
        _ => panic!("unknown role {command}"),
    };
    std::process::exit(code);
}

/// Connects and sends to Unix sockets, and says which of them took it.
fn connect(sockets: &[&str]) {
    for socket in sockets {
        let has_connected = UnixStream::connect(socket).is_ok();
        let has_sent = UnixDatagram::unbound().is_ok_and(|own| own.send_to(b"x", socket).is_ok());
        println!("\n{} {socket}", if has_connected || has_sent { "reached" } else { "missed" });
    }
}

/// Touches memory, at most two gigabytes whatever the caller says, and then waits to be killed, at most a minute.
fn fill(mebibytes: usize) {
    let mut blocks = Vec::new();
    for _ in 0..mebibytes.min(2048) {
        blocks.push(vec![1_u8; 1 << 20]);
    }
    println!("\nfilled {}", blocks.len());
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// Starts a run with daemons and says so; the test kills this process then. The way is `off`, or `auto:` with the number of the feature
/// that is missing.
fn caller(base: &Path, way: &str) -> i32 {
    let (mode, features) = match way.strip_prefix("auto:") {
        Some("") => (Mode::Auto, Features::all()),
        Some(number) => {
            let away = Feature::ALL[number.parse::<usize>().unwrap()];
            (Mode::Auto, Features::all().without(away))
        }
        None => (Mode::Off, Features::all()),
    };
    let sandbox = Sandbox::new(mode, features, base).unwrap();
    let workspace = Workspace::create(base).unwrap();
    let script = "setsid sleep 300 & (setsid sh -c 'trap \"\" TERM; sleep 300; sleep 300' &) ; echo started > ready; sleep 300";
    let spec = Spec::new("/bin/sh", workspace.workspace())
        .arguments(["-c", script])
        .environment("PATH", "/usr/bin:/bin")
        .environment(MARK, std::env::var(MARK).unwrap())
        .stdout(Stream::Null)
        .stderr(Stream::Null)
        .folders(&workspace);
    let process = sandbox.spawn(spec).unwrap();
    crate::support::eventually("the run never started", || workspace.workspace().join("ready").exists());
    println!("\nready {}", process.supervisor_id());
    std::thread::sleep(std::time::Duration::from_secs(60));
    1
}
