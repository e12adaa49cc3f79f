//! Damage that `fsck` reports, by kind.

use std::fmt;

/// Kind of damage. The code word of a kind never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DamageKind {
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
    /// A body does not have the digest of its record.
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
    /// A state row differs from the fold of the records.
    State,
}

impl DamageKind {
    /// The code word.
    pub const fn code(self) -> &'static str {
        match self {
            DamageKind::Unreadable => "unreadable",
            DamageKind::Truncated => "truncated",
            DamageKind::Wal => "wal",
            DamageKind::Database => "database",
            DamageKind::Format => "format",
            DamageKind::Sequence => "sequence",
            DamageKind::Leaf => "leaf",
            DamageKind::Index => "index",
            DamageKind::Tile => "tile",
            DamageKind::Checkpoint => "checkpoint",
            DamageKind::BodyDigest => "body-digest",
            DamageKind::BodyMissing => "body-missing",
            DamageKind::BodyPresent => "body-present",
            DamageKind::Once => "once",
            DamageKind::Link => "link",
            DamageKind::Record => "record",
            DamageKind::State => "state",
        }
    }

    /// Advice for the operator.
    const fn advice(self) -> &'static str {
        match self {
            DamageKind::Unreadable | DamageKind::Truncated | DamageKind::Wal | DamageKind::Database => {
                "keep this copy, check the disk, and restore the state directory from a backup"
            }
            DamageKind::Format => {
                "use the version of proctor that wrote the ledger, or restore from a backup"
            }
            DamageKind::Sequence | DamageKind::Leaf | DamageKind::Tile | DamageKind::Checkpoint => {
                "somebody or something changed what was recorded: keep this copy, compare it with a backup and \
                 with checkpoints that witnesses hold, and restore"
            }
            DamageKind::BodyDigest | DamageKind::BodyMissing => {
                "the record itself stands and is proven; restore the body from a backup"
            }
            DamageKind::BodyPresent => "erase the body again, and find out how it came back",
            DamageKind::Index | DamageKind::Once | DamageKind::State => {
                "the records themselves stand; restore from a backup, or rebuild what is derived from them"
            }
            DamageKind::Link | DamageKind::Record => "the program that wrote this record is wrong: report it",
        }
    }
}

impl fmt::Display for DamageKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code())
    }
}

/// An item of damage, described for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The kind of damage.
    pub kind: DamageKind,
    /// The description of the damage.
    pub what: String,
    /// Position: a file, a table, a record.
    pub where_: String,
    /// Advice for the operator.
    pub advice: &'static str,
}

impl Damage {
    /// Creates an item with the advice of its kind.
    pub fn new(kind: DamageKind, where_: impl Into<String>, what: impl Into<String>) -> Damage {
        Damage { kind, what: what.into(), where_: where_.into(), advice: kind.advice() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} ({}; {})", self.where_, self.what, self.kind, self.advice)
    }
}
