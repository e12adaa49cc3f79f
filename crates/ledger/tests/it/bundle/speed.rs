//! Speed of verifying a whole bundle. With `PROCTOR_FULL=1` in release it is measured on 200,000 records.

use std::time::{Duration, Instant};

use proctor_core::digest::Digest;
use proctor_core::record::Envelope;
use proctor_ledger::bundle::{BundleSource, Check, Selection, export, verify};
use proctor_ledger::merkle::{RightEdge, leaf_hash};
use proctor_test_forges::TestLedger;

/// The processor time of this thread where the system tells it: other programs on the machine do not count.
fn thread_time(since: Instant) -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|field| field.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn timed<T>(what: &str, records: u64, work: impl FnOnce() -> T) -> (T, f64) {
    let wall = Instant::now();
    let start = thread_time(wall);
    let result = work();
    let spent = thread_time(wall).saturating_sub(start).as_secs_f64().max(1e-9);
    let each = spent * 1e9 / records as f64;
    println!(
        "{what}: {each:.0} ns a record, {:.0} records/s (wall {:?})",
        records as f64 / spent,
        wall.elapsed()
    );
    (result, each)
}

#[test]
fn a_whole_bundle_is_verified_fast() {
    let full = std::env::var("PROCTOR_FULL").is_ok_and(|value| value == "1");
    let records = if full { 200_000 } else { 2_000 };
    let ledger = TestLedger::of_decisions(1, records).unwrap();
    let source = ledger.at(records).unwrap();
    let mut bundle = Vec::new();
    timed("export", records, || export(&source, &Selection::Whole, &mut bundle, &mut |_, _| ()).unwrap());
    println!("{} bytes a record", bundle.len() as u64 / records);
    let trust = ledger.trust();
    let check = Check { trust: Some(&trust), at_least_size: Some(records) };
    for _ in 0..3 {
        let run = || verify(&mut bundle.as_slice(), &check, &mut |_| Ok(()), &mut |_, _| ()).unwrap();
        let (report, _) = timed("verify", records, run);
        assert_eq!(report.records, records);
    }
    let mut decode = |visited: &proctor_ledger::bundle::Visited<'_>| Ok(visited.envelope().map(drop)?);
    timed("verify, decoding every envelope", records, || {
        verify(&mut bundle.as_slice(), &check, &mut decode, &mut |_, _| ()).unwrap()
    });
    let leaves = source.leaves(0, records).unwrap();
    timed("  leaf hashes", records, || {
        leaves.iter().fold(0, |sum, leaf| sum + u64::from(leaf_hash(leaf)[0]))
    });
    let hashes: Vec<_> = leaves.iter().map(|leaf| leaf_hash(leaf)).collect();
    timed("  tree", records, || {
        let mut edge = RightEdge::new();
        edge.extend(hashes.iter().copied());
        edge.root()
    });
    let body = vec![7; 632];
    timed("  body digests", records, || {
        (0..records).fold(0, |sum, _| sum + u64::from(Digest::of(&body).as_bytes()[0]))
    });
    timed("  Envelope::from_leaf, not part of verify", records, || {
        leaves.iter().filter(|leaf| Envelope::from_leaf(leaf).is_ok()).count()
    });
    let part = Selection::Part((0..records.min(20_000)).collect());
    let mut bytes = Vec::new();
    let report = export(&source, &part, &mut bytes, &mut |_, _| ()).unwrap();
    timed("verify a part", report.records, || {
        verify(&mut bytes.as_slice(), &check, &mut |_| Ok(()), &mut |_, _| ()).unwrap()
    });
}
