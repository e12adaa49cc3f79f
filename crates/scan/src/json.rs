//! Redaction of JSON, leaf by leaf, so that the result is still JSON.

mod names;
mod number;

#[cfg(test)]
mod tests;

use proctor_core::json::Json;

use super::additional::{Strength, is_basic_credential, is_member_secret, strength};
use super::path::Path;
use super::{Finding, FindingKind, REDACTED_WHOLE, Scanner, leading_kind, redact};

/// Deepest nesting that is scanned; deeper values are redacted whole.
pub const MAX_JSON_DEPTH: usize = 128;

/// The most findings reported for one value. All findings beyond are cut as well, but reported only when they
/// are the first of their kind.
pub const MAX_REPORTED_FINDINGS: usize = 1000;

/// A finding in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFinding {
    /// Kind of secret.
    pub kind: FindingKind,
    /// The JSONPath of the leaf or member. Names in it are shown as they stand after the cut, so that the path
    /// repeats no secret; a path that is too long ends in `…`.
    pub path: String,
    /// Whether the member's name holds the finding, rather than its value.
    pub in_name: bool,
    /// The first byte of the finding in the string, name or number.
    pub offset: usize,
    /// The byte after the last byte of the finding.
    pub end: usize,
}

impl Scanner {
    /// Scans every string, number and member name of `value`, and returns the value with all findings cut but
    /// those for which `keep` is true. Paths start with `prefix`.
    ///
    /// Only strings change, with two exceptions: a number with a finding becomes a string, and what is nested
    /// deeper than [`MAX_JSON_DEPTH`] becomes the string `[REDACTED]`. Names that become equal are told apart
    /// by `~2`, `~3` and so on.
    pub fn redact_json(
        &self,
        value: &Json,
        prefix: &str,
        keep: &dyn Fn(FindingKind) -> bool,
    ) -> (Json, Vec<JsonFinding>) {
        let mut redactor = Redactor::new(self, keep);
        let cut = redactor.redact_value(value, &Path::root(prefix), 1);
        (cut.unwrap_or_else(|| value.clone()), redactor.reported)
    }

    /// Findings of [`Scanner::redact_json`] where everything is kept; the value is not copied.
    pub fn scan_json(&self, value: &Json, prefix: &str) -> Vec<JsonFinding> {
        let mut redactor = Redactor::new(self, &|_| true);
        redactor.redact_value(value, &Path::root(prefix), 1);
        redactor.reported
    }

    /// [`Scanner::redact_json`] for a text; every finding has the path `path`.
    pub fn redact_text(
        &self,
        text: &str,
        path: &str,
        keep: &dyn Fn(FindingKind) -> bool,
    ) -> (String, Vec<JsonFinding>) {
        let mut redactor = Redactor::new(self, keep);
        let findings = self.scan_claimed(text);
        let cut = redactor.cut_string(text, &findings, &Path::root(path), false);
        (cut.unwrap_or_else(|| text.to_owned()), redactor.reported)
    }
}

/// Walk over a value. Its methods return `None` where nothing changes, so that a clean value is not copied.
struct Redactor<'s> {
    scanner: &'s Scanner,
    keep: &'s dyn Fn(FindingKind) -> bool,
    reported: Vec<JsonFinding>,
    seen: [bool; FindingKind::ALL.len()],
}

impl<'s> Redactor<'s> {
    fn new(scanner: &'s Scanner, keep: &'s dyn Fn(FindingKind) -> bool) -> Redactor<'s> {
        Redactor { scanner, keep, reported: Vec::new(), seen: [false; FindingKind::ALL.len()] }
    }

    /// `depth` counts the containers around and including the value.
    fn redact_value(&mut self, value: &Json, path: &Path<'_>, depth: usize) -> Option<Json> {
        match value {
            Json::Null | Json::Bool(_) => None,
            Json::Number(literal) => self.cut_number(literal, path),
            Json::String(text) => {
                let findings = self.scanner.scan_claimed(text);
                self.cut_string(text, &findings, path, false).map(Json::String)
            }
            Json::Array(_) | Json::Object(_) if depth > MAX_JSON_DEPTH => {
                self.report(&Finding { kind: FindingKind::Custom, offset: 0, end: 0 }, path, false);
                Some(Json::String(REDACTED_WHOLE.to_owned()))
            }
            Json::Array(elements) => self.cut_array(elements, path, depth),
            Json::Object(members) => self.cut_object(members, path, depth),
        }
    }

    fn cut_array(&mut self, elements: &[Json], path: &Path<'_>, depth: usize) -> Option<Json> {
        let changed: Vec<(usize, Json)> = elements
            .iter()
            .enumerate()
            .filter_map(|(index, element)| {
                let path = path.index(index);
                let cut = match index.checked_sub(1).and_then(|before| elements.get(before)) {
                    Some(Json::String(option)) if is_secret_option(option) && is_text(element) => {
                        self.cut_presented(element, Presented::Option, &path, depth + 1)
                    }
                    _ => self.redact_value(element, &path, depth + 1),
                };
                Some((index, cut?))
            })
            .collect();
        if changed.is_empty() {
            return None;
        }
        Some(Json::Array(with_changes(elements, changed, Json::clone).collect()))
    }

    fn cut_object(&mut self, members: &[(String, Json)], path: &Path<'_>, depth: usize) -> Option<Json> {
        let new_names = self.cut_names(members, path);
        let is_service_account = members.iter().any(|(name, value)| is_service_account_type(name, value));
        let mut changed = Vec::new();
        for (index, (name, value)) in members.iter().enumerate() {
            let shown = new_names.get(index).and_then(Option::as_deref).unwrap_or(name);
            let member_path = path.name(shown);
            let cut = match value {
                Json::String(text) if is_service_account && (name == "type" || name == "private_key") => {
                    self.cut_whole(text, &member_path)
                }
                _ => match presented_as(members, name, value) {
                    Some(presented) => self.cut_presented(value, presented, &member_path, depth + 1),
                    None => self.redact_value(value, &member_path, depth + 1),
                },
            };
            changed.extend(cut.map(|cut| (index, cut)));
        }
        if changed.is_empty() && new_names.is_empty() {
            return None;
        }
        let names = members
            .iter()
            .enumerate()
            .map(|(index, (name, _))| new_names.get(index).and_then(Option::as_ref).unwrap_or(name).clone());
        let values = with_changes(members, changed, |(_, value)| value.clone());
        Some(Json::Object(names.zip(values).collect()))
    }

    /// A value whose name presents it as a credential: found as a whole, unless it does not look like one.
    fn cut_presented(
        &mut self,
        value: &Json,
        presented: Presented,
        path: &Path<'_>,
        depth: usize,
    ) -> Option<Json> {
        let is_secret = |text: &str| match presented {
            Presented::Named(strength) => is_member_secret(text, strength),
            Presented::Basic => is_basic_credential(text),
            Presented::Option => !text.starts_with('-') && is_member_secret(text, Strength::Password),
        };
        let whole = |length| Finding { kind: FindingKind::Credential, offset: 0, end: length };
        match value {
            Json::String(text) if is_secret(text) => {
                let mut findings = self.scanner.scan_claimed(text);
                let is_known = findings.iter().any(|finding| {
                    !finding.kind.is_additional()
                        && finding.kind.priority() > FindingKind::Credential.priority()
                        && (finding.offset, finding.end) == (0, text.len())
                });
                if !is_known {
                    findings.insert(0, whole(text.len()));
                }
                self.cut_string(text, &findings, path, false).map(Json::String)
            }
            Json::Number(literal) if presented == Presented::Named(Strength::Password) => {
                self.report(&whole(literal.len()), path, false);
                let kind = FindingKind::Credential;
                (!(self.keep)(kind)).then(|| Json::String(kind.replacement().to_owned()))
            }
            Json::Array(elements) if depth <= MAX_JSON_DEPTH => {
                let changed: Vec<(usize, Json)> = elements
                    .iter()
                    .enumerate()
                    .filter_map(|(index, element)| {
                        let path = path.index(index);
                        Some((index, self.cut_presented(element, presented, &path, depth + 1)?))
                    })
                    .collect();
                let is_changed = !changed.is_empty();
                is_changed.then(|| Json::Array(with_changes(elements, changed, Json::clone).collect()))
            }
            _ => self.redact_value(value, path, depth),
        }
    }

    /// A string of a service account: found as a whole, whatever else is found in it.
    fn cut_whole(&mut self, text: &str, path: &Path<'_>) -> Option<Json> {
        let mut findings = self.scanner.scan_claimed(text);
        let is_private_key = findings.iter().any(|finding| finding.kind == FindingKind::PrivateKey);
        findings.retain(|finding| finding.kind != FindingKind::PrivateKey && !finding.kind.is_additional());
        let kind = if is_private_key { FindingKind::PrivateKey } else { FindingKind::GcpServiceAccount };
        findings.insert(0, Finding { kind, offset: 0, end: text.len() });
        self.cut_string(text, &findings, path, false).map(Json::String)
    }

    /// Reports the findings in a string or name, and cuts those that are not kept.
    fn cut_string(
        &mut self,
        text: &str,
        findings: &[Finding],
        path: &Path<'_>,
        in_name: bool,
    ) -> Option<String> {
        for finding in findings {
            self.report(finding, path, in_name);
        }
        self.without_secrets(text, findings)
    }

    fn without_secrets(&self, text: &str, findings: &[Finding]) -> Option<String> {
        if findings.iter().all(|finding| (self.keep)(finding.kind)) {
            return None;
        }
        let cut: Vec<Finding> =
            findings.iter().filter(|finding| !(self.keep)(finding.kind)).copied().collect();
        Some(redact(text, &cut))
    }

    fn cut_number(&mut self, literal: &str, path: &Path<'_>) -> Option<Json> {
        let findings = number::scan(self.scanner, literal);
        for finding in &findings {
            self.report(finding, path, false);
        }
        let cut = findings.iter().map(|finding| finding.kind).filter(|kind| !(self.keep)(*kind));
        leading_kind(cut).map(|kind| Json::String(kind.replacement().to_owned()))
    }

    fn report(&mut self, finding: &Finding, path: &Path<'_>, in_name: bool) {
        let is_first =
            self.seen.get_mut(finding.kind as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        if is_first || self.reported.len() < MAX_REPORTED_FINDINGS {
            let &Finding { kind, offset, end } = finding;
            self.reported.push(JsonFinding { kind, path: path.render(), in_name, offset, end });
        }
    }
}

/// What presents a value as a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presented {
    /// A name.
    Named(Strength),
    /// A name whose value is user and password in base64.
    Basic,
    /// The option before it in a list of words.
    Option,
}

/// What presents the value of a member as a credential: its own name, or that of a pair of name and value.
fn presented_as(members: &[(String, Json)], name: &str, value: &Json) -> Option<Presented> {
    if !matches!(value, Json::String(_) | Json::Number(_) | Json::Array(_)) {
        return None;
    }
    if name == "auth" || name == "_auth" {
        return Some(Presented::Basic);
    }
    if name.eq_ignore_ascii_case("value") && members.len() <= MAX_PAIR_MEMBERS {
        let is_name =
            |name: &str| ["name", "key", "header", "variable"].iter().any(|it| name.eq_ignore_ascii_case(it));
        return members.iter().find_map(|(name, value)| match value {
            Json::String(text) if is_name(name) => strength(text).map(Presented::Named),
            _ => None,
        });
    }
    strength(name).map(Presented::Named)
}

/// The most members of an object that is a pair of name and value.
const MAX_PAIR_MEMBERS: usize = 6;

/// Whether the word of a command line is an option that takes a credential as the next word.
fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains('=') && strength(word).is_some()
}

fn is_text(value: &Json) -> bool {
    matches!(value, Json::String(_))
}

fn is_service_account_type(name: &str, value: &Json) -> bool {
    name == "type" && matches!(value, Json::String(text) if text == "service_account")
}

/// `items` through `copy`, with the values at the given rising indices taken from `changed`.
fn with_changes<T>(
    items: &[T],
    changed: Vec<(usize, Json)>,
    copy: impl Fn(&T) -> Json,
) -> impl Iterator<Item = Json> {
    let mut changed = changed.into_iter().peekable();
    items.iter().enumerate().map(move |(index, item)| {
        changed.next_if(|(at, _)| *at == index).map_or_else(|| copy(item), |(_, cut)| cut)
    })
}
