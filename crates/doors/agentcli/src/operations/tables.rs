//! Tables of providers and methods.

use proctor_core::json::Json;
use proctor_wire::agentcli::error::Failure;
use proctor_wire::agentcli::providers;

use super::ok;

fn list<T>(items: &[T], json: impl Fn(&T) -> Json) -> Json {
    Json::Array(items.iter().map(json).collect())
}

fn unknown(kind: &str, name: &str, known: &[&str]) -> Failure {
    let shown: String = name.chars().take(100).collect();
    Failure::invalid_argument(format!("unknown {kind} `{shown}`: use one of {}", known.join(", ")))
}

pub(crate) fn identity_providers() -> Json {
    ok().with("providers", list(providers::identity(), providers::IdentityProvider::to_json))
}

pub(crate) fn identity_schema(name: &str) -> Result<Json, Failure> {
    let known: Vec<&str> = providers::identity().iter().map(|provider| provider.name).collect();
    let found =
        providers::identity_provider(name).ok_or_else(|| unknown("identity provider", name, &known))?;
    Ok(ok().with("provider", found.name).with("capabilities", found.capabilities()))
}

pub(crate) fn proof_methods() -> Json {
    ok().with("methods", list(providers::proof_methods(), providers::ProofMethod::to_json))
}

pub(crate) fn proof_schema(name: &str) -> Result<Json, Failure> {
    let known: Vec<&str> = providers::proof_methods().iter().map(|method| method.name).collect();
    let found = providers::proof_method(name).ok_or_else(|| unknown("proof method", name, &known))?;
    Ok(ok()
        .with("method", found.name)
        .with("verifier", found.verifier())
        .with("capabilities", found.capabilities()))
}

pub(crate) fn authorization_providers() -> Json {
    ok().with("providers", list(providers::authorization(), providers::AuthorizationProvider::to_json))
}

pub(crate) fn authorization_schema(name: &str) -> Result<Json, Failure> {
    let known: Vec<&str> = providers::authorization().iter().map(|provider| provider.name).collect();
    let found = providers::authorization_provider(name)
        .ok_or_else(|| unknown("authorization provider", name, &known))?;
    let result = ok().with("provider", found.name).with("capabilities", found.capabilities());
    Ok(result.with("configuration", found.configuration()))
}

pub(crate) fn evidence_providers() -> Json {
    ok().with("providers", list(providers::evidence(), providers::EvidenceProvider::to_json))
}

pub(crate) fn evidence_schema(name: &str) -> Result<Json, Failure> {
    let known: Vec<&str> = providers::evidence().iter().map(|provider| provider.name).collect();
    let found =
        providers::evidence_provider(name).ok_or_else(|| unknown("evidence provider", name, &known))?;
    Ok(ok().with("provider", found.name).with("methods", found.methods()))
}
