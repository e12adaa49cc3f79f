//! Claims that take a run to test, with each feature taken away: what is reported as held is attacked for real.

use crate::support::{Bench, GRACE, MARK, PATIENCE, drain, eventually, marked, start_time};
use proctor_sandbox::{Feature, Features, Limit, Limits, Mode, Protection, Standing};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Sets of features, with the one that is missing.
fn sets() -> impl Iterator<Item = (String, Features)> {
    let single = Feature::ALL.into_iter().map(|away| (away.to_string(), Features::all().without(away)));
    std::iter::once(("nothing".to_owned(), Features::all())).chain(single)
}

fn held(what: &str, features: Features, protection: Protection) -> Option<Bench> {
    let bench = Bench::with(Mode::Auto, features);
    match bench.sandbox.protections().get(protection) {
        Standing::Held { .. } => Some(bench),
        standing => {
            println!("without {what}: {protection}: {standing}");
            None
        }
    }
}

#[test]
fn a_claimed_process_limit_stops_many_processes() {
    /// Processes beyond the limit that the kernel's own bound leaves, so that the supervisor sees the limit crossed.
    const SLACK: usize = 64;
    for (what, features) in sets() {
        let Some(bench) = held(&what, features, Protection::Processes) else { continue };
        let limits = Limits { processes: 20, wall_time: PATIENCE * 2, ..Limits::default() };
        let script = "i=0; while [ $i -lt 1500 ]; do sleep 30 & i=$((i+1)); done; echo all; wait";
        let mut process = bench.sandbox.spawn(bench.script(script).limits(limits)).unwrap();
        let (stdout, stderr) = drain(&mut process);
        let exit = process.wait(PATIENCE * 2).unwrap().unwrap();
        let most = bench.survivors().len();
        // A supervisor alone counts from time to time.
        let is_counted = matches!(
            bench.sandbox.protections().get(Protection::Processes),
            Standing::Held { by } if by.iter().any(|holder| *holder != Feature::Supervisor)
        );
        assert!(!is_counted || most <= 20 + SLACK, "without {what}: {most} processes");
        process.terminate(GRACE).unwrap();
        let (stdout, stderr) = (stdout.join().unwrap(), stderr.join().unwrap());
        assert!(!stdout.contains("all"), "without {what}: {exit:?}");
        let is_refused = stderr.contains("fork");
        assert!(exit.limit == Some(Limit::Processes) || is_refused, "without {what}: {exit:?} {stderr}");
        assert_eq!(bench.survivors(), Vec::<String>::new(), "without {what}");
    }
}

#[test]
fn a_claimed_memory_limit_stops_many_processes() {
    for (what, features) in sets() {
        let Some(bench) = held(&what, features, Protection::Memory) else { continue };
        let limits = Limits { memory: 100 << 20, wall_time: PATIENCE * 2, ..Limits::default() };
        let program = crate::support::own_program().display();
        let script = format!(
            "for i in 1 2 3; do '{program}' helper::entry --exact --nocapture --test-threads=1 & done; wait"
        );
        let spec = bench.script(&script).environment(crate::helper::COMMAND, "memory 60").limits(limits);
        let mut process = bench.sandbox.spawn(spec).unwrap();
        let outputs = drain(&mut process);
        let exit = process.wait(PATIENCE * 2).unwrap().unwrap();
        assert_eq!(exit.limit, Some(Limit::Memory), "without {what}: {exit:?}");
        process.terminate(GRACE).unwrap();
        drop((outputs.0.join(), outputs.1.join()));
        assert_eq!(bench.survivors(), Vec::<String>::new(), "without {what}");
    }
}

#[test]
fn a_claimed_end_comes_whatever_is_sent_to_the_supervisor() {
    for (what, features) in sets() {
        let Some(bench) = held(&what, features, Protection::EndWithRun) else { continue };
        let script = "setsid sleep 300 & (setsid sh -c 'trap \"\" TERM HUP; sleep 300; sleep 300' &); \
                      for signal in KILL STOP TERM INT ABRT SEGV; do kill -$signal $PPID 2> refused; done";
        let mut process = bench.sandbox.spawn(bench.script(script)).unwrap();
        let outputs = drain(&mut process);
        assert!(process.wait(PATIENCE).unwrap().is_some(), "without {what}");
        let exit = process.terminate(Duration::from_millis(100)).unwrap();
        assert_ne!(exit.status, proctor_sandbox::Status::Lost, "without {what}: {exit:?}");
        drop((outputs.0.join(), outputs.1.join()));
        assert_eq!(bench.survivors(), Vec::<String>::new(), "without {what}");
    }
}

#[test]
fn a_claimed_end_comes_when_the_caller_is_killed() {
    for (at, (what, features)) in sets().enumerate() {
        if held(&what, features, Protection::EndWithCaller).is_none() {
            continue;
        }
        // The first set is complete; the others lack one feature each, in order.
        let away = if at == 0 { String::new() } else { (at - 1).to_string() };
        killed_caller(&format!("auto:{away}"));
    }
}

/// Starts a caller with a run of daemons, kills it, and waits until nothing is left.
pub(crate) fn killed_caller(way: &str) {
    let base = tempfile::tempdir().unwrap();
    let mark = format!("killed-{}-{way}", std::process::id());
    let mut caller = Command::new(crate::support::own_program())
        .args(["helper::entry", "--exact", "--nocapture", "--test-threads=1"])
        .env(crate::helper::COMMAND, format!("caller {} {way}", base.path().display()))
        .env(MARK, &mark)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(caller.stdout.take().unwrap()).lines().map_while(Result::ok);
    let supervisor = lines.find_map(|line| line.strip_prefix("ready ").map(str::to_owned)).unwrap();
    // The caller itself, and at least three of the run; the supervisor shows its environment to nobody but user 0.
    eventually(&format!("{way}: the run is not complete"), || marked(&mark).len() >= 4);
    let began = start_time(&supervisor);
    assert!(began.is_some(), "{way}: the supervisor is gone");
    caller.kill().unwrap();
    caller.wait().unwrap();
    eventually(&format!("{way}: the supervisor is left"), || start_time(&supervisor) != began);
    // It ended the run before itself; what it only sent a signal is ending.
    eventually(&format!("{way}: processes are left"), || marked(&mark).is_empty());
    // Its folders are stale now.
    assert_eq!(proctor_sandbox::sweep(base.path()).unwrap(), 1, "{way}");
    assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0, "{way}");
}
