//! Search in a stream, and in what decoders make of it.

use std::collections::VecDeque;

use aho_corasick::automaton::StateID;

use super::decode::{Decoder, Item};
use super::patterns::Patterns;
use super::views::Node;

/// Bytes not yet released; the first one is at position `base` of the stream.
pub(super) struct Held {
    pub(super) bytes: Vec<u8>,
    pub(super) base: u64,
}

impl Held {
    pub(super) fn range(&self, start: u64, end: u64) -> &[u8] {
        let index = |position: u64| usize::try_from(position.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.bytes.get(index(start)..index(end)).unwrap_or_default()
    }
}

/// Range of the stream to be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Number of the value.
    pub(super) label: usize,
}

/// Stream as seen through a chain of decoders: the last of them, and the search in what it gives.
pub(super) struct View {
    pub(super) node: Node,
    pub(super) decoder: Decoder,
    /// Items that the last byte gave.
    pub(super) emitted: Vec<Item>,
    pub(super) cursor: Cursor,
    /// Whether the last item was written as it is.
    pub(super) is_plain: bool,
}

impl View {
    pub(super) fn new(node: Node, patterns: &Patterns) -> View {
        View {
            node,
            decoder: Decoder::new(node.escapes),
            emitted: Vec::new(),
            cursor: Cursor::new(patterns),
            is_plain: true,
        }
    }

    /// Continues where the raw stream is.
    pub(super) fn wake(&mut self, raw: &Cursor, position: u64) {
        self.cursor.continue_at(raw);
        self.cursor.own_from = position;
        self.decoder.restart();
        self.is_plain = false;
    }

    /// Continues where the view is whose items this one decodes, before the last of them.
    pub(super) fn wake_like(&mut self, parent: &View) {
        self.cursor.continue_at(&parent.cursor);
        self.decoder.restart();
        self.is_plain = false;
    }

    /// Continues where a view is that was equal.
    pub(super) fn wake_equal_to(&mut self, other: &View) {
        self.cursor.continue_at(&other.cursor);
        self.decoder.clone_from(&other.decoder);
        self.is_plain = false;
    }

    pub(super) fn decode(&mut self, items: &[Item]) {
        self.emitted.clear();
        for item in items {
            self.decoder.feed(*item, &mut self.emitted);
        }
    }

    pub(super) fn search(&mut self, patterns: &Patterns, held: &Held, spans: &mut Vec<Span>) {
        for item in &self.emitted {
            self.cursor.recent.push_back(*item);
            if self.cursor.recent.len() > patterns.longest + 1 {
                self.cursor.recent.pop_front();
            }
            self.is_plain = !item.is_escaped;
            self.cursor.step(*item, patterns, held, spans);
        }
    }

    /// Whether every later match is one of the view before, until the next escape.
    pub(super) fn is_idle(&self, patterns: &Patterns) -> bool {
        self.cursor.is_idle(patterns) && self.is_plain && self.decoder.pending_from().is_none()
    }

    /// Position from which bytes may still belong to a match; none if all are decided.
    pub(super) fn undecided_from(&self, patterns: &Patterns, held: &Held) -> Option<u64> {
        let decoding = self.decoder.pending_from();
        // With nothing of its own yet: a line break was left out, and nothing has come since.
        let is_new = self.cursor.searching == 0 && self.cursor.recent.is_empty();
        let searching = if is_new { None } else { self.cursor.undecided_from(patterns, held) };
        [decoding, searching].into_iter().flatten().min()
    }
}

/// Search in a stream or view.
pub(super) struct Cursor {
    pub(super) state: StateID,
    /// Items since the search was in its start state: no match that may still end began before.
    pub(super) searching: usize,
    /// Items since a view differs from the raw stream, as many as the longest pattern has, and one more for its border.
    pub(super) recent: VecDeque<Item>,
    /// Position from which on a view has its own items; the end of the raw stream.
    pub(super) own_from: u64,
    /// A match whose right border is the next item.
    pub(super) open: Option<(u64, usize)>,
}

impl Cursor {
    pub(super) fn new(patterns: &Patterns) -> Cursor {
        Cursor { state: patterns.start(), searching: 0, recent: VecDeque::new(), own_from: 0, open: None }
    }

    pub(super) fn continue_at(&mut self, other: &Cursor) {
        self.state = other.state;
        self.searching = other.searching;
        self.recent.clone_from(&other.recent);
        self.own_from = other.own_from;
        self.open = other.open;
    }

    /// Whether no match has begun.
    pub(super) fn is_idle(&self, patterns: &Patterns) -> bool {
        self.state == patterns.start() && self.open.is_none()
    }

    pub(super) fn step(&mut self, item: Item, patterns: &Patterns, held: &Held, spans: &mut Vec<Span>) {
        if let Some((start, label)) = self.open.take()
            && is_base64(item.byte)
        {
            spans.push(Span { start, end: item.end, label });
        }
        self.state = patterns.step(self.state, item.byte);
        self.searching = if self.state == patterns.start() { 0 } else { self.searching + 1 };
        let Some(ending) = patterns.ending(self.state) else { return };
        let first = self.start_of(ending.length);
        let border = ending.bordered.and_then(|length| {
            let byte = self.byte_of(length + 1, held)?;
            // Nothing that this view leaves out may stand between them: what came before that is not waited for.
            let is_adjacent = self.end_of(length + 1) == self.start_of(length);
            (is_base64(byte) && is_adjacent).then(|| self.start_of(length + 1))
        });
        let start = border.map_or(first, |border| first.min(border));
        spans.push(Span { start, end: item.end, label: ending.label });
        if ending.right {
            self.open = Some((start, ending.label));
        }
    }

    /// Place of an item among the view's own; the last one is at place 1. Or its position in the raw stream, before them.
    pub(super) fn place(&self, places: usize) -> Result<usize, u64> {
        let before = places.checked_sub(self.recent.len()).filter(|before| *before > 0);
        match before {
            None => Ok(self.recent.len() - places),
            Some(before) => Err(self.own_from.saturating_sub(before as u64)),
        }
    }

    /// Position of the item so many places back.
    pub(super) fn start_of(&self, places: usize) -> u64 {
        match self.place(places) {
            Ok(index) => self.recent.get(index).map_or(self.own_from, |item| item.start),
            Err(position) => position,
        }
    }

    /// Position after the item so many places back.
    pub(super) fn end_of(&self, places: usize) -> u64 {
        match self.place(places) {
            Ok(index) => self.recent.get(index).map_or(self.own_from, |item| item.end),
            Err(position) => position + 1,
        }
    }

    /// The byte so many places back, unless it was released.
    pub(super) fn byte_of(&self, places: usize, held: &Held) -> Option<u8> {
        match self.place(places) {
            Ok(index) => self.recent.get(index).map(|item| item.byte),
            Err(position) if position < held.base => None,
            Err(position) => held.range(position, position + 1).first().copied(),
        }
    }

    /// Position from which bytes may still belong to a match; none if all are decided.
    pub(super) fn undecided_from(&self, patterns: &Patterns, held: &Held) -> Option<u64> {
        let searching = match self.searching {
            // The last character may be the left border of base64 text that comes next.
            0 => self.byte_of(1, held).filter(|byte| is_base64(*byte)).map(|_| self.start_of(1)),
            // The item before the earliest possible start may be a border.
            searching => Some(self.start_of(searching.min(patterns.longest) + 1)),
        };
        let open = self.open.map(|(start, _)| start);
        [searching, open].into_iter().flatten().min()
    }
}

pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
