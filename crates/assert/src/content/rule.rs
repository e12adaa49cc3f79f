//! The rules of content checks.

use super::pattern::Pattern;
use super::reader::Reader;
use super::words::{Word, Words};
use super::{Views, Written};
use crate::constraint::Bound;
use crate::spec;
use crate::tools::Tools;
use crate::verdict::Verdict;

pub(super) const CHECKS: &str = "contains, not_contains, regex_match, not_regex_match, keyword_all, keyword_any, forbidden, \
                      starts_with, ends_with, equals, word_count";

/// A content check.
pub(super) enum Rule {
    /// Contains all words.
    Contains(Words),
    /// Contains none of the words.
    NotContains(Words),
    /// The pattern matches somewhere.
    Matches(Pattern),
    /// The pattern matches nowhere.
    NotMatches(Pattern),
    /// Contains all words; the score is the share of those found.
    All(Words),
    /// Contains at least one word.
    Any(Words),
    /// Contains none of the words; a failure is always hard.
    Forbidden(Words),
    StartsWith(Word),
    EndsWith(Word),
    Equals(Word),
    /// Number of words, separated by white space.
    WordCount(Bound),
}

/// Cause of a failed check.
pub(super) struct Failure {
    pub(super) what: String,
    pub(super) expected: String,
    /// The text itself if nothing is said here.
    pub(super) actual: Option<String>,
    pub(super) suggestion: &'static str,
    /// Position in the checked text, if it is known.
    pub(super) at: Option<usize>,
    pub(super) score: f64,
}

impl Rule {
    pub(super) fn read(written: &Written<'_>, case_sensitive: bool, tools: &Tools) -> Result<Rule, Verdict> {
        let check = written.check.as_ref().ok_or_else(|| spec::missing("check", "a check of content"))?;
        let check = check.as_str();
        let read = Reader { written, check, case_sensitive };
        Ok(match check {
            "contains" => Rule::Contains(read.one_or_more()?),
            "not_contains" => Rule::NotContains(read.one_or_more()?),
            "regex_match" | "matches" => Rule::Matches(Pattern::read(&read.pattern()?, tools)?),
            "not_regex_match" | "not_matches" => Rule::NotMatches(Pattern::read(&read.pattern()?, tools)?),
            "keyword_all" => Rule::All(read.several()?),
            "keyword_any" => Rule::Any(read.several()?),
            "forbidden" => Rule::Forbidden(read.several()?),
            "starts_with" => Rule::StartsWith(read.one()?),
            "ends_with" => Rule::EndsWith(read.one()?),
            "equals" => Rule::Equals(read.one()?),
            "word_count" => Rule::WordCount(read.count()?),
            other => {
                return Err(Verdict::error(format!("`{other}` is not a check of content"))
                    .evidence(CHECKS, other)
                    .suggest(format!("use one of: {CHECKS}")));
            }
        })
    }

    /// Whether the check can ignore case.
    pub(super) fn can_ignore_case(&self) -> bool {
        // Without a wildcard, here and below: a new check has to say which it is.
        match self {
            Rule::Matches(_) | Rule::NotMatches(_) | Rule::WordCount(_) => false,
            Rule::Contains(_)
            | Rule::All(_)
            | Rule::Any(_)
            | Rule::NotContains(_)
            | Rule::Forbidden(_)
            | Rule::StartsWith(_)
            | Rule::EndsWith(_)
            | Rule::Equals(_) => true,
        }
    }

    /// Whether the check also searches the strings inside a JSON value.
    pub(super) fn searches_nested_strings(&self) -> bool {
        match self {
            Rule::StartsWith(_) | Rule::EndsWith(_) | Rule::Equals(_) | Rule::WordCount(_) => false,
            Rule::Contains(_)
            | Rule::All(_)
            | Rule::Any(_)
            | Rule::NotContains(_)
            | Rule::Forbidden(_)
            | Rule::Matches(_)
            | Rule::NotMatches(_) => true,
        }
    }

    /// Whether the check excludes something: then it holds for every value of its target.
    pub(super) fn is_negative(&self) -> bool {
        match self {
            Rule::NotContains(_) | Rule::Forbidden(_) | Rule::NotMatches(_) => true,
            Rule::Contains(_)
            | Rule::All(_)
            | Rule::Any(_)
            | Rule::Matches(_)
            | Rule::StartsWith(_)
            | Rule::EndsWith(_)
            | Rule::Equals(_)
            | Rule::WordCount(_) => false,
        }
    }

    /// Whether the check ignores `soft`.
    pub(super) fn is_always_hard(&self) -> bool {
        match self {
            Rule::Forbidden(_) => true,
            Rule::Contains(_)
            | Rule::All(_)
            | Rule::Any(_)
            | Rule::NotContains(_)
            | Rule::Matches(_)
            | Rule::NotMatches(_)
            | Rule::StartsWith(_)
            | Rule::EndsWith(_)
            | Rule::Equals(_)
            | Rule::WordCount(_) => false,
        }
    }

    /// The finding, worded to follow the name of the target.
    pub(super) fn judge(&self, views: &Views<'_>) -> Result<String, Failure> {
        match self {
            Rule::Contains(words) => all(words, views, false),
            Rule::All(words) => all(words, views, true),
            Rule::Any(words) => any(words, views),
            Rule::NotContains(words) | Rule::Forbidden(words) => none(words, views),
            Rule::Matches(pattern) => {
                if views.anywhere().any(|text| pattern.regex.is_match(text)) {
                    return Ok(format!("matches `{}`", short(&pattern.written)));
                }
                let what = format!("does not match `{}`", short(&pattern.written));
                Err(Failure::new(
                    what,
                    format!("a match of {}", pattern.written),
                    "check the pattern; case matters unless it begins with `(?i)`",
                ))
            }
            Rule::NotMatches(pattern) => {
                if !views.anywhere().any(|text| pattern.regex.is_match(text)) {
                    return Ok(format!("does not match `{}`", short(&pattern.written)));
                }
                let what = format!("matches `{}`, which it should not", short(&pattern.written));
                let failure = Failure::new(
                    what,
                    format!("no match of {}", pattern.written),
                    "keep this out of the text, or narrow the pattern",
                );
                Err(failure.around(pattern.regex.find(&views.text).map(|found| found.start())))
            }
            Rule::StartsWith(word) => {
                edge(word, views.whole().any(|text| text.starts_with(&word.searched)), "start")
            }
            Rule::EndsWith(word) => {
                let at = views.text.len();
                edge(word, views.whole().any(|text| text.ends_with(&word.searched)), "end")
                    .map_err(|failure| failure.around(Some(at)))
            }
            Rule::Equals(word) => edge(word, views.whole().any(|text| text == word.searched), "equal"),
            Rule::WordCount(bound) => {
                let count = views.text.split_whitespace().count();
                let said = format!("{count} {}", if count == 1 { "word" } else { "words" });
                if bound.holds(&count.into()) {
                    return Ok(format!("has {said}, which is {bound}"));
                }
                let wanted = bound.to_string();
                let noun = if wanted.ends_with(" 1") { "word" } else { "words" };
                let mut failure = Failure::new(
                    format!("has {said}, but should have {wanted}"),
                    format!("{wanted} {noun}"),
                    "ask the agent for another length, or change the bound",
                );
                failure.actual = Some(said);
                Err(failure)
            }
        }
    }
}

fn all(words: &Words, views: &Views<'_>, scored: bool) -> Result<String, Failure> {
    let missing = words.missing(views);
    let words = words.list();
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

fn any(words: &Words, views: &Views<'_>) -> Result<String, Failure> {
    let list = listed(words.list().iter());
    match words.present(views) {
        Some(word) => Ok(format!("contains `{}`", short(&word.written))),
        None if words.list().is_empty() => Err(Failure::new(
            "cannot contain any of no keywords".to_owned(),
            "at least one keyword in `values`".to_owned(),
            "name the keywords in `values`",
        )),
        None => {
            let what = format!("contains none of {list}");
            Err(Failure::new(what, format!("one of {list}"), "check what the agent was asked to say"))
        }
    }
}

fn none(words: &Words, views: &Views<'_>) -> Result<String, Failure> {
    let list = listed(words.list().iter());
    match words.present(views) {
        None => Ok(format!("contains none of {list}")),
        Some(word) => {
            let what = format!("contains `{}`, which it should not", short(&word.written));
            let failure = Failure::new(what, format!("none of {list}"), "keep these words out of the text");
            Err(failure.around(views.text.find(&word.searched)))
        }
    }
}

/// `verb` is what the text should do with the word, with `with` after it unless it needs none.
fn edge(word: &Word, holds: bool, verb: &str) -> Result<String, Failure> {
    let shown = short(&word.written);
    let with = if verb == "equal" { "" } else { " with" };
    if holds {
        return Ok(format!("{verb}s{with} `{shown}`"));
    }
    Err(Failure::new(
        format!("does not {verb}{with} `{shown}`"),
        format!("a text that {verb}s{with} {}", word.written),
        "check what the agent was asked to say",
    ))
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
