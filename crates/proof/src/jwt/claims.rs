//! Claims of a token whose signature was verified.

use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;

use super::JwtError;

/// Largest difference between clocks that is tolerated.
pub const MAX_SKEW: Duration = Duration::from_secs(300);

/// Expectations about a token's claims.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// `iss` equals this.
    pub issuer: Option<&'a str>,
    /// `aud` is or contains this.
    pub audience: Option<&'a str>,
    /// Present moment.
    pub now: Timestamp,
    /// Tolerated difference between clocks; more than [`MAX_SKEW`] counts as that.
    pub skew: Duration,
}

pub(super) fn check(claims: &Json, expected: &Expected<'_>) -> Result<(), JwtError> {
    check_times(claims, expected)?;
    if let Some(issuer) = expected.issuer
        && claims.get("iss").and_then(Json::as_str) != Some(issuer)
    {
        return Err(JwtError::WrongIssuer);
    }
    if let Some(audience) = expected.audience
        && !claims.get("aud").is_some_and(|actual| contains(actual, &Json::from(audience)))
    {
        return Err(JwtError::WrongAudience);
    }
    Ok(())
}

fn check_times(claims: &Json, expected: &Expected<'_>) -> Result<(), JwtError> {
    #[expect(clippy::cast_precision_loss, reason = "microseconds of this era are exact in 53 bits")]
    let now = expected.now.micros() as f64 / 1e6;
    let skew = expected.skew.min(MAX_SKEW).as_secs_f64();
    let time = |name: &'static str| match claims.get(name) {
        None => Ok(None),
        Some(value) => numeric(value).map(Some).ok_or(JwtError::NotNumeric(name)),
    };
    let expires = time("exp")?.ok_or(JwtError::MissingClaim("exp"))?;
    if now >= expires + skew {
        return Err(JwtError::Expired);
    }
    for name in ["nbf", "iat"] {
        if time(name)?.is_some_and(|begins| now + skew < begins) {
            return Err(JwtError::NotYetValid);
        }
    }
    Ok(())
}

fn numeric(value: &Json) -> Option<f64> {
    match value {
        Json::Number(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

/// Compares a token's claims with the declared ones, and the claim `manifest_digest` with the manifest's digest.
///
/// A declared value must equal the claim, or be a member of it where the claim is an array; of a declared array every member must.
pub(crate) fn check_declared(claims: &Json, declared: &Json, manifest_digest: &str) -> Result<(), JwtError> {
    for (name, value) in declared.as_object().unwrap_or_default() {
        if value.is_null() {
            continue;
        }
        let claim = match name.as_str() {
            "subject" => "sub",
            "audience" => "aud",
            "issuer" => "iss",
            other => other,
        };
        let mismatch = || JwtError::ClaimMismatch(name.chars().take(80).collect());
        let actual = claims.get(claim).ok_or_else(mismatch)?;
        let holds = match value {
            Json::Array(values) => {
                equal(actual, value) || !values.is_empty() && values.iter().all(|it| contains(actual, it))
            }
            value => contains(actual, value),
        };
        if !holds {
            return Err(mismatch());
        }
    }
    let bare = |digest: &'_ str| digest.strip_prefix("sha256:").unwrap_or(digest).to_owned();
    match claims.get("manifest_digest").and_then(Json::as_str) {
        Some(actual) if bare(actual) == bare(manifest_digest) => Ok(()),
        _ => Err(JwtError::WrongDigest),
    }
}

fn contains(actual: &Json, value: &Json) -> bool {
    match actual {
        Json::Array(items) => items.iter().any(|item| equal(item, value)) || equal(actual, value),
        actual => equal(actual, value),
    }
}

/// Equality of JSON values: the order of members and the notation of numbers do not count.
fn equal(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => {
            one == other
                || matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(a), Ok(b)) if a.total_cmp(&b).is_eq())
        }
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Json::Object(members), Json::Object(others)) => {
            members.len() == others.len()
                && members.iter().all(|(name, member)| other.get(name).is_some_and(|it| equal(member, it)))
        }
        (one, other) => one == other,
    }
}
