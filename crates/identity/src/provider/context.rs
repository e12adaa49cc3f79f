//! Settings and means of a provider: the merged identity, value sources, HTTP client, present moment.

use std::sync::{Mutex, PoisonError};

use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_proof::secret::Secret;
use proctor_proof::sources::ValueSources;

use crate::delegation::Hop;
use crate::environment::Environment;
use crate::error::IdentityError;
use crate::http::Client;
use crate::sources::{Commands, Sources};

/// Surroundings of one resolution.
pub(crate) struct Context<'a> {
    identity: &'a Json,
    environment: &'a Environment,
    sources: Sources<'a>,
    client: &'a Client,
    now: Timestamp,
    /// Secrets that were read on the way, to be masked later.
    used: Mutex<Vec<Secret>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        identity: &'a Json,
        environment: &'a Environment,
        commands: Commands<'a>,
        client: &'a Client,
        now: Timestamp,
    ) -> Context<'a> {
        let sources = Sources::new(environment, commands);
        Context { identity, environment, sources, client, now, used: Mutex::new(Vec::new()) }
    }

    pub(crate) fn identity(&self) -> &'a Json {
        self.identity
    }

    pub(crate) fn client(&self) -> &'a Client {
        self.client
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn sources(&self) -> &Sources<'a> {
        &self.sources
    }

    /// Member of `subject`.
    pub(crate) fn subject(&self, name: &str) -> Option<&'a str> {
        self.identity.get("subject").and_then(|subject| subject.get(name)).and_then(Json::as_str)
    }

    /// Member of `auth`.
    pub(crate) fn auth(&self, name: &str) -> Option<&'a Json> {
        self.identity.get("auth").and_then(|auth| auth.get(name)).filter(|value| !value.is_null())
    }

    /// Member of `auth.provider_config`.
    pub(crate) fn config(&self, name: &str) -> Option<&'a Json> {
        self.auth("provider_config").and_then(|config| config.get(name)).filter(|value| !value.is_null())
    }

    /// Text of `auth.provider_config` that is not blank.
    pub(crate) fn config_text(&self, name: &str) -> Option<&'a str> {
        self.config(name).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    /// Text of `auth.provider_config` that must be there.
    pub(crate) fn required_text(&self, name: &str) -> Result<&'a str, IdentityError> {
        self.config_text(name)
            .ok_or_else(|| IdentityError::profile(format!("set `auth.provider_config.{name}`")))
    }

    /// Text of `auth.provider_config`, else of `auth` itself.
    pub(crate) fn setting(&self, name: &str) -> Option<&'a str> {
        let own = || self.auth(name).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty());
        self.config_text(name).or_else(own)
    }

    /// Member of `auth.inputs`.
    pub(crate) fn input(&self, name: &str) -> Option<&'a Json> {
        self.auth("inputs").and_then(|inputs| inputs.get(name)).filter(|value| !value.is_null())
    }

    /// Scopes of `auth`, else of the configuration.
    pub(crate) fn scopes(&self) -> Vec<&'a str> {
        let listed = |value: Option<&'a Json>| texts(value).filter(|scopes| !scopes.is_empty());
        listed(self.auth("scopes")).or_else(|| listed(self.config("scopes"))).unwrap_or_default()
    }

    /// Scopes of the configuration, which some providers prefer, else of `auth`.
    pub(crate) fn own_scopes(&self) -> Vec<&'a str> {
        texts(self.config("scopes")).filter(|scopes| !scopes.is_empty()).unwrap_or_else(|| self.scopes())
    }

    /// Scopes to narrow a credential to: `scope` of the identity, else `downscope_scopes` of the configuration.
    pub(crate) fn narrow_scopes(&self) -> Result<Vec<&'a str>, IdentityError> {
        let scope = self.identity.get("scope").and_then(Json::as_str).unwrap_or_default();
        let named: Vec<&str> = scope.split_whitespace().collect();
        let scopes =
            if named.is_empty() { texts(self.config("downscope_scopes")).unwrap_or_default() } else { named };
        if scopes.is_empty() {
            return Err(IdentityError::profile(
                "`presentation.handoff: downscope` needs the narrower scope: set `scope` of the identity, or \
                 `auth.provider_config.downscope_scopes`",
            ));
        }
        Ok(scopes)
    }

    /// Word of `presentation.handoff`.
    pub(crate) fn handoff(&self) -> &'a str {
        self.identity.pointer("/presentation/handoff").and_then(Json::as_str).unwrap_or("none")
    }

    /// Environment variable.
    pub(crate) fn variable(&self, name: &str) -> Option<Secret> {
        self.environment.variable(name).map(Secret::trimmed)
    }

    /// Environment variable that must be set.
    pub(crate) fn required_variable(
        &self,
        setting: &'static str,
        name: &str,
    ) -> Result<Secret, IdentityError> {
        self.sources.variable(name).map(|value| self.remember(value)).map_err(IdentityError::source(setting))
    }

    /// Text of a file.
    pub(crate) fn file(&self, setting: &'static str, path: &str) -> Result<Secret, IdentityError> {
        self.sources.file(path).map(|value| self.remember(value)).map_err(IdentityError::source(setting))
    }

    /// Secret that is given as text, as `{"value_from": SOURCE}`, or as a source itself.
    pub(crate) async fn secret(&self, setting: &'static str, value: &Json) -> Result<Secret, IdentityError> {
        if let Some(text) = value.as_str() {
            let text = Secret::new(text.trim());
            if text.is_empty() {
                return Err(IdentityError::profile(format!("the {setting} is empty")));
            }
            return Ok(self.remember(text));
        }
        let source = value.get("value_from").unwrap_or(value);
        let found = self.sources.resolve(source, &[]).await;
        found.map(|value| self.remember(value)).map_err(IdentityError::source(setting))
    }

    /// Notes a secret, so that it is masked.
    pub(crate) fn remember(&self, secret: Secret) -> Secret {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).push(secret.clone());
        secret
    }

    /// Secrets that were read.
    pub(crate) fn used(&self) -> Vec<Secret> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The hop of the subject itself.
    pub(crate) fn subject_hop(&self, fallback: &str, grant: &str) -> Hop {
        let principal = self.subject("principal").unwrap_or(fallback);
        Hop::new(self.subject("kind").unwrap_or("unknown"), principal, grant)
    }
}

/// Texts of an array; none if it is no array.
fn texts(value: Option<&Json>) -> Option<Vec<&str>> {
    let items = value?.as_array()?;
    Some(items.iter().filter_map(Json::as_str).map(str::trim).filter(|text| !text.is_empty()).collect())
}
