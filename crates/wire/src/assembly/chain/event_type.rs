//! Event types of audit log entries, with their numbers and names.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Declares the types once: number, name, what it means.
macro_rules! event_types {
    ($($number:literal $name:ident $meaning:literal)*) => {
        /// The type of an entry's event. Lines have its name, hashes its number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum EventType {
            $(#[doc = $meaning] $name = $number,)*
        }

        impl EventType {
            /// All types, by number.
            pub const ALL: &'static [EventType] = &[$(EventType::$name),*];

            /// The number that is hashed.
            pub const fn number(self) -> u32 {
                self as u32
            }

            /// The name that lines say.
            pub const fn name(self) -> &'static str {
                match self {
                    $(EventType::$name => stringify!($name),)*
                }
            }

            /// The type of that name.
            pub fn from_name(name: &str) -> Option<EventType> {
                match name {
                    $(stringify!($name) => Some(EventType::$name),)*
                    _ => None,
                }
            }

            /// The type of that number.
            pub const fn from_number(number: u32) -> Option<EventType> {
                match number {
                    $($number => Some(EventType::$name),)*
                    _ => None,
                }
            }
        }
    };
}

event_types! {
    0 ToolCallIntercepted "An action was looked at, and allowed."
    1 PolicyViolation "An action was denied."
    2 CredentialLeakBlocked "Credentials were found in an action and taken out."
    3 ApprovalRequested "An action waits for a person."
    4 ApprovalGranted "A person granted it."
    5 ApprovalDenied "A person denied it."
    6 BudgetLimitApproached "Most of a budget is spent."
    7 BudgetLimitExceeded "A budget is spent."
    8 ApprovalTimedOut "Nobody decided in time."
    9 ApprovalRouted "An approval was sent to those who may decide."
    10 ApprovalEscalated "An approval was passed on to others."
    11 AgentForceDeregistered "An agent was removed by force."
    12 MessageBlocked "A message between agents was stopped."
    13 ToolDispatched "A tool was called on behalf of an agent."
    14 A2ACallIntercepted "A call from one agent to another was looked at, and allowed."
    15 A2AImpersonationAttempted "An agent pretended to be another."
    16 SandboxStarted "A sandbox began."
    17 SandboxFilesystemBlocked "A sandbox refused access to a file."
    18 SandboxCpuTimeout "A sandbox ran out of processor time."
    19 SandboxOomKilled "A sandbox ran out of memory."
    20 SandboxTerminated "A sandbox ended."
    21 SandboxHostFnRateLimited "A sandbox called its host too often."
    22 GovernanceMutation "The rules themselves were changed."
}

impl fmt::Display for EventType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl Serialize for EventType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EventType, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        EventType::from_name(&name).ok_or_else(|| {
            let shown: String = name.chars().take(80).collect();
            D::Error::custom(format_args!("the event type `{shown}` is not known"))
        })
    }
}
