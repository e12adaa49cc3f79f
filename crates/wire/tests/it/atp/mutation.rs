//! Valid messages, changed at random: near the border between valid and invalid.

use proctor_core::json::Json;
use proptest::prelude::*;

use super::examples::{ERROR_RESPONSE, REQUEST, RESPONSE, events};

/// A kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Response,
    Event,
}

/// A message near a valid one.
pub(super) fn any_message() -> impl Strategy<Value = (Kind, Json)> {
    let mut bases = vec![(Kind::Request, REQUEST.to_owned())];
    bases.extend([RESPONSE, ERROR_RESPONSE].map(|text| (Kind::Response, text.to_owned())));
    bases.extend(events().into_iter().map(|text| (Kind::Event, text)));
    // Most bases are events, so the others are repeated.
    let others = bases[..3].to_vec();
    bases.extend(others.iter().chain(&others).cloned());
    let base = prop::sample::select(bases);
    (base, prop::collection::vec(any_change(), 0..4)).prop_map(|((kind, text), changes)| {
        let mut json = Json::parse(text.as_bytes()).unwrap();
        for change in changes {
            change.apply(&mut json);
        }
        (kind, json)
    })
}

#[derive(Debug, Clone)]
enum Change {
    /// Replaces the value at the n-th position.
    Replace(usize, Json),
    /// Removes the n-th member or item.
    Remove(usize),
    /// Adds a member to the n-th object.
    Add(usize, &'static str, Json),
}

impl Change {
    fn apply(self, json: &mut Json) {
        let count = count(json);
        match self {
            Change::Replace(at, value) => replace(json, &mut (at % count), value),
            Change::Remove(at) => {
                remove(json, &mut (at % count));
            }
            Change::Add(at, name, value) => add(json, &mut (at % count), name, &value),
        }
    }
}

fn count(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Json::Object(members) => 1 + members.iter().map(|(_, value)| count(value)).sum::<usize>(),
        _ => 1,
    }
}

fn children(json: &mut Json) -> Vec<&mut Json> {
    match json {
        Json::Array(items) => items.iter_mut().collect(),
        Json::Object(members) => members.iter_mut().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    }
}

fn replace(json: &mut Json, at: &mut usize, value: Json) {
    if *at == 0 {
        *json = value;
        return;
    }
    *at -= 1;
    for child in children(json) {
        let size = count(child);
        if *at < size {
            return replace(child, at, value);
        }
        *at -= size;
    }
}

fn remove(json: &mut Json, at: &mut usize) -> bool {
    if *at == 0 {
        return true;
    }
    *at -= 1;
    let mut doomed = None;
    for (index, child) in children(json).into_iter().enumerate() {
        let size = count(child);
        if *at < size {
            if remove(child, at) {
                doomed = Some(index);
            }
            break;
        }
        *at -= size;
    }
    match (doomed, json) {
        (Some(index), Json::Array(items)) => drop(items.remove(index)),
        (Some(index), Json::Object(members)) => drop(members.remove(index)),
        _ => {}
    }
    false
}

fn add(json: &mut Json, at: &mut usize, name: &str, value: &Json) {
    if *at == 0 {
        if let Json::Object(members) = json {
            members.retain(|(known, _)| known != name);
            members.push((name.to_owned(), value.clone()));
        }
        return;
    }
    *at -= 1;
    for child in children(json) {
        let size = count(child);
        if *at < size {
            return add(child, at, name, value);
        }
        *at -= size;
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    let name = prop::sample::select(vec![
        "version",
        "task_id",
        "status",
        "artifacts",
        "metrics",
        "error",
        "trace_id",
        "error_code",
        "error_details",
        "type",
        "path",
        "name",
        "data",
        "schema",
        "content",
        "content_type",
        "size_bytes",
        "content_hash",
        "input_data",
        "expected_artifacts",
        "max_steps",
        "budget_usd",
        "environment",
        "tools_endpoint",
        "metadata",
        "sequence",
        "timestamp",
        "event_type",
        "payload",
        "args",
        "plan",
        "x y",
        "",
    ]);
    prop_oneof![
        4 => (any::<usize>(), any_value()).prop_map(|(at, value)| Change::Replace(at, value)),
        2 => any::<usize>().prop_map(Change::Remove),
        2 => (any::<usize>(), name, any_value()).prop_map(|(at, name, value)| Change::Add(at, name, value)),
    ]
}

/// Values that some rule is about.
fn any_value() -> impl Strategy<Value = Json> {
    let literal = prop::sample::select(vec![
        "null",
        "true",
        "{}",
        "[]",
        "0",
        "1",
        "-1",
        "-0.0",
        "1.0",
        "1.5",
        "1e2",
        "12e-1",
        "1000",
        "1001",
        "86400",
        "10000001",
        "100",
        "100.5",
        "18446744073709551616",
        "[\"a\"]",
        "[1]",
        "[{}]",
        "[null]",
        "{\"a\":\"b\"}",
        "{\"a\":1}",
        "\"\"",
        "\"1.0\"",
        "\"1.1\"",
        "\"2.0\"",
        "\"1.\"",
        "\"file\"",
        "\"structured\"",
        "\"reference\"",
        "\"completed\"",
        "\"partial\"",
        "\"progress\"",
        "\"tool_call\"",
        "\"telepathy\"",
        "\"550e8400-e29b-41d4-a716-446655440000\"",
        "\"550e8400-e29b-41d4-a716-44665544000\"",
        "\"task-1\"",
        "\"2025-01-21T10:30:45\"",
        "\"2025-01-21T10:30:45+02:00\"",
        "\"2016-12-31T23:59:60Z\"",
        "\"../x\"",
        "\"/x\"",
        "\"sha256:00\"",
        "{\"type\":\"file\",\"path\":\"p\"}",
        "{\"type\":\"structured\",\"name\":\"n\",\"data\":{}}",
        "{\"type\":\"reference\",\"path\":1}",
    ]);
    prop_oneof![
        6 => literal.prop_map(|text| Json::parse(text.as_bytes()).unwrap()),
        1 => "(http|urn|1a)?:?(//)?[a-z0-9@:/?#\\[\\]%.v~ -]{0,16}".prop_map(Json::from),
        1 => "[0-9]{4}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\\.[0-9]{1,3})?(Z|z|[+-][0-2][0-9]:[0-5][0-9])?".prop_map(Json::from),
        1 => "\\PC{0,8}".prop_map(Json::from),
        1 => (9_990usize..10_010).prop_map(|length| Json::from("ä".repeat(length))),
    ]
}
