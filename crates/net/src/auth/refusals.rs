//! Refused credentials, told to whoever records them: bounded for each peer and in all, with nothing left out of the count.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::listen::ConnectionInfo;

/// Time in which one peer's further refusals are counted and not told.
pub const QUIET: Duration = Duration::from_secs(60);

/// Peers that are told apart at a time; all others are counted as one.
const MAX_PEERS: usize = 64;

/// Refusals of one peer since the last that was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The peer: `uid:N` within this machine, or an address. None stands for those that are not told apart.
    pub peer: Option<String>,
    /// The reason of the last one.
    pub reason: &'static str,
    /// Their number.
    pub count: u64,
}

/// Observer of refusals.
type Tell = Box<dyn Fn(Refusal) + Send + Sync>;

/// Refusals of a server's callers. The first of a peer is told at once; what follows within a minute is told as one.
pub struct Refusals {
    tell: Tell,
    peers: Mutex<BTreeMap<Option<Key>, Untold>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Uid(u32),
    Address(IpAddr),
    /// The other end of a Unix socket, or a caller that a door knows.
    Name(String),
}

#[derive(Debug)]
struct Untold {
    told: Instant,
    reason: &'static str,
    count: u64,
}

impl Refusals {
    /// Tells `tell` of refusals; it must not block.
    pub fn new(tell: impl Fn(Refusal) + Send + Sync + 'static) -> Refusals {
        Refusals { tell: Box::new(tell), peers: Mutex::default() }
    }

    /// Notes a refusal.
    pub fn note(&self, connection: Option<&ConnectionInfo>, reason: &'static str) {
        let address = connection.map(|it| it.peer_addr.ip().to_canonical());
        let uid = connection.filter(|_| address.is_some_and(|it| it.is_loopback()));
        let key = match uid.and_then(ConnectionInfo::user) {
            Some(uid) => Some(Key::Uid(uid)),
            None => address.map(Key::Address),
        };
        self.note_at(key, reason, Instant::now());
    }

    /// Notes a refusal of a caller that is known by a name.
    pub fn note_named(&self, name: &str, reason: &'static str) {
        self.note_at(Some(Key::Name(name.to_owned())), reason, Instant::now());
    }

    /// Tells what has waited for long enough; everything if `all`.
    pub fn tell_waiting(&self, all: bool) {
        self.tell_waiting_at(all, Instant::now());
    }

    fn note_at(&self, key: Option<Key>, reason: &'static str, now: Instant) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !peers.contains_key(&key);
        if is_new && peers.len() >= MAX_PEERS - 1 {
            // Those that were told and have been quiet since make room.
            peers.retain(|_, it| it.count > 0 || now.saturating_duration_since(it.told) < QUIET);
        }
        // One place is kept for the rest.
        let key = if is_new && peers.len() >= MAX_PEERS - 1 { None } else { key };
        let refusal = match peers.get_mut(&key) {
            Some(untold) => {
                untold.reason = reason;
                untold.count += 1;
                if now.saturating_duration_since(untold.told) < QUIET {
                    return;
                }
                untold.take(key.as_ref(), now)
            }
            None => {
                let mut untold = Untold { told: now, reason, count: 1 };
                let refusal = untold.take(key.as_ref(), now);
                peers.insert(key, untold);
                refusal
            }
        };
        drop(peers);
        (self.tell)(refusal);
    }

    fn tell_waiting_at(&self, all: bool, now: Instant) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |it: &Untold| all || now.saturating_duration_since(it.told) >= QUIET;
        let due = peers.iter_mut().filter(|(_, it)| it.count > 0 && is_due(it));
        let refusals: Vec<Refusal> = due.map(|(key, it)| it.take(key.as_ref(), now)).collect();
        peers.retain(|_, it| now.saturating_duration_since(it.told) < QUIET);
        drop(peers);
        for refusal in refusals {
            (self.tell)(refusal);
        }
    }
}

impl Untold {
    fn take(&mut self, key: Option<&Key>, now: Instant) -> Refusal {
        self.told = now;
        let peer = key.map(|key| match key {
            Key::Uid(uid) => format!("uid:{uid}"),
            Key::Address(address) => address.to_string(),
            Key::Name(name) => name.clone(),
        });
        Refusal { peer, reason: self.reason, count: std::mem::take(&mut self.count) }
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Refusals").field("peers", &self.peers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;
    use std::sync::{Arc, Mutex};

    use super::*;

    fn refusals() -> (Refusals, Arc<Mutex<Vec<Refusal>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        (Refusals::new(move |refusal| heard.lock().unwrap().push(refusal)), told)
    }

    #[test]
    fn refusals_of_one_peer_are_told_once_a_minute_with_their_number() {
        let (refusals, told) = refusals();
        let start = Instant::now();
        for _ in 0..1000 {
            refusals.note_at(Some(Key::Uid(7)), "no", start);
        }
        refusals.note_at(Some(Key::Uid(8)), "no", start);
        refusals.tell_waiting_at(false, start + QUIET / 2);
        refusals.tell_waiting_at(false, start + QUIET);
        refusals.note_at(Some(Key::Uid(7)), "still no", start + QUIET);
        refusals.tell_waiting_at(true, start + QUIET);
        let counts: Vec<(Option<String>, u64)> =
            told.lock().unwrap().iter().map(|it| (it.peer.clone(), it.count)).collect();
        let peer = |uid: u32| Some(format!("uid:{uid}"));
        // Of 1,002, none is missing.
        assert_eq!(counts, [(peer(7), 1), (peer(8), 1), (peer(7), 999), (peer(7), 1)]);
    }

    #[test]
    fn any_number_of_peers_is_told_in_a_bounded_number_of_lines() {
        let (refusals, told) = refusals();
        let start = Instant::now();
        for peer in 0..10_000u16 {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, peer);
            refusals.note_at(Some(Key::Address(address.into())), "no", start);
        }
        refusals.tell_waiting_at(true, start);
        let told = told.lock().unwrap();
        assert!(told.len() <= MAX_PEERS + 1, "{}", told.len());
        assert_eq!(told.iter().map(|it| it.count).sum::<u64>(), 10_000);
        assert!(refusals.peers.lock().unwrap().len() <= MAX_PEERS);
    }
}
