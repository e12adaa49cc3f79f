//! Regular expressions with limits on memory, matched in linear time.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::ascii_classes::{last_line, with_ascii_classes};
use crate::tools::Tools;
use crate::verdict::{Verdict, cut};

/// The longest pattern, in bytes.
const LONGEST: usize = 10_000;

/// The most memory that a compiled pattern takes.
const LARGEST: usize = 10 * 1024 * 1024;

/// Limit of counted repetitions in a pattern.
const MOST_OFTEN: u32 = 1000;

/// A pattern as it was written, and compiled with the meaning that it has in RE2.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) written: String,
    pub(super) regex: Arc<Regex>,
}

impl Pattern {
    /// Reads a pattern.
    pub(super) fn read(pattern: &str, tools: &Tools) -> Result<Pattern, Verdict> {
        if pattern.len() > LONGEST {
            return Err(Verdict::error(format!(
                "the pattern has {} bytes, more than {LONGEST}",
                pattern.len()
            ))
            .suggest("use a shorter pattern"));
        }
        let regex = tools.pattern(pattern, || {
            if repeats_too_often(pattern) {
                return Err(unusable(
                    pattern,
                    &format!("something is repeated more than {MOST_OFTEN} times"),
                ));
            }
            let text = with_ascii_classes(pattern).map_err(|why| unusable(pattern, &why))?;
            RegexBuilder::new(&text).size_limit(LARGEST).build().map_err(|error| {
                let why = match &error {
                    regex::Error::CompiledTooBig(_) => "it takes too much memory".to_owned(),
                    other => last_line(&other.to_string()),
                };
                unusable(pattern, &why)
            })
        })?;
        Ok(Pattern { written: pattern.to_owned(), regex })
    }
}

fn unusable(pattern: &str, why: &str) -> Verdict {
    Verdict::error(format!("the pattern `{}` cannot be used: {why}", cut(pattern, 80)))
        .suggest("use the syntax of RE2: no look-around, no back-references")
}

/// Whether a counted repetition such as `a{2000}` is beyond what other engines of this syntax take.
fn repeats_too_often(pattern: &str) -> bool {
    let mut rest = pattern.chars();
    let mut in_class = false;
    while let Some(one) = rest.next() {
        match one {
            '\\' => {
                let escaped = rest.next();
                // Braces after these hold a name or a code, not a count.
                if matches!(escaped, Some('x' | 'u' | 'U' | 'p' | 'P')) && rest.as_str().starts_with('{') {
                    rest.find(|one| *one == '}');
                }
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '{' if !in_class => {
                let Some((counts, _)) = rest.as_str().split_once('}') else { return false };
                if counts
                    .split(',')
                    .any(|count| count.trim().parse::<u32>().is_ok_and(|count| count > MOST_OFTEN))
                {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}
