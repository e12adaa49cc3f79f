//! Checks of identity profiles that all providers share.

use proctor_core::json::Json;

use super::endpoint;
use super::provider;
use super::unknown_provider;
use crate::agentcli::providers::{self, IdentityProvider};
use crate::agentcli::validate::code;
use crate::agentcli::validate::path::Path;
use crate::agentcli::validate::scalars::{filled, given, is_environment_name, is_file_name};
use crate::agentcli::validate::walk::Walk;

/// Members of `auth.provider_config` that are addresses, for every provider.
const ENDPOINTS: [&str; 3] = ["token_endpoint", "api_base", "authority"];

/// Sources of a session that must not be presented: they describe credentials, and are none.
const FORBIDDEN_SOURCES: [&str; 2] = ["provider_assertions", "delegation_chain"];

/// An identity profile, with the members that the checks read.
pub(super) struct Profile<'a> {
    pub(super) node: &'a Json,
    pub(super) auth: Option<&'a Json>,
    pub(super) config: Option<&'a Json>,
    pub(super) inputs: Option<&'a Json>,
}

/// Findings of one profile, all at its path.
pub(super) struct Faults<'a> {
    walk: &'a mut Walk,
    path: &'a Path<'a>,
}

impl Faults<'_> {
    pub(super) fn unsupported(&mut self, message: impl Into<String>) {
        self.walk.error(self.path, code::UNSUPPORTED_BY_PROVIDER, message);
    }

    pub(super) fn missing(&mut self, message: impl Into<String>) {
        self.walk.error(self.path, code::PROVIDER_CONFIG_MISSING, message);
    }

    pub(super) fn invalid(&mut self, message: impl Into<String>) {
        self.walk.error(self.path, code::PROVIDER_CONFIG_INVALID, message);
    }

    fn binding(&mut self, message: impl Into<String>) {
        self.walk.error(self.path, code::INVALID_BINDING, message);
    }
}

impl<'a> Profile<'a> {
    fn new(node: &'a Json) -> Profile<'a> {
        let auth = given(node.get("auth"));
        let config = auth.and_then(|auth| given(auth.get("provider_config")));
        let inputs = auth.and_then(|auth| given(auth.get("inputs")));
        Profile { node, auth, config, inputs }
    }

    /// A member of `auth`.
    pub(super) fn auth(&self, name: &str) -> Option<&'a Json> {
        self.auth.and_then(|auth| given(auth.get(name)))
    }

    /// A member of `auth.provider_config`.
    pub(super) fn config(&self, name: &str) -> Option<&'a Json> {
        self.config.and_then(|config| given(config.get(name)))
    }

    /// A member of `auth.inputs`.
    pub(super) fn input(&self, name: &str) -> Option<&'a Json> {
        self.inputs.and_then(|inputs| given(inputs.get(name)))
    }

    fn word(&self, block: &str, name: &str) -> Option<&'a str> {
        self.node.get(block)?.get(name)?.as_str()
    }
}

/// Checks an identity profile.
pub(super) fn check(walk: &mut Walk, path: &Path<'_>, node: &Json) {
    let Some(name) = filled(node.get("provider")) else { return };
    let Some(provider) = providers::identity_provider(name) else {
        let names: Vec<_> = providers::identity().iter().map(|provider| provider.name).collect();
        unknown_provider(walk, path, &names);
        return;
    };
    let profile = Profile::new(node);
    let mut faults = Faults { walk, path };
    authentication(&mut faults, &profile, provider);
    bindings(&mut faults, &profile, provider);
    for key in ENDPOINTS {
        if let Some(value) = profile.config(key) {
            let fault = match value.as_str() {
                Some(address) => endpoint::check(address).err().map(|error| error.to_string()),
                None => Some("must be a string".to_owned()),
            };
            if let Some(fault) = fault {
                faults.invalid(format!("`auth.provider_config.{key}` {fault}"));
            }
        }
    }
    provider::check(&mut faults, &profile, provider.name);
}

fn authentication(faults: &mut Faults<'_>, profile: &Profile<'_>, provider: &IdentityProvider) {
    let name = provider.name;
    let mode = profile.word("auth", "mode");
    let unsupported = |word: Option<&str>, words: &[&str]| word.is_some_and(|word| !words.contains(&word));
    if unsupported(mode, provider.auth_modes) {
        let modes = provider.auth_modes.join(", ");
        faults.unsupported(format!("provider `{name}` supports `auth.mode` {modes} only"));
    }
    if let Some(Json::Array(scopes)) = profile.auth("scopes")
        && scopes.iter().any(|scope| filled(Some(scope)).is_none())
    {
        faults.invalid("`auth.scopes` must be strings that are not empty");
    }
    if profile.word("auth", "cache").is_some_and(|cache| cache != "none") {
        faults.unsupported(format!("provider `{name}` does not cache: `auth.cache` must be `none`"));
    }
    if profile.word("auth", "refresh").is_some_and(|refresh| refresh != "never") && !provider.refreshable {
        faults.unsupported(format!("provider `{name}` does not refresh: `auth.refresh` must be `never`"));
    }
    if unsupported(profile.word("trust", "level"), provider.trust_levels) {
        let levels = provider.trust_levels.join(", ");
        faults.unsupported(format!("provider `{name}` supports `trust.level` {levels} only"));
    }
    if asks_for_delegation(profile, mode) && !provider.delegation {
        faults.unsupported(format!("provider `{name}` does not support delegation"));
    }
    if unsupported(profile.word("presentation", "handoff"), provider.handoff_modes) {
        let modes = provider.handoff_modes.join(", ");
        faults.unsupported(format!("provider `{name}` supports `presentation.handoff` {modes} only"));
    }
}

fn asks_for_delegation(profile: &Profile<'_>, mode: Option<&str>) -> bool {
    profile.word("subject", "delegation_mode").is_some_and(|mode| mode != "none")
        || matches!(mode, Some("delegated" | "on-behalf-of" | "impersonation" | "exchange"))
        || profile
            .auth("delegation_policy")
            .and_then(Json::as_object)
            .is_some_and(|policy| policy.iter().any(|(_, value)| !value.is_null()))
}

fn bindings(faults: &mut Faults<'_>, profile: &Profile<'_>, provider: &IdentityProvider) {
    let bindings = profile.node.get("presentation").and_then(|block| block.get("bindings"));
    let mut on_stdin = 0;
    for (index, binding) in bindings.and_then(Json::as_array).unwrap_or_default().iter().enumerate() {
        let place = format!("`presentation.bindings[{index}]`");
        let root = binding.get("source").and_then(Json::as_str).unwrap_or_default();
        let root = root.split(['.', '[']).next().unwrap_or_default();
        if FORBIDDEN_SOURCES.contains(&root) {
            faults.binding(format!("{place} must not present `{root}`"));
        }
        let Some(target) = given(binding.get("target")).filter(|target| target.as_object().is_some()) else {
            faults.binding(format!("{place} needs a target"));
            continue;
        };
        let Some(kind) = target.get("kind").and_then(Json::as_str) else {
            faults.binding(format!("{place} needs a kind of target"));
            continue;
        };
        if !provider.presentation_kinds.contains(&kind) {
            let kinds = provider.presentation_kinds.join(", ");
            let name = provider.name;
            faults.unsupported(format!("{place}: provider `{name}` presents to {kinds} only"));
        }
        let name = given(target.get("name")).map(|name| name.as_str().unwrap_or_default());
        match kind {
            "env" if !name.is_some_and(is_environment_name) => {
                faults.binding(format!("{place} needs the name of an environment variable"));
            }
            "file" if name.is_some_and(|name| !is_file_name(name)) => {
                faults.binding(format!("{place} needs a plain file name, without folders"));
            }
            "stdin" => on_stdin += 1,
            _ => {}
        }
    }
    if on_stdin > 1 {
        faults.binding("`presentation.bindings` has more than one target on standard input");
    }
}
