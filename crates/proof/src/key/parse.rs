//! Readers of public keys.

use x509_parser::der_parser::Oid;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_PKCS1_RSAENCRYPTION,
    OID_PKCS1_RSASSAPSS, OID_SIG_ED448, OID_SIG_ED25519,
};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::RSAPublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::{Curve, KeyError, MAX_RSA_BITS, MIN_RSA_BITS, Material, PublicKey};
use crate::pem;

pub(super) fn pem(text: &str) -> Result<PublicKey, KeyError> {
    let blocks = pem::blocks(text)?;
    let block = match blocks.as_slice() {
        [] => return Err(KeyError::NoBlock),
        [block] => block,
        _ => return Err(KeyError::SeveralBlocks),
    };
    match block.label.as_str() {
        "PUBLIC KEY" => public_key_info(&block.bytes),
        "RSA PUBLIC KEY" => rsa_sequence(&block.bytes, false),
        "CERTIFICATE" => match X509Certificate::from_der(&block.bytes) {
            Ok(([], certificate)) => PublicKey::from_info(certificate.public_key()),
            _ => Err(KeyError::Malformed),
        },
        label if label.ends_with("PRIVATE KEY") => Err(KeyError::PrivateKey),
        label => Err(KeyError::OtherBlock(label.chars().take(40).collect())),
    }
}

fn public_key_info(der: &[u8]) -> Result<PublicKey, KeyError> {
    match SubjectPublicKeyInfo::from_der(der) {
        Ok(([], info)) => PublicKey::from_info(&info),
        _ => Err(KeyError::Malformed),
    }
}

impl PublicKey {
    /// Key of a SubjectPublicKeyInfo, as certificates have it.
    pub(crate) fn from_info(info: &SubjectPublicKeyInfo<'_>) -> Result<PublicKey, KeyError> {
        let bytes: &[u8] = &info.subject_public_key.data;
        let algorithm = &info.algorithm.algorithm;
        if *algorithm == OID_PKCS1_RSAENCRYPTION {
            rsa_sequence(bytes, false)
        } else if *algorithm == OID_PKCS1_RSASSAPSS {
            rsa_sequence(bytes, true)
        } else if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
            let parameters = info.algorithm.parameters.as_ref().ok_or(KeyError::Malformed)?;
            // Explicit curve parameters are refused: a forger could choose the generator.
            let curve = parameters.as_oid().map_err(|_| KeyError::Unsupported)?;
            ec(named_curve(&curve)?, bytes)
        } else if *algorithm == OID_SIG_ED25519 {
            PublicKey::ed25519(bytes)
        } else if *algorithm == OID_SIG_ED448 {
            Err(KeyError::Ed448)
        } else {
            Err(KeyError::Unsupported)
        }
    }
}

fn named_curve(curve: &Oid<'_>) -> Result<Curve, KeyError> {
    [(OID_EC_P256, Curve::P256), (OID_NIST_EC_P384, Curve::P384), (OID_NIST_EC_P521, Curve::P521)]
        .into_iter()
        .find_map(|(oid, known)| (oid == *curve).then_some(known))
        .ok_or(KeyError::Unsupported)
}

fn rsa_sequence(der: &[u8], only_pss: bool) -> Result<PublicKey, KeyError> {
    match RSAPublicKey::from_der(der) {
        Ok(([], key)) => {
            let is_negative = |number: &[u8]| number.first().is_none_or(|byte| byte & 0x80 != 0);
            if is_negative(key.modulus) || is_negative(key.exponent) {
                return Err(KeyError::Malformed);
            }
            rsa(key.modulus, key.exponent, only_pss)
        }
        _ => Err(KeyError::Malformed),
    }
}

pub(super) fn rsa(modulus: &[u8], exponent: &[u8], only_pss: bool) -> Result<PublicKey, KeyError> {
    let (modulus, exponent) = (without_zeros(modulus), without_zeros(exponent));
    let bits = modulus.len() * 8 - modulus.first().map_or(0, |byte| byte.leading_zeros() as usize);
    if !(MIN_RSA_BITS..=MAX_RSA_BITS).contains(&bits) {
        return Err(KeyError::RsaSize(bits));
    }
    // An even exponent, or 1, verifies forgeries; above 33 bits the library refuses.
    let is_odd = |number: &[u8]| number.last().is_some_and(|byte| byte & 1 == 1);
    if exponent == [1] || exponent.len() > 5 || !is_odd(exponent) || !is_odd(modulus) {
        return Err(KeyError::Malformed);
    }
    Ok(PublicKey(Material::Rsa { modulus: modulus.to_vec(), exponent: exponent.to_vec(), only_pss }))
}

pub(super) fn ec(curve: Curve, point: &[u8]) -> Result<PublicKey, KeyError> {
    if point.first() != Some(&4) || point.len() != 1 + 2 * curve.coordinate() {
        return Err(KeyError::Malformed);
    }
    Ok(PublicKey(Material::Ec { curve, point: point.to_vec() }))
}

pub(crate) fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
