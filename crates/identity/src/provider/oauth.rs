//! Token endpoints: requests as forms, answers as JSON (RFC 6749, RFC 8693), and the metadata services that answer alike.

use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_proof::secret::Secret;

use super::Context;
use crate::environment::MAX_VALUE_BYTES;
use crate::error::IdentityError;
use crate::form::Form;
use crate::http::{Address, Header, Reply};

/// Values in an answer, at most.
const MAX_VALUES: usize = 1000;

/// Longest life of a token: a century of seconds. Longer ones are mistakes.
const MAX_LIFE: i64 = 100 * 366 * 24 * 3600;

/// Error words of RFC 6749, RFC 6750 and RFC 8693, and of metadata services. Others are not repeated: they may hold a secret.
const ERROR_WORDS: &[&str] = &[
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
    "invalid_target",
    "invalid_token",
    "insufficient_scope",
    "access_denied",
    "server_error",
    "temporarily_unavailable",
    "invalid_resource",
    "interaction_required",
    "consent_required",
    "unsupported_token_type",
    "unauthorized",
    "not_found",
];

/// Token that a server issued.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) token: Secret,
    pub(super) expires_at: Option<Timestamp>,
    /// Scopes that the server says it granted.
    pub(super) scope: Option<String>,
    /// `issued_token_type` of a token exchange.
    pub(super) token_type: Option<String>,
}

impl Issued {
    /// Facts about the token for `provider_assertions`.
    pub(super) fn assertions(&self) -> Json {
        let mut facts = Json::object().with("token_type", "Bearer");
        if let Some(scope) = &self.scope {
            facts.push("scope", scope.as_str());
        }
        facts
    }
}

/// Posts a form to a token endpoint.
pub(super) async fn request(
    context: &Context<'_>,
    address: &Address,
    headers: &[Header<'_>],
    form: &Form,
) -> Result<Issued, IdentityError> {
    let reply = context.client().post(address, headers, form).await?;
    read(context, &reply)
}

/// Asks a metadata service.
pub(super) async fn metadata(
    context: &Context<'_>,
    address: &Address,
    headers: &[Header<'_>],
) -> Result<Issued, IdentityError> {
    let reply = context.client().get(address, headers).await?;
    read(context, &reply)
}

fn read(context: &Context<'_>, reply: &Reply) -> Result<Issued, IdentityError> {
    let body = Json::parse_bounded(&reply.body, MAX_VALUES);
    if !reply.is_success() {
        let word = body.ok().and_then(|body| {
            let word = body.get("error").and_then(Json::as_str)?;
            ERROR_WORDS.iter().copied().find(|known| *known == word)
        });
        return Err(IdentityError::Refused { status: reply.status, word });
    }
    let body = body.map_err(|_| IdentityError::Answer("is not JSON"))?;
    let token = body.get("access_token").and_then(Json::as_str).unwrap_or_default();
    if token.is_empty() {
        return Err(IdentityError::Answer("has no `access_token`"));
    }
    let token = context.remember(Secret::new(token));
    check_token(&token)
        .map_err(|_| IdentityError::Answer("has an `access_token` that no header can carry"))?;
    if let Some(kind) = body.get("token_type").filter(|kind| !kind.is_null()) {
        let kind = kind.as_str().unwrap_or_default();
        // RFC 8693 has `N_A` for tokens that are presented otherwise.
        if !["Bearer", "N_A"].iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            return Err(IdentityError::Answer("has another `token_type` than Bearer"));
        }
    }
    Ok(Issued {
        token,
        expires_at: expiry(&body, context.now())?,
        scope: body.get("scope").and_then(Json::as_str).map(str::to_owned),
        token_type: body.get("issued_token_type").and_then(Json::as_str).map(str::to_owned),
    })
}

/// Checks that a token can stand in a header and an environment variable.
pub(super) fn check_token(token: &Secret) -> Result<(), &'static str> {
    if token.expose().len() > MAX_VALUE_BYTES {
        return Err("the token is longer than 64 KiB");
    }
    if token.expose().contains(char::is_control) {
        return Err("the token holds control characters");
    }
    Ok(())
}

/// Moment of expiry by `expires_on` (seconds since 1970) or `expires_in` (seconds), each as a number or text.
fn expiry(body: &Json, now: Timestamp) -> Result<Option<Timestamp>, IdentityError> {
    let seconds = |name: &str| match body.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(value) => {
            let text = match value {
                Json::Number(text) => text.to_string(),
                value => value.as_str().unwrap_or_default().trim().to_owned(),
            };
            // Some servers write whole seconds with a fraction.
            let whole = text.split('.').next().unwrap_or_default();
            whole.parse::<i64>().map(Some).map_err(|_| IdentityError::Answer("has an unreadable expiry"))
        }
    };
    let now_seconds = now.micros().div_euclid(1_000_000);
    let expires = match (seconds("expires_on")?, seconds("expires_in")?) {
        (Some(moment), _) => moment,
        (None, Some(life)) => now_seconds.saturating_add(life),
        (None, None) => return Ok(None),
    };
    if expires <= now_seconds {
        return Err(IdentityError::Answer("has a token that expired already"));
    }
    if expires - now_seconds > MAX_LIFE {
        return Err(IdentityError::Answer("has an unreadable expiry"));
    }
    Ok(Some(Timestamp::from_micros(expires.saturating_mul(1_000_000))))
}

/// The form with the client's credentials, or the header that carries them: `client_auth: basic` (RFC 6749, 2.3.1).
pub(super) fn client_credentials(
    context: &Context<'_>,
    form: Form,
    id: Option<&str>,
    secret: Option<&Secret>,
) -> Result<(Form, Option<Secret>), IdentityError> {
    match (context.config_text("client_auth"), id, secret) {
        (None | Some("body"), id, secret) => {
            Ok((form.with_some("client_id", id).with_some("client_secret", secret.map(Secret::expose)), None))
        }
        (Some("basic"), Some(id), Some(secret)) => Ok((form, Some(context.remember(basic(id, secret))))),
        (Some("basic"), ..) => {
            Err(IdentityError::profile("`client_auth: basic` needs `client_id` and `client_secret`"))
        }
        _ => Err(IdentityError::profile("`client_auth` is `body` or `basic`")),
    }
}

/// Value of `Authorization`: both parts are form-encoded before they are joined.
fn basic(id: &str, secret: &Secret) -> Secret {
    use base64::Engine as _;
    let mut pair = zeroize::Zeroizing::new(String::new());
    crate::form::percent_encode(id.as_bytes(), &mut pair);
    pair.push(':');
    crate::form::percent_encode(secret.expose().as_bytes(), &mut pair);
    Secret::new(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair.as_bytes())))
}
