//! `\d`, `\w`, `\s` and `\b` with their meaning in RE2: ASCII, while literals, `.` and `\p{…}` stay Unicode.

use regex_syntax::ast::{self, AssertionKind, Ast, ClassPerl, ClassPerlKind, ClassSetItem, Span, Visitor};

/// A pattern in which these classes are written out, for the library `regex`.
pub(crate) fn with_ascii_classes(pattern: &str) -> Result<String, String> {
    written_out(pattern).map(|(text, _)| text)
}

/// The same for a syntax without brackets in brackets; `None` if it cannot be said there, or the pattern cannot be read.
pub(crate) fn without_nesting(pattern: &str) -> Option<String> {
    written_out(pattern).ok().filter(|(_, nests)| !nests).map(|(text, _)| text)
}

/// The pattern, and whether brackets stand within brackets.
fn written_out(pattern: &str) -> Result<(String, bool), String> {
    // Most patterns have none.
    if !pattern.contains('\\') {
        return Ok((pattern.to_owned(), false));
    }
    let parsed = ast::parse::Parser::new().parse(pattern).map_err(|error| last_line(&error.to_string()))?;
    let Classes { mut places, nests } =
        ast::visit(&parsed, Classes::default()).unwrap_or_else(|never| match never {});
    places.sort_by_key(|(span, _)| span.start.offset);
    let mut text = String::with_capacity(pattern.len());
    let mut done = 0;
    for (span, replacement) in places {
        text.push_str(pattern.get(done..span.start.offset).unwrap_or_default());
        text.push_str(replacement);
        done = span.end.offset;
    }
    text.push_str(pattern.get(done..).unwrap_or_default());
    Ok((text, nests))
}

/// The last line of a parser's message says what is wrong; those before draw where.
pub(crate) fn last_line(message: &str) -> String {
    message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Collects the places of classes, and what stands for each.
#[derive(Default)]
struct Classes {
    places: Vec<(Span, &'static str)>,
    /// Whether brackets stand within brackets.
    nests: bool,
}

impl Classes {
    /// Adds a class that stands within brackets. Nested brackets are not in every syntax, so that they are used only where they must be.
    fn add_within(&mut self, class: &ClassPerl) {
        let text = match (&class.kind, class.negated) {
            (ClassPerlKind::Digit, false) => "0-9",
            (ClassPerlKind::Space, false) => r"\t\n\f\r\x20",
            (ClassPerlKind::Word, false) => "0-9A-Za-z_",
            (_, true) => {
                self.nests = true;
                return self.add(class);
            }
        };
        self.places.push((class.span, text));
    }

    fn add(&mut self, class: &ClassPerl) {
        // A space is written as a code: within `(?x)` it would be ignored.
        let text = match (&class.kind, class.negated) {
            (ClassPerlKind::Digit, false) => "[0-9]",
            (ClassPerlKind::Digit, true) => "[^0-9]",
            (ClassPerlKind::Space, false) => r"[\t\n\f\r\x20]",
            (ClassPerlKind::Space, true) => r"[^\t\n\f\r\x20]",
            (ClassPerlKind::Word, false) => "[0-9A-Za-z_]",
            (ClassPerlKind::Word, true) => "[^0-9A-Za-z_]",
        };
        self.places.push((class.span, text));
    }
}

impl Visitor for Classes {
    type Output = Classes;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self::Output, Self::Err> {
        Ok(self)
    }

    fn visit_pre(&mut self, node: &Ast) -> Result<(), Self::Err> {
        match node {
            Ast::ClassPerl(class) => self.add(class),
            Ast::Assertion(assertion) => match assertion.kind {
                AssertionKind::WordBoundary => self.places.push((assertion.span, r"(?-u:\b)")),
                AssertionKind::NotWordBoundary => self.places.push((assertion.span, r"(?-u:\B)")),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        if let ClassSetItem::Perl(class) = item {
            self.add_within(class);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[track_caller]
    fn matches(pattern: &str, text: &str) -> bool {
        Regex::new(&with_ascii_classes(pattern).unwrap()).unwrap().is_match(text)
    }

    #[test]
    fn classes_are_ascii_and_literals_are_unicode() {
        for (pattern, yes, no) in [
            (r"^\d$", "7", "٣"),
            (r"^\D$", "٣", "7"),
            (r"^\w+$", "a_1", "ö"),
            (r"^\W$", "ö", "a"),
            (r"^\s$", "\t", "\u{a0}"),
            (r"^\s$", " ", "\u{b}"),
            (r"^\S$", "\u{a0}", " "),
            (r"^[\d-]+$", "1-2", "١"),
            (r"^[^\d\s]$", "٣", "3"),
            (r"^[a-z\W]$", "ö", "A"),
            (r"^[^\W]$", "A", "ö"),
            (r"(?x) ^ [\s x] $", " ", "y"),
            (r"^(?:ö|\d){2}$", "ö1", "ö١"),
            (r"(?i)^Ö\d$", "ö1", "ö١"),
            (r"^.\d\pL$", "ü1ö", "ü١ö"),
            (r"^\\d$", r"\d", "7"),
            (r"^[\\d]$", "d", "7"),
            (r"cat\b", "catö", "cats"),
            (r"\bcat", "öcat", "scat"),
            (r"cat\B", "cats", "catö"),
            (r"^ö\b1", "ö1", "ö 1"),
            (r"^\x{f6}\d", "ö1", "ö"),
        ] {
            assert!(matches(pattern, yes), "{pattern} {yes}");
            assert!(!matches(pattern, no), "{pattern} {no}");
        }
    }

    #[test]
    fn a_pattern_without_classes_is_itself() {
        for pattern in ["", "a|b", r"\.\*", r"[\]\\^]", r"\x{64}", r"\pN", "ö{2}"] {
            assert_eq!(with_ascii_classes(pattern).unwrap(), pattern);
        }
    }
}
