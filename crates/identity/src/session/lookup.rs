//! Values of a session by the path that a presentation binding names.

use proctor_core::json::Json;
use proctor_proof::secret::Secret;

use super::{Credential, Session};

/// Roots of paths that are never presented to a task.
const FORBIDDEN: &[&str] = &["provider_assertions", "delegation_chain", "delegation_validation"];

/// Value of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// A credential's part.
    Credential(Secret),
    /// Several parts of credentials, as members of an object.
    Credentials(Vec<(String, Lookup)>),
    /// A text that is not secret.
    Plain(String),
}

/// Path that gives no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupError {
    /// The path leads to a part of the session that is never presented.
    Forbidden,
    /// The session has no value there.
    Missing,
}

impl Lookup {
    /// The value as JSON text.
    pub(crate) fn json(&self) -> Secret {
        fn write(value: &Lookup) -> Json {
            match value {
                Lookup::Credential(secret) => Json::from(secret.expose()),
                Lookup::Plain(text) => Json::from(text.as_str()),
                Lookup::Credentials(members) => {
                    Json::Object(members.iter().map(|(name, member)| (name.clone(), write(member))).collect())
                }
            }
        }
        Secret::new(write(self).to_string())
    }

    /// The value as text; the part `value` of a credential with several parts.
    pub(crate) fn text(&self) -> Option<Secret> {
        match self {
            Lookup::Credential(secret) => Some(secret.clone()),
            Lookup::Plain(text) => Some(Secret::new(text.as_str())),
            Lookup::Credentials(members) => {
                members.iter().find(|(name, _)| name == "value").and_then(|(_, member)| member.text())
            }
        }
    }

    /// Whether the value holds credentials.
    pub(crate) fn is_credential(&self) -> bool {
        !matches!(self, Lookup::Plain(_))
    }
}

impl Session {
    /// The value at a path such as `credentials.access_token.value` or `subject.principal`.
    ///
    /// `credentials.access_token` names the first credential also where a provider gives it another name, as `api_key` and `jwt_svid`.
    pub fn lookup(&self, path: &str) -> Result<Lookup, LookupError> {
        let mut segments = path.trim().split('.');
        let root = segments.next().unwrap_or_default();
        let rest: Vec<&str> = segments.collect();
        if FORBIDDEN.contains(&root) {
            return Err(LookupError::Forbidden);
        }
        let plain = |text: Option<String>| text.map(Lookup::Plain).ok_or(LookupError::Missing);
        let expires_at = || self.expires_at.map(|moment| moment.to_string());
        match (root, rest.as_slice()) {
            ("credentials", path) => self.credential(path),
            ("provider", []) => plain(Some(self.provider.to_owned())),
            ("instance", []) => plain(self.instance.clone()),
            ("subject", ["principal"]) => plain(self.subject.principal.clone()),
            ("subject", ["issuer"]) => plain(self.subject.issuer.clone()),
            ("subject", ["run_as"]) => plain(self.subject.run_as.clone()),
            ("trust", ["declared_level"]) => plain(self.trust.declared.map(|level| level.word().to_owned())),
            ("trust", ["effective_level"]) => plain(Some(self.trust.effective.word().to_owned())),
            ("refresh" | "credential_summary", ["expires_at"]) => plain(expires_at()),
            ("handoff", ["mode"]) => plain(Some(self.handoff.mode.clone())),
            _ => Err(LookupError::Missing),
        }
    }

    fn credential(&self, path: &[&str]) -> Result<Lookup, LookupError> {
        let parts = |credential: &Credential| {
            let parts = credential.parts.iter();
            Lookup::Credentials(
                parts.map(|(name, part)| ((*name).to_owned(), Lookup::Credential(part.clone()))).collect(),
            )
        };
        let named = |name: &str| {
            let found = self.credentials.iter().find(|credential| credential.name == name);
            found.or_else(|| self.credentials.first().filter(|_| name == "access_token"))
        };
        match path {
            [] if !self.credentials.is_empty() => Ok(Lookup::Credentials(
                self.credentials.iter().map(|it| (it.name.to_owned(), parts(it))).collect(),
            )),
            [name] => named(name).map(parts).ok_or(LookupError::Missing),
            [name, part] => {
                let credential = named(name).ok_or(LookupError::Missing)?;
                let found = credential.parts.iter().find(|(known, _)| known == part);
                found.map(|(_, part)| Lookup::Credential(part.clone())).ok_or(LookupError::Missing)
            }
            _ => Err(LookupError::Missing),
        }
    }
}
