//! SSH signatures as `ssh-keygen -Y sign` makes and `ssh-keygen -Y verify` checks them, without starting a process.
//!
//! Formats: `PROTOCOL.sshsig` (signatures), `PROTOCOL.key` (private keys), `PROTOCOL.certkeys` (certificates), `ssh-keygen(1)` (allowed
//! signers). DSA, `ssh-rsa` signatures (SHA-1), and RSA keys below 2048 bits are refused.

mod buffer;
mod certificate;
mod pattern;
mod private;
mod public;
mod signature;
mod signers;

pub use private::{PrivateKey, PrivateKeyError};
pub use public::SshPublicKey;
pub use signature::{MAX_SIGNATURE, Signer, SshSignature, SshSignatureError};
pub use signers::{AllowedSigners, MAX_SIGNERS, Request, SignerError};

use jiff::tz::TimeZone;

/// Namespace of signatures in workflows, where a manifest names none.
pub const DEFAULT_NAMESPACE: &str = "agentcli";

/// Signs a message as `ssh-keygen -Y sign -n NAMESPACE` does; the answer is the armoured signature.
pub fn sign(namespace: &str, message: &[u8], key: &PrivateKey) -> Result<String, PrivateKeyError> {
    signature::sign(namespace, message, key)
}

/// Verifies an armoured signature as `ssh-keygen -Y verify -n NAMESPACE -I PRINCIPAL -f ALLOWED_SIGNERS` does, and returns its signer.
pub fn verify(
    signers: &AllowedSigners,
    request: &Request<'_>,
    message: &[u8],
    armoured: &str,
) -> Result<Signer, SignerError> {
    let signature = SshSignature::from_armoured(armoured)?;
    signature.verify(request.namespace, message)?;
    signers.check(&signature.signer, request)?;
    Ok(signature.signer)
}

/// Time zone of the machine, in which times of allowed signers without `Z` are read; UTC where the machine names none.
pub fn local_zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

#[cfg(test)]
mod tests;
