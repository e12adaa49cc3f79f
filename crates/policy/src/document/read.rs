//! Document reader: both forms, all keys, all problems.

use proctor_core::quoted;
use proctor_yaml::{Key, Node, Value, parse_recovering};

use super::advice::read_advice;
use super::anomalies::{read_anomalies, read_observe};
use super::budget::read_budget;
use super::fields::Fields;
use super::problems::Problems;
use super::rules::{read_modules, read_rules};
use super::sections;
use super::{Document, DocumentScope, Located, Problem, YAML_LIMITS, keys};

/// Reads a policy document: YAML or JSON, flat or in an envelope. Either the document is right in every part, or all that is
/// wrong with it comes back, by position.
///
/// ```
/// use proctor_policy::document::read_document;
/// let document = read_document("policy.yaml", b"default: ask\nrules: []\n").unwrap();
/// assert!(document.default.is_some());
///
/// let problems = read_document("policy.yaml", b"defualt: ask\n").unwrap_err();
/// assert_eq!(problems[0].to_string(), "policy.yaml:1:1: unknown key `defualt`; did you mean `default`?");
/// ```
pub fn read_document(file: &str, source: &[u8]) -> Result<Document, Vec<Problem>> {
    let mut problems = Problems::new(file);
    let parsed = parse_recovering(source, &YAML_LIMITS);
    problems.extend(parsed.errors);
    let document = parsed.root.and_then(|root| read_root(file, &root, &mut problems));
    match document {
        Some(document) if problems.is_empty() => Ok(document),
        _ => Err(problems.sorted()),
    }
}

/// The form is told by the presence of `spec`.
fn read_root(file: &str, root: &Node, problems: &mut Problems) -> Option<Document> {
    let has_spec =
        matches!(&root.value, Value::Map(entries) if entries.iter().any(|(key, _)| key.name == "spec"));
    let mut document = Document { file: file.to_owned(), ..Document::default() };
    if !has_spec {
        read_body(root, "", &mut document, problems)?;
        return Some(document);
    }
    let explain = |key: &Key, _: &Node| {
        keys::DOCUMENT.contains(&key.name.as_str()).then(|| {
            format!(
                "{} stands beside `spec`; in a document with `spec` it belongs below it",
                quoted(&key.name)
            )
        })
    };
    let envelope = Fields::of(root, "", keys::ENVELOPE, problems, &explain)?;
    envelope.text("apiVersion", problems);
    envelope.text("kind", problems);
    if let Some(metadata) = envelope.get("metadata") {
        let metadata = Fields::closed(metadata, "metadata", keys::METADATA, problems);
        if let Some(metadata) = metadata {
            document.name =
                metadata.text("name", problems).map_or_else(String::new, |name| name.value.to_owned());
            document.version =
                metadata.text("version", problems).map_or_else(String::new, |text| text.value.to_owned());
            metadata.text("description", problems);
        }
    }
    read_body(envelope.get("spec")?, "spec", &mut document, problems)?;
    Some(document)
}

fn read_body(body: &Node, path: &str, document: &mut Document, problems: &mut Problems) -> Option<()> {
    let fields = Fields::of(body, path, keys::DOCUMENT, problems, &explain_refused)?;
    // Sections are named in messages as the manual names them, with or without an envelope around them.
    if let Some(version) = fields.text("version", problems) {
        version.value.clone_into(&mut document.version);
        document.version_at = Some(version.at);
    }
    document.scope = read_scope(&fields, problems);
    document.default = fields
        .word("default", keys::DEFAULTS, problems)
        .and_then(|word| word.value.parse().ok().map(|value| Located { value, at: word.at }));
    document.rules = fields.get("rules").and_then(|node| read_rules(node, problems));
    document.modules = fields.get("modules").map(|node| read_modules(node, problems)).unwrap_or_default();
    document.network_allowlist =
        fields.get("network").and_then(|node| sections::read_network(node, problems));
    document.tools = fields.get("tools").map(|node| sections::read_tools(node, problems)).unwrap_or_default();
    document.data = fields.get("data").and_then(|node| sections::read_data(node, problems));
    document.budget = fields.get("budget").and_then(|node| read_budget(node, problems));
    if let Some(hours) = fields.get("schedule").and_then(|node| sections::read_schedule(node, problems)) {
        document.active_hours = Some(hours.value);
        document.active_hours_at = hours.at;
    }
    document.capabilities =
        fields.get("capabilities").and_then(|node| sections::read_capabilities(node, problems));
    document.advice = fields.get("advice").and_then(|node| read_advice(node, problems));
    document.observe = read_observe(&fields, problems);
    document.anomalies = fields.get("anomalies").and_then(|node| read_anomalies(node, problems));
    document.approval_timeout_secs = fields.count("approval_timeout_secs", problems);
    if let Some(approval) =
        fields.get("approval").and_then(|node| Fields::closed(node, "approval", keys::APPROVAL, problems))
    {
        document.approval_timeout_secs =
            approval.count("timeout_seconds", problems).or(document.approval_timeout_secs);
        document.escalation_role =
            approval.nonblank("escalation_role", problems).map(|role| role.value.to_owned());
    }
    Some(())
}

fn explain_refused(key: &Key, _: &Node) -> Option<String> {
    if matches!(key.name.as_str(), "apiVersion" | "kind" | "metadata") {
        return Some(format!(
            "{} belongs to the envelope form, which needs `spec` beside it",
            quoted(&key.name)
        ));
    }
    keys::REFUSED.iter().find(|(name, _)| *name == key.name).map(|(_, why)| (*why).to_owned())
}

fn read_scope(fields: &Fields<'_>, problems: &mut Problems) -> DocumentScope {
    let Some(written) = fields.text("scope", problems) else { return DocumentScope::Global };
    if written.value == "global" {
        return DocumentScope::Global;
    }
    let scope = match written.value.split_once(':') {
        Some((_, id)) if id.trim() != id || id.is_empty() => None,
        Some(("org", id)) => Some(DocumentScope::Org(id.to_owned())),
        Some(("team", id)) => Some(DocumentScope::Team(id.to_owned())),
        Some(("agent", id)) => Some(DocumentScope::Agent(id.to_owned())),
        Some(("tool", name)) => Some(DocumentScope::Tool(name.to_owned())),
        _ => None,
    };
    scope.unwrap_or_else(|| {
        let at = fields.get("scope").map_or(written.at, |node| node.at);
        let forms = "`global`, `org:ID`, `team:ID`, `agent:ID` or `tool:NAME`";
        problems.add(at, format!("unknown scope {}; write {forms}", quoted(written.value)));
        DocumentScope::Global
    })
}
