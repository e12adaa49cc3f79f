//! The channel to a gateway.

use std::time::Duration;

use proctor_net::grpc::client::{ChannelOptions, Target, TargetError, root_cause};
use tonic::transport::Channel;

use super::Options;
use super::error::ClientError;

/// Keep-alive of the connection: ping interval, and time for the answer.
const PING: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Connects a channel, which reconnects when the connection was lost.
pub(super) async fn connect(endpoint: &str, options: &Options) -> Result<Channel, ClientError> {
    let connecting = target(endpoint, options)?.connect(&channel_options(options)).await;
    connecting.map_err(|error| ClientError::Unreachable(root_cause(&error)))
}

/// A channel that connects with its first call.
pub(super) fn connect_later(endpoint: &str, options: &Options) -> Result<Channel, ClientError> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(ClientError::Settings("a client needs a tokio runtime around it".to_owned()));
    }
    let channel = target(endpoint, options)?.connect_lazily(&channel_options(options));
    channel.map_err(|error| unusable(endpoint, root_cause(&error)))
}

fn target(endpoint: &str, options: &Options) -> Result<Target, ClientError> {
    let target = Target::parse(endpoint, &options.tls).map_err(|error| match error {
        TargetError::Tls(error) => ClientError::Settings(error.to_string()),
        error => unusable(endpoint, error.to_string()),
    })?;
    if target.authority().is_some_and(|authority| authority.contains('@')) {
        return Err(unusable(endpoint, "it must not hold a user or a password".to_owned()));
    }
    Ok(target)
}

fn unusable(endpoint: &str, problem: String) -> ClientError {
    ClientError::Endpoint { endpoint: endpoint.to_owned(), problem }
}

fn channel_options(options: &Options) -> ChannelOptions {
    ChannelOptions {
        connect_timeout: options.connect_timeout,
        ping: PING,
        ping_timeout: PING_TIMEOUT,
        ping_while_idle: true,
    }
}
