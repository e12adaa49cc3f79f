//! YAML as JSON, for files of ours that are not policy documents: the same strict reader, the same bounds.

use proctor_core::json::Json;

use super::Problem;
use super::node::{self, Node, Value};
use super::problems::Problems;

/// Reads YAML (or JSON) into a JSON value, under the limits of policy documents.
///
/// ```
/// use proctor_policy::document::yaml_to_json;
/// let value = yaml_to_json("cases.yaml", b"cases:\n  - { name: one, n: 1.50 }\n").unwrap();
/// assert_eq!(value.to_string(), r#"{"cases":[{"name":"one","n":1.50}]}"#);
/// assert!(yaml_to_json("cases.yaml", b"a: 1\na: 2\n").is_err());
/// ```
pub fn yaml_to_json(file: &str, source: &[u8]) -> Result<Json, Vec<Problem>> {
    let mut problems = Problems::new(file);
    match node::parse(source, &mut problems) {
        Some(root) if problems.is_empty() => Ok(to_json(&root)),
        _ => Err(problems.sorted()),
    }
}

// The depth of nodes is bounded by the reader, so recursion is too.
fn to_json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        // A number that JSON cannot write (octal, infinity) stays the text that it was.
        Value::Number(literal) => {
            Json::parse(literal.as_bytes()).unwrap_or_else(|_| Json::from(literal.as_str()))
        }
        Value::Text(text) => Json::from(text.as_str()),
        Value::List(items) => Json::Array(items.iter().map(|item| to_json(item)).collect()),
        Value::Map(entries) => {
            Json::Object(entries.iter().map(|(key, value)| (key.name.clone(), to_json(value))).collect())
        }
    }
}
