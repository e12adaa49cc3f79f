//! Findings: the kinds of damage that `fsck` reports.

use std::fmt;

/// Kinds of findings. Each has a code word that does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// The file is missing, is no database, or cannot be read.
    Unreadable,
    /// The file ends before its last page.
    Truncated,
    /// The write-ahead log is damaged before its end.
    Wal,
    /// The database's own check found damage.
    Database,
    /// The tables are not those of this format, or the format is another.
    Format,
    /// A record is missing, or one is there beyond the end.
    Sequence,
    /// A record's leaf is not one, or not in its canonical form.
    Leaf,
    /// An index does not say what the records say.
    Index,
    /// Stored tree hashes do not fit the records.
    Tile,
    /// A checkpoint is badly signed, of the wrong root, or beyond the end.
    Checkpoint,
    /// A body does not have the digest that its record gives.
    BodyDigest,
    /// A body is missing, but no record says that it was erased.
    BodyMissing,
    /// A body is there that a record says was erased, or that belongs to no record.
    BodyPresent,
    /// The table of unique keys does not say what the records say.
    Once,
    /// A record links to itself, to a later one, or to none.
    Link,
    /// A retracted, gap or erasure record does not say what such a record has to say.
    Record,
    /// A state row is not what the records give.
    State,
}

impl FindingKind {
    /// The code word.
    pub const fn code(self) -> &'static str {
        match self {
            FindingKind::Unreadable => "unreadable",
            FindingKind::Truncated => "truncated",
            FindingKind::Wal => "wal",
            FindingKind::Database => "database",
            FindingKind::Format => "format",
            FindingKind::Sequence => "sequence",
            FindingKind::Leaf => "leaf",
            FindingKind::Index => "index",
            FindingKind::Tile => "tile",
            FindingKind::Checkpoint => "checkpoint",
            FindingKind::BodyDigest => "body-digest",
            FindingKind::BodyMissing => "body-missing",
            FindingKind::BodyPresent => "body-present",
            FindingKind::Once => "once",
            FindingKind::Link => "link",
            FindingKind::Record => "record",
            FindingKind::State => "state",
        }
    }

    /// Advice for the operator.
    const fn advice(self) -> &'static str {
        match self {
            FindingKind::Unreadable | FindingKind::Truncated | FindingKind::Wal | FindingKind::Database => {
                "keep this copy, check the disk, and restore the state directory from a backup"
            }
            FindingKind::Format => {
                "use the version of proctor that wrote the ledger, or restore from a backup"
            }
            FindingKind::Sequence | FindingKind::Leaf | FindingKind::Tile | FindingKind::Checkpoint => {
                "somebody or something changed what was recorded: keep this copy, compare it with a backup and \
                 with checkpoints that witnesses hold, and restore"
            }
            FindingKind::BodyDigest | FindingKind::BodyMissing => {
                "the record itself stands and is proven; restore the body from a backup"
            }
            FindingKind::BodyPresent => "erase the body again, and find out how it came back",
            FindingKind::Index | FindingKind::Once | FindingKind::State => {
                "the records themselves stand; restore from a backup, or rebuild what is derived from them"
            }
            FindingKind::Link | FindingKind::Record => {
                "the program that wrote this record is wrong: report it"
            }
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code())
    }
}

/// One thing that is wrong, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The kind of damage.
    pub kind: FindingKind,
    /// The description of the damage.
    pub what: String,
    /// Position: a file, a table, a record.
    pub where_: String,
    /// Advice for the operator.
    pub advice: &'static str,
}

impl Finding {
    /// A finding with the advice that belongs to its kind.
    pub fn new(kind: FindingKind, where_: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { kind, what: what.into(), where_: where_.into(), advice: kind.advice() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} ({}; {})", self.where_, self.what, self.kind, self.advice)
    }
}
