//! The audit log of Agent Assembly: one JSON object a line, each with the hash of the one before.
//!
//! The bytes that are hashed and the form of a line are those of the released gateway, so its verifier reads what is
//! written here, and [`Verifier`] reads what it wrote.
//!
//! Limits of what the chain proves:
//! - It has no key. A process that can write the file can write a new history whose hashes fit.
//! - Entries removed at the end leave no trace.
//! - The hash puts neither a length before the payload nor a tag before an optional field. The same bytes under
//!   another name, as a root agent that becomes the parent agent, have the same hash.
//!
//! ```
//! use proctor_wire::assembly::chain::{Chain, Entry, EventType, Outcome, Verifier};
//!
//! let mut chain = Chain::default();
//! let mut verifier = Verifier::default();
//! for payload in [r#"{"action":"read"}"#, r#"{"action":"write"}"#] {
//!     let entry = Entry::new(EventType::ToolCallIntercepted, 5, [1; 16], [2; 16], payload.to_owned());
//!     let sealed = chain.seal(entry).unwrap();
//!     verifier.line(&sealed.line);
//!     chain.written(&sealed);
//! }
//! assert_eq!(verifier.finish(), Outcome::Verified { entries: 2 });
//! ```

mod entry;
mod event_type;
mod verify;

#[cfg(test)]
mod tests;

pub use entry::{Entry, EntryError, Finding, MAX_LINE_BYTES};
pub use event_type::EventType;
pub use verify::{Extent, Gaps, MAX_LISTED_GAPS, Outcome, Start, Tampering, TruncatedLine, Verifier};

/// The previous hash of the first entry.
pub const NO_HASH: [u8; 32] = [0; 32];

/// The writer's state of a log: the next sequence, and the hash of the last entry.
///
/// Sealing does not move the end: say [`Chain::written`] when the line stands in the log, or [`Chain::lost`] if it never
/// will. So the links hold whatever is lost, and what is lost shows as a gap. A truncated last line must be cut off the file
/// before the log goes on, or it becomes an unreadable line in the middle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Next sequence; none when all are used up.
    next_seq: Option<u64>,
    head: [u8; 32],
}

/// An entry with its sequence and hash, and its line without the line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// The entry.
    pub entry: Entry,
    /// The JSON line.
    pub line: String,
}

/// Error of adding an entry to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// No sequence is left.
    #[error("the log has used up all its sequences: begin a new file")]
    Full,
    /// The line would be longer than a reader takes.
    #[error("the entry is {bytes} bytes long and may have {MAX_LINE_BYTES}: shorten its payload")]
    TooLong {
        /// Length of the line.
        bytes: usize,
    },
    /// The finding names one kind in the clear and another in the label that is hashed.
    #[error("finding {index} has a label that names another kind than its own")]
    Label {
        /// Index of the finding, from 0.
        index: usize,
    },
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { next_seq: Some(0), head: NO_HASH }
    }
}

impl Chain {
    /// The log whose last entry this is.
    pub fn after(last: &Entry) -> Chain {
        Chain { next_seq: last.seq.checked_add(1), head: last.entry_hash }
    }

    /// The sequence of the next entry; none if all are used up.
    pub const fn next_seq(&self) -> Option<u64> {
        self.next_seq
    }

    /// The hash of the last entry, or [`NO_HASH`].
    pub const fn head(&self) -> &[u8; 32] {
        &self.head
    }

    /// The entry as the next of the log: with its sequence, the hash of the one before, and its own. Whatever it said of
    /// these three is replaced.
    pub fn seal(&self, mut entry: Entry) -> Result<Sealed, SealError> {
        entry.seq = self.next_seq.ok_or(SealError::Full)?;
        entry.previous_hash = self.head;
        entry.entry_hash = entry.hash();
        if let Some(index) = entry.credential_findings.iter().position(Finding::is_mislabelled) {
            return Err(SealError::Label { index });
        }
        let line = entry.to_line();
        if line.len() > MAX_LINE_BYTES {
            return Err(SealError::TooLong { bytes: line.len() });
        }
        Ok(Sealed { entry, line })
    }

    /// The entry stands in the log; the next one follows it.
    pub fn written(&mut self, sealed: &Sealed) {
        *self = Chain::after(&sealed.entry);
    }

    /// The next entry will never stand in the log. Its sequence is used up, so that the loss shows.
    pub fn lost(&mut self) {
        self.next_seq = self.next_seq.and_then(|seq| seq.checked_add(1));
    }
}
