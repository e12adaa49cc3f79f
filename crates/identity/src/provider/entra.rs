//! Agent identities of Microsoft Entra: a token of the blueprint for the agent (`fmi_path`), then the agent's own.

use proctor_core::json::Json;
use proctor_proof::secret::Secret;

use super::{Context, Resolved, azure, oauth};
use crate::error::IdentityError;
use crate::form::Form;
use crate::http::Address;
use crate::session::Credential;

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const AUTHORITY: &str = "https://login.microsoftonline.com";

/// Audience of the tokens that stand for a client's credentials.
const EXCHANGE_RESOURCE: &str = "api://AzureADTokenExchange";

/// Scope of the agent's token where the manifest names none.
const DEFAULT_SCOPE: &str = "https://graph.microsoft.com/.default";

pub(super) async fn resolve(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    let tenant = context.required_text("tenant_id")?;
    let blueprint = context.required_text("blueprint_app_id")?;
    let agent = context.required_text("agent_identity_id")?;
    let is_segment = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !tenant.bytes().all(is_segment) {
        return Err(IdentityError::profile("`auth.provider_config.tenant_id` is not an id or a domain"));
    }
    let address = Address::endpoint(&token_endpoint(context, tenant))?;
    let is_narrowed = context.handoff() == "downscope";
    let scopes = if is_narrowed { context.narrow_scopes()? } else { context.own_scopes() };
    let scope = if scopes.is_empty() { DEFAULT_SCOPE.to_owned() } else { scopes.join(" ") };

    let assertion = client_assertion(context).await?;
    let form = Form::new()
        .with("grant_type", "client_credentials")
        .with("client_id", blueprint)
        .with("client_assertion_type", ASSERTION_TYPE)
        .with("client_assertion", assertion.expose())
        .with("scope", &format!("{EXCHANGE_RESOURCE}/.default"))
        .with("fmi_path", agent);
    let for_agent = oauth::request(context, &address, &[], &form).await?;

    let form = Form::new()
        .with("client_id", agent)
        .with("client_assertion_type", ASSERTION_TYPE)
        .with("client_assertion", for_agent.token.expose())
        .with("scope", &scope);
    let form = if context.auth("mode").and_then(Json::as_str) == Some("on-behalf-of") {
        let user = context.input("subject_token").ok_or_else(|| {
            IdentityError::profile(
                "`auth.mode: on-behalf-of` needs the user's token: set `auth.inputs.subject_token`",
            )
        })?;
        let user = context.secret("user's token", user).await?;
        form.with("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
            .with("assertion", user.expose())
            .with("requested_token_use", "on_behalf_of")
    } else {
        form.with("grant_type", "client_credentials")
    };
    let issued = oauth::request(context, &address, &[], &form).await?;
    let principal = format!("agent://entra/{tenant}/{agent}");
    Ok(Resolved {
        issuer: Some(format!("{AUTHORITY}/{tenant}")),
        chain: vec![context.subject_hop(&principal, "client-credentials")],
        principal: Some(principal),
        assertions: issued.assertions().with("tenant_id", tenant).with("agent_identity_id", agent),
        expires_at: issued.expires_at,
        credentials: vec![Credential::new("access_token", issued.token)],
        is_narrowed,
    })
}

fn token_endpoint(context: &Context<'_>, tenant: &str) -> String {
    let host = context.variable("AZURE_AUTHORITY_HOST");
    let authority = match (context.config_text("authority"), &host) {
        (Some(authority), _) => authority.trim_end_matches('/').to_owned(),
        (None, host) => {
            let host = host.as_ref().map_or(AUTHORITY, |host| host.expose());
            format!("{}/{tenant}", host.trim_end_matches('/'))
        }
    };
    format!("{authority}/oauth2/v2.0/token")
}

/// Credential of the blueprint: an assertion that is given, else a token of this machine's managed identity.
async fn client_assertion(context: &Context<'_>) -> Result<Secret, IdentityError> {
    if let Some(assertion) = context.variable("AGENTCLI_ENTRA_CLIENT_ASSERTION") {
        return Ok(context.remember(assertion));
    }
    if let Some(given) = context.input("client_assertion").or_else(|| context.config("client_assertion")) {
        return context.secret("client assertion", given).await;
    }
    let resource = context.config_text("assertion_resource").unwrap_or(EXCHANGE_RESOURCE);
    let issued = azure::token(context, resource, context.config_text("managed_identity_client_id")).await?;
    Ok(issued.token)
}
