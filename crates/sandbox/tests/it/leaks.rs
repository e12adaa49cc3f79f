//! Descriptors, processes, mounts and folders before and after many runs, counted in a process of its own.

use proctor_sandbox::{Features, Mode, Network, Sandbox, Spec, Workspace};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What a process holds.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    descriptors: usize,
    mounts: usize,
    children: usize,
    folders: usize,
    mappings: usize,
}

fn holdings(base: &Path) -> Holdings {
    let children: usize = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .flatten()
        .map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default())
        .map(|text| text.split_whitespace().count())
        .sum();
    Holdings {
        descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        mounts: std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count(),
        children,
        folders: std::fs::read_dir(base).unwrap().count(),
        mappings: std::fs::read_to_string("/proc/self/maps").unwrap().lines().count() / 16,
    }
}

fn one_run(sandbox: &Sandbox, base: &Path, script: &str) {
    let workspace = Workspace::create(base).unwrap();
    let loopback = sandbox.loopback().unwrap();
    let spec = Spec::new("/bin/sh", workspace.workspace())
        .arguments(["-c", script])
        .environment("PATH", "/usr/bin:/bin")
        .folders(&workspace)
        .hidden([base])
        .network(Network::Only(loopback));
    let mut process = sandbox.spawn(spec).unwrap();
    process.wait(Duration::from_millis(20)).unwrap();
    process.terminate(Duration::from_millis(5)).unwrap();
    drop(workspace.snapshot().unwrap());
}

/// Role of the counting process: zero if nothing is left.
pub(crate) fn count(base: &Path) -> i32 {
    for (mode, features) in
        [(Mode::Auto, Features::all()), (Mode::Auto, Features::none()), (Mode::Off, Features::all())]
    {
        let sandbox = Sandbox::new(mode, features, base).unwrap();
        let scripts = [
            "true",
            "setsid sleep 300 &",
            "trap '' TERM; sleep 300",
            "kill -9 $$",
            "exec 3>file; sleep 1 & exit 3",
        ];
        // The first runs fill the pool of network namespaces and lazily made parts of the runtime.
        one_run(&sandbox, base, "true");
        let before = holdings(base);
        for script in scripts.iter().cycle().take(25) {
            one_run(&sandbox, base, script);
        }
        assert!(sandbox.spawn(Spec::new("absent", base)).is_err());
        assert!(sandbox.spawn(Spec::new("/bin/sh", base.join("absent"))).is_err());
        let after = holdings(base);
        assert_eq!(after, before, "{mode:?}");
    }
    0
}

#[test]
fn nothing_is_left_of_many_runs() {
    let base = tempfile::tempdir().unwrap();
    let output = Command::new(crate::support::own_program())
        .args(["helper::entry", "--exact", "--nocapture", "--test-threads=1"])
        .env(crate::helper::COMMAND, format!("leaks {}", base.path().display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0);
}
