//! Who may call over a network: names with the digests of their secrets. Secrets themselves are read where they are needed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proctor_core::digest::Digest;

use super::TokenTable;

/// A caller that proves itself with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Who it was issued to; part of the principal.
    pub name: String,
    /// The team.
    pub team: String,
    /// The organisation.
    pub org: String,
    /// Whether it is a person's who decides approvals, and nothing else.
    pub approver: bool,
    secret: SecretPlace,
}

/// Where a token's secret, or its digest, is to be found. It is read when it is needed: commands that need no token need no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SecretPlace {
    Digest([u8; 32]),
    File(PathBuf),
    Variable(String),
}

/// The shortest token that is taken: anything shorter can be guessed.
const MIN_TOKEN: usize = 16;

pub(super) fn read(table: &TokenTable, base: &Path) -> Result<Token, String> {
    let name = table.name.clone();
    if name.is_empty() || name.len() > 128 || name.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(format!("token `{name}`: a name has no spaces and 1 to 128 bytes"));
    }
    let secret = match (&table.sha256, &table.file, &table.env) {
        (Some(digest), None, None) => digest
            .parse::<Digest>()
            .map(|digest| SecretPlace::Digest(*digest.as_bytes()))
            .map_err(|_| format!("token `{name}`: `sha256` is 64 hexadecimal digits"))?,
        (None, Some(file), None) => SecretPlace::File(base.join(file)),
        (None, None, Some(variable)) => SecretPlace::Variable(variable.clone()),
        _ => return Err(format!("token `{name}`: give exactly one of `sha256`, `file` and `env`")),
    };
    Ok(Token { name, team: table.team.clone(), org: table.org.clone(), approver: table.approver, secret })
}

impl Token {
    /// The SHA-256 of the token: enough to check one, useless to make one.
    pub fn digest(&self) -> Result<[u8; 32], String> {
        let name = &self.name;
        let text = match &self.secret {
            SecretPlace::Digest(digest) => return Ok(*digest),
            SecretPlace::File(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("token `{name}`: {}: {error}", path.display()))?,
            SecretPlace::Variable(variable) => std::env::var(variable)
                .map_err(|_| format!("token `{name}`: the variable `{variable}` is not set"))?,
        };
        let secret = text.trim_end();
        if secret.len() < MIN_TOKEN {
            return Err(format!("token `{name}` is shorter than {MIN_TOKEN} bytes"));
        }
        Ok(*Digest::of(secret.as_bytes()).as_bytes())
    }
}

/// Two tokens must not share a name: who acts would be a guess.
pub(super) fn check(tokens: &[Token]) -> Result<(), String> {
    let mut names = HashSet::new();
    match tokens.iter().find(|token| !names.insert(&token.name)) {
        None => Ok(()),
        Some(token) => Err(format!("token `{}` is there twice", token.name)),
    }
}
