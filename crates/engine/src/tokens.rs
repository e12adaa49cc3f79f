//! Bearer tokens of network callers: names with the digests of their secrets. A secret is read only where it is compared.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proctor_core::digest::Digest;

/// A token as the settings declare it: exactly one of `sha256`, `file` and `env`.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenTable {
    /// The name; part of the principal.
    pub name: String,
    /// The team.
    #[serde(default)]
    pub team: String,
    /// The organisation.
    #[serde(default)]
    pub org: String,
    /// The workspace of its holder, in place of that of all callers.
    pub workspace: Option<PathBuf>,
    /// Whether the token belongs to a person who decides approvals, and nothing else.
    #[serde(default)]
    pub approver: bool,
    /// The digest of the token, in hexadecimal.
    pub sha256: Option<String>,
    /// The file that holds the token.
    pub file: Option<PathBuf>,
    /// The environment variable that holds the token.
    pub env: Option<String>,
}

/// Error in a token of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The name is empty, too long, or has spaces.
    #[error("token `{0}`: a name has no spaces and 1 to 128 bytes")]
    Name(String),
    /// The digest cannot be read.
    #[error("token `{0}`: `sha256` is 64 hexadecimal digits")]
    Digest(String),
    /// A token has no source, or several.
    #[error("token `{0}`: give exactly one of `sha256`, `file` and `env`")]
    Sources(String),
    /// The file cannot be read.
    #[error("token `{name}`: {reason}")]
    File {
        /// The token.
        name: String,
        /// The file, and what is wrong with it.
        reason: String,
    },
    /// The variable is not set.
    #[error("token `{name}`: the variable `{variable}` is not set")]
    Variable {
        /// The token.
        name: String,
        /// The variable.
        variable: String,
    },
    /// The token is short enough to be guessed.
    #[error("token `{0}` is shorter than {MIN_TOKEN} bytes")]
    Short(String),
    /// Two tokens share a name.
    #[error("token `{0}` is there twice")]
    Twice(String),
}

/// A caller that proves itself with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The name of its holder; part of the principal.
    pub name: String,
    /// The team.
    pub team: String,
    /// The organisation.
    pub org: String,
    /// Whether it is a person's who decides approvals, and nothing else.
    pub approver: bool,
    secret: SecretSource,
}

/// The source of a token's secret, read only when it is compared: commands that need no token need no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SecretSource {
    Digest([u8; 32]),
    File(PathBuf),
    Variable(String),
}

/// Minimum length of a token: shorter ones can be guessed.
const MIN_TOKEN: usize = 16;

/// Reads a declared token; a relative file starts from `base`.
pub fn read(table: &TokenTable, base: &Path) -> Result<Token, TokenError> {
    let name = table.name.clone();
    if name.is_empty() || name.len() > 128 || name.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(TokenError::Name(name));
    }
    let secret = match (&table.sha256, &table.file, &table.env) {
        (Some(digest), None, None) => digest
            .parse::<Digest>()
            .map(|digest| SecretSource::Digest(*digest.as_bytes()))
            .map_err(|_| TokenError::Digest(name.clone()))?,
        (None, Some(file), None) => SecretSource::File(base.join(file)),
        (None, None, Some(variable)) => SecretSource::Variable(variable.clone()),
        _ => return Err(TokenError::Sources(name)),
    };
    Ok(Token { name, team: table.team.clone(), org: table.org.clone(), approver: table.approver, secret })
}

impl Token {
    /// The SHA-256 of the token: enough to check one, useless to make one.
    pub fn digest(&self) -> Result<[u8; 32], TokenError> {
        let name = &self.name;
        let text = match &self.secret {
            SecretSource::Digest(digest) => return Ok(*digest),
            SecretSource::File(path) => std::fs::read_to_string(path).map_err(|error| TokenError::File {
                name: name.clone(),
                reason: format!("{}: {error}", path.display()),
            })?,
            SecretSource::Variable(variable) => std::env::var(variable)
                .map_err(|_| TokenError::Variable { name: name.clone(), variable: variable.clone() })?,
        };
        let secret = text.trim_end();
        if secret.len() < MIN_TOKEN {
            return Err(TokenError::Short(name.clone()));
        }
        Ok(*Digest::of(secret.as_bytes()).as_bytes())
    }
}

/// Two tokens must not share a name: who acts would be a guess.
pub fn check(tokens: &[Token]) -> Result<(), TokenError> {
    let mut names = HashSet::new();
    match tokens.iter().find(|token| !names.insert(&token.name)) {
        None => Ok(()),
        Some(token) => Err(TokenError::Twice(token.name.clone())),
    }
}
