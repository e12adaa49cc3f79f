//! Amount of work.

use std::time::Duration;

use crate::options::{Extent, Options};

/// Numbers of repetitions.
pub struct Counts {
    /// Starts of each program.
    pub starts: usize,
    /// Number of rounds in which engines and floor alternate with small batches.
    pub rounds: usize,
    /// Small batches of a turn.
    pub batches_a_round: usize,
    /// Time that requests are kept in flight.
    pub in_flight: Duration,
    /// Steps of the large trace.
    pub steps: usize,
    /// Engines that are started for the large trace.
    pub fresh_engines: usize,
    /// Large batches one after another.
    pub large_batches: usize,
    /// Small batches that history grows by.
    pub history: usize,
}

impl Counts {
    /// As often as asked.
    pub fn of(options: &Options) -> Counts {
        match options.extent {
            Extent::Full => Counts {
                starts: 100,
                rounds: 20,
                batches_a_round: 1_000,
                in_flight: options.time,
                steps: 10_000,
                fresh_engines: 5,
                large_batches: 20,
                history: 100_000,
            },
            Extent::Quick => Counts {
                starts: 30,
                rounds: 5,
                batches_a_round: 400,
                in_flight: options.time.min(Duration::from_secs(1)),
                steps: 10_000,
                fresh_engines: 3,
                large_batches: 10,
                history: 5_000,
            },
            Extent::Check => Counts {
                starts: 2,
                rounds: 2,
                batches_a_round: 10,
                in_flight: Duration::from_millis(30),
                steps: 100,
                fresh_engines: 1,
                large_batches: 2,
                history: 100,
            },
        }
    }
}
