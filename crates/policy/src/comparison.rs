//! Comparison of two policies: the changes by which the later one may let through, or ask about, what the earlier one did not.
//!
//! Without such a change, every decision under the later policy is at least as strict as under the earlier one on the same past, in the
//! order allow, redact and modify, ask, defer, deny. What is not known to be so counts as weaker: changed modules, advice and secret
//! patterns, changed conditions, and an added `ask` where the default denies, because it turns a denial into a question.
//!
//! One effect is left out: a condition that fails while it is evaluated denies, also in a rule that allows, so an `allow` rule that is
//! removed takes that denial with it.

mod rules;
mod sections;

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;

use crate::document::{Document, DocumentScope, Module, Position};
use crate::policy::{Policy, SourceRole, module_name};

/// The most changes that are listed.
const MAX_CHANGES: usize = 100;

/// The weaker changes from one policy to another, in words; none if the later one is at least as strict.
///
/// ```
/// use proctor_policy::comparison::weaker_changes;
/// use proctor_policy::policy::{Policy, Source};
/// let policy = |text: &str| Policy::compile(vec![Source::document("policy.yaml", text)]).unwrap();
/// let open = policy("version: \"1\"\ndefault: allow\n");
/// let closed = policy("version: \"1\"\ndefault: deny\n");
/// assert!(weaker_changes(&open, &closed).is_empty());
/// assert_eq!(weaker_changes(&closed, &open), ["`policy.yaml`: `default` was deny and is allow"]);
/// ```
pub fn weaker_changes(before: &Policy, after: &Policy) -> Vec<String> {
    let mut found = Changes::default();
    // A policy without documents denies everything.
    if before.digest() == after.digest() || after.documents().is_empty() {
        return Vec::new();
    }
    let context = Before::of(before);
    rules::compare_changing(before, after, &mut found);
    let mut unpaired: Vec<&Document> = after.documents().iter().collect();
    let mut rest = Vec::new();
    for old in before.documents() {
        match take(&mut unpaired, |new| new.scope == old.scope && file_name(new) == file_name(old)) {
            Some(new) => compare(&context, (before, old), (after, new), &mut found),
            None => rest.push(old),
        }
    }
    for old in rest {
        let removed = Document { file: old.file.clone(), scope: old.scope.clone(), ..Document::default() };
        // A renamed file is the same document.
        let new = take(&mut unpaired, |new| new.scope == old.scope);
        compare(&context, (before, old), (after, new.unwrap_or(&removed)), &mut found);
    }
    for new in unpaired {
        let none = Document { file: new.file.clone(), scope: new.scope.clone(), ..Document::default() };
        if !context.covers_everybody {
            found.add(new, "the document is new, and without it some callers had no policy, which denies");
        }
        compare(&context, (before, &none), (after, new), &mut found);
    }
    found.list()
}

/// Properties of the earlier policy that decide whether an added opinion can make a decision weaker.
struct Before {
    /// Some document denies what nothing mentions: an ask would lift that.
    denies_by_default: bool,
    /// No document asks or denies what nothing mentions: a permission changes nothing.
    allows_by_default: bool,
    /// Something may defer, which an ask outranks.
    defers: bool,
    /// Every caller has a document.
    covers_everybody: bool,
    /// Every caller has a document with `default` or `rules`, which leaves findings like e-mail addresses alone.
    has_rules: bool,
    /// Something responds to hosts that are in no allowlist.
    watches_hosts: bool,
    /// Rules, modules or approval expressions look at what actions hold.
    has_conditions: bool,
}

impl Before {
    fn of(policy: &Policy) -> Before {
        let documents = policy.documents();
        let defaults: Vec<Effect> = documents.iter().filter_map(own_default).collect();
        let global = |document: &&Document| document.scope == DocumentScope::Global;
        let defers = |document: &Document| {
            let rules = document.rules.iter().flatten();
            rules.into_iter().any(|rule| rule.then == Effect::Defer) || !document.modules.is_empty()
        };
        Before {
            denies_by_default: defaults.contains(&Effect::Deny),
            allows_by_default: defaults.iter().all(|default| *default == Effect::Allow),
            defers: documents.iter().any(defers),
            covers_everybody: documents.iter().any(|document| global(&document)),
            has_rules: documents.iter().filter(global).any(|document| own_default(document).is_some()),
            has_conditions: documents.iter().any(|document| {
                document.rules.iter().flatten().next().is_some()
                    || !document.modules.is_empty()
                    || document.tools.iter().any(|section| section.requires_approval_if.is_some())
            }),
            watches_hosts: documents.iter().any(|document| {
                document.anomalies.as_ref().is_some_and(|section| section.unknown_hosts.is_some())
            }),
        }
    }

    /// Whether an ask can stand where there was a stricter decision: the default's denial, or a deferral.
    fn ask_may_lift(&self) -> bool {
        self.denies_by_default || self.defers
    }
}

/// Weaker changes that were found.
#[derive(Default)]
struct Changes {
    listed: Vec<String>,
    more: usize,
}

impl Changes {
    fn add(&mut self, document: &Document, what: impl AsRef<str>) {
        if self.listed.len() < MAX_CHANGES {
            self.listed.push(format!("`{}`: {}", file_name(document), what.as_ref()));
        } else {
            self.more += 1;
        }
    }

    fn list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.listed.push(format!("and {} more", self.more));
        }
        self.listed
    }
}

/// Compares a document with what became of it.
fn compare(
    context: &Before,
    (old_policy, old): (&Policy, &Document),
    (new_policy, new): (&Policy, &Document),
    found: &mut Changes,
) {
    let (was, is) = (own_default(old), own_default(new));
    if strictness(is.unwrap_or(Effect::Allow)) < strictness(was.unwrap_or(Effect::Allow)) {
        let word = |default: Option<Effect>| default.unwrap_or(Effect::Allow).word();
        found.add(old, format!("`default` was {} and is {}", word(was), word(is)));
    }
    if was.is_none() && is.is_some_and(|effect| effect != Effect::Deny) && !context.has_rules {
        found.add(old, "with `default` or `rules`, e-mail addresses and random texts are not cut");
    }
    rules::compare(context, old, new, found);
    sections::compare(context, old, new, found);
    if modules(old_policy, old) != modules(new_policy, new) {
        found.add(old, "`modules` changed");
    }
    if without_positions(old) != without_positions(new) {
        found.add(old, "`advice` changed");
    }
}

/// Effect of a document on what nothing mentions; none if it leaves that to others.
fn own_default(document: &Document) -> Option<Effect> {
    match (&document.default, &document.rules) {
        (Some(default), _) => Some(default.value),
        (None, Some(_)) => Some(Effect::Deny),
        (None, None) => None,
    }
}

/// Order of effects: an action that is asked about runs once a person permits it, a deferred one does not.
pub(crate) const fn strictness(effect: Effect) -> u8 {
    match effect {
        Effect::Allow => 0,
        Effect::Redact | Effect::Modify => 1,
        Effect::Ask => 2,
        Effect::Defer => 3,
        Effect::Deny => 4,
    }
}

/// Languages and contents of the modules that a document names, in order.
fn modules(policy: &Policy, document: &Document) -> Vec<(SourceRole, Option<Digest>)> {
    let content = |role: SourceRole, path: &str| {
        let name = module_name(&document.file, path);
        let source = policy.sources().iter().find(|source| source.role == role && source.name == name);
        (role, source.map(|source| Digest::of(&source.bytes)))
    };
    let named = document.modules.iter().map(|module| match &module.value {
        Module::Cedar(path) => content(SourceRole::Cedar, path),
        Module::Rego(path) => content(SourceRole::Rego, path),
    });
    named.collect()
}

/// The advice of a document, wherever it stands in the file.
fn without_positions(document: &Document) -> Option<crate::advice::AdviceSection> {
    let mut advice = document.advice.clone()?;
    advice.at = Position::default();
    advice.intents.iter_mut().for_each(|intent| intent.at = Position::default());
    Some(advice)
}

fn file_name(document: &Document) -> &str {
    document.file.rsplit('/').next().unwrap_or(&document.file)
}

fn take<'a>(from: &mut Vec<&'a Document>, fits: impl Fn(&Document) -> bool) -> Option<&'a Document> {
    let index = from.iter().position(|document| fits(document))?;
    Some(from.remove(index))
}

#[cfg(test)]
mod tests;
