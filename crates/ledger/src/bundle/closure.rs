//! Closure of a partial bundle: the policy, erasure and retraction records that selected records depend on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proctor_core::digest::Digest;
use proctor_core::record::{LeafView, RecordKind};

use super::error::{ExportError, Problem};
use super::rules::loads_policy;
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
    while let Some(seq) = waiting.pop() {
        if seq >= size {
            return Err(ExportError::NoRecord { seq, size });
        }
        if !included.insert(seq) {
            continue;
        }
        let leaf = leaf_of(source, seq, size)?;
        let record = parse_leaf(seq, &leaf)?;
        if let Some(digest) = record.policy.filter(|_| record.kind == RecordKind::Decision) {
            match related.policy_before(&digest, seq) {
                Some(policy) => waiting.push(policy),
                None => {
                    without_policy.insert(seq);
                }
            }
        }
        if record.body.is_some() && source.body(seq)? == SourceBody::Erased {
            waiting.push(*related.erasures.get(&seq).ok_or(ExportError::NotErased { seq })?);
        }
        waiting.extend(related.retractions.get(&seq).into_iter().flatten());
    }
    Ok(Closure { seqs: included.into_iter().collect(), without_policy: without_policy.into_iter().collect() })
}

pub(super) fn parse_leaf(seq: u64, leaf: &[u8]) -> Result<LeafView<'_>, ExportError> {
    LeafView::parse(leaf)
        .map_err(|error| ExportError::Damaged { seq, problem: Box::new(Problem::Leaf(error)) })
}

/// The records of a ledger that other records may need.
#[derive(Default)]
struct Related {
    /// Records that hold the sources of each policy, in order.
    policies: HashMap<Digest, Vec<u64>>,
    /// Erasure record of each record whose body was erased.
    erasures: BTreeMap<u64, u64>,
    /// Retractions of each retracted record.
    retractions: BTreeMap<u64, Vec<u64>>,
}

impl Related {
    fn read(source: &dyn BundleSource, size: u64) -> Result<Related, ExportError> {
        let mut related = Related::default();
        let mut from = Some(0);
        while let Some(first) = from {
            let kinds = [RecordKind::Policy, RecordKind::Erasure, RecordKind::Retracted];
            let found = source.of_kinds(&kinds, first)?;
            for (seq, leaf) in found.records.iter().filter(|(seq, _)| *seq < size) {
                related.take(*seq, &parse_leaf(*seq, leaf)?);
            }
            // A source that does not go forward would be asked for ever.
            from = found.next.filter(|next| *next > first && *next < size);
        }
        Ok(related)
    }

    fn take(&mut self, seq: u64, record: &LeafView<'_>) {
        match record.kind {
            RecordKind::Policy if loads_policy(record) => {
                if let Some(digest) = record.policy {
                    self.policies.entry(digest).or_default().push(seq);
                }
            }
            RecordKind::Erasure => record.links().for_each(|target| {
                self.erasures.entry(target).or_insert(seq);
            }),
            RecordKind::Retracted => record.links().for_each(|target| {
                self.retractions.entry(target).or_default().push(seq);
            }),
            _ => {}
        }
    }

    /// The last record before `seq` that holds the sources of this policy.
    fn policy_before(&self, digest: &Digest, seq: u64) -> Option<u64> {
        let loads = self.policies.get(digest)?;
        let before = loads.partition_point(|load| *load < seq);
        loads.get(before.checked_sub(1)?).copied()
    }
}
