//! Allowed signers: the file that says which keys sign for which principals (`ALLOWED SIGNERS` of `ssh-keygen(1)`).

mod line;

use jiff::tz::TimeZone;
use proctor_core::time::Timestamp;

use super::certificate::CertificateProblem;
use super::pattern::list_matches;
use super::public::SshPublicKey;
use super::signature::{Signer, SshSignatureError};

/// Longest file of allowed signers, in bytes.
pub const MAX_SIGNERS: usize = 1024 * 1024;

/// Most lines that are read.
const MAX_LINES: usize = 10_000;

/// Longest principal or namespace that is compared with patterns: patterns cost the product of both lengths.
const MAX_NAME: usize = 256;

/// Allowed signers, in the order of their lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedSigners {
    entries: Vec<Entry>,
    /// Lines that cannot be read. As in ssh-keygen they allow nobody, and other lines count.
    bad_lines: Vec<usize>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    line: usize,
    principals: String,
    is_authority: bool,
    namespaces: Option<String>,
    /// Seconds since 1970, both inclusive.
    valid_after: Option<i64>,
    valid_before: Option<i64>,
    key: SshPublicKey,
}

/// Question to the allowed signers.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Principal that the signature must belong to.
    pub principal: &'a str,
    /// Namespace that the signature must be for.
    pub namespace: &'a str,
    /// Present moment.
    pub now: Timestamp,
}

/// SSH signature without an allowed signer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignerError {
    /// The signature itself.
    #[error(transparent)]
    Signature(#[from] SshSignatureError),
    /// The file is longer than [`MAX_SIGNERS`], or has too many lines.
    #[error("the file of allowed signers is longer than {MAX_SIGNERS} bytes or {MAX_LINES} lines")]
    TooLong,
    /// A principal or namespace longer than any in use.
    #[error("the principal and the namespace have at most {MAX_NAME} bytes")]
    NameTooLong,
    /// No line has the key for the principal.
    #[error("no line of the allowed signers has this key for `{principal}`{}", unread(.bad_lines))]
    NotAllowed {
        /// Principal of the request.
        principal: String,
        /// Lines that could not be read.
        bad_lines: Vec<usize>,
    },
    /// The line with the key is for other namespaces.
    #[error("line {0} of the allowed signers does not permit the namespace")]
    NamespaceNotAllowed(usize),
    /// The line's validity has not begun.
    #[error("line {0} of the allowed signers is not valid yet")]
    NotYetValid(usize),
    /// The line's validity is over.
    #[error("line {0} of the allowed signers expired")]
    Expired(usize),
    /// The certificate does not authorise the signature.
    #[error(transparent)]
    Certificate(#[from] CertificateProblem),
}

fn unread(lines: &[usize]) -> String {
    match lines {
        [] => String::new(),
        [first, ..] => format!(" (lines that cannot be read: {}, the first is line {first})", lines.len()),
    }
}

impl AllowedSigners {
    /// Reads a file's text. Times without `Z` are local times of `zone`, summer time included; a time that a change of clocks repeats or
    /// skips is taken as jiff's "compatible" rule says. ssh-keygen reads them as standard time all year, one hour later in summer: write
    /// `Z`, and both agree.
    pub fn parse(text: &str, zone: &TimeZone) -> Result<AllowedSigners, SignerError> {
        if text.len() > MAX_SIGNERS {
            return Err(SignerError::TooLong);
        }
        let mut signers = AllowedSigners::default();
        for (index, line) in text.lines().enumerate() {
            if index == MAX_LINES {
                return Err(SignerError::TooLong);
            }
            let line = line.trim_matches([' ', '\t', '\r']);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line::parse(line, index + 1, zone) {
                Some(entry) => signers.entries.push(entry),
                None => signers.bad_lines.push(index + 1),
            }
        }
        Ok(signers)
    }

    /// Whether no line could be read.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Checks that a line allows the signer: the first line that does decides. The refusal of the last line that has the key is reported.
    pub fn check(&self, signer: &Signer, request: &Request<'_>) -> Result<(), SignerError> {
        if request.principal.len() > MAX_NAME || request.namespace.len() > MAX_NAME {
            return Err(SignerError::NameTooLong);
        }
        let mut refusal = SignerError::NotAllowed {
            principal: request.principal.to_owned(),
            bad_lines: self.bad_lines.clone(),
        };
        for entry in &self.entries {
            match entry.check(signer, request) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(problem) => refusal = problem,
            }
        }
        Err(refusal)
    }
}

impl Entry {
    /// Whether the line allows the signer. A line without the key, or for other principals, says nothing about it.
    fn check(&self, signer: &Signer, request: &Request<'_>) -> Result<bool, SignerError> {
        let has_key = match signer {
            Signer::Key(key) => !self.is_authority && self.key == *key,
            Signer::Certificate(certificate) => self.is_authority && self.key == certificate.authority,
        };
        // Keys are compared first: of all the lines few have the key, and patterns are dear.
        if !has_key || !list_matches(&self.principals, request.principal) {
            return Ok(false);
        }
        let now = request.now.micros().div_euclid(1_000_000);
        if let Signer::Certificate(certificate) = signer {
            certificate.check(request.principal, u64::try_from(now).unwrap_or(0))?;
        }
        if self.namespaces.as_ref().is_some_and(|patterns| !list_matches(patterns, request.namespace)) {
            return Err(SignerError::NamespaceNotAllowed(self.line));
        }
        if self.valid_after.is_some_and(|begin| now < begin) {
            return Err(SignerError::NotYetValid(self.line));
        }
        if self.valid_before.is_some_and(|end| now > end) {
            return Err(SignerError::Expired(self.line));
        }
        Ok(true)
    }
}
