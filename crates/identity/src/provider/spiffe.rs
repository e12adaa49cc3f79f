//! JWT-SVIDs from a file, verified with the trust domain's keys.

use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_proof::jwt::{self, Expected, JwtError, KeySet};

use super::{Context, Resolved};
use crate::error::IdentityError;
use crate::session::Credential;

/// Tolerated difference between clocks, in seconds, where the profile sets none.
const DEFAULT_TOLERANCE: u64 = 30;

/// Longest SPIFFE ID.
const MAX_ID: usize = 2048;

pub(super) fn resolve(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    if context.config("workload_api_socket").is_some() {
        return Err(IdentityError::Unsupported("the SPIFFE Workload API is not supported: use `svid_file`"));
    }
    if context.config("jwks_uri").is_some() {
        return Err(IdentityError::Unsupported("`jwks_uri` is not supported for SVIDs: use `jwks_file`"));
    }
    let own = context.auth("audience").and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty());
    let audience = own
        .or_else(|| context.config_text("audience"))
        .ok_or_else(|| IdentityError::profile("set `auth.audience`"))?;
    let tolerance = context.config("clock_tolerance_s").map_or(Some(DEFAULT_TOLERANCE), Json::as_u64);
    let tolerance = tolerance
        .filter(|seconds| *seconds <= 300)
        .ok_or_else(|| IdentityError::profile("`clock_tolerance_s` is between 0 and 300"))?;
    let keys = keys(context)?;
    let token = context.file("SVID file", context.required_text("svid_file")?)?;
    let expected = Expected {
        issuer: context.config_text("issuer"),
        audience: Some(audience),
        now: context.now(),
        skew: Duration::from_secs(tolerance),
    };
    let verified = jwt::verify(token.expose(), &keys, &expected)?;
    let id = verified.claims.get("sub").and_then(Json::as_str).ok_or(JwtError::MissingClaim("sub"))?;
    if !is_spiffe_id(id) {
        return Err(IdentityError::Credential("`sub` is not a SPIFFE ID"));
    }
    // A manifest that names the workload binds the SVID to it.
    if context.subject("principal").is_some_and(|own| own.starts_with("spiffe://") && own != id) {
        return Err(IdentityError::Credential("`sub` is another SPIFFE ID than `subject.principal`"));
    }
    let expires = verified.claims.get("exp").and_then(seconds);
    let issuer = verified.claims.get("iss").and_then(Json::as_str).map(str::to_owned);
    let trust_domain = id.strip_prefix("spiffe://").and_then(|rest| rest.split('/').next());
    Ok(Resolved {
        principal: Some(id.to_owned()),
        issuer: issuer.or_else(|| trust_domain.map(|domain| format!("spiffe://{domain}"))),
        chain: vec![crate::delegation::Hop::new("workload", id, "jwt-svid")],
        assertions: Json::object()
            .with("spiffe_id", id)
            .with("trust_domain", trust_domain)
            .with("audience", audience),
        expires_at: expires,
        credentials: vec![Credential::new("jwt_svid", token)],
        ..Resolved::default()
    })
}

fn keys(context: &Context<'_>) -> Result<KeySet, IdentityError> {
    let unusable = || IdentityError::profile("the verification key cannot be used");
    let given = ["public_key_pem", "public_key_file", "jwks", "jwks_file"];
    let given: Vec<&str> = given.into_iter().filter(|name| context.config(name).is_some()).collect();
    let [name] = given.as_slice() else {
        return Err(IdentityError::profile(
            "set exactly one of `public_key_pem`, `public_key_file`, `jwks` and `jwks_file`",
        ));
    };
    // Keys are public: they are not noted as secrets.
    let file = |name: &str| {
        let path = context.required_text(name)?;
        context.sources().file(path).map_err(IdentityError::source("verification key"))
    };
    match *name {
        "public_key_pem" => {
            KeySet::from_pem(context.required_text("public_key_pem")?).map_err(|_| unusable())
        }
        "public_key_file" => KeySet::from_pem(file("public_key_file")?.expose()).map_err(|_| unusable()),
        "jwks_file" => KeySet::from_jwks(file("jwks_file")?.expose().as_bytes()).map_err(|_| unusable()),
        _ => match context.config("jwks") {
            Some(Json::String(text)) => KeySet::from_jwks(text.as_bytes()).map_err(|_| unusable()),
            Some(set) => KeySet::from_json(set).map_err(|_| unusable()),
            None => Err(unusable()),
        },
    }
}

/// `spiffe://TRUST-DOMAIN/PATH`, by the rules of the SPIFFE ID specification.
fn is_spiffe_id(id: &str) -> bool {
    let Some(rest) = id.strip_prefix("spiffe://").filter(|_| id.len() <= MAX_ID) else { return false };
    let mut segments = rest.split('/');
    let domain = segments.next().unwrap_or_default();
    let is_domain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !domain.is_empty()
        && domain.bytes().all(is_domain)
        && segments.all(|part| !matches!(part, "" | "." | "..") && part.bytes().all(is_path))
}

fn seconds(value: &Json) -> Option<Timestamp> {
    let Json::Number(text) = value else { return None };
    let whole: i64 = text.split('.').next()?.parse().ok()?;
    Some(Timestamp::from_micros(whole.checked_mul(1_000_000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spiffe_ids_are_recognised() {
        for good in ["spiffe://example.org/workload", "spiffe://example.org", "spiffe://a_b-1/ns/x/sa/y.z"] {
            assert!(is_spiffe_id(good), "{good}");
        }
        for bad in [
            "https://example.org/x",
            "spiffe://",
            "spiffe:///x",
            "spiffe://Example.org/x",
            "spiffe://example.org/",
            "spiffe://example.org/a/../b",
            "spiffe://user@example.org/x",
            "spiffe://example.org:80/x",
            "spiffe://example.org/a?b",
        ] {
            assert!(!is_spiffe_id(bad), "{bad}");
        }
    }
}
