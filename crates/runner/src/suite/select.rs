//! Selection of tests: by tags, by partition.

use std::str::FromStr;

use proctor_core::digest::Digest;
use proctor_core::quoted;

/// Partitions of a suite.
const MAX_PARTITIONS: u64 = 10_000;

/// A filter by tags: `a,b` selects tests with one of them, `!c` excludes, both together select and exclude, nothing selects all.
///
/// ```
/// use proctor_runner::suite::TagFilter;
/// let filter = TagFilter::parse("smoke, !slow");
/// assert!(filter.selects(&["smoke".to_owned()]));
/// assert!(!filter.selects(&["smoke".to_owned(), "slow".to_owned()]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TagFilter {
    include: Vec<String>,
    exclude: Vec<String>,
}

impl TagFilter {
    /// Reads a comma-separated list.
    #[must_use]
    pub fn parse(written: &str) -> TagFilter {
        let mut filter = TagFilter::default();
        for tag in written.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            match tag.strip_prefix('!').map(str::trim) {
                Some("") => {}
                Some(excluded) => filter.exclude.push(excluded.to_owned()),
                None => filter.include.push(tag.to_owned()),
            }
        }
        filter
    }

    /// Whether a test with these tags is selected.
    pub fn selects(&self, tags: &[String]) -> bool {
        let has = |wanted: &[String]| wanted.iter().any(|tag| tags.contains(tag));
        (self.include.is_empty() || has(&self.include)) && !has(&self.exclude)
    }
}

/// A share of a suite, written `hash:M/N`. A test belongs to exactly one of the N partitions, by its id alone, so that adding a test
/// moves no other.
///
/// ```
/// use proctor_runner::suite::Partition;
/// let partitions: Vec<Partition> = (1..=3).map(|number| format!("hash:{number}/3").parse().unwrap()).collect();
/// assert_eq!(partitions.iter().filter(|partition| partition.selects("inv-1")).count(), 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    number: u64,
    count: u64,
}

/// A text that names no partition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not a partition; write `hash:M/N` with M from 1 to N, and N at most {MAX_PARTITIONS}", quoted(.0))]
pub struct PartitionError(String);

impl FromStr for Partition {
    type Err = PartitionError;

    fn from_str(written: &str) -> Result<Partition, PartitionError> {
        let read = || {
            let (number, count) = written.strip_prefix("hash:")?.split_once('/')?;
            let digits = |text: &str| {
                (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
                    .then(|| text.parse().ok())?
            };
            let (number, count): (u64, u64) = (digits(number)?, digits(count)?);
            ((1..=count).contains(&number) && count <= MAX_PARTITIONS).then_some(Partition { number, count })
        };
        read().ok_or_else(|| PartitionError(written.to_owned()))
    }
}

impl Partition {
    /// Whether the test of this id belongs to the partition.
    pub fn selects(&self, id: &str) -> bool {
        let digest = Digest::of(id.as_bytes());
        let hash = digest.as_bytes().iter().take(8).fold(0_u64, |hash, byte| (hash << 8) | u64::from(*byte));
        hash % self.count == self.number - 1
    }
}
