//! Roles of AWS: `AssumeRole`, signed with the caller's keys, or `AssumeRoleWithWebIdentity` with a token file.

mod answer;

use proctor_core::json::Json;
use proctor_proof::secret::Secret;

use super::sigv4::{self, Keys, Signed};
use super::{Context, Resolved};
use crate::delegation::Hop;
use crate::error::IdentityError;
use crate::form::Form;
use crate::http::{Address, FORM_TYPE};
use crate::session::Credential;

const GRANT: &str = "sts-assume-role";

pub(super) async fn resolve(context: &Context<'_>) -> Result<Resolved, IdentityError> {
    let role = context.required_text("role_arn")?;
    let region = region(context)?;
    let duration = duration(context)?;
    let token_file = context
        .config_text("web_identity_token_file")
        .map(Secret::new)
        .or_else(|| context.variable("AWS_WEB_IDENTITY_TOKEN_FILE"));
    let action = if token_file.is_some() { "AssumeRoleWithWebIdentity" } else { "AssumeRole" };
    let form = Form::new()
        .with("Action", action)
        .with("Version", "2011-06-15")
        .with("RoleArn", role)
        .with("RoleSessionName", context.config_text("session_name").unwrap_or("agentcli-session"))
        .with("DurationSeconds", &duration.to_string());
    let address = Address::endpoint(&endpoint(context, &region))?;
    let (reply, caller) = match token_file {
        Some(path) => {
            let token = context.file("web identity token file", path.expose())?;
            let form = form.with("WebIdentityToken", token.expose());
            (context.client().post(&address, &[], &form).await?, Hop::new("caller", "web-identity", GRANT))
        }
        None => {
            let form = form.with_some("ExternalId", context.config_text("external_id"));
            let keys = keys(context)?;
            let reply = send_signed(context, &address, &region, &keys, &form).await?;
            // The key id is half of a credential: policies may compare it, descriptions hide it.
            (reply, Hop::new("caller", keys.id.expose(), GRANT).hidden())
        }
    };
    let issued = answer::read(context, &reply)?;
    let access_token = Credential::new("access_token", issued.session_token.clone())
        .with("access_key_id", issued.key_id.clone())
        .with("secret_access_key", issued.secret_key.clone());
    Ok(Resolved {
        principal: Some(role.to_owned()),
        chain: vec![caller, Hop::new("role", role, GRANT)],
        assertions: Json::object().with("role_arn", role).with("region", region.as_str()),
        expires_at: Some(issued.expires_at),
        credentials: vec![
            access_token,
            Credential::new("access_key_id", issued.key_id),
            Credential::new("secret_access_key", issued.secret_key),
            Credential::new("session_token", issued.session_token),
        ],
        ..Resolved::default()
    })
}

async fn send_signed(
    context: &Context<'_>,
    address: &Address,
    region: &str,
    keys: &Keys,
    form: &Form,
) -> Result<crate::http::Reply, IdentityError> {
    let url = address.url();
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let request = Signed {
        method: "POST",
        host: &host,
        path: url.path(),
        query: "",
        content_type: FORM_TYPE,
        body: form.as_str(),
        region,
        service: "sts",
        now: context.now(),
    };
    let authorization = context.remember(sigv4::authorization(&request, keys));
    let date = sigv4::amz_date(context.now());
    let mut headers = vec![("authorization", authorization.expose()), ("x-amz-date", &date)];
    if let Some(token) = &keys.session_token {
        headers.push(("x-amz-security-token", token.expose()));
    }
    Ok(context.client().post(address, &headers, form).await?)
}

fn keys(context: &Context<'_>) -> Result<Keys, IdentityError> {
    let session_token = context.variable("AWS_SESSION_TOKEN").map(|token| context.remember(token));
    Ok(Keys {
        id: context.required_variable("AWS key id", "AWS_ACCESS_KEY_ID")?,
        secret: context.required_variable("AWS secret key", "AWS_SECRET_ACCESS_KEY")?,
        session_token,
    })
}

fn region(context: &Context<'_>) -> Result<String, IdentityError> {
    let named = ["AWS_DEFAULT_REGION", "AWS_REGION"].iter().find_map(|name| context.variable(name));
    let region = context.config_text("region").or(named.as_ref().map(Secret::expose));
    let region = region.unwrap_or("us-east-1");
    // The region becomes a part of the host's name.
    if !region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        return Err(IdentityError::profile("`region` is not the name of an AWS region"));
    }
    Ok(region.to_owned())
}

fn duration(context: &Context<'_>) -> Result<u64, IdentityError> {
    let seconds = context.config("duration_seconds").map_or(Some(3600), Json::as_u64);
    seconds
        .filter(|seconds| (900..=43_200).contains(seconds))
        .ok_or_else(|| IdentityError::profile("`duration_seconds` is between 900 and 43200"))
}

fn endpoint(context: &Context<'_>, region: &str) -> String {
    let named = ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"].iter().find_map(|name| context.variable(name));
    match (context.config_text("endpoint"), named) {
        (Some(endpoint), _) => endpoint.to_owned(),
        (None, Some(endpoint)) => endpoint.expose().to_owned(),
        (None, None) if region == "us-east-1" => "https://sts.amazonaws.com/".to_owned(),
        (None, None) if region.starts_with("cn-") => format!("https://sts.{region}.amazonaws.com.cn/"),
        (None, None) => format!("https://sts.{region}.amazonaws.com/"),
    }
}
