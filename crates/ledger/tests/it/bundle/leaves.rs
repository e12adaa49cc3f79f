//! The leaf decoder on the leaves that ledgers have, and on changed ones.

use proctor_core::random::SeededRandomness;
use proctor_core::record::{Amount, Envelope, LeafView};
use proctor_ledger::bundle::{BundleSource, FrameKind, HEADER};
use proctor_test_forges::TestLedger;
use proptest::prelude::*;

/// Leaves of all shapes that the test ledger has, and some that it has not.
fn leaves() -> Vec<Vec<u8>> {
    let ledger = TestLedger::new(5, 200).unwrap();
    let mut leaves = ledger.at(200).unwrap().leaves(0, 200).unwrap();
    let mut envelope = ledger.envelope(3).unwrap().clone();
    for value in ["1", "-12.5", "0", "0.001", "100", "123456789012345678901234"] {
        let value = value.parse().unwrap();
        envelope.amounts.push(Amount { unit: "usd".to_owned(), value, limit: Some(3) });
        leaves.push(envelope.to_leaf().unwrap());
        envelope.amounts.insert(0, Amount { unit: String::new(), value, limit: None });
        leaves.push(envelope.to_leaf().unwrap());
    }
    envelope.taints = vec![String::new(), "customer_data".to_owned(), "é\u{7f}".to_owned()];
    envelope.expires = Some(proctor_core::time::Timestamp::from_micros(-7));
    envelope.links = vec![0, 1 << 53];
    envelope.once = Some(String::new());
    leaves.push(envelope.to_leaf().unwrap());
    leaves
}

/// The decoder is the inverse of the encoder, and nothing else: what it accepts is encoded to the same bytes.
fn check(leaf: &[u8]) -> bool {
    let Ok(envelope) = Envelope::from_leaf(leaf) else { return false };
    assert_eq!(envelope.to_leaf().unwrap(), leaf, "{}", leaf.escape_ascii());
    true
}

#[test]
fn a_leaf_is_viewed_as_its_envelope() {
    for leaf in leaves() {
        assert!(check(&leaf));
        let (view, envelope) = (LeafView::parse(&leaf).unwrap(), Envelope::from_leaf(&leaf).unwrap());
        assert_eq!(view.id, envelope.id);
        assert_eq!(view.kind, envelope.kind);
        assert_eq!(view.links().collect::<Vec<_>>(), envelope.links);
        assert_eq!(view.body, envelope.body);
        assert_eq!(view.once.is_some(), envelope.once.is_some());
    }
}

#[test]
fn no_leaf_is_accepted_that_is_not_canonical() {
    let randomness = SeededRandomness::new(77);
    let leaves = leaves();
    let texts: [&[u8]; 12] =
        [b",", b"\"", b"0", b"-", b"-0", b"00", b"1.50", b".5", b"\\u0041", b" ", b"A", b"\"agent\":\"\","];
    for round in 0..60_000 {
        let mut leaf = leaves[usize::try_from(randomness.below(leaves.len() as u64)).unwrap()].clone();
        let at = usize::try_from(randomness.below(leaf.len() as u64)).unwrap();
        let text = texts[usize::try_from(randomness.below(12)).unwrap()];
        match round % 4 {
            0 => leaf[at] = text[0],
            1 => drop(leaf.splice(at..at, text.iter().copied())),
            2 => drop(leaf.remove(at)),
            _ => {
                // Values are where mistakes are likely: right after a colon.
                let colons: Vec<usize> = (0..leaf.len()).filter(|at| leaf[*at] == b':').collect();
                let colon = colons[at % colons.len()] + 1;
                let end = (colon + usize::from(round % 8 == 3)).min(leaf.len());
                drop(leaf.splice(colon..end, text.iter().copied()));
            }
        }
        check(&leaf);
    }
}

#[test]
fn other_spellings_of_numbers_are_refused() {
    let leaf = TestLedger::new(5, 1).unwrap().at(1).unwrap().leaves(0, 1).unwrap().remove(0);
    let text = String::from_utf8(leaf).unwrap();
    let (before, after) = text.split_once("\"time\":").unwrap();
    let rest = after.trim_start_matches(|character: char| character.is_ascii_digit());
    for time in
        ["7", "-7", "0", "-0", "07", "+7", "", "9007199254740992", "9007199254740993", "-9007199254740993"]
    {
        let spelled = format!("{before}\"time\":{time}{rest}").into_bytes();
        let canonical = ["7", "-7", "0", "9007199254740992"].contains(&time);
        assert_eq!(check(&spelled), canonical, "{time}");
    }
}

#[test]
fn frame_types_are_told_apart() {
    for kind in FrameKind::ALL {
        assert_eq!(FrameKind::from_byte(kind.byte()), Some(kind));
    }
    assert_eq!(FrameKind::from_byte(b'X'), None);
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        super::read_untrusted(&bytes);
        super::read_untrusted(&[HEADER.as_bytes(), &bytes].concat());
        super::read_untrusted(&[HEADER.as_bytes(), b"W\0\0\0", &bytes].concat());
    }
}
