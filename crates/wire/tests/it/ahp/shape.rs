//! Test of every type of the protocol: its members, and the result without each of them.

use std::fmt::{Debug, Display};

use proctor_core::json::Json;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The members of a type, each with an example. A number's example says its kind: `7` is unsigned, `-7` signed,
/// `0.9` any number.
#[derive(Default)]
pub(crate) struct Shape<'a> {
    /// Must be there.
    pub(crate) required: &'a [(&'a str, &'a str)],
    /// May be absent or null, and is then not written.
    pub(crate) optional: &'a [(&'a str, &'a str)],
    /// May be absent or null, and is then written as null.
    pub(crate) nullable: &'a [(&'a str, &'a str)],
    /// May be absent but not null; the third is what is then written, if anything.
    pub(crate) defaulted: &'a [(&'a str, &'a str, &'a str)],
    /// Members of any type.
    pub(crate) anything: &'a [&'a str],
}

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Tests a type that is read and written as it is.
pub(crate) fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(shape: &Shape<'_>) {
    check_with(shape, Json::read::<T>, |read| Json::from_type(read).unwrap());
}

/// Tests a type that is read and written in a way of its own.
pub(crate) fn check_with<T: PartialEq + Debug, E: Display + Debug + PartialEq>(
    shape: &Shape<'_>,
    read: impl Fn(&Json) -> Result<T, E>,
    write: impl Fn(&T) -> Json,
) {
    every_selection_of_members(shape, &read, &write);
    let full: Vec<_> = every_member(shape).collect();
    let whole = read(&object(&full)).unwrap();
    let more = object(&full).with("x_unknown", json(r#"{"of":[1e400,"any kind"]}"#));
    // A reader of tagged values looks at every member, and 1e400 is no number to it: a smaller one, then.
    let more =
        if read(&more).is_ok() { more } else { object(&full).with("x_unknown", json(r#"{"of":[1]}"#)) };
    assert_eq!(read(&more).as_ref(), Ok(&whole), "unknown members are ignored");

    for (name, _) in shape.required {
        let error = read(&without(&full, name)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(&format!("missing field `{name}`")), "without `{name}`: {error}");
        let null = read(&replaced(&full, name, "null"));
        assert_eq!(null.is_ok(), shape.anything.contains(name), "`{name}` null: {null:?}");
    }
    for (name, _) in shape.optional.iter().chain(shape.nullable) {
        let absent = read(&without(&full, name)).unwrap();
        assert_eq!(read(&replaced(&full, name, "null")), Ok(absent), "`{name}` null is the same as absent");
    }
    for (name, ..) in shape.defaulted {
        assert!(read(&replaced(&full, name, "null")).is_err(), "`{name}` may be absent, not null");
    }
    for (name, example) in &full {
        if !shape.anything.contains(name) {
            for wrong in wrong_for(example) {
                let read = read(&replaced(&full, name, wrong));
                assert!(read.is_err(), "`{name}` is like {example}, {wrong} was accepted: {read:?}");
            }
        }
    }
    for not_an_object in ["null", "[]", "7", "\"text\"", "true"] {
        assert!(read(&json(not_an_object)).is_err(), "{not_an_object} was accepted");
    }
}

/// Every selection of optional members reads back exactly.
fn every_selection_of_members<T: PartialEq + Debug, E: Display + Debug + PartialEq>(
    shape: &Shape<'_>,
    read: &impl Fn(&Json) -> Result<T, E>,
    write: &impl Fn(&T) -> Json,
) {
    let mut free: Vec<(&str, &str, &str)> = Vec::new();
    free.extend(shape.optional.iter().map(|(name, example)| (*name, *example, "")));
    free.extend(shape.nullable.iter().map(|(name, example)| (*name, *example, "null")));
    free.extend(shape.defaulted);
    for selection in 0..1u32 << free.len() {
        let mut sent = shape.required.to_vec();
        let mut written = shape.required.to_vec();
        for (index, (name, example, absent)) in free.iter().enumerate() {
            if selection & (1 << index) != 0 {
                sent.push((name, example));
                written.push((name, example));
            } else if !absent.is_empty() {
                written.push((name, absent));
            }
        }
        let value = read(&object(&sent)).unwrap_or_else(|error| panic!("{}: {error}", object(&sent)));
        let text = write(&value);
        assert_eq!(sorted(&text), sorted(&object(&written)), "from {}", object(&sent));
        assert_eq!(read(&text), Ok(value), "what is written reads back");
    }
}

fn every_member<'a>(shape: &Shape<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let defaulted = shape.defaulted.iter().map(|(name, example, _)| (*name, *example));
    let others = [shape.required, shape.optional, shape.nullable];
    others.into_iter().flatten().copied().chain(defaulted)
}

fn object(members: &[(&str, &str)]) -> Json {
    Json::Object(members.iter().map(|(name, text)| ((*name).to_owned(), json(text))).collect())
}

fn without(members: &[(&str, &str)], name: &str) -> Json {
    object(&members.iter().copied().filter(|(other, _)| *other != name).collect::<Vec<_>>())
}

fn replaced(members: &[(&str, &str)], name: &str, text: &str) -> Json {
    let swap = |(other, example)| if other == name { (other, text) } else { (other, example) };
    object(&members.iter().copied().map(swap).collect::<Vec<_>>())
}

/// Member order means nothing.
fn sorted(value: &Json) -> Vec<(String, Json)> {
    let mut members = value.as_object().expect("an object").to_vec();
    members.sort_by(|one, other| one.0.cmp(&other.0));
    members
}

fn wrong_for(example: &str) -> &'static [&'static str] {
    match json(example) {
        Json::String(_) => &["7", "true", "[]", "{}", "[\"a\"]"],
        Json::Number(literal) if literal.contains('.') => &["\"0.9\"", "true", "[]", "{}"],
        Json::Number(literal) if literal.starts_with('-') => {
            &["\"-7\"", "5.0", "-1.5", "1e3", "true", "[]", "99999999999999999999"]
        }
        Json::Number(_) => &["\"7\"", "5.0", "1.5", "1e3", "-1", "true", "[]", "99999999999999999999"],
        Json::Bool(_) => &["1", "\"true\"", "[]", "{}"],
        Json::Array(_) => &["7", "\"text\"", "true", "{}"],
        Json::Object(_) => &["7", "\"text\"", "true", "[]"],
        Json::Null => &[],
    }
}
