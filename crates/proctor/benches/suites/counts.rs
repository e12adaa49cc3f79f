//! Amount of work.

use crate::failure::Failure;

/// Amount of work, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Enough for numbers to publish.
    Full,
    /// Enough to see an order of magnitude.
    Quick,
    /// Enough to see that it works; no numbers.
    Check,
}

impl Extent {
    /// Reads the words of the command line; nothing if there is nothing to do.
    pub fn read(words: impl Iterator<Item = String>) -> Result<Option<Extent>, Failure> {
        let words: Vec<String> = words.collect();
        let has = |flag: &str| words.iter().any(|word| word == flag);
        // `cargo bench` says so; `cargo test` gives the words that are meant for its own harness.
        if !["--bench", "--quick", "--check"].iter().any(|flag| has(flag)) {
            let mut filters = words.iter().filter(|word| !word.starts_with('-')).peekable();
            let wanted = filters.peek().is_none() || filters.any(|filter| "suites_bench".contains(filter));
            return Ok((wanted && !has("--list")).then_some(Extent::Check));
        }
        let known = ["--bench", "--quick", "--check"];
        if let Some(other) = words.iter().find(|word| !known.contains(&word.as_str())) {
            return Err(format!("`{other}` is not known").into());
        }
        Ok(Some(if has("--check") {
            Extent::Check
        } else if has("--quick") {
            Extent::Quick
        } else {
            Extent::Full
        }))
    }
}

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
            },
            Extent::Quick => Counts {
                rounds: 5,
                few: 10,
                many: 110,
                events: 10_000,
                starts: 20,
                scale: [100, 1_000],
                memory: [100, 10_000],
            },
            Extent::Check => Counts {
                rounds: 1,
                few: 1,
                many: 3,
                events: 50,
                starts: 1,
                scale: [2, 10],
                memory: [100, 120],
            },
        }
    }
}
