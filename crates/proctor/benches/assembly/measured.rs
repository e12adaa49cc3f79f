//! A server that is asked, how long its answers took, and what they cost it.

use std::path::PathBuf;
use std::time::Duration;

use crate::agent::{Agent, Until};
use crate::counted;
use crate::failure::Failure;
use crate::process::Process;
use crate::programs::Gateway;

/// A gateway or a floor, and the agent that asks it.
pub struct Measured {
    process: Process,
    /// State directory and audit folder; the floor has none.
    records: Option<(PathBuf, Option<PathBuf>)>,
    /// Client that asks.
    pub agent: Agent,
    /// Latencies of answers, one at a time.
    pub times: Vec<Duration>,
    /// Number of answers with many in flight, and the time they took.
    pub in_flight: (u64, Duration),
    busy: Duration,
    answers: u64,
}

impl Measured {
    /// A gateway, with an agent that has registered.
    pub fn gateway(gateway: Gateway) -> Result<Measured, Failure> {
        let agent = Agent::registered(&gateway.endpoint())?;
        Ok(Measured::new(gateway.process, Some((gateway.state, gateway.audit)), agent))
    }

    /// A floor, which gets the same checks as a gateway.
    pub fn floor(process: Process, like: &Agent) -> Result<Measured, Failure> {
        let agent = like.at(&format!("http://{}", process.place))?;
        Ok(Measured::new(process, None, agent))
    }

    fn new(process: Process, records: Option<(PathBuf, Option<PathBuf>)>, agent: Agent) -> Measured {
        let in_flight = (0, Duration::ZERO);
        Measured { process, records, agent, times: Vec::new(), in_flight, busy: Duration::ZERO, answers: 0 }
    }

    /// Asks so often, one at a time.
    pub fn ask(&mut self, count: usize) -> Result<(), Failure> {
        let (before, asked) = (self.process.processor_time()?, self.agent.checks.asked());
        self.agent.ask_often(count, &mut self.times)?;
        self.cost_since(before, asked)
    }

    /// Keeps many in flight.
    pub fn keep_in_flight(&mut self, until: Until) -> Result<(), Failure> {
        let (before, asked) = (self.process.processor_time()?, self.agent.checks.asked());
        let (answered, time) = self.agent.keep_in_flight(until)?;
        self.in_flight = (self.in_flight.0 + answered, self.in_flight.1 + time);
        self.cost_since(before, asked)
    }

    fn cost_since(&mut self, before: Duration, asked: u64) -> Result<(), Failure> {
        self.busy += self.process.processor_time()?.saturating_sub(before);
        self.answers += self.agent.checks.asked() - asked;
        Ok(())
    }

    /// The processor time of an answer.
    pub fn cost(&self) -> Duration {
        self.busy.div_f64(self.answers.max(1) as f64)
    }

    /// Answers a second with many in flight.
    pub fn rate(&self) -> f64 {
        self.in_flight.0 as f64 / self.in_flight.1.as_secs_f64()
    }

    /// Ends it, and makes sure that every answer is on record. Gives their number.
    pub fn end(self) -> Result<u64, Failure> {
        let answers = self.agent.checks.asked();
        drop(self.agent);
        let Some((state, audit)) = self.records else { return Ok(answers) };
        self.process.end()?;
        counted::in_ledger(&state, answers)?;
        if let Some(audit) = audit {
            counted::in_log(&audit, answers)?;
        }
        Ok(answers)
    }
}
