//! Bundles: export, verification, proof files, and what a forger without keys can do to them.

mod leaves;
mod ledger_source;
mod mutations;
mod proofs;
mod refusals;
mod roundtrip;
mod speed;

use proctor_ledger::bundle::{Check, verify, verify_consistency_proof, verify_proof};

/// Reads `data` as a bundle and as proof files, without trusted keys: it must end without a panic and within the limits of the frames.
fn read_untrusted(data: &[u8]) {
    let mut input = data;
    // The result says nothing here: random bytes may even be a bundle.
    let _ = verify(&mut input, &Check::default(), &mut |_| Ok(()), &mut |_, _| ());
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = verify_proof(text, None);
        let _ = verify_consistency_proof(text, None);
    }
}
