//! Identifiers. Those that we make are UUIDv7, so that they sort by the time they were made.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::random::Randomness;
use crate::time::Timestamp;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// Creates a UUIDv7 from the given time and randomness.
            pub fn new(time: Timestamp, randomness: &dyn Randomness) -> $name {
                $name(new_uuid_v7(time, randomness))
            }

            /// Raw bytes.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// Restores an identifier from its raw bytes.
            pub fn from_bytes(bytes: [u8; 16]) -> $name {
                $name(Uuid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(out)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Parses the hyphenated lower-case form only: one identifier has one spelling.
            fn from_str(text: &str) -> Result<$name, InvalidId> {
                let uuid = Uuid::try_parse(text).map_err(|_| InvalidId)?;
                let mut buffer = Uuid::encode_buffer();
                if uuid.as_hyphenated().encode_lower(&mut buffer) != text {
                    return Err(InvalidId);
                }
                Ok($name(uuid))
            }
        }
    };
}

uuid_id!(
    /// A record's own identifier; for a decision, the `decision_id` on every wire.
    RecordId
);
uuid_id!(
    /// Our identifier of a session.
    SessionId
);
uuid_id!(
    /// The identifier of an approval.
    ApprovalId
);

/// A text that is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a UUID in lower-case hyphenated form")]
pub struct InvalidId;

fn new_uuid_v7(time: Timestamp, randomness: &dyn Randomness) -> Uuid {
    let mut bytes = [0u8; 10];
    randomness.fill(&mut bytes);
    let millis = u64::try_from(time.micros() / 1000).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
}

/// Draws an identifier again while it has twelve decimal digits in a row, dashes aside: the secret scanner takes thirteen or more for a card
/// number if their check digit fits, and records would redact the identifier. A source without variety is believed after eight attempts.
///
/// ```
/// let mut drawn = ["4111-1111-1111-1111-a", "41ab-cd11"].into_iter();
/// let id = proctor_core::id::drawn_without_long_number(|| drawn.next().unwrap().to_owned());
/// assert_eq!(id, "41ab-cd11");
/// ```
pub fn drawn_without_long_number(mut draw: impl FnMut() -> String) -> String {
    let mut id = draw();
    for _ in 0..8 {
        if longest_number(&id) < 12 {
            break;
        }
        id = draw();
    }
    id
}

fn longest_number(text: &str) -> usize {
    let (mut longest, mut current) = (0, 0);
    for byte in text.bytes().filter(|byte| *byte != b'-') {
        current = if byte.is_ascii_digit() { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeededRandomness;

    #[test]
    fn ids_sort_by_time_and_round_trip() {
        let randomness = SeededRandomness::new(1);
        let early = RecordId::new(Timestamp::from_micros(1_000_000), &randomness);
        let late = RecordId::new(Timestamp::from_micros(2_000_000), &randomness);
        assert!(early < late);
        assert_eq!(early.to_string().parse::<RecordId>(), Ok(early));
        assert_eq!(RecordId::from_bytes(*late.as_bytes()), late);
        assert_eq!(early.to_string().to_uppercase().parse::<RecordId>(), Err(InvalidId));
        assert_eq!("x".parse::<RecordId>(), Err(InvalidId));
    }
}
