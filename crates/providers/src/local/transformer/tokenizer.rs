//! The WordPiece tokenizer of BERT models.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, MatchKind};
use unicode_normalization::UnicodeNormalization as _;

use super::characters::{is_dropped, is_ideograph, is_nonspacing_mark, is_punctuation};

/// A word with more characters than this is unknown, however it could be put together.
const LONGEST_WORD: usize = 100;

const CONTINUATION: &str = "##";

/// Normalisation of a text before it is cut into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Preparation {
    /// The whole text in lower case first, before even the special tokens are looked for.
    pub(super) lowercase_first: bool,
    pub(super) lowercase: bool,
    pub(super) strip_accents: bool,
    pub(super) separate_ideographs: bool,
}

/// The vocabulary and the rules by which a text becomes a list of its entries.
#[derive(Debug)]
pub(super) struct Tokenizer {
    /// Entries that begin a word, and entries that continue one (without their `##`).
    beginnings: HashMap<Box<str>, u32>,
    continuations: HashMap<Box<str>, u32>,
    longest_entry: usize,
    unknown: u32,
    first: u32,
    last: u32,
    special: AhoCorasick,
    special_ids: Vec<u32>,
    preparation: Preparation,
    longest_sequence: usize,
}

/// Error of loading a vocabulary.
#[derive(Debug, thiserror::Error)]
pub(super) enum VocabularyError {
    #[error("there is no line `{0}` in it")]
    MissingToken(String),
    #[error("its special tokens cannot be searched for: {0}")]
    SpecialTokens(#[from] aho_corasick::BuildError),
}

impl Tokenizer {
    /// `vocabulary` has one entry a line; `special` are the tokens that are found in the text as they are, before all other steps. The
    /// error says what is wrong with the vocabulary.
    pub(super) fn new(
        vocabulary: &str,
        special: &[String],
        preparation: Preparation,
        longest_sequence: usize,
    ) -> Result<Tokenizer, VocabularyError> {
        let mut beginnings = HashMap::new();
        let mut continuations = HashMap::new();
        let mut longest_entry = 0;
        for (id, entry) in (0u32..).zip(vocabulary.lines()) {
            match entry.strip_prefix(CONTINUATION) {
                Some(rest) => {
                    longest_entry = longest_entry.max(rest.chars().count());
                    continuations.insert(rest.into(), id);
                }
                None => {
                    longest_entry = longest_entry.max(entry.chars().count());
                    beginnings.insert(entry.into(), id);
                }
            }
        }
        let id_of = |token: &str| {
            beginnings.get(token).copied().ok_or_else(|| VocabularyError::MissingToken(token.to_owned()))
        };
        let (unknown, first, last) = (id_of("[UNK]")?, id_of("[CLS]")?, id_of("[SEP]")?);
        let special_ids = special.iter().map(|token| id_of(token)).collect::<Result<_, _>>()?;
        let special = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(special)?;
        Ok(Tokenizer {
            beginnings,
            continuations,
            longest_entry,
            unknown,
            first,
            last,
            special,
            special_ids,
            preparation,
            longest_sequence,
        })
    }

    /// The text's tokens between the first and the last special one. Stops reading where the sequence is full.
    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        let lowered;
        let text = if self.preparation.lowercase_first {
            lowered = text.to_lowercase();
            &lowered
        } else {
            text
        };
        let full = self.longest_sequence.saturating_sub(1);
        let mut tokens = vec![self.first];
        let mut rest = 0;
        for found in self.special.find_iter(text) {
            self.encode_plain(text.get(rest..found.start()).unwrap_or_default(), full, &mut tokens);
            if tokens.len() >= full {
                break;
            }
            tokens.extend(self.special_ids.get(found.pattern().as_usize()));
            rest = found.end();
        }
        self.encode_plain(text.get(rest..).unwrap_or_default(), full, &mut tokens);
        tokens.truncate(full);
        tokens.push(self.last);
        tokens
    }

    /// Text without special tokens. Adds to `tokens` until there are `full`, or a few more.
    fn encode_plain(&self, text: &str, full: usize, tokens: &mut Vec<u32>) {
        let mut word = Word::default();
        for character in self.prepare(text) {
            if tokens.len() >= full {
                return;
            }
            if character.is_whitespace() {
                self.end_word(&mut word, tokens);
            } else if is_punctuation(character) {
                self.end_word(&mut word, tokens);
                word.push(character);
                self.end_word(&mut word, tokens);
            } else {
                word.push(character);
            }
        }
        self.end_word(&mut word, tokens);
    }

    fn prepare<'a>(&self, text: &'a str) -> Box<dyn Iterator<Item = char> + 'a> {
        let Preparation { lowercase, strip_accents, separate_ideographs, .. } = self.preparation;
        let cleaned = text
            .chars()
            .filter(|&character| !is_dropped(character))
            .map(|character| if character.is_whitespace() { ' ' } else { character })
            .flat_map(move |character| {
                let space = (separate_ideographs && is_ideograph(character)).then_some(' ');
                space.into_iter().chain([character]).chain(space)
            });
        let lower = |character: char| character.to_lowercase();
        let bare = |character: &char| !is_nonspacing_mark(*character);
        match (strip_accents, lowercase) {
            (true, true) => Box::new(cleaned.nfd().filter(bare).flat_map(lower)),
            (true, false) => Box::new(cleaned.nfd().filter(bare)),
            (false, true) => Box::new(cleaned.flat_map(lower)),
            (false, false) => Box::new(cleaned),
        }
    }

    /// Adds the word's tokens and empties it.
    fn end_word(&self, word: &mut Word, tokens: &mut Vec<u32>) {
        let before = tokens.len();
        if word.length > LONGEST_WORD || !self.add_pieces(&word.text, tokens) {
            tokens.truncate(before);
            tokens.push(self.unknown);
        }
        word.clear();
    }

    /// Cuts a word from its beginning, each time with the longest entry that fits. Says whether the whole word could be cut;
    /// if not, some of its pieces have been added all the same.
    fn add_pieces(&self, word: &str, tokens: &mut Vec<u32>) -> bool {
        let mut rest = word;
        let mut entries = &self.beginnings;
        while !rest.is_empty() {
            let ends = rest.char_indices().map(|(start, character)| start + character.len_utf8());
            let mut candidates: Vec<usize> = ends.take(self.longest_entry).collect();
            candidates.reverse();
            let found = candidates.iter().find_map(|&end| {
                let (piece, remainder) = rest.split_at_checked(end)?;
                entries.get(piece).map(|&id| (id, remainder))
            });
            let Some((id, remainder)) = found else { return false };
            tokens.push(id);
            rest = remainder;
            entries = &self.continuations;
        }
        true
    }
}

/// The word that is being read. Of a word that is too long, only its length goes on.
#[derive(Default)]
struct Word {
    text: String,
    length: usize,
}

impl Word {
    fn push(&mut self, character: char) {
        self.length = self.length.saturating_add(1);
        if self.length <= LONGEST_WORD {
            self.text.push(character);
        }
    }

    fn clear(&mut self) {
        self.text.clear();
        self.length = 0;
    }
}

#[cfg(test)]
mod tests;
