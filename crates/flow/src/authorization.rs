//! Authorization of a task by an external or embedded policy.
//!
//! | Provider | `provider_config` |
//! |---|---|
//! | `none` | nothing; always permits |
//! | `opa` | `endpoint`: URL that takes `{"input": request}`; or `module` (Rego text) or `module_file`, with `query`, the full name of a rule such as `data.deploy.allow` |
//! | `cedar` | `policies` (text) or `policies_file`; optional `entities` (Cedar's JSON form), `schema` (Cedar's own syntax), `principal`, `action`, `resource` |
//! | `topaz` | `endpoint` (base URL), `policy_path`; optional `decision` (`allowed`), `identity_type` (`sub`, `jwt`, `manual`, `none`), `ca_certificate` (PEM, or a file), `resource_context` (object) |
//!
//! **Cedar's request.** The principal is `Agent::"<principal of the identity>"` (`Agent::"unknown"` without one), the action
//! `Action::"run"`, the resource `Task::"<workflow>/<task>"`, and the context the request. `principal`, `action` and `resource` name
//! another entity type, or a whole entity (`Team::"ops"`). Nulls are left out of the context, arrays are sets, numbers that are not
//! whole are texts. A policy that fails is an error, a permit too.
//!
//! **Topaz's request.** `identityContext` has the principal (`sub`, `manual`), the session's token (`jwt`) or nothing (`none`);
//! `policyContext` the path and the decision; `resourceContext` the members of `resource_context` and the request as `request`.
//!
//! **Decisions.** In a result `true` permits and `false` denies; `{allow, reason}` permits by the boolean `true` alone; a text is
//! mapped by `decision`, or is one of the three canonical words; everything else, a missing result too, denies.
//!
//! **Errors** deny. With `on_error: warn` they permit, and the decision says `weakened`, which callers have to record.

mod config;
mod decision;
mod embedded;
mod remote;
mod request;

use std::path::Path;

use proctor_core::json::Json;
use proctor_identity::http::Client;
use proctor_proof::sources::FetchError;
use proctor_wire::agentcli::effective::EffectiveTask;
use proctor_wire::agentcli::error::{Code, Failure};

pub use config::ConfigError;
pub use decision::{Decision, Word};
pub use request::SessionView;

/// A failed authorization.
#[derive(Debug, thiserror::Error)]
pub enum AuthorizationError {
    /// The task names no authorization.
    #[error("task `{0}` has no authorization: refer to an authorization profile")]
    NotDeclared(String),
    /// The provider does not exist.
    #[error("authorization provider `{0}` is unknown: use none, opa, cedar or topaz")]
    UnknownProvider(String),
    /// The provider failed, and errors deny.
    #[error("authorization by `{provider}` failed: {problem}")]
    Provider {
        /// The provider.
        provider: &'static str,
        /// The failure.
        problem: ProviderProblem,
    },
}

/// A failure of a provider.
#[derive(Debug, thiserror::Error)]
pub enum ProviderProblem {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The request failed.
    #[error("`{endpoint}`: {problem}")]
    Request {
        /// The address, without credentials and query.
        endpoint: String,
        /// The problem.
        problem: FetchError,
    },
    /// The answer is no JSON object.
    #[error("the answer is not a JSON object")]
    NotJson,
    /// A policy could not be compiled.
    #[error("the policy cannot be used: {0}")]
    Policy(proctor_policy::modules::ModuleProblem),
    /// A Rego rule failed.
    #[error(transparent)]
    Rego(#[from] proctor_policy::modules::rego::QueryFailure),
    /// A Cedar policy failed.
    #[error(transparent)]
    Cedar(#[from] proctor_policy::modules::cedar::CedarFailure),
    /// The evaluation ended without an answer.
    #[error("the evaluation ended without an answer")]
    Ended,
}

impl AuthorizationError {
    /// Detail code of the protocol.
    pub fn code(&self) -> Code {
        match self {
            AuthorizationError::NotDeclared(_) => Code::InvalidArgument,
            AuthorizationError::UnknownProvider(_) => Code::UnknownAuthorizationProvider,
            AuthorizationError::Provider { .. } => Code::AuthorizationError,
        }
    }

    /// The failure as doors answer it.
    pub fn to_failure(&self) -> Failure {
        Failure::new(self.code(), crate::text::readable(&self.to_string()))
    }
}

/// Asks the provider of a task's authorization. Files of the configuration are relative to `folder`; `client` asks remote ones.
pub async fn evaluate(
    task: &EffectiveTask,
    session: &SessionView<'_>,
    folder: &Path,
    client: &Client,
) -> Result<Decision, AuthorizationError> {
    let authorization =
        task.authorization.as_ref().ok_or_else(|| AuthorizationError::NotDeclared(task.task_id.clone()))?;
    let request = request::build(task, session, authorization.pointer("/request/include"));
    let config = &authorization["provider_config"];
    let name = authorization["provider"].as_str().unwrap_or_default();
    let (provider, answer) = match name {
        "none" => return Ok(Decision::none()),
        "opa" if !config["endpoint"].is_null() => ("opa", remote::opa(config, &request, client).await),
        "opa" => ("opa", embedded::rego(config, request, folder).await),
        "cedar" => ("cedar", embedded::cedar(config, request, folder, task, session).await),
        "topaz" => ("topaz", remote::topaz(config, &request, session, folder, client).await),
        other => return Err(AuthorizationError::UnknownProvider(crate::text::readable(other))),
    };
    match answer {
        Ok(answer) => Ok(answer.decide(provider, &authorization["decision"])),
        Err(problem) if authorization["on_error"] == "warn" => {
            Ok(Decision::weakened(provider, &crate::text::readable(&problem.to_string())))
        }
        Err(problem) => Err(AuthorizationError::Provider { provider, problem }),
    }
}

/// A provider's answer, before the mapping of decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    /// The result; `None` if it is missing.
    result: Option<Json>,
    /// The policy that was asked, or those that decided.
    policy_ref: Option<String>,
}
