//! Bearer tokens from the environment or a file.

use proctor_core::json::Json;
use proctor_proof::secret::Secret;
use proctor_proof::sources::{SourceError, ValueSources};

use super::oauth::check_token;
use super::{Context, Resolved};
use crate::error::IdentityError;
use crate::session::Credential;

/// Inputs that may hold a token as text.
const TOKEN_INPUTS: [&str; 3] = ["token", "access_token", "bearer_token"];

pub(super) fn from_environment(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    let input = TOKEN_INPUTS.iter().find_map(|name| context.input(name)).and_then(Json::as_str);
    let token = match (context.config_text("token_env"), input) {
        (Some(name), _) => context.required_variable("token", name)?,
        (None, Some(text)) => context.remember(Secret::new(text.trim())),
        (None, None) => {
            return Err(IdentityError::profile("set `auth.provider_config.token_env`"));
        }
    };
    bearer(context, token)
}

pub(super) async fn from_file(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    let token = match (context.config_text("token_file"), context.input("token_file")) {
        (Some(path), _) => context.file("token file", path)?,
        (None, Some(input)) => {
            let source = input.get("value_from").ok_or_else(missing)?;
            let value = context.sources().resolve(source, &[]).await;
            let value = value.map_err(IdentityError::source("token file"))?;
            // `file` holds the token itself; `env` and `command` give the path of the file.
            if source.get("file").is_some_and(|file| !file.is_null()) {
                context.remember(value)
            } else {
                context.file("token file", value.expose())?
            }
        }
        (None, None) => return Err(missing()),
    };
    bearer(context, token)
}

fn missing() -> IdentityError {
    IdentityError::profile("set `auth.provider_config.token_file`")
}

fn bearer(context: &Context<'_>, token: Secret) -> Result<Resolved, IdentityError> {
    if token.is_empty() {
        return Err(IdentityError::Source { setting: "token", source: SourceError::Empty });
    }
    check_token(&token).map_err(IdentityError::Credential)?;
    Ok(Resolved {
        chain: vec![context.subject_hop("", "bearer-token")],
        credentials: vec![Credential::new("access_token", token)],
        ..Resolved::default()
    })
}
