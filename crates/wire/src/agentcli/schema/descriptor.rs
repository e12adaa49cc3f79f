//! Descriptors of manifests in the older vocabulary: `type`, `nullable`, `enum`, `const`, `required`, `fields`, `items`, `values`,
//! `min`, `minItems`, `format`, `note`, `removed`.

use proctor_core::json::Json;

use super::super::structure::{Block, IDENTITY, Kind, Member, TASK, WORKFLOW};

/// The descriptor of a manifest. It names the newest version only, although earlier ones are valid.
pub(super) fn of_manifest(block: &'static Block) -> Json {
    let mut node = of_block(block);
    let version = Json::object().with("type", "string").with("const", super::super::rpc::MANIFEST_VERSION);
    node.set_pointer("/fields/version", version);
    node
}

/// The descriptor of an object.
// Recursion is as deep as the tables, which do not contain themselves.
pub(super) fn of_block(block: &'static Block) -> Json {
    let required: Vec<Json> =
        block.members.iter().filter(|member| member.required).map(|member| Json::from(member.name)).collect();
    let mut fields = Json::object();
    for member in block.members {
        fields.push(member.name, of_member(member));
    }
    let mut node = Json::object().with("type", "object").with("note", block.note);
    if !required.is_empty() {
        node.push("required", required);
    }
    node.with("fields", fields)
}

fn of_member(member: &'static Member) -> Json {
    let mut node = of_kind(&member.kind);
    if !member.required && node.get("removed").is_none() {
        node.push("nullable", true);
    }
    node
}

fn of_kind(kind: &'static Kind) -> Json {
    let string = || Json::object().with("type", "string");
    let array = || Json::object().with("type", "array");
    let object = || Json::object().with("type", "object");
    match kind {
        Kind::Text => string(),
        Kind::AnyText => string().with("note", "may be empty"),
        Kind::Identifier => string().with("note", "letters, digits, `.`, `_`, `-`"),
        Kind::Token => string().with("format", "token"),
        Kind::EnvironmentName => string().with("note", "name of an environment variable"),
        Kind::FilePrefix => string().with("note", "beginning of a file name, at most 80 characters"),
        Kind::Condition => string().with("note", "`contains:TEXT` or `regex:EXPRESSION`"),
        Kind::Boolean => Json::object().with("type", "boolean"),
        Kind::Integer(least) => Json::object().with("type", "integer").with("min", *least),
        Kind::Amount => Json::object().with("type", "number").with("min", 0u8),
        Kind::Word(words) => {
            let words: Vec<Json> = words.iter().map(|word| Json::from(*word)).collect();
            string().with("enum", words)
        }
        Kind::Texts => array().with("items", string()),
        Kind::List => array(),
        Kind::Map => object().with("note", "any members"),
        Kind::Environment => object().with("values", string()),
        Kind::Anything => Json::object().with("note", "any value"),
        Kind::Removed => Json::object().with("removed", true),
        Kind::Block(block) | Kind::Source(block) => of_block(block),
        Kind::Blocks(block) => {
            let node = array().with("items", of_block(block));
            if is_full(block) { node.with("minItems", 1u8) } else { node }
        }
        Kind::Identity => of_block(&IDENTITY),
    }
}

/// Whether arrays of this block need at least one item.
pub(super) fn is_full(block: &'static Block) -> bool {
    block.is(&WORKFLOW) || block.is(&TASK)
}
