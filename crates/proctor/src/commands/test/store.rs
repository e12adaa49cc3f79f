//! The store of a suite run, and what an earlier one says about the tests to run.

use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_door_atp::{Decider, RelayedDecider};
use proctor_engine::Engine;
use proctor_engine::access::{TEST_RUNS, open_reader};
use proctor_runner::agent::Agent;
use proctor_runner::results::SuiteResult;
use proctor_runner::suite::Suite;
use proctor_runner::suite_run::Options;
use proctor_runs::{DeciderSource, OpenError, RunStore, SuiteRunStart, ToolSource, history};
use proctor_system::{SystemClock, SystemRandomness};

use super::super::Context;
use crate::access::{Access, Owner};
use crate::cli::{RerunArg, TestArgs};
use crate::failure::Failure;

/// Opens the state directory and prepares the suite run: a new one, or the one that is resumed.
pub(super) fn open(
    context: &Context,
    arguments: &TestArgs,
    (suite, digest): (&Suite, Digest),
    agent: &Agent,
    options: &mut Options,
) -> Result<Arc<RunStore>, Failure> {
    let fail = |error: &dyn std::error::Error| Failure::from(error.to_string());
    let tools = match (&arguments.tools_url, &arguments.replay_tools) {
        (Some(url), _) => ToolSource::server(url, arguments.record_tools.as_deref()),
        (None, Some(file)) => ToolSource::replay(file),
        (None, None) => Ok(ToolSource::default()),
    };
    let tools = tools.map_err(|error| fail(&error))?;
    let source = source(context)?;
    let resumed = earlier(context, arguments, (suite, digest), agent, options)?;
    let start = SuiteRunStart {
        id: resumed.unwrap_or_else(|| proctor_runner::suite_run::new_id(&SystemRandomness)),
        suite: suite.name.clone(),
        suite_digest: spaced(digest),
        agent: agent.name.clone(),
        tests: options.selected.len(),
    };
    let uid = rustix::process::getuid().as_raw();
    let store = RunStore::new(start, source, uid, tools, Arc::new(SystemClock), Arc::new(SystemRandomness));
    store.map(Arc::new).map_err(|error| fail(&error))
}

/// A digest in groups: the scanner of records takes a long word of random letters for a secret.
fn spaced(digest: Digest) -> String {
    let text = digest.to_string();
    let groups: Vec<&str> = (0..text.len()).step_by(8).filter_map(|from| text.get(from..from + 8)).collect();
    groups.join(" ")
}

/// The result of a suite run on record.
pub(in super::super) fn recorded(context: &Context, named: &str) -> Result<SuiteResult, Failure> {
    let reader = open_reader(&context.config.engine.state)?;
    let found = history::find(&reader, named).and_then(|run| run.result(&reader));
    found.map_err(|error| Failure::from(error.to_string()))
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

/// Takes over results of an interrupted suite run, whose identifier it returns, or leaves only the tests that are run again.
fn earlier(
    context: &Context,
    arguments: &TestArgs,
    (suite, digest): (&Suite, Digest),
    agent: &Agent,
    options: &mut Options,
) -> Result<Option<String>, Failure> {
    if arguments.resume.is_none() && arguments.rerun.is_none() {
        return Ok(None);
    }
    let text = |error: &dyn std::error::Error| Failure::from(error.to_string());
    let reader = open_reader(&context.config.engine.state)?;
    let found = match arguments.resume.as_deref().filter(|named| *named != "last") {
        Some(named) => history::find(&reader, named).map(Some),
        None => history::newest(&reader, &suite.name, &agent.name, |_| true),
    };
    let found = found.map_err(|error| text(&error))?;
    let Some(run) = found else {
        return Err(Failure::from(format!(
            "no suite run of {} with {} is on record; run it without --resume and --rerun",
            suite.name, agent.name
        )));
    };
    let results = run.results(&reader).map_err(|error| text(&error))?;
    let member =
        |result: &Json, name: &str| result.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    if let Some(rerun) = arguments.rerun {
        let wanted = |result: &&Json| match member(result, "verdict").as_str() {
            "error" => true,
            "failed" => rerun == RerunArg::Failed,
            _ => false,
        };
        let ids: Vec<String> = results.iter().filter(wanted).map(|result| member(result, "id")).collect();
        options.selected.retain(|index| suite.tests.get(*index).is_some_and(|test| ids.contains(&test.id)));
        if options.selected.is_empty() {
            return Err(Failure::from(format!(
                "no selected test of suite run {} is to be run again",
                run.id
            )));
        }
        return Ok(None);
    }
    if (run.suite.as_str(), run.suite_digest.as_str(), run.agent.as_str())
        != (suite.name.as_str(), spaced(digest).as_str(), agent.name.as_str())
    {
        return Err(Failure::from(format!(
            "suite run {} had another suite or agent; run this one without --resume",
            run.id
        )));
    }
    let known = run.result(&reader).map_err(|error| text(&error))?.tests;
    options.known.extend(known.into_iter().map(|test| (test.id.clone(), test)));
    Ok(Some(run.id))
}
