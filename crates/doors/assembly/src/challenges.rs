//! Challenge nonces: bound to one agent and one key, valid for one attempt within 30 seconds.

use std::collections::{BTreeSet, HashMap};

use proctor_core::time::Timestamp;

/// Lifetime of a nonce.
pub(super) const LIFE_MICROS: i64 = 30_000_000;

/// Outstanding nonces; beyond it the oldest one is dropped.
const MAX_NONCES: usize = 65_536;

pub(super) type Nonce = [u8; 32];

#[derive(Debug, Default)]
pub(super) struct Challenges {
    open: HashMap<Nonce, Challenge>,
    by_expiry: BTreeSet<(Timestamp, Nonce)>,
}

#[derive(Debug)]
struct Challenge {
    expires: Timestamp,
    agent_id: String,
    public_key: String,
}

impl Challenges {
    /// Stores a fresh nonce. Returns its expiry.
    pub(super) fn open(
        &mut self,
        nonce: Nonce,
        agent_id: &str,
        public_key: &str,
        now: Timestamp,
    ) -> Timestamp {
        self.evict(now);
        let expires = now.plus_micros(LIFE_MICROS);
        let challenge =
            Challenge { expires, agent_id: agent_id.to_owned(), public_key: public_key.to_owned() };
        self.open.insert(nonce, challenge);
        self.by_expiry.insert((expires, nonce));
        expires
    }

    /// Consumes a nonce, even if the attempt fails. Returns whether it was issued to this agent and key and has not expired.
    pub(super) fn consume(&mut self, nonce: &[u8], agent_id: &str, public_key: &str, now: Timestamp) -> bool {
        let Ok(nonce) = Nonce::try_from(nonce) else { return false };
        let Some(challenge) = self.open.remove(&nonce) else { return false };
        self.by_expiry.remove(&(challenge.expires, nonce));
        now < challenge.expires && challenge.agent_id == agent_id && challenge.public_key == public_key
    }

    fn evict(&mut self, now: Timestamp) {
        while let Some((expires, nonce)) = self.by_expiry.first().copied() {
            if expires > now && self.open.len() < MAX_NONCES {
                return;
            }
            self.by_expiry.pop_first();
            self.open.remove(&nonce);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_nonce_is_good_once_for_one_agent_and_half_a_minute() {
        let mut challenges = Challenges::default();
        let open = |challenges: &mut Challenges, byte: u8| {
            challenges.open([byte; 32], "did", "key", at(0));
            [byte; 32]
        };
        let nonce = open(&mut challenges, 1);
        assert!(challenges.consume(&nonce, "did", "key", at(29)));
        assert!(!challenges.consume(&nonce, "did", "key", at(29)), "used up");
        let nonce = open(&mut challenges, 2);
        assert!(!challenges.consume(&nonce, "did", "key", at(30)), "expired");
        let nonce = open(&mut challenges, 3);
        assert!(!challenges.consume(&nonce, "other", "key", at(1)), "another agent");
        assert!(!challenges.consume(&nonce, "did", "key", at(1)), "consumed by the wrong one");
        assert!(!challenges.consume(&[1; 31], "did", "key", at(1)));
        assert!(challenges.open.is_empty() && challenges.by_expiry.is_empty());
    }

    #[test]
    fn there_are_never_too_many() {
        let mut challenges = Challenges::default();
        for number in 0..=u32::try_from(MAX_NONCES).unwrap() {
            let mut nonce = [0; 32];
            nonce[..4].copy_from_slice(&number.to_be_bytes());
            challenges.open(nonce, "did", "key", at(0));
        }
        assert!(challenges.open.len() <= MAX_NONCES && challenges.by_expiry.len() <= MAX_NONCES);
    }
}
