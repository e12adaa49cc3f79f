//! Sets of keys: one PEM key, or a JSON Web Key Set (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proctor_core::json::{Json, JsonError};

use super::{Algorithm, Header, JwtError};
use crate::key::{Curve, KeyError, PublicKey};

/// Longest key set, in bytes.
pub const MAX_JWKS: usize = 1024 * 1024;

/// Most keys in a set.
pub const MAX_JWKS_KEYS: usize = 100;

/// Values in a key set, at most: a key has about ten, certificates included.
const MAX_VALUES: usize = 20_000;

/// Keys that tokens are verified with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet {
    keys: Vec<Key>,
    /// False for a PEM key, which has no id: then a token's `kid` says nothing.
    has_ids: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    public: PublicKey,
    id: Option<String>,
    /// Algorithm that the key set binds the key to.
    algorithm: Option<Algorithm>,
}

/// Key set that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    /// The set is longer than [`MAX_JWKS`].
    #[error("the key set is longer than {MAX_JWKS} bytes")]
    TooLong,
    /// The set is not JSON.
    #[error("the key set is not JSON: {0}")]
    NotJson(#[from] JsonError),
    /// The set has no array `keys`.
    #[error("the key set has no array `keys`")]
    NoKeys,
    /// The set has more than [`MAX_JWKS_KEYS`] keys.
    #[error("the key set has more than {MAX_JWKS_KEYS} keys")]
    TooManyKeys,
}

impl KeySet {
    /// Set of one PEM key.
    pub fn from_pem(text: &str) -> Result<KeySet, KeyError> {
        let public = PublicKey::from_pem(text)?;
        Ok(KeySet { keys: vec![Key { public, id: None, algorithm: None }], has_ids: false })
    }

    /// Keys of a JSON Web Key Set. Keys that cannot verify signatures here (other kinds, other uses, malformed ones) are left out, as
    /// RFC 7517 says.
    pub fn from_jwks(text: &[u8]) -> Result<KeySet, JwksError> {
        if text.len() > MAX_JWKS {
            return Err(JwksError::TooLong);
        }
        KeySet::from_json(&Json::parse_bounded(text, MAX_VALUES)?)
    }

    /// [`KeySet::from_jwks`] for a set that was read already, for example one inside of a manifest.
    pub fn from_json(set: &Json) -> Result<KeySet, JwksError> {
        let keys = set.get("keys").and_then(Json::as_array).ok_or(JwksError::NoKeys)?;
        if keys.len() > MAX_JWKS_KEYS {
            return Err(JwksError::TooManyKeys);
        }
        Ok(KeySet { keys: keys.iter().filter_map(key).collect(), has_ids: true })
    }

    /// Number of keys that can verify signatures.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no key can verify signatures.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The one key that a token's header means.
    pub(super) fn select(&self, header: &Header) -> Result<&PublicKey, JwtError> {
        let named = |key: &&Key| match &header.key_id {
            Some(id) if self.has_ids => key.id.as_ref() == Some(id),
            _ => true,
        };
        let fits = |key: &&Key| {
            header.algorithm.fits(&key.public) && key.algorithm.is_none_or(|own| own == header.algorithm)
        };
        let mut candidates = self.keys.iter().filter(named).filter(fits);
        match (candidates.next(), candidates.next()) {
            (Some(key), None) => Ok(&key.public),
            (Some(_), Some(_)) => Err(JwtError::AmbiguousKey),
            // The key is there, and the header names an algorithm of another kind: fetching the set again would not help.
            (None, _) if self.names_a_key(header) => Err(JwtError::AlgorithmMismatch),
            (None, _) => Err(JwtError::UnknownKey),
        }
    }

    fn names_a_key(&self, header: &Header) -> bool {
        match &header.key_id {
            Some(id) if self.has_ids => self.keys.iter().any(|key| key.id.as_ref() == Some(id)),
            _ => !self.keys.is_empty(),
        }
    }
}

fn key(jwk: &Json) -> Option<Key> {
    let text = |name| jwk.get(name).and_then(Json::as_str);
    let is_for_signatures = jwk.get("use").is_none_or(|it| *it == "sig");
    let verifies = jwk.get("key_ops").is_none_or(|operations| {
        operations.as_array().is_some_and(|all| all.iter().any(|it| *it == "verify"))
    });
    if !is_for_signatures || !verifies {
        return None;
    }
    let algorithm = match jwk.get("alg") {
        None => None,
        Some(name) => Some(Algorithm::from_name(name.as_str()?)?),
    };
    let number = |name| URL_SAFE_NO_PAD.decode(text(name)?).ok();
    let public = match (text("kty")?, text("crv")) {
        ("RSA", _) => PublicKey::rsa(&number("n")?, &number("e")?).ok()?,
        ("EC", Some("P-256")) => point(Curve::P256, &number("x")?, &number("y")?)?,
        ("EC", Some("P-384")) => point(Curve::P384, &number("x")?, &number("y")?)?,
        ("EC", Some("P-521")) => point(Curve::P521, &number("x")?, &number("y")?)?,
        ("OKP", Some("Ed25519")) => PublicKey::ed25519(&number("x")?).ok()?,
        _ => return None,
    };
    let id = match jwk.get("kid") {
        None => None,
        Some(id) => Some(id.as_str()?.to_owned()),
    };
    algorithm.is_none_or(|own| own.fits(&public)).then_some(Key { public, id, algorithm })
}

fn point(curve: Curve, x: &[u8], y: &[u8]) -> Option<PublicKey> {
    // RFC 7518: coordinates have the curve's full length. Anything else could shift bytes from one into the other.
    if x.len() != curve.coordinate() || y.len() != curve.coordinate() {
        return None;
    }
    PublicKey::ec(curve, &[&[4], x, y].concat()).ok()
}
