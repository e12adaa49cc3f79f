//! The trust file: the public keys of ledgers, witnesses and approvers whose signatures are accepted.

use super::{Algorithm, VerifierKey, VerifierKeyError};
use std::str::FromStr;

/// The largest trust file, in bytes.
pub const MAX_TRUST_BYTES: usize = 64 * 1024;

/// Trusted keys, and the number of witnesses that must have cosigned.
///
/// As text: lines `log <verifier key>`, `witness <verifier key>`, `approver <verifier key>` and at most one
/// `quorum <n>`; empty lines and lines that begin with `#` are skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// Ledgers whose checkpoints are believed.
    pub logs: Vec<VerifierKey>,
    /// Witnesses whose cosignatures count.
    pub witnesses: Vec<VerifierKey>,
    /// Trusted approvers.
    pub approvers: Vec<VerifierKey>,
    /// Number of witnesses that must have cosigned a checkpoint; all of them when the file does not say.
    pub quorum: usize,
}

/// An error in a trust file, with its line and column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub struct TrustError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The violated rule.
    pub problem: TrustProblem,
}

/// Violations of the trust file's format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrustProblem {
    /// The file is too large to be a trust file.
    #[error("the file has {bytes} bytes; at most 65536 are read")]
    TooLarge {
        /// Length in bytes.
        bytes: usize,
    },
    /// The first word is not known.
    #[error("unknown word `{word}`; a line begins with `log`, `witness`, `approver`, `quorum` or `#`")]
    UnknownWord {
        /// The word.
        word: String,
    },
    /// Missing value.
    #[error("`{word}` must be followed by {expected}")]
    NothingFollows {
        /// The first word.
        word: String,
        /// The missing operand.
        expected: &'static str,
    },
    /// Trailing text after the value.
    #[error("unexpected text after the value; a line has one word, one space and one value")]
    Surplus,
    /// The verifier key is not one.
    #[error("{0}")]
    Key(VerifierKeyError),
    /// The key is for other signatures than this role makes.
    #[error("a {role} needs a key of algorithm `{expected}`, but this one is of `{found}`")]
    WrongAlgorithm {
        /// The first word.
        role: &'static str,
        /// The algorithm of the role.
        expected: Algorithm,
        /// The algorithm of the key.
        found: Algorithm,
    },
    /// The same public key was named before: one witness would count twice, or a ledger would witness itself.
    #[error("this public key is named already on line {first}; each key has one role")]
    KeyTwice {
        /// The line that names it first.
        first: usize,
    },
    /// The number is not one.
    #[error("the quorum is not a whole number without sign and leading zeros")]
    QuorumForm,
    /// The quorum is given twice.
    #[error("the quorum is given already on line {first}")]
    QuorumTwice {
        /// The line of the first.
        first: usize,
    },
    /// More witnesses are asked for than are named.
    #[error("a quorum of {quorum} can never be reached with {witnesses} witnesses")]
    QuorumTooLarge {
        /// The quorum asked for.
        quorum: usize,
        /// Number of witnesses that the file names.
        witnesses: usize,
    },
}

impl FromStr for Trust {
    type Err = TrustError;

    fn from_str(text: &str) -> Result<Self, TrustError> {
        if text.len() > MAX_TRUST_BYTES {
            let problem = TrustProblem::TooLarge { bytes: text.len() };
            return Err(TrustError { line: 1, column: 1, problem });
        }
        let mut reading = Reading::default();
        for (line, content) in (1..).zip(text.lines()) {
            reading.line(line, content).map_err(|(column, problem)| TrustError { line, column, problem })?;
        }
        reading.finish()
    }
}

impl std::fmt::Display for Trust {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.logs.iter().try_for_each(|key| writeln!(formatter, "log {key}"))?;
        self.witnesses.iter().try_for_each(|key| writeln!(formatter, "witness {key}"))?;
        self.approvers.iter().try_for_each(|key| writeln!(formatter, "approver {key}"))?;
        writeln!(formatter, "quorum {}", self.quorum)
    }
}

/// A trust file half read.
#[derive(Default)]
struct Reading {
    trust: Trust,
    /// Line of each key, for messages about duplicates.
    seen: std::collections::BTreeMap<[u8; 32], usize>,
    quorum: Option<(usize, usize, usize)>,
}

impl Reading {
    /// Parses one line; an error has its column.
    fn line(&mut self, line: usize, content: &str) -> Result<(), (usize, TrustProblem)> {
        let content = content.trim_end_matches(['\r', ' ', '\t']);
        if content.is_empty() || content.starts_with('#') {
            return Ok(());
        }
        let (word, value) = content.split_once(' ').unwrap_or((content, ""));
        let column = word.chars().count() + 2;
        let expected = match word {
            "log" | "witness" | "approver" => "a verifier key",
            "quorum" => "a number",
            _ => return Err((1, TrustProblem::UnknownWord { word: word.chars().take(40).collect() })),
        };
        if value.is_empty() {
            return Err((column - 1, TrustProblem::NothingFollows { word: word.to_owned(), expected }));
        }
        if let Some(position) = value.chars().position(char::is_whitespace) {
            return Err((column + position, TrustProblem::Surplus));
        }
        let taken = match word {
            "log" => self.key(line, "log", Algorithm::Ed25519, value).map(|key| self.trust.logs.push(key)),
            "witness" => self
                .key(line, "witness", Algorithm::CosignatureV1, value)
                .map(|key| self.trust.witnesses.push(key)),
            "approver" => self
                .key(line, "approver", Algorithm::Ed25519, value)
                .map(|key| self.trust.approvers.push(key)),
            _ => self.take_quorum(line, column, value),
        };
        taken.map_err(|problem| (column, problem))
    }

    fn key(
        &mut self,
        line: usize,
        role: &'static str,
        expected: Algorithm,
        value: &str,
    ) -> Result<VerifierKey, TrustProblem> {
        let key: VerifierKey = value.parse().map_err(TrustProblem::Key)?;
        if key.algorithm() != expected {
            return Err(TrustProblem::WrongAlgorithm { role, expected, found: key.algorithm() });
        }
        if let Some(first) = self.seen.insert(*key.public_key(), line) {
            return Err(TrustProblem::KeyTwice { first });
        }
        Ok(key)
    }

    fn take_quorum(&mut self, line: usize, column: usize, value: &str) -> Result<(), TrustProblem> {
        if let Some((_, first, _)) = self.quorum {
            return Err(TrustProblem::QuorumTwice { first });
        }
        let quorum: usize = value.parse().map_err(|_| TrustProblem::QuorumForm)?;
        if quorum.to_string() != value {
            return Err(TrustProblem::QuorumForm);
        }
        self.quorum = Some((quorum, line, column));
        Ok(())
    }

    fn finish(mut self) -> Result<Trust, TrustError> {
        let witnesses = self.trust.witnesses.len();
        self.trust.quorum = match self.quorum {
            None => witnesses,
            Some((quorum, line, column)) if quorum > witnesses => {
                let problem = TrustProblem::QuorumTooLarge { quorum, witnesses };
                return Err(TrustError { line, column, problem });
            }
            Some((quorum, _, _)) => quorum,
        };
        Ok(self.trust)
    }
}
