//! Objects of messages: members read, set and removed.

use proctor_core::json::Json;

/// The text of a member, if it is one.
pub(super) fn text<'a>(object: &'a Json, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Json::as_str)
}

/// Appends a member unless it is absent: writers leave out what is not there.
pub(super) fn put(object: &mut Json, name: &str, value: Option<impl Into<Json>>) {
    if let Some(value) = value {
        object.push(name, value);
    }
}

/// Replaces a member, or appends it.
pub(super) fn set(object: &mut Json, name: &str, value: Json) {
    if let Json::Object(members) = object {
        match members.iter_mut().find(|(key, _)| key == name) {
            Some((_, member)) => *member = value,
            None => members.push((name.to_owned(), value)),
        }
    }
}

/// The value of a member, for changing it.
pub(super) fn member_mut<'a>(object: &'a mut Json, name: &str) -> Option<&'a mut Json> {
    match object {
        Json::Object(members) => members.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value),
        _ => None,
    }
}

/// Removes the named members that are `null`.
pub(super) fn remove_nulls(object: &mut Json, names: &[&str]) {
    if let Json::Object(members) = object {
        members.retain(|(name, value)| !value.is_null() || !names.contains(&name.as_str()));
    }
}

/// Number of values, containers included. Recursion is safe: the parser bounds depth.
pub(super) fn count_values(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Json::Object(members) => 1 + members.iter().map(|(_, value)| count_values(value)).sum::<usize>(),
        _ => 1,
    }
}
