//! Advice that is never given.

use std::collections::BTreeSet;

use super::Warnings;
use crate::advice::{AdviceSection, IntentMatch, IntentSection};
use crate::document::{Document, DocumentScope};

pub(super) fn lint(documents: &[Document], warnings: &mut Warnings) {
    for document in documents {
        let Some(section) = &document.advice else { continue };
        if matches!(document.scope, DocumentScope::Tool(_)) {
            let message = "`advice` in a document for one tool is never given: agents ask for it as a whole";
            warnings.add(document, section.at, message);
        }
        lint_intents(document, section, warnings);
    }
    let strategies =
        |section: &AdviceSection| section.planning.as_ref().and_then(|found| found.strategies.clone());
    let types = |section: &AdviceSection| section.reasoning.as_ref().and_then(|found| found.types.clone());
    lint_disjoint(documents, "`planning.strategies`", strategies, warnings);
    lint_disjoint(documents, "`reasoning.types`", types, warnings);
}

/// Intents of one document that never matter, because an earlier one takes all that they would.
fn lint_intents(document: &Document, section: &AdviceSection, warnings: &mut Warnings) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for intent in &section.intents {
        let keys = match_keys(intent);
        if keys.iter().all(|key| taken.contains(key)) {
            let message =
                format!("intent `{}` never matters: earlier ones take all that it matches", intent.intent);
            warnings.add(document, intent.at, message);
        }
        taken.extend(keys);
    }
}

/// Key of an intent's match: equal keys match the same prompts.
fn match_keys(intent: &IntentSection) -> Vec<String> {
    match &intent.when {
        IntentMatch::Any(phrases) => phrases
            .iter()
            .map(|phrase| {
                let words: Vec<String> = phrase.split_whitespace().map(str::to_lowercase).collect();
                format!("any {}", words.join(" "))
            })
            .collect(),
        IntentMatch::Regex(regex) => vec![format!("regex {regex}")],
    }
}

/// Lists of two documents for the same agents that leave nothing together.
fn lint_disjoint(
    documents: &[Document],
    what: &str,
    list: impl Fn(&AdviceSection) -> Option<Vec<String>>,
    warnings: &mut Warnings,
) {
    let lists: Vec<(&Document, &AdviceSection, Vec<String>)> = documents
        .iter()
        .filter_map(|document| {
            let section = document.advice.as_ref()?;
            Some((document, section, list(section)?))
        })
        .collect();
    for (index, (document, section, names)) in lists.iter().enumerate() {
        for (other, other_section, other_names) in lists.iter().take(index) {
            let meet = document.scope == other.scope
                || document.scope == DocumentScope::Global
                || other.scope == DocumentScope::Global;
            if meet && !names.iter().any(|name| other_names.contains(name)) {
                let message = format!(
                    "{what} here and in {}:{} have nothing in common: all is refused",
                    other.file, other_section.at.line
                );
                warnings.add(document, section.at, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Policy, Source};

    fn warnings(sources: &[&str]) -> Vec<String> {
        let source = |(index, text): (usize, &&str)| {
            Source::document(&format!("p{index}"), &format!("default: deny\n{text}"))
        };
        let policy =
            Policy::compile(sources.iter().enumerate().map(source).collect()).expect("a valid policy");
        policy.warnings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn advice_that_is_never_given_is_named() {
        assert_eq!(
            warnings(&["scope: tool:shell\nadvice: {idle: {allow: false}}\n"]),
            ["p0:3:9: `advice` in a document for one tool is never given: agents ask for it as a whole"]
        );
        let intents = "advice:\n  intents:\n    - {intent: a, any: [where is, find]}\n    - {intent: b, any: [Where  IS]}\n    - {intent: c, any: [find, seek]}\n    - {intent: d, regex: find}\n    - {intent: e, regex: find}\n";
        assert_eq!(
            warnings(&[intents]),
            [
                "p0:5:7: intent `b` never matters: earlier ones take all that it matches",
                "p0:8:7: intent `e` never matters: earlier ones take all that it matches",
            ]
        );
    }

    #[test]
    fn lists_that_leave_nothing_are_named() {
        let one = "advice: {planning: {strategies: [none]}, reasoning: {types: [re_act, reflexion]}}\n";
        let other =
            "scope: team:x\nadvice: {planning: {strategies: [step_by_step]}, reasoning: {types: [re_act]}}\n";
        assert_eq!(
            warnings(&[one, other]),
            ["p1:3:9: `planning.strategies` here and in p0:2 have nothing in common: all is refused"]
        );
        assert!(warnings(&["scope: team:y\nadvice: {planning: {strategies: [none]}}\n", other]).is_empty());
    }
}
