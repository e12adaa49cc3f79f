//! The measures: program and floor take turns, so that both see the same machine.

use std::time::Duration;

use crate::agent::{Agent, IN_FLIGHT, Until};
use crate::counted;
use crate::failure::Failure;
use crate::library::Library;
use crate::measured::Measured;
use crate::options::Counts;
use crate::programs::{BALANCED, ONE_RULE, Programs, WATCHFUL};
use crate::table::{Goal, Table, median, megabytes, micros, millis, percentile};

/// The agent whose runtime is asked.
const RUNTIME_AGENT: &str = "bench-001";

/// Everything that a run needs.
pub struct Bench<'a> {
    /// Programs that are measured.
    pub programs: &'a Programs,
    /// Numbers of repetitions.
    pub counts: Counts,
}

type Measure<'a> = fn(&Bench<'a>, &mut Table) -> Result<(), Failure>;

impl<'a> Bench<'a> {
    /// Runs every measure. The first answer that is not as it should be ends all of them.
    pub fn run(&self) -> Result<Table, Failure> {
        let mut table = Table::default();
        let measures: [(&str, Measure<'a>); 6] = [
            ("start", Self::start),
            ("memory", Self::idle_memory),
            ("one at a time", Self::one_at_a_time),
            ("in flight", Self::many_in_flight),
            ("socket", Self::socket),
            ("long life", Self::long_life),
        ];
        for (name, measure) in measures {
            measure(self, &mut table).map_err(|problem| format!("{name}: {problem}"))?;
        }
        Ok(table)
    }

    fn start(&self, table: &mut Table) -> Result<(), Failure> {
        let policy = self.programs.file("policy.yaml", ONE_RULE)?;
        let old = self.programs.fresh("x.db");
        self.programs.gateway_of(&policy, &old, false)?.process.end()?;
        let (mut first, mut again, mut floor) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.counts.starts {
            floor.push(self.programs.empty_gateway()?.took);
            for (file, times) in [(&self.programs.fresh("x.db"), &mut first), (&old, &mut again)] {
                let gateway = self.programs.gateway_of(&policy, file, false)?;
                times.push(gateway.process.took);
                gateway.process.end()?;
            }
        }
        let floor = millis(median(&mut floor));
        for (what, times) in [("with a new ledger", &mut first), ("again", &mut again)] {
            let p50 = median(times);
            table.row(
                &format!("`aa-gateway`, start until it is ready, {what}, p50"),
                &millis(p50),
                &floor,
                &Goal::Of("at most 50 ms", p50 <= Duration::from_millis(50)),
            );
        }
        Ok(())
    }

    fn idle_memory(&self, table: &mut Table) -> Result<(), Failure> {
        let gateway = self.programs.gateway(ONE_RULE, false)?;
        let floor = self.programs.empty_gateway()?;
        let (runtime, _) = self.programs.runtime(RUNTIME_AGENT, Some(&gateway.socket()))?;
        std::thread::sleep(self.counts.idle);
        let floor = megabytes(floor.memory()?);
        let held = gateway.process.memory()?;
        let goal = Goal::Of("at most 25 MB", held <= 25_000_000);
        table.row("`aa-gateway`, idle memory", &megabytes(held), &floor, &goal);
        table.row("`aa-runtime`, idle memory", &megabytes(runtime.memory()?), "", &Goal::None);
        Ok(())
    }

    fn one_at_a_time(&self, table: &mut Table) -> Result<(), Failure> {
        let policies = [("one rule", ONE_RULE), ("balanced policy", BALANCED)];
        let mut gateways = Vec::new();
        for (_, policy) in policies {
            gateways.push(Measured::gateway(self.programs.gateway(policy, false)?)?);
        }
        let mut floor = self.floor_like(&gateways)?;
        for _ in 0..self.counts.rounds {
            for server in gateways.iter_mut().chain([&mut floor]) {
                server.ask(self.counts.checks_a_round)?;
            }
        }
        let floor_p50 = median(&mut floor.times);
        let floor_p99 = percentile(&mut floor.times, 0.99);
        for ((policy, _), mut gateway) in policies.into_iter().zip(gateways) {
            let (p50, p99) = (median(&mut gateway.times), percentile(&mut gateway.times, 0.99));
            let what = format!("CheckAction, one at a time, {policy}");
            let (ratio, ratio_p99) = (over(p50, floor_p50), over(p99, floor_p99));
            table.row(
                &format!("{what}, p50"),
                &format!("{} ({ratio:.2} × floor)", micros(p50)),
                &micros(floor_p50),
                &Goal::Of("at most 1.3 × an empty call", ratio <= 1.3),
            );
            table.row(
                &format!("{what}, p99"),
                &format!("{} ({ratio_p99:.2} × floor)", micros(p99)),
                &micros(floor_p99),
                &Goal::None,
            );
            cost(&what, &gateway, &floor, table);
            gateway.end()?;
        }
        Ok(())
    }

    fn many_in_flight(&self, table: &mut Table) -> Result<(), Failure> {
        const TURNS: u32 = 3;
        let mut gateways = Vec::new();
        for with_audit in [false, true] {
            gateways.push(Measured::gateway(self.programs.gateway(ONE_RULE, with_audit)?)?);
        }
        let mut floor = self.floor_like(&gateways)?;
        for _ in 0..TURNS {
            for server in gateways.iter_mut().chain([&mut floor]) {
                server.keep_in_flight(Until::Time(self.counts.in_flight / TURNS))?;
            }
        }
        for (log, gateway) in ["", ", audit log"].into_iter().zip(gateways) {
            let what = format!("CheckAction, {IN_FLIGHT} in flight, one rule{log}");
            let share = gateway.rate() / floor.rate();
            let goal = match log {
                "" => Goal::Of("at least 0.6 × an empty call", share >= 0.6),
                _ => Goal::None,
            };
            table.row(
                &format!("{what}, checks"),
                &format!("{:.0}/s ({share:.2} × floor)", gateway.rate()),
                &format!("{:.0}/s", floor.rate()),
                &goal,
            );
            cost(&what, &gateway, &floor, table);
            // An error if there were fewer.
            let answers = gateway.end()?;
            let records = if log.is_empty() { "recorded" } else { "recorded, and in the audit log" };
            let all = format!("{answers} of {answers}");
            table.row(&format!("{what}, checks {records}"), &all, "", &Goal::Of("all", true));
        }
        Ok(())
    }

    /// A runtime with a gateway behind it, with an empty one, and with rules of its own: what each adds can be seen.
    fn socket(&self, table: &mut Table) -> Result<(), Failure> {
        let gateway = self.programs.gateway(ONE_RULE, false)?;
        let (by_socket, by_network) = (gateway.socket(), gateway.endpoint());
        let checks = Agent::registered(&by_network)?.checks;
        let empty = self.programs.empty_gateway()?;
        let empty_endpoint = format!("http://{}", empty.place);
        let behind = [
            ("gateway on a Unix socket", Some(&by_socket)),
            ("gateway on TCP", Some(&by_network)),
            ("an empty gateway on TCP", Some(&empty_endpoint)),
            ("rules of its own", None),
        ];
        let mut libraries = Vec::new();
        let mut runtimes = Vec::new();
        for (_, endpoint) in behind {
            let (runtime, socket) = self.programs.runtime(RUNTIME_AGENT, endpoint.map(String::as_str))?;
            runtimes.push(runtime);
            let library = Library::connected(&socket, RUNTIME_AGENT, checks.renumbered())?;
            libraries.push((library, Vec::new()));
        }
        let (_echo, socket) = self.programs.echo()?;
        let mut echo = Library::at_echo(&socket, checks.renumbered())?;
        let mut floor = Vec::new();
        for _ in 0..self.counts.rounds {
            for (library, times) in &mut libraries {
                for _ in 0..self.counts.checks_a_round {
                    times.push(library.ask()?);
                }
            }
            for _ in 0..self.counts.checks_a_round {
                floor.push(echo.ask()?);
            }
        }
        let floor_p50 = median(&mut floor);
        for ((what, endpoint), (_, times)) in behind.into_iter().zip(&mut libraries) {
            let (p50, p99) = (median(times), percentile(times, 0.99));
            let added = p50.saturating_sub(floor_p50);
            let kept = Goal::Of("at most floor + 40 µs", added <= Duration::from_micros(40));
            let is_ours = endpoint.is_none_or(|endpoint| *endpoint != empty_endpoint);
            table.row(
                &format!("query at the socket of `aa-runtime`, {what}, p50 (p99)"),
                &format!("{} ({}; floor + {})", micros(p50), micros(p99), micros(added)),
                &micros(floor_p50),
                if is_ours { &kept } else { &Goal::None },
            );
        }
        for runtime in runtimes {
            runtime.end()?;
        }
        gateway.process.end()?;
        // Two of the runtimes have asked it.
        counted::in_ledger(&gateway.state, 2 * floor.len() as u64)
    }

    /// One agent asks for long. What changes for the floor as well is the machine.
    fn long_life(&self, table: &mut Table) -> Result<(), Failure> {
        const TURNS: usize = 10;
        let mut gateways = vec![Measured::gateway(self.programs.gateway(WATCHFUL, false)?)?];
        let mut floor = self.floor_like(&gateways)?;
        let mut seen = Vec::new();
        for is_late in [false, true] {
            if is_late {
                for gateway in &mut gateways {
                    gateway.keep_in_flight(Until::Count(self.counts.long_life))?;
                }
            }
            for _ in 0..TURNS {
                for server in gateways.iter_mut().chain([&mut floor]) {
                    server.ask((self.counts.sample / TURNS).max(1))?;
                }
            }
            for server in gateways.iter_mut().chain([&mut floor]) {
                seen.push(median(&mut server.times));
                server.times.clear();
            }
        }
        let [early, floor_early, late, floor_late] = seen[..] else {
            return Err("a measure is missing".into());
        };
        table.row(
            &format!(
                "CheckAction, one agent with `anomalies` and `budget`, p50 of the first {} checks, and after {} more",
                self.counts.sample, self.counts.long_life
            ),
            &format!("{}, {} ({:.2} ×)", micros(early), micros(late), over(late, early)),
            &format!(
                "{}, {} ({:.2} ×)",
                micros(floor_early),
                micros(floor_late),
                over(floor_late, floor_early)
            ),
            &Goal::None,
        );
        for gateway in gateways {
            gateway.end()?;
        }
        Ok(())
    }

    /// A floor that gets the same checks as the first of these.
    fn floor_like(&self, gateways: &[Measured]) -> Result<Measured, Failure> {
        let like = gateways.first().ok_or("there is no gateway")?;
        Measured::floor(self.programs.empty_gateway()?, &like.agent)
    }
}

fn cost(what: &str, server: &Measured, floor: &Measured, table: &mut Table) {
    let (cost, floor) = (micros(server.cost()), micros(floor.cost()));
    table.row(&format!("{what}, CPU of the server for a check"), &cost, &floor, &Goal::None);
}

fn over(time: Duration, floor: Duration) -> f64 {
    time.as_secs_f64() / floor.as_secs_f64()
}
