//! `rules` and `modules`.

use std::rc::Rc;

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::quoted;
use proctor_yaml::scalar::json_number;
use proctor_yaml::{Key, Node, Value};

use super::fields::{self, Fields};
use super::problems::Problems;
use super::target::{TEXTUAL, check_path, check_pointer};
use super::{Located, Module, Rule, keys};
use crate::condition::Condition;

/// The most rules that a document may have.
pub const MAX_RULES: usize = 10_000;
/// The longest condition, in bytes.
pub const MAX_WHEN_BYTES: usize = 4096;
/// Default of `retry_after` in a defer rule: 30 s.
pub const DEFAULT_RETRY_AFTER_MS: u64 = 30_000;

const MAX_ID_CHARACTERS: usize = 128;

pub(super) fn read_rules(node: &Node, problems: &mut Problems) -> Option<Vec<Rule>> {
    let items = fields::list(node, "rules", problems)?;
    if items.len() > MAX_RULES {
        let at = items.get(MAX_RULES).map_or(node.at, |(_, item)| item.at);
        problems.add(at, format!("`rules` has {} entries; at most {MAX_RULES} are allowed", items.len()));
        return None;
    }
    Some(items.into_iter().filter_map(|(name, item)| read_rule(item, &name, problems)).collect())
}

pub(super) fn read_modules(node: &Node, problems: &mut Problems) -> Vec<Located<Module>> {
    let items = fields::list(node, "modules", problems).unwrap_or_default();
    items.into_iter().filter_map(|(name, item)| read_module(item, &name, problems)).collect()
}

fn read_module(item: &Node, name: &str, problems: &mut Problems) -> Option<Located<Module>> {
    let fields = Fields::closed(item, name, keys::MODULE, problems)?;
    let cedar = fields.nonblank("cedar", problems).map(|path| Module::Cedar(path.value.to_owned()));
    let rego = fields.nonblank("rego", problems).map(|path| Module::Rego(path.value.to_owned()));
    if fields.get("cedar").is_some() == fields.get("rego").is_some() {
        problems
            .add(item.at, format!("`{name}` must have one key, `cedar` or `rego`, with the path of a file"));
        return None;
    }
    cedar.or(rego).map(|value| Located { value, at: item.at })
}

fn read_rule(item: &Node, name: &str, problems: &mut Problems) -> Option<Rule> {
    let explain = |key: &Key, _: &Node| match key.name.as_str() {
        "match" | "condition" | "if" => {
            Some(format!("unknown key {} in `{name}`; write the condition as `when`", quoted(&key.name)))
        }
        "effect" | "action" | "decision" => {
            Some(format!("unknown key {} in `{name}`; write the effect as `then`", quoted(&key.name)))
        }
        _ => None,
    };
    let fields = Fields::of(item, name, keys::RULE, problems, &explain)?;
    for key in ["id", "then"] {
        if fields.get(key).is_none() {
            problems.add(fields.at, format!("`{name}` needs `{key}`"));
        }
    }
    let id = read_id(&fields, problems);
    let when = read_when(&fields, problems);
    let then =
        fields.word("then", keys::EFFECTS, problems).and_then(|word| word.value.parse::<Effect>().ok());
    let reason = fields.text("reason", problems).map_or_else(String::new, |reason| reason.value.to_owned());
    let expires_micros = fields.duration("expires", problems);
    let approvers = read_approvers(&fields, problems);
    let retry_after = fields.duration("retry_after", problems).map(|micros| micros.div_ceil(1000));
    let set = fields.get("set").map(|node| read_set(node, &fields.name("set"), problems));
    let paths = read_paths(&fields, problems);
    let taints = read_taints(&fields, problems);
    let then = then?;
    check_effect(&fields, then, problems);
    Some(Rule {
        id: id?,
        when,
        then,
        reason,
        expires_micros,
        approvers,
        retry_after_ms: (then == Effect::Defer).then(|| retry_after.unwrap_or(DEFAULT_RETRY_AFTER_MS)),
        set: set.unwrap_or_default(),
        paths,
        taints,
        at: fields.at,
    })
}

fn read_id(fields: &Fields<'_>, problems: &mut Problems) -> Option<String> {
    let id = fields.text("id", problems)?;
    let valid =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, ':' | '.' | '_' | '-');
    if !id.value.is_empty() && id.value.len() <= MAX_ID_CHARACTERS && id.value.chars().all(valid) {
        return Some(id.value.to_owned());
    }
    let at = fields.get("id").map_or(id.at, |node| node.at);
    let form = format!("1 to {MAX_ID_CHARACTERS} letters, digits, `:`, `.`, `_` or `-`");
    problems.add(at, format!("`{}` must be {form}, found {}", fields.name("id"), quoted(id.value)));
    None
}

fn read_when(fields: &Fields<'_>, problems: &mut Problems) -> Option<Located<String>> {
    let when = fields.nonblank("when", problems)?;
    if when.value.len() > MAX_WHEN_BYTES {
        let at = fields.get("when").map_or(when.at, |node| node.at);
        let message = format!(
            "`{}` has {} bytes; at most {MAX_WHEN_BYTES} are allowed",
            fields.name("when"),
            when.value.len()
        );
        problems.add(at, format!("{message}, split it into several rules"));
        return None;
    }
    let when = fields::owned(&when);
    // Compiled here only for its mistakes, so that they are reported beside all others.
    for problem in Condition::compile(&when.value).err().unwrap_or_default() {
        let at = when.inside(problem.offset_line, problem.offset_column);
        problems.add(at, format!("in {}: {}", fields.name("when"), problem.message));
    }
    Some(when)
}

fn read_approvers(fields: &Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let Some(approvers) = fields.texts("approvers", problems) else { return Vec::new() };
    if let Some(Node { value: Value::List(items), at, .. }) = fields.get("approvers")
        && items.is_empty()
    {
        problems.add(
            *at,
            format!(
                "`{}` is empty, so that nobody could approve; name someone or remove it",
                fields.name("approvers")
            ),
        );
    }
    approvers.into_iter().map(|approver| approver.value).collect()
}

/// Reads a taint, or a list of taints.
fn read_taints(fields: &Fields<'_>, problems: &mut Problems) -> Vec<String> {
    match fields.get("taint").map(|node| &node.value) {
        None => Vec::new(),
        Some(Value::List(_)) => {
            fields.texts("taint", problems).unwrap_or_default().into_iter().map(|taint| taint.value).collect()
        }
        Some(_) => {
            fields.nonblank("taint", problems).map(|taint| taint.value.to_owned()).into_iter().collect()
        }
    }
}

fn read_paths(fields: &Fields<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let items = fields.list("paths", problems)?;
    if items.is_empty()
        && let Some(node) = fields.get("paths")
    {
        let name = fields.name("paths");
        problems.add(
            node.at,
            format!("`{name}` is empty, so that nothing would be cut; name a path or remove it"),
        );
    }
    let mut paths = Vec::new();
    for (name, item) in items {
        let Some(path) = fields::text(item, &name, problems) else { continue };
        match check_path(path.value) {
            Ok(()) => paths.push(path.value.to_owned()),
            Err(why) => problems.add(item.at, format!("`{name}`: {why}")),
        }
    }
    Some(paths)
}

fn read_set(node: &Node, path: &str, problems: &mut Problems) -> Vec<(String, Json)> {
    let Some(entries) = fields::entries(node, path, problems) else { return Vec::new() };
    if entries.is_empty() {
        problems.add(
            node.at,
            format!("`{path}` is empty, so that nothing would change; name a JSON pointer and its new value"),
        );
    }
    let mut set = Vec::new();
    for (pointer, value) in entries {
        match check_pointer(&pointer.name) {
            Ok(root) if TEXTUAL.contains(&root) && !matches!(value.value, Value::Text(_)) => {
                fields::wrong_type(value, &format!("{path}.{}", pointer.name), "a string", problems);
            }
            Ok(_) => set.extend(to_json(value, problems).map(|json| (pointer.name.clone(), json))),
            Err(why) => problems.add(pointer.at, format!("`{path}`: {why}")),
        }
    }
    set
}

/// The node as JSON. Recursive; the tree is at most `MAX_DEPTH` deep.
pub(super) fn to_json(node: &Node, problems: &mut Problems) -> Option<Json> {
    Some(match &node.value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Text(text) => Json::String(text.clone()),
        Value::Number(literal) => {
            let Some(number) = json_number(literal) else {
                problems.add(node.at, format!("{} is not a number that JSON has", quoted(literal)));
                return None;
            };
            Json::Number(number.into())
        }
        Value::List(items) => Json::Array(items.iter().filter_map(|item| to_json(item, problems)).collect()),
        Value::Map(entries) => {
            let member = |(key, value): &(Key, Rc<Node>)| Some((key.name.clone(), to_json(value, problems)?));
            Json::Object(entries.iter().filter_map(member).collect())
        }
    })
}

/// Keys that another effect understands would be ignored in silence.
fn check_effect(fields: &Fields<'_>, then: Effect, problems: &mut Problems) {
    let owners = [
        ("expires", Effect::Ask),
        ("approvers", Effect::Ask),
        ("retry_after", Effect::Defer),
        ("set", Effect::Modify),
        ("paths", Effect::Redact),
    ];
    for (key, owner) in owners {
        if owner != then
            && let Some(at) = fields.key_at(key)
        {
            problems.add(at, format!("`{key}` belongs to `then: {owner}`; this rule says `then: {then}`"));
        }
    }
    if then == Effect::Modify && fields.get("set").is_none() {
        problems.add(fields.at, "a `modify` rule needs `set`, with a JSON pointer and its new value");
    }
}
