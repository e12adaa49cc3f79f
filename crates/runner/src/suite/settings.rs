//! Settings that suites and tests share: environment, network, approvals, files, skips.

use std::sync::Arc;

use proctor_core::quoted;
use proctor_yaml::{Node, Value};

use super::keys;
use super::model::{Approval, ApprovalDecision, FileItem, FileSource, SecretValue};
use super::object::{Object, nonblank, text};
use super::path::Path;
use super::problem::suggestion;
use super::reader::Reader;
use crate::agent::is_secret_name;
use crate::checks::WorkspacePath;
use crate::secrets::MIN_SECRET_BYTES;

/// Variables that the protocol allows.
const MAX_VARIABLES: usize = 100;

/// Approvals and files of one test.
const MAX_ENTRIES: usize = 1_000;

/// The variables of `environment`.
pub(super) fn read_environment(
    above: &Object<'_, '_>,
    reader: &mut Reader<'_>,
) -> Vec<(String, SecretValue)> {
    let path = above.path.key("environment");
    let Some(node) = above.get("environment") else { return Vec::new() };
    let Some(object) = Object::open(node, &path, "the environment", reader) else { return Vec::new() };
    if object.entries().len() > MAX_VARIABLES {
        let message = format!("at most {MAX_VARIABLES} variables are allowed");
        reader.mistake(node.at, &path, message, "");
        return Vec::new();
    }
    let mut variables = Vec::new();
    for (key, value) in object.entries() {
        let name = key.name.as_str();
        let is_name = !name.starts_with(|first: char| first.is_ascii_digit())
            && !name.is_empty()
            && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        if !is_name {
            let message = format!("{} is not the name of a variable", quoted(name));
            reader.mistake(key.at, &path, message, "use letters, digits and underscores");
            continue;
        }
        let Some(value) = text(value, &path.key(name), reader) else { continue };
        if value.contains('\0') {
            reader.mistake(key.at, &path.key(name), "the value has a NUL character", "");
            continue;
        }
        variables.push((name.to_owned(), SecretValue(value.to_owned())));
    }
    let is_listed = |name: &str| {
        let list = above.get("public").map(|node| &node.value);
        matches!(list, Some(Value::List(items)) if items.iter().any(|item| matches!(&item.value, Value::Text(text) if text == name)))
    };
    for (name, SecretValue(value)) in &variables {
        let is_short = (1..MIN_SECRET_BYTES).contains(&value.len());
        if is_short && is_secret_name(name) && !is_listed(name) {
            let message = format!(
                "the value of `{name}` has fewer than {MIN_SECRET_BYTES} bytes: it is not kept out of reports and records"
            );
            reader.warn(object.key_at(name), &path.key(name), message, "");
        }
    }
    variables
}

/// The variables of a test and those of the suite that it does not override.
pub(super) fn merged(
    own: &[(String, SecretValue)],
    shared: &[(String, SecretValue)],
) -> Arc<[(String, SecretValue)]> {
    let inherited = shared.iter().filter(|(name, _)| own.iter().all(|(other, _)| other != name));
    own.iter().chain(inherited).cloned().collect()
}

/// The names of `public`; each must be a variable.
pub(super) fn read_public(
    above: &Object<'_, '_>,
    environment: &[(String, SecretValue)],
    reader: &mut Reader<'_>,
) -> Vec<String> {
    let Some(items) = above.list("public", reader) else { return Vec::new() };
    let path = above.path.key("public");
    let known: Vec<&str> = environment.iter().map(|(name, _)| name.as_str()).collect();
    let mut names = Vec::new();
    for (index, item) in items.iter().enumerate().take(MAX_ENTRIES) {
        let Some(name) = nonblank(item, &path.index(index), reader) else { continue };
        if known.contains(&name) {
            names.push(name.to_owned());
        } else {
            let message = format!("{} is no variable of `environment`", reader.shown(item));
            reader.mistake(item.at, &path.index(index), message, suggestion(name, &known));
        }
    }
    names
}

pub(super) fn read_network(above: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<bool> {
    match above.get("network")?.value {
        Value::Bool(allowed) => Some(allowed),
        Value::Text(_) => above.word("network", keys::NETWORK_WORDS, reader).map(|word| word == "allow"),
        _ => {
            reader.wrong_type(above.get("network")?, &above.path.key("network"), "`true` or `false`");
            None
        }
    }
}

/// `skip: REASON`, `skip: {reason: REASON}`, or `skip: false`.
pub(super) fn read_skip(above: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<String> {
    let node = above.get("skip")?;
    let path = above.path.key("skip");
    match &node.value {
        Value::Bool(false) => None,
        Value::Map(_) => {
            let object = Object::read(node, &path, &keys::SKIP, reader)?;
            object.required_text("reason", reader).map(str::to_owned)
        }
        Value::Text(_) => nonblank(node, &path, reader).map(str::to_owned),
        _ => {
            reader.mistake(
                node.at,
                &path,
                "a skipped test needs a reason",
                "write it as text: `skip: waits for …`",
            );
            None
        }
    }
}

pub(super) fn read_approvals(above: &Object<'_, '_>, reader: &mut Reader<'_>) -> Vec<Approval> {
    let Some(items) = above.list("approvals", reader) else { return Vec::new() };
    let list = above.path.key("approvals");
    if too_many(items.len(), above, "approvals", reader) {
        return Vec::new();
    }
    let mut approvals = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = list.index(index);
        let Some(object) = Object::read(item, &path, &keys::APPROVAL, reader) else { continue };
        let tool = object.required_text("tool", reader).map(str::to_owned);
        object.required("decision", reader);
        let decision = object.word("decision", keys::DECISIONS, reader).map(|word| match word {
            "approve" => ApprovalDecision::Approve,
            _ => ApprovalDecision::Deny,
        });
        let reason = object.text("reason", reader).unwrap_or_default().to_owned();
        if let (Some(tool), Some(decision)) = (tool, decision) {
            approvals.push(Approval { tool, decision, reason });
        }
    }
    approvals
}

fn too_many(count: usize, above: &Object<'_, '_>, key: &str, reader: &mut Reader<'_>) -> bool {
    if count > MAX_ENTRIES {
        let message = format!("at most {MAX_ENTRIES} entries are allowed");
        reader.mistake(above.key_at(key), &above.path.key(key), message, "");
    }
    count > MAX_ENTRIES
}

/// `files` and `reference`: a directory, or a list of paths and of mappings with `path` and `content` or `source`.
pub(super) fn read_files(above: &Object<'_, '_>, key: &str, reader: &mut Reader<'_>) -> Vec<FileItem> {
    let Some(node) = above.get(key) else { return Vec::new() };
    let list = above.path.key(key);
    match &node.value {
        Value::Text(_) => {
            let folder = nonblank(node, &list, reader).map(str::to_owned);
            if let Some(folder) = &folder {
                reader.refuse_missing(node, &list, folder, true);
            }
            let item = |folder| FileItem { path: WorkspacePath::root(), source: FileSource::Path(folder) };
            folder.map(item).into_iter().collect()
        }
        Value::List(items) => {
            if too_many(items.len(), above, key, reader) {
                return Vec::new();
            }
            let read =
                |(index, item): (usize, &std::rc::Rc<Node>)| read_file(item, &list.index(index), reader);
            items.iter().enumerate().filter_map(read).collect()
        }
        _ => {
            reader.wrong_type(node, &list, "the path of a directory, or a list of files");
            Vec::new()
        }
    }
}

fn read_file(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<FileItem> {
    if let Value::Text(written) = &node.value {
        let inside = workspace_path(node, path, written, reader)?;
        reader.refuse_missing(node, path, written, false);
        return Some(FileItem { path: inside, source: FileSource::Path(written.clone()) });
    }
    let object = Object::read(node, path, &keys::FILE, reader)?;
    let inside = object.required("path", reader).and_then(|node| {
        let below = path.key("path");
        let written = nonblank(node, &below, reader)?;
        workspace_path(node, &below, written, reader)
    });
    let content = object.text("content", reader);
    let source = object.nonblank("source", reader);
    if let (Some(source), Some(node)) = (source, object.get("source")) {
        reader.refuse_missing(node, &path.key("source"), source, false);
    }
    let source = match (content, source) {
        (Some(content), None) => FileSource::Inline(content.to_owned()),
        (None, Some(source)) => FileSource::Path(source.to_owned()),
        (None, None) if object.get("content").is_some() || object.get("source").is_some() => return None,
        _ => {
            reader.mistake(object.at, path, "a file has either `content` or `source`", "");
            return None;
        }
    };
    Some(FileItem { path: inside?, source })
}

/// A path inside the workspace.
pub(super) fn workspace_path(
    node: &Node,
    path: &Path<'_>,
    written: &str,
    reader: &mut Reader<'_>,
) -> Option<WorkspacePath> {
    match WorkspacePath::parse(written) {
        Ok(inside) => Some(inside),
        Err(_) if reader.substituted.contains_key(&node.at) => {
            let message = format!("{} is no path inside the workspace", reader.shown(node));
            reader.mistake(node.at, path, message, "");
            None
        }
        Err(error) => {
            reader.mistake(node.at, path, error.to_string(), "");
            None
        }
    }
}
