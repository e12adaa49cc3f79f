//! Layer 4, `content`: texts that contain, match, or avoid words and patterns.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::check::Fold;
use crate::each::EachValue;
use crate::spec;
use crate::target::{Resolved, Target, USUAL};
use crate::text::Text;
use crate::tools::Tools;
use crate::trace::{Head, Step};
use crate::verdict::Verdict;

mod pattern;
mod reader;
mod rule;
mod words;

use rule::Rule;

/// The members that a spec may have.
pub(crate) const MEMBERS: &[&str] = &[
    "target",
    "check",
    "value",
    "values",
    "pattern",
    "case_sensitive",
    "min",
    "max",
    "operator",
    "op",
    "soft",
    "threshold",
];

/// Compiles a content spec.
pub(crate) fn compile(spec: Option<&RawValue>, tools: &Tools) -> Result<Box<dyn Fold>, Verdict> {
    let written: Written<'_> = spec::read(spec)?;
    let target = Target::parse(written.target.as_ref().map_or(USUAL, Text::as_str))?;
    let case_sensitive = written.case_sensitive.unwrap_or(false);
    let rule = Rule::read(&written, case_sensitive, tools)?;
    Ok(Box::new(Content {
        each: EachValue::of(&target, rule.is_negative()),
        target,
        check: TextCheck { rule, case_sensitive, soft: written.soft.unwrap_or(false) },
    }))
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow, default)]
    target: Option<Text<'a>>,
    #[serde(borrow, default)]
    check: Option<Text<'a>>,
    /// A text, or a number for `word_count`.
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    /// `null` is no word: it is told apart from an empty one.
    #[serde(borrow, default)]
    values: Option<Vec<Option<Text<'a>>>>,
    #[serde(borrow, default)]
    pattern: Option<Text<'a>>,
    #[serde(default)]
    case_sensitive: Option<bool>,
    #[serde(borrow, default)]
    min: Option<&'a RawValue>,
    #[serde(borrow, default)]
    max: Option<&'a RawValue>,
    #[serde(borrow, default)]
    operator: Option<Text<'a>>,
    #[serde(borrow, default)]
    op: Option<Text<'a>>,
    #[serde(default)]
    soft: Option<bool>,
}

struct Content {
    target: Target,
    check: TextCheck,
    /// The fold over all values of the target, if the check is about each of them.
    each: Option<EachValue>,
}

struct TextCheck {
    rule: Rule,
    case_sensitive: bool,
    soft: bool,
}

impl Fold for Content {
    fn step(&mut self, step: &Step<'_>) {
        let Content { target, check, each } = self;
        match each {
            Some(each) => each.step(target, step, &mut |step, path| {
                let resolved = target.in_step(path, step)?;
                Some(resolved.and_then(|resolved| check.judge(path, &resolved)))
            }),
            None => target.step(step),
        }
    }

    fn verdict(&self, head: &Head<'_>) -> Verdict {
        if let Some(each) = &self.each {
            return each.verdict(&self.target);
        }
        let path = self.target.path();
        let judged = self.target.resolve(head).and_then(|resolved| self.check.judge(path, &resolved));
        judged.map_or_else(|failure| failure, |held| Verdict::pass(format!("`{path}` {held}")))
    }
}

impl TextCheck {
    /// The finding on one text, worded to follow its path; or the failure.
    fn judge(&self, path: &str, resolved: &Resolved<'_>) -> Result<String, Verdict> {
        let (plain, normalised) = (resolved.plain(), resolved.normalised());
        let lower = !self.case_sensitive && self.rule.can_ignore_case();
        let fold = |text: Cow<'_, str>| if lower { lowered(&text).into_owned() } else { text.into_owned() };
        let strings = if self.rule.searches_nested_strings() { resolved.strings() } else { Vec::new() };
        let views = Views {
            text: if lower { lowered(&plain) } else { Cow::Borrowed(plain.as_ref()) },
            other: normalised.map(|text| fold(Cow::Owned(text))),
            strings: strings.into_iter().map(fold).collect(),
        };
        self.rule.judge(&views).map_err(|failure| {
            let soft = self.soft && !self.rule.is_always_hard();
            // Lower-casing can move characters: then the text is shown from its beginning.
            let at = failure.at.filter(|_| views.text.len() == plain.len()).unwrap_or(0);
            Verdict::fail(soft, format!("`{path}` {}", failure.what))
                .with_score(failure.score)
                .at(path)
                .evidence(failure.expected, failure.actual.unwrap_or_else(|| excerpt(&plain, at)))
                .suggest(failure.suggestion)
        })
    }
}

/// Forms of the checked text: as sent, normalised JSON, and each string in it.
struct Views<'t> {
    text: Cow<'t, str>,
    other: Option<String>,
    strings: Vec<String>,
}

impl Views<'_> {
    /// The text as a whole, in each of its forms.
    fn whole(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.text.as_ref()).chain(self.other.as_deref())
    }

    /// The text as a whole and each string in it.
    fn anywhere(&self) -> impl Iterator<Item = &str> {
        self.whole().chain(self.strings.iter().map(String::as_str))
    }
}

/// Lower-cases each character by itself: a word's form does not depend on the text around it.
pub(crate) fn lowered(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    Cow::Owned(text.chars().map(|one| one.to_lowercase().next().unwrap_or(one)).collect())
}

/// Excerpt of a text for people, around a position.
fn excerpt(text: &str, at: usize) -> String {
    const BEFORE: usize = 100;
    const LENGTH: usize = 380;
    if text.is_empty() {
        return "(empty)".to_owned();
    }
    let start = if at > BEFORE { text.ceil_char_boundary(at - BEFORE) } else { 0 };
    let end = text.floor_char_boundary(start.saturating_add(LENGTH));
    let piece = text.get(start..end).unwrap_or_default();
    let before = if start > 0 { "…" } else { "" };
    let after = if end < text.len() { "…" } else { "" };
    format!("{before}{piece}{after}")
}

#[cfg(test)]
mod tests;
