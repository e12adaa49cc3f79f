//! Members of objects. `null` means absent everywhere in a manifest.

use proctor_core::json::Json;

/// The member of that name, unless it is `null`.
pub(in crate::agentcli) fn member<'a>(object: &'a Json, name: &str) -> Option<&'a Json> {
    object.get(name).filter(|value| !value.is_null())
}

/// The string member of that name.
pub(in crate::agentcli) fn text<'a>(object: &'a Json, name: &str) -> Option<&'a str> {
    member(object, name).and_then(Json::as_str)
}

/// The items of an array member; none if it is absent.
pub(in crate::agentcli) fn items<'a>(object: &'a Json, name: &str) -> &'a [Json] {
    member(object, name).and_then(Json::as_array).unwrap_or_default()
}

/// An object with these members. One allocation holds them all: outputs have many.
pub(in crate::agentcli) fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The object without one member.
pub(in crate::agentcli) fn without(object: &Json, name: &str) -> Json {
    match object {
        Json::Object(members) => {
            Json::Object(members.iter().filter(|(key, _)| key != name).cloned().collect())
        }
        other => other.clone(),
    }
}

/// Replaces a member at its place, or appends it.
pub(in crate::agentcli) fn set(object: &mut Json, name: &str, value: Json) {
    if let Json::Object(members) = object {
        match members.iter_mut().find(|(key, _)| key == name) {
            Some((_, slot)) => *slot = value,
            None => members.push((name.to_owned(), value)),
        }
    }
}

/// A number that the manifest may leave out. Its literal is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agentcli) enum Amount<'a> {
    /// As the manifest writes it.
    Written(&'a Json),
    /// The protocol's default.
    Default(u32),
}

impl<'a> Amount<'a> {
    /// The written number, else the default.
    pub(in crate::agentcli) fn or(written: Option<&'a Json>, default: u32) -> Amount<'a> {
        written.map_or(Amount::Default(default), Amount::Written)
    }

    /// Value for arithmetic.
    pub(in crate::agentcli) fn value(self) -> u64 {
        match self {
            Amount::Written(json) => integer(json).unwrap_or_default(),
            Amount::Default(number) => number.into(),
        }
    }
}

impl From<Amount<'_>> for Json {
    fn from(amount: Amount<'_>) -> Json {
        match amount {
            Amount::Written(json) => json.clone(),
            Amount::Default(number) => number.into(),
        }
    }
}

/// Value of an integral number, however it is written (`1000`, `1e3`, `1000.0`). What exceeds the range saturates.
pub(in crate::agentcli) fn integer(value: &Json) -> Option<u64> {
    let Json::Number(literal) = value else { return None };
    if let Ok(integer) = literal.parse() {
        return Some(integer);
    }
    let number: f64 = literal.parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be integral and not negative; larger numbers saturate"
    )]
    (number.fract() == 0.0 && number >= 0.0 || number.is_infinite() && number > 0.0).then_some(number as u64)
}
