//! Bundles that a ledger made are verified, and say what the ledger holds.

use std::io::{self, Read};

use proctor_core::record::RecordKind;
use proctor_ledger::bundle::{
    BundleError, BundleReport, BundleSource, Check, ErrorClass, ExportError, Problem, Selection, Signer,
    closure, export, verify,
};
use proctor_test_forges::TestLedger;

fn ledger() -> TestLedger {
    TestLedger::new(41, 300).unwrap()
}

fn write(source: &dyn BundleSource, selection: &Selection) -> Result<Vec<u8>, ExportError> {
    let mut bytes = Vec::new();
    let report = export(source, selection, &mut bytes, &mut |_, _| ())?;
    assert_eq!(report.bytes, bytes.len() as u64);
    Ok(bytes)
}

fn check(bundle: &[u8], check: &Check<'_>) -> Result<BundleReport, BundleError> {
    verify(&mut &*bundle, check, &mut |_| Ok(()), &mut |_, _| ())
}

#[test]
fn a_whole_bundle_is_verified_and_visited_in_order() {
    let ledger = ledger();
    let source = ledger.at(300).unwrap();
    let bundle = write(&source, &Selection::Whole).unwrap();
    let trust = ledger.trust();
    let mut expected = 0;
    let mut steps = Vec::new();
    let report = verify(
        &mut bundle.as_slice(),
        &Check { trust: Some(&trust), at_least_size: Some(300) },
        &mut |visited| {
            assert_eq!(visited.seq, expected);
            expected += 1;
            let envelope = visited.envelope().unwrap();
            assert_eq!(Some(&envelope), ledger.envelope(visited.seq));
            assert_eq!(visited.kind, envelope.kind);
            assert_eq!(visited.erased, envelope.body.is_some() && visited.body.is_none());
            Ok(())
        },
        &mut |done, total| steps.push((done, total)),
    )
    .unwrap();
    assert_eq!(steps.last(), Some(&(300, 300)));
    assert!(report.whole);
    assert_eq!((report.records, report.size, expected), (300, 300, 300));
    assert_eq!(report.origin, "example.com/ledger");
    assert_eq!(report.kinds.values().sum::<u64>(), 300);
    assert_eq!(report.erased, ledger.of_kind(RecordKind::Erasure).len() as u64);
    assert!(report.erased > 3 && report.bodies > 100);
    assert_eq!(report.without_policy, 0);
    let mut retracted: Vec<u64> = ledger
        .of_kind(RecordKind::Retracted)
        .into_iter()
        .flat_map(|seq| ledger.envelope(seq).unwrap().links.clone())
        .collect();
    retracted.sort_unstable();
    retracted.dedup();
    assert!(!retracted.is_empty());
    assert_eq!(report.retracted, retracted);
    let Signer::Trusted { log, witnesses } = report.signer else { panic!("the signer is known") };
    assert_eq!(&log, ledger.log.verifier_key());
    assert_eq!(witnesses.len(), 2);
}

#[test]
fn every_size_of_ledger_round_trips() {
    let ledger = TestLedger::new(9, 40).unwrap();
    for size in 0..=40 {
        let bundle = write(&ledger.at(size).unwrap(), &Selection::Whole).unwrap();
        let report = check(&bundle, &Check { trust: Some(&ledger.trust()), at_least_size: None }).unwrap();
        assert_eq!(report.records, size);
    }
}

#[test]
fn without_a_trust_file_the_signer_is_unknown_and_all_else_is_checked() {
    let ledger = ledger();
    let bundle = write(&ledger.at(300).unwrap(), &Selection::Whole).unwrap();
    assert_eq!(check(&bundle, &Check::default()).unwrap().signer, Signer::Unknown);
    let mut changed = bundle.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    assert_eq!(check(&changed, &Check::default()).unwrap_err().class(), ErrorClass::Tampered);
}

#[test]
fn a_part_carries_policies_erasures_and_retractions() {
    let ledger = ledger();
    let source = ledger.at(300).unwrap();
    let retraction = ledger.of_kind(RecordKind::Retracted)[0];
    let retracted = ledger.envelope(retraction).unwrap().links[0];
    let erasure = ledger.of_kind(RecordKind::Erasure)[0];
    let erased = ledger.envelope(erasure).unwrap().links[0];

    let closed = closure(&source, &[retracted, erased]).unwrap();
    assert!(closed.without_policy.is_empty());
    for seq in [retracted, retraction, erased, erasure] {
        assert!(closed.seqs.contains(&seq), "{seq}");
    }
    let digest = ledger.envelope(retracted).unwrap().policy;
    assert!(closed.seqs.iter().any(|seq| {
        let envelope = ledger.envelope(*seq).unwrap();
        *seq < retracted && envelope.kind == RecordKind::Policy && envelope.policy == digest
    }));

    let bundle = write(&source, &Selection::Part(closed.seqs.clone())).unwrap();
    let trust = ledger.trust();
    let mut seen = Vec::new();
    let report = verify(
        &mut bundle.as_slice(),
        &Check { trust: Some(&trust), at_least_size: Some(300) },
        &mut |visited| {
            seen.push(visited.seq);
            Ok(())
        },
        &mut |_, _| (),
    )
    .unwrap();
    assert!(!report.whole);
    assert_eq!(seen, closed.seqs);
    assert!(report.retracted.contains(&retracted));
    assert_eq!(report.without_policy, 0);
    assert!(report.erased >= 1);
}

#[test]
fn the_policy_of_a_closure_is_the_last_one_before_the_decision() {
    let mut ledger = TestLedger::empty(3).unwrap();
    ledger.add_policy().unwrap();
    let first = ledger.add_decision(10).unwrap();
    ledger.add_policy().unwrap();
    let second = ledger.add_decision(10).unwrap();
    // A policy that was refused names the one in force, but holds no sources of it.
    let mut refused = ledger.draft(RecordKind::Policy);
    refused.policy = ledger.envelope(second).unwrap().policy;
    "refused".clone_into(&mut refused.code);
    ledger.append(refused, Some(b"{\"problems\":[]}".to_vec())).unwrap();
    let third = ledger.add_decision(10).unwrap();
    // The first policy comes back after the decisions: it is another record of the same sources.
    let again = ledger.envelope(0).unwrap().clone();
    let mut reloaded = ledger.draft(RecordKind::Policy);
    (reloaded.policy, reloaded.code) = (again.policy, again.code);
    ledger.append(reloaded, Some(b"{}".to_vec())).unwrap();
    let source = ledger.at(ledger.size()).unwrap();
    assert_eq!(closure(&source, &[first]).unwrap().seqs, [0, 1]);
    assert_eq!(closure(&source, &[third]).unwrap().seqs, [2, 5]);
    assert_eq!(closure(&source, &[third, first, third]).unwrap().seqs, [0, 1, 2, 5]);
    assert!(matches!(closure(&source, &[7]), Err(ExportError::NoRecord { seq: 7, size: 7 })));
}

#[test]
fn a_decision_without_its_policy_is_counted() {
    let ledger = ledger();
    let source = ledger.at(300).unwrap();
    let decision = ledger.of_kind(RecordKind::Decision)[0];
    let bundle = write(&source, &Selection::Part(vec![decision]));
    let report = check(&bundle.unwrap(), &Check::default()).unwrap();
    assert_eq!(report.without_policy, 1);
}

#[test]
fn a_part_of_one_or_no_record_round_trips() {
    let ledger = ledger();
    let source = ledger.at(300).unwrap();
    for seqs in [vec![], vec![0], vec![299, 0, 0]] {
        let closed = closure(&source, &seqs).unwrap();
        let bundle = write(&source, &Selection::Part(closed.seqs.clone())).unwrap();
        let report = check(&bundle, &Check { trust: Some(&ledger.trust()), at_least_size: None }).unwrap();
        assert_eq!(report.records, closed.seqs.len() as u64);
    }
}

#[test]
fn export_refuses_what_verification_would_refuse() {
    let ledger = ledger();
    let source = ledger.at(300).unwrap();
    let erasure = ledger.of_kind(RecordKind::Erasure)[0];
    let erased = ledger.envelope(erasure).unwrap().links[0];
    let without = write(&source, &Selection::Part(vec![erased]));
    assert!(matches!(without, Err(ExportError::NotErased { seq }) if seq == erased));
    assert!(matches!(write(&source, &Selection::Part(vec![300])), Err(ExportError::NoRecord { .. })));
    let other = TestLedger::new(42, 300).unwrap();
    let forked = ledger.at(300).unwrap().under(other.note(300, 2).unwrap());
    assert!(matches!(write(&forked, &Selection::Whole), Err(ExportError::Root)));
    assert!(matches!(write(&forked, &Selection::Part(vec![0])), Err(ExportError::Root)));
}

#[test]
fn signature_lines_are_put_in_order() {
    let ledger = TestLedger::new(1, 5).unwrap();
    let note = ledger.note(5, 2).unwrap();
    let (text, lines) = note.split_once("\n\n").unwrap();
    let mut lines: Vec<&str> = lines.split_inclusive('\n').collect();
    lines.reverse();
    let shuffled = ledger.at(5).unwrap().under(format!("{text}\n\n{}", lines.concat()));
    let ordered = write(&ledger.at(5).unwrap(), &Selection::Whole).unwrap();
    assert_eq!(write(&shuffled, &Selection::Whole).unwrap(), ordered);
}

/// Gives one byte at a time, interrupts, and fails at the end if asked to.
struct Slow<'a> {
    bytes: &'a [u8],
    turn: u64,
    fail: bool,
}

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.bytes.split_first() {
            Some((byte, rest)) if !buffer.is_empty() => {
                buffer[0] = *byte;
                self.bytes = rest;
                Ok(1)
            }
            _ if self.fail => Err(io::Error::other("the disk is gone")),
            _ => Ok(0),
        }
    }
}

#[test]
fn input_may_come_in_any_portions_and_its_failure_is_not_tampering() {
    let ledger = TestLedger::new(2, 30).unwrap();
    let bundle = write(&ledger.at(30).unwrap(), &Selection::Whole).unwrap();
    let run = |bytes: &[u8], fail| {
        verify(&mut Slow { bytes, turn: 0, fail }, &Check::default(), &mut |_| Ok(()), &mut |_, _| ())
    };
    assert_eq!(run(&bundle, false).unwrap().records, 30);
    for cut in [0, 5, 17, 100, bundle.len() - 1, bundle.len()] {
        let error = run(&bundle[..cut], true).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Unreadable, "{error}");
        if cut < bundle.len() {
            let error = run(&bundle[..cut], false).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Tampered, "{error}");
        }
    }
}

#[test]
fn large_bodies_pass_and_too_large_ones_are_not_exported() {
    let mut ledger = TestLedger::empty(8).unwrap();
    for length in [0, 1, 300_000, 16 << 20, 7] {
        ledger.add_decision(length).unwrap();
    }
    let bundle = write(&ledger.at(5).unwrap(), &Selection::Whole).unwrap();
    let mut lengths = Vec::new();
    verify(
        &mut bundle.as_slice(),
        &Check::default(),
        &mut |visited| {
            lengths.push(visited.body.unwrap().len());
            Ok(())
        },
        &mut |_, _| (),
    )
    .unwrap();
    assert_eq!(lengths, [0, 1, 300_000, 16 << 20, 7]);
    ledger.add_decision((16 << 20) + 1).unwrap();
    let refused = write(&ledger.at(6).unwrap(), &Selection::Whole);
    assert!(matches!(refused, Err(ExportError::BodyTooLarge { seq: 5, .. })));
}

#[test]
fn a_visitor_can_refuse_a_record() {
    let ledger = ledger();
    let bundle = write(&ledger.at(300).unwrap(), &Selection::Whole).unwrap();
    let error = verify(
        &mut bundle.as_slice(),
        &Check::default(),
        &mut |visited| {
            if visited.seq == 7 { Err("the decision is not the policy's".into()) } else { Ok(()) }
        },
        &mut |_, _| (),
    )
    .unwrap_err();
    assert!(matches!(*error.problem, Problem::Visitor(_)));
    assert_eq!(error.position.seq, Some(7));
    assert!(error.to_string().ends_with("record 7: the decision is not the policy's"), "{error}");
}
