//! Merge of the blocks that refer to a profile: authorization proof, authorization, evidence.
//!
//! `Declared` forms hold what workflow and task say; merged forms have the profile below them. Provider configuration stays
//! out of both unless it is asked for, because it may hold secrets.

use proctor_core::json::Json;

use super::layers::Layers;

/// Profile members of an authorization proof that no reference changes.
const PROOF: [&str; 10] = [
    "method",
    "issuer",
    "audience",
    "jwks_uri",
    "public_key",
    "allowed_signers",
    "principal",
    "namespace",
    "ca_certificate",
    "ca_certificate_from",
];
const PAYLOAD: [&str; 3] = ["bind", "context", "format"];

/// The authorization proof as workflow and task declare it. `None` without a reference.
pub(in crate::agentcli) fn declared_proof(layers: Layers<'_>) -> Option<Json> {
    let reference = layers.value("ref")?;
    Some(
        Json::object()
            .with("ref", reference.clone())
            .with("proof", Json::Null)
            .with("claims", layers.map("claims"))
            .with("verify", requirement(layers)),
    )
}

/// The authorization proof over its profile. The proof's value source comes from the profile alone.
pub(in crate::agentcli) fn merged_proof(layers: Layers<'_>, profile: Option<&Json>) -> Option<Json> {
    let reference = layers.value("ref")?.clone();
    let own = Layers::default().over(profile);
    let layers = layers.over(profile);
    let mut proof = Vec::with_capacity(PROOF.len() + 4);
    proof.push(("ref".to_owned(), reference));
    proof.extend(PROOF.into_iter().map(|name| (name.to_owned(), own.cloned(name))));
    proof.push(("proof".to_owned(), own.cloned("proof")));
    proof.push(("claims".to_owned(), layers.map("claims")));
    proof.push(("verify".to_owned(), requirement(layers)));
    Some(Json::Object(proof))
}

/// The authorization as workflow and task declare it, without configuration. `None` without a reference.
pub(in crate::agentcli) fn declared_authorization(layers: Layers<'_>) -> Option<Json> {
    let reference = layers.value("ref")?;
    let authorization = Json::object().with("ref", reference.clone()).with("provider_config", Json::Null);
    Some(with_rules(authorization, layers))
}

/// The authorization over its profile.
pub(in crate::agentcli) fn merged_authorization(
    layers: Layers<'_>,
    profile: Option<&Json>,
    config: Config,
) -> Option<Json> {
    let reference = layers.value("ref")?.clone();
    let own = Layers::default().over(profile);
    let layers = layers.over(profile);
    let provider_config = match config {
        Config::Kept => layers.map("provider_config"),
        Config::Removed => Json::Null,
    };
    let authorization = Json::object()
        .with("ref", reference)
        .with("provider", own.cloned("provider"))
        .with("provider_config", provider_config);
    Some(with_rules(authorization, layers))
}

fn with_rules(authorization: Json, layers: Layers<'_>) -> Json {
    // An outer `deny` stands against an inner `warn`: a task cannot weaken what its workflow or profile demands.
    let on_error = match layers.declared("on_error").find(|word| word.as_str() == Some("deny")) {
        Some(deny) => deny.clone(),
        None => layers.cloned("on_error"),
    };
    authorization
        .with("on_error", on_error)
        .with("request", layers.cloned("request"))
        .with("decision", layers.cloned("decision"))
}

/// The evidence as workflow and task declare it, without configuration. `None` without a reference.
pub(in crate::agentcli) fn declared_evidence(layers: Layers<'_>) -> Option<Json> {
    let reference = layers.value("ref")?;
    let evidence = Json::object().with("ref", reference.clone()).with("provider_config", Json::Null);
    Some(with_payload(evidence, layers))
}

/// The evidence over its profile. Provider, methods and configuration come from the profile alone.
pub(in crate::agentcli) fn merged_evidence(
    layers: Layers<'_>,
    profile: Option<&Json>,
    config: Config,
) -> Option<Json> {
    let reference = layers.value("ref")?.clone();
    let own = Layers::default().over(profile);
    let provider_config = match config {
        Config::Kept => own.map("provider_config"),
        Config::Removed => Json::Null,
    };
    let evidence = Json::object()
        .with("ref", reference)
        .with("provider", own.cloned("provider"))
        .with("methods", own.cloned("methods"))
        .with("provider_config", provider_config);
    Some(with_payload(evidence, layers.over(profile)))
}

fn with_payload(evidence: Json, layers: Layers<'_>) -> Json {
    evidence.with("payload", layers.block("payload").object(&PAYLOAD)).with("verify", requirement(layers))
}

fn requirement(layers: Layers<'_>) -> Json {
    Json::object().with("required", layers.required())
}

/// Treatment of provider configuration, which may hold secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agentcli) enum Config {
    /// Merged, for whoever calls the provider.
    Kept,
    /// `null`, for outputs.
    Removed,
}
