//! Forgeries: changes that keep everything consistent which can be kept without the keys.

use base64::{Engine, engine::general_purpose::STANDARD};
use proctor_core::decision::Effect;
use proctor_core::random::{Randomness, SeededRandomness};
use proctor_core::record::{Envelope, RecordKind, body_digest};

use crate::mutate::{Pieces, below, pick};
use crate::note_of;
use proctor_ledger::bundle::{FrameKind, NUMBER_BYTES};
use proctor_ledger::checkpoint::Checkpoint;
use proctor_ledger::keys::{Algorithm, KeyId, SecretKey};
use proctor_ledger::merkle::{leaf_hash, root_of};
use proctor_ledger::note::Note;

/// Forges a bundle in one of the ways that apply to it.
pub(super) fn forge(
    pieces: &Pieces,
    older: &[String],
    randomness: &SeededRandomness,
) -> Option<(Vec<u8>, &'static str)> {
    let mut forged = pieces.clone();
    let whole = forged.0.first()?.0 == FrameKind::WholeCheckpoint.byte();
    let kind = match randomness.below(16) {
        0 => {
            rewrite_leaf(&mut forged, randomness)?;
            "leaf rewritten"
        }
        1 => {
            rewrite_body(&mut forged, randomness)?;
            "leaf and body rewritten"
        }
        2 => {
            let bodies = forged.of(FrameKind::Body);
            forged.0.swap(pick(randomness, &bodies)?, pick(randomness, &bodies)?);
            "bodies swapped"
        }
        3 => {
            let body = pick(randomness, &forged.of(FrameKind::Body))?;
            forged.0.remove(body);
            "body dropped"
        }
        4 => {
            bring_back(&mut forged, randomness)?;
            "body added"
        }
        5 if whole => {
            drop_record(&mut forged, randomness)?;
            "record dropped, the others renumbered"
        }
        6 if whole => {
            insert_record(&mut forged, randomness)?;
            "record inserted, the others renumbered"
        }
        7 if whole => {
            truncate(&mut forged, randomness)?;
            "tail dropped"
        }
        8 => {
            rewrite_leaf(&mut forged, randomness)?;
            resign(&mut forged, randomness, Pretence::OtherKeys)?;
            "history rewritten and signed with other keys of the same names"
        }
        9 => {
            rewrite_leaf(&mut forged, randomness)?;
            resign(&mut forged, randomness, Pretence::KeyIds)?;
            "history rewritten and signed with other keys under the genuine identifiers"
        }
        10 => {
            rewrite_leaf(&mut forged, randomness)?;
            resign(&mut forged, randomness, Pretence::OldLines)?;
            "fork of the same size with the genuine signature lines"
        }
        11 => {
            resign(&mut forged, randomness, Pretence::OtherKeys)?;
            "genuine history signed with other keys of the same names"
        }
        12 => {
            change_lines(&mut forged, randomness)?;
            "signature lines changed"
        }
        13 => {
            set_note(&mut forged, pick_note(older, randomness)?)?;
            "older genuine checkpoint on newer records"
        }
        14 if whole => {
            roll_back(&mut forged, pick_note(older, randomness)?)?;
            "rolled back to an older genuine checkpoint"
        }
        15 => {
            graft_lines(&mut forged, pick_note(older, randomness)?)?;
            "signature lines of an older checkpoint"
        }
        _ => return None,
    };
    Some((forged.count().write(), kind))
}

/// An attacker's replacement for the signature lines.
#[derive(Clone, Copy)]
enum Pretence {
    /// Signatures by the attacker's keys under the genuine names.
    OtherKeys,
    /// The same, with the genuine keys' identifiers.
    KeyIds,
    /// The lines that were there.
    OldLines,
}

fn note_in(pieces: &Pieces) -> Option<Note> {
    Note::parse(&pieces.0.first()?.1).ok()
}

fn set_note(pieces: &mut Pieces, note: &str) -> Option<()> {
    pieces.0.first_mut()?.1 = note.as_bytes().to_vec();
    Some(())
}

fn pick_note<'a>(older: &'a [String], randomness: &SeededRandomness) -> Option<&'a str> {
    older.get(below(randomness, older.len())).map(String::as_str)
}

fn leaf_at(pieces: &Pieces, at: usize) -> Option<(u64, Envelope)> {
    let (seq, leaf) = pieces.0.get(at)?.1.split_first_chunk::<NUMBER_BYTES>()?;
    Some((u64::from_be_bytes(*seq), Envelope::from_leaf(leaf).ok()?))
}

fn set_leaf(pieces: &mut Pieces, at: usize, seq: u64, envelope: &Envelope) -> Option<()> {
    pieces.0.get_mut(at)?.1 = [seq.to_be_bytes().as_slice(), &envelope.to_leaf().ok()?].concat();
    Some(())
}

fn rewrite_leaf(pieces: &mut Pieces, randomness: &SeededRandomness) -> Option<()> {
    let at = pick(randomness, &pieces.of(FrameKind::Leaf))?;
    let (seq, mut envelope) = leaf_at(pieces, at)?;
    match randomness.below(5) {
        0 => {
            let allowed = envelope.decision == Some(Effect::Allow);
            envelope.decision = Some(if allowed { Effect::Deny } else { Effect::Allow });
        }
        1 => envelope.principal.push('x'),
        2 => envelope.time = envelope.time.plus_micros(1),
        3 => envelope.kind = RecordKind::Gap,
        _ => envelope.rule.push('x'),
    }
    set_leaf(pieces, at, seq, &envelope)
}

fn rewrite_body(pieces: &mut Pieces, randomness: &SeededRandomness) -> Option<()> {
    let body = pick(randomness, &pieces.of(FrameKind::Body))?;
    let leaf = body.checked_sub(1)?;
    let (seq, mut envelope) = leaf_at(pieces, leaf)?;
    let mut salt = [0; 32];
    randomness.fill(&mut salt);
    let bytes = b"{\"decision\":\"as the enemy likes it\"}";
    envelope.body = Some(body_digest(&salt, bytes));
    pieces.0.get_mut(body)?.1 = [salt.as_slice(), bytes].concat();
    set_leaf(pieces, leaf, seq, &envelope)
}

/// Puts a body where there is none: where it was erased, or where there never was one.
fn bring_back(pieces: &mut Pieces, randomness: &SeededRandomness) -> Option<()> {
    let is_body = |at: usize| pieces.0.get(at).is_some_and(|(kind, _)| *kind == FrameKind::Body.byte());
    let without: Vec<usize> = pieces.of(FrameKind::Leaf).into_iter().filter(|at| !is_body(at + 1)).collect();
    let at = pick(randomness, &without)?;
    let mut salted = vec![0; 32 + below(randomness, 64)];
    randomness.fill(&mut salted);
    pieces.0.insert(at + 1, (FrameKind::Body.byte(), salted));
    Some(())
}

fn drop_record(pieces: &mut Pieces, randomness: &SeededRandomness) -> Option<()> {
    let at = pick(randomness, &pieces.of(FrameKind::Leaf))?;
    pieces.0.remove(at);
    if pieces.0.get(at)?.0 == FrameKind::Body.byte() {
        pieces.0.remove(at);
    }
    renumber(pieces);
    claim_size(pieces)
}

fn insert_record(pieces: &mut Pieces, randomness: &SeededRandomness) -> Option<()> {
    let at = pick(randomness, &pieces.of(FrameKind::Leaf))?;
    let (seq, mut envelope) = leaf_at(pieces, at)?;
    let mut id = [0; 16];
    randomness.fill(&mut id);
    envelope.id = proctor_core::id::RecordId::from_bytes(id);
    (envelope.body, envelope.once) = (None, None);
    pieces.0.insert(at, (FrameKind::Leaf.byte(), Vec::new()));
    set_leaf(pieces, at, seq, &envelope)?;
    renumber(pieces);
    claim_size(pieces)
}

fn truncate(pieces: &mut Pieces, randomness: &SeededRandomness) -> Option<()> {
    let leaves = pieces.of(FrameKind::Leaf);
    let end = pieces.0.pop()?;
    pieces.0.truncate(pick(randomness, &leaves)?);
    pieces.0.push(end);
    if randomness.below(2) == 0 { claim_size(pieces) } else { Some(()) }
}

fn renumber(pieces: &mut Pieces) {
    let leaves = pieces.0.iter_mut().filter(|(kind, _)| *kind == FrameKind::Leaf.byte());
    for (seq, (_, payload)) in (0u64..).zip(leaves) {
        payload.splice(..NUMBER_BYTES.min(payload.len()), seq.to_be_bytes());
    }
}

/// The checkpoint's text with the size and root that a whole bundle's records have; a part keeps its own.
fn true_text(pieces: &Pieces) -> Option<String> {
    let note = note_in(pieces)?;
    if pieces.0.first()?.0 != FrameKind::WholeCheckpoint.byte() {
        return Some(note.text().to_owned());
    }
    let claimed: Checkpoint = note.text().parse().ok()?;
    let leaves: Vec<&[u8]> = pieces
        .of(FrameKind::Leaf)
        .into_iter()
        .filter_map(|at| pieces.0.get(at)?.1.get(NUMBER_BYTES..))
        .collect();
    let root = root_of(leaves.iter().map(|leaf| leaf_hash(leaf)));
    Some(Checkpoint::new(&claimed.origin, leaves.len() as u64, root).to_string())
}

/// Makes the checkpoint fit the records, and leaves the signatures as they are.
fn claim_size(pieces: &mut Pieces) -> Option<()> {
    let lines: Vec<String> = note_in(pieces)?.signatures().iter().map(ToString::to_string).collect();
    let note = note_of(&true_text(pieces)?, &lines)?.to_string();
    set_note(pieces, &note)
}

fn resign(pieces: &mut Pieces, randomness: &SeededRandomness, pretence: Pretence) -> Option<()> {
    let genuine = note_in(pieces)?;
    let text = true_text(pieces)?;
    let claimed: Checkpoint = text.parse().ok()?;
    let mut unsigned = Note::new(text.clone()).ok()?;
    let mut lines = Vec::new();
    for line in genuine.signatures() {
        let of_log = line.name() == claimed.origin;
        let mut seed = [0; 32];
        randomness.fill(&mut seed);
        let algorithm = if of_log { Algorithm::Ed25519 } else { Algorithm::CosignatureV1 };
        let key = SecretKey::from_seed(line.name(), algorithm, &seed).ok()?;
        let forged = if of_log {
            unsigned.sign(&key).ok()?;
            unsigned.signatures().last()?.clone()
        } else {
            unsigned.cosign(&key, 1_763_239_999).ok()?
        };
        lines.push(match pretence {
            Pretence::OtherKeys => forged.to_string(),
            Pretence::KeyIds => signature_line(line.name(), line.key_id(), forged.signature()),
            Pretence::OldLines => line.to_string(),
        });
    }
    let note = note_of(&text, &lines)?.to_string();
    set_note(pieces, &note)
}

fn signature_line(name: &str, id: KeyId, signature: &[u8]) -> String {
    format!("— {name} {}\n", STANDARD.encode([id.0.as_slice(), signature].concat()))
}

fn change_lines(pieces: &mut Pieces, randomness: &SeededRandomness) -> Option<()> {
    let genuine = note_in(pieces)?;
    let mut lines: Vec<String> = genuine.signatures().iter().map(ToString::to_string).collect();
    let at = below(randomness, lines.len());
    match randomness.below(4) {
        0 => {
            lines.remove(at);
        }
        1 => {
            let line = lines.get(at)?.clone();
            lines.insert(at, line);
        }
        2 => {
            let other = below(randomness, lines.len());
            lines.swap(at, other);
        }
        _ => {
            let mut signature = [0; 72];
            randomness.fill(&mut signature);
            lines.push(signature_line("example.com/zealous", KeyId([1, 2, 3, 4]), &signature));
        }
    }
    let note = format!("{}\n{}", genuine.text(), lines.concat());
    set_note(pieces, &note)
}

/// The older checkpoint with exactly its records.
fn roll_back(pieces: &mut Pieces, note: &str) -> Option<()> {
    let older: Checkpoint = Note::parse(note.as_bytes()).ok()?.text().parse().ok()?;
    let leaves = pieces.of(FrameKind::Leaf);
    let cut = *leaves.get(usize::try_from(older.size).ok()?)?;
    let end = pieces.0.pop()?;
    pieces.0.truncate(cut);
    pieces.0.push(end);
    set_note(pieces, note)
}

/// The newer text with the lines of an older note.
fn graft_lines(pieces: &mut Pieces, note: &str) -> Option<()> {
    let older = Note::parse(note.as_bytes()).ok()?;
    let lines: Vec<String> = older.signatures().iter().map(ToString::to_string).collect();
    let note = note_of(note_in(pieces)?.text(), &lines)?.to_string();
    set_note(pieces, &note)
}
