//! What must hold among the records of a bundle, besides hashes and signatures. Export and verification share it.

use std::collections::{BTreeMap, HashSet};

use proctor_core::record::RecordKind;

use super::error::Problem;
use super::leaf::Facts;

/// Follows the records of one bundle in order.
///
/// It remembers sixteen bytes of each record, its sequence in a part, and a little of each erased body.
#[derive(Debug)]
pub(super) struct Rules {
    ids: HashSet<[u8; 16]>,
    once: HashSet<[u8; 16]>,
    /// The sequences so far, which need not be written down if there are no holes.
    included: Option<Vec<u64>>,
    /// Bodies that are missing, and whether a record that says so has come.
    missing: BTreeMap<u64, bool>,
    policies: HashSet<[u8; 32]>,
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

    /// Takes the next record.
    pub(super) fn take(&mut self, seq: u64, facts: &Facts, has_body: bool) -> Result<(), Problem> {
        if let Some(link) = facts.links.iter().find(|link| **link >= seq) {
            return Err(Problem::LinkForward { link: *link });
        }
        if !self.ids.insert(facts.id) {
            return Err(Problem::IdTwice);
        }
        if facts.once.is_some_and(|key| !self.once.insert(key)) {
            return Err(Problem::OnceTwice);
        }
        match (facts.body.is_some(), has_body) {
            (false, true) => return Err(Problem::BodyUnexpected),
            (true, false) => {
                self.missing.insert(seq, false);
            }
            _ => {}
        }
        match facts.kind {
            RecordKind::Erasure => self.take_erasure(facts)?,
            RecordKind::Retracted => self.retracted.extend_from_slice(&facts.links),
            RecordKind::Policy if facts.loads_policy() => self.policies.extend(facts.policy),
            RecordKind::Decision if facts.policy.is_some_and(|digest| !self.policies.contains(&digest)) => {
                self.without_policy += 1;
            }
            _ => {}
        }
        let place = RecordKind::ALL.iter().position(|kind| *kind == facts.kind);
        if let Some(count) = place.and_then(|place| self.kinds.get_mut(place)) {
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

    /// How many bodies were erased.
    pub(super) fn erased(&self) -> u64 {
        self.missing.len() as u64
    }

    /// How many decisions name a policy whose sources no earlier record of the bundle holds.
    pub(super) const fn without_policy(&self) -> u64 {
        self.without_policy
    }

    /// How many records there are of each kind that occurs.
    pub(super) fn kinds(&self) -> BTreeMap<RecordKind, u64> {
        RecordKind::ALL.into_iter().zip(self.kinds).filter(|(_, count)| *count > 0).collect()
    }

    /// The records that were retracted, in order.
    pub(super) fn into_retracted(mut self) -> Vec<u64> {
        self.retracted.sort_unstable();
        self.retracted.dedup();
        self.retracted
    }

    fn take_erasure(&mut self, facts: &Facts) -> Result<(), Problem> {
        for target in &facts.links {
            if let Some(explained) = self.missing.get_mut(target) {
                *explained = true;
            } else if self.includes(*target) {
                return Err(Problem::NotErased { target: *target });
            }
        }
        Ok(())
    }

    /// Whether an earlier record is in the bundle.
    fn includes(&self, seq: u64) -> bool {
        self.included.as_ref().is_none_or(|included| included.binary_search(&seq).is_ok())
    }
}
