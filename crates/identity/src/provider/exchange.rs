//! Token exchange (RFC 8693), with a second exchange that narrows the token's scopes.

use proctor_proof::secret::Secret;

use super::oauth::{self, Issued, client_credentials};
use super::{Context, Resolved};
use crate::delegation::Hop;
use crate::error::IdentityError;
use crate::form::Form;
use crate::http::Address;
use crate::session::Credential;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

pub(super) async fn resolve(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    let endpoint = context.required_text("token_endpoint")?;
    let address = Address::endpoint(endpoint)?;
    let subject_token = match (context.config_text("subject_token_env"), context.input("subject_token")) {
        (Some(name), _) => context.required_variable("subject token", name)?,
        (None, Some(input)) => context.secret("subject token", input).await?,
        (None, None) => return Err(IdentityError::profile("set `auth.provider_config.subject_token_env`")),
    };
    let secret = match context.config("client_secret").or_else(|| context.input("client_secret")) {
        Some(secret) => Some(context.secret("client secret", secret).await?),
        None => None,
    };
    let kind = context.config_text("subject_token_type").unwrap_or(ACCESS_TOKEN);
    let scopes = context.scopes();
    let client = Client { context, address, secret };
    let mut issued = client.exchange(&subject_token, kind, &scopes).await?;
    let is_narrowed = context.handoff() == "downscope";
    if is_narrowed {
        let narrow = context.narrow_scopes()?;
        if !scopes.is_empty() && !narrow.iter().all(|scope| scopes.contains(scope)) {
            return Err(IdentityError::profile("the narrower scope is not among `auth.scopes`"));
        }
        issued = client.exchange(&issued.token, ACCESS_TOKEN, &narrow).await?;
        // Without `scope` in the answer the granted scopes are the requested ones.
        let granted = issued.scope.as_deref().unwrap_or_default();
        if !granted.split_whitespace().all(|scope| narrow.contains(&scope)) {
            return Err(IdentityError::Answer("has a token with more scopes than the narrower ones"));
        }
    }
    let source = context.config_text("client_id").unwrap_or("exchange-source");
    Ok(Resolved {
        issuer: Some(endpoint.to_owned()),
        chain: vec![
            Hop::new("exchange-source", source, "token-exchange"),
            context.subject_hop("exchanged-subject", "token-exchange"),
        ],
        assertions: issued.assertions(),
        expires_at: issued.expires_at,
        credentials: vec![Credential::new("access_token", issued.token)],
        is_narrowed,
        ..Resolved::default()
    })
}

struct Client<'c, 'a> {
    context: &'c Context<'a>,
    address: Address,
    secret: Option<Secret>,
}

impl Client<'_, '_> {
    async fn exchange(&self, token: &Secret, kind: &str, scopes: &[&str]) -> Result<Issued, IdentityError> {
        let form = Form::new()
            .with("grant_type", GRANT)
            .with("subject_token", token.expose())
            .with("subject_token_type", kind)
            .with("requested_token_type", ACCESS_TOKEN)
            .with_some("scope", Some(&scopes.join(" ")))
            .with_some("audience", self.context.setting("audience"))
            .with_some("resource", self.context.setting("resource"));
        let id = self.context.config_text("client_id");
        let (form, authorization) = client_credentials(self.context, form, id, self.secret.as_ref())?;
        let header = authorization.as_ref().map(|value| ("authorization", value.expose()));
        let issued = oauth::request(self.context, &self.address, header.as_slice(), &form).await?;
        match issued.token_type.as_deref() {
            None | Some(ACCESS_TOKEN | JWT) => Ok(issued),
            Some(_) => Err(IdentityError::Answer("has another kind of token than an access token")),
        }
    }
}
