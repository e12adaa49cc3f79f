//! Tables of providers: identity, authorization, evidence, and methods of authorization proofs, with their capabilities.

mod authorization;
mod evidence;
mod identity;
mod proof;

pub use authorization::AuthorizationProvider;
pub use evidence::EvidenceProvider;
pub use identity::IdentityProvider;
pub use proof::ProofMethod;

use proctor_core::json::Json;

/// Identity providers, in the order in which they are listed.
pub fn identity() -> &'static [IdentityProvider] {
    identity::PROVIDERS
}

/// Authorization providers.
pub fn authorization() -> &'static [AuthorizationProvider] {
    authorization::PROVIDERS
}

/// Evidence providers.
pub fn evidence() -> &'static [EvidenceProvider] {
    evidence::PROVIDERS
}

/// Methods of authorization proofs.
pub fn proof_methods() -> &'static [ProofMethod] {
    proof::METHODS
}

/// The identity provider of that name.
pub fn identity_provider(name: &str) -> Option<&'static IdentityProvider> {
    identity().iter().find(|provider| provider.name == name)
}

/// The authorization provider of that name.
pub fn authorization_provider(name: &str) -> Option<&'static AuthorizationProvider> {
    authorization().iter().find(|provider| provider.name == name)
}

/// The evidence provider of that name.
pub fn evidence_provider(name: &str) -> Option<&'static EvidenceProvider> {
    evidence().iter().find(|provider| provider.name == name)
}

/// The proof method of that name.
pub fn proof_method(name: &str) -> Option<&'static ProofMethod> {
    proof_methods().iter().find(|method| method.name == name)
}

fn listed(name: &str, capabilities: Json) -> Json {
    Json::object().with("name", name).with("capabilities", capabilities)
}

fn words(words: &[&str]) -> Vec<Json> {
    words.iter().map(|word| Json::from(*word)).collect()
}

#[cfg(test)]
mod tests;
