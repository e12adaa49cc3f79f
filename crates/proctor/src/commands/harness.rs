//! `proctor harness`: the Agent Harness Protocol on stdin and stdout, until stdin ends.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use proctor_clients::ahp::rpc::{self, Id, Message};
use proctor_clients::ahp::server::{Peer, StreamLimits, closed_reply};
use proctor_net::lines::{Line, Lines, MAX_MESSAGE};
use proctor_net::stdio::{self, StandardInput, StandardOutput};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Context, serve};
use crate::access::{AHP, Access, Owner};
use crate::config::Config;
use crate::failure::{Failure, Outcome, all_on_record};
use proctor_engine::access::Opening;
use proctor_engine::policy_watch;

/// Requests that wait for the owner at a time; then stdin is not read further.
const WINDOW: usize = 256;
/// Time that an answer of the owner is waited for beyond the owner's own limit.
const PATIENCE: Duration = Duration::from_millis(300);
/// Pause after a failed attempt to reach an owner.
const NEXT_TRY: Duration = Duration::from_millis(200);

pub(super) fn run(context: &Context) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::from(error.to_string()))?;
    let first = open_first(&context.config)?;
    let stop = CancellationToken::new();
    let ended = runtime.block_on(async {
        let watcher = stop.clone();
        let mut signals = serve::StopSignals::catch()?;
        let signal = tokio::spawn(async move {
            let signal = signals.next().await;
            watcher.cancel();
            signal
        });
        let served = serve_connection(&context.config, first, &stop).await;
        let signal = if stop.is_cancelled() { signal.await.ok() } else { None };
        Ok::<_, Failure>((served, signal))
    });
    let (served, signal) = ended?;
    let mut unrecorded = 0;
    if let Some(owner) = served.owner {
        proctor_engine::owner::drain_commands();
        unrecorded = owner.engine.finish();
    }
    runtime.shutdown_background();
    match (signal, served.ended) {
        (Some(signal), _) => Ok(u8::try_from(128 + signal).unwrap_or(1)),
        // A reader that goes away is no failure of this program.
        (None, Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::from(format!("stdin or stdout: {}", proctor_system::describe(&error))))
        }
        (None, _) => all_on_record(unrecorded),
    }
}

/// Result of serving stdin: the owner, if this process became it, and the error that ended the stream, if one did.
struct Served {
    owner: Option<Owner>,
    ended: io::Result<()>,
}

/// Decider: this process, or the owner that it relays to.
enum Backend {
    Own(Owner),
    Relay(std::os::unix::net::UnixStream, Vec<u8>),
}

/// Opens the directory for the first time. None if another process owns it and cannot be reached now: requests are blocked until it can be.
fn open_first(config: &Config) -> Result<Option<Backend>, Failure> {
    let until = Some(std::time::Instant::now() + config.ahp.answer);
    match Access::open_within(config, &Opening { mode: AHP, until, ..Opening::default() }) {
        Err(error) if error.is_unreached() => {
            log::warn!("{error}");
            Ok(None)
        }
        access => Ok(Some(backend(config, access?))),
    }
}

fn open(config: &Config) -> Result<Backend, Failure> {
    Ok(backend(config, Access::open(config, AHP)?))
}

fn backend(config: &Config, access: Access) -> Backend {
    match access {
        Access::Owner(owner) => {
            for weakening in owner.engine.policy().weakenings() {
                log::info!("weaker than closed: {weakening}");
            }
            if let Some(path) = &config.engine.policy {
                policy_watch::start(path, &owner.engine, crate::allocator::give_back);
            }
            Backend::Own(owner)
        }
        Access::Relay(relay) => {
            log::info!("another process owns the state directory: relaying to it, its policy decides");
            Backend::Relay(relay.stream, relay.answers.buffer().to_vec())
        }
    }
}

/// Serves stdin until it ends.
async fn serve_connection(config: &Config, first: Option<Backend>, stop: &CancellationToken) -> Served {
    let (input, mut output) = (stdio::input(), stdio::output());
    let mut lines = Lines::new(input, MAX_MESSAGE);
    let mut backend = first;
    loop {
        match backend {
            None => {}
            Some(Backend::Own(owner)) => {
                let ended = serve_own(&owner, lines, output, stop).await;
                return Served { owner: Some(owner), ended };
            }
            Some(Backend::Relay(stream, early)) => {
                let relayed = relay(config, stream, early, &mut lines, &mut output, stop).await;
                match relayed {
                    Ok(Ended::Input) => return Served { owner: None, ended: Ok(()) },
                    Ok(Ended::Owner) => log::info!("the owner of the state directory is gone"),
                    Err(error) => return Served { owner: None, ended: Err(error) },
                }
            }
        }
        backend = match reopen(config, &mut lines, &mut output, stop).await {
            Ok(Some(backend)) => Some(backend),
            Ok(None) => return Served { owner: None, ended: Ok(()) },
            Err(error) => return Served { owner: None, ended: Err(error) },
        };
    }
}

/// Blocks all requests at once until the directory has an owner again; the search for an owner goes on beside it.
async fn reopen(
    config: &Config,
    lines: &mut Lines<StandardInput>,
    output: &mut StandardOutput,
    stop: &CancellationToken,
) -> io::Result<Option<Backend>> {
    let try_again = |config: Config| {
        tokio::task::spawn_blocking(move || {
            open(&config).inspect_err(|failure| {
                log::info!("{}", failure.lines.join("; "));
                std::thread::sleep(NEXT_TRY);
            })
        })
    };
    let mut opening = try_again(config.clone());
    loop {
        tokio::select! {
            opened = &mut opening => match opened {
                Ok(Ok(backend)) => return Ok(Some(backend)),
                _ => opening = try_again(config.clone()),
            },
            line = lines.next() => match line? {
                Some(Line::Text(text)) => block(&text, output).await?,
                Some(Line::TooLong(_)) => say_too_long(output).await?,
                None => return Ok(None),
            },
            () = stop.cancelled() => return Ok(None),
        }
    }
}

async fn serve_own(
    owner: &Owner,
    lines: Lines<StandardInput>,
    output: StandardOutput,
    stop: &CancellationToken,
) -> io::Result<()> {
    let (buffered, input) = lines.into_parts();
    let reader = io::Cursor::new(buffered).chain(input);
    let limits = StreamLimits::stdio();
    owner.ahp.server().serve_stream_until(Peer::this_process(), reader, output, &limits, stop).await
}

enum Ended {
    /// The input has ended.
    Input,
    /// The owner does not answer any more.
    Owner,
}

/// A request that the owner has not answered yet, with what is answered if it never does.
struct Waiting {
    id: Id,
    closed: String,
    until: Instant,
}

/// Passes messages to the owner and its answers back.
async fn relay(
    config: &Config,
    stream: std::os::unix::net::UnixStream,
    early: Vec<u8>,
    lines: &mut Lines<StandardInput>,
    output: &mut StandardOutput,
    stop: &CancellationToken,
) -> io::Result<Ended> {
    let most = config.ahp.answer + PATIENCE;
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    let connected = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
    let Ok(stream) = connected else { return Ok(Ended::Owner) };
    let (reading, writing) = stream.into_split();
    let mut answers = Lines::new(io::Cursor::new(early).chain(reading), MAX_MESSAGE);
    // Writing is a task of its own: an owner that waits for its answers to be read does not read.
    let (sender, receiver) = tokio::sync::mpsc::channel(WINDOW);
    let mut writer = tokio::spawn(pass_on(receiver, writing));
    let mut ended = false;
    let mut unreadable = None;
    let mut unsent: Option<Bytes> = None;
    let outcome = loop {
        if ended && unsent.is_none() && waiting.is_empty() {
            break Ended::Input;
        }
        let deadline = waiting.front().map_or_else(|| Instant::now() + most, |first| first.until);
        tokio::select! {
            answer = answers.next() => match answer {
                Ok(Some(Line::Text(answer))) => {
                    forget(&mut waiting, &answer);
                    output.write_all(&answer).await?;
                    output.write_all(b"\n").await?;
                    output.flush().await?;
                }
                _ => break Ended::Owner,
            },
            place = sender.reserve(), if unsent.is_some() => match (place, unsent.take()) {
                (Ok(place), Some(line)) => place.send(line),
                _ => break Ended::Owner,
            },
            line = lines.next(), if !ended && unsent.is_none() && waiting.len() < WINDOW => match line {
                Ok(Some(Line::Text(line))) if line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(Some(Line::Text(line))) => {
                    if let Some((id, closed)) = closed(&line) {
                        waiting.push_back(Waiting { id, closed, until: Instant::now() + most });
                    }
                    unsent = Some(line);
                }
                Ok(Some(Line::TooLong(_))) => say_too_long(output).await?,
                Ok(None) => ended = true,
                Err(error) => {
                    unreadable = Some(error);
                    ended = true;
                }
            },
            _ = &mut writer => break Ended::Owner,
            () = stop.cancelled(), if !ended => ended = true,
            () = tokio::time::sleep_until(deadline), if !waiting.is_empty() => break Ended::Owner,
        }
    };
    if ended && waiting.is_empty() {
        // Notifications may still be on their way.
        drop(sender);
        let _ = tokio::time::timeout(most, writer).await;
        return unreadable.map_or(Ok(Ended::Input), Err);
    }
    writer.abort();
    // What the owner did not answer is answered closed: an agent must not wait for ever, nor take silence for a yes.
    for request in waiting {
        output.write_all(request.closed.as_bytes()).await?;
        output.write_all(b"\n").await?;
    }
    output.flush().await?;
    Ok(if ended { Ended::Input } else { outcome })
}

/// Writes lines to the owner until there are no more; ends early if it cannot.
async fn pass_on(
    mut lines: tokio::sync::mpsc::Receiver<Bytes>,
    mut writing: tokio::net::unix::OwnedWriteHalf,
) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        writing.write_all(&line).await?;
        writing.write_all(b"\n").await?;
    }
    writing.shutdown().await
}

const GONE: &str = "not recorded: the owner of the state directory does not answer";

fn closed(line: &[u8]) -> Option<(Id, String)> {
    let message = rpc::read(line).ok()?;
    let reply = closed_reply(&message, GONE)?;
    match message {
        Message::Request { id, .. } => Some((id, reply)),
        Message::Notification { .. } => None,
    }
}

async fn block(line: &[u8], output: &mut StandardOutput) -> io::Result<()> {
    let reply = match rpc::read(line) {
        Ok(message) => closed_reply(&message, GONE),
        Err(unreadable) => Some(rpc::refuse(&unreadable.id, &unreadable.error)),
    };
    if let Some(reply) = reply {
        output.write_all(reply.as_bytes()).await?;
        output.write_all(b"\n").await?;
        output.flush().await?;
    }
    Ok(())
}

async fn say_too_long(output: &mut StandardOutput) -> io::Result<()> {
    let error =
        rpc::RpcError::new(rpc::INVALID_REQUEST, format!("Invalid request: over {MAX_MESSAGE} bytes"));
    output.write_all(rpc::refuse(&Id::Null, &error).as_bytes()).await?;
    output.write_all(b"\n").await?;
    output.flush().await
}

/// The request that an answer belongs to does not wait any more.
fn forget(waiting: &mut VecDeque<Waiting>, answer: &[u8]) {
    let Ok(answer) = proctor_core::json::Json::parse(answer) else { return };
    if let Some(at) = waiting.iter().position(|request| Some(&request.id.to_json()) == answer.get("id")) {
        waiting.remove(at);
    }
}
