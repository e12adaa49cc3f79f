//! Snippet extraction: the best matching line of a text with its context.

use super::words::{Words, beginning};

/// Longest line of a snippet, in bytes.
const MAX_LINE_BYTES: usize = 400;
/// Bytes that a shortened line keeps before the match.
const LEAD_BYTES: usize = 80;

/// Context lines around the best line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// Lines above.
    pub before: usize,
    /// Lines below.
    pub after: usize,
}

/// Extract of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snippet {
    /// Best matching line, counted from 1.
    pub line: usize,
    /// Whether that line contains a search word.
    pub found: bool,
    /// Text of the extract.
    pub text: String,
}

/// Extracts the best matching line, or line `at` if it is given, with context lines, within `max_bytes`. None if no line fits.
pub(crate) fn snippet(
    text: &str,
    words: &Words,
    at: Option<usize>,
    span: Span,
    max_bytes: usize,
) -> Option<Snippet> {
    let lines: Vec<&str> = text.lines().collect();
    let best = match at {
        Some(line) => BestLine {
            index: line.saturating_sub(1).min(lines.len().saturating_sub(1)),
            ..BestLine::default()
        },
        None => best_line(&lines, words),
    };
    let shown = |index: usize| lines.get(index).map(|line| shorten(line, words));
    let middle = beginning(shown(best.index)?, max_bytes);
    let mut bytes = middle.len();
    let mut take = |index: Option<usize>| -> Option<&str> {
        let line = shown(index?)?;
        // The line break counts.
        bytes = bytes.checked_add(line.len() + 1).filter(|sum| *sum <= max_bytes)?;
        Some(line)
    };
    let after: Vec<&str> = (1..=span.after).map_while(|step| take(best.index.checked_add(step))).collect();
    let before: Vec<&str> = (1..=span.before).map_while(|step| take(best.index.checked_sub(step))).collect();
    let chosen: Vec<&str> = before.into_iter().rev().chain([middle]).chain(after).collect();
    let text = chosen.join("\n");
    let text = text.trim_end();
    (!text.trim().is_empty()).then(|| Snippet {
        line: best.index + 1,
        found: best.score > 0.0,
        text: text.to_owned(),
    })
}

#[derive(Debug, Default)]
struct BestLine {
    index: usize,
    score: f32,
}

/// First of the best matching lines; the first line if none matches.
fn best_line(lines: &[&str], words: &Words) -> BestLine {
    let mut best = BestLine::default();
    if words.is_empty() {
        return best;
    }
    for (index, line) in lines.iter().enumerate() {
        let lower = line.to_lowercase();
        let score = words.weigh(&words.strengths(&lower));
        if score > best.score {
            best = BestLine { index, score };
        }
    }
    best
}

/// Shortens a line to the limit, keeping the match.
fn shorten<'a>(line: &'a str, words: &Words) -> &'a str {
    if line.len() <= MAX_LINE_BYTES {
        return line;
    }
    // Offsets in the lower-case text are only valid where lower-casing keeps the byte length.
    let lower = if line.is_ascii() { line.to_ascii_lowercase() } else { String::new() };
    let at = words.texts().filter_map(|word| lower.find(word)).min().unwrap_or_default();
    let start = at.saturating_sub(LEAD_BYTES);
    beginning(line.get(line.floor_char_boundary(start)..).unwrap_or_default(), MAX_LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPAN: Span = Span { before: 1, after: 2 };

    fn words(text: &str) -> Words {
        let mut words = Words::default();
        words.add(text, 1.0);
        words
    }

    #[test]
    fn the_best_line_is_shown_with_its_neighbours() {
        let text = "one\ncall parse_frame()\nthree\nfour\nfn parse_frame() {\n  body\n}\nend\n";
        let found = snippet(text, &words("parse_frame"), None, SPAN, 1000).unwrap();
        assert_eq!(
            found,
            Snippet { line: 2, found: true, text: "one\ncall parse_frame()\nthree\nfour".into() }
        );
        let at = snippet(text, &words("parse_frame"), Some(2), SPAN, 1000).unwrap();
        assert_eq!((at.line, at.text.as_str()), (2, "one\ncall parse_frame()\nthree\nfour"));
        let beyond = snippet(text, &words("x"), Some(99), SPAN, 1000).unwrap();
        assert_eq!(beyond.line, 8);
        let nothing = snippet(text, &words("absent"), None, SPAN, 1000).unwrap();
        assert_eq!((nothing.line, nothing.found), (1, false));
    }

    #[test]
    fn there_may_be_no_room_and_no_text() {
        assert_eq!(snippet("text", &words("text"), None, SPAN, 0), None);
        assert_eq!(snippet("", &words("text"), None, SPAN, 10), None);
        assert_eq!(snippet(" \n \n", &words("text"), None, SPAN, 10), None);
        assert_eq!(snippet("some text", &words("text"), None, SPAN, 4).unwrap().text, "some");
    }

    #[test]
    fn a_long_line_shows_what_was_looked_for() {
        let line = format!("{}needle{}", "x ".repeat(5000), " y".repeat(5000));
        let found = snippet(&line, &words("needle"), None, SPAN, 10_000).unwrap();
        assert!(found.text.contains("needle") && found.text.len() <= MAX_LINE_BYTES, "{}", found.text);
    }

    proptest! {
        #[test]
        fn a_snippet_is_never_too_long(
            text in "(\\PC{0,30}\n){0,8}", question in ".{0,20}", at in proptest::option::of(0usize..12), max in 0usize..200,
        ) {
            if let Some(found) = snippet(&text, &words(&question), at, SPAN, max) {
                prop_assert!(found.text.len() <= max);
                prop_assert!(found.line >= 1);
            }
        }
    }
}
