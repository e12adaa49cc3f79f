//! Reading of messages from text.

use proctor_core::json::{Json, JsonError};

use super::Strictness;
use super::findings::{Findings, Warnings};
use super::limits::{MAX_MESSAGE, MAX_VALUES};

/// A valid message, with its warnings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read<T> {
    /// The message.
    pub message: T,
    /// Tolerated deviations.
    pub warnings: Warnings,
}

/// A message that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// More bytes than a message may have.
    #[error("message of {bytes} bytes is longer than {MAX_MESSAGE}")]
    TooLarge {
        /// Length of the message, or of the part that was read.
        bytes: u64,
    },
    /// No JSON text, or one with duplicate members, too many values or too many levels.
    #[error("message is not valid JSON: {0}")]
    Json(#[from] JsonError),
    /// JSON that violates the protocol.
    #[error("message is not valid: {}", .0.problems)]
    Invalid(Box<Findings>),
}

/// Parses the JSON text of a message within the limits of the protocol.
pub fn parse_json(text: &[u8]) -> Result<Json, ReadError> {
    if text.len() > MAX_MESSAGE {
        return Err(ReadError::TooLarge { bytes: text.len() as u64 });
    }
    Ok(Json::parse_bounded(text, MAX_VALUES)?)
}

/// A kind of message: how it is checked, and which nulls normalisation removes.
pub(super) trait Message: Sized {
    fn check(json: &Json, checker: &mut super::check::Checker);
    fn normalise(json: &mut Json);
    fn from_valid(json: Json) -> Self;
}

pub(super) fn check<T: Message>(json: &Json, strictness: Strictness) -> Findings {
    let mut checker = super::check::Checker::new(strictness);
    T::check(json, &mut checker);
    checker.findings
}

/// Checks a message, and removes nulls that stand for absent members. An invalid one is returned unchanged with its findings.
pub(super) fn read<T: Message>(
    mut json: Json,
    strictness: Strictness,
) -> Result<Read<T>, (Json, Box<Findings>)> {
    let mut checker = super::check::Checker::new(strictness);
    T::check(&json, &mut checker);
    if !checker.findings.is_valid() {
        return Err((json, Box::new(checker.findings)));
    }
    if checker.has_nulls {
        T::normalise(&mut json);
    }
    Ok(Read { message: T::from_valid(json), warnings: checker.findings.warnings })
}

/// The methods that all messages have.
macro_rules! message {
    ($name:ident, $article_and_name:literal) => {
        impl $name {
            #[doc = concat!("Reads ", $article_and_name, " from its JSON text.")]
            pub fn parse(
                text: &[u8],
                strictness: $crate::atp::Strictness,
            ) -> Result<$crate::atp::Read<$name>, $crate::atp::ReadError> {
                $name::read($crate::atp::parse_json(text)?, strictness)
            }

            #[doc = concat!("Reads ", $article_and_name, ". Known members that are `null` are removed; everything else is kept.")]
            pub fn read(
                json: proctor_core::json::Json,
                strictness: $crate::atp::Strictness,
            ) -> Result<$crate::atp::Read<$name>, $crate::atp::ReadError> {
                $crate::atp::read::read(json, strictness)
                    .map_err(|(_, findings)| $crate::atp::ReadError::Invalid(findings))
            }

            /// Findings of the message as it would be written, for messages that were built and not read.
            pub fn check(&self, strictness: $crate::atp::Strictness) -> $crate::atp::Findings {
                $crate::atp::read::check::<$name>(&self.json, strictness)
            }

            /// The message as JSON, unknown members included.
            pub fn as_json(&self) -> &proctor_core::json::Json {
                &self.json
            }

            /// The message as JSON, unknown members included.
            pub fn into_json(self) -> proctor_core::json::Json {
                self.json
            }

            /// Sets a member that the protocol does not define, or replaces one.
            #[must_use]
            pub fn with_member(mut self, name: &str, value: impl Into<proctor_core::json::Json>) -> $name {
                $crate::atp::object::set(&mut self.json, name, value.into());
                self
            }

            /// The version; 1.0 if it is absent.
            pub fn version(&self) -> $crate::atp::Version {
                let text = $crate::atp::object::text(&self.json, "version");
                text.and_then($crate::atp::Version::parse).unwrap_or_default()
            }

            /// The task id.
            pub fn task_id(&self) -> &str {
                $crate::atp::object::text(&self.json, "task_id").unwrap_or_default()
            }
        }

        /// One line of compact JSON, without its newline.
        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.json.fmt(out)
            }
        }
    };
}
pub(super) use message;
