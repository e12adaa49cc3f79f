//! Changes to a bundle that must all be refused.

use proctor_core::random::{Randomness, SeededRandomness};

use crate::forge;
use proctor_ledger::bundle::{FRAME_HEADER_BYTES, FrameKind, HEADER};

/// Changes a bundle by chance, and tells how. The result may by chance be the same bytes, which then counts for nothing.
pub fn mutate(bundle: &[u8], randomness: &SeededRandomness) -> (Vec<u8>, &'static str) {
    mutate_with(bundle, &[], randomness)
}

/// The same by an attacker who also has genuine older checkpoints of the ledger.
pub fn mutate_with(
    bundle: &[u8],
    older: &[String],
    randomness: &SeededRandomness,
) -> (Vec<u8>, &'static str) {
    let pieces = Pieces::read(bundle);
    loop {
        let changed = match randomness.below(3) {
            0 => Some(change_bytes(bundle, randomness)),
            1 => pieces.as_ref().and_then(|pieces| change_frames(pieces, randomness)),
            _ => pieces.as_ref().and_then(|pieces| forge::forge(pieces, older, randomness)),
        };
        // Not every change can be made to every bundle; bytes can always be changed.
        if let Some((bytes, kind)) = changed {
            return (bytes, kind);
        }
    }
}

/// A bundle cut into frames.
#[derive(Debug, Clone)]
pub(super) struct Pieces(pub(super) Vec<(u8, Vec<u8>)>);

impl Pieces {
    pub(super) fn read(bundle: &[u8]) -> Option<Pieces> {
        let mut rest = bundle.strip_prefix(HEADER.as_bytes())?;
        let mut frames = Vec::new();
        while let Some((header, after)) = rest.split_first_chunk::<FRAME_HEADER_BYTES>() {
            let [kind, length @ ..] = header;
            let (payload, next) =
                after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
            frames.push((*kind, payload.to_vec()));
            rest = next;
        }
        Some(Pieces(frames))
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = HEADER.as_bytes().to_vec();
        for (kind, payload) in &self.0 {
            out.push(*kind);
            out.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(payload);
        }
        out
    }

    /// Writes the end frame anew, so that it counts what is there.
    pub(super) fn count(mut self) -> Pieces {
        let count = |kind: FrameKind| self.0.iter().filter(|(byte, _)| *byte == kind.byte()).count() as u64;
        let counts = [count(FrameKind::Leaf).to_be_bytes(), count(FrameKind::Body).to_be_bytes()].concat();
        for (_, payload) in self.0.iter_mut().filter(|(byte, _)| *byte == FrameKind::End.byte()) {
            payload.clone_from(&counts);
        }
        self
    }

    /// The positions of the frames of a kind.
    pub(super) fn of(&self, kind: FrameKind) -> Vec<usize> {
        (0..).zip(&self.0).filter(|(_, (byte, _))| *byte == kind.byte()).map(|(at, _)| at).collect()
    }
}

/// A position below `bound`, which is not zero.
pub(super) fn below(randomness: &SeededRandomness, bound: usize) -> usize {
    usize::try_from(randomness.below(bound as u64)).unwrap_or(0)
}

/// Picks an item at random.
pub(super) fn pick<T: Copy>(randomness: &SeededRandomness, items: &[T]) -> Option<T> {
    items.get(below(randomness, items.len())).copied()
}

fn change_bytes(bundle: &[u8], randomness: &SeededRandomness) -> (Vec<u8>, &'static str) {
    let mut bytes = bundle.to_vec();
    let at = below(randomness, bytes.len());
    let length = (1 + below(randomness, 16)).min(bytes.len() - at.min(bytes.len()));
    let mut noise = vec![0; 1 + below(randomness, 16)];
    randomness.fill(&mut noise);
    match randomness.below(8) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << randomness.below(8);
            }
            (bytes, "one bit changed")
        }
        2 => {
            for _ in 0..=randomness.below(8) {
                let at = below(randomness, bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = randomness.next_u64().to_le_bytes()[0];
                }
            }
            (bytes, "bytes changed")
        }
        3 => {
            bytes.truncate(at);
            (bytes, "cut off")
        }
        4 => {
            bytes.splice(at..at, noise);
            (bytes, "bytes inserted")
        }
        5 => {
            bytes.drain(at..at + length);
            (bytes, "bytes removed")
        }
        6 => {
            let piece: Vec<u8> = bytes.get(at..at + length).unwrap_or_default().to_vec();
            bytes.splice(at..at, piece);
            (bytes, "bytes doubled")
        }
        _ => {
            bytes.extend(noise);
            (bytes, "bytes added at the end")
        }
    }
}

fn change_frames(pieces: &Pieces, randomness: &SeededRandomness) -> Option<(Vec<u8>, &'static str)> {
    let mut changed = pieces.clone();
    let frames = &mut changed.0;
    let (one, other) = (below(randomness, frames.len()), below(randomness, frames.len()));
    let counted = randomness.below(2) == 0;
    let kind = match randomness.below(6) {
        0 => {
            frames.remove(one);
            "frame dropped"
        }
        1 => {
            frames.swap(one, other);
            "frames swapped"
        }
        2 => {
            let frame = frames.get(one)?.clone();
            frames.insert(other, frame);
            "frame doubled"
        }
        3 => {
            let kinds: Vec<u8> = FrameKind::ALL.iter().map(|kind| kind.byte()).collect();
            frames.get_mut(one)?.0 =
                if counted { pick(randomness, &kinds)? } else { randomness.next_u64().to_le_bytes()[0] };
            "frame type changed"
        }
        4 => {
            let payload = frames.get(other)?.1.clone();
            frames.get_mut(one)?.1 = payload;
            "frame's content replaced by another's"
        }
        _ => {
            let payload = &mut frames.get_mut(one)?.1;
            let length = below(randomness, payload.len() + 1);
            payload.truncate(length);
            "frame shortened"
        }
    };
    let changed = if counted { changed.count() } else { changed };
    Some((changed.write(), kind))
}
