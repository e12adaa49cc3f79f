//! Configuration that each identity provider needs.

mod stripe;

use proctor_core::json::Json;

use super::identity::{Faults, Profile};
use super::keys;
use crate::agentcli::validate::scalars::{filled, given};

/// Checks the configuration of one provider.
pub(super) fn check(faults: &mut Faults<'_>, profile: &Profile<'_>, provider: &str) {
    match provider {
        "stripe-api-key" => stripe::check(faults, profile),
        "env-bearer" => env_bearer(faults, profile),
        "file-bearer" => file_bearer(faults, profile),
        "oidc-client-credentials" => client_credentials(faults, profile),
        "oidc-token-exchange" => token_exchange(faults, profile),
        "azure-managed-identity" => azure(faults, profile),
        "aws-sts-assume-role" => aws(faults, profile),
        "gcp-workload-identity" => gcp(faults, profile),
        "spiffe-jwt-svid" => spiffe(faults, profile),
        "entra-agent-id" => entra(faults, profile),
        _ => {}
    }
}

impl Profile<'_> {
    /// Whether a configured member is a text.
    fn has(&self, name: &str) -> bool {
        filled(self.config(name)).is_some()
    }

    /// Whether an input has a value source.
    fn has_input_source(&self, name: &str) -> bool {
        self.input(name).and_then(|input| input.get("value_from")).is_some_and(is_source)
    }
}

impl Faults<'_> {
    /// Reports each of these members that is no text.
    fn need(&mut self, profile: &Profile<'_>, names: &[&str]) {
        for name in names {
            if !profile.has(name) {
                self.missing(format!("`auth.provider_config.{name}` is required"));
            }
        }
    }

    /// Reports a member that is given, but does not fit.
    fn fits(&mut self, profile: &Profile<'_>, name: &str, needs: &str, fits: impl Fn(&str) -> bool) {
        if let Some(value) = profile.config(name)
            && !value.as_str().is_some_and(fits)
        {
            self.invalid(format!("`auth.provider_config.{name}` must be {needs}"));
        }
    }
}

/// Whether the value is a source: `env`, `file` or `command`.
fn is_source(value: &Json) -> bool {
    ["env", "file", "command"].iter().any(|name| filled(value.get(name)).is_some())
}

fn env_bearer(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    let inputs = ["token", "access_token", "bearer_token"];
    if !profile.has("token_env") && !inputs.iter().any(|name| filled(profile.input(name)).is_some()) {
        faults.missing("`auth.provider_config.token_env` or a token in `auth.inputs` is required");
    }
}

fn file_bearer(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    if !profile.has("token_file") && !profile.has_input_source("token_file") {
        let message = "`auth.provider_config.token_file` or `auth.inputs.token_file.value_from` is required";
        faults.missing(message);
    }
}

fn client_credentials(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    faults.need(profile, &["token_endpoint", "client_id"]);
    let configured = profile.config("client_secret");
    let has_secret = filled(configured).is_some()
        || configured.and_then(|secret| secret.get("value_from")).is_some_and(is_source)
        || filled(profile.input("client_secret")).is_some()
        || profile.has_input_source("client_secret");
    if !has_secret {
        faults.missing("`auth.provider_config.client_secret` or `auth.inputs.client_secret` is required");
    }
}

fn token_exchange(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    faults.need(profile, &["token_endpoint"]);
    if !profile.has("subject_token_env") && !profile.has_input_source("subject_token") {
        let message =
            "`auth.provider_config.subject_token_env` or `auth.inputs.subject_token.value_from` is required";
        faults.missing(message);
    }
}

fn azure(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    faults.need(profile, &["resource"]);
    faults.fits(profile, "client_id", "a string that is not empty", |text| !text.trim().is_empty());
}

fn aws(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    faults.need(profile, &["role_arn"]);
    if profile.has("role_arn") {
        faults.fits(profile, "role_arn", "the ARN of an IAM role", is_role_arn);
    }
    // The region becomes part of a host name.
    faults.fits(profile, "region", "the name of a region", |text| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    faults.fits(profile, "session_name", "2 to 64 letters, digits or characters of `_+=,.@-`", |text| {
        (2..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte))
    });
}

/// `arn:PARTITION:iam::ACCOUNT:role/NAME`
fn is_role_arn(text: &str) -> bool {
    let mut parts = text.splitn(6, ':');
    let partition = |part: &str| {
        part.starts_with("aws") && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    parts.next() == Some("arn")
        && parts.next().is_some_and(partition)
        && parts.next() == Some("iam")
        && parts.next() == Some("")
        && parts.next().is_some_and(|id| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_digit()))
        && parts.next().and_then(|part| part.strip_prefix("role/")).is_some_and(|name| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/_+=,.@-".contains(&byte))
        })
}

fn gcp(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    let scopes = profile.config("scopes").or_else(|| profile.auth("scopes"));
    let full = scopes
        .and_then(Json::as_array)
        .is_some_and(|scopes| !scopes.is_empty() && scopes.iter().all(|scope| filled(Some(scope)).is_some()));
    if !full {
        faults.missing(
            "`auth.provider_config.scopes` or `auth.scopes` must be a list of strings that are not empty",
        );
    }
    faults.fits(profile, "service_account_email", "an address with `@`", |text| {
        text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
    });
}

fn spiffe(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    faults.need(profile, &["svid_file"]);
    if filled(profile.auth("audience")).is_none() && !profile.has("audience") {
        faults.missing("`auth.audience` or `auth.provider_config.audience` is required");
    }
    let required = profile.auth("required").and_then(Json::as_bool) != Some(false);
    let sources = ["public_key_pem", "public_key_file", "jwks", "jwks_file"];
    let count = sources.iter().filter(|name| profile.config(name).is_some()).count();
    if (required && count != 1) || count > 1 {
        let message = format!("exactly one of `{}` is required", sources.join("`, `"));
        faults.missing(message);
    }
    for name in ["workload_api_socket", "jwks_uri"] {
        if profile.config(name).is_some() {
            faults.unsupported(format!("`auth.provider_config.{name}` is not supported"));
        }
    }
    for name in ["public_key_file", "jwks_file"] {
        faults.fits(profile, name, "a string that is not empty", |text| !text.trim().is_empty());
    }
    faults.fits(profile, "public_key_pem", "a public key in PEM, RSA with at least 2048 bits", |text| {
        keys::is_public_key(text) && keys::rsa_bits(text).is_none_or(|bits| bits >= keys::LEAST_RSA_BITS)
    });
    if let Some(set) = profile.config("jwks")
        && !keys::is_key_set(set)
    {
        faults
            .invalid("`auth.provider_config.jwks` must be a set of public keys, RSA with at least 2048 bits");
    }
    if let Some(tolerance) = profile.config("clock_tolerance_s") {
        let number = match tolerance {
            Json::Number(literal) => literal.parse::<f64>().ok(),
            _ => None,
        };
        if !number.is_some_and(|seconds| (0.0..=300.0).contains(&seconds)) {
            faults.invalid("`auth.provider_config.clock_tolerance_s` must be 0 to 300");
        }
    }
}

fn entra(faults: &mut Faults<'_>, profile: &Profile<'_>) {
    let names = ["tenant_id", "blueprint_app_id", "agent_identity_id"];
    faults.need(profile, &names);
    for name in names {
        if profile.has(name) {
            faults.fits(profile, name, "a GUID of the form 8-4-4-4-12", |text| {
                !resembles_guid(text) || is_guid(text)
            });
        }
    }
}

/// Whether the text has only a GUID's characters, and is about as long as one.
fn resembles_guid(text: &str) -> bool {
    (30..=40).contains(&text.len())
        && text.contains('-')
        && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

fn is_guid(text: &str) -> bool {
    let mut lengths = [8, 4, 4, 4, 12].into_iter();
    text.split('-').all(|part| lengths.next() == Some(part.len())) && lengths.next().is_none()
}

/// Whether the value is an object that is not empty.
fn full_object(value: Option<&Json>) -> Option<&[(String, Json)]> {
    given(value).and_then(Json::as_object).filter(|members| !members.is_empty())
}
