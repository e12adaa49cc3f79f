//! Digests of shared values, each computed once.

use std::cell::RefCell;
use std::collections::HashMap;

use proctor_core::json::Json;

use crate::agentcli::canonical::{self, NotCanonical};

/// Cache of digests by the place of a value in the manifest. Thousands of tasks may share the attributes of one profile.
#[derive(Debug, Default)]
pub(super) struct Digests {
    known: RefCell<HashMap<*const Json, String>>,
}

impl Digests {
    /// Digest of a value that lives as long as the plan; `None` for none.
    pub(super) fn of(&self, value: Option<&Json>) -> Result<Option<String>, NotCanonical> {
        let Some(value) = value else { return Ok(None) };
        let place = std::ptr::from_ref(value);
        if let Some(digest) = self.known.borrow().get(&place) {
            return Ok(Some(digest.clone()));
        }
        let digest = canonical::digest(value)?;
        self.known.borrow_mut().insert(place, digest.clone());
        Ok(Some(digest))
    }
}
