//! Ends of runs: nothing is left, however a program behaves, in every mode.

use crate::support::{Bench, PATIENCE, eventually, first_line};
use proctor_sandbox::{Feature, Features, Limit, Limits, Mode, Status};
use std::time::{Duration, Instant};

/// Ways of running: with a namespace, with a supervisor alone, and off.
fn ways() -> [(&'static str, Bench); 3] {
    [
        ("namespace", Bench::new()),
        ("supervised", Bench::with(Mode::Auto, Features::all().without(Feature::PidNamespace))),
        ("off", Bench::with(Mode::Off, Features::all())),
    ]
}

#[test]
fn daemons_end_with_the_run() {
    for (name, bench) in ways() {
        let script = "setsid sleep 300 & (setsid sh -c 'trap \"\" TERM HUP; sleep 300; sleep 300' &); \
                      (sleep 300 & exec sleep 300) & (( sleep 300 & ) & ); echo ready";
        let mut process = bench.sandbox.spawn(bench.script(script)).unwrap();
        assert_eq!(first_line(&mut process), "ready");
        let exit = process.wait(PATIENCE).unwrap().unwrap();
        assert_eq!(exit.status, Status::Exited(0));
        eventually(name, || bench.survivors().len() >= 4);
        let exit = process.terminate(Duration::from_millis(200)).unwrap();
        assert!(exit.left_behind >= 4, "{name}: {exit:?}");
        assert_eq!(bench.survivors(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_program_may_use_its_grace_period() {
    for (name, bench) in ways() {
        let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
        let mut process = bench.sandbox.spawn(bench.script(script)).unwrap();
        assert_eq!(first_line(&mut process), "ready");
        let begin = Instant::now();
        let exit = process.terminate(PATIENCE).unwrap();
        assert_eq!(exit.status, Status::Exited(7), "{name}");
        assert!(begin.elapsed() < PATIENCE, "{name}");
    }
}

#[test]
fn an_ignored_term_is_followed_by_a_kill() {
    for (name, bench) in ways() {
        let script = "trap '' TERM INT HUP; echo ready; while :; do sleep 300; done";
        let mut process = bench.sandbox.spawn(bench.script(script)).unwrap();
        assert_eq!(first_line(&mut process), "ready");
        let exit = process.terminate(Duration::from_millis(50)).unwrap();
        assert_eq!(exit.status, Status::Signaled(9), "{name}");
        assert_eq!(bench.survivors(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_stopped_program_ends_too() {
    for (name, bench) in ways() {
        let mut process = bench.sandbox.spawn(bench.script("echo ready; kill -STOP $$")).unwrap();
        assert_eq!(first_line(&mut process), "ready");
        let exit = process.terminate(Duration::from_millis(50)).unwrap();
        assert!(matches!(exit.status, Status::Signaled(_)), "{name}: {exit:?}");
        assert_eq!(bench.survivors(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_run_that_stops_its_supervisor_ends_too() {
    for (name, bench) in ways() {
        // Refused where the run has processes of its own: the supervisor is out of reach then.
        let script = "kill -STOP $PPID; echo ready; sleep 300";
        let mut process = bench.sandbox.spawn(bench.script(script)).unwrap();
        assert_eq!(first_line(&mut process), "ready");
        let exit = process.terminate(Duration::from_millis(50)).unwrap();
        assert!(matches!(exit.status, Status::Signaled(_)), "{name}: {exit:?}");
        assert_eq!(bench.survivors(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_stopped_supervisor_still_reports_and_keeps_limits() {
    for (name, bench) in ways() {
        // Often enough that some stops come before the supervisor has reported the start.
        for _ in 0..20 {
            let mut process = bench.sandbox.spawn(bench.script("kill -STOP $PPID; exit 7")).unwrap();
            let exit = process.wait(PATIENCE).unwrap().expect("the end is reported");
            assert_eq!(exit.status, Status::Exited(7), "{name}");
        }
        let limits = Limits { wall_time: Duration::from_millis(200), ..Limits::default() };
        let spec = bench.script("kill -STOP $PPID; sleep 300").limits(limits);
        let exit = bench.sandbox.spawn(spec).unwrap().wait(PATIENCE).unwrap().expect("the limit ends it");
        assert_eq!(exit.limit, Some(Limit::WallTime), "{name}: {exit:?}");
        assert_eq!(bench.survivors(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_dropped_handle_ends_the_run() {
    for (name, bench) in ways() {
        let script = "trap '' TERM; setsid sleep 300 & echo ready; sleep 300";
        let mut process = bench.sandbox.spawn(bench.script(script)).unwrap();
        assert_eq!(first_line(&mut process), "ready");
        assert!(!bench.survivors().is_empty());
        drop(process);
        assert_eq!(bench.survivors(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_process_that_keeps_forking_is_caught() {
    for (name, bench) in ways() {
        // Each process replaces itself by a new one; never more than a few at a time, and 5,000 at most.
        let script =
            "echo ready; i=0; while [ $i -lt 5000 ]; do i=$((i+1)); (trap '' TERM; setsid sleep 0.01) & done";
        let mut process = bench.sandbox.spawn(bench.script(script)).unwrap();
        assert_eq!(first_line(&mut process), "ready");
        process.terminate(Duration::from_millis(20)).unwrap();
        assert_eq!(bench.survivors(), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn runs_end_with_their_killed_caller() {
    let namespace = Feature::ALL.into_iter().position(|feature| feature == Feature::PidNamespace).unwrap();
    for way in ["auto:".to_owned(), format!("auto:{namespace}"), "off".to_owned()] {
        crate::claims::killed_caller(&way);
    }
}

#[test]
fn output_ends_with_the_run() {
    for (_, bench) in ways() {
        // The daemon holds the pipe; reading must still come to an end.
        let (exit, stdout, _) = {
            let mut process = bench.sandbox.spawn(bench.script("setsid sleep 300 & echo out")).unwrap();
            let (stdout, stderr) = crate::support::drain(&mut process);
            process.wait(PATIENCE).unwrap().unwrap();
            let exit = process.terminate(Duration::from_millis(500)).unwrap();
            (exit, stdout.join().unwrap(), stderr.join().unwrap())
        };
        assert_eq!((exit.status, stdout.as_str()), (Status::Exited(0), "out\n"));
    }
}
