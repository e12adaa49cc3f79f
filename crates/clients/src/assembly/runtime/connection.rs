//! Connection of a client, from its handshake to its end.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use proctor_net::accept::{ConnectionSlot, WorkGuard};
use proctor_net::budget::{self, Exhausted, Reservation, UNCOUNTED};
use proctor_wire::assembly::MAX_GRPC_MESSAGE;
use proctor_wire::assembly::frames::{ClientFrame, FrameError, MAX_PAYLOAD, READ_CHUNK, ServerFrame};
use proctor_wire::assembly::handshake::{HandshakeError, NONCE_LEN, ServerHandshake};
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, audit_event};
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, CheckActionResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep_until};

use crate::assembly::client::event_size;

use super::framing::{Decoder, Framing, encode};
use super::{Push, RuntimeHandler, RuntimeOptions, decision};

/// Backpressure: nothing is read while this much output is unsent.
const MAX_UNWRITTEN: usize = 1024 * 1024;
/// Backpressure: nothing is read while queries and reports of this size are handled; one alone may be larger.
const MAX_IN_FLIGHT: usize = MAX_PAYLOAD;
/// Longest event: a gateway's longest message, without what a report adds to the event. A longer one could never be delivered, and the client
/// would not learn of it later.
const MAX_EVENT: usize = MAX_GRPC_MESSAGE - 64 * 1024;
/// Reports that wait for the one before them.
const MAX_REPORTS: usize = 256;

/// Serves a connection to its end. One that breaks a rule is closed.
pub(super) async fn serve_connection<H: RuntimeHandler>(
    stream: UnixStream,
    options: Arc<RuntimeOptions>,
    handler: Arc<H>,
    slot: ConnectionSlot,
) {
    let connection = Connection::new(stream, options, Arc::clone(&handler));
    tokio::select! {
        biased;
        () = slot.abort.cancelled() => {}
        outcome = connection.run(&slot) => if let Err(error) = outcome {
            handler.closed(&error.to_string());
        },
    }
}

/// The end of a connection that broke a rule or failed. There is no frame that would tell the client.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error("no handshake proof in time")]
    NoProof,
    #[error("the connection ended before the handshake proof")]
    ClosedBeforeProof,
    #[error("a handshake proof that nobody asked for")]
    UnexpectedProof,
    #[error("no randomness for a challenge: {0}")]
    NoRandomness(#[from] getrandom::Error),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("an event of {0} bytes: a gateway accepts at most {MAX_EVENT}")]
    EventTooLong(usize),
    #[error("the connection ended within a frame")]
    TruncatedFrame,
    #[error("a frame was begun and not finished in time")]
    FrameTimeout,
    #[error(transparent)]
    Memory(#[from] Exhausted),
    #[error("the client does not read its answers")]
    WriteTimeout,
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}

type Working<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A query or a report, and its size in memory.
type Sized<T> = (T, usize);

struct Connection<H> {
    stream: UnixStream,
    options: Arc<RuntimeOptions>,
    handler: Arc<H>,
    decoder: Decoder,
    chunk: Vec<u8>,
    /// Deadline of a partially received frame.
    frame_due: Option<Instant>,
    queries: FuturesOrdered<Working<Sized<CheckActionResponse>>>,
    reporting: Option<Working<Sized<()>>>,
    reports: VecDeque<Sized<AuditEvent>>,
    /// Whether a frame was taken since the slot was told.
    was_used: bool,
    /// Held while there are queries in work.
    work: Option<WorkGuard>,
    /// Memory of an unfinished frame, and of queries and reports.
    memory: Option<Reservation>,
    /// The size of all queries and reports in flight.
    in_flight: usize,
    out: Vec<u8>,
    written: usize,
    /// Deadline for the client to read some output.
    write_due: Option<Instant>,
}

impl<H: RuntimeHandler> Connection<H> {
    fn new(stream: UnixStream, options: Arc<RuntimeOptions>, handler: Arc<H>) -> Self {
        Connection {
            stream,
            decoder: Decoder::new(options.framing),
            options,
            handler,
            chunk: Vec::new(),
            frame_due: None,
            queries: FuturesOrdered::new(),
            reporting: None,
            reports: VecDeque::new(),
            was_used: false,
            work: None,
            memory: budget::unfinished().try_reserve(0),
            in_flight: 0,
            out: Vec::new(),
            written: 0,
            write_due: None,
        }
    }

    async fn run(mut self, slot: &ConnectionSlot) -> Result<(), ConnectionError> {
        if self.options.framing.has_handshake() {
            let limit = self.options.handshake_timeout;
            tokio::select! {
                biased;
                // Nothing is in flight yet.
                () = slot.stop.cancelled() => return Ok(()),
                outcome = tokio::time::timeout(limit, self.handshake()) => match outcome {
                    Ok(outcome) => outcome?,
                    Err(_) => return Err(ConnectionError::NoProof),
                },
            }
        }
        let mut pushes = self.handler.subscribe_pushes();
        let mut ending = false;
        loop {
            let wants_input = !ending && self.take_frames()?;
            // While all slots are taken, a connection without a query in work gives way to a new one.
            if std::mem::take(&mut self.was_used) || self.queries.is_empty() != self.work.is_none() {
                let work = slot.begin_work();
                self.work = (!self.queries.is_empty()).then_some(work);
            }
            let idle = self.queries.is_empty() && self.reporting.is_none() && self.unwritten() == 0;
            if ending && idle {
                return Ok(());
            }
            self.step(slot, &mut pushes, wants_input, &mut ending).await?;
        }
    }

    /// Waits for the next event and handles it. Every branch is cancellation-safe.
    async fn step(
        &mut self,
        slot: &ConnectionSlot,
        pushes: &mut Option<broadcast::Receiver<Push>>,
        wants_input: bool,
        ending: &mut bool,
    ) -> Result<(), ConnectionError> {
        let has_room = self.unwritten() < MAX_UNWRITTEN;
        let unwritten = self.out.get(self.written..).unwrap_or_default();
        let (mut reader, mut writer) = self.stream.split();
        tokio::select! {
            biased;
            written = writer.write(unwritten), if !unwritten.is_empty() => {
                let written = written?;
                self.note_written(written);
            }
            Some((answer, size)) = self.queries.next(), if has_room => {
                self.in_flight = self.in_flight.saturating_sub(size);
                self.queue_answer(answer)?;
            }
            ((), size) = done(self.reporting.as_mut()) => {
                self.in_flight = self.in_flight.saturating_sub(size);
                self.reporting = None;
                self.report_next();
            }
            push = next_push(pushes.as_mut()), if has_room => match push {
                Some(push) => self.queue(&push.into())?,
                None => *pushes = None,
            },
            () = at(self.write_due) => return Err(ConnectionError::WriteTimeout),
            () = slot.stop.cancelled(), if !*ending => *ending = true,
            read = reader.read_buf(&mut self.chunk), if wants_input => {
                match read? {
                    0 if self.decoder.pending() > 0 => return Err(ConnectionError::TruncatedFrame),
                    0 => *ending = true,
                    _ => self.feed()?,
                }
            }
            () = at(self.frame_due), if wants_input => return Err(ConnectionError::FrameTimeout),
        }
        Ok(())
    }

    /// Sends the challenge and verifies the client's first frame, its proof.
    async fn handshake(&mut self) -> Result<(), ConnectionError> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce)?;
        let handshake = ServerHandshake::new(&self.options.agent_id, nonce);
        let mut challenge = Vec::new();
        handshake.challenge().encode(&mut challenge)?;
        self.stream.write_all(&challenge).await?;
        loop {
            if let Some(first) = self.decoder.next_frame()? {
                handshake.accept(first)?;
                return Ok(());
            }
            self.reserve_chunk();
            if self.stream.read_buf(&mut self.chunk).await? == 0 {
                return Err(ConnectionError::ClosedBeforeProof);
            }
            self.feed()?;
        }
    }

    /// Handles buffered frames within the limits; true if more input is needed.
    fn take_frames(&mut self) -> Result<bool, ConnectionError> {
        loop {
            let has_room = self.queries.len() < self.options.max_in_flight.max(1)
                && self.reports.len() < MAX_REPORTS
                && self.in_flight < MAX_IN_FLIGHT
                && self.unwritten() < MAX_UNWRITTEN;
            if !has_room {
                return Ok(false);
            }
            let before = self.decoder.pending();
            let Some(frame) = self.decoder.next_frame()? else {
                self.frame_due = match self.decoder.pending() {
                    0 => None,
                    _ => self.frame_due.or_else(|| Some(Instant::now() + self.options.frame_timeout)),
                };
                self.reserve_chunk();
                self.count_memory()?;
                return Ok(true);
            };
            self.frame_due = None;
            self.was_used = true;
            let size = before.saturating_sub(self.decoder.pending());
            self.take(frame, size)?;
        }
    }

    /// Counts what this connection holds, except a little, in the memory that all connections share.
    fn count_memory(&mut self) -> Result<(), ConnectionError> {
        let held = self.decoder.pending().saturating_add(self.in_flight);
        let counted = if held > UNCOUNTED { held.saturating_add(READ_CHUNK) } else { 0 };
        let fits = self.memory.as_mut().is_some_and(|memory| memory.resize(counted));
        if fits { Ok(()) } else { Err(Exhausted.into()) }
    }

    fn take(&mut self, frame: ClientFrame, size: usize) -> Result<(), ConnectionError> {
        match frame {
            ClientFrame::PolicyQuery(query) => {
                self.in_flight = self.in_flight.saturating_add(size);
                self.queries.push_back(Box::pin(answer(
                    Arc::clone(&self.handler),
                    query,
                    (self.options.query_timeout, self.options.framing),
                    size,
                )));
            }
            ClientFrame::EventReport(event) => {
                check_size(&event)?;
                if let Some(audit_event::Detail::Violation(violation)) = &event.detail {
                    self.queue(&ServerFrame::ViolationAlert(violation.clone()))?;
                }
                self.in_flight = self.in_flight.saturating_add(size);
                self.reports.push_back((event, size));
                if self.reporting.is_none() {
                    self.report_next();
                }
            }
            ClientFrame::ApprovalResponse(decision) => self.handler.approval_response(decision),
            ClientFrame::Heartbeat => {}
            ClientFrame::HandshakeProof(_) => {
                return Err(ConnectionError::UnexpectedProof);
            }
        }
        Ok(())
    }

    fn report_next(&mut self) {
        self.reporting = self.reports.pop_front().map(|(event, size)| {
            let handler = Arc::clone(&self.handler);
            let report = async move { handler.report(event).await };
            // A panic concerns this report only.
            let report = AssertUnwindSafe(report).catch_unwind().map(move |_| ((), size));
            Box::pin(report) as Working<Sized<()>>
        });
    }

    fn queue_answer(&mut self, answer: CheckActionResponse) -> Result<(), ConnectionError> {
        let before = self.out.len();
        if self.queue(&ServerFrame::PolicyResponse(answer)).is_ok() {
            return Ok(());
        }
        self.out.truncate(before);
        self.queue(&ServerFrame::PolicyResponse(decision::too_long()))
    }

    fn queue(&mut self, frame: &ServerFrame) -> Result<(), ConnectionError> {
        encode(self.options.framing, frame, &mut self.out)?;
        if self.write_due.is_none() && self.unwritten() > 0 {
            self.write_due = Some(Instant::now() + self.options.write_timeout);
        }
        Ok(())
    }

    fn unwritten(&self) -> usize {
        self.out.len().saturating_sub(self.written)
    }

    fn note_written(&mut self, count: usize) {
        self.written = self.written.saturating_add(count);
        if self.unwritten() > 0 {
            self.write_due = Some(Instant::now() + self.options.write_timeout);
            return;
        }
        self.write_due = None;
        self.written = 0;
        self.out.clear();
        self.out.shrink_to(READ_CHUNK);
    }

    /// Space for one read of the size that the decoder always accepts.
    fn reserve_chunk(&mut self) {
        if self.chunk.capacity() == 0 {
            self.chunk.reserve_exact(READ_CHUNK);
        }
    }

    fn feed(&mut self) -> Result<(), ConnectionError> {
        self.decoder.feed(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }
}

/// Refuses an event that no gateway accepts. The claimed agent counts twice: a report keeps it in a label when the agent is another one.
fn check_size(event: &AuditEvent) -> Result<(), ConnectionError> {
    let claimed = event.agent_id.as_ref().map_or(0, |agent| agent.agent_id.len());
    let size = event_size(event).saturating_add(claimed);
    if size > MAX_EVENT { Err(ConnectionError::EventTooLong(size)) } else { Ok(()) }
}

/// The answer to a query; a denial if the handler fails or times out.
async fn answer<H: RuntimeHandler>(
    handler: Arc<H>,
    query: CheckActionRequest,
    (limit, framing): (std::time::Duration, Framing),
    size: usize,
) -> Sized<CheckActionResponse> {
    let check = AssertUnwindSafe(async { handler.check(query).await }).catch_unwind();
    let answer = match tokio::time::timeout(limit, check).await {
        Ok(Ok(answer)) => decision::decided(answer, framing),
        Ok(Err(_)) => decision::defect(),
        Err(_) => decision::late(),
    };
    (answer, size)
}

async fn done<T>(working: Option<&mut Working<T>>) -> T {
    match working {
        Some(working) => working.await,
        None => pending().await,
    }
}

/// The next push; none once there are no more.
async fn next_push(pushes: Option<&mut broadcast::Receiver<Push>>) -> Option<Push> {
    let Some(pushes) = pushes else { return pending().await };
    loop {
        match pushes.recv().await {
            Ok(push) => return Some(push),
            Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return None,
        }
    }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
