//! Numbers of repetitions.

use crate::extent::Extent;

/// Numbers of repetitions.
pub struct Counts {
    /// Rounds in which the measured programs and their floors alternate.
    pub rounds: usize,
    /// Tests of the smaller suite.
    pub few: usize,
    /// Tests of the larger suite.
    pub many: usize,
    /// Events of an agent.
    pub events: usize,
    /// Starts of a program that does little.
    pub starts: usize,
    /// Tests of the suites that are compared by time.
    pub scale: [usize; 2],
    /// Tests of the suites that are compared by memory.
    pub memory: [usize; 2],
    /// Runs on record before the gate is started.
    pub recorded: usize,
}

impl Counts {
    /// As often as asked.
    pub fn of(extent: Extent) -> Counts {
        match extent {
            Extent::Full => Counts {
                rounds: 15,
                few: 20,
                many: 220,
                events: 10_000,
                starts: 60,
                scale: [100, 1_000],
                memory: [100, 10_000],
                recorded: 10_000,
            },
            Extent::Quick => Counts {
                rounds: 5,
                few: 10,
                many: 110,
                events: 10_000,
                starts: 20,
                scale: [100, 1_000],
                memory: [100, 10_000],
                recorded: 10_000,
            },
            Extent::Check => Counts {
                rounds: 1,
                few: 1,
                many: 3,
                events: 50,
                starts: 1,
                scale: [2, 10],
                memory: [100, 120],
                recorded: 5,
            },
        }
    }
}
