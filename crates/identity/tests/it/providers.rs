//! Every provider against a server on loopback: good answers, refusals, limits, and secrets that never show.

mod aws;
mod local;
mod matrix;
mod oauth;
mod spiffe;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::time::{ManualClock, Timestamp};
use proctor_identity::environment::Environment;
use proctor_identity::http::Client;
use proctor_identity::session::LookupError;
use proctor_identity::sources::Commands;
use proctor_identity::{IdentityError, ResolveOptions, Resolver, Session};

/// Word that every planted secret contains.
pub(crate) const PLANTED: &str = "hunter2";

/// 2025-01-01T00:00:00Z.
pub(crate) const NOW: i64 = 1_735_689_600;

pub(crate) fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

pub(crate) fn identity(provider: &str, auth: &str) -> Json {
    json(&format!(
        r#"{{"provider":"{provider}","scope":null,"subject":{{"kind":"service","principal":null}},"auth":{auth}}}"#
    ))
}

pub(crate) async fn resolve_in(
    folder: &Path,
    variables: &[(&str, &str)],
    identity: &Json,
) -> Result<Session, IdentityError> {
    let environment = Environment::new(variables.iter().copied(), folder);
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(NOW * 1_000_000)));
    let client = Client::new(&environment).with_time_limit(Duration::from_millis(500));
    let resolver = Resolver::new(environment, clock).with_client(client);
    let options = ResolveOptions { commands: Commands::Forbidden, instance: None };
    let result = resolver.resolve(identity, &options).await;
    // Nothing that people see holds a secret, whatever happened.
    let shown = match &result {
        Ok(session) => format!("{} {session:?}", session.describe()),
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!shown.contains(PLANTED), "{shown}");
    result
}

pub(crate) async fn resolve(variables: &[(&str, &str)], identity: &Json) -> Result<Session, IdentityError> {
    resolve_in(Path::new("/"), variables, identity).await
}

/// The credential that bindings call `credentials.NAME.value`.
pub(crate) fn credential(session: &Session, name: &str) -> Result<String, LookupError> {
    let found = session.lookup(&format!("credentials.{name}.value"))?;
    match found {
        proctor_identity::session::Lookup::Credential(secret) => Ok(secret.expose().to_owned()),
        _ => Err(LookupError::Missing),
    }
}

/// The fields of a form, decoded.
pub(crate) fn fields(request: &str) -> Vec<(String, String)> {
    let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let url = reqwest::Url::parse(&format!("http://x/?{body}")).unwrap();
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

pub(crate) fn field(request: &str, name: &str) -> Option<String> {
    fields(request).into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
}
