//! A test of a suite.

use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::quoted;
use proctor_yaml::{Node, Value};

use super::assertions::read_assertions;
use super::attest::read_attest;
use super::commands::read_commands;
use super::keys;
use super::mock_tools::{MockTool, read_mock_tools};
use super::model::{Approval, Command, Constraints, SecretValue, Task, TestCase, TestSettings};
use super::object::{Object, nonblank, texts};
use super::path::Path;
use super::problem::suggestion;
use super::reader::Reader;
use super::settings::{
    merged, read_approvals, read_environment, read_files, read_network, read_public, read_skip,
};
use crate::scoring::{WEIGHT_TOLERANCE, Weights};

/// Time limit of a test that names none.
const DEFAULT_TIMEOUT_SECONDS: u64 = 300;

/// Longest time limit.
const MAX_TIMEOUT_SECONDS: u64 = 86_400;

/// Runs of one test.
const MAX_RUNS: u64 = 10_000;

/// Longest description, in characters.
const MAX_DESCRIPTION: usize = 100_000;

/// Longest description that the protocol's own schema allows.
const PROTOCOL_DESCRIPTION: usize = 10_000;

/// Steps and tokens that the protocol's own schema allows.
const PROTOCOL_STEPS: u64 = 1_000;
const PROTOCOL_TOKENS: u64 = 10_000_000;

/// Warning about a test that nearly every agent passes.
pub(crate) const NO_ASSERTIONS: &str = "the test has no assertions: only the status of the agent counts";

/// Settings of the suite that tests inherit.
pub(super) struct Shared {
    agents: Vec<String>,
    runs: u32,
    pass_rate: f64,
    allow_partial: bool,
    strict: bool,
    network: bool,
    weights: Weights,
    constraints: Given,
    /// `defaults.timeout_seconds`.
    timeout_seconds: u64,
    environment: Arc<[(String, SecretValue)]>,
    public: Arc<[String]>,
    setup: Arc<[Command]>,
    teardown: Arc<[Command]>,
    approvals: Arc<[Approval]>,
    mock_tools: Arc<[MockTool]>,
}

/// Constraints as they are given.
#[derive(Default)]
struct Given {
    max_steps: Option<u64>,
    max_tokens: Option<u64>,
    timeout_seconds: Option<u64>,
    allowed_tools: Option<Arc<[String]>>,
    budget_usd: Option<f64>,
}

impl Shared {
    pub(super) fn read(suite: &Object<'_, '_>, agents: Vec<String>, reader: &mut Reader<'_>) -> Shared {
        let path = suite.path.key("defaults");
        let defaults =
            suite.get("defaults").and_then(|node| Object::read(node, &path, &keys::DEFAULTS, reader));
        let defaults = defaults.as_ref();
        let runs = defaults.and_then(|object| object.whole("runs_per_test", (1, MAX_RUNS), reader));
        let timeout =
            defaults.and_then(|object| object.whole("timeout_seconds", (1, MAX_TIMEOUT_SECONDS), reader));
        let pass_rate = defaults.and_then(|object| read_pass_rate(object, reader));
        let allow_partial = defaults.and_then(|object| object.boolean("allow_partial", reader));
        let weights = defaults.and_then(|object| read_weights(object, reader));
        let constraints = defaults.map(|object| read_constraints(object, reader));
        let environment: Arc<[(String, SecretValue)]> = read_environment(suite, reader).into();
        Shared {
            agents,
            runs: runs.and_then(|runs| u32::try_from(runs).ok()).unwrap_or(1),
            pass_rate: pass_rate.unwrap_or(1.0),
            allow_partial: allow_partial.unwrap_or_default(),
            strict: suite.boolean("strict", reader).unwrap_or_default(),
            network: read_network(suite, reader).unwrap_or_default(),
            weights: weights.unwrap_or_default(),
            constraints: constraints.unwrap_or_default(),
            timeout_seconds: timeout.unwrap_or(DEFAULT_TIMEOUT_SECONDS),
            public: read_public(suite, &environment, reader).into(),
            environment,
            setup: read_commands(suite, "setup", reader).into(),
            teardown: read_commands(suite, "teardown", reader).into(),
            approvals: read_approvals(suite, reader).into(),
            mock_tools: read_mock_tools(suite, reader).into(),
        }
    }
}

pub(super) fn read_case(
    node: &Node,
    path: &Path<'_>,
    shared: &Shared,
    reader: &mut Reader<'_>,
) -> Option<TestCase> {
    let object = Object::read(node, path, &TEST_WITH_MODE, reader)?;
    refuse_modes(&object, reader);
    let id = object.required_text("id", reader);
    let name = object.required_text("name", reader);
    let description = object.text("description", reader).unwrap_or_default().to_owned();
    let tags = object.texts("tags", reader).unwrap_or_default();
    let task = object.required("task", reader).and_then(|node| read_task(node, &path.key("task"), reader));
    let constraints = resolved(read_constraints(&object, reader), shared);
    let assertions = read_assertions(&object, reader);
    let attest = read_attest(&object, reader);
    if object.list_length("assertions") == 0 && attest.is_empty() && object.get("attest").is_none() {
        reader.warn(node.at, path, NO_ASSERTIONS, "write `assertions` or `attest`");
    }
    let weights = read_weights(&object, reader).unwrap_or(shared.weights);
    let agents = read_agent_names(&object, shared, reader);
    let runs = object.whole("runs", (1, MAX_RUNS), reader).and_then(|runs| u32::try_from(runs).ok());
    let pass_rate = read_pass_rate(&object, reader);
    let allow_partial = object.boolean("allow_partial", reader);
    let strict = object.boolean("strict", reader);
    let skip = read_skip(&object, reader);
    let own_environment = read_environment(&object, reader);
    let environment = if own_environment.is_empty() {
        Arc::clone(&shared.environment)
    } else {
        merged(&own_environment, &shared.environment)
    };
    let public = read_public(&object, &environment, reader);
    let network = read_network(&object, reader).unwrap_or(shared.network);
    let setup = joined(&shared.setup, &read_commands(&object, "setup", reader).into());
    let teardown = joined(&read_commands(&object, "teardown", reader).into(), &shared.teardown);
    let files = read_files(&object, "files", reader);
    let reference = read_files(&object, "reference", reader);
    let approvals = joined(&read_approvals(&object, reader).into(), &shared.approvals);
    let own_tools = read_mock_tools(&object, reader);
    let mock_tools = overridden(own_tools, &shared.mock_tools);
    let settings = TestSettings {
        constraints,
        attest,
        weights,
        agents,
        runs: runs.unwrap_or(shared.runs),
        pass_rate: pass_rate.unwrap_or(shared.pass_rate),
        allow_partial: allow_partial.unwrap_or(shared.allow_partial),
        strict: strict.unwrap_or(shared.strict),
        skip,
        environment,
        public: joined(&public.into(), &shared.public),
        network,
        setup,
        teardown,
        files,
        reference,
        approvals,
        mock_tools,
    };
    Some(TestCase {
        id: id?.to_owned(),
        name: name?.to_owned(),
        description,
        at: node.at,
        tags: reader.shared.tags.share(tags),
        task: task?,
        assertions: reader.shared.assertions.share(assertions),
        settings: reader.shared.settings.share(settings),
    })
}

/// The keys of a test and `mode`, whose refusal depends on its value.
const TEST_WITH_MODE: keys::Keys = keys::Keys { ignored: &["mode"], ..keys::TEST };

fn refuse_modes(object: &Object<'_, '_>, reader: &mut Reader<'_>) {
    let Some(node) = object.get("mode") else { return };
    let path = object.path.key("mode");
    match &node.value {
        Value::Text(mode) if mode == "comparison" => {
            let message = "`mode: comparison` is not supported yet";
            reader.mistake(node.at, &path, message, "give `--agent` twice to compare two agents");
        }
        Value::Text(mode) if mode == "collaboration" || mode == "handoff" => {
            let message = format!("`mode: {mode}` is not supported: a test runs one agent");
            reader.mistake(node.at, &path, message, "");
        }
        _ => {
            let message = format!("unknown mode {}: a test runs one agent", reader.shown(node));
            reader.mistake(node.at, &path, message, "remove `mode`");
        }
    }
}

fn read_agent_names(object: &Object<'_, '_>, shared: &Shared, reader: &mut Reader<'_>) -> Vec<String> {
    let Some(items) = object.list("agents", reader) else { return Vec::new() };
    let path = object.path.key("agents");
    if items.is_empty() {
        reader.mistake(
            object.key_at("agents"),
            &path,
            "the list is empty: the test would run with no agent",
            "",
        );
    }
    if items.len() > 1 && object.get("mode").is_none() {
        let message = "several agents in one test are not supported yet";
        let advice = "name one, and give `--agent` twice to compare two agents";
        reader.mistake(object.key_at("agents"), &path, message, advice);
    }
    let known: Vec<&str> = shared.agents.iter().map(String::as_str).collect();
    let mut names = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(name) = nonblank(item, &path.index(index), reader) else { continue };
        if known.contains(&name) {
            names.push(name.to_owned());
        } else {
            let message = format!("the suite has no agent {}", reader.shown(item));
            reader.mistake(item.at, &path.index(index), message, suggestion(name, &known));
        }
    }
    names
}

fn read_task(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Task> {
    let object = Object::read(node, path, &keys::TASK, reader)?;
    let description = object.required_text("description", reader).map(str::to_owned);
    if let (Some(text), Some(node)) = (&description, object.get("description")) {
        let path = path.key("description");
        reader.refuse_secret(node, &path, text);
        let length = text.chars().count();
        if length > MAX_DESCRIPTION {
            let message =
                format!("the description has {length} characters, at most {MAX_DESCRIPTION} are allowed");
            reader.mistake(node.at, &path, message, "put long material into `workspace_fixture`");
        } else if length > PROTOCOL_DESCRIPTION {
            let message = format!(
                "the description has {length} characters, the protocol allows {PROTOCOL_DESCRIPTION}"
            );
            reader.warn(node.at, &path, message, "agents may refuse it");
        }
    }
    let input_data = object.json_object("input_data", reader);
    if input_data.as_ref().is_some_and(|data| data.get("request_preparer").is_some()) {
        let at =
            object.get("input_data").and_then(|data| data.entry("request_preparer")).map(|(key, _)| key.at);
        let message = "`request_preparer` is not supported";
        let advice = "prepare the run with `setup` and `workspace_fixture`";
        reader.mistake(at.unwrap_or(object.at), &path.key("input_data"), message, advice);
    }
    let expected_artifacts = object.list("expected_artifacts", reader).map(|items| {
        let above = path.key("expected_artifacts");
        let read =
            |(index, item): (usize, &std::rc::Rc<Node>)| read_expected(item, &above.index(index), reader);
        let artifacts: Vec<Json> = items.iter().enumerate().filter_map(read).collect();
        reader.shared.expected_artifacts.share(artifacts)
    });
    let workspace_fixture = object.nonblank("workspace_fixture", reader).map(str::to_owned);
    if let (Some(fixture), Some(node)) = (&workspace_fixture, object.get("workspace_fixture")) {
        reader.refuse_missing(node, &path.key("workspace_fixture"), fixture, true);
    }
    Some(Task { description: description?, input_data, expected_artifacts, workspace_fixture })
}

/// A string or an object, kept as it is.
fn read_expected(node: &Node, path: &Path<'_>, reader: &mut Reader<'_>) -> Option<Json> {
    match &node.value {
        Value::Map(_) => Some(node.to_json()),
        Value::Text(_) => nonblank(node, path, reader).map(Json::from),
        _ => {
            reader.wrong_type(node, path, "a string or a mapping");
            None
        }
    }
}

/// In constraints, null is the same as absent.
fn read_constraints(above: &Object<'_, '_>, reader: &mut Reader<'_>) -> Given {
    let path = above.path.key("constraints");
    let Some(node) = above.given("constraints") else { return Given::default() };
    let Some(object) = Object::read(node, &path, &keys::CONSTRAINTS, reader) else { return Given::default() };
    let whole = |key: &str, most: u64, reader: &mut Reader<'_>| {
        object.given(key).and_then(|_| object.whole(key, (1, most), reader))
    };
    let max_steps = whole("max_steps", u64::MAX, reader);
    let max_tokens = whole("max_tokens", u64::MAX, reader);
    for (key, value, most) in
        [("max_steps", max_steps, PROTOCOL_STEPS), ("max_tokens", max_tokens, PROTOCOL_TOKENS)]
    {
        if value.is_some_and(|value| value > most) {
            let message = format!("the protocol allows at most {most}");
            reader.warn(object.key_at(key), &path.key(key), message, "agents may refuse it");
        }
    }
    Given {
        max_steps,
        max_tokens,
        timeout_seconds: whole("timeout_seconds", MAX_TIMEOUT_SECONDS, reader),
        allowed_tools: object
            .given("allowed_tools")
            .and_then(|node| texts(node, &path.key("allowed_tools"), reader))
            .map(Arc::from),
        budget_usd: object
            .given("budget_usd")
            .and_then(|_| object.number("budget_usd", (0.0, f64::INFINITY), reader)),
    }
}

fn resolved(own: Given, shared: &Shared) -> Constraints {
    let defaults = &shared.constraints;
    let timeout = own.timeout_seconds.or(defaults.timeout_seconds).unwrap_or(shared.timeout_seconds);
    Constraints {
        max_steps: own.max_steps.or(defaults.max_steps),
        max_tokens: own.max_tokens.or(defaults.max_tokens),
        timeout_seconds: u32::try_from(timeout).unwrap_or(u32::MAX),
        allowed_tools: own.allowed_tools.or_else(|| defaults.allowed_tools.clone()),
        budget_usd: own.budget_usd.or(defaults.budget_usd),
    }
}

/// The weights of `scoring`: if some are given, the others are 0, and the sum must be 1.
fn read_weights(above: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<Weights> {
    let node = above.get("scoring")?;
    let path = above.path.key("scoring");
    let object = Object::read(node, &path, &keys::SCORING, reader)?;
    if object.entries().is_empty() {
        return None;
    }
    let before = reader.problems.len();
    let mut weight = |key: &str| object.number(key, (0.0, 1.0), reader).unwrap_or_default();
    let weights = Weights {
        quality: weight("quality_weight"),
        completeness: weight("completeness_weight"),
        efficiency: weight("efficiency_weight"),
        cost: weight("cost_weight"),
    };
    if reader.problems.len() == before && (weights.sum() - 1.0).abs() > WEIGHT_TOLERANCE + 1e-9 {
        let message = format!("the weights have the sum {}, and it must be 1", rounded(weights.sum()));
        let advice = "weights that are not given are 0; without `scoring` they are 0.4, 0.3, 0.2 and 0.1";
        reader.mistake(object.at, &path, message, advice);
    }
    Some(weights)
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

fn read_pass_rate(object: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<f64> {
    let rate = object.number("pass_rate", (0.0, 1.0), reader)?;
    if rate > 0.0 {
        return Some(rate);
    }
    let at = object.get("pass_rate").map_or(object.at, |node| node.at);
    let message = "a `pass_rate` of 0 would pass whatever happens";
    reader.mistake(
        at,
        &object.path.key("pass_rate"),
        message,
        format!("write {} to leave a test out", quoted("skip")),
    );
    None
}

/// Both lists; shared as they are if one is empty.
fn joined<T: Clone>(first: &Arc<[T]>, second: &Arc<[T]>) -> Arc<[T]> {
    if first.is_empty() {
        Arc::clone(second)
    } else if second.is_empty() {
        Arc::clone(first)
    } else {
        first.iter().chain(second.iter()).cloned().collect()
    }
}

fn overridden(own: Vec<MockTool>, shared: &Arc<[MockTool]>) -> Arc<[MockTool]> {
    if own.is_empty() {
        return Arc::clone(shared);
    }
    let others: Vec<MockTool> =
        shared.iter().filter(|tool| own.iter().all(|other| other.name != tool.name)).cloned().collect();
    own.into_iter().chain(others).collect()
}
