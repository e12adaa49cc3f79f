//! Structure of manifests: a table of members for each kind of object.
//!
//! Validation walks these tables in their order, which is the order of findings; unknown keys and the published schemas come from
//! the same tables, so that they cannot differ.

mod identity;
mod profiles;
mod task;

pub(super) use identity::{FLAT_IDENTITY, IDENTITY};
pub(super) use profiles::{AUTHORIZATION_PROFILE, EVIDENCE_PROFILE, IDENTITY_PROFILE, PROOF_PROFILE};
pub(super) use task::{HANDLER, MANIFEST, SHELL, TASK, WORKFLOW};

/// An object of a manifest.
#[derive(Debug)]
pub(super) struct Block {
    /// Name of its definition in the schema.
    pub(super) name: &'static str,
    /// Whether the schema has a definition for it; otherwise it is written where it is used.
    pub(super) defined: bool,
    /// Description for people.
    pub(super) note: &'static str,
    /// Members, in the order in which they are checked.
    pub(super) members: &'static [Member],
}

impl Block {
    /// Whether this is that table, and not one of the same content.
    pub(super) fn is(&self, table: &'static Block) -> bool {
        std::ptr::eq(self, table)
    }
}

/// A member of an object.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) kind: Kind,
}

/// Kinds of values.
#[derive(Debug)]
pub(super) enum Kind {
    /// A string that is not blank and has no control characters.
    Text,
    /// Any string, also an empty one.
    AnyText,
    /// A name of the manifest's own.
    Identifier,
    /// A string of few characters that is safe on command lines.
    Token,
    /// The name of an environment variable.
    EnvironmentName,
    /// The beginning of a file name.
    FilePrefix,
    /// A trigger's condition: `contains:` or `regex:`.
    Condition,
    /// A boolean.
    Boolean,
    /// An integer of at least this.
    Integer(u32),
    /// A number that is not negative.
    Amount,
    /// One of these words.
    Word(&'static [&'static str]),
    /// An array of texts.
    Texts,
    /// An array of anything.
    List,
    /// An object of anything: an extension point, whose keys are not checked.
    Map,
    /// Names of environment variables, and texts.
    Environment,
    /// Any value.
    Anything,
    /// A member of earlier versions, refused with any value.
    Removed,
    /// An object with members of its own.
    Block(&'static Block),
    /// An array of such objects.
    Blocks(&'static Block),
    /// A source of a value: one of several ways to get it.
    Source(&'static Block),
    /// An identity in its flat or its structured shape.
    Identity,
}

/// An object with a definition in the schema.
const fn block(name: &'static str, note: &'static str, members: &'static [Member]) -> Block {
    Block { name, defined: true, note, members }
}

/// An object that the schema writes where it is used.
const fn inline(name: &'static str, note: &'static str, members: &'static [Member]) -> Block {
    Block { name, defined: false, note, members }
}

const fn required(name: &'static str, kind: Kind) -> Member {
    Member { name, required: true, kind }
}

const fn optional(name: &'static str, kind: Kind) -> Member {
    Member { name, required: false, kind }
}

/// Trust levels, from the lowest.
pub(super) const TRUST_LEVELS: &[&str] = &["untrusted", "restricted", "supervised", "autonomous"];

#[cfg(test)]
mod tests;
