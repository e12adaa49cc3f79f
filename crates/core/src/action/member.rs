//! Members of actions and of their facts as a table, so that readers, writers and rule languages go by one list.

use rust_decimal::Decimal;

use super::ActionKind;
use crate::json::Json;

/// The type of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberType {
    /// The kind of the action.
    Kind,
    /// A string.
    Text,
    /// Several strings.
    Texts,
    /// JSON as it was sent.
    Json,
    /// A count or a port.
    Number,
    /// An amount.
    Decimal,
}

/// The value of a member, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberRef<'a> {
    /// The kind of the action.
    Kind(ActionKind),
    /// A string.
    Text(&'a str),
    /// Several strings.
    Texts(&'a [String]),
    /// JSON as it was sent.
    Json(&'a Json),
    /// A count; zero if unknown.
    Number(u64),
    /// A number that may be absent.
    Optional(Option<u16>),
    /// An amount.
    Decimal(Decimal),
}

/// The value of a member, for writing.
#[derive(Debug)]
pub enum MemberMut<'a> {
    /// The kind of the action.
    Kind(&'a mut ActionKind),
    /// A string.
    Text(&'a mut String),
    /// Several strings.
    Texts(&'a mut Vec<String>),
    /// JSON as it was sent.
    Json(&'a mut Json),
    /// A number up to 2¹⁶.
    U16(&'a mut u16),
    /// A number up to 2³².
    U32(&'a mut u32),
    /// A number up to 2⁶⁴.
    U64(&'a mut u64),
    /// A number that may be absent.
    Optional(&'a mut Option<u16>),
    /// An amount.
    Decimal(&'a mut Decimal),
}

/// A Rust type that members have.
pub trait MemberField {
    /// Type of the member.
    const TYPE: MemberType;

    /// Borrows the value.
    fn borrowed(&self) -> MemberRef<'_>;

    /// Borrows the value for writing.
    fn borrowed_mut(&mut self) -> MemberMut<'_>;
}

macro_rules! member_field {
    ($type:ty, $kind:ident, $slot:ident, $field:ident => $borrowed:expr) => {
        impl MemberField for $type {
            const TYPE: MemberType = MemberType::$kind;

            fn borrowed(&self) -> MemberRef<'_> {
                let $field = self;
                $borrowed
            }

            fn borrowed_mut(&mut self) -> MemberMut<'_> {
                MemberMut::$slot(self)
            }
        }
    };
}

member_field!(ActionKind, Kind, Kind, field => MemberRef::Kind(*field));
member_field!(String, Text, Text, field => MemberRef::Text(field));
member_field!(Vec<String>, Texts, Texts, field => MemberRef::Texts(field));
member_field!(Json, Json, Json, field => MemberRef::Json(field));
member_field!(u16, Number, U16, field => MemberRef::Number(u64::from(*field)));
member_field!(u32, Number, U32, field => MemberRef::Number(u64::from(*field)));
member_field!(u64, Number, U64, field => MemberRef::Number(*field));
member_field!(Option<u16>, Number, Optional, field => MemberRef::Optional(*field));
member_field!(Decimal, Decimal, Decimal, field => MemberRef::Decimal(*field));

/// Defines the table of a struct's members: an enum with one variant for each field, its name in JSON and in rules, and access to the
/// field. A field of the struct that the table lacks does not compile.
#[macro_export]
macro_rules! member_table {
    (
        $(#[$attribute:meta])*
        pub enum $member:ident of $record:ident {
            $($variant:ident = $name:literal: $field:ident as $type:ty,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $member {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl $member {
            /// All members, in the order of the table.
            pub const ALL: &'static [$member] = &[$($member::$variant,)*];

            /// The names of all members.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self {
                    $($member::$variant => $name,)*
                }
            }

            /// The JSONPath: `$.` and the name.
            pub const fn path(self) -> &'static str {
                match self {
                    $($member::$variant => concat!("$.", $name),)*
                }
            }

            /// The member of that name.
            pub fn named(name: &str) -> Option<$member> {
                match name {
                    $($name => Some($member::$variant),)*
                    _ => None,
                }
            }

            /// The type.
            pub const fn member_type(self) -> $crate::action::MemberType {
                match self {
                    $($member::$variant => <$type as $crate::action::MemberField>::TYPE,)*
                }
            }

            /// The member's value.
            pub fn get(self, record: &$record) -> $crate::action::MemberRef<'_> {
                // INVARIANT: the pattern names every field, so the table is complete.
                let $record { $($field,)* } = record;
                match self {
                    $($member::$variant => $crate::action::MemberField::borrowed($field),)*
                }
            }

            /// The member's value, for writing.
            pub fn get_mut(self, record: &mut $record) -> $crate::action::MemberMut<'_> {
                match self {
                    $($member::$variant => $crate::action::MemberField::borrowed_mut(&mut record.$field),)*
                }
            }
        }
    };
}
