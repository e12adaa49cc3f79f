//! Agents behind an HTTP URL: one `POST`, answered with a JSON body or an event stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use proctor_net::http::client::{
    HttpClient, HttpOptions, HttpOptionsError, Post, PostError, StatusCode, StreamedReply,
};
use proctor_net::sse;

use super::address::{AddressError, ClientOptions};
use super::connection::Connection;
use super::error::start_of;
use super::{ConnectError, Exchange, ExecuteError, Item, MAX_MESSAGE, Message, Origin};

/// Paths that are tried on a URL without one, in this order.
const ROUTES: [&str; 3] = ["/execute/stream", "/execute", "/"];

const JSON: &str = "application/json";
const VENDOR_JSON: &str = proctor_wire::atp::MEDIA_TYPE;
const EVENT_STREAM: &str = "text/event-stream";
/// The media type of any version of the protocol begins like this.
const VENDOR_PREFIX: &str = "application/vnd.atp.v";
const ACCEPT: &str = "application/vnd.atp.v1+json, application/json, text/event-stream";

/// Bytes of the body of an error that are kept.
const ERROR_BODY: usize = 4 * 1024;
/// Time for the body of an error to arrive; then the status is reported without the rest.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of the target of a redirect that are kept.
const LOCATION: usize = 200;

/// A client of an HTTP agent, with its connection pool.
#[derive(Clone)]
pub(super) struct HttpAgent(Arc<Shared>);

struct Shared {
    client: HttpClient,
    /// Whether the URL has no path, so that [`ROUTES`] are tried.
    is_bare: bool,
    /// The first route that may be served. It moves on when a later one has answered with success: tests run many times against one
    /// agent, and searching costs two round trips each time.
    route: AtomicUsize,
    /// Whether the agent has refused `application/json`, but taken the media type of the protocol.
    wants_vendor_type: AtomicBool,
}

impl HttpAgent {
    pub(super) fn new(url: &str, options: &ClientOptions) -> Result<HttpAgent, AddressError> {
        let client = HttpClient::new(&HttpOptions {
            url,
            credentials: None,
            connect_timeout: options.connect_timeout,
            max_reply: MAX_MESSAGE,
            tls: &options.tls,
        });
        let mut client =
            client.map_err(|error: HttpOptionsError| AddressError::Invalid(error.to_string()))?;
        for (name, value) in options.headers.iter() {
            let changed = client.with_header(name, value);
            client = changed.map_err(|_| AddressError::InvalidHeader(name.to_owned()))?;
        }
        let is_bare = !options.is_exact && client.path() == "/";
        let (route, wants_vendor_type) = (AtomicUsize::new(0), AtomicBool::new(false));
        Ok(HttpAgent(Arc::new(Shared { client, is_bare, route, wants_vendor_type })))
    }

    pub(super) fn execute(&self, request: Bytes) -> Exchange {
        let shared = Arc::clone(&self.0);
        Exchange::opening(async move { shared.open(request).await.map(Connection::Http) })
    }
}

impl Shared {
    async fn open(&self, request: Bytes) -> Result<Reply, ExecuteError> {
        if !self.is_bare {
            let reply = self.post(None, request).await?;
            return accept(reply, self.client.path()).await;
        }
        let mut route = self.route.load(Ordering::Relaxed);
        loop {
            let path = ROUTES.get(route).copied().unwrap_or("/");
            let reply = self.post(Some(path), request.clone()).await?;
            let is_unknown = matches!(reply.status(), StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
            if is_unknown && route + 1 < ROUTES.len() {
                route += 1;
                continue;
            }
            if reply.status().is_success() {
                self.route.store(route, Ordering::Relaxed);
            }
            return accept(reply, path).await;
        }
    }

    /// Posts the request, once more in the other media type if the agent wants that.
    async fn post(&self, path: Option<&'static str>, body: Bytes) -> Result<StreamedReply, ExecuteError> {
        let wants_vendor_type = self.wants_vendor_type.load(Ordering::Relaxed);
        let content_type = if wants_vendor_type { VENDOR_JSON } else { JSON };
        let mut post = Post { path, content_type, accept: ACCEPT, body };
        let reply = self.client.post_streaming(post.clone()).await.map_err(failed)?;
        if wants_vendor_type || reply.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return Ok(reply);
        }
        post.content_type = VENDOR_JSON;
        let reply = self.client.post_streaming(post).await.map_err(failed)?;
        if reply.status().is_success() {
            self.wants_vendor_type.store(true, Ordering::Relaxed);
        }
        Ok(reply)
    }
}

/// Judges the head of a reply.
async fn accept(reply: StreamedReply, path: &str) -> Result<Reply, ExecuteError> {
    let status = reply.status();
    if status.is_redirection() {
        let location = reply.location().map(|location| start_of(location.as_bytes(), LOCATION));
        return Err(ExecuteError::Redirect { status: status.as_u16(), location });
    }
    if !status.is_success() {
        let body = start_of_body(reply).await;
        return Err(ExecuteError::Status { status: status.as_u16(), path: path.to_owned(), body });
    }
    let media_type = reply.media_type();
    if media_type.starts_with(VENDOR_PREFIX) && media_type != VENDOR_JSON {
        return Err(ExecuteError::UnsupportedMediaType(start_of(media_type.as_bytes(), LOCATION)));
    }
    if media_type == EVENT_STREAM {
        let decoder = sse::Decoder::new(MAX_MESSAGE);
        return Ok(Reply::Events { reply, decoder, chunk: Bytes::new() });
    }
    // Servers that name no type, or a wrong one, are understood if their body is a response.
    Ok(Reply::Body { reply, body: Vec::new() })
}

async fn start_of_body(mut reply: StreamedReply) -> Bytes {
    let mut body = Vec::new();
    let reading = async {
        while body.len() < ERROR_BODY
            && let Ok(Some(chunk)) = reply.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
    };
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await;
    body.truncate(ERROR_BODY);
    Bytes::from(body)
}

fn failed(error: PostError) -> ExecuteError {
    match error {
        PostError::ConnectTimeout => ConnectError::TimedOut.into(),
        PostError::NotConnected(problem) => ConnectError::Failed(problem).into(),
        PostError::ConnectionLost => ExecuteError::ConnectionLost,
        PostError::ReplyTooLong(_) => ExecuteError::TooLong,
        PostError::Failed(problem) => ExecuteError::Transport(problem),
    }
}

/// A reply whose body is being read.
pub(super) enum Reply {
    Events { reply: StreamedReply, decoder: sse::Decoder, chunk: Bytes },
    Body { reply: StreamedReply, body: Vec<u8> },
    Ended,
}

impl Reply {
    pub(super) async fn next(&mut self) -> Result<Option<Item>, ExecuteError> {
        let message = match self {
            Reply::Ended => return Ok(None),
            Reply::Events { reply, decoder, chunk } => match next_event(reply, decoder, chunk).await? {
                Some(message) => return Ok(Some(Item::Message(message))),
                None => last_event(decoder)?,
            },
            Reply::Body { reply, body } => {
                while let Some(chunk) = reply.chunk().await.map_err(failed)? {
                    if body.len() + chunk.len() > MAX_MESSAGE {
                        return Err(ExecuteError::TooLong);
                    }
                    body.extend_from_slice(&chunk);
                }
                let text = Bytes::from(std::mem::take(body));
                // An empty body is no message.
                (!text.trim_ascii().is_empty()).then_some(Message { text, origin: Origin::Response })
            }
        };
        *self = Reply::Ended;
        Ok(message.map(Item::Message))
    }
}

/// The next event that holds anything; none at the end of the stream.
async fn next_event(
    reply: &mut StreamedReply,
    decoder: &mut sse::Decoder,
    chunk: &mut Bytes,
) -> Result<Option<Message>, ExecuteError> {
    loop {
        while let Some(event) = decoder.decode(chunk).map_err(|_| ExecuteError::TooLong)? {
            if let Some(message) = message(event) {
                return Ok(Some(message));
            }
        }
        match reply.chunk().await.map_err(failed)? {
            Some(next) => *chunk = next,
            None => return Ok(None),
        }
    }
}

fn last_event(decoder: &mut sse::Decoder) -> Result<Option<Message>, ExecuteError> {
    Ok(decoder.finish().map_err(|_| ExecuteError::TooLong)?.and_then(message))
}

/// Events without data keep the connection alive, and are no messages.
fn message(event: sse::Event) -> Option<Message> {
    let origin = Origin::ServerSentEvent { name: event.name };
    (!event.data.trim_ascii().is_empty()).then_some(Message { text: event.data, origin })
}
