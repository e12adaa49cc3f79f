//! Needs of proof methods. Faults stand at the member that is at fault.

use proctor_core::json::Json;

use super::{endpoint, keys};
use crate::agentcli::providers;
use crate::agentcli::validate::code;
use crate::agentcli::validate::path::Path;
use crate::agentcli::validate::scalars::{filled, given};
use crate::agentcli::validate::walk::Walk;

/// Checks a proof profile.
pub(super) fn check(walk: &mut Walk, path: &Path<'_>, profile: &Json) {
    let value_from = profile.get("proof").and_then(|proof| given(proof.get("value_from")));
    let has_literal = value_from.is_some_and(|source| given(source.get("literal")).is_some());
    if has_literal {
        let message = "must not stand in the manifest: use `env`, `file` or `command`";
        let proof = path.key("proof");
        walk.error(&proof.key("value_from").key("literal"), code::LITERAL_FORBIDDEN, message);
    }
    let Some(method) = given(profile.get("method")) else { return };
    let Some(method) = method.as_str().and_then(providers::proof_method) else {
        let names: Vec<_> = providers::proof_methods().iter().map(|method| method.name).collect();
        let message = format!("must be one of: {}", names.join(", "));
        walk.error(&path.key("method"), code::UNKNOWN_METHOD, message);
        return;
    };
    if !method.cryptographic {
        let required = profile.get("verify").and_then(|verify| verify.get("required"));
        if required.and_then(Json::as_bool) == Some(true) {
            let message = "must not be true: method `none` verifies nothing";
            walk.error(&path.key("verify").key("required"), code::PROOF_NOT_VERIFIABLE, message);
        }
        return;
    }
    let sources = ["env", "file", "command"];
    // A literal has been reported already, as the one mistake that it is.
    if !has_literal
        && !value_from.is_some_and(|source| sources.iter().any(|name| filled(source.get(name)).is_some()))
    {
        let message = format!("is required for method `{}`: `env`, `file` or `command`", method.name);
        walk.error(&path.key("proof").key("value_from"), code::PROOF_CONFIG_MISSING, message);
    }
    let profile = Profile { walk, path, node: profile };
    match method.name {
        "jwt" => profile.jwt(),
        "detached-signature" => profile.detached_signature(),
        _ => profile.certificate(),
    }
}

struct Profile<'a> {
    walk: &'a mut Walk,
    path: &'a Path<'a>,
    node: &'a Json,
}

impl<'a> Profile<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        filled(self.node.get(name))
    }

    fn missing(&mut self, name: &str, message: &str) {
        self.walk.error(&self.path.key(name), code::PROOF_CONFIG_MISSING, message);
    }

    fn invalid(&mut self, name: &str, message: &str) {
        self.walk.error(&self.path.key(name), code::PROOF_CONFIG_INVALID, message);
    }

    fn jwt(mut self) {
        let (key, address) = (self.text("public_key"), self.text("jwks_uri"));
        if key.is_none() && address.is_none() {
            self.missing("public_key", "is required for method `jwt`, unless there is a `jwks_uri`");
        }
        self.public_key(key);
        if let Some(Err(error)) = address.map(endpoint::check_https) {
            let message = match error {
                endpoint::EndpointError::NotSecure => "must use https".to_owned(),
                other => other.to_string(),
            };
            self.invalid("jwks_uri", &message);
        }
    }

    fn detached_signature(mut self) {
        let key = self.text("public_key");
        if key.is_none() && self.text("allowed_signers").is_none() {
            let message = "is required for method `detached-signature`, unless there are `allowed_signers`";
            self.missing("public_key", message);
        }
        self.public_key(key);
    }

    fn public_key(&mut self, key: Option<&str>) {
        if key.is_some_and(|key| !keys::is_public_key(key)) {
            self.invalid("public_key", "must be a public key in PEM");
        }
    }

    fn certificate(mut self) {
        let (authority, key) = (self.text("ca_certificate"), self.text("public_key"));
        if authority.is_none() && key.is_none() && given(self.node.get("ca_certificate_from")).is_none() {
            let message = "is required for method `certificate`, unless there is a `ca_certificate_from`";
            self.missing("ca_certificate", message);
        }
        for (name, text) in [("ca_certificate", authority), ("public_key", key)] {
            if text.is_some_and(|text| !keys::is_certificate(text)) {
                self.invalid(name, "must be a certificate in PEM");
            }
        }
    }
}
