//! Evidence providers.

use proctor_core::json::Json;

use super::{listed, words};

/// An evidence provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceProvider {
    /// Name in `evidence_profiles[].provider`.
    pub name: &'static str,
    /// Methods of making evidence.
    pub methods: &'static [&'static str],
    /// Whether the evidence is signed.
    pub signed: bool,
    /// Whether the evidence can be verified without its maker.
    pub offline_verification: bool,
}

impl EvidenceProvider {
    /// Capabilities, as a list of providers has them.
    pub fn capabilities(&self) -> Json {
        Json::object()
            .with("methods", words(self.methods))
            .with("signed", self.signed)
            .with("offline_verification", self.offline_verification)
    }

    /// Methods, as `agentcli.evidence.schema` sends them.
    pub fn methods(&self) -> Json {
        Json::from(words(self.methods))
    }

    /// Name and capabilities, as a list of providers has them.
    pub fn to_json(&self) -> Json {
        listed(self.name, self.capabilities())
    }
}

pub(super) const PROVIDERS: &[EvidenceProvider] = &[
    EvidenceProvider { name: "none", methods: &[], signed: false, offline_verification: false },
    EvidenceProvider { name: "ssh", methods: &["ssh-signature"], signed: true, offline_verification: true },
    // A bundle of the run's records with their inclusion proofs and a signed checkpoint.
    EvidenceProvider {
        name: "ledger",
        methods: &["ledger-bundle"],
        signed: true,
        offline_verification: true,
    },
];
