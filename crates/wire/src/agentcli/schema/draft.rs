//! JSON Schema, Draft 2020-12: of manifests from their tables, of everything else from descriptors.

use proctor_core::json::Json;

use super::super::structure::{Block, FLAT_IDENTITY, IDENTITY, Kind, MANIFEST, Member, TASK};
use super::descriptor::is_full;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A string with a character that JavaScript does not trim, and without control characters other than tabulator and line ends.
const TEXT: &str = r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*[^\u0000-\u0020\u007f\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff][^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$";
const IDENTIFIER: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
const TOKEN: &str = "^[A-Za-z0-9@:_./-]+$";
const ENVIRONMENT_NAME: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
const FILE_PREFIX: &str = "^[A-Za-z0-9._-]{1,80}$";

/// The schema of manifests: one document, with a definition for each kind of object.
pub(super) fn manifest() -> Json {
    let mut schema = Json::object()
        .with("$schema", DIALECT)
        .with("$id", id("manifest"))
        .with("title", "agentcli manifest")
        .with("description", MANIFEST.note);
    extend(&mut schema, of_block(&MANIFEST));
    schema.with("$defs", definitions())
}

/// The schema of a part of manifests: a reference, and all definitions.
pub(super) fn fragment(block: &'static Block) -> Json {
    Json::object()
        .with("$schema", DIALECT)
        .with("$id", id(block.name))
        .with("title", format!("agentcli {}", block.name))
        .with("$ref", format!("#/$defs/{}", block.name))
        .with("$defs", definitions())
}

/// The schema that a descriptor stands for.
pub(super) fn derived(name: &str, descriptor: &Json) -> Json {
    let mut schema = Json::object()
        .with("$schema", DIALECT)
        .with("$id", id(name))
        .with("title", format!("agentcli {name}"));
    extend(&mut schema, of_descriptor(descriptor));
    schema
}

fn id(name: &str) -> String {
    format!("urn:agentcli:schema:{name}:0.2")
}

fn definitions() -> Json {
    let string = |pattern: &str| Json::object().with("type", "string").with("pattern", pattern);
    let mut definitions = vec![
        ("text".to_owned(), string(TEXT)),
        ("identifier".to_owned(), string(IDENTIFIER)),
        ("token".to_owned(), string(TOKEN)),
        ("environmentName".to_owned(), string(ENVIRONMENT_NAME)),
    ];
    for member in MANIFEST.members {
        define(&member.kind, &mut definitions);
    }
    Json::Object(definitions)
}

/// Adds definitions of all objects that a kind of value contains.
fn define(kind: &'static Kind, definitions: &mut Vec<(String, Json)>) {
    let blocks: &[&'static Block] = match kind {
        Kind::Block(block) | Kind::Blocks(block) | Kind::Source(block) => &[block],
        Kind::Identity => &[&IDENTITY, &FLAT_IDENTITY],
        _ => &[],
    };
    for block in blocks {
        if definitions.iter().any(|(name, _)| name == block.name) {
            continue;
        }
        if block.defined {
            let schema = Json::object().with("description", block.note);
            let mut schema = schema;
            extend(&mut schema, of_block(block));
            definitions.push((block.name.to_owned(), schema));
        }
        for member in block.members {
            define(&member.kind, definitions);
        }
    }
}

fn of_block(block: &'static Block) -> Json {
    let mut properties = Json::object();
    for member in block.members {
        properties.push(member.name, of_member(member));
    }
    let required: Vec<Json> =
        block.members.iter().filter(|member| member.required).map(|member| Json::from(member.name)).collect();
    let mut schema = Json::object().with("type", "object").with("properties", properties);
    if !required.is_empty() {
        schema.push("required", required);
    }
    schema.push("additionalProperties", false);
    if block.is(&TASK) {
        extend(&mut schema, task_rules());
    }
    schema
}

/// Rules between members of a task: when it runs, and what.
fn task_rules() -> Json {
    let absent = || Json::object().with("type", "null");
    let present = || Json::object().with("type", "object");
    let either = |one: &str, other: &str| {
        let properties = Json::object().with(one, present()).with(other, absent());
        Json::object().with("required", vec![Json::from(one)]).with("properties", properties)
    };
    let session = Json::object().with("session_target", Json::object().with("const", "shell"));
    let target =
        Json::object().with("properties", session).with("required", vec![Json::from("session_target")]);
    let condition = Json::object()
        .with("properties", Json::object().with("target", target))
        .with("required", vec![Json::from("target")]);
    let text = Json::object().with("type", "string");
    let program = Json::object()
        .with("required", vec![Json::from("shell")])
        .with("properties", Json::object().with("shell", present()).with("prompt", absent()));
    let prompt = Json::object()
        .with("required", vec![Json::from("prompt")])
        .with("properties", Json::object().with("prompt", text).with("shell", absent()));
    Json::object()
        .with("oneOf", vec![either("schedule", "trigger"), either("trigger", "schedule")])
        .with("if", condition)
        .with("then", program)
        .with("else", prompt)
}

fn of_member(member: &'static Member) -> Json {
    if let Kind::Removed = member.kind {
        return Json::Bool(false);
    }
    let schema = of_kind(&member.kind);
    if member.required { schema } else { nullable(schema) }
}

fn nullable(schema: Json) -> Json {
    Json::object().with("anyOf", vec![schema, Json::object().with("type", "null")])
}

fn reference(name: &str) -> Json {
    Json::object().with("$ref", format!("#/$defs/{name}"))
}

fn of_kind(kind: &'static Kind) -> Json {
    let of_type = |name: &str| Json::object().with("type", name);
    match kind {
        Kind::Text => reference("text"),
        Kind::AnyText => of_type("string"),
        Kind::Identifier => reference("identifier"),
        Kind::Token => reference("token"),
        Kind::EnvironmentName => reference("environmentName"),
        Kind::FilePrefix => of_type("string").with("pattern", FILE_PREFIX),
        Kind::Condition => of_type("string").with("pattern", r"^(contains|regex):[\s\S]*\S"),
        Kind::Boolean => of_type("boolean"),
        Kind::Integer(least) => of_type("integer").with("minimum", *least),
        Kind::Amount => of_type("number").with("minimum", 0u8),
        Kind::Word(words) => {
            let words: Vec<Json> = words.iter().map(|word| Json::from(*word)).collect();
            Json::object().with("enum", words)
        }
        Kind::Texts => of_type("array").with("items", reference("text")),
        Kind::List => of_type("array"),
        Kind::Map => of_type("object"),
        Kind::Environment => of_type("object")
            .with("propertyNames", reference("environmentName"))
            .with("additionalProperties", reference("text")),
        Kind::Anything | Kind::Removed => Json::object(),
        Kind::Block(block) => of_inner(block),
        Kind::Blocks(block) => {
            let schema = of_type("array").with("items", of_inner(block));
            if is_full(block) { schema.with("minItems", 1u8) } else { schema }
        }
        Kind::Source(block) => {
            // At least one source that is allowed and given.
            let sources: Vec<Json> = block
                .members
                .iter()
                .filter(|member| !matches!(member.kind, Kind::Removed))
                .map(|member| {
                    Json::object()
                        .with("required", vec![Json::from(member.name)])
                        .with("properties", Json::object().with(member.name, of_type("string")))
                })
                .collect();
            Json::object().with("allOf", vec![of_inner(block), Json::object().with("anyOf", sources)])
        }
        Kind::Identity => {
            Json::object().with("anyOf", vec![reference(IDENTITY.name), reference(FLAT_IDENTITY.name)])
        }
    }
}

fn of_inner(block: &'static Block) -> Json {
    if block.defined { reference(block.name) } else { of_block(block) }
}

/// The schema of a descriptor's node.
// Descriptors are our own, and shallow.
fn of_descriptor(node: &Json) -> Json {
    let mut schema = Json::object();
    if let Some(note) = node.get("note") {
        schema.push("description", note.clone());
    }
    for (from, to) in
        [("type", "type"), ("enum", "enum"), ("const", "const"), ("min", "minimum"), ("minItems", "minItems")]
    {
        if let Some(value) = node.get(from) {
            schema.push(to, value.clone());
        }
    }
    if node.get("format").is_some_and(|format| *format == "token") {
        schema.push("pattern", TOKEN);
    }
    if let Some(items) = node.get("items") {
        schema.push("items", of_descriptor(items));
    }
    if let Some(values) = node.get("values") {
        schema.push("additionalProperties", of_descriptor(values));
    }
    if let Some(Json::Object(fields)) = node.get("fields") {
        let properties = fields.iter().map(|(name, field)| (name.clone(), of_descriptor(field))).collect();
        schema.push("properties", Json::Object(properties));
        if let Some(required) = node.get("required") {
            schema.push("required", required.clone());
        }
        schema.push("additionalProperties", false);
    }
    match node.get("nullable") {
        Some(Json::Bool(true)) => nullable(schema),
        _ => schema,
    }
}

/// Moves the members of one object to another.
fn extend(schema: &mut Json, more: Json) {
    if let (Json::Object(members), Json::Object(more)) = (schema, more) {
        members.extend(more);
    }
}
