//! What a text is held against.

use std::sync::Arc;

use regex::Regex;
use serde_json::value::RawValue;

use super::{Views, Written, lowered, pattern};
use crate::constraint::Bound;
use crate::spec;
use crate::text::Text;
use crate::tools::Tools;
use crate::verdict::Verdict;

const CHECKS: &str = "contains, not_contains, regex_match, not_regex_match, keyword_all, keyword_any, forbidden, \
                      starts_with, ends_with, equals, word_count";

/// One check. Words are kept as they were written (for people) and as they are searched.
pub(super) enum Rule {
    /// All of these are there.
    Contains(Vec<Word>),
    /// None of these is there.
    NotContains(Vec<Word>),
    /// The pattern matches somewhere.
    Matches(Arc<Regex>),
    /// The pattern matches nowhere.
    NotMatches(Arc<Regex>),
    /// All of these are there; the score says how many.
    All(Vec<Word>),
    /// At least one of these is there.
    Any(Vec<Word>),
    /// None of these is there, and that is never soft.
    Forbidden(Vec<Word>),
    StartsWith(Word),
    EndsWith(Word),
    Equals(Word),
    /// How many words, as white space divides them.
    WordCount(Bound),
}

pub(super) struct Word {
    written: String,
    searched: String,
}

/// Why a text did not pass.
pub(super) struct Failure {
    pub(super) what: String,
    pub(super) expected: String,
    /// The text itself if nothing is said here.
    pub(super) actual: Option<String>,
    pub(super) suggestion: &'static str,
    /// Where in the text that came, if that is known.
    pub(super) at: Option<usize>,
    pub(super) score: f64,
}

impl Rule {
    pub(super) fn read(written: &Written<'_>, case_sensitive: bool, tools: &Tools) -> Result<Rule, Verdict> {
        let check = written.check.as_ref().ok_or_else(|| spec::missing("check", "a check of content"))?;
        let word = |text: &str| Word {
            written: text.to_owned(),
            searched: if case_sensitive { text.to_owned() } else { lowered(text).into_owned() },
        };
        let one = || text_value(written.value).map(|text| word(text.as_ref().map_or("", Text::as_str)));
        // Where one value is usual, several mean each of them; none at all is the empty text.
        let one_or_more = || match (&written.value, &written.values) {
            (None, Some(values)) if !values.is_empty() => Ok(values.iter().map(|text| word(text)).collect()),
            _ => one().map(|word| vec![word]),
        };
        // Where several are usual, a value alone is a list of one.
        let several = || -> Result<Vec<Word>, Verdict> {
            match &written.values {
                Some(values) => Ok(values.iter().map(|text| word(text)).collect()),
                None => Ok(text_value(written.value)?
                    .iter()
                    .filter(|text| !text.is_empty())
                    .map(|text| word(text))
                    .collect()),
            }
        };
        let required = |check: &str| match written.value {
            Some(_) => one(),
            None => Err(spec::missing("value", &format!("`{check}`"))),
        };
        let regex = || {
            let value = text_value(written.value)?;
            let text = value.as_ref().or(written.pattern.as_ref()).map_or("", Text::as_str);
            pattern::read(text, tools)
        };
        // A misspelt member must not turn into a check that everything passes.
        if written.value.is_none() && written.values.is_none() && written.pattern.is_none() {
            match check.as_str() {
                "keyword_all" | "keyword_any" | "forbidden" => {
                    return Err(spec::missing("values", &format!("`{check}`")));
                }
                "contains" | "not_contains" | "regex_match" | "matches" | "not_regex_match"
                | "not_matches" => {
                    return Err(spec::missing("value", &format!("`{check}`")));
                }
                _ => {}
            }
        }
        Ok(match check.as_str() {
            "contains" => Rule::Contains(one_or_more()?),
            "not_contains" => Rule::NotContains(one_or_more()?),
            "regex_match" | "matches" => Rule::Matches(regex()?),
            "not_regex_match" | "not_matches" => Rule::NotMatches(regex()?),
            "keyword_all" => Rule::All(several()?),
            "keyword_any" => Rule::Any(several()?),
            "forbidden" => Rule::Forbidden(several()?),
            "starts_with" => Rule::StartsWith(required(check)?),
            "ends_with" => Rule::EndsWith(required(check)?),
            "equals" => Rule::Equals(required(check)?),
            "word_count" => Rule::WordCount(word_bound(written)?),
            other => {
                return Err(Verdict::error(format!("`{other}` is not a check of content"))
                    .evidence(CHECKS, other)
                    .suggest(format!("use one of: {CHECKS}")));
            }
        })
    }

    /// Whether upper and lower case can be the same to it.
    pub(super) fn knows_case(&self) -> bool {
        !matches!(self, Rule::Matches(_) | Rule::NotMatches(_) | Rule::WordCount(_))
    }

    /// Whether its failure cannot be softened.
    pub(super) fn is_always_hard(&self) -> bool {
        matches!(self, Rule::Forbidden(_))
    }

    /// What it finds, in words that follow the name of the target.
    pub(super) fn judge(&self, views: &Views<'_>) -> Result<String, Failure> {
        match self {
            Rule::Contains(words) => all(words, views, false),
            Rule::All(words) => all(words, views, true),
            Rule::Any(words) => any(words, views),
            Rule::NotContains(words) | Rule::Forbidden(words) => none(words, views),
            Rule::Matches(regex) => {
                if views.any(|text| regex.is_match(text)) {
                    return Ok(format!("matches `{}`", short(regex.as_str())));
                }
                let what = format!("does not match `{}`", short(regex.as_str()));
                Err(Failure::new(
                    what,
                    format!("a match of {}", regex.as_str()),
                    "check the pattern; case matters unless it begins with `(?i)`",
                ))
            }
            Rule::NotMatches(regex) => {
                if !views.any(|text| regex.is_match(text)) {
                    return Ok(format!("does not match `{}`", short(regex.as_str())));
                }
                let what = format!("matches `{}`, which it should not", short(regex.as_str()));
                let failure = Failure::new(
                    what,
                    format!("no match of {}", regex.as_str()),
                    "keep this out of the text, or narrow the pattern",
                );
                Err(failure.around(regex.find(&views.text).map(|found| found.start())))
            }
            Rule::StartsWith(word) => {
                edge(word, views.any(|text| text.starts_with(&word.searched)), "start with")
            }
            Rule::EndsWith(word) => {
                let at = views.text.len();
                edge(word, views.any(|text| text.ends_with(&word.searched)), "end with")
                    .map_err(|failure| failure.around(Some(at)))
            }
            Rule::Equals(word) => edge(word, views.any(|text| text == word.searched), "equal"),
            Rule::WordCount(bound) => {
                let count = views.text.split_whitespace().count();
                #[expect(clippy::cast_precision_loss, reason = "no text has 2^53 words")]
                if bound.holds(count as f64) {
                    return Ok(format!("has {count} words, which is {bound}"));
                }
                let what = format!("has {count} words, but should have {bound}");
                let mut failure = Failure::new(
                    what,
                    format!("{bound} words"),
                    "ask the agent for another length, or change the bound",
                );
                failure.actual = Some(format!("{count} words"));
                Err(failure)
            }
        }
    }
}

fn all(words: &[Word], views: &Views<'_>, scored: bool) -> Result<String, Failure> {
    let missing: Vec<&Word> = words.iter().filter(|word| !word.is_in(views)).collect();
    if missing.is_empty() {
        return Ok(format!("contains {}", listed(words.iter())));
    }
    let what = format!("does not contain {}", listed(missing.iter().copied()));
    let failure = Failure::new(
        what,
        match words {
            [_] => listed(words.iter()),
            several => format!("all of {}", listed(several.iter())),
        },
        "check what the agent was asked to say",
    );
    #[expect(clippy::cast_precision_loss, reason = "a spec has far fewer than 2^53 words")]
    let score = (words.len() - missing.len()) as f64 / words.len() as f64;
    Err(Failure { score: if scored { score } else { 0.0 }, ..failure })
}

fn any(words: &[Word], views: &Views<'_>) -> Result<String, Failure> {
    match words.iter().find(|word| word.is_in(views)) {
        Some(word) => Ok(format!("contains `{}`", short(&word.written))),
        None if words.is_empty() => Err(Failure::new(
            "cannot contain any of no keywords".to_owned(),
            "at least one keyword in `values`".to_owned(),
            "name the keywords in `values`",
        )),
        None => {
            let list = listed(words.iter());
            let what = format!("contains none of {list}");
            Err(Failure::new(what, format!("one of {list}"), "check what the agent was asked to say"))
        }
    }
}

fn none(words: &[Word], views: &Views<'_>) -> Result<String, Failure> {
    match words.iter().find(|word| word.is_in(views)) {
        None => Ok(format!("contains none of {}", listed(words.iter()))),
        Some(word) => {
            let what = format!("contains `{}`, which it should not", short(&word.written));
            let failure = Failure::new(
                what,
                format!("none of {}", listed(words.iter())),
                "keep these words out of the text",
            );
            Err(failure.around(views.text.find(&word.searched)))
        }
    }
}

fn edge(word: &Word, holds: bool, verb: &str) -> Result<String, Failure> {
    let shown = short(&word.written);
    if holds {
        return Ok(format!("does {verb} `{shown}`"));
    }
    let what = format!("does not {verb} `{shown}`");
    Err(Failure::new(
        what,
        format!("a text that does {verb} {}", word.written),
        "check what the agent was asked to say",
    ))
}

impl Word {
    fn is_in(&self, views: &Views<'_>) -> bool {
        views.any(|text| text.contains(&self.searched))
    }
}

impl Failure {
    fn new(what: String, expected: String, suggestion: &'static str) -> Failure {
        Failure { what, expected, actual: None, suggestion, at: None, score: 0.0 }
    }

    fn around(self, at: Option<usize>) -> Failure {
        Failure { at, ..self }
    }
}

/// A few words for people.
fn listed<'w>(words: impl ExactSizeIterator<Item = &'w Word>) -> String {
    const SHOWN: usize = 5;
    let count = words.len();
    if count == 0 {
        return "no words".to_owned();
    }
    let mut list =
        words.take(SHOWN).map(|word| format!("`{}`", short(&word.written))).collect::<Vec<_>>().join(", ");
    if count > SHOWN {
        list.push_str(&format!(" and {} more", count - SHOWN));
    }
    list
}

fn short(text: &str) -> String {
    const LENGTH: usize = 60;
    match text.char_indices().nth(LENGTH) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn text_value(value: Option<&RawValue>) -> Result<Option<Text<'_>>, Verdict> {
    value
        .map(|value| {
            serde_json::from_str(value.get())
                .map_err(|_| Verdict::error("`value` is not a string").suggest("write `value` as a string"))
        })
        .transpose()
}

fn word_bound(written: &Written<'_>) -> Result<Bound, Verdict> {
    if let Some(operator) = spec::either(written.operator.as_ref(), written.op.as_ref()) {
        let value = written
            .value
            .map(|value| {
                serde_json::from_str(value.get())
                    .map_err(|_| Verdict::error("`value` of `word_count` is not a number"))
            })
            .transpose()?;
        return Bound::read(operator, value, written.min, written.max);
    }
    match (written.min, written.max) {
        (Some(min), Some(max)) => Bound::range(min, max),
        (Some(min), None) => Ok(Bound::AtLeast(min)),
        (None, Some(max)) => Ok(Bound::AtMost(max)),
        (None, None) if written.value.is_some() => {
            Err(spec::missing("operator", "`word_count` with a `value`"))
        }
        (None, None) => Err(spec::missing("min` or `max", "`word_count`")),
    }
}
