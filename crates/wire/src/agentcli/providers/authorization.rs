//! Authorization providers.

use proctor_core::json::Json;

use super::{listed, words};

/// An authorization provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizationProvider {
    /// Name in `authorization_profiles[].provider`.
    pub name: &'static str,
    /// Decisions that the provider can take.
    pub decision_kinds: &'static [&'static str],
    /// Whether the provider can demand an escalation.
    pub escalation: bool,
    /// Whether the provider takes several requests at once.
    pub batch: bool,
    /// Whether a request can be evaluated without effects.
    pub dry_run: bool,
    /// Alternative sets of keys in `provider_config`: one set must be complete. Empty if the provider needs none.
    pub required_keys: &'static [&'static [&'static str]],
    /// Further keys of `provider_config` that the provider reads.
    pub optional_keys: &'static [&'static str],
}

impl AuthorizationProvider {
    /// Capabilities, as `agentcli.authorization.schema` sends them.
    pub fn capabilities(&self) -> Json {
        Json::object()
            .with("decision_kinds", words(self.decision_kinds))
            .with("escalation", self.escalation)
            .with("batch", self.batch)
            .with("dry_run", self.dry_run)
    }

    /// Name and capabilities, as a list of providers has them.
    pub fn to_json(&self) -> Json {
        listed(self.name, self.capabilities())
    }

    /// Keys of `provider_config`: alternatives of required ones, and optional ones.
    pub fn configuration(&self) -> Json {
        let required: Vec<Json> = self.required_keys.iter().map(|keys| Json::from(words(keys))).collect();
        Json::object().with("required", required).with("optional", words(self.optional_keys))
    }
}

/// `opa` is the protocol's own; `cedar` and `topaz` are ours:
/// - `cedar` evaluates embedded: `policies` (text) or `policies_file`, optionally `entities`, a `schema`, and the mapping
///   `principal`, `action`, `resource` of a request to entities.
/// - `topaz` asks `endpoint` for a `decision` of the policy at `policy_path`.
pub(super) const PROVIDERS: &[AuthorizationProvider] = &[
    AuthorizationProvider {
        name: "none",
        decision_kinds: &["permit", "deny"],
        escalation: false,
        batch: false,
        dry_run: false,
        required_keys: &[],
        optional_keys: &[],
    },
    AuthorizationProvider {
        name: "opa",
        decision_kinds: &["permit", "deny", "require-escalation"],
        escalation: true,
        batch: false,
        dry_run: true,
        required_keys: &[&["endpoint"], &["module", "query"], &["module_file", "query"]],
        optional_keys: &[],
    },
    AuthorizationProvider {
        name: "cedar",
        decision_kinds: &["permit", "deny"],
        escalation: false,
        batch: false,
        dry_run: true,
        required_keys: &[&["policies"], &["policies_file"]],
        optional_keys: &["entities", "schema", "principal", "action", "resource"],
    },
    AuthorizationProvider {
        name: "topaz",
        decision_kinds: &["permit", "deny"],
        escalation: false,
        batch: false,
        dry_run: true,
        required_keys: &[&["endpoint", "policy_path"]],
        optional_keys: &["decision", "identity_type", "ca_certificate", "resource_context"],
    },
];
