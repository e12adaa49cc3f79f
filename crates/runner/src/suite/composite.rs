//! Configurations of `composite`.

use std::rc::Rc;

use proctor_yaml::Node;

use super::assertions::read_check;
use super::keys;
use super::object::Object;
use super::path::Path;
use super::reader::Reader;
use crate::checks::{Check, Comparator, Condition};

pub(super) fn read_composite(config: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Condition> {
    let object = Object::read(config, path, &keys::COMPOSITE, reader)?;
    read_operator(&object, reader)
}

/// Recursion is bounded by the depth limit of the YAML parser.
fn read_condition(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Condition> {
    let object = Object::read(node, path, &keys::CONDITION, reader)?;
    if object.get("type").is_none() {
        return read_operator(&object, reader);
    }
    for key in ["operator", "conditions", "condition", "value", "comparator"] {
        if object.get(key).is_some() {
            let message = format!("`{key}` stands beside `type`");
            reader.mistake(object.key_at(key), path, message, "write a condition with either of them");
        }
    }
    match read_check(&object, reader)? {
        (_, Check::Composite(condition)) => Some(*condition),
        (name, check) => Some(Condition::Leaf { name, check }),
    }
}

fn read_operator(object: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<Condition> {
    let operator = match object.get("operator") {
        Some(_) => object.word("operator", keys::OPERATORS, reader)?,
        None => "and",
    };
    let wanted: &[&str] = match operator {
        "and" | "or" => &["conditions"],
        "not" => &["condition"],
        _ => &["condition", "value", "comparator"],
    };
    for key in ["conditions", "condition", "value", "comparator"] {
        if object.get(key).is_some() && !wanted.contains(&key) {
            let message = format!("`{key}` does not belong to the operator `{operator}`");
            reader.mistake(object.key_at(key), object.path, message, "");
        }
    }
    for key in wanted {
        object.required(key, reader);
    }
    match operator {
        "and" | "or" => {
            let list = object.path.key("conditions");
            let items = object.list("conditions", reader)?;
            if items.is_empty() {
                // Nothing would decide: `and` would always hold, `or` never.
                reader.mistake(
                    object.key_at("conditions"),
                    &list,
                    "there are no conditions",
                    "write at least one",
                );
                return None;
            }
            let read = |(index, item): (usize, &Rc<Node>)| read_condition(item, &list.index(index), reader);
            let conditions = items.iter().enumerate().filter_map(read).collect();
            Some(if operator == "and" { Condition::And(conditions) } else { Condition::Or(conditions) })
        }
        "not" => {
            let inner = read_condition(object.get("condition")?, &object.path.key("condition"), reader)?;
            Some(Condition::Not(Box::new(inner)))
        }
        _ => {
            let value = object.number("value", (0.0, 1.0), reader);
            let comparator =
                object.word("comparator", &Comparator::SIGNS, reader).and_then(Comparator::named);
            let inner = object
                .get("condition")
                .and_then(|node| read_condition(node, &object.path.key("condition"), reader));
            Some(Condition::Threshold { value: value?, comparator: comparator?, condition: Box::new(inner?) })
        }
    }
}
