//! An agent that is registered with a gateway, and asks it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_clients::assembly::client::{Client, Identity, Options};
use proctor_wire::assembly::proto::agent::v1::RegisterRequest;
use proctor_wire::assembly::proto::common::v1::{AgentId, Decision};
use tokio::runtime::Runtime;

use crate::checks::Checks;
use crate::failure::Failure;

/// Checks that are kept in flight.
pub const IN_FLIGHT: usize = 64;

/// End condition of a run with many checks in flight.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// So long.
    Time(Duration),
    /// So many.
    Count(u64),
}

/// An agent and its connection.
pub struct Agent {
    runtime: Runtime,
    client: Client,
    pub checks: Arc<Checks>,
}

impl Agent {
    /// Connects and registers with a proof. One thread is all that the agent has: what it waits for is the gateway.
    pub fn registered(endpoint: &str) -> Result<Agent, Failure> {
        let identity = Identity::generate([7; 32]);
        let (runtime, client) = connected(endpoint, single)?;
        let agent = AgentId { agent_id: identity.did(), team_id: "bench".to_owned(), ..Default::default() };
        let request = RegisterRequest {
            agent_id: Some(agent.clone()),
            name: "bench".to_owned(),
            framework: "none".to_owned(),
            version: "1".to_owned(),
            ..Default::default()
        };
        let registered =
            runtime.block_on(client.register(&identity, request)).map_err(|error| error.to_string())?;
        let checks = Arc::new(Checks::new(agent, registered.credential_token));
        Ok(Agent { runtime, client, checks })
    }

    /// The same agent, which asks there as well. It does not register: a floor knows nobody.
    pub fn at(&self, endpoint: &str) -> Result<Agent, Failure> {
        let (runtime, client) = connected(endpoint, single)?;
        Ok(Agent { runtime, client, checks: Arc::new(self.checks.renumbered()) })
    }

    /// Asks once, and says how long the answer took.
    pub fn ask(&self) -> Result<Duration, Failure> {
        let request = self.checks.next();
        let begin = Instant::now();
        let answer = self.runtime.block_on(self.client.check(request));
        let took = begin.elapsed();
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.decision() == Decision::Allow {
            return Ok(took);
        }
        Err(format!("a check was answered with {}: {}", answer.decision().as_str_name(), answer.reason)
            .into())
    }

    /// Asks so often, one at a time.
    pub fn ask_often(&self, count: usize, times: &mut Vec<Duration>) -> Result<(), Failure> {
        for _ in 0..count {
            times.push(self.ask()?);
        }
        Ok(())
    }

    /// Keeps 64 checks in flight on a connection of its own; says how many were answered, and how long that took.
    pub fn keep_in_flight(&self, until: Until) -> Result<(u64, Duration), Failure> {
        let (runtime, client) = connected(self.client.endpoint(), many)?;
        let begin = Instant::now();
        let first = self.checks.asked();
        let answered = runtime.block_on(async {
            let callers: Vec<_> = (0..IN_FLIGHT)
                .map(|_| {
                    let (client, checks) = (client.clone(), Arc::clone(&self.checks));
                    tokio::spawn(async move {
                        let mut answered = 0_u64;
                        while goes_on(until, begin, checks.asked().saturating_sub(first)) {
                            let answer =
                                client.check(checks.next()).await.map_err(|error| error.to_string())?;
                            if answer.decision() != Decision::Allow {
                                return Err(Failure::from(format!(
                                    "a check was answered with {}: {}",
                                    answer.decision().as_str_name(),
                                    answer.reason
                                )));
                            }
                            answered += 1;
                        }
                        Ok(answered)
                    })
                })
                .collect();
            let mut sum = 0;
            for caller in callers {
                sum += caller.await.map_err(|error| error.to_string())??;
            }
            Ok::<_, Failure>(sum)
        })?;
        Ok((answered, begin.elapsed()))
    }
}

fn goes_on(until: Until, begin: Instant, asked: u64) -> bool {
    match until {
        Until::Time(time) => begin.elapsed() < time,
        Until::Count(count) => asked < count,
    }
}

fn connected(endpoint: &str, threads: fn() -> tokio::runtime::Builder) -> Result<(Runtime, Client), Failure> {
    let runtime = threads().enable_all().build().map_err(|error| format!("no threads: {error}"))?;
    let client = runtime
        .block_on(Client::connect(endpoint, Options::default()))
        .map_err(|error| format!("{endpoint}: {error}"))?;
    Ok((runtime, client))
}

fn single() -> tokio::runtime::Builder {
    tokio::runtime::Builder::new_current_thread()
}

fn many() -> tokio::runtime::Builder {
    tokio::runtime::Builder::new_multi_thread()
}
