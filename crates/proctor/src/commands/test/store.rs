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
use crate::output;

/// Prepares the suite run: a new one, or the one that is resumed. None if no test is to be run again.
pub(super) fn open(
    context: &Context,
    arguments: &TestArgs,
    source: &DeciderSource,
    (suite, digest): (&Suite, Digest),
    agent: &Agent,
    options: &mut Options,
) -> Result<Option<Arc<RunStore>>, Failure> {
    let tools = match (&arguments.tools_url, &arguments.replay_tools) {
        (Some(url), _) => ToolSource::server(url, arguments.record_tools.as_deref())?,
        (None, Some(file)) => ToolSource::replay(file)?,
        (None, None) => ToolSource::default(),
    };
    let pair = Pair { suite, digest, agent: &agent.name };
    let reader = || open_reader(&context.config.engine.state);
    let id = match (arguments.resume.as_deref(), arguments.rerun) {
        (Some(named), _) => {
            let named = Some(named).filter(|named| *named != LAST);
            let earlier = earlier::resume(&reader()?, named, pair, options)?;
            output::note(&earlier.resumed());
            earlier.id
        }
        (None, rerun) => {
            if let Some(rerun) = rerun {
                let earlier = earlier::select(&reader()?, rerun.into(), pair, options)?;
                output::note(&earlier.run_again(rerun.into()));
                if earlier.tests == 0 {
                    return Ok(None);
                }
            }
            proctor_runner::suite_run::new_id(&SystemRandomness)
        }
    };
    let start = SuiteRunStart {
        id,
        suite: suite.name.clone(),
        file: arguments.suite.as_deref().unwrap_or(std::path::Path::new("")).display().to_string(),
        suite_digest: digest,
        agent: agent.name.clone(),
        tests: options.selected.len(),
        selection: earlier::selection(suite, options),
    };
    let uid = rustix::process::getuid().as_raw();
    let clock = Arc::new(SystemClock);
    let has_policy = context.config.engine.policy.is_some();
    let (source, randomness) = (Arc::clone(source), Arc::new(SystemRandomness));
    let store = RunStore::new(start, source, uid, tools, has_policy, clock, randomness)?;
    Ok(Some(Arc::new(store)))
}

/// The result of a suite run on record.
pub(in super::super) fn recorded(context: &Context, named: &str) -> Result<SuiteResult, Failure> {
    let reader = open_reader(&context.config.engine.state)?;
    Ok(history::find(&reader, named)?.reported(&reader)?)
}

/// The result of a suite run on record that this suite is compared with.
pub(super) fn recorded_in(context: &Context, named: &str, suite: &Suite) -> Result<SuiteResult, Failure> {
    let reader = open_reader(&context.config.engine.state)?;
    Ok(history::find(&reader, named)?.result_in(&reader, suite)?)
}

/// Deciders for runs: the engine of this process, or connections to the owner of the state directory.
pub(super) fn source(context: &Context) -> Result<DeciderSource, Failure> {
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
