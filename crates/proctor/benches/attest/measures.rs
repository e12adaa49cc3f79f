//! The measures: engine and floor take turns, so that both see the same machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::counts::Counts;
use crate::failure::Failure;
use crate::floor;
use crate::inputs::{self, Request};
use crate::process::Process;
use crate::scratch::Scratch;
use crate::table::{Goal, Table, median, megabytes, micros, millis, percentile};

/// Requests that are kept in flight.
const IN_FLIGHT: usize = 64;

/// Time limit of a run whose history is counted: as many results as `query_drift` can count.
const LONGEST_COUNTED: Duration = Duration::from_secs(2);

/// An engine that gets slower and slower is measured as far as it comes in this time.
const LONGEST_HISTORY: Duration = Duration::from_secs(120);

/// Everything that a run needs.
pub struct Bench<'a> {
    /// The program, and what stands between its name and our flag.
    pub engine: (PathBuf, Vec<String>),
    /// Folder of the files.
    pub scratch: &'a Scratch,
    /// Numbers of repetitions.
    pub counts: Counts,
}

/// An engine, how long its answers took, and what they cost it.
struct Measured {
    process: Process,
    remembers: bool,
    times: Vec<Duration>,
    busy: Duration,
}

/// Cost of a tenth of all batches while history grew.
struct Tenth {
    with: Duration,
    without: Duration,
    p99: Duration,
    floor_p99: Duration,
}

type Measure<'a> = fn(&Bench<'a>, &mut Table) -> Result<(), Failure>;

impl<'a> Bench<'a> {
    /// Runs every measure. The first answer that is not as it should be ends all of them.
    pub fn run(&self) -> Result<Table, Failure> {
        let mut table = Table::default();
        let measures: [(&str, Measure<'a>); 5] = [
            ("start", Self::start),
            ("one batch at a time", Self::one_at_a_time),
            ("many in flight", Self::many_in_flight),
            ("large trace", Self::large),
            ("history", Self::growing_history),
        ];
        for (name, measure) in measures {
            measure(self, &mut table).map_err(|problem| format!("{name}: {problem}"))?;
        }
        Ok(table)
    }

    fn start(&self, table: &mut Table) -> Result<(), Failure> {
        let folders = [self.scratch.fresh("cache"), self.scratch.unusable()?];
        // The first start makes the files.
        drop(self.started(&folders[0])?);
        let mut times: [Vec<Duration>; 4] = Default::default();
        for _ in 0..self.counts.starts {
            for (folder, times) in folders.iter().zip(&mut times) {
                let begin = Instant::now();
                let mut engine = self.spawned(folder)?;
                engine.ask(&inputs::initialize())?;
                times.push(begin.elapsed());
            }
            times[2].push(until_end(floor::empty()?)?);
            times[3].push(until_end(Command::new("true"))?);
        }
        let [with, without, empty, smallest] = times.map(|mut times| median(&mut times));
        let floor = format!("{} (`true`: {})", micros(empty), micros(smallest));
        for (what, time) in [("history on", with), ("history off", without)] {
            let ratio = time.as_secs_f64() / empty.as_secs_f64();
            table.row(
                &format!("start to the answer of `initialize`, {what}, p50"),
                &format!("{} ({ratio:.1} × floor)", micros(time)),
                &floor,
                &Goal::Of("at most 3 × an empty program", ratio <= 3.0),
            );
        }
        Ok(())
    }

    fn one_at_a_time(&self, table: &mut Table) -> Result<(), Failure> {
        let request = inputs::small();
        let mut engines = self.with_and_without_history()?;
        for engine in &mut engines {
            engine.process.ask(&request)?;
        }
        let mut floor = self.floor(engines[0].process.answer_length())?;
        let mut floor_times = Vec::new();
        for _ in 0..self.counts.rounds {
            for engine in &mut engines {
                engine.round(&request, self.counts.batches_a_round)?;
            }
            for _ in 0..self.counts.batches_a_round {
                floor_times.push(floor.ask(&request)?);
            }
        }
        let floor_p50 = median(&mut floor_times);
        let floor_p99 = percentile(&mut floor_times, 0.99);
        let mut costs = Vec::new();
        for engine in &mut engines {
            let what = format!("4 assertions, 2 steps, history {}", engine.history());
            let (p50, p99) = (median(&mut engine.times), percentile(&mut engine.times, 0.99));
            let added = p50.saturating_sub(floor_p50);
            table.row(
                &format!("{what}, p50"),
                &format!("{} (floor + {})", micros(p50), micros(added)),
                &micros(floor_p50),
                &Goal::Of("at most floor + 30 µs", added <= Duration::from_micros(30)),
            );
            table.row(&format!("{what}, p99"), &micros(p99), &micros(floor_p99), &Goal::None);
            let cost = engine.cost();
            costs.push(cost);
            table.row(
                &format!("{what}, CPU a batch"),
                &micros(cost),
                "",
                &Goal::Of("at most 25 µs", cost <= Duration::from_micros(25)),
            );
        }
        if let [with, without] = costs[..] {
            let added = with.saturating_sub(without);
            table.row(
                "history, CPU that it adds to a batch",
                &micros(added),
                "",
                &Goal::Of("at most 20 µs", added <= Duration::from_micros(20)),
            );
        }
        Ok(())
    }

    fn many_in_flight(&self, table: &mut Table) -> Result<(), Failure> {
        const TURNS: u32 = 3;
        let request = inputs::small();
        let mut engines = self.with_and_without_history()?;
        for engine in &mut engines {
            engine.process.ask(&request)?;
        }
        let mut floor = self.floor(engines[0].process.answer_length())?;
        let time = self.counts.in_flight / TURNS;
        let mut done = [(0, Duration::ZERO); 3];
        let add = |sum: &mut (u64, Duration), one: (u64, Duration)| {
            *sum = (sum.0 + one.0, sum.1 + one.1);
        };
        for _ in 0..TURNS {
            for (engine, sum) in engines.iter_mut().zip(&mut done) {
                let before = engine.process.processor_time()?;
                add(sum, engine.process.keep_in_flight(&request, IN_FLIGHT, time)?);
                engine.settle()?;
                engine.busy += engine.process.processor_time()?.saturating_sub(before);
            }
            add(&mut done[2], floor.keep_in_flight(&request, IN_FLIGHT, time)?);
        }
        let rate = |(count, time): (u64, Duration)| count as f64 / time.as_secs_f64();
        for (engine, sum) in engines.iter().zip(done) {
            let what = format!("4 assertions, 2 steps, {IN_FLIGHT} in flight, history {}", engine.history());
            table.row(
                &format!("{what}, batches"),
                &format!("{:.0}/s", rate(sum)),
                &format!("{:.0}/s", rate(done[2])),
                &Goal::Of("at least 30,000/s", rate(sum) >= 30_000.0),
            );
            let cost = engine.busy.div_f64(sum.0 as f64);
            table.row(&format!("{what}, CPU a batch"), &micros(cost), "", &Goal::None);
        }
        let (remembered, sent) = self.remembered_in_flight(&request, time.min(LONGEST_COUNTED))?;
        table.row(
            &format!("{IN_FLIGHT} in flight, history on, batches remembered"),
            &format!("{remembered:.0} of {sent} ({:.0} %)", remembered / sent as f64 * 100.0),
            "",
            &Goal::None,
        );
        Ok(())
    }

    /// Share of a turn that is in the history afterwards: an engine may be fast because it leaves results out. In an engine of its
    /// own that forgets nothing, so that they can be counted.
    fn remembered_in_flight(&self, request: &Request, time: Duration) -> Result<(f64, u64), Failure> {
        let mut command = self.command(&self.scratch.fresh("cache"));
        command.env("ATTEST_HISTORY_MAX_ROWS", "100000000");
        let mut engine = Process::engine(&mut command, &self.scratch.fresh("engine.log"))?;
        engine.ask(&inputs::initialize())?;
        let (sent, _) = engine.keep_in_flight(request, IN_FLIGHT, time)?;
        engine.ask(&inputs::drift(1_000_000))?;
        let count = engine.answer().pointer("/result/report/count").and_then(serde_json::Value::as_f64);
        Ok((count.ok_or("the answer of `query_drift` has no count")?, sent))
    }

    fn large(&self, table: &mut Table) -> Result<(), Failure> {
        let request = inputs::large(self.counts.steps);
        let what = format!(
            "{} assertions, {} steps, {:.1} MB",
            request.passes,
            self.counts.steps,
            request.length() as f64 / 1e6
        );
        let folder = self.scratch.fresh("cache");
        let mut first_costs = Vec::new();
        let mut peaks = Vec::new();
        let mut idle = 0;
        let mut engine = self.started(&folder)?;
        for turn in 0..self.counts.fresh_engines {
            if turn > 0 {
                engine = self.started(&folder)?;
            }
            idle = engine.peak_memory()?;
            let before = engine.processor_time()?;
            engine.ask(&request)?;
            first_costs.push(engine.processor_time()?.saturating_sub(before));
            peaks.push(engine.peak_memory()?);
        }
        let mut floor = self.floor(engine.answer_length())?;
        let (mut times, mut costs, mut floor_times, mut floor_costs) = (vec![], vec![], vec![], vec![]);
        for _ in 0..self.counts.large_batches {
            for (process, times, costs) in
                [(&mut engine, &mut times, &mut costs), (&mut floor, &mut floor_times, &mut floor_costs)]
            {
                let before = process.processor_time()?;
                times.push(process.ask(&request)?);
                costs.push(process.processor_time()?.saturating_sub(before));
            }
        }
        table.row(
            &format!("{what}, p50"),
            &millis(median(&mut times)),
            &millis(median(&mut floor_times)),
            &Goal::None,
        );
        for (which, cost) in [
            ("CPU, p50", median(&mut costs)),
            ("CPU, first batch of an engine, p50", median(&mut first_costs)),
        ] {
            table.row(
                &format!("{what}, {which}"),
                &millis(cost),
                &millis(median(&mut floor_costs)),
                &Goal::Of("at most 25 ms", cost <= Duration::from_millis(25)),
            );
        }
        peaks.sort_unstable();
        let peak = peaks.last().copied().unwrap_or_default();
        table.row(
            &format!("{what}, most memory of a fresh engine (its start: {})", megabytes(idle)),
            &megabytes(peak),
            &megabytes(floor.peak_memory()?),
            &Goal::Of("at most 30 MB", peak <= 30_000_000),
        );
        let later = engine.peak_memory()?;
        table.row(
            &format!("{what}, most memory after {} of them", self.counts.large_batches + 1),
            &megabytes(later),
            "",
            &Goal::None,
        );
        Ok(())
    }

    /// An engine without history takes turns with the one whose history grows: what changes for both is the machine.
    fn growing_history(&self, table: &mut Table) -> Result<(), Failure> {
        const TURNS: usize = 10;
        let request = inputs::small();
        let mut engines = self.with_and_without_history()?;
        for engine in &mut engines {
            engine.process.ask(&request)?;
        }
        let mut floor = self.floor(engines[0].process.answer_length())?;
        let turn = (self.counts.history / 10 / TURNS).max(1);
        let begin = Instant::now();
        let mut tenths = Vec::new();
        while tenths.len() < 10 && (tenths.len() < 2 || begin.elapsed() < LONGEST_HISTORY) {
            let mut floor_times = Vec::new();
            for engine in &mut engines {
                (engine.times, engine.busy) = (Vec::new(), Duration::ZERO);
            }
            for _ in 0..TURNS {
                for engine in &mut engines {
                    engine.round(&request, turn)?;
                }
                for _ in 0..turn.min(200) {
                    floor_times.push(floor.ask(&request)?);
                }
            }
            tenths.push(Tenth {
                with: engines[0].cost(),
                without: engines[1].cost(),
                p99: percentile(&mut engines[0].times, 0.99),
                floor_p99: percentile(&mut floor_times, 0.99),
            });
        }
        let tenth = turn * TURNS;
        let stopped = if tenths.len() < 10 { ", stopped because it takes too long" } else { "" };
        let what = format!("history over {} batches with 4 ids{stopped}", tenth * tenths.len());
        // Until the second, nothing is forgotten yet.
        let shown: Vec<&Tenth> = tenths.iter().take(2).chain(tenths.last()).collect();
        let list = |value: fn(&Tenth) -> Duration| {
            shown.iter().map(|tenth| micros(value(tenth))).collect::<Vec<_>>().join(", ")
        };
        table.row(
            &format!("{what}, CPU a batch; the first, second and last {tenth}"),
            &list(|tenth| tenth.with),
            &format!("history off: {}", list(|tenth| tenth.without)),
            &Goal::None,
        );
        let added = list(|tenth| tenth.with.saturating_sub(tenth.without));
        table.row(&format!("{what}, CPU that it adds to a batch"), &added, "", &Goal::None);
        let (p99, floor_p99) = (list(|tenth| tenth.p99), list(|tenth| tenth.floor_p99));
        table.row(&format!("{what}, p99"), &p99, &floor_p99, &Goal::None);
        Ok(())
    }

    fn with_and_without_history(&self) -> Result<[Measured; 2], Failure> {
        Ok([
            self.measured(&self.scratch.fresh("cache"), true)?,
            self.measured(&self.scratch.unusable()?, false)?,
        ])
    }

    fn measured(&self, cache: &Path, remembers: bool) -> Result<Measured, Failure> {
        let process = self.started(cache)?;
        Ok(Measured { process, remembers, times: Vec::new(), busy: Duration::ZERO })
    }

    /// An engine that is initialized.
    fn started(&self, cache: &Path) -> Result<Process, Failure> {
        let mut process = self.spawned(cache)?;
        process.ask(&inputs::initialize())?;
        Ok(process)
    }

    fn spawned(&self, cache: &Path) -> Result<Process, Failure> {
        Process::engine(&mut self.command(cache), &self.scratch.fresh("engine.log"))
    }

    /// An engine, as clients start it, that sees nothing of this machine's settings.
    fn command(&self, cache: &Path) -> Command {
        let (program, arguments) = &self.engine;
        let mut command = Command::new(program);
        command.args(arguments).arg("--log-level=warn").current_dir(self.scratch.folder());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("ATTEST_") || text.starts_with("PROCTOR_") {
                command.env_remove(&name);
            }
        }
        command.env("HOME", self.scratch.folder()).env("ATTEST_CACHE_DIR", cache);
        command
    }

    fn floor(&self, length: usize) -> Result<Process, Failure> {
        Process::floor(&mut floor::echo(length)?, &self.scratch.fresh("floor.log"))
    }
}

impl Measured {
    fn history(&self) -> &'static str {
        if self.remembers { "on" } else { "off" }
    }

    /// Asks one at a time, and counts what it cost until everything is remembered.
    fn round(&mut self, request: &Request, count: usize) -> Result<(), Failure> {
        let before = self.process.processor_time()?;
        for _ in 0..count {
            self.times.push(self.process.ask(request)?);
        }
        self.settle()?;
        self.busy += self.process.processor_time()?.saturating_sub(before);
        Ok(())
    }

    /// Waits until what was found is remembered: its cost belongs to the batches.
    fn settle(&mut self) -> Result<(), Failure> {
        if self.remembers {
            self.process.ask(&inputs::drift(50))?;
        }
        Ok(())
    }

    /// The processor time of a batch.
    fn cost(&self) -> Duration {
        self.busy.div_f64(self.times.len().max(1) as f64)
    }
}

fn until_end(mut command: Command) -> Result<Duration, Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    let status = command.status().map_err(|error| format!("an empty program cannot be started: {error}"))?;
    let took = begin.elapsed();
    if status.success() { Ok(took) } else { Err(format!("an empty program failed: {status}").into()) }
}
