//! Every change of a bundle without the keys is refused.
//!
//! `PROCTOR_FULL=1` runs 10,000 changes for each bundle instead of 500; `PROCTOR_SEED` repeats a run.

use std::collections::BTreeMap;

use proctor_core::random::SeededRandomness;
use proctor_ledger::bundle::{Check, Selection, closure, export, verify};
use proctor_test_forges::{TestLedger, mutate, mutate_with};

const SIZE: u64 = 120;

fn seed() -> u64 {
    let seed = std::env::var("PROCTOR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_251_115);
    println!("PROCTOR_SEED={seed}");
    seed
}

fn rounds() -> u64 {
    if std::env::var("PROCTOR_FULL").is_ok_and(|value| value == "1") { 10_000 } else { 500 }
}

fn write(ledger: &TestLedger, size: u64, selection: &Selection) -> Vec<u8> {
    let mut bytes = Vec::new();
    export(&ledger.at(size).unwrap(), selection, &mut bytes, &mut |_, _| ()).unwrap();
    bytes
}

/// Changes the bundle many times; every change must be refused.
fn attack(ledger: &TestLedger, bundle: &[u8]) {
    let randomness = SeededRandomness::new(seed());
    let trust = ledger.trust();
    let check = Check { trust: Some(&trust), at_least_size: Some(SIZE) };
    let accepts = |bytes: &[u8]| verify(&mut &*bytes, &check, &mut |_| Ok(()), &mut |_, _| ());
    accepts(bundle).unwrap();
    // The attacker has seen every checkpoint there ever was, with all, some and no cosignatures.
    let older: Vec<String> = (1..SIZE)
        .flat_map(|size| (0..3).map(move |witnesses| ledger.note(size, witnesses).unwrap()))
        .collect();
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let mut counted = 0;
    while counted < rounds() {
        let (changed, kind) = mutate_with(bundle, &older, &randomness);
        if changed == bundle {
            continue;
        }
        counted += 1;
        *kinds.entry(kind).or_default() += 1;
        if let Ok(report) = accepts(&changed) {
            panic!("change {counted} ({kind}) was accepted: {report:?}");
        }
    }
    println!("{counted} changes refused: {kinds:#?}");
    assert!(kinds.len() > 20, "too few kinds of changes: {kinds:?}");
}

#[test]
fn every_change_of_a_whole_bundle_is_refused() {
    let ledger = TestLedger::new(seed(), SIZE).unwrap();
    attack(&ledger, &write(&ledger, SIZE, &Selection::Whole));
}

#[test]
fn every_change_of_a_part_is_refused() {
    let ledger = TestLedger::new(seed() + 1, SIZE).unwrap();
    let wanted: Vec<u64> = (40..80).collect();
    let closed = closure(&ledger.at(SIZE).unwrap(), &wanted).unwrap();
    attack(&ledger, &write(&ledger, SIZE, &Selection::Part(closed.seqs)));
}

#[test]
fn an_older_genuine_bundle_is_refused_only_by_the_size_that_is_known() {
    let ledger = TestLedger::new(seed(), SIZE).unwrap();
    let older = write(&ledger, SIZE / 2, &Selection::Whole);
    let trust = ledger.trust();
    let run = |at_least_size| {
        let check = Check { trust: Some(&trust), at_least_size };
        verify(&mut older.as_slice(), &check, &mut |_| Ok(()), &mut |_, _| ())
    };
    assert!(run(None).is_ok());
    assert!(run(Some(SIZE / 2)).is_ok());
    assert!(run(Some(SIZE / 2 + 1)).is_err());
}

#[test]
fn without_trust_changed_bundles_never_panic() {
    let ledger = TestLedger::new(3, 30).unwrap();
    let bundle = write(&ledger, 30, &Selection::Whole);
    let randomness = SeededRandomness::new(seed());
    let mut changed = bundle.clone();
    for round in 0..rounds() {
        (changed, _) = mutate(if round % 8 == 0 { &bundle } else { &changed }, &randomness);
        super::read_untrusted(&changed);
        if changed.len() < 40 {
            changed.clone_from(&bundle);
        }
    }
}
