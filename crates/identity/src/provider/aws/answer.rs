//! Answers of STS: XML, read by a streaming parser and bounded in depth.

use proctor_core::time::Timestamp;
use proctor_proof::secret::Secret;
use quick_xml::Reader;
use quick_xml::events::Event;
use zeroize::Zeroizing;

use super::Context;
use crate::error::IdentityError;
use crate::http::Reply;
use crate::provider::oauth::check_token;

/// Deepest element: answers of STS have five levels.
const MAX_DEPTH: usize = 16;

/// Error codes of STS. Others are not repeated: they may hold a secret.
const ERROR_CODES: &[&str] = &[
    "AccessDenied",
    "ExpiredToken",
    "ExpiredTokenException",
    "IDPCommunicationError",
    "IDPRejectedClaim",
    "IncompleteSignature",
    "InternalFailure",
    "InvalidAction",
    "InvalidClientTokenId",
    "InvalidIdentityToken",
    "MalformedPolicyDocument",
    "MissingAuthenticationToken",
    "MissingParameter",
    "OptInRequired",
    "PackedPolicyTooLarge",
    "RegionDisabledException",
    "RequestExpired",
    "ServiceUnavailable",
    "SignatureDoesNotMatch",
    "Throttling",
    "ThrottlingException",
    "ValidationError",
];

/// Temporary keys of a role.
pub(super) struct Issued {
    pub(super) key_id: Secret,
    pub(super) secret_key: Secret,
    pub(super) session_token: Secret,
    pub(super) expires_at: Timestamp,
}

pub(super) fn read(context: &Context<'_>, reply: &Reply) -> Result<Issued, IdentityError> {
    if !reply.is_success() {
        let code = element(&reply.body, &["Error", "Code"]).ok().flatten();
        let word = code.and_then(|code| ERROR_CODES.iter().copied().find(|known| *known == code.as_str()));
        return Err(IdentityError::Refused { status: reply.status, word });
    }
    let part = |name: &str| {
        let found = element(&reply.body, &["Credentials", name])?;
        let found = found.filter(|text| !text.is_empty());
        found.ok_or(IdentityError::Answer("lacks a part of the credentials"))
    };
    let secret = |name: &str| {
        let secret = context.remember(Secret::new(part(name)?.as_str()));
        check_token(&secret).map_err(|_| IdentityError::Answer("has malformed credentials"))?;
        Ok::<_, IdentityError>(secret)
    };
    let expires_at =
        Timestamp::parse(&part("Expiration")?).ok_or(IdentityError::Answer("has an unreadable expiry"))?;
    if expires_at <= context.now() {
        return Err(IdentityError::Answer("has credentials that expired already"));
    }
    Ok(Issued {
        key_id: secret("AccessKeyId")?,
        secret_key: secret("SecretAccessKey")?,
        session_token: secret("SessionToken")?,
        expires_at,
    })
}

/// Text of the first element whose path ends with these names.
fn element(body: &[u8], path: &[&str]) -> Result<Option<Zeroizing<String>>, IdentityError> {
    let malformed = || IdentityError::Answer("is not XML");
    let mut reader = Reader::from_reader(body);
    let mut open: Vec<Vec<u8>> = Vec::new();
    let mut text = Zeroizing::new(String::new());
    let mut found = None;
    loop {
        match reader.read_event().map_err(|_| malformed())? {
            Event::Start(start) => {
                if open.len() >= MAX_DEPTH {
                    return Err(malformed());
                }
                open.push(start.local_name().as_ref().to_vec());
                text.clear();
            }
            Event::Text(piece) => {
                text.push_str(&piece.decode().map_err(|_| malformed())?);
            }
            // References such as `&amp;`; a document cannot define others, because its type is refused.
            Event::GeneralRef(reference) => {
                let character = match reference.resolve_char_ref().map_err(|_| malformed())? {
                    Some(character) => character,
                    None => match reference.as_ref() {
                        b"amp" => '&',
                        b"lt" => '<',
                        b"gt" => '>',
                        b"quot" => '"',
                        b"apos" => '\'',
                        _ => return Err(malformed()),
                    },
                };
                text.push(character);
            }
            Event::End(_) => {
                let is_wanted = open.len() >= path.len()
                    && open
                        .iter()
                        .rev()
                        .zip(path.iter().rev())
                        .all(|(name, wanted)| name == wanted.as_bytes());
                if is_wanted && found.is_none() {
                    found = Some(Zeroizing::new(text.trim().to_owned()));
                }
                open.pop();
                text.clear();
            }
            Event::Eof if open.is_empty() => return Ok(found),
            Event::DocType(_) | Event::Eof => return Err(malformed()),
            Event::CData(_) | Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
}
