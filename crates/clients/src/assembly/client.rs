//! Client of an Agent Assembly gateway, over TCP, TLS or a Unix socket.
//!
//! Every call is bounded in time and in size. Dropping a call cancels it at the gateway. After a lost connection the next call
//! reconnects.
//!
//! ```
//! use proctor_clients::assembly::client::{Client, ClientError, Identity, Options};
//! use proctor_wire::assembly::proto::agent::v1::RegisterRequest;
//! use proctor_wire::assembly::proto::common::v1::Decision;
//! use proctor_wire::assembly::proto::policy::v1::CheckActionRequest;
//!
//! async fn may_i(identity: &Identity, action: CheckActionRequest) -> Result<bool, ClientError> {
//!     let client = Client::connect("http://127.0.0.1:50051", Options::default()).await?;
//!     client.register(identity, RegisterRequest { name: "my-agent".into(), ..Default::default() }).await?;
//!     Ok(client.check(action).await?.decision() == Decision::Allow)
//! }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # let client = Client::connect_later("unix:/nobody/is/there", Options::default()).unwrap();
//! # assert!(matches!(client.check(CheckActionRequest::default()).await, Err(ClientError::Unreachable(_))));
//! # });
//! ```

mod calls;
mod endpoint;
mod error;
mod identity;
mod options;
mod streams;
mod token;

pub use error::ClientError;
pub use identity::Identity;
pub use options::Options;
pub use streams::{Incoming, Invalidations};
pub use token::Token;
pub use tonic::Code;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use proctor_wire::assembly::MAX_GRPC_MESSAGE;
use proctor_wire::assembly::proto::audit::v1::AuditEvent;
use prost::Message;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// The header with the token.
const TOKEN_HEADER: &str = "x-aa-credential-token";

/// A connection to a gateway. Clones share the connection and the token.
///
/// ```
/// use proctor_clients::assembly::client::{Client, Options, Token};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let client = Client::connect_later("http://127.0.0.1:50051", Options::default()).unwrap();
/// assert!(!client.has_token());
/// client.set_token(Token::new("3f2a"));
/// assert!(client.has_token() && !format!("{client:?}").contains("3f2a"));
/// # });
/// ```
#[derive(Clone)]
pub struct Client {
    endpoint: Arc<str>,
    channel: Channel,
    options: Arc<Options>,
    token: Arc<RwLock<Option<Token>>>,
}

impl Client {
    /// Connects to `http://host:port`, `https://host:port` or `unix:/path`, without any proxy.
    pub async fn connect(endpoint: &str, options: Options) -> Result<Client, ClientError> {
        let channel = endpoint::connect(endpoint, &options).await?;
        Ok(Client::over(endpoint, channel, options))
    }

    /// A client that connects with its first call: the gateway may start later. Must be called within a tokio runtime.
    pub fn connect_later(endpoint: &str, options: Options) -> Result<Client, ClientError> {
        let channel = endpoint::connect_later(endpoint, &options)?;
        Ok(Client::over(endpoint, channel, options))
    }

    fn over(endpoint: &str, channel: Channel, options: Options) -> Client {
        Client { endpoint: endpoint.into(), channel, options: Arc::new(options), token: Arc::default() }
    }

    /// The gateway's address.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Sets the token of all later calls, or removes it. [`register`](Client::register) does this by itself.
    pub fn set_token(&self, token: Option<Token>) {
        *self.token.write().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// Whether there is a token.
    pub fn has_token(&self) -> bool {
        self.token.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn token(&self) -> Option<Token> {
        self.token.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fills in the client's token if the request has none.
    fn fill_token(&self, field: &mut String) {
        if field.is_empty()
            && let Some(token) = self.token()
        {
            token.reveal().clone_into(field);
        }
    }

    /// A request with the client's token in its header.
    fn request<T>(&self, message: T) -> Request<T> {
        with_token(message, self.token().as_ref())
    }

    /// A request with its own token in the header, too: a gateway must not see two different ones.
    fn request_of<T>(message: T, own: String) -> Request<T> {
        with_token(message, Token::new(own).as_ref())
    }

    /// Waits for the answer of a call, within the limits of size and time.
    async fn answer<M>(
        &self,
        method: &'static str,
        size: usize,
        call: impl Future<Output = Result<Response<M>, Status>>,
    ) -> Result<M, ClientError> {
        if size > MAX_GRPC_MESSAGE {
            return Err(ClientError::TooLarge { method, bytes: size, max: MAX_GRPC_MESSAGE });
        }
        let limit = self.options.call_timeout;
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(ClientError::from_status(method, &status)),
            Err(_) => Err(ClientError::timeout(method, limit)),
        }
    }
}

fn with_token<T>(message: T, token: Option<&Token>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(value) = token.and_then(Token::header) {
        request.metadata_mut().insert(TOKEN_HEADER, value);
    }
    request
}

/// The encoded size of an event, for bounds of buffers.
///
/// ```
/// use proctor_clients::assembly::client::event_size;
/// use proctor_wire::assembly::proto::audit::v1::AuditEvent;
///
/// assert_eq!(event_size(&AuditEvent { event_id: "e1".into(), ..Default::default() }), 4);
/// ```
pub fn event_size(event: &AuditEvent) -> usize {
    event.encoded_len()
}

/// The encoded size of a request.
fn size<M: Message>(request: &Request<M>) -> usize {
    request.get_ref().encoded_len()
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Client")
            .field("endpoint", &self.endpoint)
            .field("token", &self.token())
            .finish_non_exhaustive()
    }
}
