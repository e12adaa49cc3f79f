//! Restricted keys of Stripe that were made beforehand, one for each set of permissions.

use std::collections::BTreeSet;

use proctor_core::json::Json;
use proctor_proof::secret::Secret;

use super::{Context, Resolved};
use crate::error::IdentityError;
use crate::session::Credential;
use crate::sources::CommandLine;

pub(super) async fn resolve(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    match context.required_text("key_strategy")? {
        "precreated" => {}
        "dynamic" => {
            return Err(IdentityError::Unsupported(
                "`key_strategy: dynamic` is not supported: make restricted keys and use `precreated`",
            ));
        }
        _ => return Err(IdentityError::profile("`key_strategy` is `precreated`")),
    }
    let mode = context.required_text("account_mode")?;
    if !matches!(mode, "live" | "test") {
        return Err(IdentityError::profile("`account_mode` is `live` or `test`"));
    }
    let sets = context.config("permission_sets").and_then(Json::as_object).unwrap_or_default();
    let wanted = context.identity().get("scope").and_then(Json::as_str);
    let is_narrowed = context.handoff() == "downscope";
    let (name, set) = select(context, sets, wanted, is_narrowed)?;
    let key = key(context, set).await?;
    check_key(&key, mode)?;
    let principal = format!("stripe:{mode}");
    Ok(Resolved {
        chain: vec![context.subject_hop(&principal, &format!("scope:{name}"))],
        principal: Some(principal),
        assertions: Json::object().with("account_mode", mode).with("scope", name),
        credentials: vec![Credential::new("api_key", key)],
        is_narrowed,
        ..Resolved::default()
    })
}

/// The set of the wanted scope, else the narrowest one that includes it. A downscoped key has exactly the wanted scope.
fn select<'a>(
    context: &Context<'_>,
    sets: &'a [(String, Json)],
    wanted: Option<&'a str>,
    is_exact: bool,
) -> Result<(&'a str, &'a Json), IdentityError> {
    let first = sets.first().ok_or_else(|| IdentityError::profile("`permission_sets` is empty"))?;
    let Some(wanted) = wanted else {
        if is_exact {
            return Err(IdentityError::profile(
                "`presentation.handoff: downscope` needs `scope` of the identity",
            ));
        }
        return Ok((&first.0, &first.1));
    };
    if let Some((name, set)) = sets.iter().find(|(name, _)| name == wanted) {
        return Ok((name, set));
    }
    let hierarchy = context.config("scope_hierarchy").unwrap_or(&Json::Null);
    let broader = sets
        .iter()
        .filter(|_| !is_exact)
        .map(|(name, set)| (included(hierarchy, name), name, set))
        .filter(|(scopes, ..)| scopes.contains(wanted))
        .min_by_key(|(scopes, ..)| scopes.len());
    broader
        .map(|(_, name, set)| (name.as_str(), set))
        .ok_or_else(|| IdentityError::profile("no permission set has the identity's `scope`"))
}

/// Scopes that a scope includes, through all levels of the hierarchy.
fn included<'a>(hierarchy: &'a Json, scope: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![scope];
    while let Some(scope) = open.pop() {
        if found.insert(scope) {
            let below = hierarchy.get(scope).and_then(Json::as_array).unwrap_or_default();
            open.extend(below.iter().filter_map(Json::as_str));
        }
    }
    found
}

async fn key(context: &Context<'_>, set: &Json) -> Result<Secret, IdentityError> {
    let text = |name: &str| set.get(name).and_then(Json::as_str).filter(|text| !text.trim().is_empty());
    let command = set.get("key_command").filter(|command| !command.is_null());
    match (text("key_env"), text("key_file"), command) {
        (Some(name), None, None) => context.required_variable("key", name),
        (None, Some(path), None) => context.file("key file", path),
        (None, None, Some(command)) => {
            let command = CommandLine::from_json(command)
                .ok_or_else(|| IdentityError::profile("`key_command` is a text or a list of texts"))?;
            let key = context.sources().command(&command, &[]).await;
            key.map(|key| context.remember(key)).map_err(IdentityError::source("key"))
        }
        _ => {
            Err(IdentityError::profile("a permission set has one of `key_env`, `key_file` and `key_command`"))
        }
    }
}

fn check_key(key: &Secret, mode: &str) -> Result<(), IdentityError> {
    let rest = ["sk_", "rk_"].iter().find_map(|kind| key.expose().strip_prefix(kind));
    let Some(rest) = rest else {
        return Err(IdentityError::Credential("a key begins with `sk_` or `rk_`"));
    };
    let body = rest.strip_prefix(mode).and_then(|rest| rest.strip_prefix('_'));
    match body {
        None => Err(IdentityError::Credential("the key belongs to another `account_mode`")),
        Some(body) if body.is_empty() || !body.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(IdentityError::Credential("the key is malformed"))
        }
        Some(_) => Ok(()),
    }
}
