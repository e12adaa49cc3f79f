//! Managed identities of Azure: the instance metadata service, or the endpoint that App Service and Container Apps announce.

use proctor_proof::secret::Secret;

use super::oauth::{self, Issued};
use super::{Context, Resolved};
use crate::error::IdentityError;
use crate::http::Address;
use crate::session::Credential;

/// Metadata service of virtual machines.
const IMDS: &str = "http://169.254.169.254";

pub(super) async fn resolve(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    let resource = context
        .setting("resource")
        .ok_or_else(|| IdentityError::profile("set `auth.provider_config.resource`"))?;
    let client_id = context.config_text("client_id");
    let issued = token(context, resource, client_id).await?;
    let principal = client_id.unwrap_or("managed-identity");
    Ok(Resolved {
        principal: Some(principal.to_owned()),
        chain: vec![context.subject_hop(principal, "managed-identity")],
        assertions: issued.assertions().with("resource", resource),
        expires_at: issued.expires_at,
        credentials: vec![Credential::new("access_token", issued.token)],
        ..Resolved::default()
    })
}

/// A managed identity's token for a resource.
pub(super) async fn token(
    context: &Context<'_>,
    resource: &str,
    client_id: Option<&str>,
) -> Result<Issued, IdentityError> {
    let service = (context.variable("IDENTITY_ENDPOINT"), context.variable("IDENTITY_HEADER"));
    let own = context.config_text("endpoint");
    let client = client_id.map(|id| ("client_id", id));
    if let (None, (Some(endpoint), Some(header))) = (own, &service) {
        let query: Vec<_> =
            [("api-version", "2019-08-01"), ("resource", resource)].into_iter().chain(client).collect();
        let address = Address::metadata(endpoint.expose())?.with_query(&query);
        let header = context.remember(header.clone());
        return oauth::metadata(context, &address, &[("x-identity-header", header.expose())]).await;
    }
    let host = context.variable("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    let base = own.or(host.as_ref().map(Secret::expose)).unwrap_or(IMDS);
    let query: Vec<_> =
        [("api-version", "2018-02-01"), ("resource", resource)].into_iter().chain(client).collect();
    let url = format!("{}/metadata/identity/oauth2/token", base.trim_end_matches('/'));
    let address = Address::metadata(&url)?.with_query(&query);
    oauth::metadata(context, &address, &[("metadata", "true")]).await
}
