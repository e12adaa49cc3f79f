//! Compilation of sources: reads every document, finds the modules they name, compiles conditions, collects all problems.

use std::collections::BTreeSet;
use std::sync::Arc;

use proctor_core::digest::Digest;

use super::source::{self, Source, SourceRole, module_name};
use super::{CompiledAdvice, CompiledModule, CompiledRule, Policy, RuleIndex};
use crate::advice::CompiledSection;
use crate::condition::Condition;
use crate::document::{CredentialAction, Document, Located, Module, Position, Problem, read_document};
use crate::lint::Warning;
use crate::modules::{self, Language};
use crate::scan::Scanner;

/// The most documents that a policy may have.
const MAX_DOCUMENTS: usize = 1000;
/// The most intents that all documents may have together.
const MAX_INTENTS: usize = 1024;

pub(super) fn closed() -> Policy {
    Policy {
        digest: source::sources_digest(&[]),
        sources: Vec::new(),
        source_digests: Vec::new(),
        documents: Vec::new(),
        rules: Vec::new(),
        index: RuleIndex::new(std::iter::empty()),
        modules: Vec::new(),
        scanner: Scanner::default(),
        credential_action: None,
        advice: Vec::new(),
        warnings: Vec::new(),
    }
}

pub(super) fn compile(mut sources: Vec<Source>) -> Result<Policy, Vec<Problem>> {
    sources.sort();
    let mut problems = Vec::new();
    let documents = read_documents(&sources, &mut problems);
    let mut used = BTreeSet::new();
    let mut rules = Vec::new();
    let mut modules = Vec::new();
    let mut warnings = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        compile_rules(number, document, &mut rules, &mut warnings, &mut problems);
        compile_modules(number, document, &sources, &mut used, &mut modules, &mut warnings, &mut problems);
    }
    let scanner = compile_scanner(&documents, &mut problems);
    let advice = compile_advice(&documents, &mut problems);
    if !problems.is_empty() {
        problems.sort();
        problems.dedup();
        return Err(problems);
    }
    sources.retain(|source| source.role == SourceRole::Document || used.contains(&source.name));
    warnings.extend(crate::lint::lint(&documents, &rules));
    warnings.sort();
    Ok(Policy {
        digest: source::sources_digest(&sources),
        source_digests: sources.iter().map(|source| Digest::of(&source.bytes)).collect(),
        index: RuleIndex::new(rules.iter().map(|rule| rule.condition.as_ref())),
        credential_action: strictest_credential_action(documents.iter()),
        sources,
        documents,
        rules,
        modules,
        scanner,
        advice,
        warnings,
    })
}

fn read_documents(sources: &[Source], problems: &mut Vec<Problem>) -> Vec<Document> {
    let mut documents = Vec::new();
    let texts: Vec<_> = sources.iter().filter(|source| source.role == SourceRole::Document).collect();
    if texts.len() > MAX_DOCUMENTS {
        problems.push(Problem {
            file: String::new(),
            at: Position::default(),
            message: format!("{} documents are over the limit of {MAX_DOCUMENTS}", texts.len()),
        });
        return documents;
    }
    for text in texts {
        match read_document(&text.name, &text.bytes) {
            Ok(document) => documents.push(document),
            Err(found) => problems.extend(found),
        }
    }
    documents
}

fn compile_rules(
    number: usize,
    document: &Document,
    rules: &mut Vec<CompiledRule>,
    warnings: &mut Vec<Warning>,
    problems: &mut Vec<Problem>,
) {
    for rule in document.rules.iter().flatten() {
        let mut condition = None;
        if let Some(when) = &rule.when {
            match Condition::compile(&when.value) {
                Ok(compiled) => {
                    warnings.extend(compiled.warnings().into_iter().map(|warning| Warning {
                        file: document.file.clone(),
                        at: when.inside(warning.offset_line, warning.offset_column),
                        message: format!("in `when` of rule `{}`: {}", rule.id, warning.message),
                    }));
                    condition = Some(compiled);
                }
                Err(found) => problems.extend(found.into_iter().map(|problem| Problem {
                    file: document.file.clone(),
                    at: when.inside(problem.offset_line, problem.offset_column),
                    message: format!("in `when` of rule `{}`: {}", rule.id, problem.message),
                })),
            }
        }
        rules.push(CompiledRule { document: number, rule: rule.clone(), condition });
    }
}

fn compile_modules(
    number: usize,
    document: &Document,
    sources: &[Source],
    used: &mut BTreeSet<String>,
    compiled: &mut Vec<CompiledModule>,
    warnings: &mut Vec<Warning>,
    problems: &mut Vec<Problem>,
) {
    for module in &document.modules {
        let (role, language, path) = match &module.value {
            Module::Cedar(path) => (SourceRole::Cedar, Language::Cedar, path),
            Module::Rego(path) => (SourceRole::Rego, Language::Rego, path),
        };
        if !language.is_compiled_in() {
            problems.push(Problem {
                file: document.file.clone(),
                at: module.at,
                message: format!("this build reads no {} modules: `{path}` cannot be used", language.name()),
            });
            continue;
        }
        let name = module_name(&document.file, path);
        let Some(found) = sources.iter().find(|source| source.role == role && source.name == name) else {
            problems.push(Problem {
                file: document.file.clone(),
                at: module.at,
                message: format!("{} module `{path}` cannot be read", role.word()),
            });
            continue;
        };
        used.insert(name.clone());
        let Ok(text) = std::str::from_utf8(&found.bytes) else {
            problems.push(Problem {
                file: name,
                at: Position { line: 1, column: 1 },
                message: "invalid UTF-8".to_owned(),
            });
            continue;
        };
        crate::lint::lint_module(&name, text, warnings);
        match modules::compile(language, &name, text) {
            Ok(engine) => compiled.push(CompiledModule { document: number, engine }),
            Err(found) => problems.extend(found.into_iter().map(|problem| Problem {
                file: name.clone(),
                at: Position { line: problem.line, column: problem.column },
                message: problem.message,
            })),
        }
    }
}

fn compile_scanner(documents: &[Document], problems: &mut Vec<Problem>) -> Scanner {
    let located: Vec<(&Document, &Located<String>)> = documents
        .iter()
        .filter_map(|document| document.data.as_ref().map(|data| (document, data)))
        .flat_map(|(document, data)| data.sensitive_patterns.iter().map(move |pattern| (document, pattern)))
        .collect();
    let patterns: Vec<String> = located.iter().map(|(_, pattern)| pattern.value.clone()).collect();
    match Scanner::new(&patterns) {
        Ok(scanner) => scanner,
        Err(error) => {
            let place = located.get(error.index);
            problems.push(Problem {
                file: place.map_or_else(String::new, |(document, _)| document.file.clone()),
                at: place.map_or_else(Position::default, |(_, pattern)| pattern.at),
                message: format!("pattern does not compile: {}", error.problem),
            });
            Scanner::default()
        }
    }
}

fn compile_advice(documents: &[Document], problems: &mut Vec<Problem>) -> Vec<CompiledAdvice> {
    let mut compiled = Vec::new();
    let mut intents = 0_usize;
    for (number, document) in documents.iter().enumerate() {
        let Some(section) = &document.advice else { continue };
        let before = intents;
        intents = intents.saturating_add(section.intents.len());
        let mut refuse = |at: Position, message: String| {
            problems.push(Problem { file: document.file.clone(), at, message });
        };
        if let Some(first_too_many) = section.intents.get(MAX_INTENTS.saturating_sub(before)) {
            let message = format!("at most {MAX_INTENTS} intents are allowed in all documents together");
            refuse(first_too_many.at, message);
            return compiled;
        }
        match CompiledSection::compile(section) {
            Ok(part) => compiled.push(CompiledAdvice { document: number, part: Arc::new(part) }),
            Err(problem) => refuse(problem.at, format!("`advice`: {}", problem.value)),
        }
    }
    compiled
}

/// The most protective of the actions that are written; `None` if none is.
pub(crate) fn strictest_credential_action<'a>(
    documents: impl Iterator<Item = &'a Document>,
) -> Option<CredentialAction> {
    let order = [
        CredentialAction::Block,
        CredentialAction::RedactOnly,
        CredentialAction::AlertAndRedact,
        CredentialAction::AlertOnly,
    ];
    let written: Vec<CredentialAction> =
        documents.filter_map(|document| document.data.as_ref()?.credential_action).collect();
    order.into_iter().find(|action| written.contains(action))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_whose_language_is_not_compiled_in_is_refused_where_it_is_named() {
        let text = "version: \"1\"\nmodules:\n  - { cedar: a.cedar }\n  - { rego: b.rego }\n";
        let problems = compile(vec![Source::document("p.yaml", text)]).err().unwrap_or_default();
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let expected = |language: Language, line: usize, path: &str| {
            if language.is_compiled_in() {
                format!("p.yaml:{line}:5: {} module `{path}` cannot be read", language.name().to_lowercase())
            } else {
                format!(
                    "p.yaml:{line}:5: this build reads no {} modules: `{path}` cannot be used",
                    language.name()
                )
            }
        };
        assert_eq!(
            messages,
            [expected(Language::Cedar, 3, "a.cedar"), expected(Language::Rego, 4, "b.rego")]
        );
    }
}
