//! `proctor gate`: actions in on stdin, recorded decisions out on stdout.

use std::sync::Arc;
use std::time::Instant;

use proctor_door_gate::{Decider, Ending, Stream, Unopened};
use proctor_engine::access::{Opening, local_caller};
use proctor_engine::policy_watch;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::Context;
use crate::access::{Access, GATE, Owner};
use crate::failure::{Failure, Outcome, all_on_record};

pub(super) fn run(context: &Context) -> Outcome {
    let config = &context.config;
    let caller = local_caller(
        rustix::process::getuid().as_raw(),
        &config.engine.agent,
        &config.engine.team,
        &config.engine.org,
    );
    let start = Instant::now();
    let until = Some(start + config.engine.answer);
    let first = open(context, &Opening { mode: GATE, until, ..Opening::default() })?;
    let spent = start.elapsed();
    let stream = Arc::new(Stream::new(caller, config.engine.answer));
    stop_on_signals(&stream).map_err(|error| Failure::from(error.to_string()))?;
    let reopen = |until, denies: &_| {
        let opening =
            Opening { mode: GATE, until: Some(until), denies: Clone::clone(denies), ..Opening::default() };
        match open(context, &opening) {
            Ok(Decider::Unreached(problem)) => Err(Unopened(problem)),
            opened => opened.map_err(|failure| Unopened(failure.lines.join("; "))),
        }
    };
    match stream.serve((first, spent), reopen, std::io::stdin().lock(), std::io::stdout()) {
        Ending::Signal(signal) => Ok(exit_code(signal)),
        Ending::Failed(problem) => Err(Failure::from(problem)),
        Ending::Input(unrecorded) => all_on_record(unrecorded),
    }
}

fn open(context: &Context, opening: &Opening<'_>) -> Result<Decider, Failure> {
    let access = match Access::open_within(&context.config, opening) {
        // An agent's hook that ends without an answer is taken for permission by some clients: each line is answered deny.
        Err(error) if error.is_unreached() => {
            log::warn!("{error}");
            return Ok(Decider::Unreached(error.to_string()));
        }
        access => access?,
    };
    match access {
        Access::Owner(Owner { engine, .. }) => {
            for weakening in engine.policy().weakenings() {
                log::info!("weaker than closed: {weakening}");
            }
            if let Some(path) = &context.config.engine.policy {
                policy_watch::start(path, &engine, crate::allocator::give_back);
            }
            Ok(Decider::Own(engine))
        }
        Access::Relay(relay) => {
            log::info!("another process owns the state directory: relaying to it, its policy decides");
            Ok(Decider::Relay(relay))
        }
    }
}

fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(1)
}

/// Handler of SIGINT and SIGTERM: no further line is decided, decided ones are recorded and answered, then the process ends with 130 or
/// 143.
fn stop_on_signals(stream: &Arc<Stream>) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let stream = Arc::clone(stream);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                stream.stop(signal);
                crate::logging::flush();
                std::process::exit(exit_code(signal).into());
            }
        })
        .map(|_| ())
}
