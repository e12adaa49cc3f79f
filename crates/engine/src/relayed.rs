//! Connections of relays as the owner remembers them: the recorded decisions that were sent on each, so that those which did not arrive in
//! time can be retracted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_core::hex;
use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_system::SystemRandomness;

use crate::Engine;

/// Connections that the owner remembers, ended ones too: a relay says only on its next one which answers of the last did not arrive.
const MAX_REMEMBERED: usize = 256;

/// Decisions that are remembered of a connection. A relay waits for fewer answers at a time.
const MAX_DECISIONS: usize = 4096;

/// Denies that a relay answered by itself, because the owner did not answer; the next owner that it reaches is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnDenies {
    /// The number of denies.
    pub count: u64,
    /// The connection on which answers were missing, and the number of answers that arrived on it.
    pub abandoned: Option<(String, u64)>,
}

impl OwnDenies {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.abandoned.is_none()
    }

    /// Adds what is told to a handshake.
    pub(crate) fn add_to(&self, hello: &mut Json) {
        if self.count > 0 {
            hello.push("denied", self.count);
        }
        if let Some((connection, arrived)) = &self.abandoned {
            hello.push(
                "abandoned",
                Json::object().with("connection", connection.as_str()).with("arrived", *arrived),
            );
        }
    }

    /// Reads what a handshake tells.
    pub(crate) fn from_hello(hello: &Json) -> OwnDenies {
        let abandoned = hello.get("abandoned").and_then(|abandoned| {
            let connection = abandoned.get("connection")?.as_str()?.to_owned();
            Some((connection, abandoned.get("arrived")?.as_u64()?))
        });
        OwnDenies { count: hello.get("denied").and_then(Json::as_u64).unwrap_or_default(), abandoned }
    }
}

/// A connection of a relay, as doors see it.
#[derive(Debug)]
pub struct RelayConnection {
    id: String,
    /// Time limit of an answer at the relay; none if it has not said.
    pub answer: Option<Duration>,
    sent: Mutex<Sent>,
}

#[derive(Debug, Default)]
struct Sent {
    /// The number of answers that were sent.
    answers: u64,
    /// Decisions other than deny: the number of answers before each, and its sequence.
    decisions: VecDeque<(u64, u64)>,
    abandoned: bool,
}

impl RelayConnection {
    /// A fresh connection. Its name is random, so that no other owner knows it.
    pub fn new(answer: Option<Duration>) -> RelayConnection {
        let mut id = [0; 16];
        SystemRandomness.fill(&mut id);
        RelayConnection { id: hex::encode(id), answer, sent: Mutex::default() }
    }

    /// The connection's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether the relay has given the connection up: nothing more is decided for it.
    pub fn is_abandoned(&self) -> bool {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).abandoned
    }

    /// Notes an answer before it is sent, with the sequence of its record if it is a decision other than deny.
    pub fn sending(&self, engine: &Engine, decision: Option<u64>) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sent.answers;
        sent.answers += 1;
        let Some(sequence) = decision else { return };
        if sent.abandoned {
            drop(sent);
            return retract(engine, vec![sequence]);
        }
        if sent.decisions.len() == MAX_DECISIONS {
            sent.decisions.pop_front();
        }
        sent.decisions.push_back((before, sequence));
    }

    /// Retracts the decisions whose answers did not arrive. Returns the number of answers that were sent and did not.
    fn abandon(&self, engine: &Engine, arrived: u64) -> u64 {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.abandoned {
            return 0;
        }
        sent.abandoned = true;
        let decisions = std::mem::take(&mut sent.decisions);
        let missing = sent.answers.saturating_sub(arrived);
        drop(sent);
        let lost = decisions.into_iter().filter(|(before, _)| *before >= arrived);
        retract(engine, lost.map(|(_, sequence)| sequence).collect());
        missing
    }
}

fn retract(engine: &Engine, sequences: Vec<u64>) {
    if let Err(problem) = engine.ledger().retract(sequences) {
        log::warn!("decisions that did not reach a relay are not retracted yet: {problem}");
    }
}

/// The connections that an owner remembers.
#[derive(Debug, Default)]
pub(crate) struct RelayConnections(Mutex<VecDeque<Arc<RelayConnection>>>);

impl RelayConnections {
    /// Remembers a new connection.
    pub(crate) fn add(&self, answer: Option<Duration>) -> Arc<RelayConnection> {
        let connection = Arc::new(RelayConnection::new(answer));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Connections that are still served have another holder. They stay: their relay may yet say that answers did not arrive. Their number is
        // that of the relays.
        if known.len() >= MAX_REMEMBERED
            && let Some(ended) = known.iter().position(|connection| Arc::strong_count(connection) == 1)
        {
            known.remove(ended);
        }
        known.push_back(Arc::clone(&connection));
        connection
    }

    /// Retracts what did not reach a relay, and counts its other denies as a gap.
    pub(crate) fn settle(&self, engine: &Engine, denies: &OwnDenies) {
        let missing = denies.abandoned.as_ref().map_or(0, |(id, arrived)| {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let connection = known.iter().find(|connection| connection.id == *id).cloned();
            drop(known);
            connection.map_or(0, |connection| connection.abandon(engine, *arrived))
        });
        engine.ledger().note_unrecorded_many(denies.count.saturating_sub(missing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_served_is_never_forgotten_and_ended_ones_are_bounded() {
        let connections = RelayConnections::default();
        let live = connections.add(None);
        for _ in 0..3 * MAX_REMEMBERED {
            connections.add(None);
        }
        let known = connections.0.lock().unwrap();
        assert!(known.iter().any(|connection| connection.id() == live.id()));
        assert!(known.len() <= MAX_REMEMBERED + 1, "{}", known.len());
    }
}
