//! Key sets fetched by URL, kept while they are fresh.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_core::time::Timestamp;

use super::{Expected, JwtError, KeySet, Token, verify};
use crate::sources::{Fetch, FetchError};

/// Freshness of a key set whose server names none.
const DEFAULT_FRESHNESS: Duration = Duration::from_secs(5 * 60);

/// Longest freshness that a server can ask for: a revoked key must not live for a year.
pub const MAX_REFRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// Shortest time between two requests for the sake of an unknown `kid`: forged tokens must not make us flood the server.
pub const MIN_REFETCH: Duration = Duration::from_secs(60);

/// Most URLs whose sets are kept.
const MAX_SETS: usize = 64;

/// Origin of the keys of a token.
#[derive(Debug, Clone, Copy)]
pub enum KeySource<'a> {
    /// Keys at hand.
    Keys(&'a KeySet),
    /// URL of a JSON Web Key Set: `https`, or `http` on a loopback address.
    Url(&'a str),
}

/// Cache of key sets.
pub struct KeyCache {
    fetch: Arc<dyn Fetch>,
    sets: Mutex<HashMap<String, Entry>>,
}

#[derive(Clone)]
struct Entry {
    keys: Arc<KeySet>,
    fetched: Timestamp,
    fresh_until: Timestamp,
    /// Last request for the sake of an unknown `kid`, successful or not.
    refetched: Option<Timestamp>,
}

impl KeyCache {
    /// Cache without sets.
    pub fn new(fetch: Arc<dyn Fetch>) -> KeyCache {
        KeyCache { fetch, sets: Mutex::new(HashMap::new()) }
    }

    /// Verifies a token. An unknown `kid` fetches the set again, at most once in [`MIN_REFETCH`]; an expired set is never used.
    pub async fn verify(
        &self,
        token: &str,
        source: KeySource<'_>,
        expected: &Expected<'_>,
    ) -> Result<Token, JwtError> {
        let url = match source {
            KeySource::Keys(keys) => return verify(token, keys, expected),
            KeySource::Url(url) => url,
        };
        let now = expected.now;
        let Some(known) = self.fresh(url, now) else {
            return verify(token, &*self.fetched(url, now).await?, expected);
        };
        match verify(token, &known, expected) {
            Err(JwtError::UnknownKey) if self.may_refetch(url, now) => {
                verify(token, &*self.fetched(url, now).await?, expected)
            }
            verified => verified,
        }
    }

    fn fresh(&self, url: &str, now: Timestamp) -> Option<Arc<KeySet>> {
        let sets = self.lock();
        let entry = sets.get(url)?;
        // A clock that was set back must not make a set fresh for longer than its server said.
        (entry.fetched <= now && now < entry.fresh_until).then(|| Arc::clone(&entry.keys))
    }

    /// Whether the set may be fetched again, and if so notes that it is: of several callers at the same time one is told yes.
    fn may_refetch(&self, url: &str, now: Timestamp) -> bool {
        let mut sets = self.lock();
        let Some(entry) = sets.get_mut(url) else { return true };
        let is_too_soon = |last: Timestamp| Duration::from_micros(now.micros_since(last)) < MIN_REFETCH;
        if entry.refetched.is_some_and(is_too_soon) {
            return false;
        }
        entry.refetched = Some(now);
        true
    }

    async fn fetched(&self, url: &str, now: Timestamp) -> Result<Arc<KeySet>, JwtError> {
        check_url(url)?;
        let document = self.fetch.get(url).await?;
        let keys = Arc::new(KeySet::from_jwks(&document.body)?);
        let freshness = document.max_age.unwrap_or(DEFAULT_FRESHNESS).min(MAX_REFRESH);
        let fresh_until = now.plus_micros(i64::try_from(freshness.as_micros()).unwrap_or(i64::MAX));
        let mut sets = self.lock();
        let refetched = sets.get(url).and_then(|entry| entry.refetched);
        let entry = Entry { keys: Arc::clone(&keys), fetched: now, fresh_until, refetched };
        if sets.len() >= MAX_SETS && !sets.contains_key(url) {
            let oldest = sets.iter().min_by_key(|(_, entry)| entry.fetched).map(|(url, _)| url.clone());
            oldest.and_then(|oldest| sets.remove(&oldest));
        }
        sets.insert(url.to_owned(), entry);
        Ok(keys)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        // The map is whole after every statement, so a panic elsewhere leaves nothing half-done.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for KeyCache {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("KeyCache").field("sets", &self.lock().len()).finish_non_exhaustive()
    }
}

fn check_url(url: &str) -> Result<(), FetchError> {
    if url.starts_with("https://") {
        return Ok(());
    }
    let host =
        url.strip_prefix("http://").and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    // `user@127.0.0.1` and the like are no loopback address by this comparison, and are refused.
    if ["127.0.0.1", "::1", "localhost"].contains(&name) && !host.contains('@') {
        return Ok(());
    }
    Err(FetchError::Address("must begin with `https://`, or with `http://` and a loopback address"))
}
