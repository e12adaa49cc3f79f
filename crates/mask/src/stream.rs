//! Masking of a stream: decoded views that are searched in parallel, and a buffer of what cannot be released yet.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::cursor::{Cursor, Held, Span, View};
use super::decode::Item;
use super::patterns::Patterns;
use super::quotes::{Quotes, is_of_number};

/// Bytes of a value's beginning that are left out at the end of a text that was cut off.
const SHORTEST_BEGINNING: usize = 4;

/// Masker of one stream. Bytes that may be the beginning of a value are held back until more arrives or the stream ends.
pub struct MaskStream {
    search: Option<Search>,
}

impl MaskStream {
    pub(super) fn new(patterns: Option<Arc<Patterns>>) -> MaskStream {
        MaskStream { search: patterns.map(Search::new) }
    }

    /// The same stream, whose lines may be JSON documents: a value that stands there as a number is replaced by a string.
    #[must_use]
    pub fn of_json_lines(mut self) -> MaskStream {
        if let Some(search) = &mut self.search {
            search.quotes = Some(Quotes::default());
        }
        self
    }

    /// Takes a chunk, and appends what can be released to `out`.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        match &mut self.search {
            None => out.extend_from_slice(chunk),
            Some(search) => search.push(chunk, out),
        }
    }

    /// Appends what is left to `out`, at the end of the stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(search) = &mut self.search {
            search.finish(out);
        }
    }

    /// Ends a stream that was cut off: bytes that may be the beginning of a value are left out.
    pub fn finish_cut_off(&mut self, out: &mut Vec<u8>) {
        if let Some(search) = &mut self.search {
            search.finish_cut_off(out);
        }
    }

    /// Names of the values that were masked so far.
    pub fn found(&self) -> impl Iterator<Item = &str> {
        let search = self.search.iter();
        search.flat_map(|search| search.found.iter().filter_map(|label| search.patterns.name(*label)))
    }
}

impl fmt::Debug for MaskStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MaskStream").finish_non_exhaustive()
    }
}

struct Search {
    patterns: Arc<Patterns>,
    raw: Cursor,
    /// Decoded views. Each is asleep while it equals the view that it decodes and no match has begun in it.
    views: Vec<View>,
    /// Bits of the views that are awake.
    awake: u32,
    held: Held,
    spans: Vec<Span>,
    /// Numbers of the values that were masked.
    found: BTreeSet<usize>,
    quotes: Option<Quotes>,
}

impl Search {
    fn new(patterns: Arc<Patterns>) -> Search {
        let views = patterns.views.nodes.iter().map(|node| View::new(*node, &patterns)).collect();
        Search {
            raw: Cursor::new(&patterns),
            patterns,
            views,
            awake: 0,
            held: Held { bytes: Vec::new(), base: 0 },
            spans: Vec::new(),
            found: BTreeSet::new(),
            quotes: None,
        }
    }

    fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        let mut position = self.held.base + self.held.bytes.len() as u64;
        self.held.bytes.extend_from_slice(chunk);
        let mut rest = chunk;
        loop {
            if self.awake == 0 && self.raw.is_idle(&self.patterns) {
                let passed = self.patterns.passed_over(rest);
                rest = rest.get(passed..).unwrap_or_default();
                position += passed as u64;
                self.raw.own_from = position;
            }
            let Some((&byte, later)) = rest.split_first() else { break };
            let item = Item { byte, start: position, end: position + 1, is_escaped: false };
            let woken = self.patterns.views.woken_by(byte);
            if self.awake | woken != 0 {
                self.feed_views(item, woken);
            }
            self.raw.own_from = item.end;
            self.raw.step(item, &self.patterns, &self.held, &mut self.spans);
            position += 1;
            rest = later;
        }
        let awake = self.views.iter().enumerate().filter(|(number, _)| self.awake & (1 << number) != 0);
        let undecided = awake.filter_map(|(_, view)| view.undecided_from(&self.patterns, &self.held));
        let limit = undecided.chain(self.raw.undecided_from(&self.patterns, &self.held)).min();
        self.release(limit.unwrap_or(position), out);
    }

    /// Decodes one more byte in all views that are awake or woken, and searches what they give.
    fn feed_views(&mut self, item: Item, woken: u32) {
        let awake = self.awake;
        let mut active = awake;
        for number in bits(woken & !awake) {
            if let Some(view) = self.views.get_mut(number) {
                view.wake(&self.raw, item.start);
            }
            active |= 1 << number | self.wake_equal(number, awake);
        }
        // Waking adds only views that come later.
        let mut done = 0;
        while let Some(number) = bits(active & !done).next() {
            done |= 1 << number;
            self.decode(number, item, active);
            for child in bits(self.children(number) & !active) {
                let Ok([view, child_view]) = self.views.get_disjoint_mut([number, child]) else { continue };
                if view.emitted.iter().any(|item| child_view.node.escapes.begins(item.byte)) {
                    child_view.wake_like(view);
                    active |= 1 << child | self.wake_equal(child, awake);
                }
            }
        }
        for number in bits(active) {
            let Some(view) = self.views.get_mut(number) else { continue };
            view.search(&self.patterns, &self.held, &mut self.spans);
            if view.is_idle(&self.patterns) {
                active &= !(1 << number);
            }
        }
        self.awake = active;
    }

    /// Wakes the views that were equal to one that is awake until `number` was woken; gives their bits.
    fn wake_equal(&mut self, number: usize, awake: u32) -> u32 {
        let mut woken = 0;
        for child in bits(self.children(number) & !awake) {
            let Some(without) = self.views.get(child).and_then(|view| view.node.without) else { continue };
            if awake & (1 << without) == 0 {
                continue;
            }
            if let Ok([view, child_view]) = self.views.get_disjoint_mut([without, child]) {
                child_view.wake_equal_to(view);
                woken |= 1 << child;
            }
        }
        woken
    }

    /// Bits of the views that decode the items of a view.
    fn children(&self, number: usize) -> u32 {
        let views = self.views.iter().enumerate();
        views.filter(|(_, view)| view.node.parent == Some(number)).map(|(child, _)| 1 << child).sum()
    }

    /// The view whose items a view decodes: the one before, or, as long as that is asleep, the one that it equals. None: the raw stream.
    fn source(&self, number: usize, active: u32) -> Option<usize> {
        let parent = |number: usize| self.views.get(number).and_then(|view| view.node.parent);
        std::iter::successors(parent(number), |before| parent(*before))
            .find(|before| active & (1 << before) != 0)
    }

    /// Decodes one more byte in a view.
    fn decode(&mut self, number: usize, item: Item, active: u32) {
        match self.source(number, active) {
            Some(parent) => {
                if let Ok([parent, view]) = self.views.get_disjoint_mut([parent, number]) {
                    view.decode(&parent.emitted);
                }
            }
            None => {
                if let Some(view) = self.views.get_mut(number) {
                    view.decode(&[item]);
                }
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        for number in bits(self.awake) {
            let parent = self.source(number, self.awake);
            let items = parent.and_then(|parent| self.views.get(parent));
            let items = items.map(|view| view.emitted.clone()).unwrap_or_default();
            if let Some(view) = self.views.get_mut(number) {
                view.decode(&items);
                view.decoder.finish(&mut view.emitted);
            }
        }
        for number in bits(self.awake) {
            if let Some(view) = self.views.get_mut(number) {
                view.search(&self.patterns, &self.held, &mut self.spans);
            }
        }
        self.awake = 0;
        let end = self.held.base + self.held.bytes.len() as u64;
        self.release(end, out);
    }

    fn finish_cut_off(&mut self, out: &mut Vec<u8>) {
        self.push(&[], out);
        // A few bytes begin a value by chance.
        if self.held.bytes.len() < SHORTEST_BEGINNING {
            return self.finish(out);
        }
        self.spans.sort_unstable();
        let mut position = self.held.base;
        for span in merge(&self.spans) {
            out.extend_from_slice(self.held.range(position, span.start));
            out.extend_from_slice(self.patterns.mark(span.label).as_bytes());
            self.found.insert(span.label);
            position = span.end;
        }
        self.held.base += self.held.bytes.len() as u64;
        self.held.bytes.clear();
        self.spans.clear();
        self.awake = 0;
    }

    /// Releases bytes before `limit`; no later match begins before it.
    fn release(&mut self, limit: u64, out: &mut Vec<u8>) {
        self.spans.sort_unstable();
        let merged = merge(&self.spans);
        // A span that crosses the limit may still grow.
        let crossing = merged.iter().filter(|span| span.end > limit).map(|span| span.start).min();
        let limit = crossing.unwrap_or(limit).min(limit);
        let mut position = self.held.base;
        for span in merged.iter().filter(|span| span.start < limit) {
            let before = self.held.range(position, span.start);
            out.extend_from_slice(before);
            let mark = self.patterns.mark(span.label);
            let is_number = self.quotes.as_mut().is_some_and(|quotes| {
                quotes.pass(before);
                !quotes.is_in_string
                    && self.held.range(span.start, span.end).iter().all(|byte| is_of_number(*byte))
            });
            let quote: &[u8] = if is_number { b"\"" } else { b"" };
            for part in [quote, mark.as_bytes(), quote] {
                out.extend_from_slice(part);
            }
            self.found.insert(span.label);
            position = span.end;
        }
        let rest = self.held.range(position, limit);
        out.extend_from_slice(rest);
        if let Some(quotes) = &mut self.quotes {
            quotes.pass(rest);
        }
        let released = usize::try_from(limit.saturating_sub(self.held.base)).unwrap_or(usize::MAX);
        self.held.bytes.drain(..released.min(self.held.bytes.len()));
        self.held.base = self.held.base.max(limit);
        self.spans.retain(|span| span.start >= limit);
    }
}

/// Sorted spans with overlapping ones joined; the longest names them. Those that only touch stay apart: they are two values.
fn merge(sorted: &[Span]) -> Vec<Span> {
    let mut merged: Vec<(Span, u64)> = Vec::new();
    for &span in sorted {
        let length = span.end - span.start;
        match merged.last_mut() {
            Some((last, longest)) if span.start < last.end => {
                last.end = last.end.max(span.end);
                if length > *longest {
                    (*longest, last.label) = (length, span.label);
                }
            }
            _ => merged.push((span, length)),
        }
    }
    merged.into_iter().map(|(span, _)| span).collect()
}

/// Numbers of the bits that are set, from the lowest.
fn bits(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = bits.checked_ilog2().map(|_| bits.trailing_zeros())?;
        bits &= bits - 1;
        usize::try_from(lowest).ok()
    })
}
