//! The client: rate limit, retries and deadlines around single HTTP exchanges.

use std::fmt;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use reqwest::Url;
use tokio::runtime::{Builder, Runtime};

use super::backoff::{Backoff, BackoffTimer};
use super::bucket::TokenBucket;
use super::endpoint::{Endpoint, Limits};
use super::error::ProviderError;
use super::exchange::{ChatReply, ChatRequest, Vectors};
use super::http;
use super::wire::{self, Outgoing};

/// Limit of concurrent requests of one call.
const CONCURRENT: usize = 16;

/// Limit of texts in one embedding request; OpenAI takes no more.
const MOST_TEXTS: usize = 2048;

/// A blocking client of one endpoint. Clones share its limits, its connections and its runtime.
///
/// Every call blocks the calling thread until it has an answer or its deadline has passed. From asynchronous code, call it on
/// a thread that may block.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    endpoint: Endpoint,
    base: Url,
    limits: Limits,
    backoff: BackoffTimer,
    bucket: Mutex<TokenBucket>,
    /// The bucket's time is counted from here.
    began: Instant,
    /// Started by the first call.
    engine: OnceLock<Result<Engine, ProviderError>>,
}

struct Engine {
    /// Always there until the client is dropped.
    runtime: Option<Runtime>,
    connector: reqwest::Client,
}

/// Remaining time of a call.
#[derive(Clone, Copy)]
struct Deadline {
    began: Instant,
    total: Duration,
}

impl Client {
    /// A client for the endpoint. Nothing is started or opened before the first call.
    pub fn new(endpoint: Endpoint, limits: Limits) -> Result<Client, ProviderError> {
        Client::with_backoff(endpoint, limits, Backoff::default())
    }

    /// A client with its own backoff between retries.
    pub fn with_backoff(
        endpoint: Endpoint,
        limits: Limits,
        backoff: Backoff,
    ) -> Result<Client, ProviderError> {
        let base = http::base_url(&endpoint.base_url)?;
        http::credentials(&endpoint)?;
        let inner = Inner {
            endpoint,
            base,
            limits,
            backoff: BackoffTimer::new(backoff),
            bucket: Mutex::new(TokenBucket::new(limits.per_minute, limits.burst)),
            began: Instant::now(),
            engine: OnceLock::new(),
        };
        Ok(Client { inner: Arc::new(inner) })
    }

    /// Endpoint of the calls.
    pub fn endpoint(&self) -> &Endpoint {
        &self.inner.endpoint
    }

    /// Asks a model to continue a conversation.
    pub fn chat(&self, request: &ChatRequest, deadline: Duration) -> Result<ChatReply, ProviderError> {
        let mut replies = self.chat_all(std::slice::from_ref(request), deadline);
        replies.pop().unwrap_or_else(|| Err(no_answer()))
    }

    /// Asks several questions at once, up to sixteen at the same time. The answers are in the order of the questions; the
    /// deadline is that of all of them together.
    pub fn chat_all(
        &self,
        requests: &[ChatRequest],
        deadline: Duration,
    ) -> Vec<Result<ChatReply, ProviderError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        let deadline = Deadline { began: Instant::now(), total: deadline };
        let vendor = self.inner.endpoint.vendor;
        let calls: Vec<_> = requests
            .iter()
            .map(|request| (wire::chat(vendor, &self.inner.base, request), request.model.clone()))
            .collect();
        let inner = Arc::clone(&self.inner);
        let answered = self.block_on(async move {
            stream::iter(calls)
                .map(|(outgoing, model)| {
                    let inner = Arc::clone(&inner);
                    async move {
                        let body = inner.call(outgoing?, deadline).await?;
                        wire::chat_reply(vendor, &model, &body)
                    }
                })
                .buffered(CONCURRENT)
                .collect::<Vec<_>>()
                .await
        });
        match answered {
            Ok(replies) => replies
                .into_iter()
                .map(|reply| self.inner.presentable(reply).map(|reply| self.inner.without_key(reply)))
                .collect(),
            Err(error) => requests.iter().map(|_| self.inner.presentable(Err(error.clone()))).collect(),
        }
    }

    /// Turns texts into vectors, in the order of the texts. Only OpenAI's interface and what is compatible with it can.
    pub fn embed(&self, model: &str, texts: &[&str], deadline: Duration) -> Result<Vectors, ProviderError> {
        let deadline = Deadline { began: Instant::now(), total: deadline };
        self.inner.presentable(self.try_embed(model, texts, deadline))
    }

    fn try_embed(&self, model: &str, texts: &[&str], deadline: Deadline) -> Result<Vectors, ProviderError> {
        let outgoing = wire::embed(self.inner.endpoint.vendor, &self.inner.base, model, texts)?;
        if texts.is_empty() {
            return Ok(Vectors { vectors: Vec::new(), model: model.to_owned(), tokens: Some(0) });
        }
        if texts.len() > MOST_TEXTS {
            let text = format!("{} texts are too many for one call: send at most {MOST_TEXTS}", texts.len());
            return Err(ProviderError::Invalid(text));
        }
        let inner = Arc::clone(&self.inner);
        let body = self.block_on(async move { inner.call(outgoing, deadline).await })??;
        wire::embed_reply(model, texts.len(), &body)
    }

    /// Runs a task on the client's runtime and waits for it.
    ///
    /// The task is handed over, not driven here: waiting on a channel works on every thread, also on one of another runtime.
    fn block_on<Output: Send + 'static>(
        &self,
        task: impl Future<Output = Output> + Send + 'static,
    ) -> Result<Output, ProviderError> {
        let engine = self.inner.engine()?;
        let runtime = engine.runtime.as_ref().ok_or_else(no_answer)?;
        let (answer, answered) = sync_channel(1);
        runtime.spawn(async move {
            // Nobody else holds the other end: it is there as long as the call.
            let _ = answer.send(task.await);
        });
        answered.recv().map_err(|_| no_answer())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Client")
            .field("endpoint", &self.inner.endpoint)
            .field("limits", &self.inner.limits)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn engine(&self) -> Result<&Engine, ProviderError> {
        let started = self.engine.get_or_init(|| {
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .thread_name("provider")
                .enable_all()
                .build()
                .map_err(|error| ProviderError::Unreachable(format!("no thread for the call: {error}")))?;
            let connector = http::connector(&self.endpoint, &self.base, &self.limits)?;
            Ok(Engine { runtime: Some(runtime), connector })
        });
        started.as_ref().map_err(Clone::clone)
    }

    /// Asks until there is an answer, an error that will not pass, no retry left or no time left.
    async fn call(&self, outgoing: Outgoing, deadline: Deadline) -> Result<Vec<u8>, ProviderError> {
        let mut failures = 0;
        loop {
            self.wait_for_turn(deadline).await?;
            let error = match self.attempt(outgoing.clone(), deadline).await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            let passing = match &error {
                // An attempt that took all its time has shown that waiting does not help.
                ProviderError::TimedOut => false,
                other => other.retryable(),
            };
            if !passing || failures >= self.limits.retries {
                return Err(error);
            }
            let wanted = match &error {
                ProviderError::RateLimited { retry_after } => *retry_after,
                _ => None,
            };
            match self.backoff.after(failures, wanted) {
                // A pause that ends after the deadline would only delay the bad news.
                Some(pause) if pause < deadline.left() => tokio::time::sleep(pause).await,
                _ => return Err(error),
            }
            failures += 1;
        }
    }

    async fn attempt(&self, outgoing: Outgoing, deadline: Deadline) -> Result<Vec<u8>, ProviderError> {
        let connector = &self.engine()?.connector;
        let exchange = http::exchange(connector, outgoing, self.limits.max_reply_bytes);
        let time = self.limits.attempt.min(deadline.left());
        tokio::time::timeout(time, exchange).await.unwrap_or(Err(ProviderError::TimedOut))
    }

    async fn wait_for_turn(&self, deadline: Deadline) -> Result<(), ProviderError> {
        let turn = {
            let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
            bucket.take(self.began.elapsed(), deadline.left())
        };
        match turn {
            Ok(wait) if wait.is_zero() => Ok(()),
            Ok(wait) => {
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Err(wait) => Err(ProviderError::Throttled { wait }),
        }
    }

    /// A model's words go on to records and pages: a server that puts the key into them does not get it there.
    fn without_key(&self, reply: ChatReply) -> ChatReply {
        let key = self.endpoint.key.as_ref().map_or("", super::endpoint::Key::expose);
        ChatReply { text: super::error::without(&reply.text, key), ..reply }
    }

    /// The only way out for errors: none leaves with the key in it.
    fn presentable<Answer>(&self, result: Result<Answer, ProviderError>) -> Result<Answer, ProviderError> {
        let key = self.endpoint.key.as_ref().map(super::endpoint::Key::expose);
        result.map_err(|error| error.presentable(key))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(Ok(engine)) = self.engine.get_mut()
            && let Some(runtime) = engine.runtime.take()
        {
            // The last clone may be dropped by a task of this very runtime, or of another: neither may block.
            runtime.shutdown_background();
        }
    }
}

impl Deadline {
    fn left(self) -> Duration {
        self.total.saturating_sub(self.began.elapsed())
    }
}

fn no_answer() -> ProviderError {
    ProviderError::Unreachable("the call ended without an answer".to_owned())
}
