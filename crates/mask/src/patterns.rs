//! Search patterns of secrets: the values, their hexadecimal digits, and their base64 at every alignment.

use std::collections::BTreeMap;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::decode::without_controls;
use super::views::Views;
use super::{MARK, MAX_SECRET_BYTES, MaskError};

/// Shortest value that is searched for in base64 and as hexadecimal digits: shorter ones would match by chance.
const SHORTEST_ENCODED: usize = 4;

/// Shortest value without its line breaks that is searched for.
const SHORTEST_FLAT: usize = 8;

/// Automaton over all patterns, stepped byte by byte.
pub(super) struct Patterns {
    automaton: NFA,
    start: StateID,
    /// Facts about each pattern, by its number.
    known: Vec<Known>,
    /// Name and replacement of each value.
    labels: Vec<Label>,
    /// Bytes of the longest pattern.
    pub(super) longest: usize,
    /// Bytes of the shortest pattern.
    pub(super) shortest: usize,
    /// The decoded views that are searched.
    pub(super) views: Views,
    pairs: Pairs,
}

/// The first two bytes of all patterns. Most bytes of a text are passed over because no pattern begins there.
struct Pairs(Box<[u64; 1024]>);

impl Pairs {
    fn new<'p>(patterns: impl Iterator<Item = &'p Vec<u8>>) -> Pairs {
        let mut bits = Box::new([0; 1024]);
        for pattern in patterns {
            let Some(&first) = pattern.first() else { continue };
            // A pattern of one byte begins with any pair of it and another.
            let seconds = pattern.get(1).map_or(0..=u8::MAX, |second| *second..=*second);
            for second in seconds {
                let pair = usize::from(first) << 8 | usize::from(second);
                if let Some(word) = bits.get_mut(pair >> 6) {
                    *word |= 1 << (pair & 63);
                }
            }
        }
        Pairs(bits)
    }

    fn has(&self, first: u8, second: u8) -> bool {
        let pair = usize::from(first) << 8 | usize::from(second);
        self.0.get(pair >> 6).is_some_and(|word| word >> (pair & 63) & 1 != 0)
    }
}

/// Facts about a pattern.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    borders: Borders,
    /// Number of the value.
    label: usize,
}

struct Label {
    name: Option<Box<str>>,
    mark: Box<str>,
}

/// Characters beside a base64 pattern that hold some bits of the value, and some of its neighbours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Borders {
    left: bool,
    right: bool,
}

/// Longest match that ends at a position: its bytes, borders included on the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// Bytes of the longest pattern that ends here.
    pub(super) length: usize,
    /// Bytes of the longest pattern that ends here and has a left border.
    pub(super) bordered: Option<usize>,
    /// Whether the next character may belong to the match.
    pub(super) right: bool,
    /// Number of the value of the longest pattern.
    pub(super) label: usize,
}

impl Patterns {
    /// Patterns of all values; none if there are no values.
    pub(super) fn new(values: &[(Option<&str>, &str)]) -> Result<Option<Patterns>, MaskError> {
        let total: usize = values.iter().map(|(_, value)| value.len()).sum();
        if total > MAX_SECRET_BYTES {
            return Err(MaskError);
        }
        let mut found: BTreeMap<Vec<u8>, Known> = BTreeMap::new();
        let mut labels = Vec::with_capacity(values.len());
        for (label, (name, whole)) in values.iter().enumerate() {
            // Shells and templates drop white space at the ends.
            for value in [whole, whole.trim()] {
                add_value(value, label, &mut found);
            }
            let mark = name.map_or_else(|| MARK.to_owned(), |name| format!("[REDACTED:{name}]"));
            labels.push(Label { name: name.map(Box::from), mark: mark.into() });
        }
        if found.is_empty() {
            return Ok(None);
        }
        // Every pattern that ends at a position is reported only by the standard semantics.
        let automaton =
            NFA::builder().match_kind(MatchKind::Standard).build(found.keys()).map_err(|_| MaskError)?;
        let start = automaton.start_state(Anchored::No).map_err(|_| MaskError)?;
        let has_blank = values.iter().any(|(_, value)| value.contains(' '));
        Ok(Some(Patterns {
            views: Views::new(has_blank),
            pairs: Pairs::new(found.keys()),
            longest: automaton.max_pattern_len(),
            shortest: automaton.min_pattern_len(),
            known: found.into_values().collect(),
            labels,
            automaton,
            start,
        }))
    }

    /// The replacement of a value.
    pub(super) fn mark(&self, label: usize) -> &str {
        self.labels.get(label).map_or(MARK, |label| &label.mark)
    }

    /// The name of a value, if it has one.
    pub(super) fn name(&self, label: usize) -> Option<&str> {
        self.labels.get(label)?.name.as_deref()
    }

    pub(super) fn start(&self) -> StateID {
        self.start
    }

    pub(super) fn step(&self, state: StateID, byte: u8) -> StateID {
        self.automaton.next_state(Anchored::No, state, byte)
    }

    /// Number of bytes from the beginning at which neither a pattern nor an escape begins. The last byte is never one of them.
    pub(super) fn passed_over(&self, bytes: &[u8]) -> usize {
        let mut pairs = bytes.iter().zip(bytes.iter().skip(1));
        let stop = pairs.position(|(first, second)| {
            // The byte before an escape counts: the second one of a pattern may be escaped.
            let woken = self.views.woken_by(*first) | self.views.woken_by(*second);
            woken != 0 || self.pairs.has(*first, *second)
        });
        stop.unwrap_or(bytes.len().saturating_sub(1))
    }

    /// Whether a text has neither a value nor an escape.
    pub(super) fn is_clean(&self, text: &[u8]) -> bool {
        let (mut state, mut rest) = (self.start, text);
        loop {
            if state == self.start {
                rest = rest.get(self.passed_over(rest)..).unwrap_or_default();
            }
            let Some((&byte, later)) = rest.split_first() else { return true };
            state = self.step(state, byte);
            if self.views.woken_by(byte) != 0 || self.automaton.is_match(state) {
                return false;
            }
            rest = later;
        }
    }

    /// The matches that end in this state, if there are any.
    pub(super) fn ending(&self, state: StateID) -> Option<Ending> {
        if !self.automaton.is_match(state) {
            return None;
        }
        let mut ending = Ending { length: 0, bordered: None, right: false, label: 0 };
        for index in 0..self.automaton.match_len(state) {
            let pattern = self.automaton.match_pattern(state, index);
            let length = self.automaton.pattern_len(pattern);
            let Known { borders, label } = self.known.get(pattern.as_usize()).copied().unwrap_or_default();
            if length > ending.length {
                ending.length = length;
                ending.label = label;
            }
            if borders.left {
                ending.bordered = ending.bordered.max(Some(length));
            }
            ending.right |= borders.right;
        }
        Some(ending)
    }
}

fn add_value(value: &str, label: usize, found: &mut BTreeMap<Vec<u8>, Known>) {
    if value.is_empty() {
        return;
    }
    let new = || Known { borders: Borders::default(), label };
    found.entry(value.as_bytes().to_vec()).or_insert_with(new);
    if value.len() < SHORTEST_ENCODED {
        return;
    }
    let flat = Zeroizing::new(without_controls(value));
    if flat.len() >= SHORTEST_FLAT {
        found.entry(flat.to_vec()).or_insert_with(new);
    }
    for digits in [b"0123456789abcdef", b"0123456789ABCDEF"] {
        found.entry(hexadecimal(value.as_bytes(), digits)).or_insert_with(new);
    }
    // Values that were escaped first and encoded then, as in a JSON document inside base64.
    let forms = [Zeroizing::new(value.to_owned()), json_escaped(value), percent_encoded(value)];
    for form in &forms {
        for alignment in 0..3 {
            for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let (core, borders) = base64_core(form.as_bytes(), alignment, engine);
                // A value that is itself base64 text may equal the core of another one: both keep what they need.
                let known = &mut found.entry(core).or_insert_with(new).borders;
                known.left |= borders.left;
                known.right |= borders.right;
            }
        }
    }
}

fn hexadecimal(bytes: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let digit = |value: u8| digits.get(usize::from(value)).copied().unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The characters that depend on the value alone, when `alignment` bytes (modulo 3) stand before it.
fn base64_core(
    value: &[u8],
    alignment: usize,
    engine: &base64::engine::GeneralPurpose,
) -> (Vec<u8>, Borders) {
    let mut shifted = Zeroizing::new(vec![0; alignment]);
    shifted.extend_from_slice(value);
    let text = Zeroizing::new(engine.encode(&*shifted));
    let first_bit = alignment * 8;
    let end_bit = shifted.len() * 8;
    let core = text.as_bytes().get(first_bit.div_ceil(6)..end_bit / 6).unwrap_or_default().to_vec();
    let borders = Borders { left: !first_bit.is_multiple_of(6), right: !end_bit.is_multiple_of(6) };
    (core, borders)
}

/// The value inside a JSON string, escaped no more than needed.
fn json_escaped(value: &str) -> Zeroizing<String> {
    let quoted = Zeroizing::new(proctor_core::json::Json::String(value.to_owned()).to_string());
    Zeroizing::new(quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned())
}

/// The value inside a URL, with everything escaped but unreserved characters.
fn percent_encoded(value: &str) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::new());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.extend(hexadecimal(&[byte], b"0123456789ABCDEF").into_iter().map(char::from));
        }
    }
    out
}
