//! JSON Web Tokens in compact form (RFC 7515, 7519).
//!
//! The key decides the algorithm: a token's header can only name one that its key can be used with. Symmetric algorithms, `none`, and
//! headers that bring or fetch a key are refused before anything else is looked at; claims are read after the signature was verified.

mod algorithm;
mod cache;
mod claims;
mod jwks;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proctor_core::digest::Digest;
use proctor_core::json::Json;

pub use algorithm::Algorithm;
pub use cache::{KeyCache, KeySource, MAX_REFRESH, MIN_REFETCH};
pub(crate) use claims::check_declared;
pub use claims::{Expected, MAX_SKEW};
pub use jwks::{JwksError, KeySet, MAX_JWKS, MAX_JWKS_KEYS};

use crate::sources::FetchError;

/// Longest token, in bytes.
pub const MAX_TOKEN: usize = 16 * 1024;

/// Values in the header or the claims of a token, at most.
const MAX_VALUES: usize = 2000;

/// Members of a header that are refused: extensions that must be understood, and keys from the token itself.
const REFUSED_MEMBERS: [&str; 5] = ["crit", "jku", "jwk", "x5u", "x5c"];

/// Verified token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Claims, as they were signed.
    pub claims: Json,
    /// Algorithm of the signature.
    pub algorithm: Algorithm,
    /// `kid` of the header.
    pub key_id: Option<String>,
    /// Key of the replay check: issuer and `jti`, or the digest of header and claims where there is no `jti`.
    pub replay_key: String,
}

/// Token that is not accepted. No variant holds the token or a claim's value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwtError {
    /// The token is longer than [`MAX_TOKEN`].
    #[error("the token is longer than {MAX_TOKEN} bytes")]
    TooLong,
    /// The token does not have three base64url parts with JSON objects in the first two.
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// A header member that is refused.
    #[error("the token's header has `{0}`, which is refused")]
    RefusedHeader(&'static str),
    /// `none`, an HMAC, or an algorithm that nobody here knows.
    #[error("the token's algorithm is refused: use RS, PS, ES or EdDSA")]
    RefusedAlgorithm,
    /// An algorithm of another kind than the key.
    #[error("the token's algorithm does not fit the key")]
    AlgorithmMismatch,
    /// No key with that `kid`, or none that fits.
    #[error("no key fits the token: check `kid`, and that the key set has its key")]
    UnknownKey,
    /// Several keys with that `kid`, or several that fit a token without one.
    #[error("several keys fit the token: give each key its own `kid`, and name it in the token")]
    AmbiguousKey,
    /// The signature does not fit.
    #[error("the token's signature does not fit the key")]
    BadSignature,
    /// A claim that must be there.
    #[error("the token has no claim `{0}`")]
    MissingClaim(&'static str),
    /// A time that is not a number.
    #[error("the token's claim `{0}` is not a number")]
    NotNumeric(&'static str),
    /// The token's time is over.
    #[error("the token expired")]
    Expired,
    /// The token's time has not begun.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// Another issuer.
    #[error("the token has another issuer")]
    WrongIssuer,
    /// Another audience.
    #[error("the token is for another audience")]
    WrongAudience,
    /// A declared claim with another value, or without one.
    #[error("the token's claim `{0}` differs from the declared one")]
    ClaimMismatch(String),
    /// The claim `manifest_digest` is absent or names another manifest.
    #[error("the token's claim `manifest_digest` is not the manifest's digest")]
    WrongDigest,
    /// The key set cannot be read.
    #[error(transparent)]
    Jwks(#[from] JwksError),
    /// The key set cannot be fetched.
    #[error("the key set cannot be fetched: {0}")]
    Fetch(#[from] FetchError),
}

/// Verifies a token: header, key, signature, times, issuer and audience.
///
/// `exp` is required. Times tolerate the expected skew, at most [`MAX_SKEW`].
pub fn verify(token: &str, keys: &KeySet, expected: &Expected<'_>) -> Result<Token, JwtError> {
    let parts = Parts::split(token)?;
    let header = Header::read(parts.header)?;
    let key = keys.select(&header)?;
    let signature = decode(parts.signature, "the signature is not base64url")?;
    key.verify(header.algorithm.scheme(), parts.signed.as_bytes(), &signature)
        .map_err(|_| JwtError::BadSignature)?;
    let claims = object(parts.claims, "the claims are not a JSON object")?;
    claims::check(&claims, expected)?;
    Ok(Token {
        replay_key: replay_key(parts.signed, &claims)?,
        claims,
        algorithm: header.algorithm,
        key_id: header.key_id,
    })
}

/// Parts of a compact token.
struct Parts<'a> {
    header: &'a str,
    claims: &'a str,
    signature: &'a str,
    /// Header and claims with the dot between them: the signed text.
    signed: &'a str,
}

impl<'a> Parts<'a> {
    fn split(token: &'a str) -> Result<Parts<'a>, JwtError> {
        if token.len() > MAX_TOKEN {
            return Err(JwtError::TooLong);
        }
        let malformed = JwtError::Malformed("a token has three parts with dots between them");
        let (signed, signature) = token.rsplit_once('.').ok_or_else(|| malformed.clone())?;
        match signed.split_once('.') {
            Some((header, claims)) if !claims.contains('.') => {
                Ok(Parts { header, claims, signature, signed })
            }
            _ => Err(malformed),
        }
    }
}

/// Header of a token, as far as it counts.
struct Header {
    algorithm: Algorithm,
    key_id: Option<String>,
}

impl Header {
    fn read(encoded: &str) -> Result<Header, JwtError> {
        let header = object(encoded, "the header is not a JSON object")?;
        if let Some(name) = REFUSED_MEMBERS.into_iter().find(|name| header.get(name).is_some()) {
            return Err(JwtError::RefusedHeader(name));
        }
        let algorithm = header.get("alg").and_then(Json::as_str).and_then(Algorithm::from_name);
        let key_id = match header.get("kid") {
            None => None,
            Some(Json::String(id)) => Some(id.clone()),
            Some(_) => return Err(JwtError::Malformed("`kid` is not text")),
        };
        Ok(Header { algorithm: algorithm.ok_or(JwtError::RefusedAlgorithm)?, key_id })
    }
}

/// Key of the replay check. The length separates issuer and `jti`, so that no pair can be read as another one. Without a `jti` it is the
/// digest of the signed text: an ECDSA signature can be written in two ways, so the whole token would be two keys.
fn replay_key(signed: &str, claims: &Json) -> Result<String, JwtError> {
    let id = match claims.get("jti") {
        None | Some(Json::Null) => None,
        Some(Json::String(id)) => Some(id).filter(|id| !id.is_empty()),
        Some(_) => return Err(JwtError::Malformed("`jti` is not a text")),
    };
    Ok(match id {
        Some(id) => {
            let issuer = claims.get("iss").and_then(Json::as_str).unwrap_or_default();
            let digest = Digest::of(format!("{}:{issuer}{id}", issuer.len()).as_bytes());
            format!("jwt-jti:{digest}")
        }
        None => format!("jwt:{}", Digest::of(signed.as_bytes())),
    })
}

fn decode(text: &str, problem: &'static str) -> Result<Vec<u8>, JwtError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| JwtError::Malformed(problem))
}

fn object(encoded: &str, problem: &'static str) -> Result<Json, JwtError> {
    let bytes = decode(encoded, problem)?;
    match Json::parse_bounded(&bytes, MAX_VALUES) {
        Ok(value @ Json::Object(_)) => Ok(value),
        _ => Err(JwtError::Malformed(problem)),
    }
}
