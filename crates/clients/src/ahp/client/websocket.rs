//! WebSocket targets and their errors.

use proctor_net::websocket::client::{ConnectError, Target, TargetError};
use zeroize::Zeroizing;

use super::auth::AuthConfig;
use super::error::{AhpError, Result};
use super::options::ClientOptions;

pub(super) fn target(url: &str, auth: Option<&AuthConfig>, options: &ClientOptions) -> Result<Target> {
    let (url, _fragment) = url.split_once('#').unwrap_or((url, ""));
    let query = auth.and_then(AuthConfig::query);
    let url = match &query {
        Some(query) => {
            let join = if url.contains('?') { '&' } else { '?' };
            Zeroizing::new(format!("{url}{join}{}", query.as_str()))
        }
        None => Zeroizing::new(url.to_owned()),
    };
    // A secret in the URL is not repeated in a header.
    let header = auth.filter(|_| query.is_none()).map(AuthConfig::header);
    let header = header.as_ref().map(|(name, value)| (*name, value.as_str()));
    Target::new(&url, header, &options.tls).map_err(|error| match error {
        TargetError::InvalidSecret => AhpError::AuthFailed(error.to_string()),
        TargetError::Tls(error) => AhpError::InvalidConfig(error.to_string()),
        error => AhpError::InvalidConfig(format!("the WebSocket URL: {error}")),
    })
}

pub(super) fn connect_error(error: &ConnectError) -> AhpError {
    match error {
        ConnectError::Unauthorized(_) => AhpError::AuthFailed(error.to_string()),
        ConnectError::Url => AhpError::InvalidConfig(error.to_string()),
        ConnectError::NotUpgraded(_) | ConnectError::Failed(_) => AhpError::Transport(error.to_string()),
    }
}
