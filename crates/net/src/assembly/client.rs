//! Calling an Agent Assembly gateway: over TCP, with or without TLS, or over a Unix socket.
//!
//! Every call is bounded in time and in size. A call that is dropped is cancelled at the gateway, too. A lost connection is made again by
//! the next call.
//!
//! ```
//! use proctor_net::assembly::client::{Client, ClientError, Identity, Options};
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

/// The header that carries the token.
const TOKEN_HEADER: &str = "x-aa-credential-token";

/// A connection to a gateway. Clones share the connection and the token.
///
/// ```
/// use proctor_net::assembly::client::{Client, Options, Token};
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

    /// The same, but connects at the first call: the gateway may not be there yet. Must be called within a tokio runtime.
    pub fn connect_later(endpoint: &str, options: Options) -> Result<Client, ClientError> {
        let channel = endpoint::connect_later(endpoint, &options)?;
        Ok(Client::over(endpoint, channel, options))
    }

    fn over(endpoint: &str, channel: Channel, options: Options) -> Client {
        Client { endpoint: endpoint.into(), channel, options: Arc::new(options), token: Arc::default() }
    }

    /// Where the gateway is.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Uses this token from now on; none: no token. [`register`](Client::register) does this by itself.
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

    /// Puts our token where the caller left it out.
    fn fill_token(&self, field: &mut String) {
        if field.is_empty()
            && let Some(token) = self.token()
        {
            token.reveal().clone_into(field);
        }
    }

    /// A request with our token.
    fn request<T>(&self, message: T) -> Request<T> {
        with_token(message, self.token().as_ref())
    }

    /// A request whose own token, if it has one, is also the one in the header: a gateway must not see two.
    fn request_of<T>(message: T, own: String) -> Request<T> {
        with_token(message, Token::new(own).as_ref())
    }

    /// Waits for the answer to a call, if the message can be sent at all.
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

/// How many bytes an event takes on the wire: what keeps events must bound them by this.
///
/// ```
/// use proctor_net::assembly::client::event_size;
/// use proctor_wire::assembly::proto::audit::v1::AuditEvent;
///
/// assert_eq!(event_size(&AuditEvent { event_id: "e1".into(), ..Default::default() }), 4);
/// ```
pub fn event_size(event: &AuditEvent) -> usize {
    event.encoded_len()
}

/// How long the message of a request is.
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
