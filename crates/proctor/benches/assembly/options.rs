//! Command-line options, and the amount of work.

use std::time::Duration;

use crate::failure::Failure;

pub const USAGE: &str = "usage: cargo bench -p proctor --bench assembly -- [--seconds N] [--quick | --check]";

/// Amount of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Enough for numbers to publish.
    Full,
    /// Enough to see an order of magnitude.
    Quick,
    /// Enough to see that it works; no numbers.
    Check,
}

/// Command-line options.
#[derive(Debug)]
pub struct Options {
    /// Time that checks are kept in flight.
    pub time: Duration,
    /// Amount of work.
    pub extent: Extent,
}

/// Numbers of repetitions.
pub struct Counts {
    /// Starts of each program.
    pub starts: usize,
    /// Number of rounds in which programs and floor alternate.
    pub rounds: usize,
    /// Checks of a turn, one at a time.
    pub checks_a_round: usize,
    /// Time that checks are kept in flight, for each program.
    pub in_flight: Duration,
    /// Checks, one at a time, at the beginning and at the end of a long life.
    pub sample: usize,
    /// Checks between the two.
    pub long_life: u64,
    /// Idle time of a program before its memory is measured.
    pub idle: Duration,
}

impl Options {
    /// Reads the words of the command line; nothing if there is nothing to do.
    pub fn read(words: impl Iterator<Item = String>) -> Result<Option<Options>, Failure> {
        let words: Vec<String> = words.collect();
        let has = |flag: &str| words.iter().any(|word| word == flag);
        // `cargo bench` says so; `cargo test` gives the words that are meant for its own harness.
        if !["--bench", "--seconds", "--quick", "--check"].iter().any(|flag| has(flag)) {
            let mut filters = words.iter().filter(|word| !word.starts_with('-')).peekable();
            let wanted = filters.peek().is_none() || filters.any(|filter| "assembly_bench".contains(filter));
            let check = Options { time: Duration::ZERO, extent: Extent::Check };
            return Ok((wanted && !has("--list")).then_some(check));
        }
        let mut options = Options { time: Duration::from_secs(5), extent: Extent::Full };
        let mut rest = words.into_iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "--bench" => {}
                "--quick" => options.extent = Extent::Quick,
                "--check" => options.extent = Extent::Check,
                "--seconds" => {
                    let value = rest.next().unwrap_or_default();
                    let seconds = value.parse::<u64>().ok().filter(|seconds| (1..=3600).contains(seconds));
                    let seconds = seconds
                        .ok_or_else(|| format!("`--seconds {value}`: give a number from 1 to 3600"))?;
                    options.time = Duration::from_secs(seconds);
                }
                other => return Err(format!("`{other}` is not known").into()),
            }
        }
        Ok(Some(options))
    }

    /// As often as asked.
    pub fn counts(&self) -> Counts {
        match self.extent {
            Extent::Full => Counts {
                starts: 20,
                rounds: 20,
                checks_a_round: 500,
                in_flight: self.time,
                sample: 5_000,
                long_life: 100_000,
                idle: Duration::from_secs(2),
            },
            Extent::Quick => Counts {
                starts: 5,
                rounds: 5,
                checks_a_round: 200,
                in_flight: self.time.min(Duration::from_secs(1)),
                sample: 500,
                long_life: 5_000,
                idle: Duration::from_secs(1),
            },
            Extent::Check => Counts {
                starts: 2,
                rounds: 2,
                checks_a_round: 10,
                in_flight: Duration::from_millis(60),
                sample: 20,
                long_life: 100,
                idle: Duration::ZERO,
            },
        }
    }
}
