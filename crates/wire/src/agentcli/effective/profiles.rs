//! Index of a manifest's profiles by their ids.

use std::collections::HashMap;

use proctor_core::json::Json;

use super::members::{items, text};

/// The four kinds of profiles of one manifest.
#[derive(Debug, Default)]
pub(in crate::agentcli) struct Profiles<'a> {
    identity: HashMap<&'a str, &'a Json>,
    proof: HashMap<&'a str, &'a Json>,
    authorization: HashMap<&'a str, &'a Json>,
    evidence: HashMap<&'a str, &'a Json>,
}

impl<'a> Profiles<'a> {
    /// Indexes the profiles of a manifest.
    pub(in crate::agentcli) fn of(manifest: &'a Json) -> Profiles<'a> {
        let index = |name| {
            let profiles = items(manifest, name).iter();
            profiles.filter_map(|profile| Some((text(profile, "id")?, profile))).collect()
        };
        Profiles {
            identity: index("identity_profiles"),
            proof: index("authorization_proof_profiles"),
            authorization: index("authorization_profiles"),
            evidence: index("evidence_profiles"),
        }
    }

    /// The identity profile of that id.
    pub(in crate::agentcli) fn identity(&self, id: Option<&str>) -> Option<&'a Json> {
        self.identity.get(id?).copied()
    }

    /// The authorization proof profile of that id.
    pub(in crate::agentcli) fn proof(&self, id: Option<&str>) -> Option<&'a Json> {
        self.proof.get(id?).copied()
    }

    /// The authorization profile of that id.
    pub(in crate::agentcli) fn authorization(&self, id: Option<&str>) -> Option<&'a Json> {
        self.authorization.get(id?).copied()
    }

    /// The evidence profile of that id.
    pub(in crate::agentcli) fn evidence(&self, id: Option<&str>) -> Option<&'a Json> {
        self.evidence.get(id?).copied()
    }
}
