//! Command-line options.

use std::time::Duration;

use crate::failure::Failure;

pub const USAGE: &str = "usage: cargo bench -p proctor --bench attest -- [--engine COMMAND [ARGUMENTS…]] [--seconds N] [--quick | --check]";

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
    /// The command that starts the engine; empty for the one that was built along.
    pub engine: Vec<String>,
    /// Time that requests are kept in flight.
    pub time: Duration,
    /// Amount of work.
    pub extent: Extent,
}

impl Options {
    /// Reads the words of the command line; nothing if there is nothing to do.
    pub fn read(words: impl Iterator<Item = String>) -> Result<Option<Options>, Failure> {
        let words: Vec<String> = words.collect();
        let has = |flag: &str| words.iter().any(|word| word == flag);
        // `cargo bench` says so; `cargo test` gives the words that are meant for its own harness.
        if !["--bench", "--engine", "--seconds", "--quick", "--check"].iter().any(|flag| has(flag)) {
            let mut filters = words.iter().filter(|word| !word.starts_with('-')).peekable();
            let wanted = filters.peek().is_none() || filters.any(|filter| "attest_bench".contains(filter));
            let check = Options { engine: Vec::new(), time: Duration::ZERO, extent: Extent::Check };
            return Ok((wanted && !has("--list")).then_some(check));
        }
        let mut options = Options { engine: Vec::new(), time: Duration::from_secs(5), extent: Extent::Full };
        let mut rest = words.into_iter().peekable();
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
                "--engine" => {
                    let ours = ["--bench", "--quick", "--check", "--seconds"];
                    while let Some(word) = rest.next_if(|word| !ours.contains(&word.as_str())) {
                        options.engine.push(word);
                    }
                    if options.engine.is_empty() {
                        return Err("`--engine`: give the command that starts it".into());
                    }
                }
                other => return Err(format!("`{other}` is not known").into()),
            }
        }
        Ok(Some(options))
    }
}
