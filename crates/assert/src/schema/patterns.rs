//! Patterns of schemas with their meaning in RE2. The library already takes `\d` and `\w` as ASCII, but not `\s` and `\b`.

use serde_json::{Map, Value};

use crate::ascii_classes::without_nesting;

/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is an object of schemas.
const NAMED_SCHEMAS: &[&str] =
    &["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

/// Writes out the classes in all patterns of a schema; what only looks like a pattern (in `const`, `enum`, …) stays. The depth is bounded
/// by the parser.
pub(super) fn give_ascii_classes(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(give_ascii_classes),
        Value::Object(members) => {
            if let Some(Value::String(pattern)) = members.get_mut("pattern") {
                rewrite(pattern);
            }
            if let Some(Value::Object(named)) = members.get_mut("patternProperties") {
                let old = std::mem::take(named);
                for (mut pattern, schema) in old {
                    rewrite(&mut pattern);
                    keep_both(named, pattern, schema);
                }
            }
            for (keyword, value) in members {
                if SCHEMAS.contains(&keyword.as_str()) {
                    give_ascii_classes(value);
                } else if let (true, Value::Object(named)) =
                    (NAMED_SCHEMAS.contains(&keyword.as_str()), value)
                {
                    named.values_mut().for_each(give_ascii_classes);
                }
            }
        }
        _ => {}
    }
}

/// Two patterns that mean the same: a member must satisfy both schemas.
fn keep_both(named: &mut Map<String, Value>, pattern: String, schema: Value) {
    let both = match named.remove(&pattern) {
        Some(other) => serde_json::json!({"allOf": [other, schema]}),
        None => schema,
    };
    named.insert(pattern, both);
}

/// A pattern that cannot be read is left to the library, which says why.
fn rewrite(pattern: &mut String) {
    let other_meaning = [r"\s", r"\S", r"\b", r"\B"].iter().any(|class| pattern.contains(class));
    if let Some(text) = other_meaning.then(|| without_nesting(pattern)).flatten() {
        *pattern = text;
    }
}
