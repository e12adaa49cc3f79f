//! Workload identities of Google Cloud, from the metadata server.

use super::{Context, Resolved, oauth};
use crate::error::IdentityError;
use crate::http::Address;
use crate::session::Credential;

const METADATA_HOST: &str = "metadata.google.internal";

pub(super) async fn resolve(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    let scopes = context.own_scopes();
    if scopes.is_empty() {
        return Err(IdentityError::profile("set `auth.provider_config.scopes`"));
    }
    let email = context.config_text("service_account_email");
    let account = email.unwrap_or("default");
    // The account is one segment of the path.
    let is_segment = |byte: u8| byte.is_ascii_alphanumeric() || b"@._+-".contains(&byte);
    if !account.bytes().all(is_segment) || email.is_some_and(|email| !email.contains('@')) {
        return Err(IdentityError::profile("`auth.provider_config.service_account_email` is not an address"));
    }
    let host = context.variable("GCE_METADATA_HOST");
    let base = match (context.config_text("endpoint"), &host) {
        (Some(endpoint), _) => endpoint.trim_end_matches('/').to_owned(),
        (None, host) => format!("http://{}", host.as_ref().map_or(METADATA_HOST, |host| host.expose())),
    };
    let url = format!("{base}/computeMetadata/v1/instance/service-accounts/{account}/token");
    let address = Address::metadata(&url)?.with_query(&[("scopes", &scopes.join(","))]);
    let issued = oauth::metadata(context, &address, &[("metadata-flavor", "Google")]).await?;
    let principal = email.unwrap_or("default");
    Ok(Resolved {
        principal: Some(principal.to_owned()),
        chain: vec![context.subject_hop(principal, "workload-identity")],
        assertions: issued.assertions(),
        expires_at: issued.expires_at,
        credentials: vec![Credential::new("access_token", issued.token)],
        ..Resolved::default()
    })
}
