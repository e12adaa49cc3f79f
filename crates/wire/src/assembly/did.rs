//! `did:key` identities: `did:key:z`, then in base58 the two bytes that mean Ed25519 and the public key.

use ed25519_dalek::{Signature, VerifyingKey};

/// The bytes of a public key.
pub const KEY_LEN: usize = 32;

/// The bytes of a signature.
pub const SIGNATURE_LEN: usize = 64;

const PREFIX: &str = "did:key:z";
/// The multicodec number of an Ed25519 public key, as a varint.
const ED25519: [u8; 2] = [0xED, 0x01];
const TAGGED_LEN: usize = ED25519.len() + KEY_LEN;
/// Base58 is decoded in quadratic time, so what cannot be a key is not even tried.
const MAX_DIGITS: usize = 64;

/// Error of checking an identity, or a proof of holding its key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum DidError {
    /// The text does not start like a `did:key` in base58.
    #[error("agent id is not a did:key: it must start with `did:key:z`")]
    NotDidKey,
    /// The identifier is not base58, or too long for a key.
    #[error("agent id is not a did:key: what follows `did:key:z` must be base58")]
    NotBase58,
    /// The key in it is of another kind.
    #[error("agent id holds no Ed25519 key: the did:key must be of 0xED 0x01 and 32 bytes")]
    NotEd25519,
    /// The public key is not written as it must be.
    #[error("public key must be 64 lowercase hexadecimal digits")]
    PublicKeyForm,
    /// The public key is no point of the curve, or one that proves nothing.
    #[error("public key is not a valid Ed25519 key")]
    PublicKeyValue,
    /// The public key and the identity differ.
    #[error("public key is not the key of the agent id")]
    Mismatch,
    /// The signature is of another length, or by another key, or over other bytes.
    #[error("possession proof does not verify: it must be the 64-byte Ed25519 signature of the nonce")]
    Proof,
}

/// The `did:key` of a public key.
pub fn encode(key: &[u8; KEY_LEN]) -> String {
    let mut tagged = [0; TAGGED_LEN];
    let (codec, rest) = tagged.split_at_mut(ED25519.len());
    codec.copy_from_slice(&ED25519);
    rest.copy_from_slice(key);
    format!("{PREFIX}{}", bs58::encode(tagged).into_string())
}

/// The public key in a `did:key`. Whether it is a point of the curve is not looked at: see [`bound_key`].
pub fn decode(did: &str) -> Result<[u8; KEY_LEN], DidError> {
    let digits = did.strip_prefix(PREFIX).ok_or(DidError::NotDidKey)?;
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return Err(DidError::NotBase58);
    }
    // Room for whatever the longest text can hold, so that a key of another length is told from bad base58.
    let mut tagged = [0; MAX_DIGITS];
    let length = bs58::decode(digits).onto(&mut tagged).map_err(|_| DidError::NotBase58)?;
    tagged
        .get(..length)
        .and_then(|tagged| tagged.strip_prefix(&ED25519))
        .and_then(|key| key.try_into().ok())
        .ok_or(DidError::NotEd25519)
}

/// A public key as the messages spell it: lowercase hexadecimal.
pub fn key_text(key: &[u8; KEY_LEN]) -> String {
    hex::encode(key)
}

/// The key written as 64 lowercase hexadecimal digits.
pub fn read_key(public_key: &str) -> Result<VerifyingKey, DidError> {
    let mut key = [0; KEY_LEN];
    if public_key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(DidError::PublicKeyForm);
    }
    hex::decode_to_slice(public_key, &mut key).map_err(|_| DidError::PublicKeyForm)?;
    let key = VerifyingKey::from_bytes(&key).map_err(|_| DidError::PublicKeyValue)?;
    // With a key of small order one signature fits many messages.
    if key.is_weak() { Err(DidError::PublicKeyValue) } else { Ok(key) }
}

/// The key of a registration: `public_key` must be well written, valid, and the very key that is inside `agent_id`.
///
/// Errors come in the order of the checks: the identity's form, the key's form, the key's value, then that they are the same.
pub fn bound_key(agent_id: &str, public_key: &str) -> Result<VerifyingKey, DidError> {
    let inside = match decode(agent_id) {
        // A did:key of another kind is well written, only never bound to an Ed25519 key.
        Err(DidError::NotEd25519) => None,
        other => Some(other?),
    };
    let key = read_key(public_key)?;
    match inside {
        Some(inside) if inside == *key.as_bytes() => Ok(key),
        Some(_) => Err(DidError::Mismatch),
        None => Err(DidError::NotEd25519),
    }
}

/// Checks that the holder of `key` signed `nonce`, strictly.
pub fn verify_possession(key: &VerifyingKey, nonce: &[u8], proof: &[u8]) -> Result<(), DidError> {
    let signature = Signature::from_slice(proof).map_err(|_| DidError::Proof)?;
    key.verify_strict(nonce, &signature).map_err(|_| DidError::Proof)
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer, SigningKey};
    use proptest::prelude::*;

    use super::*;

    fn pair(seed: u8) -> (SigningKey, String, String) {
        let secret = SigningKey::from_bytes(&[seed; 32]);
        let key = secret.verifying_key().to_bytes();
        (secret, encode(&key), key_text(&key))
    }

    #[test]
    fn a_published_identity_decodes_to_its_key() {
        // The Ed25519 example of the did:key specification.
        let did = "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp";
        let key = decode(did).unwrap();
        assert_eq!(key_text(&key), "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29");
        assert_eq!(encode(&key), did);
    }

    #[test]
    fn a_registration_binds_identity_and_key() {
        let (_, did, key) = pair(1);
        let (_, other_did, other_key) = pair(2);
        assert_eq!(key_text(bound_key(&did, &key).unwrap().as_bytes()), key);
        assert_eq!(bound_key(&did, &other_key), Err(DidError::Mismatch));
        assert_eq!(bound_key(&other_did, &key), Err(DidError::Mismatch));
        assert_eq!(bound_key("agent-001", &key), Err(DidError::NotDidKey));
        assert_eq!(bound_key("did:web:example.com", &key), Err(DidError::NotDidKey));
        assert_eq!(bound_key("did:key:z", &key), Err(DidError::NotBase58));
        assert_eq!(bound_key("did:key:z0OIl", &key), Err(DidError::NotBase58));
        assert_eq!(bound_key(&format!("{did}{}", "1".repeat(100_000)), &key), Err(DidError::NotBase58));
        assert_eq!(bound_key("did:key:z6Mkm5rByiqq5UNbvPFPfXtGJwdg2kD1T", &key), Err(DidError::NotEd25519));
        // The key's form is looked at before what the did holds.
        assert_eq!(bound_key("did:key:z6Mkm5rByiqq5UNbvPFPfXtGJwdg2kD1T", "x"), Err(DidError::PublicKeyForm));
        for form in
            [key.to_uppercase(), format!("0x{key}"), format!("{key} "), String::new(), key[2..].to_owned()]
        {
            assert_eq!(bound_key(&did, &form), Err(DidError::PublicKeyForm), "{form}");
        }
    }

    #[test]
    fn keys_that_prove_nothing_are_refused() {
        let identity = format!("01{}", "0".repeat(62));
        let no_point = format!("02{}", "0".repeat(62));
        assert_eq!(read_key(&identity), Err(DidError::PublicKeyValue));
        assert_eq!(read_key(&no_point), Err(DidError::PublicKeyValue));
    }

    #[test]
    fn a_proof_fits_one_key_and_one_nonce() {
        let (secret, did, key) = pair(1);
        let bound = bound_key(&did, &key).unwrap();
        let proof = secret.sign(&[7; 32]).to_bytes();
        assert_eq!(verify_possession(&bound, &[7; 32], &proof), Ok(()));
        assert_eq!(verify_possession(&bound, &[8; 32], &proof), Err(DidError::Proof));
        assert_eq!(verify_possession(&bound, &[7; 32], &proof[1..]), Err(DidError::Proof));
        assert_eq!(verify_possession(&bound, &[7; 32], &[]), Err(DidError::Proof));
        let other = pair(2).0.verifying_key();
        assert_eq!(verify_possession(&other, &[7; 32], &proof), Err(DidError::Proof));
    }

    proptest! {
        #[test]
        fn every_key_comes_back(key: [u8; KEY_LEN]) {
            prop_assert_eq!(decode(&encode(&key)), Ok(key));
        }

        #[test]
        fn a_text_that_decodes_is_the_one_text_of_its_key(text in "(did:key:z)?[1-9A-HJ-NP-Za-km-z]{0,60}") {
            if let Ok(key) = decode(&text) {
                prop_assert_eq!(encode(&key), text);
            }
        }

        #[test]
        fn no_text_is_a_surprise(text: String, key: String) {
            let _ = bound_key(&text, &key);
            let _ = bound_key(&format!("did:key:z{text}"), &key);
        }
    }
}
