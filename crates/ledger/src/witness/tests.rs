use super::*;
use crate::merkle::{MAX_TREE_SIZE, RightEdge, consistency_proof, leaf_hash};
use crate::tiles::{TileSet, TiledTree};
use proptest::prelude::*;

const ORIGIN: &str = "example.com/ledger";

fn log_key() -> SecretKey {
    SecretKey::from_seed(ORIGIN, Algorithm::Ed25519, &[1; 32]).unwrap()
}

fn witness_key() -> SecretKey {
    SecretKey::from_seed("example.com/witness", Algorithm::CosignatureV1, &[2; 32]).unwrap()
}

/// A ledger whose records after `common` differ by `variant`: two variants are a fork.
struct Ledger {
    tiles: TileSet,
    roots: Vec<Hash>,
}

impl Ledger {
    fn new(size: u64, common: u64, variant: &str) -> Self {
        let (mut tiles, mut edge) = (TileSet::new(), RightEdge::new());
        let mut roots = vec![edge.root()];
        for index in 0..size {
            let record = if index < common { format!("{index}") } else { format!("{index} {variant}") };
            tiles.append(leaf_hash(record.as_bytes()));
            edge.append(leaf_hash(record.as_bytes()));
            roots.push(edge.root());
        }
        Self { tiles, roots }
    }

    fn checkpoint(&self, size: u64) -> Note {
        let root = self.roots[usize::try_from(size).unwrap()];
        Checkpoint::new(ORIGIN, size, root).sign(&log_key()).unwrap()
    }

    fn proof(&self, old: u64, new: u64) -> Vec<Hash> {
        consistency_proof(old, new, &TiledTree::new(new, &self.tiles)).unwrap()
    }

    fn ask(&self, witness: &mut Witness, old: u64, new: u64) -> Result<CosignatureLine, WitnessRefusal> {
        let proof = if old <= new { self.proof(old, new) } else { Vec::new() };
        witness.cosign(old, &proof, &self.checkpoint(new), log_key().verifier_key(), 1_700_000_000)
    }
}

fn witness() -> Witness {
    Witness::new(witness_key()).unwrap()
}

#[test]
fn a_growing_ledger_is_cosigned_step_by_step() {
    let ledger = Ledger::new(600, 600, "");
    let mut witness = witness();
    let mut old = 0;
    for new in [0, 1, 1, 2, 7, 8, 255, 256, 257, 600, 600] {
        let mut note = ledger.checkpoint(new);
        let line = ledger.ask(&mut witness, old, new).unwrap();
        assert_eq!(line.time(), 1_700_000_000);
        note.add(line.clone().into_signature()).unwrap();
        let read = Note::parse(note.to_string().as_bytes()).unwrap();
        assert_eq!(verify_cosignature(&read, witness.verifier_key()), Ok(1_700_000_000));
        assert!(note.to_string().ends_with(&line.to_string()));
        old = new;
    }
    assert_eq!(witness.known(ORIGIN), Some(KnownTree { size: 600, root: ledger.roots[600] }));
}

#[test]
fn a_fork_is_refused_at_the_same_size_and_after_growth() {
    let honest = Ledger::new(100, 100, "");
    let forked = Ledger::new(100, 40, "forked");
    let mut witness = witness();
    honest.ask(&mut witness, 0, 50).unwrap();
    let before = witness.state_text();

    let refusal = forked.ask(&mut witness, 50, 50).unwrap_err();
    assert_eq!(refusal, WitnessRefusal::Fork { size: 50 });
    assert_eq!(refusal.http_status(), 409);
    let refusal = forked.ask(&mut witness, 50, 80).unwrap_err();
    assert!(matches!(refusal, WitnessRefusal::Inconsistent { known: 50, .. }), "{refusal}");
    assert_eq!(refusal.http_status(), 422);
    assert_eq!(witness.state_text(), before, "a refusal changes nothing");
    honest.ask(&mut witness, 50, 80).unwrap();
}

#[test]
fn a_rollback_is_refused_and_told_the_known_size() {
    let ledger = Ledger::new(100, 100, "");
    let mut witness = witness();
    ledger.ask(&mut witness, 0, 50).unwrap();
    for (old, new) in [(0, 30), (30, 30), (0, 50), (0, 80), (49, 80), (51, 80)] {
        let refusal = ledger.ask(&mut witness, old, new).unwrap_err();
        assert_eq!(refusal, WitnessRefusal::Conflict { old, known: 50 });
        assert_eq!(refusal.http_status(), 409);
    }
    let refusal = ledger.ask(&mut witness, 50, 30).unwrap_err();
    assert_eq!(refusal, WitnessRefusal::OldSizeTooLarge { old: 50, size: 30 });
    assert_eq!(refusal.http_status(), 400);
    assert_eq!(witness.known(ORIGIN).unwrap().size, 50);
}

#[test]
fn a_new_ledger_starts_at_zero_with_an_empty_proof() {
    let ledger = Ledger::new(10, 10, "");
    let mut witness = witness();
    assert_eq!(ledger.ask(&mut witness, 5, 10), Err(WitnessRefusal::Conflict { old: 5, known: 0 }));
    let key = log_key();
    let surplus = witness.cosign(0, &[EMPTY_ROOT], &ledger.checkpoint(10), key.verifier_key(), 1);
    assert!(matches!(surplus, Err(WitnessRefusal::Inconsistent { .. })));
    assert_eq!(witness.known(ORIGIN), None);
    ledger.ask(&mut witness, 0, 10).unwrap();
}

#[test]
fn wrong_proofs_are_refused() {
    let ledger = Ledger::new(100, 100, "");
    let mut witness = witness();
    ledger.ask(&mut witness, 0, 50).unwrap();
    let key = log_key();
    let good = ledger.proof(50, 80);
    let mut wrong = vec![Vec::new(), vec![EMPTY_ROOT; 64], ledger.proof(49, 80), ledger.proof(50, 81)];
    for position in 0..good.len() {
        let mut changed = good.clone();
        changed[position][0] ^= 0x80;
        wrong.push(changed);
    }
    for proof in wrong {
        let refusal = witness.cosign(50, &proof, &ledger.checkpoint(80), key.verifier_key(), 1).unwrap_err();
        assert!(matches!(refusal, WitnessRefusal::Inconsistent { .. }), "{refusal}");
    }
    assert!(witness.cosign(50, &good, &ledger.checkpoint(80), key.verifier_key(), 1).is_ok());
}

#[test]
fn the_signature_is_checked_before_anything_is_told() {
    let ledger = Ledger::new(10, 10, "");
    let mut witness = witness();
    ledger.ask(&mut witness, 0, 5).unwrap();
    let stranger = SecretKey::from_seed(ORIGIN, Algorithm::Ed25519, &[9; 32]).unwrap();
    let forged = Checkpoint::new(ORIGIN, 10, ledger.roots[10]).sign(&stranger).unwrap();
    let refusal = witness.cosign(0, &[], &forged, log_key().verifier_key(), 1).unwrap_err();
    assert!(matches!(refusal, WitnessRefusal::NotSigned(_)), "{refusal}");
    assert_eq!(refusal.http_status(), 403);

    let other = SecretKey::from_seed("other", Algorithm::Ed25519, &[8; 32]).unwrap();
    let mut foreign = Note::new(Checkpoint::new(ORIGIN, 10, ledger.roots[10]).to_string()).unwrap();
    foreign.sign(&other).unwrap();
    let refusal = witness.cosign(5, &ledger.proof(5, 10), &foreign, other.verifier_key(), 1).unwrap_err();
    assert_eq!(refusal.http_status(), 403);

    let mut no_checkpoint = Note::new("hello\n".to_owned()).unwrap();
    no_checkpoint.sign(&log_key()).unwrap();
    let refusal = witness.cosign(0, &[], &no_checkpoint, log_key().verifier_key(), 1).unwrap_err();
    assert_eq!(refusal.http_status(), 400);
}

#[test]
fn a_time_that_cannot_be_carried_changes_nothing() {
    let ledger = Ledger::new(3, 3, "");
    let mut witness = witness();
    let refusal =
        witness.cosign(0, &[], &ledger.checkpoint(3), log_key().verifier_key(), u64::MAX).unwrap_err();
    assert!(matches!(refusal, WitnessRefusal::Sign(_)));
    assert_eq!(witness.known(ORIGIN), None);
}

#[test]
fn a_witness_needs_a_cosigning_key() {
    assert!(matches!(Witness::new(log_key()), Err(NoteError::WrongAlgorithm { .. })));
    assert!(matches!(Witness::with_state(log_key(), &witness().state_text()), Err(StateError::Key(_))));
}

#[test]
fn the_state_survives_and_still_refuses() {
    let ledger = Ledger::new(100, 100, "");
    let mut first = witness();
    ledger.ask(&mut first, 0, 50).unwrap();
    let text = first.state_text();
    let mut second = Witness::with_state(witness_key(), &text).unwrap();
    assert_eq!(second.state_text(), text);
    assert_eq!(
        Ledger::new(100, 10, "forked").ask(&mut second, 50, 50),
        Err(WitnessRefusal::Fork { size: 50 })
    );
    ledger.ask(&mut second, 50, 100).unwrap();
}

#[test]
fn a_damaged_state_is_refused() {
    let ledger = Ledger::new(9, 9, "");
    let mut witness = witness();
    ledger.ask(&mut witness, 0, 9).unwrap();
    let text = witness.state_text();
    for length in 0..text.len() {
        assert!(Witness::with_state(witness_key(), &text[..length]).is_err(), "cut at {length}");
    }
    let header = "PROCTOR-WITNESS-STATE-1\n";
    let root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    for damaged in [
        format!("{text}\n"),
        format!("{text}x"),
        format!("{header}a 1 {root}\n"),
        format!("{header}a 1 {root}\nend 0\n"),
        format!("{header}a 1 {root}\nend 2\n"),
        format!("{header}a 01 {root}\nend 1\n"),
        format!("{header}a 1  {root}\nend 1\n"),
        format!("{header}a 1 {root} x\nend 1\n"),
        format!("{header}a+b 1 {root}\nend 1\n"),
        format!("{header}a 4611686018427387905 {root}\nend 1\n"),
        format!("{header}b 1 {root}\na 1 {root}\nend 2\n"),
        format!("{header}a 1 {root}\na 2 {root}\nend 2\n"),
        format!("{header}a 1 {root}\na 2 {root}\nend 1\n"),
        format!("{header}a 1 {root}\nend 1\nend 1\n"),
        format!("{header}end 0\na 1 {root}\nend 1\n"),
        format!("{header}a 1 AAAA\nend 1\n"),
        format!("{header}a 0 {}\nend 1\n", root.replace("47", "48")),
    ] {
        assert!(Witness::with_state(witness_key(), &damaged).is_err(), "{damaged:?}");
    }
    let end_is_a_name_too = format!("{header}end 1 {root}\nend 1\n");
    assert_eq!(
        Witness::with_state(witness_key(), &end_is_a_name_too).unwrap().state_text(),
        end_is_a_name_too
    );
    assert_eq!(
        Witness::with_state(witness_key(), &format!("{header}a b\n")).unwrap_err().to_string(),
        "line 2 of the witness state is damaged: it is not `<origin> <size> <root>`; restore the file from a copy"
    );
}

#[test]
fn the_largest_state_is_written_and_read_and_takes_no_new_ledger() {
    let mut witness = witness();
    for number in 0..MAX_ORIGINS {
        let origin = format!("{number:0>255}");
        witness.known.insert(origin, KnownTree { size: MAX_TREE_SIZE, root: EMPTY_ROOT });
    }
    let mut witness = Witness::with_state(witness_key(), &witness.state_text()).unwrap();
    assert_eq!(Ledger::new(1, 1, "").ask(&mut witness, 0, 1), Err(WitnessRefusal::Full));
    witness.known.insert("one more".replace(' ', "-"), KnownTree { size: 1, root: EMPTY_ROOT });
    assert!(Witness::with_state(witness_key(), &witness.state_text()).is_err());
}

#[test]
fn requests_are_read_strictly_and_printed_back() {
    let ledger = Ledger::new(100, 100, "");
    let request = CosignRequest { old_size: 50, proof: ledger.proof(50, 80), note: ledger.checkpoint(80) };
    let text = request.to_string();
    assert!(text.starts_with("old 50\n"));
    assert_eq!(CosignRequest::parse(text.as_bytes()), Ok(request));
    let first = CosignRequest { old_size: 0, proof: Vec::new(), note: ledger.checkpoint(80) };
    assert_eq!(CosignRequest::parse(first.to_string().as_bytes()), Ok(first.clone()));

    for wrong in [
        text.replacen("old 50", "old 050", 1),
        text.replacen("old 50", "Old 50", 1),
        text.replacen("=\n", "\n", 1),
        text.replacen("\n\n", "\n", 1),
        format!("{text}x"),
        first.to_string().replacen(
            '\n',
            &format!("\n{}", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n".repeat(64)),
            1,
        ),
        String::new(),
        "old 1".to_owned(),
        "x".repeat(100_000),
    ] {
        assert!(CosignRequest::parse(wrong.as_bytes()).is_err(), "{wrong:.200?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Requests in any order: all cosigned checkpoints are consistent with each other.
    #[test]
    fn all_cosigned_checkpoints_are_consistent(
        asks in prop::collection::vec((any::<bool>(), 0u64..40, 0u64..40, any::<bool>()), 1..30),
    ) {
        let ledgers = [Ledger::new(40, 40, ""), Ledger::new(40, 12, "forked")];
        let mut witness = witness();
        let mut cosigned: Vec<(u64, Hash)> = Vec::new();
        for (fork, old, new, guess) in asks {
            let ledger = &ledgers[usize::from(fork)];
            let old = if guess { old } else { witness.known(ORIGIN).map_or(0, |known| known.size) };
            if ledger.ask(&mut witness, old, new).is_ok() {
                cosigned.push((new, ledger.roots[usize::try_from(new).unwrap()]));
            }
        }
        prop_assert!(cosigned.is_sorted_by_key(|(size, _)| *size));
        let on = |ledger: &Ledger| {
            cosigned.iter().all(|(size, root)| ledger.roots[usize::try_from(*size).unwrap()] == *root)
        };
        prop_assert!(on(&ledgers[0]) || on(&ledgers[1]));
    }

    #[test]
    fn any_state_or_request_is_read_without_panic(
        text in "[a-z0-9 =\n]{0,100}", bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = Witness::with_state(witness_key(), &format!("PROCTOR-WITNESS-STATE-1\n{text}"));
        let _ = CosignRequest::parse(&bytes);
        if let Ok(request) = CosignRequest::parse(format!("old {text}").as_bytes()) {
            prop_assert_eq!(request.to_string(), format!("old {text}"));
        }
    }
}
