//! Identity providers: each turns its configuration into credentials and a delegation chain.

mod aws;
mod azure;
mod bearer;
mod context;
mod entra;
mod exchange;
mod gcp;
mod oauth;
mod oidc;
mod sigv4;
mod spiffe;
mod stripe;

pub(crate) use context::Context;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;

use crate::delegation::Hop;
use crate::error::IdentityError;
use crate::session::Credential;

/// Depth limit of chains of token exchanges, where the policy sets none.
pub(crate) const EXCHANGE_DEPTH: u64 = 3;

/// Result of a provider.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// Principal where the manifest names none.
    pub(crate) principal: Option<String>,
    /// Issuer where the manifest names none.
    pub(crate) issuer: Option<String>,
    pub(crate) chain: Vec<Hop>,
    pub(crate) credentials: Vec<Credential>,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) assertions: Json,
    /// Whether the credentials were narrowed for handing them to the task.
    pub(crate) is_narrowed: bool,
}

impl Default for Resolved {
    fn default() -> Resolved {
        Resolved {
            principal: None,
            issuer: None,
            chain: Vec::new(),
            credentials: Vec::new(),
            expires_at: None,
            assertions: Json::object(),
            is_narrowed: false,
        }
    }
}

/// Asks the provider of that name.
pub(crate) async fn resolve(provider: &str, context: &Context<'_>) -> Result<Resolved, IdentityError> {
    match provider {
        "stripe-api-key" => stripe::resolve(context).await,
        "none" => Ok(Resolved::default()),
        "env-bearer" => bearer::from_environment(context),
        "file-bearer" => bearer::from_file(context).await,
        "oidc-client-credentials" => oidc::resolve(context).await,
        "oidc-token-exchange" => exchange::resolve(context).await,
        "azure-managed-identity" => azure::resolve(context).await,
        "aws-sts-assume-role" => aws::resolve(context).await,
        "gcp-workload-identity" => gcp::resolve(context).await,
        "spiffe-jwt-svid" => spiffe::resolve(context),
        "entra-agent-id" => entra::resolve(context).await,
        _ => Err(IdentityError::UnknownProvider),
    }
}
