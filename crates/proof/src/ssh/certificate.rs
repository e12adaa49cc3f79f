//! SSH certificates (`PROTOCOL.certkeys`).

use super::buffer::{Malformed, Reader};
use super::public::{PublicKeyError, SshPublicKey};

/// Suffix of the types of certificates.
const SUFFIX: &str = "-cert-v01@openssh.com";

/// Certificates for users; those for hosts sign nothing here.
const USER: u32 = 1;

/// Most principals of a certificate, as in OpenSSH.
const MAX_PRINCIPALS: usize = 256;

/// SSH certificate whose authority's signature was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshCertificate {
    pub(super) key: SshPublicKey,
    pub(super) authority: SshPublicKey,
    /// Free text that the authority chose.
    pub(super) key_id: String,
    serial: u64,
    kind: u32,
    principals: Vec<String>,
    valid_after: u64,
    valid_before: u64,
    has_critical_options: bool,
}

/// Certificate that does not let its holder sign for a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateProblem {
    /// A certificate for a host.
    #[error("the certificate is for a host, not for a user")]
    NotForUsers,
    /// The validity has not begun.
    #[error("the certificate is not valid yet")]
    NotYetValid,
    /// The validity is over.
    #[error("the certificate expired")]
    Expired,
    /// The principal is not in the certificate's list, or the list is empty.
    #[error("the certificate is not for this principal")]
    OtherPrincipal,
    /// A restriction that cannot be checked for a signature.
    #[error("the certificate has critical options, which a signature cannot satisfy")]
    CriticalOptions,
}

impl SshCertificate {
    /// Whether a key's type is a certificate's.
    pub(super) fn is_certificate_type(type_name: &str) -> bool {
        type_name.ends_with(SUFFIX)
    }

    /// Reads the binary form and verifies the authority's signature.
    pub(super) fn from_blob(blob: &[u8]) -> Result<SshCertificate, PublicKeyError> {
        let mut reader = Reader::new(blob);
        let certificate_type = reader.text()?;
        let stem = certificate_type.strip_suffix(SUFFIX).ok_or(Malformed)?;
        let type_name = match stem {
            "sk-ssh-ed25519" => "sk-ssh-ed25519@openssh.com",
            "sk-ecdsa-sha2-nistp256" => "sk-ecdsa-sha2-nistp256@openssh.com",
            plain => plain,
        };
        let _nonce = reader.string()?;
        let key = SshPublicKey::read_fields(type_name, &mut reader)?;
        let serial = reader.u64()?;
        let kind = reader.u32()?;
        let key_id = reader.text()?.to_owned();
        let principals = principals(reader.string()?)?;
        let valid_after = reader.u64()?;
        let valid_before = reader.u64()?;
        let has_critical_options = !reader.string()?.is_empty();
        let _extensions = reader.string()?;
        let _reserved = reader.string()?;
        let authority = SshPublicKey::from_blob(reader.string()?)?;
        let signed =
            blob.len().checked_sub(reader.rest().len()).and_then(|end| blob.get(..end)).ok_or(Malformed)?;
        let signature = reader.string()?;
        reader.finish()?;
        authority.verify(signed, signature)?;
        Ok(SshCertificate {
            key,
            authority,
            key_id,
            serial,
            kind,
            principals,
            valid_after,
            valid_before,
            has_critical_options,
        })
    }

    /// Serial number that the authority chose.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Checks that the certificate lets its holder sign for a principal at a moment, in seconds since 1970.
    pub(super) fn check(&self, principal: &str, now: u64) -> Result<(), CertificateProblem> {
        if self.kind != USER {
            return Err(CertificateProblem::NotForUsers);
        }
        if now < self.valid_after {
            return Err(CertificateProblem::NotYetValid);
        }
        if now >= self.valid_before {
            return Err(CertificateProblem::Expired);
        }
        // A certificate without principals is valid for any of them by its format; here a principal must be named, as in ssh-keygen.
        if !self.principals.iter().any(|own| own == principal) {
            return Err(CertificateProblem::OtherPrincipal);
        }
        // Stricter than ssh-keygen, which ignores them: `source-address` or `force-command` were meant to limit what the key can do.
        if self.has_critical_options {
            return Err(CertificateProblem::CriticalOptions);
        }
        Ok(())
    }
}

fn principals(list: &[u8]) -> Result<Vec<String>, Malformed> {
    let mut reader = Reader::new(list);
    let mut found = Vec::new();
    while !reader.is_empty() {
        if found.len() == MAX_PRINCIPALS {
            return Err(Malformed);
        }
        found.push(reader.text()?.to_owned());
    }
    Ok(found)
}
