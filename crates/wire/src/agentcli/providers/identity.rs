//! Identity providers.

use proctor_core::json::Json;

use super::{listed, words};

/// An identity provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Name in `identity_profiles[].provider`.
    pub name: &'static str,
    /// Supported words of `auth.mode`.
    pub auth_modes: &'static [&'static str],
    /// Kinds of credentials that a session holds.
    pub credential_types: &'static [&'static str],
    /// Supported kinds of presentation targets.
    pub presentation_kinds: &'static [&'static str],
    /// Supported words of `presentation.handoff`.
    pub handoff_modes: &'static [&'static str],
    /// Whether credentials can be refreshed.
    pub refreshable: bool,
    /// Whether the provider takes part in delegation.
    pub delegation: bool,
    /// Supported words of `trust.level`.
    pub trust_levels: &'static [&'static str],
    /// Mechanisms by which a person approves a credential.
    pub approval_mechanisms: &'static [&'static str],
}

impl IdentityProvider {
    /// Capabilities, as `agentcli.identity.schema` sends them.
    pub fn capabilities(&self) -> Json {
        Json::object()
            .with("auth_modes", words(self.auth_modes))
            .with("credential_types", words(self.credential_types))
            .with("presentation_kinds", words(self.presentation_kinds))
            .with("handoff_modes", words(self.handoff_modes))
            .with("refreshable", self.refreshable)
            .with("delegation", self.delegation)
            .with("trust_levels", words(self.trust_levels))
            .with("approval_mechanisms", words(self.approval_mechanisms))
    }

    /// Name and capabilities, as a list of providers has them.
    pub fn to_json(&self) -> Json {
        listed(self.name, self.capabilities())
    }
}

const ALL_LEVELS: &[&str] = &["untrusted", "restricted", "supervised", "autonomous"];

/// Capabilities that most providers share.
const BEARER: IdentityProvider = IdentityProvider {
    name: "",
    auth_modes: &["service"],
    credential_types: &["access_token"],
    presentation_kinds: &["env", "file", "stdin"],
    handoff_modes: &["none"],
    refreshable: false,
    delegation: false,
    trust_levels: ALL_LEVELS,
    approval_mechanisms: &[],
};

pub(super) const PROVIDERS: &[IdentityProvider] = &[
    IdentityProvider {
        name: "stripe-api-key",
        credential_types: &["api_key"],
        presentation_kinds: &["env"],
        handoff_modes: &["none", "downscope"],
        delegation: true,
        ..BEARER
    },
    IdentityProvider {
        name: "none",
        auth_modes: &["none"],
        credential_types: &[],
        presentation_kinds: &["none"],
        ..BEARER
    },
    IdentityProvider { name: "env-bearer", ..BEARER },
    IdentityProvider { name: "file-bearer", ..BEARER },
    IdentityProvider { name: "oidc-client-credentials", ..BEARER },
    IdentityProvider {
        name: "oidc-token-exchange",
        auth_modes: &["exchange"],
        handoff_modes: &["none", "downscope"],
        delegation: true,
        ..BEARER
    },
    IdentityProvider { name: "azure-managed-identity", refreshable: true, ..BEARER },
    IdentityProvider {
        name: "aws-sts-assume-role",
        auth_modes: &["service", "exchange"],
        delegation: true,
        ..BEARER
    },
    IdentityProvider { name: "gcp-workload-identity", refreshable: true, ..BEARER },
    IdentityProvider {
        name: "spiffe-jwt-svid",
        auth_modes: &["service", "delegated"],
        credential_types: &["jwt_svid"],
        refreshable: true,
        delegation: true,
        trust_levels: &["restricted", "supervised", "autonomous"],
        ..BEARER
    },
    IdentityProvider {
        name: "entra-agent-id",
        auth_modes: &["service", "on-behalf-of"],
        handoff_modes: &["none", "downscope"],
        refreshable: true,
        delegation: true,
        approval_mechanisms: &["ciba"],
        ..BEARER
    },
];
