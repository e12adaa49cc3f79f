//! Cost of a spawn: bare, supervised only, and sandboxed; each prints the median of its rounds.
//!
//! `cargo bench -p proctor-sandbox` takes 300 rounds; under `cargo test` a few show that it runs. The kinds alternate within one loop,
//! so that a change of the machine's speed meets all of them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "measured on demand, by people")]

use proctor_sandbox::{Features, Mode, Network, Sandbox, Spec, Status, Stream, Workspace};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Memory of the calling process while it spawns, as a test bench of some size has it: forks copy its page tables.
const BALLAST: usize = 32 << 20;

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if is_bench { 300 } else { 5 };
    let ballast = vec![1_u8; BALLAST];
    let base = tempfile::tempdir().unwrap();
    let off = Sandbox::new(Mode::Off, Features::all(), base.path()).unwrap();
    let on = Sandbox::new(Mode::Auto, Features::all(), base.path()).unwrap();
    let workspace = Workspace::create(base.path()).unwrap();

    let mut kinds: [(&str, Vec<Duration>); 5] =
        ["bare", "off", "on", "on, one listener", "listener alone"].map(|name| (name, Vec::new()));
    for _ in 0..rounds {
        let durations = [
            time(|| bare(&workspace)),
            time(|| sandboxed(&off, &workspace, Network::None)),
            time(|| sandboxed(&on, &workspace, Network::None)),
            time(|| sandboxed(&on, &workspace, Network::Only(on.loopback().unwrap()))),
            time(|| drop(on.loopback().unwrap())),
        ];
        for ((_, samples), duration) in kinds.iter_mut().zip(durations) {
            samples.push(duration);
        }
    }
    println!("spawn, run and end of /bin/true, {rounds} rounds, {} MiB in use:", ballast.len() >> 20);
    for (name, samples) in &mut kinds {
        samples.sort_unstable();
        let at = |part: usize| samples.get(samples.len() * part / 100).copied().unwrap_or_default();
        println!("{name:>18}: median {:>9.1?}  p90 {:>9.1?}", at(50), at(90));
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn bare(workspace: &Workspace) {
    let mut child = Command::new("/bin/true")
        .current_dir(workspace.workspace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(child.wait().unwrap().success());
}

fn sandboxed(sandbox: &Sandbox, workspace: &Workspace, network: Network) {
    let spec = Spec::new("/bin/true", workspace.workspace())
        .stdin(Stream::Null)
        .stdout(Stream::Null)
        .stderr(Stream::Null)
        .folders(workspace)
        .network(network);
    let mut process = sandbox.spawn(spec).unwrap();
    let exit = process.wait(Duration::from_secs(10)).unwrap();
    assert!(exit.is_some_and(|exit| exit.status == Status::Exited(0)));
    process.terminate(Duration::ZERO).unwrap();
}
