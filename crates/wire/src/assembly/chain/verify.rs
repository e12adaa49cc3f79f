//! Verification of an audit log, line by line, in constant memory.

use super::{Chain, Entry, EntryError, NO_HASH};

/// Number of gaps that are listed; more are counted.
pub const MAX_LISTED_GAPS: usize = 32;

/// The result of verifying a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The log starts with sequence 0, every hash and link holds, and no entry is missing in between.
    Verified {
        /// Number of entries.
        entries: u64,
    },
    /// All hashes and links hold, but entries are missing. At least one of the three is not empty.
    Incomplete {
        /// Number of entries.
        entries: u64,
        /// State of the log's start, if it does not begin at the beginning.
        start: Option<Start>,
        /// Sequences that are missing in between.
        gaps: Gaps,
        /// The last line, if its write was cut off.
        truncated: Option<TruncatedLine>,
    },
    /// A line was changed, removed, added or moved.
    Tampered {
        /// The line, from 1.
        line: u64,
        /// The sequence that the line states, if it can be read.
        seq: Option<u64>,
        /// The violation.
        why: Tampering,
        /// Number of valid entries before it.
        entries: u64,
    },
}

/// Start of a log that does not begin at the beginning: at sequence 0 with no hash before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The line, from 1.
    pub line: u64,
    /// The first sequence that is there.
    pub seq: u64,
    /// The hash of the entry before it, which is not there.
    pub previous_hash: [u8; 32],
}

/// Sequences that are missing though the links hold: entries that were lost before they reached the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gaps {
    /// Number of gaps.
    pub count: u64,
    /// Number of missing entries in all of them.
    pub missing: u64,
    /// The first and last missing sequence of each, at most [`MAX_LISTED_GAPS`].
    pub listed: Vec<(u64, u64)>,
}

/// A last line that was not written to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruncatedLine {
    /// The line, from 1.
    pub line: u64,
    /// The violation.
    pub why: EntryError,
}

/// Violations that only a changed log has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tampering {
    /// The entry was changed after its hash was taken, or its hash was.
    #[error("the entry does not have the hash that it states")]
    Hash {
        /// The hash that it has.
        computed: [u8; 32],
        /// The hash that it states.
        stated: [u8; 32],
    },
    /// The previous entry was another one.
    #[error("the entry does not follow the one before it")]
    Link {
        /// The hash of the entry before.
        expected: [u8; 32],
        /// The hash that it states for it.
        stated: [u8; 32],
    },
    /// Sequences repeat or go back. Nothing that writes a log does that.
    #[error("sequence {seq} comes after sequence {after}")]
    Order {
        /// The sequence of the entry.
        seq: u64,
        /// The sequence of the one before.
        after: u64,
    },
    /// The kind of a finding, which is not hashed, is not the one in its label, which is.
    #[error("finding {index} has a label that names another kind than its own")]
    Label {
        /// Index of the finding, from 0.
        index: usize,
        /// The label.
        label: String,
        /// The kind.
        kind: String,
    },
    /// The line is no entry, and not the last one.
    #[error("the line cannot be read: {0}")]
    Unreadable(EntryError),
}

/// First and last entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first sequence.
    pub first_seq: u64,
    /// The last sequence.
    pub last_seq: u64,
    /// The hash of the last entry. Kept elsewhere, it shows later whether the log still has this entry.
    pub head: [u8; 32],
}

/// Reads a log line by line.
#[derive(Debug, Clone, Default)]
pub struct Verifier {
    lines: u64,
    entries: u64,
    extent: Option<Extent>,
    start: Option<Start>,
    gaps: Gaps,
    /// A line that is no entry: truncated if it is the last one.
    unreadable: Option<TruncatedLine>,
    tampered: Option<(u64, Option<u64>, Tampering)>,
}

impl Verifier {
    /// Verifies the next line, with or without its line break; blank lines do not count. Returns whether to continue: after the first line
    /// that was tampered with, later lines prove nothing.
    pub fn line(&mut self, line: impl AsRef<[u8]>) -> bool {
        if self.tampered.is_some() {
            return false;
        }
        self.lines = self.lines.saturating_add(1);
        let line = line.as_ref();
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        // Looking through a line that is too long for blanks would be work for nothing.
        if line.len() <= super::MAX_LINE_BYTES && line.trim_ascii().is_empty() {
            return true;
        }
        if let Some(TruncatedLine { line, why }) = self.unreadable.take() {
            self.tampered = Some((line, None, Tampering::Unreadable(why)));
            return false;
        }
        match Entry::parse(line) {
            Ok(entry) => self.entry(&entry),
            // Only what could be the beginning of a line can be a write that was cut off.
            Err(why @ EntryError::NotJson(_)) => {
                self.unreadable = Some(TruncatedLine { line: self.lines, why });
            }
            Err(why) => self.tampered = Some((self.lines, None, Tampering::Unreadable(why))),
        }
        self.tampered.is_none()
    }

    fn entry(&mut self, entry: &Entry) {
        if let Some(why) = self.problem(entry) {
            self.tampered = Some((self.lines, Some(entry.seq), why));
            return;
        }
        match &self.extent {
            None if entry.seq != 0 || entry.previous_hash != NO_HASH => {
                self.start =
                    Some(Start { line: self.lines, seq: entry.seq, previous_hash: entry.previous_hash });
            }
            None => {}
            Some(extent) => self.gaps.add(extent.last_seq, entry.seq),
        }
        let first_seq = self.extent.map_or(entry.seq, |extent| extent.first_seq);
        self.extent = Some(Extent { first_seq, last_seq: entry.seq, head: entry.entry_hash });
        self.entries = self.entries.saturating_add(1);
    }

    fn problem(&self, entry: &Entry) -> Option<Tampering> {
        let computed = entry.hash();
        if computed != entry.entry_hash {
            return Some(Tampering::Hash { computed, stated: entry.entry_hash });
        }
        if let Some(extent) = &self.extent {
            if entry.previous_hash != extent.head {
                return Some(Tampering::Link { expected: extent.head, stated: entry.previous_hash });
            }
            if entry.seq <= extent.last_seq {
                return Some(Tampering::Order { seq: entry.seq, after: extent.last_seq });
            }
        }
        let mut findings = entry.credential_findings.iter().enumerate();
        findings.find(|(_, finding)| finding.is_mislabelled()).map(|(index, finding)| Tampering::Label {
            index,
            label: finding.matched.clone(),
            kind: finding.kind.clone(),
        })
    }

    /// First and last of the valid entries; none if there are none.
    pub const fn extent(&self) -> Option<Extent> {
        self.extent
    }

    /// The end of the log, for going on after the last entry that holds.
    pub fn chain(&self) -> Chain {
        self.extent.map_or_else(Chain::default, |extent| Chain {
            next_seq: extent.last_seq.checked_add(1),
            head: extent.head,
        })
    }

    /// The result. A log without entries is verified: nothing in it was changed.
    pub fn finish(self) -> Outcome {
        let Verifier { entries, start, gaps, unreadable: truncated, tampered, .. } = self;
        if let Some((line, seq, why)) = tampered {
            return Outcome::Tampered { line, seq, why, entries };
        }
        if start.is_none() && gaps.count == 0 && truncated.is_none() {
            return Outcome::Verified { entries };
        }
        Outcome::Incomplete { entries, start, gaps, truncated }
    }
}

impl Gaps {
    /// Records the gap between two entries, if there is one.
    fn add(&mut self, before: u64, after: u64) {
        // INVARIANT: `before` is less than `after`, and all gaps lie apart within 64 bits, so nothing here overflows.
        let missing = after.saturating_sub(before).saturating_sub(1);
        if missing == 0 {
            return;
        }
        self.count = self.count.saturating_add(1);
        self.missing = self.missing.saturating_add(missing);
        if self.listed.len() < MAX_LISTED_GAPS {
            self.listed.push((before.saturating_add(1), after.saturating_sub(1)));
        }
    }
}
