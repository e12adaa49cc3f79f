//! Client credentials of OAuth 2 (RFC 6749, 4.4).

use super::oauth::{self, client_credentials};
use super::{Context, Resolved};
use crate::error::IdentityError;
use crate::form::Form;
use crate::http::Address;
use crate::session::Credential;

pub(super) async fn resolve(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    let endpoint = context.required_text("token_endpoint")?;
    let address = Address::endpoint(endpoint)?;
    let client_id = context.required_text("client_id")?;
    let secret = context.config("client_secret").or_else(|| context.input("client_secret"));
    let secret = secret.ok_or_else(|| IdentityError::profile("set `auth.provider_config.client_secret`"))?;
    let secret = context.secret("client secret", secret).await?;
    let form = Form::new().with("grant_type", "client_credentials");
    let (form, authorization) = client_credentials(context, form, Some(client_id), Some(&secret))?;
    let form = form
        .with_some("scope", Some(&context.scopes().join(" ")))
        .with_some("audience", context.setting("audience"))
        .with_some("resource", context.setting("resource"));
    let header = authorization.as_ref().map(|value| ("authorization", value.expose()));
    let issued = oauth::request(context, &address, header.as_slice(), &form).await?;
    Ok(Resolved {
        principal: Some(client_id.to_owned()),
        issuer: Some(endpoint.to_owned()),
        chain: vec![context.subject_hop(client_id, "client-credentials")],
        assertions: issued.assertions(),
        expires_at: issued.expires_at,
        credentials: vec![Credential::new("access_token", issued.token)],
        ..Resolved::default()
    })
}
