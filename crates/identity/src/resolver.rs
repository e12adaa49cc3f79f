//! Resolution of a merged identity to a session.

use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::time::Clock;
use proctor_wire::agentcli::providers::{self, IdentityProvider};

use crate::delegation::{self, DelegationPolicy};
use crate::environment::Environment;
use crate::error::IdentityError;
use crate::http::Client;
use crate::provider::{self, Context, Resolved};
use crate::session::{Handoff, Session, Subject, Trust};
use crate::sources::Commands;

/// Resolver of identities: environment, clock and HTTP client.
pub struct Resolver {
    environment: Environment,
    clock: Arc<dyn Clock>,
    client: Client,
}

/// Options of one resolution.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResolveOptions<'a> {
    /// Commands as value sources.
    pub commands: Commands<'a>,
    /// Instance of the task.
    pub instance: Option<&'a str>,
}

impl Resolver {
    /// A resolver in this environment.
    pub fn new(environment: Environment, clock: Arc<dyn Clock>) -> Resolver {
        let client = Client::new(&environment);
        Resolver { environment, clock, client }
    }

    /// Replaces the HTTP client, for example by one with a shorter time limit.
    #[must_use]
    pub fn with_client(self, client: Client) -> Resolver {
        Resolver { client, ..self }
    }

    /// The environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The HTTP client, which proofs fetch key sets with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Resolves a merged identity. With `auth.required: false` every failure gives a session without credentials.
    pub async fn resolve(
        &self,
        identity: &Json,
        options: &ResolveOptions<'_>,
    ) -> Result<Session, IdentityError> {
        let name = identity.get("provider").and_then(Json::as_str).unwrap_or_default();
        let provider = providers::identity_provider(name).ok_or(IdentityError::UnknownProvider)?;
        let context =
            Context::new(identity, &self.environment, options.commands, &self.client, self.clock.now());
        let is_optional = identity.pointer("/auth/required").and_then(Json::as_bool) == Some(false);
        let attempt = self.attempt(provider, &context, options).await;
        let mut session = match attempt {
            Err(error) if is_optional => {
                let empty = Resolved::default();
                let mut session = assemble(provider, &context, options, empty);
                session.unresolved = Some(error.code());
                session
            }
            attempt => attempt?,
        };
        session.is_optional = is_optional;
        session.used = context.used();
        Ok(session)
    }

    async fn attempt(
        &self,
        provider: &'static IdentityProvider,
        context: &Context<'_>,
        options: &ResolveOptions<'_>,
    ) -> Result<Session, IdentityError> {
        let handoff = context.handoff();
        if !provider.handoff_modes.contains(&handoff) {
            return Err(IdentityError::Unsupported(
                "the identity provider does not support this `presentation.handoff`",
            ));
        }
        let resolved = provider::resolve(provider.name, context).await?;
        let session = assemble(provider, context, options, resolved);
        if !session.delegation.is_valid() {
            return Err(IdentityError::Delegation(session.delegation));
        }
        Ok(session)
    }
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Resolver").field("environment", &self.environment).finish_non_exhaustive()
    }
}

fn assemble(
    provider: &'static IdentityProvider,
    context: &Context<'_>,
    options: &ResolveOptions<'_>,
    resolved: Resolved,
) -> Session {
    let policy = DelegationPolicy::from_json(context.auth("delegation_policy"));
    let policy = match provider.name {
        "oidc-token-exchange" => policy.strict(provider::EXCHANGE_DEPTH),
        _ if provider.delegation => policy.strict(delegation::DEFAULT_DEPTH),
        _ => policy,
    };
    let own = |name: &str| context.subject(name).map(str::to_owned);
    Session {
        provider: provider.name,
        subject: Subject {
            principal: own("principal").or(resolved.principal),
            issuer: own("issuer").or(resolved.issuer),
            run_as: own("run_as"),
        },
        instance: options.instance.map(str::to_owned),
        trust: Trust::from_json(context.identity().get("trust")),
        delegation: delegation::validate(&resolved.chain, &policy),
        chain: resolved.chain,
        credentials: resolved.credentials,
        assertions: resolved.assertions,
        is_refreshable: provider.refreshable,
        expires_at: resolved.expires_at,
        handoff: Handoff { mode: context.handoff().to_owned(), is_prepared: resolved.is_narrowed },
        unresolved: None,
        is_optional: false,
        credential_types: provider.credential_types,
        used: Vec::new(),
    }
}
