//! Errors of decoding a JSON value as an AHP message.

use proctor_core::json::{Json, ShapeError};

/// Error of decoding a JSON value as a message. The texts are part of replies on the wire.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The message is not a JSON object.
    #[error("{message} is an object, this is {found}")]
    NotAnObject {
        /// The message, with its article.
        message: &'static str,
        /// The JSON type that was found.
        found: &'static str,
    },
    /// A member has another JSON type.
    #[error("`{member}` is {expected}, this is {found}")]
    MemberType {
        /// The member.
        member: &'static str,
        /// The type that it must have.
        expected: &'static str,
        /// The JSON type that was found.
        found: &'static str,
    },
    /// A member's value does not have its shape.
    #[error("`{member}`: {error}")]
    Member {
        /// The member.
        member: &'static str,
        /// The decoding error.
        error: ShapeError,
    },
    /// A required member is absent.
    #[error("missing field `{0}`")]
    Missing(&'static str),
    /// The message as a whole does not have its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The error of a reply lacks its code or message.
    #[error("an error has a `code` and a `message`")]
    NoCodeOrMessage,
    /// A reply to a batch has no array of decisions.
    #[error("a reply to a batch has an array `decisions`")]
    NoDecisions,
    /// A message of a list is malformed.
    #[error("{error} at /{list}/{index}")]
    Item {
        /// The member that holds the list.
        list: &'static str,
        /// The position in the list.
        index: usize,
        /// The item's error.
        error: Box<MessageError>,
    },
}

impl MessageError {
    pub(super) fn not_an_object(message: &'static str, found: &Json) -> MessageError {
        MessageError::NotAnObject { message, found: found.type_name() }
    }

    pub(super) fn member_type(member: &'static str, expected: &'static str, found: &Json) -> MessageError {
        MessageError::MemberType { member, expected, found: found.type_name() }
    }

    pub(super) fn item(list: &'static str, index: usize, error: MessageError) -> MessageError {
        MessageError::Item { list, index, error: Box::new(error) }
    }
}
