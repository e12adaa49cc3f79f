//! For tests: ledgers in memory, a store that fails on command, and an attacker who can rewrite everything in a bundle but has no keys.

mod forge;
mod mutate;
pub mod store;

use proctor_core::decision::Effect;
use proctor_core::digest::Digest;
use proctor_core::id::{RecordId, SessionId};
use proctor_core::random::{Randomness, SeededRandomness};
use proctor_core::record::{Envelope, RecordKind, body_digest};
use proctor_core::time::Timestamp;

use proctor_ledger::bundle::{BundleSource, SourceBody, SourceError};
use proctor_ledger::checkpoint::Checkpoint;
use proctor_ledger::keys::{Algorithm, SecretKey, Trust};
use proctor_ledger::merkle::{EMPTY_ROOT, Hash, leaf_hash, node_hash, root_at};
use proctor_ledger::note::Note;

pub use mutate::{mutate, mutate_with};

/// The moment at which test ledgers begin.
const START: i64 = 1_763_239_507_000_000;

/// A ledger in memory, the same for the same seed: decisions under changing policies, outcomes, `once` keys, erased
/// bodies and retractions.
#[derive(Debug)]
pub struct TestLedger {
    /// The ledger's key.
    pub log: SecretKey,
    /// The witnesses' keys.
    pub witnesses: Vec<SecretKey>,
    leaves: Vec<Vec<u8>>,
    envelopes: Vec<Envelope>,
    bodies: Vec<Option<([u8; 32], Vec<u8>)>>,
    /// For each erased body the record that says so.
    erased_by: Vec<Option<u64>>,
    levels: Vec<Vec<Hash>>,
    randomness: SeededRandomness,
    policy: Option<Digest>,
    session: SessionId,
}

impl TestLedger {
    /// A ledger without records, with one key and two witnesses.
    pub fn empty(seed: u64) -> Option<TestLedger> {
        let randomness = SeededRandomness::new(seed);
        let key = |name: &str, algorithm| {
            let mut bytes = [0; 32];
            randomness.fill(&mut bytes);
            SecretKey::from_seed(name, algorithm, &bytes).ok()
        };
        let log = key("example.com/ledger", Algorithm::Ed25519)?;
        let witnesses = vec![
            key("example.com/witness-a", Algorithm::CosignatureV1)?,
            key("example.com/witness-b", Algorithm::CosignatureV1)?,
        ];
        let session = SessionId::new(Timestamp::from_micros(START), &randomness);
        Some(TestLedger {
            log,
            witnesses,
            leaves: Vec::new(),
            envelopes: Vec::new(),
            bodies: Vec::new(),
            erased_by: Vec::new(),
            levels: vec![Vec::new()],
            randomness,
            policy: None,
            session,
        })
    }

    /// A ledger of this many records.
    pub fn new(seed: u64, records: u64) -> Option<TestLedger> {
        let mut ledger = TestLedger::empty(seed)?;
        while ledger.size() < records {
            ledger.grow()?;
        }
        Some(ledger)
    }

    /// A ledger of decisions alone, with leaves of about 500 bytes and bodies of about 600.
    pub fn of_decisions(seed: u64, records: u64) -> Option<TestLedger> {
        let mut ledger = TestLedger::empty(seed)?;
        ledger.add_policy()?;
        while ledger.size() < records {
            ledger.add_decision(600)?;
        }
        Some(ledger)
    }

    /// Number of records.
    pub fn size(&self) -> u64 {
        self.leaves.len() as u64
    }

    /// The envelope of a record.
    pub fn envelope(&self, seq: u64) -> Option<&Envelope> {
        self.envelopes.get(usize::try_from(seq).ok()?)
    }

    /// The sequences of a kind.
    pub fn of_kind(&self, kind: RecordKind) -> Vec<u64> {
        (0..).zip(&self.envelopes).filter(|(_, envelope)| envelope.kind == kind).map(|(seq, _)| seq).collect()
    }

    /// Trusted keys: the ledger and all its witnesses.
    pub fn trust(&self) -> Trust {
        Trust {
            logs: vec![self.log.verifier_key().clone()],
            witnesses: self.witnesses.iter().map(|key| key.verifier_key().clone()).collect(),
            approvers: Vec::new(),
            quorum: self.witnesses.len(),
        }
    }

    /// The signed checkpoint of the first `size` records, cosigned by the first `witnesses` witnesses.
    pub fn note(&self, size: u64, witnesses: usize) -> Option<String> {
        let root = if size == 0 { EMPTY_ROOT } else { root_at(size, &Levels(&self.levels)).ok()? };
        let mut note = Checkpoint::new(self.log.name(), size, root).sign(&self.log).ok()?;
        for witness in self.witnesses.iter().take(witnesses) {
            let line = note.cosign(witness, START.unsigned_abs() / 1_000_000 + size).ok()?;
            note.add(line).ok()?;
        }
        Some(note.to_string())
    }

    /// The ledger as it was at `size`, under a checkpoint that all witnesses cosigned.
    pub fn at(&self, size: u64) -> Option<TestView<'_>> {
        Some(TestView { ledger: self, size, note: self.note(size, self.witnesses.len())? })
    }

    /// Appends a record with this body; its digest is filled in.
    pub fn append(&mut self, mut envelope: Envelope, body: Option<Vec<u8>>) -> Option<u64> {
        let seq = self.size();
        let salted = body.map(|bytes| {
            let mut salt = [0; 32];
            self.randomness.fill(&mut salt);
            (salt, bytes)
        });
        envelope.body = salted.as_ref().map(|(salt, bytes)| body_digest(salt, bytes));
        let leaf = envelope.to_leaf().ok()?;
        self.add_hash(leaf_hash(&leaf));
        if envelope.kind == RecordKind::Erasure {
            for target in &envelope.links {
                *self.erased_by.get_mut(usize::try_from(*target).ok()?)? = Some(seq);
            }
        }
        self.leaves.push(leaf);
        self.envelopes.push(envelope);
        self.bodies.push(salted);
        self.erased_by.push(None);
        Some(seq)
    }

    /// An envelope of this kind, with identifier and time.
    pub fn draft(&self, kind: RecordKind) -> Envelope {
        let time = Timestamp::from_micros(START + i64::try_from(self.size()).unwrap_or(0) * 1000);
        let mut envelope = Envelope::new(RecordId::new(time, &self.randomness), time, kind);
        envelope.session = Some(self.session);
        envelope
    }

    /// Appends an erasure of this record's body.
    pub fn erase(&mut self, seq: u64) -> Option<u64> {
        let mut envelope = self.draft(RecordKind::Erasure);
        envelope.links = vec![seq];
        self.append(envelope, None)
    }

    /// Appends a retraction of this decision.
    pub fn retract(&mut self, seq: u64) -> Option<u64> {
        let mut envelope = self.draft(RecordKind::Retracted);
        envelope.links = vec![seq];
        self.append(envelope, None)
    }

    /// Appends a policy record; later decisions name it.
    pub fn add_policy(&mut self) -> Option<u64> {
        let body = format!("{{\"sources\":[\"policy {}\"]}}", self.size()).into_bytes();
        let digest = Digest::of(&body);
        let mut envelope = self.draft(RecordKind::Policy);
        envelope.policy = Some(digest);
        "loaded".clone_into(&mut envelope.code);
        self.policy = Some(digest);
        self.append(envelope, Some(body))
    }

    /// Appends a decision with a body of this length.
    pub fn add_decision(&mut self, body: usize) -> Option<u64> {
        let mut envelope = self.draft(RecordKind::Decision);
        envelope.policy = self.policy;
        envelope.action = Some(Digest::of(&self.size().to_be_bytes()));
        envelope.decision = Some(if self.below(4) == 0 { Effect::Deny } else { Effect::Allow });
        for (field, text) in [
            (&mut envelope.principal, "token:build-agent"),
            (&mut envelope.agent, "coder"),
            (&mut envelope.door, "ahp"),
            (&mut envelope.tool, "shell"),
            (&mut envelope.rule, "no-recursive-delete"),
        ] {
            text.clone_into(field);
        }
        if self.below(10) == 0 {
            "a \"quoted\" name\n".clone_into(&mut envelope.name);
        }
        let mut bytes = vec![0; body];
        self.randomness.fill(&mut bytes);
        for byte in &mut bytes {
            *byte = b' ' + *byte % 64;
        }
        self.append(envelope, Some(bytes))
    }

    /// Appends random records.
    fn grow(&mut self) -> Option<u64> {
        if self.policy.is_none() {
            return self.add_policy();
        }
        let target = self.below(self.size());
        let known = usize::try_from(target).ok()?;
        let kind = self.envelopes.get(known)?.kind;
        match self.below(20) {
            0 => self.add_policy(),
            1 | 2 if self.bodies.get(known)?.is_some() && self.erased_by.get(known)?.is_none() => {
                self.erase(target)
            }
            3 if kind == RecordKind::Decision => self.retract(target),
            4..8 => {
                let mut envelope = self.draft(RecordKind::Outcome);
                envelope.links = vec![target];
                envelope.once = Some(format!("token:build-agent/outcome/{}", self.size()));
                let body = (self.below(2) == 0).then(|| vec![b'o'; known % 50]);
                self.append(envelope, body)
            }
            _ => {
                let body = self.below(300);
                self.add_decision(usize::try_from(body).unwrap_or(0))
            }
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.randomness.below(bound)
    }

    fn add_hash(&mut self, hash: Hash) {
        let mut carry = hash;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let Some(hashes) = self.levels.get_mut(level) else { return };
            hashes.push(carry);
            let [.., left, right] = hashes.as_slice() else { return };
            if hashes.len() % 2 == 1 {
                return;
            }
            carry = node_hash(left, right);
        }
    }
}

/// A test ledger as it was at one of its checkpoints.
#[derive(Debug)]
pub struct TestView<'a> {
    ledger: &'a TestLedger,
    size: u64,
    note: String,
}

impl TestView<'_> {
    /// The same under another note.
    #[must_use]
    pub fn under(mut self, note: String) -> Self {
        self.note = note;
        self
    }
}

impl BundleSource for TestView<'_> {
    fn checkpoint(&self) -> Result<String, SourceError> {
        Ok(self.note.clone())
    }

    fn leaves(&self, first: u64, limit: u64) -> Result<Vec<Vec<u8>>, SourceError> {
        let end = first.saturating_add(limit).min(self.size);
        let range = usize::try_from(first).ok().zip(usize::try_from(end).ok());
        Ok(range.and_then(|(first, end)| self.ledger.leaves.get(first..end)).unwrap_or_default().to_vec())
    }

    fn body(&self, seq: u64) -> Result<SourceBody, SourceError> {
        let missing = || SourceError(format!("there is no record {seq}"));
        let known = usize::try_from(seq).map_err(|_| missing())?;
        let body = self.ledger.bodies.get(known).ok_or_else(missing)?;
        let erased = self.ledger.erased_by.get(known).copied().flatten().is_some_and(|by| by < self.size);
        Ok(match body {
            Some(_) if erased => SourceBody::Erased,
            Some((salt, bytes)) => SourceBody::Present { salt: *salt, bytes: bytes.clone() },
            None => SourceBody::None,
        })
    }

    fn hash(&self, level: u32, index: u64) -> Result<Hash, SourceError> {
        proctor_ledger::merkle::HashReader::hash(&Levels(&self.ledger.levels), level, index)
    }
}

struct Levels<'a>(&'a [Vec<Hash>]);

impl proctor_ledger::merkle::HashReader for Levels<'_> {
    type Error = SourceError;

    fn hash(&self, level: u32, index: u64) -> Result<Hash, SourceError> {
        let hashes = usize::try_from(level).ok().and_then(|level| self.0.get(level));
        let hash = usize::try_from(index).ok().and_then(|index| hashes?.get(index));
        hash.copied().ok_or_else(|| SourceError(format!("there is no hash {level}/{index}")))
    }
}

/// The same note with another text or other lines: as an attacker would make it.
fn note_of(text: &str, lines: &[String]) -> Option<Note> {
    Note::parse(format!("{text}\n{}", lines.concat()).as_bytes()).ok()
}
