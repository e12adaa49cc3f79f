//! Additional rules: vendors' token formats, and values that something beside them presents as a credential.
//!
//! They are no part of the published algorithm. One automaton finds all keywords in one walk; each match then looks at a bounded number of
//! bytes around it, so that the cost stays linear in the length of the text.

mod formats;
mod names;
mod programs;
mod values;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::{Finding, FindingKind};
use formats::{FORMATS, SUFFIXES};
use names::KEYWORDS;
use programs::PROGRAMS;

pub(super) use names::{Strength, strength};
pub(super) use values::{is_basic_credential, is_member_secret};

/// Words and signs with a rule of their own.
const SPECIAL: [(&str, Special); 9] = [
    ("bearer ", Special::Bearer),
    ("basic ", Special::Basic),
    ("authorization", Special::Authorization),
    ("\"auth\"", Special::Auth),
    ("://", Special::Url),
    ("machine ", Special::Netrc),
    ("pass:", Special::PassSource),
    ("private key", Special::PrivateKey),
    (":AA", Special::TelegramBot),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    /// The token of an HTTP header.
    Bearer,
    /// User and password of an HTTP header, in base64.
    Basic,
    /// The header's name, whatever its scheme.
    Authorization,
    /// User and password in base64, as in Docker's configuration.
    Auth,
    /// The password of a URL.
    Url,
    /// An entry of a netrc file.
    Netrc,
    /// A password argument of `openssl`.
    PassSource,
    /// The body of a PEM block.
    PrivateKey,
    /// A token of Telegram: digits before the sign, letters behind it.
    TelegramBot,
}

/// A rule that a match of the automaton starts.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Format(&'static formats::Format),
    Suffix(&'static formats::Suffix),
    Name(Strength),
    Special(Special),
    Program(&'static programs::Program),
}

struct Rules {
    automaton: AhoCorasick,
    rules: Vec<Rule>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let formats = FORMATS.iter().map(|format| (format.prefix, Rule::Format(format)));
    let suffixes = SUFFIXES.iter().map(|suffix| (suffix.marker, Rule::Suffix(suffix)));
    let keywords = KEYWORDS.iter().map(|(word, strength)| (*word, Rule::Name(*strength)));
    let special = SPECIAL.iter().map(|(word, special)| (*word, Rule::Special(*special)));
    let programs = PROGRAMS.iter().map(|program| (program.name, Rule::Program(program)));
    let (words, rules): (Vec<&str>, Vec<Rule>) =
        formats.chain(suffixes).chain(keywords).chain(special).chain(programs).unzip();
    #[expect(
        clippy::expect_used,
        reason = "the keywords are constant and few; every test of the scanner builds them"
    )]
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        .expect("the automaton of the constant keywords");
    Rules { automaton, rules }
});

/// The shortest text in which a rule can find anything.
const SHORTEST: usize = 8;

/// Adds the findings of the additional rules.
pub(super) fn find(text: &str, findings: &mut Vec<Finding>) {
    if text.len() < SHORTEST {
        return;
    }
    let rules = &*RULES;
    let mut walk = Walk { text, token_to: 0, window_to: 0, key_to: 0, findings };
    for found in rules.automaton.find_overlapping_iter(text) {
        if let Some(rule) = rules.rules.get(found.pattern().as_usize()) {
            walk.follow(*rule, found.start(), found.end());
        }
    }
}

/// Walk over the matches of one text. The positions say up to where a rule has looked already: what lies before is not walked again.
struct Walk<'t, 'f> {
    text: &'t str,
    token_to: usize,
    window_to: usize,
    key_to: usize,
    findings: &'f mut Vec<Finding>,
}

impl Walk<'_, '_> {
    fn follow(&mut self, rule: Rule, start: usize, end: usize) {
        match rule {
            Rule::Format(format) => {
                if start >= self.token_to
                    && let Some(token_end) = formats::token_end(self.text, start, end, format)
                {
                    self.token_to = token_end;
                    self.add(FindingKind::VendorToken, (start, token_end));
                }
            }
            Rule::Suffix(suffix) => {
                let span = formats::suffixed(self.text.as_bytes(), start, end, suffix);
                self.add_if(FindingKind::VendorToken, span);
            }
            Rule::Name(strength) => {
                let span = values::named(self.text, start, end, strength);
                self.add_if(FindingKind::Credential, span);
            }
            Rule::Program(program) => {
                self.window_to =
                    programs::find(self.text, start, end, self.window_to, program, self.findings);
            }
            Rule::Special(special) => self.follow_special(special, start, end),
        }
    }

    fn follow_special(&mut self, special: Special, start: usize, end: usize) {
        let text = self.text;
        let span = match special {
            Special::Bearer => values::bearer(text, start, end),
            Special::Basic => values::basic(text, start, end),
            Special::Authorization => values::authorization(text, end),
            Special::Auth => values::auth(text, end),
            Special::Url => values::url_password(text, end),
            Special::Netrc => values::netrc(text, start, end),
            Special::PassSource => values::pass_source(text, start, end),
            Special::TelegramBot => {
                let token = formats::telegram_bot(text.as_bytes(), start, end);
                return self.add_if(FindingKind::VendorToken, token);
            }
            Special::PrivateKey => {
                if start < self.key_to {
                    return;
                }
                let block = values::private_key(text, end);
                self.key_to = block.map_or(self.key_to, |(_, block_end)| block_end);
                block
            }
        };
        self.add_if(FindingKind::Credential, span);
    }

    fn add_if(&mut self, kind: FindingKind, span: Option<(usize, usize)>) {
        if let Some(span) = span {
            self.add(kind, span);
        }
    }

    fn add(&mut self, kind: FindingKind, (offset, end): (usize, usize)) {
        if offset < end && self.text.is_char_boundary(offset) && self.text.is_char_boundary(end) {
            self.findings.push(Finding { kind, offset, end });
        }
    }
}

/// Whether a word may begin at `at`: what stands before is no letter or digit, or the end of an escape (`\n`, `%3D`).
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let before = |distance: usize| at.checked_sub(distance).and_then(|index| bytes.get(index)).copied();
    let Some(last) = before(1) else { return true };
    if !last.is_ascii_alphanumeric() {
        return true;
    }
    let is_escape = matches!(last, b'n' | b't' | b'r' | b'b' | b'f') && before(2) == Some(b'\\');
    let is_percent = last.is_ascii_hexdigit()
        && before(2).is_some_and(|byte| byte.is_ascii_hexdigit())
        && before(3) == Some(b'%');
    is_escape || is_percent
}
