//! Differential fuzzing: generated lines are run by bash, and whatever ran or was written there must have been reported.
//!
//! Only canaries are on PATH: programs that write their own name into a log beside them, wherever they are started from. Each line has a
//! folder of its own, and limits on time, memory and the size of files. `PROCTOR_FULL=1` runs 100,000 lines instead of 5,000;
//! `PROCTOR_SEED` repeats a run, `PROCTOR_LINE` runs one line of it and prints what was found.

mod generate;
mod runner;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use proctor_facts::shell::{ShellFacts, parse};

use runner::{Observed, Runner};

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What bash did and the parser neither reported nor noted.
fn missed(facts: &ShellFacts, observed: &Observed) -> Vec<String> {
    if !facts.unknown.is_empty() {
        return Vec::new();
    }
    let is_named = |name: &String| {
        facts.commands.iter().any(|command| {
            command.words.first().is_some_and(|word| word.rsplit('/').next() == Some(name.as_str()))
        })
    };
    let ran = observed.ran.iter().filter(|name| !is_named(name)).map(|name| format!("ran {name}"));
    let written = observed.written.iter().filter(|file| !facts.writes.contains(file));
    ran.chain(written.map(|file| format!("wrote {file}"))).collect()
}

#[test]
fn whatever_bash_runs_or_writes_is_reported_or_noted() {
    let is_full = std::env::var("PROCTOR_FULL").is_ok_and(|value| value == "1");
    let seed = setting("PROCTOR_SEED").unwrap_or(20_261_118);
    let lines = match setting("PROCTOR_LINE") {
        Some(line) => line..line.saturating_add(1),
        None => 0..if is_full { 100_000 } else { 5_000 },
    };
    let is_single = lines.end - lines.start == 1;
    println!("seed {seed} (PROCTOR_SEED), {} lines", lines.end - lines.start);
    let started = Instant::now();
    let runner = Runner::new();
    let next = Mutex::new(lines.clone());
    let misses: Mutex<Vec<String>> = Mutex::default();
    let (ran, noted, slow) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let (acted, acted_noted) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let count = |counter: &AtomicUsize, holds: bool| {
        counter.fetch_add(usize::from(holds), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(4, |cores| 2 * cores.get()).min(8) {
            scope.spawn(|| {
                loop {
                    let Some(number) = next.lock().unwrap_or_else(PoisonError::into_inner).next() else {
                        return;
                    };
                    let line = generate::line(seed, number);
                    let facts = parse(&line);
                    let observed = runner.run(number, &line);
                    if is_single {
                        println!("{line}\n{facts:#?}\n{observed:#?}");
                    }
                    let does = !observed.ran.is_empty() || !observed.written.is_empty();
                    count(&ran, !observed.ran.is_empty());
                    count(&acted, does);
                    count(&acted_noted, does && !facts.unknown.is_empty());
                    count(&noted, !facts.unknown.is_empty());
                    count(&slow, observed.stopped);
                    if observed.stopped {
                        println!("stopped: {line}");
                    }
                    let missed = missed(&facts, &observed);
                    if !missed.is_empty() {
                        println!("missed: line {number}");
                        misses
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(format!("line {number}: {missed:?}\n{line}\n"));
                    }
                }
            });
        }
    });
    let total = lines.end - lines.start;
    println!(
        "{total} lines in {:.0} s: canaries ran in {}, {} did something and {} of these are noted, {} noted in all, {} stopped after a time",
        started.elapsed().as_secs_f64(),
        ran.load(Ordering::Relaxed),
        acted.load(Ordering::Relaxed),
        acted_noted.load(Ordering::Relaxed),
        noted.load(Ordering::Relaxed),
        slow.load(Ordering::Relaxed),
    );
    let misses = misses.into_inner().unwrap_or_else(PoisonError::into_inner);
    let shown: String = misses.iter().take(40).map(String::as_str).collect();
    assert!(misses.is_empty(), "{} misses\n{shown}", misses.len());
    if !is_single {
        let total = usize::try_from(total).unwrap();
        // Otherwise the law above holds for nothing.
        assert!(ran.load(Ordering::Relaxed) > total / 5, "the canary hardly ever runs");
        assert!(noted.load(Ordering::Relaxed) < total * 3 / 4, "nearly every line is noted");
        assert!(slow.load(Ordering::Relaxed) < total / 100, "too many lines take too long");
    }
}

#[test]
fn a_canary_that_was_not_reported_is_a_miss() {
    let runner = Runner::new();
    let observed = runner.run(0, "canary0; echo > f");
    assert_eq!(
        (observed.ran.clone(), observed.written.clone()),
        (vec!["canary0".to_owned()], vec!["f".to_owned()])
    );
    assert_eq!(missed(&parse("echo"), &observed), ["ran canary0", "wrote f"]);
    assert!(missed(&parse("canary0; echo > f"), &observed).is_empty());
}
