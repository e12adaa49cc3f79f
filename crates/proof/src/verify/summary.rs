//! Summaries of verifications.

use proctor_core::json::Json;

use super::Inputs;

/// Claims that a summary may hold. All others stay out: tokens carry names, addresses and whatever else their issuer likes.
const CLAIMS: [&str; 17] = [
    "sub",
    "aud",
    "iss",
    "exp",
    "nbf",
    "org_id",
    "on_behalf_of_user_id",
    "delegation_grant_id",
    "run_id",
    "agent_id",
    "verification_ref",
    "verification_level",
    "verification_verified_at",
    "step_up_policy",
    "session_id",
    "request_id",
    "manifest_digest",
];

pub(super) fn verified(inputs: &Inputs<'_>) -> Json {
    summary(inputs, true)
}

pub(super) fn unverified(inputs: &Inputs<'_>) -> Json {
    summary(inputs, false)
}

fn summary(inputs: &Inputs<'_>, is_verified: bool) -> Json {
    let method = inputs.proof["method"].clone();
    Json::object()
        .with("method", method.clone())
        .with("issuer", inputs.proof["issuer"].clone())
        .with("verified", is_verified)
        .with("verified_at", is_verified.then(|| inputs.now.to_string()))
        .with("manifest_digest", inputs.manifest_digest)
        .with("verifier", method)
}

/// Claims of a token that are on the list, in its order.
pub(super) fn allowed_claims(claims: &Json) -> Json {
    let mut allowed = Json::object();
    for name in CLAIMS {
        if let Some(value) = claims.get(name) {
            allowed.push(name, value.clone());
        }
    }
    allowed
}
