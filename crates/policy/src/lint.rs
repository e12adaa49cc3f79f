//! Warnings about documents that are valid but probably not meant, or weaker than they look.

mod advice;
mod modules;
mod rules;

use proctor_core::decision::Effect;

use crate::document::{ActiveHours, CredentialAction, Document, DocumentScope, Position};
use crate::policy::CompiledRule;

pub(crate) use modules::lint_module;

/// Warning about a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// The source's name.
    pub file: String,
    /// Position in it.
    pub at: Position,
    /// Role.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}:{}: {}", self.file, self.at.line, self.at.column, self.message)
    }
}

/// Checks documents that are in force together, and their compiled rules. The warnings are sorted by file and position.
pub(crate) fn lint(documents: &[Document], compiled: &[CompiledRule]) -> Vec<Warning> {
    let mut warnings = Warnings::default();
    let closed = documents.iter().any(|document| document.default.is_some() || document.rules.is_some());
    for document in documents {
        if !closed {
            let message = "the document has neither `rules` nor `default`: what its sections do not restrict is allowed";
            warnings.add(document, Position { line: 1, column: 1 }, message);
        }
        lint_version(document, &mut warnings);
        lint_openings(document, &mut warnings);
        lint_tools(document, &mut warnings);
        lint_rules(document, &mut warnings);
    }
    rules::lint(documents, compiled, &mut warnings);
    lint_hours(documents, &mut warnings);
    advice::lint(documents, &mut warnings);
    warnings.found.sort();
    warnings.found.dedup();
    warnings.found
}

#[derive(Default)]
struct Warnings {
    found: Vec<Warning>,
}

impl Warnings {
    fn add(&mut self, document: &Document, at: Position, message: impl Into<String>) {
        self.found.push(Warning { file: document.file.clone(), at, message: message.into() });
    }
}

/// A version of the format that this one is not: keys of it may mean something else.
fn lint_version(document: &Document, warnings: &mut Warnings) {
    let is_known = document.version == "1" || document.version.starts_with("1.");
    if let Some(at) = document.version_at.filter(|_| !is_known) {
        let version = proctor_core::quoted(&document.version);
        warnings.add(
            document,
            at,
            format!("version {version} is not known; the document is read as version `1`"),
        );
    }
}

/// Keys that make the document weaker than it would be without them.
fn lint_openings(document: &Document, warnings: &mut Warnings) {
    if let Some(default) = &document.default
        && default.value == Effect::Allow
    {
        warnings.add(document, default.at, "`default: allow` lets through everything that nothing mentions");
    }
    for host in document.network_allowlist.iter().flatten().filter(|host| host.value.trim() == "*") {
        warnings.add(document, host.at, "`*` in `network.allowlist` allows every host");
    }
    if let Some(data) = &document.data
        && data.credential_action == Some(CredentialAction::AlertOnly)
    {
        let message = "`credential_action: alert_only` lets actions with secrets in them through unchanged";
        warnings.add(document, data.at, message);
    }
    if let Some(first) = document.observe.first() {
        let message = "`observe` lets the agents that it names do what the policy denies, if they ask for it";
        warnings.add(document, first.at, message);
    }
    if let Some(capabilities) = &document.capabilities {
        let named = capabilities.allow.iter().flatten().chain(&capabilities.deny);
        if named.into_iter().any(|name| name == "network_inbound") {
            let message = "capability `network_inbound` guards nothing: no action is an incoming connection";
            warnings.add(document, capabilities.at, message);
        }
    }
}

fn lint_tools(document: &Document, warnings: &mut Warnings) {
    for tool in &document.tools {
        if tool.name == "*" && tool.allow {
            warnings.add(document, tool.at, "`tools.\"*\".allow: true` allows every tool that is not listed");
        }
        if tool.name != "*" && tool.name.contains(['*', '?', '[']) {
            let message = format!(
                "`{}` is the name of one tool, not a pattern: only `*` alone stands for others; write a rule on `action.tool`",
                tool.name
            );
            warnings.add(document, tool.at, message);
        }
        if !tool.allow_written {
            let message = format!(
                "tool `{}` is listed without `allow`, so it is denied; write `allow: false` or `allow: true`",
                tool.name
            );
            warnings.add(document, tool.at, message);
        } else if !tool.allow && (tool.limit_per_hour.is_some() || tool.requires_approval_if.is_some()) {
            let message = format!(
                "tool `{}` is denied, so that its limit and its approval expression never matter",
                tool.name
            );
            warnings.add(document, tool.at, message);
        }
    }
}

fn lint_rules(document: &Document, warnings: &mut Warnings) {
    for rule in document.rules.iter().flatten() {
        if !rule.taints.is_empty() && matches!(rule.then, Effect::Deny | Effect::Defer) {
            let message =
                format!("`taint` of rule `{}` is never set: what it matches is not let through", rule.id);
            warnings.add(document, rule.at, message);
        }
        if rule.when.is_none() && rule.then == Effect::Allow {
            warnings.add(
                document,
                rule.at,
                format!("rule `{}` has no `when`: it allows everything", rule.id),
            );
        }
    }
}

/// Hours of two documents for the same agents in the same zone that have no minute in common.
fn lint_hours(documents: &[Document], warnings: &mut Warnings) {
    let scheduled: Vec<(&Document, &ActiveHours)> = documents
        .iter()
        .filter_map(|document| document.active_hours.as_ref().map(|hours| (document, hours)))
        .collect();
    for (index, (document, hours)) in scheduled.iter().enumerate() {
        for (other, other_hours) in scheduled.iter().take(index) {
            let meet = document.scope == other.scope
                || document.scope == DocumentScope::Global
                || other.scope == DocumentScope::Global;
            if meet
                && hours.timezone == other_hours.timezone
                && !(0..1440).any(|minute| is_active(hours, minute) && is_active(other_hours, minute))
            {
                let message = format!(
                    "these hours and those of {}:{} have no minute in common: nothing can run",
                    other.file, other.active_hours_at.line
                );
                warnings.add(document, document.active_hours_at, message);
            }
        }
    }
}

fn is_active(hours: &ActiveHours, minute: u16) -> bool {
    if hours.start <= hours.end {
        (hours.start..hours.end).contains(&minute)
    } else {
        minute >= hours.start || minute < hours.end
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Policy, Source};

    fn warnings(sources: &[&str]) -> Vec<String> {
        let source = |(index, text): (usize, &&str)| Source::document(&format!("p{index}"), text);
        let policy =
            Policy::compile(sources.iter().enumerate().map(source).collect()).expect("a valid policy");
        policy.warnings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_careful_document_has_no_warnings() {
        let source = "default: deny\nrules:\n  - {id: a, when: 'action.tool == \"x\"', then: allow}\ntools:\n  y: {allow: true, limit_per_hour: 3}\n";
        assert_eq!(warnings(&[source]), Vec::<String>::new());
    }

    #[test]
    fn a_version_that_is_not_known_is_named() {
        let of = |version: &str| warnings(&[&format!("version: \"{version}\"\ndefault: deny\n")]);
        assert_eq!(of("2"), ["p0:1:11: version `2` is not known; the document is read as version `1`"]);
        assert_eq!(of("10").len(), 1);
        assert!(of("1").is_empty() && of("1.0").is_empty());
        // A version of the envelope is that of what people wrote.
        assert!(warnings(&["metadata: {version: \"7\"}\nspec: {default: deny}\n"]).is_empty());
    }

    #[test]
    fn weakenings_are_named() {
        let source = "\
default: allow
network: {allowlist: [a.example, '*']}
data: {credential_action: alert_only}
capabilities: {deny: [network_inbound]}
observe: ['canary-*', other]
tools:
  '*': {allow: true}
  shell: {}
  file_write: {allow: false, limit_per_hour: 3}
rules:
  - {id: open, then: allow}
  - {id: marks, when: 'action.depth > 5', then: deny, taint: x}
";
        assert_eq!(
            warnings(&[source]),
            [
                "p0:1:10: `default: allow` lets through everything that nothing mentions",
                "p0:2:35: `*` in `network.allowlist` allows every host",
                "p0:3:27: `credential_action: alert_only` lets actions with secrets in them through unchanged",
                "p0:4:15: capability `network_inbound` guards nothing: no action is an incoming connection",
                "p0:5:12: `observe` lets the agents that it names do what the policy denies, if they ask for it",
                "p0:7:3: `tools.\"*\".allow: true` allows every tool that is not listed",
                "p0:8:3: tool `shell` is listed without `allow`, so it is denied; write `allow: false` or `allow: true`",
                "p0:9:3: tool `file_write` is denied, so that its limit and its approval expression never matter",
                "p0:11:5: rule `open` has no `when`: it allows everything",
                "p0:12:5: `taint` of rule `marks` is never set: what it matches is not let through",
            ]
        );
    }

    #[test]
    fn a_name_that_looks_like_a_pattern_is_named() {
        let found = warnings(&["default: deny\ntools: {'delete_*': {allow: true}}\n"]);
        assert!(
            found.len() == 1 && found[0].starts_with("p0:2:9: `delete_*` is the name of one tool"),
            "{found:?}"
        );
    }

    #[test]
    fn a_document_without_rules_and_default_is_open_unless_another_closes_it() {
        let open = "tools: {shell: {allow: false}}\n";
        assert_eq!(
            warnings(&[open]),
            [
                "p0:1:1: the document has neither `rules` nor `default`: what its sections do not restrict is allowed"
            ]
        );
        assert!(warnings(&[open, "default: deny\n"]).is_empty());
    }

    #[test]
    fn hours_that_exclude_each_other_are_named() {
        let morning =
            "default: deny\nschedule: {active_hours: {start: 06:00, end: '12:00', timezone: UTC}}\n";
        let night = "schedule: {active_hours: {start: '22:00', end: 06:00, timezone: UTC}}\n";
        assert_eq!(
            warnings(&[morning, night]),
            ["p1:1:26: these hours and those of p0:2 have no minute in common: nothing can run"]
        );
        assert!(
            warnings(&[morning, "schedule: {active_hours: {start: 11:00, end: '13:00', timezone: UTC}}\n"])
                .is_empty()
        );
    }
}
