//! Shape of public keys: enough to tell a public key from something else, and the size of an RSA modulus.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proctor_core::json::Json;

/// Smallest RSA key that is accepted.
pub(super) const LEAST_RSA_BITS: usize = 2048;

/// Object identifier of RSA keys, 1.2.840.113549.1.1.1.
const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// Most keys in a set.
const MOST_KEYS: usize = 100;

/// Whether the text is a public key in PEM.
pub(super) fn is_public_key(text: &str) -> bool {
    decoded(text, &["PUBLIC KEY", "RSA PUBLIC KEY"]).is_some()
}

/// Whether the text is a certificate in PEM.
pub(super) fn is_certificate(text: &str) -> bool {
    decoded(text, &["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"]).is_some()
}

/// Bits of an RSA public key in PEM; `None` for other keys.
pub(super) fn rsa_bits(text: &str) -> Option<usize> {
    if let Some(key) = decoded(text, &["RSA PUBLIC KEY"]) {
        return modulus_bits(sequence(&key)?);
    }
    // SubjectPublicKeyInfo: the algorithm, then the key as a string of bits, whose first byte counts the unused ones.
    let info = decoded(text, &["PUBLIC KEY"])?;
    let (algorithm, rest) = element(sequence(&info)?, 0x30)?;
    let (identifier, _) = element(algorithm, 0x06)?;
    if identifier != RSA_ENCRYPTION {
        return None;
    }
    let (bits, _) = element(rest, 0x03)?;
    modulus_bits(sequence(bits.split_first()?.1)?)
}

/// Whether the value is a set of public keys, as JSON Web Keys.
pub(super) fn is_key_set(set: &Json) -> bool {
    let Some(keys) = set.get("keys").and_then(Json::as_array) else { return false };
    !keys.is_empty() && keys.len() <= MOST_KEYS && keys.iter().all(is_public_web_key)
}

fn is_public_web_key(key: &Json) -> bool {
    // The private part of RSA, EC and Edwards keys is `d`; symmetric keys are `k`.
    if key.get("d").is_some() || key.get("k").is_some() {
        return false;
    }
    match key.get("kty").and_then(Json::as_str) {
        Some("RSA") => key
            .get("n")
            .and_then(Json::as_str)
            .and_then(|modulus| URL_SAFE_NO_PAD.decode(modulus).ok())
            .is_some_and(|modulus| significant_bits(&modulus) >= LEAST_RSA_BITS),
        Some("EC" | "OKP") => true,
        _ => false,
    }
}

/// The DER inside a PEM text with one of these labels.
fn decoded(text: &str, labels: &[&str]) -> Option<Vec<u8>> {
    // Lines before the block are comments.
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    if !labels.contains(&label) {
        return None;
    }
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let der = STANDARD.decode(body).ok()?;
    sequence(&der)?;
    Some(der)
}

fn modulus_bits(key: &[u8]) -> Option<usize> {
    element(key, 0x02).map(|(modulus, _)| significant_bits(modulus))
}

fn significant_bits(number: &[u8]) -> usize {
    let number = number.iter().position(|byte| *byte != 0).and_then(|start| number.get(start..));
    match number.and_then(<[u8]>::split_first) {
        None => 0,
        Some((first, rest)) => rest.len() * 8 + (8 - first.leading_zeros() as usize),
    }
}

fn sequence(der: &[u8]) -> Option<&[u8]> {
    element(der, 0x30).map(|(content, _)| content)
}

/// Content of the first DER element, which has this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = der.split_first()?;
    if *first != tag {
        return None;
    }
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (digits.iter().fold(0usize, |sum, digit| (sum << 8) | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests;
