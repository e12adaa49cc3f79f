//! Policy engines that are asked over HTTP: OPA and Topaz.

use std::path::Path;

use proctor_core::json::Json;
use proctor_identity::http::{Address, Client};
use proctor_proof::sources::FetchError;

use super::config::{self, ConfigError};
use super::request::SessionView;
use super::{Answer, ProviderProblem};

/// Path of Topaz's decision call.
const TOPAZ_PATH: &str = "/api/v2/authz/is";

/// Asks OPA's data interface.
pub(super) async fn opa(config: &Json, request: &Json, client: &Client) -> Result<Answer, ProviderProblem> {
    let endpoint = config::text(config, "endpoint")?;
    let body = Json::object().with("input", request.clone());
    let address = Address::without_credentials(endpoint).map_err(unusable)?;
    let reply = post(client, &address, &body).await?;
    Ok(Answer { result: reply.get("result").cloned(), policy_ref: Some(address.shown()) })
}

/// Asks Topaz's authorizer.
pub(super) async fn topaz(
    config: &Json,
    request: &Json,
    session: &SessionView<'_>,
    folder: &Path,
    client: &Client,
) -> Result<Answer, ProviderProblem> {
    let base = config::text(config, "endpoint")?.trim_end_matches('/');
    let path = config::text(config, "policy_path")?;
    let decision = config::optional_text(config, "decision")?.unwrap_or("allowed");
    let resource = match &config["resource_context"] {
        Json::Null => Json::object(),
        object @ Json::Object(_) => object.clone(),
        _ => return Err(ConfigError::Object("resource_context").into()),
    };
    let body = Json::object()
        .with("identityContext", identity(config, session)?)
        .with(
            "policyContext",
            Json::object().with("path", path).with("decisions", vec![Json::from(decision)]),
        )
        .with("resourceContext", with_request(resource, request));
    let certificate = certificate(config, folder).await?;
    let endpoint = if base.ends_with(TOPAZ_PATH) { base.to_owned() } else { format!("{base}{TOPAZ_PATH}") };
    // A token in the request is a credential, which is sent encrypted only.
    let has_token = body.pointer("/identityContext/type").and_then(Json::as_str) == Some("IDENTITY_TYPE_JWT");
    let address =
        if has_token { Address::endpoint(&endpoint) } else { Address::without_credentials(&endpoint) };
    let address = address.map_err(unusable)?;
    let private;
    let client = match certificate {
        Some(pem) => {
            private = client.trusting(&pem).map_err(|problem| failed(&address, problem))?;
            &private
        }
        None => client,
    };
    let reply = post(client, &address, &body).await?;
    let items = reply.get("decisions").and_then(Json::as_array).unwrap_or_default().iter();
    let mut answers = items.filter(|item| item["decision"] == decision).map(|item| item.get("is"));
    // Only a boolean is an answer: a text such as `permit` must not be mapped to one. Two answers that differ are none.
    let first = answers.next().flatten().filter(|is| is.as_bool().is_some());
    let result = first.filter(|first| answers.all(|other| other == Some(*first)));
    Ok(Answer { result: result.cloned(), policy_ref: Some(path.to_owned()) })
}

fn identity(config: &Json, session: &SessionView<'_>) -> Result<Json, ProviderProblem> {
    let kind = config::optional_text(config, "identity_type")?.unwrap_or("sub");
    let identity = match kind {
        "sub" | "manual" => session.principal.unwrap_or("unknown"),
        "jwt" => session.token.ok_or(ConfigError::NoToken)?,
        "none" => "",
        _ => return Err(ConfigError::Choice { key: "identity_type", known: "sub, jwt, manual, none" }.into()),
    };
    let mut context = Json::object().with("type", format!("IDENTITY_TYPE_{}", kind.to_uppercase()));
    if !identity.is_empty() {
        context.push("identity", identity);
    }
    Ok(context)
}

/// The request stands under its own name, whatever the configuration says.
fn with_request(resource: Json, request: &Json) -> Json {
    match resource {
        Json::Object(mut members) => {
            members.retain(|(name, _)| name != "request");
            members.push(("request".to_owned(), request.clone()));
            Json::Object(members)
        }
        other => other,
    }
}

/// PEM text of the private authority.
async fn certificate(config: &Json, folder: &Path) -> Result<Option<String>, ProviderProblem> {
    const KEY: &str = "ca_certificate";
    match config::optional_text(config, KEY)? {
        None => Ok(None),
        Some(text) if text.trim_start().starts_with("-----BEGIN") => Ok(Some(text.to_owned())),
        Some(path) => {
            let path = folder.join(path);
            let read = tokio::task::spawn_blocking(move || config::file(KEY, &path));
            Ok(Some(read.await.map_err(|_| ProviderProblem::Ended)??))
        }
    }
}

async fn post(client: &Client, address: &Address, body: &Json) -> Result<Json, ProviderProblem> {
    let reply = client.post_json(address, body).await.map_err(|problem| failed(address, problem))?;
    if reply.status != 200 {
        return Err(failed(address, FetchError::Status(reply.status)));
    }
    object(&reply.body)
}

fn failed(address: &Address, problem: FetchError) -> ProviderProblem {
    ProviderProblem::Request { endpoint: address.shown(), problem }
}

/// An address that is not shown: it may hold a password.
fn unusable(problem: FetchError) -> ProviderProblem {
    ProviderProblem::Request { endpoint: "endpoint".to_owned(), problem }
}

fn object(body: &[u8]) -> Result<Json, ProviderProblem> {
    match Json::parse_bounded(body, 100_000) {
        Ok(reply @ Json::Object(_)) => Ok(reply),
        _ => Err(ProviderProblem::NotJson),
    }
}
