//! Compiled `advice` section of a document.

use regex::{Regex, RegexBuilder};
use rust_decimal::prelude::ToPrimitive;

use super::answers::Intent;
use super::path::PathPattern;
use super::phrases::{Phrases, PhrasesTooLarge};
use super::section::{AdviceSection, IntentMatch, IntentSection, TextSection};
use super::text::TextRule;
use super::{DEFAULT_CONFIDENCE, MAX_TARGET_CHARS};
use crate::document::Located;

/// The most memory that one compiled expression may take, in bytes; the same as for `data.sensitive_patterns`.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// `advice` section of a document with its phrases, expressions and patterns compiled.
#[derive(Debug)]
pub(crate) struct CompiledSection {
    section: AdviceSection,
    /// Matchers, in the order of `section.intents`.
    intents: Vec<IntentMatcher>,
    refused_tasks: Option<Phrases>,
    refused_problems: Option<Phrases>,
    files: Option<Vec<PathPattern>>,
    never: Vec<PathPattern>,
}

#[derive(Debug)]
enum IntentMatcher {
    Phrases(Option<Phrases>),
    Regex(Regex),
}

/// A piece of advice that does not compile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AdviceError {
    #[error(transparent)]
    Phrases(#[from] PhrasesTooLarge),
    #[error("the expression does not compile")]
    Expression,
    #[error("{0}")]
    Pattern(&'static str),
}

impl CompiledSection {
    /// Compiles a section. The reader has checked every piece of it, so that nothing can fail; should it, the error has a place.
    pub(crate) fn compile(section: &AdviceSection) -> Result<CompiledSection, Located<AdviceError>> {
        let fail = |value: AdviceError| Located { value, at: section.at };
        let refused = |found: Option<&TextSection>| match found {
            Some(text) => Phrases::compile(&text.deny).map_err(|error| fail(error.into())),
            None => Ok(None),
        };
        let patterns = |written: &[String]| -> Result<Vec<PathPattern>, Located<AdviceError>> {
            written
                .iter()
                .map(|one| PathPattern::read(one).map_err(|why| fail(AdviceError::Pattern(why))))
                .collect()
        };
        let context = section.context.as_ref();
        Ok(CompiledSection {
            intents: section.intents.iter().map(compile_intent).collect::<Result<_, _>>()?,
            refused_tasks: refused(section.planning.as_ref().map(|found| &found.text))?,
            refused_problems: refused(section.reasoning.as_ref().map(|found| &found.text))?,
            files: context.and_then(|found| found.files.as_deref()).map(patterns).transpose()?,
            never: patterns(context.map_or(&[], |found| &found.never))?,
            section: section.clone(),
        })
    }

    pub(super) fn section(&self) -> &AdviceSection {
        &self.section
    }

    /// The first of its intents that the prompt has.
    pub(super) fn intent(&self, prompt: &str) -> Option<Intent<'_>> {
        self.section.intents.iter().zip(&self.intents).find_map(|(intent, matcher)| {
            let target_name = matcher.find(prompt)?;
            let confidence = intent.confidence.and_then(|confidence| confidence.to_f32());
            Some(Intent {
                name: &intent.intent,
                confidence: confidence.unwrap_or(DEFAULT_CONFIDENCE),
                target_type: intent.target_type.as_deref(),
                target_name,
                domain: intent.domain.as_deref(),
            })
        })
    }

    /// Rules about the text of tasks.
    pub(super) fn tasks(&self) -> Option<TextRule<'_>> {
        let section = &self.section.planning.as_ref()?.text;
        Some(TextRule { section, refused: self.refused_tasks.as_ref() })
    }

    /// Rules about the text of problems.
    pub(super) fn problems(&self) -> Option<TextRule<'_>> {
        let section = &self.section.reasoning.as_ref()?.text;
        Some(TextRule { section, refused: self.refused_problems.as_ref() })
    }

    /// Whether it lets a file be shown, by the names that lead to it.
    pub(super) fn shows(&self, path: &[&str]) -> bool {
        self.files.as_ref().is_none_or(|files| files.iter().any(|pattern| pattern.matches(path)))
            && !self.never.iter().any(|pattern| pattern.matches(path))
    }
}

impl IntentMatcher {
    /// Whether the prompt has it, and what the group `target` matched.
    fn find(&self, prompt: &str) -> Option<Option<String>> {
        match self {
            IntentMatcher::Phrases(phrases) => phrases.as_ref()?.find(prompt).map(|_| None),
            IntentMatcher::Regex(regex) => {
                let found = regex.captures(prompt)?;
                let target = found.name("target").map(|target| target.as_str().trim());
                Some(
                    target
                        .filter(|target| !target.is_empty())
                        .map(|target| target.chars().take(MAX_TARGET_CHARS).collect()),
                )
            }
        }
    }
}

fn compile_intent(intent: &IntentSection) -> Result<IntentMatcher, Located<AdviceError>> {
    let compiled = match &intent.when {
        IntentMatch::Any(phrases) => {
            Phrases::compile(phrases).map(IntentMatcher::Phrases).map_err(AdviceError::from)
        }
        IntentMatch::Regex(written) => RegexBuilder::new(written)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_COMPILED_BYTES)
            .build()
            .map(IntentMatcher::Regex)
            .map_err(|_| AdviceError::Expression),
    };
    compiled.map_err(|value| Located { value, at: intent.at })
}
