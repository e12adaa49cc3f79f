//! Proof files: about one record, and about two checkpoints.

use proctor_ledger::bundle::{
    ExportError, ProofFileError, Signer, prove, prove_consistency, verify_consistency_proof, verify_proof,
};
use proctor_ledger::checkpoint::Checkpoint;
use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::merkle::EMPTY_ROOT;
use proctor_test_forges::TestLedger;

#[test]
fn every_record_of_every_small_ledger_is_proven() {
    let ledger = TestLedger::new(4, 20).unwrap();
    let trust = ledger.trust();
    for size in 1..=20 {
        let source = ledger.at(size).unwrap();
        for seq in 0..size {
            let text = prove(&source, seq).unwrap();
            let proven = verify_proof(&text, Some(&trust)).unwrap();
            assert_eq!(proven.seq, seq);
            assert_eq!(Some(&proven.envelope), ledger.envelope(seq));
            assert_eq!(proven.checkpoint.size, size);
            assert!(matches!(proven.signer, Signer::Trusted { .. }));
        }
        assert!(matches!(prove(&source, size), Err(ExportError::NoRecord { .. })));
    }
}

#[test]
fn a_changed_proof_file_is_refused_wherever_it_is_changed() {
    let ledger = TestLedger::new(4, 20).unwrap();
    let trust = ledger.trust();
    let text = prove(&ledger.at(20).unwrap(), 7).unwrap();
    for at in 0..text.len() {
        for change in [b'A', b'1', b'\n'] {
            let mut bytes = text.clone().into_bytes();
            if bytes[at] == change {
                continue;
            }
            bytes[at] = change;
            if let Ok(changed) = String::from_utf8(bytes) {
                assert!(verify_proof(&changed, Some(&trust)).is_err(), "byte {at} changed to {change}");
            }
        }
        if let Some(cut) = text.get(..at) {
            assert!(verify_proof(cut, Some(&trust)).is_err(), "cut at {at}");
        }
    }
    assert!(verify_proof(&format!("{text}\n"), Some(&trust)).is_err());
    assert!(verify_proof(&text, Some(&TestLedger::new(5, 1).unwrap().trust())).is_err());
    assert!(matches!(verify_proof(&text, None).unwrap().signer, Signer::Unknown));
    assert!(matches!(verify_proof("hello", None), Err(ProofFileError::Form(_))));
}

#[test]
fn checkpoints_are_proven_to_continue_each_other() {
    let ledger = TestLedger::new(4, 20).unwrap();
    let trust = ledger.trust();
    let source = ledger.at(20).unwrap();
    for old in 0..=20 {
        for new in old..=20 {
            let notes = (ledger.note(old, 2).unwrap(), ledger.note(new, 2).unwrap());
            let text = prove_consistency(&source, &notes.0, &notes.1).unwrap();
            let proven = verify_consistency_proof(&text, Some(&trust)).unwrap();
            assert_eq!((proven.old.size, proven.new.size), (old, new));
            assert!(matches!(verify_consistency_proof(&text, None).unwrap().new_signer, Signer::Unknown));
        }
    }
    let backward = prove_consistency(&source, &ledger.note(9, 2).unwrap(), &ledger.note(8, 2).unwrap());
    assert!(backward.is_err());
}

#[test]
fn a_changed_consistency_file_is_refused() {
    let ledger = TestLedger::new(4, 20).unwrap();
    let trust = ledger.trust();
    let source = ledger.at(20).unwrap();
    let text = prove_consistency(&source, &ledger.note(7, 2).unwrap(), &ledger.note(20, 2).unwrap()).unwrap();
    for at in 0..text.len() {
        for change in [b'A', b'1', b'\n'] {
            let mut bytes = text.clone().into_bytes();
            if bytes[at] == change {
                continue;
            }
            bytes[at] = change;
            if let Ok(changed) = String::from_utf8(bytes) {
                assert!(verify_consistency_proof(&changed, Some(&trust)).is_err(), "byte {at} to {change}");
            }
        }
    }
    let stranger = SecretKey::from_seed("example.com/other", Algorithm::Ed25519, &[1; 32]).unwrap();
    let empty = Checkpoint::new("example.com/other", 0, EMPTY_ROOT).sign(&stranger).unwrap().to_string();
    let text = prove_consistency(&source, &empty, &ledger.note(20, 2).unwrap()).unwrap();
    assert!(matches!(verify_consistency_proof(&text, None), Err(ProofFileError::Origins { .. })));
    let fork = TestLedger::new(6, 20).unwrap();
    let forked = prove_consistency(&source, &fork.note(7, 2).unwrap(), &ledger.note(20, 2).unwrap());
    assert!(matches!(forked, Err(ExportError::Root)));
}
