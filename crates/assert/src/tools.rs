//! A cache of compiled schemas and patterns, shared between assertions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use regex::Regex;

/// Entries of each cache. A full cache is emptied: simple, and as good as any eviction order for the few schemas of a
/// test suite.
const MAX_ENTRIES: usize = 256;

/// Compiled schemas and patterns, kept by their text. Shared between threads.
#[derive(Default)]
pub struct Tools {
    schemas: BoundedCache<Validator>,
    patterns: BoundedCache<Regex>,
    keys: BoundedCache<String>,
}

/// A bounded cache of values compiled from a text.
struct BoundedCache<T>(Mutex<HashMap<String, Arc<T>>>);

impl<T> Default for BoundedCache<T> {
    fn default() -> Self {
        BoundedCache(Mutex::default())
    }
}

impl Tools {
    /// The schema that this text is, made by `make` if it is not known yet.
    pub(crate) fn schema<E>(
        &self,
        text: &str,
        make: impl FnOnce() -> Result<Validator, E>,
    ) -> Result<Arc<Validator>, E> {
        self.schemas.get(text, make)
    }

    /// The pattern that this text is, made by `make` if it is not known yet.
    pub(crate) fn pattern<E>(
        &self,
        text: &str,
        make: impl FnOnce() -> Result<Regex, E>,
    ) -> Result<Arc<Regex>, E> {
        self.patterns.get(text, make)
    }

    pub(crate) fn key(&self, text: &str, make: impl FnOnce() -> String) -> String {
        let made: Result<Arc<String>, std::convert::Infallible> = self.keys.get(text, || Ok(make()));
        made.map_or_else(|never| match never {}, |key| key.as_ref().clone())
    }
}

impl<T> BoundedCache<T> {
    fn get<E>(&self, text: &str, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        // Long texts are made anew each time: what is kept stays small.
        const LONGEST: usize = 64 * 1024;
        if text.len() > LONGEST {
            return make().map(Arc::new);
        }
        if let Ok(kept) = self.0.lock()
            && let Some(found) = kept.get(text)
        {
            return Ok(Arc::clone(found));
        }
        let made = Arc::new(make()?);
        if let Ok(mut kept) = self.0.lock() {
            if kept.len() >= MAX_ENTRIES {
                kept.clear();
            }
            kept.insert(text.to_owned(), Arc::clone(&made));
        }
        Ok(made)
    }
}
