//! Signed notes (C2SP signed-note): a text anybody can read, followed by lines of signatures.
//!
//! A note is the text, an empty line, and one or more lines `— <name> <base64 of key identifier and signature>`.
//! Reading is strict: a note that is read is printed back byte for byte.

#[cfg(test)]
mod tests;

use crate::keys::{Algorithm, KeyId, KeyNameError, SecretKey, VerifierKey, check_key_name};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::fmt;

/// The largest note, in bytes.
pub const MAX_NOTE_BYTES: usize = 64 * 1024;

/// The most signatures of one note.
pub const MAX_SIGNATURES: usize = 32;

/// The latest time a cosignature may carry: beyond it, signed and unsigned readers would disagree.
pub const MAX_TIME: u64 = i64::MAX as u64;

/// The prefix of a signature line: an em dash and a space.
const SIGNATURE_PREFIX: &str = "— ";

/// A text with signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<NoteSignature>,
}

/// A signature line of a note, not verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteSignature {
    name: String,
    key_id: KeyId,
    signature: Vec<u8>,
}

/// Syntax error in a signature line of a note.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureLineError {
    /// The line does not end in a newline.
    #[error("it does not end in a newline")]
    NoNewline,
    /// The prefix is missing.
    #[error("it does not begin with an em dash and a space")]
    NoDash,
    /// The signature is missing after the name.
    #[error("it has no signature after the name")]
    NoSignature,
    /// The name is not one of a key.
    #[error(transparent)]
    Name(#[from] KeyNameError),
    /// The signature is not base64 in its canonical spelling.
    #[error("the signature is not canonical base64")]
    Base64,
    /// The signature is only a key identifier.
    #[error("the signature has no bytes after the key identifier")]
    NoBytes,
}

/// Error of parsing, signing or verifying a note.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The note is too large.
    #[error("the note has {bytes} bytes; at most 65536 are allowed")]
    TooLarge {
        /// Length in bytes.
        bytes: usize,
    },
    /// The note is not text.
    #[error("the note is not valid UTF-8")]
    NotText,
    /// The note has a control character other than newline.
    #[error("the note has the control character {character:?}; only newlines are allowed")]
    ControlCharacter {
        /// The character.
        character: char,
    },
    /// The text does not end in a newline.
    #[error("the note's text does not end in a newline")]
    TextEnd,
    /// No empty line separates the text from the signatures.
    #[error("the note has no empty line between text and signatures")]
    NoSignatures,
    /// A signature line is not of the form.
    #[error("signature line {line} of the note is not `— <name> <base64>` and a newline: {reason}")]
    SignatureLine {
        /// The line among the signature lines, from 1.
        line: usize,
        /// The violated rule.
        reason: SignatureLineError,
    },
    /// The note has too many signatures.
    #[error("the note has more than 32 signatures")]
    TooManySignatures,
    /// The key makes other signatures than this.
    #[error("key `{name}` is of algorithm `{found}`, but `{expected}` is needed here")]
    WrongAlgorithm {
        /// The key's name.
        name: String,
        /// The algorithm needed.
        expected: Algorithm,
        /// The key's algorithm.
        found: Algorithm,
    },
    /// The time is beyond what a cosignature can carry.
    #[error("time {time} is beyond what a cosignature can carry")]
    TimeTooLarge {
        /// The time, in seconds since 1970.
        time: u64,
    },
    /// The key's signature is missing.
    #[error("the note has no signature by `{name}` (key identifier `{id}`)")]
    NotSigned {
        /// The key's name.
        name: String,
        /// The key's identifier.
        id: KeyId,
    },
    /// A signature in the key's name was not made by the key.
    #[error("the signature of `{name}` (key identifier `{id}`) does not fit the note; the note was changed")]
    BadSignature {
        /// The key's name.
        name: String,
        /// The key's identifier.
        id: KeyId,
    },
}

impl Note {
    /// A note of this text, without signatures yet. The text must end in a newline.
    pub fn new(text: String) -> Result<Self, NoteError> {
        check_text(&text)?;
        if !text.ends_with('\n') {
            return Err(NoteError::TextEnd);
        }
        Ok(Self { text, signatures: Vec::new() })
    }

    /// Reads a signed note.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        if bytes.len() > MAX_NOTE_BYTES {
            return Err(NoteError::TooLarge { bytes: bytes.len() });
        }
        let whole = std::str::from_utf8(bytes).map_err(|_| NoteError::NotText)?;
        check_text(whole)?;
        // The text may have empty lines itself: the last one separates.
        let (text, lines) = whole.rsplit_once("\n\n").ok_or(NoteError::NoSignatures)?;
        if lines.is_empty() {
            return Err(NoteError::NoSignatures);
        }
        let mut signatures = Vec::new();
        for (number, line) in (1..).zip(lines.split_inclusive('\n')) {
            if signatures.len() == MAX_SIGNATURES {
                return Err(NoteError::TooManySignatures);
            }
            let signature =
                parse_line(line).map_err(|reason| NoteError::SignatureLine { line: number, reason })?;
            signatures.push(signature);
        }
        Ok(Self { text: format!("{text}\n"), signatures })
    }

    /// The text, with its final newline.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signature lines, in order.
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Signs the text with an Ed25519 key.
    pub fn sign(&mut self, key: &SecretKey) -> Result<(), NoteError> {
        need(key.verifier_key(), Algorithm::Ed25519)?;
        let signature = key.sign(self.text.as_bytes()).to_vec();
        self.add(NoteSignature::by(key, signature))
    }

    /// The cosignature line of a witness for this text at this time (seconds since 1970).
    pub fn cosign(&self, key: &SecretKey, time: u64) -> Result<NoteSignature, NoteError> {
        need(key.verifier_key(), Algorithm::CosignatureV1)?;
        if time > MAX_TIME {
            return Err(NoteError::TimeTooLarge { time });
        }
        let mut signature = time.to_be_bytes().to_vec();
        signature.extend_from_slice(&key.sign(cosigned_message(time, &self.text).as_bytes()));
        Ok(NoteSignature::by(key, signature))
    }

    /// Adds a signature line; one of the same key is replaced.
    pub fn add(&mut self, signature: NoteSignature) -> Result<(), NoteError> {
        let same_key =
            |known: &NoteSignature| known.name == signature.name && known.key_id == signature.key_id;
        let others = self.signatures.iter().filter(|known| !same_key(known));
        let bytes = others.map(NoteSignature::line_length).sum::<usize>()
            + signature.line_length()
            + self.text.len()
            + 1;
        if bytes > MAX_NOTE_BYTES {
            return Err(NoteError::TooLarge { bytes });
        }
        if let Some(known) = self.signatures.iter_mut().find(|known| same_key(known)) {
            *known = signature;
            return Ok(());
        }
        if self.signatures.len() == MAX_SIGNATURES {
            return Err(NoteError::TooManySignatures);
        }
        self.signatures.push(signature);
        Ok(())
    }

    /// Checks that the key signed the text. A wrong signature in its name refuses the note.
    pub fn verify(&self, key: &VerifierKey) -> Result<(), NoteError> {
        need(key, Algorithm::Ed25519)?;
        self.each_by(key, |signature| {
            let signature: &[u8; 64] = signature.try_into().ok()?;
            key.accepts(self.text.as_bytes(), signature).then_some(0)
        })
        .map(|_| ())
    }

    /// Checks that the witness cosigned the text, and tells when it did (seconds since 1970).
    ///
    /// Of several cosignatures by the same key, all must be right and the latest time counts.
    pub fn verify_cosignature(&self, key: &VerifierKey) -> Result<u64, NoteError> {
        need(key, Algorithm::CosignatureV1)?;
        self.each_by(key, |signature| {
            let (time, signature) = signature.split_first_chunk::<8>()?;
            let signature: &[u8; 64] = signature.try_into().ok()?;
            let time = u64::from_be_bytes(*time);
            let right =
                time <= MAX_TIME && key.accepts(cosigned_message(time, &self.text).as_bytes(), signature);
            right.then_some(time)
        })
    }

    /// Checks every signature in the key's name; returns the greatest result.
    fn each_by(&self, key: &VerifierKey, check: impl Fn(&[u8]) -> Option<u64>) -> Result<u64, NoteError> {
        let mut greatest = None;
        for line in self.signatures.iter().filter(|line| line.name == key.name() && line.key_id == key.id()) {
            let Some(value) = check(&line.signature) else {
                return Err(NoteError::BadSignature { name: key.name().to_owned(), id: key.id() });
            };
            greatest = greatest.max(Some(value));
        }
        greatest.ok_or_else(|| NoteError::NotSigned { name: key.name().to_owned(), id: key.id() })
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| signature.fmt(formatter))
    }
}

impl NoteSignature {
    /// Reads one signature line, with its newline.
    pub fn parse(line: &str) -> Result<Self, NoteError> {
        check_text(line)?;
        parse_line(line).map_err(|reason| NoteError::SignatureLine { line: 1, reason })
    }

    /// The name of the key that is said to have signed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The identifier of the key that is said to have signed.
    pub const fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// The signature's bytes.
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    fn by(key: &SecretKey, signature: Vec<u8>) -> Self {
        Self { name: key.name().to_owned(), key_id: key.verifier_key().id(), signature }
    }

    fn line_length(&self) -> usize {
        SIGNATURE_PREFIX.len() + self.name.len() + (self.signature.len() + 4).div_ceil(3) * 4 + 2
    }
}

impl fmt::Display for NoteSignature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.key_id.0.to_vec();
        bytes.extend_from_slice(&self.signature);
        writeln!(formatter, "{SIGNATURE_PREFIX}{} {}", self.name, STANDARD.encode(bytes))
    }
}

/// The message that a witness signs: a header for domain separation, the time, and the text.
fn cosigned_message(time: u64, text: &str) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}

fn need(key: &VerifierKey, expected: Algorithm) -> Result<(), NoteError> {
    if key.algorithm() == expected {
        return Ok(());
    }
    Err(NoteError::WrongAlgorithm { name: key.name().to_owned(), expected, found: key.algorithm() })
}

fn check_text(text: &str) -> Result<(), NoteError> {
    if text.len() > MAX_NOTE_BYTES {
        return Err(NoteError::TooLarge { bytes: text.len() });
    }
    let unwanted = |character: &char| character.is_control() && *character != '\n';
    text.chars().find(unwanted).map_or(Ok(()), |character| Err(NoteError::ControlCharacter { character }))
}

fn parse_line(line: &str) -> Result<NoteSignature, SignatureLineError> {
    let line = line.strip_suffix('\n').ok_or(SignatureLineError::NoNewline)?;
    let rest = line.strip_prefix(SIGNATURE_PREFIX).ok_or(SignatureLineError::NoDash)?;
    let (name, encoded) = rest.split_once(' ').ok_or(SignatureLineError::NoSignature)?;
    check_key_name(name)?;
    // This decoder refuses missing padding and stray bits, so each signature has one spelling.
    let bytes = STANDARD.decode(encoded).map_err(|_| SignatureLineError::Base64)?;
    match bytes.split_first_chunk::<4>() {
        Some((key_id, signature)) if !signature.is_empty() => {
            Ok(NoteSignature { name: name.to_owned(), key_id: KeyId(*key_id), signature: signature.to_vec() })
        }
        _ => Err(SignatureLineError::NoBytes),
    }
}
