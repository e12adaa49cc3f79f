//! Structural checks of profiles: does a profile have what its provider or method needs? Nothing is resolved or contacted.
//!
//! Findings name members, never their values: provider configuration holds secrets and names of environment variables.

mod authorization;
mod endpoint;
mod identity;
mod keys;
mod proof;
mod provider;

use proctor_core::json::Json;

use super::code;
use super::path::Path;
use super::scalars::filled;
use super::walk::Walk;
use crate::agentcli::providers;

/// The manifest's arrays of profiles.
pub(super) struct Profiles<'a> {
    pub(super) identity: Option<&'a Json>,
    pub(super) proof: Option<&'a Json>,
    pub(super) authorization: Option<&'a Json>,
    pub(super) evidence: Option<&'a Json>,
}

/// Checks all profiles of a 0.2 manifest.
pub(super) fn check(walk: &mut Walk, profiles: &Profiles<'_>) {
    each(profiles.identity, "identity_profiles", |path, profile| identity::check(walk, path, profile));
    each(profiles.proof, "authorization_proof_profiles", |path, profile| proof::check(walk, path, profile));
    each(profiles.authorization, "authorization_profiles", |path, profile| {
        authorization::check(walk, path, profile);
    });
    each(profiles.evidence, "evidence_profiles", |path, profile| {
        if let Some(name) = filled(profile.get("provider"))
            && providers::evidence_provider(name).is_none()
        {
            let names: Vec<_> = providers::evidence().iter().map(|provider| provider.name).collect();
            unknown_provider(walk, path, &names);
        }
    });
}

fn each(profiles: Option<&Json>, key: &str, mut check: impl FnMut(&Path<'_>, &Json)) {
    let path = Path::Root.key(key);
    for (index, profile) in profiles.and_then(Json::as_array).unwrap_or_default().iter().enumerate() {
        if profile.as_object().is_some() {
            check(&path.index(index), profile);
        }
    }
}

fn unknown_provider(walk: &mut Walk, path: &Path<'_>, names: &[&str]) {
    let message = format!("must be one of: {}", names.join(", "));
    walk.error(&path.key("provider"), code::UNKNOWN_PROVIDER, message);
}
