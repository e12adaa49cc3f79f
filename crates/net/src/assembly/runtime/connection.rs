//! One connection, from its handshake to its end.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use proctor_wire::assembly::frames::{ClientFrame, MAX_PAYLOAD, READ_CHUNK, ServerFrame};
use proctor_wire::assembly::handshake::{NONCE_LEN, ServerHandshake};
use proctor_wire::assembly::proto::audit::v1::{AuditEvent, audit_event};
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, CheckActionResponse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep_until};

use super::framing::{Decoder, encode};
use super::{Push, RuntimeHandler, RuntimeOptions, decision};
use crate::ahp::server::accept::Place;

/// No more is read while this much waits to be written.
const MAX_UNWRITTEN: usize = 1024 * 1024;
/// No more is read while queries and reports of this size are worked on; one alone may be larger.
const MAX_AT_WORK: usize = MAX_PAYLOAD;
/// How many reports may wait for the one before them.
const MAX_REPORTS: usize = 256;

/// Serves a connection to its end. One that breaks a rule is closed; there is no frame that would say why.
pub(super) async fn converse<H: RuntimeHandler>(
    stream: UnixStream,
    options: Arc<RuntimeOptions>,
    handler: Arc<H>,
    place: Place,
) {
    let connection = Connection::new(stream, options, Arc::clone(&handler));
    tokio::select! {
        biased;
        () = place.kill.cancelled() => {}
        outcome = connection.run(&place) => if let Err(why) = outcome {
            handler.closed(&why);
        },
    }
}

type Working<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A query or a report, and how much memory it is about.
type Sized<T> = (T, usize);

struct Connection<H> {
    stream: UnixStream,
    options: Arc<RuntimeOptions>,
    handler: Arc<H>,
    decoder: Decoder,
    chunk: Vec<u8>,
    /// When the frame that has begun must be whole.
    frame_due: Option<Instant>,
    queries: FuturesOrdered<Working<Sized<CheckActionResponse>>>,
    reporting: Option<Working<Sized<()>>>,
    reports: VecDeque<Sized<AuditEvent>>,
    /// The memory that queries and reports are about.
    at_work: usize,
    out: Vec<u8>,
    written: usize,
    /// When the client must have read something.
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
            at_work: 0,
            out: Vec::new(),
            written: 0,
            write_due: None,
        }
    }

    async fn run(mut self, place: &Place) -> Result<(), String> {
        if self.options.framing.shakes_hands() {
            let limit = self.options.handshake_timeout;
            tokio::select! {
                biased;
                // Nothing is in flight yet.
                () = place.stop.cancelled() => return Ok(()),
                outcome = tokio::time::timeout(limit, self.shake_hands()) => match outcome {
                    Ok(outcome) => outcome?,
                    Err(_) => return Err("no handshake proof in time".to_owned()),
                },
            }
        }
        let mut pushes = self.handler.subscribe_pushes();
        let mut ending = false;
        loop {
            let hungry = !ending && self.take_frames()?;
            let idle = self.queries.is_empty() && self.reporting.is_none() && self.unwritten() == 0;
            if ending && idle {
                return Ok(());
            }
            self.step(place, &mut pushes, hungry, &mut ending).await?;
        }
    }

    /// Waits for whatever comes first, and does it. Nothing here is lost when another branch wins.
    async fn step(
        &mut self,
        place: &Place,
        pushes: &mut Option<broadcast::Receiver<Push>>,
        hungry: bool,
        ending: &mut bool,
    ) -> Result<(), String> {
        let has_room = self.unwritten() < MAX_UNWRITTEN;
        let unwritten = self.out.get(self.written..).unwrap_or_default();
        let (mut reader, mut writer) = self.stream.split();
        tokio::select! {
            biased;
            written = writer.write(unwritten), if !unwritten.is_empty() => {
                let written = written.map_err(|error| gone(&error))?;
                self.has_written(written);
            }
            Some((answer, size)) = self.queries.next(), if has_room => {
                self.at_work = self.at_work.saturating_sub(size);
                self.say_answer(answer)?;
            }
            ((), size) = done(self.reporting.as_mut()) => {
                self.at_work = self.at_work.saturating_sub(size);
                self.reporting = None;
                self.report_next();
            }
            push = next_push(pushes.as_mut()), if has_room => match push {
                Some(push) => self.say(&push.into())?,
                None => *pushes = None,
            },
            () = at(self.write_due) => return Err("the client does not read its answers".to_owned()),
            () = place.stop.cancelled(), if !*ending => *ending = true,
            read = reader.read_buf(&mut self.chunk), if hungry => {
                match read.map_err(|error| gone(&error))? {
                    0 if self.decoder.pending() > 0 => return Err("the connection ended within a frame".to_owned()),
                    0 => *ending = true,
                    _ => self.feed()?,
                }
            }
            () = at(self.frame_due), if hungry => return Err("a frame was begun and not finished in time".to_owned()),
        }
        Ok(())
    }

    /// Sends the challenge, and takes the client's first frame for its proof.
    async fn shake_hands(&mut self) -> Result<(), String> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|error| format!("no randomness for a challenge: {error}"))?;
        let handshake = ServerHandshake::new(&self.options.agent_id, nonce);
        let mut challenge = Vec::new();
        handshake.challenge().encode(&mut challenge).map_err(|error| error.to_string())?;
        self.stream.write_all(&challenge).await.map_err(|error| gone(&error))?;
        loop {
            if let Some(first) = self.decoder.next_frame().map_err(|error| error.to_string())? {
                return handshake.accept(first).map(drop).map_err(|error| error.to_string());
            }
            self.make_room();
            if self.stream.read_buf(&mut self.chunk).await.map_err(|error| gone(&error))? == 0 {
                return Err("the connection ended before the handshake proof".to_owned());
            }
            self.feed()?;
        }
    }

    /// Takes what was read, as long as there is room for it. True: more must be read.
    fn take_frames(&mut self) -> Result<bool, String> {
        loop {
            let has_room = self.queries.len() < self.options.max_in_flight.max(1)
                && self.reports.len() < MAX_REPORTS
                && self.at_work < MAX_AT_WORK
                && self.unwritten() < MAX_UNWRITTEN;
            if !has_room {
                return Ok(false);
            }
            let before = self.decoder.pending();
            let Some(frame) = self.decoder.next_frame().map_err(|error| error.to_string())? else {
                self.frame_due = match self.decoder.pending() {
                    0 => None,
                    _ => self.frame_due.or_else(|| Some(Instant::now() + self.options.frame_timeout)),
                };
                self.make_room();
                return Ok(true);
            };
            self.frame_due = None;
            let size = before.saturating_sub(self.decoder.pending());
            self.take(frame, size)?;
        }
    }

    fn take(&mut self, frame: ClientFrame, size: usize) -> Result<(), String> {
        match frame {
            ClientFrame::PolicyQuery(query) => {
                self.at_work = self.at_work.saturating_add(size);
                self.queries.push_back(Box::pin(answer(
                    Arc::clone(&self.handler),
                    query,
                    self.options.query_timeout,
                    size,
                )));
            }
            ClientFrame::EventReport(event) => {
                if let Some(audit_event::Detail::Violation(violation)) = &event.detail {
                    self.say(&ServerFrame::ViolationAlert(violation.clone()))?;
                }
                self.at_work = self.at_work.saturating_add(size);
                self.reports.push_back((event, size));
                if self.reporting.is_none() {
                    self.report_next();
                }
            }
            ClientFrame::ApprovalResponse(decision) => self.handler.approval_response(decision),
            ClientFrame::Heartbeat => {}
            ClientFrame::HandshakeProof(_) => {
                return Err("a handshake proof that nobody asked for".to_owned());
            }
        }
        Ok(())
    }

    fn report_next(&mut self) {
        self.reporting = self.reports.pop_front().map(|(event, size)| {
            let handler = Arc::clone(&self.handler);
            let report = async move { handler.report(event).await };
            // A defect in it concerns this report only.
            let report = AssertUnwindSafe(report).catch_unwind().map(move |_| ((), size));
            Box::pin(report) as Working<Sized<()>>
        });
    }

    fn say_answer(&mut self, answer: CheckActionResponse) -> Result<(), String> {
        let before = self.out.len();
        if self.say(&ServerFrame::PolicyResponse(answer)).is_ok() {
            return Ok(());
        }
        self.out.truncate(before);
        self.say(&ServerFrame::PolicyResponse(decision::too_long()))
    }

    fn say(&mut self, frame: &ServerFrame) -> Result<(), String> {
        encode(self.options.framing, frame, &mut self.out).map_err(|error| error.to_string())?;
        if self.write_due.is_none() && self.unwritten() > 0 {
            self.write_due = Some(Instant::now() + self.options.write_timeout);
        }
        Ok(())
    }

    fn unwritten(&self) -> usize {
        self.out.len().saturating_sub(self.written)
    }

    fn has_written(&mut self, count: usize) {
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

    /// Room for one read, and for no more: that much the decoder takes whole.
    fn make_room(&mut self) {
        if self.chunk.capacity() == 0 {
            self.chunk.reserve_exact(READ_CHUNK);
        }
    }

    fn feed(&mut self) -> Result<(), String> {
        self.decoder.feed(&self.chunk).map_err(|error| error.to_string())?;
        self.chunk.clear();
        Ok(())
    }
}

/// The answer to a query, whatever happens.
async fn answer<H: RuntimeHandler>(
    handler: Arc<H>,
    query: CheckActionRequest,
    limit: std::time::Duration,
    size: usize,
) -> Sized<CheckActionResponse> {
    let check = AssertUnwindSafe(async { handler.check(query).await }).catch_unwind();
    let answer = match tokio::time::timeout(limit, check).await {
        Ok(Ok(answer)) => decision::decided(answer),
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

/// The next push; none if there will be no more.
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

fn gone(error: &io::Error) -> String {
    format!("the connection broke: {error}")
}
