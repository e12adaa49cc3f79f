//! The store of a suite run: a new one, or that of an earlier suite run that is resumed.

use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::digest::Digest;
use proctor_door_atp::{Decider, RelayedDecider};
use proctor_engine::Engine;
use proctor_engine::access::{TEST_RUNS, open_reader};
use proctor_runner::agent::Agent;
use proctor_runner::results::SuiteResult;
use proctor_runner::suite::Suite;
use proctor_runner::suite_run::Options;
use proctor_runs::earlier::{self, Pair};
use proctor_runs::{DeciderSource, OpenError, RunStore, SuiteRunStart, ToolSource, history};
use proctor_system::{SystemClock, SystemRandomness};

use super::super::Context;
use crate::access::{Access, Owner};
use crate::cli::{LAST, TestArgs};
use crate::failure::Failure;

/// Opens the state directory and prepares the suite run: a new one, or the one that is resumed.
pub(super) fn open(
    context: &Context,
    arguments: &TestArgs,
    (suite, digest): (&Suite, Digest),
    agent: &Agent,
    options: &mut Options,
) -> Result<Arc<RunStore>, Failure> {
    let tools = match (&arguments.tools_url, &arguments.replay_tools) {
        (Some(url), _) => ToolSource::server(url, arguments.record_tools.as_deref())?,
        (None, Some(file)) => ToolSource::replay(file)?,
        (None, None) => ToolSource::default(),
    };
    let source = source(context)?;
    let pair = Pair { suite, digest, agent: &agent.name };
    let reader = || open_reader(&context.config.engine.state);
    let id = match (arguments.resume.as_deref(), arguments.rerun) {
        (Some(named), _) => {
            let named = Some(named).filter(|named| *named != LAST);
            earlier::resume(&reader()?, named, pair, options)?
        }
        (None, rerun) => {
            if let Some(rerun) = rerun {
                earlier::select(&reader()?, rerun.into(), pair, options)?;
            }
            proctor_runner::suite_run::new_id(&SystemRandomness)
        }
    };
    let start = SuiteRunStart {
        id,
        suite: suite.name.clone(),
        suite_digest: digest,
        agent: agent.name.clone(),
        tests: options.selected.len(),
    };
    let uid = rustix::process::getuid().as_raw();
    let clock = Arc::new(SystemClock);
    Ok(Arc::new(RunStore::new(start, source, uid, tools, clock, Arc::new(SystemRandomness))?))
}

/// The result of a suite run on record.
pub(in super::super) fn recorded(context: &Context, named: &str) -> Result<SuiteResult, Failure> {
    let reader = open_reader(&context.config.engine.state)?;
    Ok(history::find(&reader, named)?.result(&reader)?)
}

/// Deciders for runs: the engine of this process, or connections to the owner of the state directory.
fn source(context: &Context) -> Result<DeciderSource, Failure> {
    let opened = |name: &str, config: &crate::config::Config| {
        let mut config = config.clone();
        name.clone_into(&mut config.engine.agent);
        (config.engine.team, config.engine.org) = (String::new(), String::new());
        Access::open(&config, TEST_RUNS)
    };
    let own: Arc<Mutex<Option<Arc<Engine>>>> = Arc::default();
    match opened("", &context.config)? {
        Access::Owner(Owner { engine, .. }) => {
            *own.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
        }
        Access::Relay(_) => {
            log::info!("another process owns the state directory: its policy decides on tool calls");
        }
    }
    let config = context.config.clone();
    Ok(Arc::new(move |name: &str| {
        if let Some(engine) = &*own.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Decider::Engine(Arc::clone(engine)));
        }
        match opened(name, &config).map_err(|error| OpenError(Box::new(error)))? {
            Access::Relay(relay) => {
                let relay = RelayedDecider::new(relay).map_err(|error| OpenError(Box::new(error)))?;
                Ok(Decider::Relay(Arc::new(relay)))
            }
            // The owner has ended meanwhile, and this process has taken its place.
            Access::Owner(Owner { engine, .. }) => {
                *own.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&engine));
                Ok(Decider::Engine(engine))
            }
        }
    }))
}
