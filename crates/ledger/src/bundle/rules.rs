//! Consistency rules among the records of a bundle, besides hashes and signatures. Export and verification share them.

use std::collections::{BTreeMap, HashSet};

use proctor_core::digest::Digest;
use proctor_core::record::{LeafView, RecordKind};

use super::error::Problem;

/// The code of a policy record that names the policy that stayed in force, and holds no sources.
const REFUSED: &str = "refused";

/// Whether this is the record of a policy that came into force, which holds its sources.
pub(super) fn loads_policy(record: &LeafView<'_>) -> bool {
    record.kind == RecordKind::Policy && record.code != REFUSED && record.body.is_some()
}

/// The rules' state over the records of one bundle, in order.
///
/// Memory: sixteen bytes a record, in a part its sequence too, and a map entry for each erased body.
#[derive(Debug)]
pub(super) struct Rules {
    ids: HashSet<[u8; 16]>,
    once: HashSet<[u8; 16]>,
    /// The sequences so far, which need not be written down if there are no holes.
    included: Option<Vec<u64>>,
    /// Bodies that are missing, and whether a record that says so has come.
    missing: BTreeMap<u64, bool>,
    policies: HashSet<Digest>,
    kinds: [u64; RecordKind::ALL.len()],
    retracted: Vec<u64>,
    without_policy: u64,
}

impl Rules {
    pub(super) fn new(whole: bool) -> Rules {
        Rules {
            ids: HashSet::new(),
            once: HashSet::new(),
            included: (!whole).then(Vec::new),
            missing: BTreeMap::new(),
            policies: HashSet::new(),
            kinds: [0; RecordKind::ALL.len()],
            retracted: Vec::new(),
            without_policy: 0,
        }
    }

    /// Checks the next record.
    pub(super) fn take(&mut self, seq: u64, record: &LeafView<'_>, has_body: bool) -> Result<(), Problem> {
        if let Some(link) = record.links().find(|link| *link >= seq) {
            return Err(Problem::LinkForward { link });
        }
        if !self.ids.insert(*record.id.as_bytes()) {
            return Err(Problem::IdTwice);
        }
        if record.once.as_ref().is_some_and(|key| !self.once.insert(key_digest(key))) {
            return Err(Problem::OnceTwice);
        }
        match (record.body.is_some(), has_body) {
            (false, true) => return Err(Problem::BodyUnexpected),
            (true, false) => {
                self.missing.insert(seq, false);
            }
            _ => {}
        }
        match record.kind {
            RecordKind::Erasure => self.take_erasure(record)?,
            RecordKind::Retracted => self.retracted.extend(record.links()),
            RecordKind::Policy if loads_policy(record) => self.policies.extend(record.policy),
            RecordKind::Decision if record.policy.is_some_and(|digest| !self.policies.contains(&digest)) => {
                self.without_policy += 1;
            }
            _ => {}
        }
        let index = RecordKind::ALL.iter().position(|kind| *kind == record.kind);
        if let Some(count) = index.and_then(|index| self.kinds.get_mut(index)) {
            *count += 1;
        }
        if let Some(included) = &mut self.included {
            included.push(seq);
        }
        Ok(())
    }

    /// The sequence of a body that is missing without a record that says so.
    pub(super) fn unexplained(&self) -> Option<u64> {
        self.missing.iter().find(|(_, explained)| !**explained).map(|(seq, _)| *seq)
    }

    /// Number of erased bodies.
    pub(super) fn erased(&self) -> u64 {
        self.missing.len() as u64
    }

    /// Number of decisions that name a policy whose sources no earlier record of the bundle holds.
    pub(super) const fn without_policy(&self) -> u64 {
        self.without_policy
    }

    /// Number of records of each kind that occurs.
    pub(super) fn kinds(&self) -> BTreeMap<RecordKind, u64> {
        RecordKind::ALL.into_iter().zip(self.kinds).filter(|(_, count)| *count > 0).collect()
    }

    /// The records that were retracted, in order.
    pub(super) fn into_retracted(mut self) -> Vec<u64> {
        self.retracted.sort_unstable();
        self.retracted.dedup();
        self.retracted
    }

    fn take_erasure(&mut self, record: &LeafView<'_>) -> Result<(), Problem> {
        for target in record.links() {
            if let Some(explained) = self.missing.get_mut(&target) {
                *explained = true;
            } else if self.includes(target) {
                return Err(Problem::NotErased { target });
            }
        }
        Ok(())
    }

    /// Whether an earlier record is in the bundle.
    fn includes(&self, seq: u64) -> bool {
        self.included.as_ref().is_none_or(|included| included.binary_search(&seq).is_ok())
    }
}

/// Half of a key's SHA-256: enough that two keys are not confused, at half the memory.
fn key_digest(key: &str) -> [u8; 16] {
    let digest = Digest::of(key.as_bytes());
    let (half, _) = digest.as_bytes().split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
    *half
}
