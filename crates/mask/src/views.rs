//! Decoded views of a stream: which escapes each decodes, and which view it equals as long as it meets none.

use super::decode::Escapes;

/// Views besides the raw one: escapes, escapes of escapes, and two kinds in either order. One with the same beginning stands before.
const VIEWS: &[&[Escapes]] = &[
    &[Escapes::Json],
    &[Escapes::Percent],
    &[Escapes::Html],
    &[Escapes::Control],
    &[Escapes::Json, Escapes::Json],
    &[Escapes::Percent, Escapes::Percent],
    &[Escapes::Json, Escapes::Percent],
    &[Escapes::Percent, Escapes::Json],
    &[Escapes::Json, Escapes::Html],
    &[Escapes::Json, Escapes::Control],
    &[Escapes::Json, Escapes::Json, Escapes::Json],
    &[Escapes::Json, Escapes::Json, Escapes::Control],
];

/// Views for values with blanks, which forms write as `+`.
const FORM_VIEWS: &[&[Escapes]] =
    &[&[Escapes::Form], &[Escapes::Json, Escapes::Form], &[Escapes::Form, Escapes::Json]];

/// A decoded view: the last decoder of its chain, on the items of the view before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) escapes: Escapes,
    /// Number of the view whose items are decoded; the raw stream if absent.
    pub(super) parent: Option<usize>,
    /// Number of the view with the same last decoder and without the one before it: equal as long as that one meets nothing.
    pub(super) without: Option<usize>,
}

/// The decoded views.
pub(super) struct Views {
    pub(super) nodes: Vec<Node>,
    /// For each byte of the raw stream the bits of the views that it wakes.
    wakes: Box<[u32; 256]>,
}

impl Views {
    pub(super) fn new(has_forms: bool) -> Views {
        let forms = if has_forms { FORM_VIEWS } else { &[] };
        let chains: Vec<&[Escapes]> = VIEWS.iter().chain(forms).copied().collect();
        let number = |wanted: &[Escapes]| chains.iter().position(|chain| *chain == wanted);
        let mut nodes = Vec::with_capacity(chains.len());
        for chain in &chains {
            let Some((&escapes, before)) = chain.split_last() else { continue };
            let without = before.split_last().and_then(|(left_out, start)| {
                // Twice the same kind: both would be the view before.
                (*left_out != escapes).then(|| number(&[start, &[escapes]].concat()))?
            });
            nodes.push(Node { escapes, parent: number(before), without });
        }
        let mut wakes = Box::new([0; 256]);
        for (byte, bits) in (0..=u8::MAX).zip(wakes.iter_mut()) {
            for (number, node) in nodes.iter().enumerate() {
                if node.parent.is_none() && node.escapes.begins(byte) {
                    *bits |= 1 << number;
                }
            }
        }
        Views { nodes, wakes }
    }

    /// Bits of the views that a byte of the raw stream wakes.
    pub(super) fn woken_by(&self, byte: u8) -> u32 {
        self.wakes.get(usize::from(byte)).copied().unwrap_or_default()
    }
}
