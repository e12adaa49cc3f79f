//! Preparation of an action: normalise, scan, redact.

use proctor_core::action::{Action, MemberMut};
use proctor_core::json::Json;
use proctor_facts::{Fact, Facts, PathResolver, Workspace, normalise_in};

use crate::input::FoundSecret;
use crate::policy::Policy;
use crate::scan::{FindingKind, JsonFinding, MAX_REPORTED_FINDINGS, Scanner};

/// An action with its secrets redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The facts, redacted.
    pub facts: Facts,
    /// Findings of the scanner, with their paths.
    pub findings: Vec<FoundSecret>,
}

/// Normalises, scans and redacts an action. Derived facts are derived before redaction and redacted one by one, so that redaction never
/// hides a command, path or host from a rule.
pub fn prepare_in(policy: &Policy, action: &Action, workspace: Workspace<'_>) -> Prepared {
    let mut facts = normalise_in(action, workspace);
    let mut redactor = Redactor {
        scanner: policy.scanner(),
        keep_email: !policy.redacts_email(),
        findings: Vec::new(),
        clean: Vec::new(),
    };
    // The three passes fix the order of the findings: first those in JSON, then those in texts.
    for fact in Fact::ALL {
        if let MemberMut::Json(value) = fact.get_mut(&mut facts) {
            redactor.json(fact.path(), value);
        }
    }
    // What rules compare piece by piece is cut piece by piece: only the piece with the secret goes.
    for fact in Fact::ALL {
        if let MemberMut::Text(text) = fact.get_mut(&mut facts) {
            if is_sent(action, *fact) {
                redactor.report_text(fact.path(), text);
            }
            redactor.pieces(text, separators(*fact));
        }
    }
    for fact in Fact::ALL {
        if let MemberMut::Texts(texts) = fact.get_mut(&mut facts) {
            for text in texts {
                redactor.pieces(text, separators(*fact));
            }
        }
    }
    Prepared { facts, findings: redactor.findings }
}

/// [`prepare_in`] for a caller without a workspace.
pub fn prepare(policy: &Policy, action: &Action, resolver: Option<&dyn PathResolver>) -> Prepared {
    prepare_in(policy, action, Workspace { folder: "", resolver })
}

/// The characters between the pieces of a fact that rules compare one by one.
const fn separators(fact: Fact) -> &'static [char] {
    match fact {
        Fact::Path | Fact::Cwd | Fact::Workspace | Fact::Paths | Fact::Writes => &['/'],
        Fact::Command | Fact::Commands | Fact::Unknown | Fact::Expansions | Fact::Opaque => &[' ', '/'],
        Fact::Assignments => &['=', ' ', '/'],
        Fact::Host | Fact::Hosts => &['.'],
        Fact::Url => &['/', '?', '&', '=', '#'],
        // Without a wildcard, here and below: a new fact has to say which it is.
        Fact::Kind
        | Fact::Name
        | Fact::Tool
        | Fact::Args
        | Fact::Result
        | Fact::Metadata
        | Fact::Operation
        | Fact::Port
        | Fact::Model
        | Fact::Text
        | Fact::Tokens
        | Fact::CostUsd
        | Fact::Depth
        | Fact::Door => &[],
    }
}

/// Whether a text fact was sent as such; derived ones are cut but not reported, because what they derive from is.
fn is_sent(action: &Action, fact: Fact) -> bool {
    match fact {
        Fact::Name => !action.name.is_empty(),
        Fact::Path => !action.path.is_empty(),
        Fact::Command => !action.command.is_empty(),
        Fact::Host => !action.host.is_empty(),
        Fact::Url => !action.url.is_empty(),
        Fact::Cwd => !action.cwd.is_empty(),
        Fact::Tool
        | Fact::Workspace
        | Fact::Paths
        | Fact::Writes
        | Fact::Commands
        | Fact::Hosts
        | Fact::Unknown
        | Fact::Expansions
        | Fact::Assignments
        | Fact::Opaque => false,
        Fact::Kind
        | Fact::Args
        | Fact::Result
        | Fact::Metadata
        | Fact::Operation
        | Fact::Port
        | Fact::Model
        | Fact::Text
        | Fact::Tokens
        | Fact::CostUsd
        | Fact::Depth
        | Fact::Door => true,
    }
}

struct Redactor<'a> {
    scanner: &'a Scanner,
    keep_email: bool,
    findings: Vec<FoundSecret>,
    /// Texts in which nothing was found: the same command or path stands in several facts, and is scanned once.
    clean: Vec<String>,
}

/// Most clean texts that are cached, and their greatest length.
const MAX_CLEAN: usize = 32;
const MAX_CLEAN_BYTES: usize = 4096;

impl Redactor<'_> {
    fn json(&mut self, path: &str, value: &mut Json) {
        if value.is_null() {
            return;
        }
        let keep_email = self.keep_email;
        let (cut, found) =
            self.scanner.redact_json(value, path, &|kind| keep_email && kind == FindingKind::EmailAddress);
        if !found.is_empty() {
            *value = cut;
        }
        // Not every place is named when there are too many: then the whole field is what has to be replaced.
        let unnamed =
            (found.len() >= MAX_REPORTED_FINDINGS).then(|| found.first().map(|first| first.kind)).flatten();
        self.report(found);
        if let Some(kind) = unnamed {
            self.findings.push(FoundSecret { kind: kind.name().to_owned(), path: format!("{path}…") });
        }
    }

    /// Whether nothing is found in a text.
    fn is_clean(&mut self, text: &str) -> bool {
        if text.is_empty() || self.clean.iter().any(|known| known == text) {
            return true;
        }
        let clean = self.scanner.scan_claimed(text).is_empty();
        if clean && text.len() <= MAX_CLEAN_BYTES && self.clean.len() < MAX_CLEAN {
            self.clean.push(text.to_owned());
        }
        clean
    }

    /// Reports what is found in a text as it was sent.
    fn report_text(&mut self, path: &str, text: &str) {
        if !self.is_clean(text) {
            let keep_email = self.keep_email;
            let (_, found) =
                self.scanner.redact_text(text, path, &|kind| keep_email && kind == FindingKind::EmailAddress);
            self.report(found);
        }
    }

    /// Cuts a text. If a secret is in it, only the pieces between separators that hold one are cut; a secret that has
    /// separators in it (a URL with a password) leaves nothing but the whole to cut.
    fn pieces(&mut self, text: &mut String, separators: &[char]) {
        if self.is_clean(text) {
            return;
        }
        let keep_email = self.keep_email;
        let keep = |kind: FindingKind| keep_email && kind == FindingKind::EmailAddress;
        let (whole, found) = self.scanner.redact_text(text, "", &keep);
        if !found.iter().any(|finding| !keep(finding.kind)) {
            return;
        }
        let by_piece: String = text
            .split_inclusive(separators)
            .map(|piece| {
                let (inner, separator) = match piece.char_indices().next_back() {
                    Some((at, last)) if separators.contains(&last) => piece.split_at(at),
                    _ => (piece, ""),
                };
                self.scanner.redact_text(inner, "", &keep).0 + separator
            })
            .collect();
        // Only what stays clean as a whole may stay in pieces.
        let (_, left) = self.scanner.redact_text(&by_piece, "", &keep);
        *text = if left.iter().any(|finding| !keep(finding.kind)) { whole } else { by_piece };
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

/// Redacts a text, for records that are not decisions.
pub fn redact_text(policy: &Policy, text: &str) -> String {
    policy.scanner().redact_text(text, "$", &|_| false).0
}

/// Redacts a value, for records that are not decisions.
pub fn redact_json(policy: &Policy, value: &Json) -> Json {
    policy.scanner().redact_json(value, "$", &|_| false).0
}
