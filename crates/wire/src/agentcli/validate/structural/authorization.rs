//! Needs of authorization providers. `cedar` and `topaz` are ours; `opa` reports what it lacks when it is asked, as the protocol
//! has it, because tasks may complete its configuration.

use proctor_core::json::Json;

use super::unknown_provider;
use crate::agentcli::providers::{self, AuthorizationProvider};
use crate::agentcli::validate::code;
use crate::agentcli::validate::path::Path;
use crate::agentcli::validate::scalars::{filled, given};
use crate::agentcli::validate::walk::Walk;

/// Checks an authorization profile.
pub(super) fn check(walk: &mut Walk, path: &Path<'_>, profile: &Json) {
    let Some(name) = filled(profile.get("provider")) else { return };
    let Some(provider) = providers::authorization_provider(name) else {
        let names: Vec<_> = providers::authorization().iter().map(|provider| provider.name).collect();
        unknown_provider(walk, path, &names);
        return;
    };
    if matches!(provider.name, "cedar" | "topaz") && !is_configured(provider, profile) {
        let alternatives: Vec<_> =
            provider.required_keys.iter().map(|keys| format!("`{}`", keys.join("` and `"))).collect();
        let message = format!("provider `{name}` needs {} in `provider_config`", alternatives.join(" or "));
        walk.error(&path.key("provider"), code::PROVIDER_CONFIG_MISSING, message);
    }
}

/// Whether one of the alternative sets of keys is complete.
fn is_configured(provider: &AuthorizationProvider, profile: &Json) -> bool {
    let Some(config) = given(profile.get("provider_config")) else { return false };
    provider.required_keys.iter().any(|keys| keys.iter().all(|key| filled(config.get(key)).is_some()))
}
