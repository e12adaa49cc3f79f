//! From an action as sent to what rules see and what is written: normalise, scan, cut.

use proctor_core::action::Action;
use proctor_core::json::Json;
use proctor_core::normalise::{Facts, PathResolver, normalise};

use crate::input::FoundSecret;
use crate::policy::Policy;
use crate::scan::{FindingKind, JsonFinding, Scanner};

/// An action without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The facts, as cut.
    pub facts: Facts,
    /// What was found.
    pub findings: Vec<FoundSecret>,
}

/// Normalises, scans and cuts an action. Derived facts are derived before cutting and cut one by one, so that cutting never
/// hides a command, path or host from a rule.
pub fn prepare(policy: &Policy, action: &Action, resolver: Option<&dyn PathResolver>) -> Prepared {
    let mut facts = normalise(action, resolver);
    let mut cutter = Cutter {
        scanner: policy.scanner(),
        keep_email: policy.credential_action().is_none(),
        findings: Vec::new(),
    };
    for (path, value) in
        [("$.args", &mut facts.args), ("$.result", &mut facts.result), ("$.metadata", &mut facts.metadata)]
    {
        cutter.json(path, value);
    }
    for (path, text) in [
        ("$.name", &mut facts.name),
        ("$.tool", &mut facts.tool),
        ("$.operation", &mut facts.operation),
        ("$.path", &mut facts.path),
        ("$.command", &mut facts.command),
        ("$.host", &mut facts.host),
        ("$.url", &mut facts.url),
        ("$.model", &mut facts.model),
        ("$.text", &mut facts.text),
        ("$.cwd", &mut facts.cwd),
        ("$.door", &mut facts.door),
    ] {
        cutter.text(path, text, sent(action, path));
    }
    for list in
        [&mut facts.paths, &mut facts.writes, &mut facts.commands, &mut facts.hosts, &mut facts.unknown]
    {
        for text in list {
            cutter.text("", text, false);
        }
    }
    Prepared { facts, findings: cutter.findings }
}

/// Whether the fact at this path was sent as such; derived ones are cut but not reported, because what they derive from is.
fn sent(action: &Action, path: &str) -> bool {
    match path {
        "$.name" => !action.name.is_empty(),
        "$.path" => !action.path.is_empty(),
        "$.command" => !action.command.is_empty(),
        "$.host" => !action.host.is_empty(),
        "$.url" => !action.url.is_empty(),
        "$.tool" => false,
        _ => true,
    }
}

struct Cutter<'a> {
    scanner: &'a Scanner,
    keep_email: bool,
    findings: Vec<FoundSecret>,
}

impl Cutter<'_> {
    fn json(&mut self, path: &str, value: &mut Json) {
        if value.is_null() {
            return;
        }
        let keep_email = self.keep_email;
        let (cut, found) =
            self.scanner.cut_json(value, path, &|kind| keep_email && kind == FindingKind::EmailAddress);
        if !found.is_empty() {
            *value = cut;
        }
        self.report(found);
    }

    fn text(&mut self, path: &str, text: &mut String, report: bool) {
        if text.is_empty() {
            return;
        }
        let keep_email = self.keep_email;
        let (cut, found) =
            self.scanner.cut_text(text, path, &|kind| keep_email && kind == FindingKind::EmailAddress);
        if found.is_empty() {
            return;
        }
        *text = cut;
        if report {
            self.report(found);
        }
    }

    fn report(&mut self, found: Vec<JsonFinding>) {
        for finding in found {
            let finding = FoundSecret { kind: finding.kind.name().to_owned(), path: finding.path };
            if !self.findings.contains(&finding) {
                self.findings.push(finding);
            }
        }
    }
}

/// A text without its secrets, for records that are not decisions.
pub fn cut_text(policy: &Policy, text: &str) -> String {
    policy.scanner().cut_text(text, "$", &|_| false).0
}

/// A value without its secrets, for records that are not decisions.
pub fn cut_json(policy: &Policy, value: &Json) -> Json {
    policy.scanner().cut_json(value, "$", &|_| false).0
}
