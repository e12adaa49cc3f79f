use super::*;
use crate::keys::Algorithm;
use crate::merkle::leaf_hash;
use proptest::prelude::*;

const ORIGIN: &str = "example.com/ledger";

fn log_key() -> SecretKey {
    SecretKey::from_seed(ORIGIN, Algorithm::Ed25519, &[1; 32]).unwrap()
}

fn witness_key(seed: u8) -> SecretKey {
    SecretKey::from_seed(&format!("w{seed}"), Algorithm::CosignatureV1, &[seed; 32]).unwrap()
}

fn checkpoint() -> Checkpoint {
    Checkpoint::new(ORIGIN, 42, leaf_hash(b"root"))
}

fn trust(witnesses: &[u8], quorum: usize) -> Trust {
    Trust {
        logs: vec![log_key().verifier_key().clone()],
        witnesses: witnesses.iter().map(|seed| witness_key(*seed).verifier_key().clone()).collect(),
        approvers: Vec::new(),
        quorum,
    }
}

fn cosigned(witnesses: &[u8]) -> Note {
    let mut note = checkpoint().sign(&log_key()).unwrap();
    for seed in witnesses {
        note.add(note.cosign(&witness_key(*seed), u64::from(*seed)).unwrap()).unwrap();
    }
    note
}

#[test]
fn a_checkpoint_is_three_lines() {
    assert_eq!(
        Checkpoint::new(ORIGIN, 0, EMPTY_ROOT).to_string(),
        "example.com/ledger\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
    );
}

#[test]
fn a_signed_checkpoint_verifies_and_reads_back() {
    let note = checkpoint().sign(&log_key()).unwrap();
    let read = Note::parse(note.to_string().as_bytes()).unwrap();
    assert_eq!(Checkpoint::verify(&read, log_key().verifier_key()), Ok(checkpoint()));
}

#[test]
fn extension_lines_are_kept_and_signed() {
    let extended = Checkpoint { extensions: vec!["a b".to_owned(), "c".to_owned()], ..checkpoint() };
    let note = extended.sign(&log_key()).unwrap();
    assert_eq!(Checkpoint::verify(&note, log_key().verifier_key()), Ok(extended));
    let without = Note::parse(note.to_string().replace("a b\n", "").as_bytes()).unwrap();
    assert!(Checkpoint::verify(&without, log_key().verifier_key()).is_err());
}

#[test]
fn malformed_checkpoints_are_refused() {
    let root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    for text in [
        String::new(),
        "\n".to_owned(),
        "o\n".to_owned(),
        "o\n1\n".to_owned(),
        format!("o\n1\n{root}"),
        format!("\n1\n{root}\n"),
        format!("o\n\n{root}\n"),
        format!("o\n01\n{root}\n"),
        format!("o\n00\n{root}\n"),
        format!("o\n+1\n{root}\n"),
        format!("o\n-1\n{root}\n"),
        format!("o\n 1\n{root}\n"),
        format!("o\n1 \n{root}\n"),
        format!("o\n1.0\n{root}\n"),
        format!("o\n18446744073709551616\n{root}\n"),
        format!("o\n4611686018427387905\n{root}\n"),
        format!("o\n1\n{root}\n\n"),
        format!("o\n1\n{root}\n\nextension\n"),
        format!("o\n1\n{root} \n"),
        "o\n1\nAAAA\n".to_owned(),
        format!("o\n1\n{}\n", root.replace("FU=", "FV=")),
        format!("o\n1\n{}\n", root.trim_end_matches('=')),
        "o\n0\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n".to_owned(),
    ] {
        assert!(text.parse::<Checkpoint>().is_err(), "{text:?}");
    }
    assert!(format!("o\n4611686018427387904\n{root}\n").parse::<Checkpoint>().is_ok());
}

#[test]
fn a_key_speaks_only_for_its_own_ledger() {
    let other = SecretKey::from_seed("other", Algorithm::Ed25519, &[2; 32]).unwrap();
    assert!(matches!(checkpoint().sign(&other), Err(CheckpointError::OriginMismatch { .. })));
    let mut note = Note::new(checkpoint().to_string()).unwrap();
    note.sign(&other).unwrap();
    assert_eq!(
        Checkpoint::verify(&note, other.verifier_key()).unwrap_err().to_string(),
        "the checkpoint is of ledger `example.com/ledger`, but the key is that of `other`; a key signs for its own ledger"
    );
}

#[test]
fn what_would_read_differently_is_not_signed() {
    let unsound = [
        Checkpoint { extensions: vec![String::new()], ..checkpoint() },
        Checkpoint { extensions: vec!["a\nb".to_owned()], ..checkpoint() },
        Checkpoint { size: 0, ..checkpoint() },
        Checkpoint { size: u64::MAX, ..checkpoint() },
    ];
    for checkpoint in unsound {
        assert!(matches!(checkpoint.sign(&log_key()), Err(CheckpointError::Form { .. })), "{checkpoint:?}");
    }
}

#[test]
fn trust_needs_the_log_and_the_quorum() {
    let verify = |note: &Note, trust: &Trust| Checkpoint::verify_trusted(note, trust);
    let trusted = verify(&cosigned(&[2, 3]), &trust(&[2, 3, 4], 2)).unwrap();
    assert_eq!(trusted.checkpoint, checkpoint());
    assert_eq!(trusted.log, *log_key().verifier_key());
    let times: Vec<(&str, u64)> = trusted.witnesses.iter().map(|(key, time)| (key.name(), *time)).collect();
    assert_eq!(times, [("w2", 2), ("w3", 3)]);

    assert_eq!(
        verify(&cosigned(&[2, 9]), &trust(&[2, 3, 4], 2)),
        Err(CheckpointError::QuorumMissed { needed: 2, found: 1 })
    );
    assert!(verify(&cosigned(&[]), &trust(&[], 0)).is_ok());
    let no_logs = Trust { logs: Vec::new(), ..trust(&[], 0) };
    assert!(matches!(verify(&cosigned(&[]), &no_logs), Err(CheckpointError::UnknownLog { .. })));
    let mut unsigned = Note::new(checkpoint().to_string()).unwrap();
    unsigned.add(unsigned.cosign(&witness_key(2), 2).unwrap()).unwrap();
    assert!(matches!(
        verify(&unsigned, &trust(&[2], 1)),
        Err(CheckpointError::Note(NoteError::NotSigned { .. }))
    ));
}

#[test]
fn the_same_witness_twice_counts_once() {
    let note = cosigned(&[2]);
    let again = note.cosign(&witness_key(2), 77).unwrap();
    let twice = Note::parse(format!("{note}{again}").as_bytes()).unwrap();
    assert_eq!(
        Checkpoint::verify_trusted(&twice, &trust(&[2, 3], 2)),
        Err(CheckpointError::QuorumMissed { needed: 2, found: 1 })
    );
}

#[test]
fn a_wrong_cosignature_in_a_trusted_name_refuses_the_note() {
    let other = Checkpoint { size: 43, ..checkpoint() }.sign(&log_key()).unwrap();
    let foreign = other.cosign(&witness_key(3), 3).unwrap();
    let mut note = cosigned(&[2]);
    note.add(foreign).unwrap();
    assert!(matches!(
        Checkpoint::verify_trusted(&note, &trust(&[2, 3], 1)),
        Err(CheckpointError::Note(NoteError::BadSignature { .. }))
    ));
}

#[test]
fn a_replaced_log_key_is_accepted_while_both_are_trusted() {
    let next = SecretKey::from_seed(ORIGIN, Algorithm::Ed25519, &[77; 32]).unwrap();
    let both = Trust {
        logs: vec![log_key().verifier_key().clone(), next.verifier_key().clone()],
        ..Trust::default()
    };
    for key in [log_key(), next] {
        let note = checkpoint().sign(&key).unwrap();
        assert_eq!(Checkpoint::verify_trusted(&note, &both).unwrap().log, *key.verifier_key());
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic_and_prints_back(
        text in "([a-z ]{0,5}\n)?[0-9]{0,3}\n?([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=\n)?[A-Za-z0-9=\n]{0,9}\n?",
    ) {
        if let Ok(checkpoint) = text.parse::<Checkpoint>() {
            prop_assert_eq!(checkpoint.to_string(), text);
        }
    }

    #[test]
    fn checkpoints_read_back(
        origin in "[a-z ./]{1,20}", size in 1..=MAX_TREE_SIZE, root in any::<Hash>(),
        extensions in prop::collection::vec("[ -~]{1,20}", 0..3),
    ) {
        let checkpoint = Checkpoint { origin, size, root, extensions };
        prop_assert_eq!(checkpoint.to_string().parse::<Checkpoint>().unwrap(), checkpoint);
    }
}
