//! Configurations of `behavior` and of its rules as assertions of their own.

use std::rc::Rc;

use proctor_yaml::Node;

use super::keys;
use super::object::{Object, nonblank};
use super::path::Path;
use super::reader::Reader;
use crate::checks::{Behavior, CallPattern, JsonPath, Matcher, Order, Rule};

/// A rule as an assertion of its own.
pub(super) fn read_behavior_rule(
    word: &str,
    config: &Node,
    path: &Path<'_>,
    reader: &mut Reader<'_>,
) -> Option<Behavior> {
    let table = match word {
        "must_use_tools" => &keys::MUST_USE_TOOLS,
        "forbidden_tools" => &keys::FORBIDDEN_TOOLS,
        "max_tool_calls" => &keys::MAX_TOOL_CALLS,
        "min_tool_calls" => &keys::MIN_TOOL_CALLS,
        _ => &keys::NO_ERRORS,
    };
    let object = Object::read(config, path, table, reader)?;
    let mut behavior = Behavior::default();
    match word {
        "must_use_tools" | "forbidden_tools" => {
            object.required("tools", reader);
            let tools = Some(object.some_texts("tools", reader)?);
            if word == "must_use_tools" {
                behavior.must_use_tools = tools;
            } else {
                behavior.forbidden_tools = tools;
            }
        }
        "max_tool_calls" | "min_tool_calls" => {
            object.required("limit", reader);
            let limit = Some(object.whole("limit", (0, u64::MAX), reader)?);
            if word == "max_tool_calls" {
                behavior.max_tool_calls = limit;
            } else {
                behavior.min_tool_calls = limit;
            }
        }
        _ => behavior.no_errors = true,
    }
    Some(behavior)
}

pub(super) fn read_behavior(config: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Behavior> {
    let object = Object::read(config, path, &keys::BEHAVIOR, reader)?;
    if !object.entries().iter().any(|(key, _)| key.name != "tool_call_order") {
        let message = "the config of `behavior` has no rule: nothing would be checked";
        reader.mistake(object.at, path, message, "write a rule, for example `no_errors: true`");
        return None;
    }
    let must_use_tools = object.some_texts("must_use_tools", reader);
    let forbidden_tools = object.some_texts("forbidden_tools", reader);
    let max_tool_calls = object.whole("max_tool_calls", (0, u64::MAX), reader);
    let min_tool_calls = object.whole("min_tool_calls", (0, u64::MAX), reader);
    // `check: no_errors` is the form of many manuals; it means `no_errors: true`.
    let check = object.word("check", &["no_errors"], reader);
    let no_errors = object.boolean("no_errors", reader);
    if no_errors == Some(false) {
        let message = "`no_errors: false` checks nothing";
        reader.mistake(object.key_at("no_errors"), path, message, "write `true`, or remove it");
    }
    let expected_tool_calls = read_patterns(&object, "expected_tool_calls", reader);
    let tool_call_order = match object.word("tool_call_order", keys::ORDERS, reader) {
        Some("expected") => Order::Expected,
        _ => Order::Any,
    };
    if object.get("tool_call_order").is_some() && object.get("expected_tool_calls").is_none() {
        let message = "`tool_call_order` needs `expected_tool_calls`";
        reader.mistake(object.key_at("tool_call_order"), path, message, "");
    }
    let forbidden_tool_calls = read_patterns(&object, "forbidden_tool_calls", reader);
    Some(Behavior {
        must_use_tools,
        forbidden_tools,
        max_tool_calls,
        min_tool_calls,
        no_errors: check.is_some() || no_errors.unwrap_or_default(),
        expected_tool_calls,
        tool_call_order,
        forbidden_tool_calls,
    })
}

fn read_patterns(object: &Object<'_, '_>, key: &str, reader: &mut Reader<'_>) -> Option<Vec<CallPattern>> {
    let items = object.list(key, reader)?;
    let list = object.path.key(key);
    if items.is_empty() {
        reader.mistake(object.key_at(key), &list, "the list is empty: nothing would be checked", "");
        return None;
    }
    let read = |(index, item): (usize, &Rc<Node>)| read_call(item, &list.index(index), reader);
    Some(items.iter().enumerate().filter_map(read).collect())
}

fn read_call(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<CallPattern> {
    let object = Object::read(node, path, &keys::CALL_PATTERN, reader)?;
    let tool = object.required_text("tool", reader).map(str::to_owned);
    let status = object.nonblank("status", reader).map(str::to_owned);
    let input_matches = read_matchers(&object, "input_matches", reader);
    let output_matches = read_matchers(&object, "output_matches", reader);
    Some(CallPattern { tool: tool?, status, input_matches, output_matches })
}

fn read_matchers(object: &Object<'_, '_>, key: &str, reader: &mut Reader<'_>) -> Vec<Matcher> {
    let list = object.path.key(key);
    let items = object.list(key, reader).unwrap_or_default();
    let read = |(index, item): (usize, &Rc<Node>)| read_matcher(item, &list.index(index), reader);
    items.iter().enumerate().filter_map(read).collect()
}

fn read_matcher(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Matcher> {
    let object = Object::read(node, path, &keys::MATCHER, reader)?;
    let below = path.key("path");
    let found = object.required("path", reader).and_then(|node| {
        let written = nonblank(node, &below, reader)?;
        let parsed = JsonPath::parse(written);
        if let Err(error) = &parsed {
            reader.mistake(node.at, &below, error.to_string(), "");
        }
        parsed.ok()
    });
    let given: Vec<&str> =
        ["equals", "exists", "absent"].into_iter().filter(|key| object.get(key).is_some()).collect();
    let rule = match given.as_slice() {
        ["equals"] => Rule::Equals(object.get("equals")?.to_json()),
        [key @ ("exists" | "absent")] => {
            if object.boolean(key, reader)? {
                if *key == "exists" { Rule::Exists } else { Rule::Absent }
            } else {
                let other = if *key == "exists" { "absent" } else { "exists" };
                let message = format!("`{key}` can only be `true`");
                reader.mistake(object.key_at(key), path, message, format!("write `{other}: true`"));
                return None;
            }
        }
        _ => {
            let message = "a matcher has exactly one of `equals`, `exists: true` and `absent: true`";
            reader.mistake(object.at, path, message, "");
            return None;
        }
    };
    Some(Matcher { path: found?, rule })
}
