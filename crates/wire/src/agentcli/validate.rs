//! Validation of manifests, in the protocol's order.
//!
//! The walk is linear in the size of the document. Paths are built only for findings, and their number is limited.

pub mod code;
pub mod condition;

mod path;
mod profile;
mod references;
mod scalars;
mod shape;
mod structural;
mod task;
mod walk;
mod workflow;

use proctor_core::json::Json;

use super::finding::{Finding, Validation};
use super::structure::{AUTHORIZATION_PROFILE, EVIDENCE_PROFILE, IDENTITY_PROFILE, MANIFEST, PROOF_PROFILE};
use path::Path;
use walk::Walk;

pub use walk::MAX_FINDINGS;

/// Validates a manifest: findings of the protocol, in its order.
pub fn validate(manifest: &Json) -> Validation {
    let root = Path::Root;
    if manifest.as_object().is_none() {
        let finding = Finding::new("$", code::NOT_AN_OBJECT, "manifest must be an object");
        return Validation { errors: vec![finding], warnings: Vec::new() };
    }
    let version = manifest.get("version").and_then(Json::as_str);
    let strict = version == Some("0.2");
    let mut walk = Walk::new(strict);
    if !strict && version != Some("0.1") {
        walk.error(&root.key("version"), code::UNSUPPORTED_VERSION, "version must be \"0.1\" or \"0.2\"");
    }
    let [_, identity, proof, authorization, evidence, workflows] = walk.members(&root, manifest, &MANIFEST);
    profile::array(&mut walk, &root.key("identity_profiles"), identity, &IDENTITY_PROFILE);
    profile::array(&mut walk, &root.key("authorization_proof_profiles"), proof, &PROOF_PROFILE);
    profile::array(&mut walk, &root.key("authorization_profiles"), authorization, &AUTHORIZATION_PROFILE);
    profile::array(&mut walk, &root.key("evidence_profiles"), evidence, &EVIDENCE_PROFILE);
    workflow::all(&mut walk, &root.key("workflows"), workflows);
    walk.flush_unknown_keys();
    if strict {
        structural::check(&mut walk, &structural::Profiles { identity, proof, authorization, evidence });
    }
    references::check(&mut walk, manifest);
    walk.finish()
}

#[cfg(test)]
mod tests;
