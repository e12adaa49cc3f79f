//! Secret numbers of an RSA key.

use aws_lc_rs::rsa::KeyPairComponents;
use aws_lc_rs::signature::{RsaKeyPair, RsaPublicKeyComponents};
use zeroize::Zeroizing;

use super::PrivateKeyError;
use crate::key::MAX_RSA_BITS;
use crate::ssh::buffer::Reader;

/// Reads modulus, exponent and secret numbers. The library checks that they belong together.
pub(super) fn pair(
    modulus: &[u8],
    exponent: &[u8],
    reader: &mut Reader<'_>,
) -> Result<RsaKeyPair, PrivateKeyError> {
    let mut number = || match reader.number() {
        Ok(number) if !number.is_empty() && number.len() <= MAX_RSA_BITS / 8 => Ok(number),
        _ => Err(PrivateKeyError::Malformed),
    };
    if number()? != modulus || number()? != exponent {
        return Err(PrivateKeyError::Malformed);
    }
    let (d, q_inverse, p, q) = (number()?, number()?, number()?, number()?);
    let (d_p, d_q) = (remainder(d, &one_less(p)?), remainder(d, &one_less(q)?));
    let components = KeyPairComponents {
        public_key: RsaPublicKeyComponents { n: modulus, e: exponent },
        d,
        p,
        q,
        dP: &d_p,
        dQ: &d_q,
        qInv: q_inverse,
    };
    RsaKeyPair::from_components(&components).map_err(|_| PrivateKeyError::Malformed)
}

/// A prime is odd, so that subtracting one changes its last bit only.
fn one_less(prime: &[u8]) -> Result<Zeroizing<Vec<u8>>, PrivateKeyError> {
    let mut out = Zeroizing::new(prime.to_vec());
    match out.last_mut() {
        Some(last) if *last & 1 == 1 => *last -= 1,
        _ => return Err(PrivateKeyError::Malformed),
    }
    if out.iter().all(|byte| *byte == 0) {
        return Err(PrivateKeyError::Malformed);
    }
    Ok(out)
}

/// Remainder of a division, bit by bit. OpenSSH's format leaves out `d mod (p-1)` and `d mod (q-1)`, which the library asks for; done here
/// because general libraries leave copies of secret numbers in freed memory.
fn remainder(number: &[u8], modulus: &[u8]) -> Zeroizing<Vec<u8>> {
    // One byte more than the modulus: doubling may exceed it before it is subtracted.
    let mut padded = Zeroizing::new(vec![0; 1]);
    padded.extend(modulus);
    let mut rest = Zeroizing::new(vec![0u8; padded.len()]);
    for byte in number {
        for bit in (0..8).rev() {
            let mut carry = byte >> bit & 1;
            for digit in rest.iter_mut().rev() {
                let doubled = u16::from(*digit) << 1 | u16::from(carry);
                [carry, *digit] = doubled.to_be_bytes();
            }
            if rest.as_slice() >= padded.as_slice() {
                subtract(&mut rest, &padded);
            }
        }
    }
    rest
}

fn subtract(from: &mut [u8], number: &[u8]) {
    let mut borrow = false;
    for (digit, other) in from.iter_mut().zip(number).rev() {
        let (difference, first) = digit.overflowing_sub(*other);
        let (difference, second) = difference.overflowing_sub(u8::from(borrow));
        *digit = difference;
        borrow = first || second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(bytes: &[u8]) -> u128 {
        bytes.iter().fold(0, |value, byte| value << 8 | u128::from(*byte))
    }

    proptest! {
        #[test]
        fn remainders_are_those_of_machine_numbers(number: [u8; 16], modulus: [u8; 7]) {
            prop_assume!(value(&modulus) != 0);
            prop_assert_eq!(value(&remainder(&number, &modulus)), value(&number) % value(&modulus));
        }
    }
}
