//! Re-derivation of a bundle's decisions: every decision is evaluated again from its read-set and the recorded policy sources, and what it
//! was told of the past is compared with the fold of the records before it.

use std::collections::HashMap;
use std::sync::Arc;

use proctor_core::digest::Digest;
use proctor_core::record::{Envelope, LeafError, RecordKind};
use proctor_ledger::bundle::Visited;
use proctor_policy::body::{Derivation, policy_from_body, rederive};
use proctor_policy::policy::Policy;
use proctor_policy::state::State;

/// The most differences that are kept as text; all are counted.
const MAX_LISTED: usize = 20;

/// A running comparison of a bundle's decisions with their derivations.
#[derive(Default)]
pub struct Rederivation {
    /// The number of decisions that came out the same.
    pub same: u64,
    /// The first differences, as text.
    pub different: Vec<String>,
    /// The number of decisions that came out different.
    pub different_count: u64,
    /// The number of decisions that cannot be derived again.
    pub undecidable: u64,
    /// The first of those, as text.
    pub undecidable_example: Option<String>,
    policies: HashMap<Digest, Option<Arc<Policy>>>,
    /// The fold of all records so far, as long as none is missing.
    past: Option<State>,
    next: u64,
}

impl Rederivation {
    /// A derivation that begins with the first record of a ledger.
    pub fn new() -> Rederivation {
        Rederivation { past: Some(State::default()), ..Rederivation::default() }
    }

    /// Derives the next record of a bundle; to be called in the order of sequences.
    pub fn visit(&mut self, record: &Visited<'_>) -> Result<(), LeafError> {
        if record.seq != self.next {
            // In a part records are missing, so what decisions were told of the past cannot be checked.
            self.past = None;
        }
        self.next = record.seq + 1;
        if self.past.is_none() && !matches!(record.kind, RecordKind::Policy | RecordKind::Decision) {
            return Ok(());
        }
        let envelope = record.envelope()?;
        if envelope.kind == RecordKind::Decision {
            self.derive(record, &envelope);
        }
        if let Some(past) = &mut self.past {
            past.apply(record.seq, &envelope);
        }
        if envelope.kind != RecordKind::Policy {
            return Ok(());
        }
        if let (Some(digest), Some(body)) = (envelope.policy, record.body)
            && envelope.code.starts_with("loaded")
        {
            // Sources that do not give the digest they are recorded under are not that policy.
            let policy = policy_from_body(body).ok().filter(|policy| policy.digest() == digest).map(Arc::new);
            self.policies.entry(digest).or_insert(policy);
        }
        Ok(())
    }

    fn derive(&mut self, record: &Visited<'_>, envelope: &Envelope) {
        let policies = &self.policies;
        let mut lookup = |digest: Digest| policies.get(&digest).cloned().flatten();
        match rederive(envelope, record.body, &mut lookup, self.past.as_ref()) {
            Derivation::Same => self.same += 1,
            Derivation::Different(what) => {
                self.different_count += 1;
                if self.different.len() < MAX_LISTED {
                    self.different.push(format!("record {}: {what}", record.seq));
                }
            }
            Derivation::Undecidable(what) => {
                self.undecidable += 1;
                self.undecidable_example.get_or_insert(format!("record {}: {what}", record.seq));
            }
        }
    }
}
