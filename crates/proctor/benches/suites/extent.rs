//! Amount of work of a bench, by the words of its command line.

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
    /// Reads the words of the command line of the bench with this name; nothing if there is nothing to do.
    pub fn read(bench: &str, words: impl Iterator<Item = String>) -> Result<Option<Extent>, Failure> {
        let words: Vec<String> = words.collect();
        let has = |flag: &str| words.iter().any(|word| word == flag);
        // `cargo bench` says so; `cargo test` gives the words that are meant for its own harness.
        if !["--bench", "--quick", "--check"].iter().any(|flag| has(flag)) {
            let mut filters = words.iter().filter(|word| !word.starts_with('-')).peekable();
            let wanted = filters.peek().is_none() || filters.any(|filter| bench.contains(filter));
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
