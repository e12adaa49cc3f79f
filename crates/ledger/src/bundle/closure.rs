//! What a part has to carry besides the records that were asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proctor_core::record::RecordKind;

use super::error::{ExportError, Problem};
use super::leaf::Facts;
use super::source::{BundleSource, SourceBody, checkpoint_of, leaf_of};

/// Records with everything that belongs to them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Closure {
    /// The sequences, in order.
    pub seqs: Vec<u64>,
    /// Decisions among them whose policy no earlier record of the ledger holds.
    pub without_policy: Vec<u64>,
}

/// Adds to these records the policies that decided them, the records that say that a body was erased, and those that
/// retract one of them; and what belongs to the added ones.
///
/// Only the records of the source's checkpoint are looked at: others could not be proven.
pub fn closure(source: &dyn BundleSource, seqs: &[u64]) -> Result<Closure, ExportError> {
    let (_, checkpoint) = checkpoint_of(source)?;
    let size = checkpoint.size;
    let related = Related::read(source, size)?;
    let mut included = BTreeSet::new();
    let mut without_policy = BTreeSet::new();
    let mut waiting: Vec<u64> = seqs.to_vec();
    let mut facts = Facts::new();
    while let Some(seq) = waiting.pop() {
        if seq >= size {
            return Err(ExportError::NoRecord { seq, size });
        }
        if !included.insert(seq) {
            continue;
        }
        read_facts(&mut facts, seq, &leaf_of(source, seq, size)?)?;
        if let Some(digest) = facts.policy.filter(|_| facts.kind == RecordKind::Decision) {
            match related.policy_before(&digest, seq) {
                Some(policy) => waiting.push(policy),
                None => {
                    without_policy.insert(seq);
                }
            }
        }
        if facts.body.is_some() && source.body(seq)? == SourceBody::Erased {
            waiting.push(*related.erasures.get(&seq).ok_or(ExportError::NotErased { seq })?);
        }
        waiting.extend(related.retractions.get(&seq).into_iter().flatten());
    }
    Ok(Closure { seqs: included.into_iter().collect(), without_policy: without_policy.into_iter().collect() })
}

pub(super) fn read_facts(facts: &mut Facts, seq: u64, leaf: &[u8]) -> Result<(), ExportError> {
    facts.read(leaf).map_err(|error| ExportError::Damaged { seq, problem: Box::new(Problem::Leaf(error)) })
}

/// The records of a ledger that other records may need.
#[derive(Default)]
struct Related {
    /// For each policy the records that hold its sources, in order.
    policies: HashMap<[u8; 32], Vec<u64>>,
    /// For each record whose body was erased the record that says so.
    erasures: BTreeMap<u64, u64>,
    /// For each retracted record those that retract it.
    retractions: BTreeMap<u64, Vec<u64>>,
}

impl Related {
    fn read(source: &dyn BundleSource, size: u64) -> Result<Related, ExportError> {
        let mut related = Related::default();
        let mut facts = Facts::new();
        let mut from = Some(0);
        while let Some(first) = from {
            let kinds = [RecordKind::Policy, RecordKind::Erasure, RecordKind::Retracted];
            let found = source.of_kinds(&kinds, first)?;
            for (seq, leaf) in found.records.iter().filter(|(seq, _)| *seq < size) {
                read_facts(&mut facts, *seq, leaf)?;
                related.take(*seq, &facts);
            }
            // A source that does not go forward would be asked for ever.
            from = found.next.filter(|next| *next > first && *next < size);
        }
        Ok(related)
    }

    fn take(&mut self, seq: u64, facts: &Facts) {
        match facts.kind {
            RecordKind::Policy if facts.loads_policy() => {
                if let Some(digest) = facts.policy {
                    self.policies.entry(digest).or_default().push(seq);
                }
            }
            RecordKind::Erasure => facts.links.iter().for_each(|target| {
                self.erasures.entry(*target).or_insert(seq);
            }),
            RecordKind::Retracted => facts.links.iter().for_each(|target| {
                self.retractions.entry(*target).or_default().push(seq);
            }),
            _ => {}
        }
    }

    /// The last record before `seq` that holds the sources of this policy.
    fn policy_before(&self, digest: &[u8; 32], seq: u64) -> Option<u64> {
        let loads = self.policies.get(digest)?;
        let before = loads.partition_point(|load| *load < seq);
        loads.get(before.checked_sub(1)?).copied()
    }
}
