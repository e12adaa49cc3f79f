//! Who may call over a network: names with the digests of their secrets. Secrets themselves are read where they are needed.

use std::collections::HashSet;
use std::path::Path;

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
    /// Where the secret is.
    pub secret: TokenSecret,
}

/// The SHA-256 of a token: enough to check one, useless to make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenSecret(pub [u8; 32]);

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
            .map(|digest| TokenSecret(*digest.as_bytes()))
            .map_err(|_| format!("token `{name}`: `sha256` is 64 hexadecimal digits"))?,
        (None, Some(file), None) => {
            let path = base.join(file);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("token `{name}`: {}: {error}", path.display()))?;
            digest(&name, text.trim_end())?
        }
        (None, None, Some(variable)) => {
            let text = std::env::var(variable)
                .map_err(|_| format!("token `{name}`: the variable `{variable}` is not set"))?;
            digest(&name, &text)?
        }
        _ => return Err(format!("token `{name}`: give exactly one of `sha256`, `file` and `env`")),
    };
    Ok(Token { name, team: table.team.clone(), org: table.org.clone(), secret })
}

fn digest(name: &str, secret: &str) -> Result<TokenSecret, String> {
    if secret.len() < MIN_TOKEN {
        return Err(format!("token `{name}` is shorter than {MIN_TOKEN} bytes"));
    }
    Ok(TokenSecret(*Digest::of(secret.as_bytes()).as_bytes()))
}

/// Two tokens must not share a name or a secret: who acts would be a guess.
pub(super) fn check(tokens: &[Token]) -> Result<(), String> {
    let (mut names, mut secrets) = (HashSet::new(), HashSet::new());
    for token in tokens {
        if !names.insert(&token.name) || !secrets.insert(token.secret.0) {
            return Err(format!("token `{}` is there twice", token.name));
        }
    }
    Ok(())
}
