//! Agents of a suite.

use proctor_core::quoted;
use proctor_yaml::Node;

use super::commands::words_of;
use super::keys;
use super::model::{Agent, AgentKind, HttpAgent, ProcessAgent, RemoteAgent, SecretValue};
use super::object::{Object, text};
use super::path::Path;
use super::problem::suggestion;
use super::reader::Reader;
use super::settings::read_environment;

/// Longest time limit.
const MAX_SECONDS: f64 = 86_400.0;

/// Agents of one suite. Names are compared one by one.
const MAX_AGENTS: usize = 1_000;

/// The agents, and every name that was given, also to an agent with mistakes.
pub(super) struct Agents {
    pub(super) agents: Vec<Agent>,
    pub(super) names: Vec<String>,
}

pub(super) fn read_agents(suite: &Object<'_, '_>, reader: &mut Reader<'_>) -> Agents {
    let mut found = Agents { agents: Vec::new(), names: Vec::new() };
    let above = suite.path.key("agents");
    let items = suite.list("agents", reader).unwrap_or_default();
    if items.len() > MAX_AGENTS {
        reader.mistake(
            suite.key_at("agents"),
            &above,
            format!("a suite has at most {MAX_AGENTS} agents"),
            "",
        );
        return found;
    }
    for (index, item) in items.iter().enumerate() {
        let path = above.index(index);
        let Some(object) = Object::read(item, &path, &keys::AGENT, reader) else { continue };
        let name = object.required_text("name", reader).map(str::to_owned);
        let agent = read_agent(&object, name.as_deref(), reader);
        if let Some(name) = name {
            if found.names.contains(&name) {
                let at = object.get("name").map_or(object.at, |node| node.at);
                let message = format!("the name {} is that of another agent", quoted(&name));
                reader.mistake(at, &path.key("name"), message, "give each agent its own name");
            }
            found.names.push(name);
        }
        found.agents.extend(agent);
    }
    found
}

fn read_agent(object: &Object<'_, '_>, name: Option<&str>, reader: &mut Reader<'_>) -> Option<Agent> {
    let path = object.path.key("config");
    let config =
        object.given("config").and_then(|node| Object::open(node, &path, "the config of an agent", reader));
    let kind = read_kind(object, config.as_ref(), reader);
    let common = |key: &str| config.as_ref().filter(|config| config.get(key).is_some());
    let timeout_seconds = common("timeout_seconds")
        .and_then(|config| config.number("timeout_seconds", (0.001, MAX_SECONDS), reader));
    let retry_count = common("retry_count")
        .and_then(|config| config.whole("retry_count", (0, 100), reader))
        .unwrap_or_default();
    let retry_delay_seconds = common("retry_delay_seconds")
        .and_then(|config| config.number("retry_delay_seconds", (0.0, 3600.0), reader))
        .unwrap_or(1.0);
    if let Some(config) = common("enable_cost_tracking") {
        let at = config.key_at("enable_cost_tracking");
        reader.warn(at, &path, "`enable_cost_tracking` has no effect: costs are always counted", "");
    }
    Some(Agent {
        name: name?.to_owned(),
        kind: kind?,
        timeout_seconds,
        retry_count: u32::try_from(retry_count).unwrap_or_default(),
        retry_delay_seconds,
        at: object.at,
    })
}

fn read_kind(
    object: &Object<'_, '_>,
    config: Option<&Object<'_, '_>>,
    reader: &mut Reader<'_>,
) -> Option<AgentKind> {
    let Some(node) = object.get("type") else {
        // Without a type the configuration tells; an agent with neither is only a name.
        return match config {
            Some(config) if config.get("command").is_some() => {
                process(config, "cli", reader).map(AgentKind::Cli)
            }
            Some(config) if config.get("endpoint").is_some() => http(config, reader).map(AgentKind::Http),
            Some(config) if !config.entries().is_empty() => {
                let message = "`type` is missing in an agent with a `config`";
                reader.mistake(object.at, object.path, message, suggestion("", keys::AGENT_TYPES));
                None
            }
            _ => Some(AgentKind::Named),
        };
    };
    let path = object.path.key("type");
    let word = text(node, &path, reader)?;
    if !keys::AGENT_TYPES.contains(&word) {
        refuse_type(node, &path, word, reader);
        return None;
    }
    let without = |reader: &mut Reader<'_>| {
        if let Some(config) = config {
            warn_unknown(config, &[], word, reader);
        }
    };
    match word {
        "nop" => {
            without(reader);
            return Some(AgentKind::Nop);
        }
        "reference" => {
            without(reader);
            return Some(AgentKind::Reference);
        }
        _ => {}
    }
    let Some(config) = config else {
        if object.given("config").is_none() {
            reader.mistake(
                object.at,
                object.path,
                format!("`config` is missing in an agent of type `{word}`"),
                "",
            );
        }
        return None;
    };
    match word {
        "cli" => process(config, "cli", reader).map(AgentKind::Cli),
        "plain" => process(config, "plain", reader).map(AgentKind::Plain),
        "http" => http(config, reader).map(AgentKind::Http),
        "ws" => remote(config, "ws", &["ws://", "wss://"], reader).map(AgentKind::Ws),
        _ => remote(config, "grpc", &["grpc://", "grpcs://", "http://", "https://"], reader)
            .map(AgentKind::Grpc),
    }
}

fn refuse_type(node: &Node, path: &Path<'_>, word: &str, reader: &mut Reader<'_>) {
    let shim = "write a program that reads a request on stdin (`type: cli`)";
    let (message, advice) = if keys::LATER_AGENT_TYPES.contains(&word) {
        (format!("agents of type `{word}` are not supported yet"), shim.to_owned())
    } else if keys::REFUSED_AGENT_TYPES.contains(&word) {
        (format!("agents of type `{word}` are not supported"), shim.to_owned())
    } else if word == "stdio" {
        ("unknown type of agent `stdio`".to_owned(), "did you mean `cli`?".to_owned())
    } else {
        (format!("unknown type of agent {}", reader.shown(node)), suggestion(word, keys::AGENT_TYPES))
    };
    reader.mistake(node.at, path, message, advice);
}

/// Unknown keys of a configuration: only warnings, because other programs have more settings than this one.
fn warn_unknown(config: &Object<'_, '_>, known: &[&str], word: &str, reader: &mut Reader<'_>) {
    let all: Vec<&str> = known.iter().chain(keys::AGENT_COMMON).copied().collect();
    for (key, _) in config.entries() {
        if !all.contains(&key.name.as_str()) {
            let message =
                format!("unknown key {} in the config of a `{word}` agent has no effect", quoted(&key.name));
            reader.warn(key.at, config.path, message, suggestion(&key.name, &all));
        }
    }
}

/// Names that other programs have for required keys.
const MISNAMED: &[(&str, &str)] = &[
    ("url", "endpoint"),
    ("uri", "endpoint"),
    ("address", "endpoint"),
    ("cmd", "command"),
    ("program", "command"),
    ("script", "command"),
];

/// The value of a key that must be there. Its other names are pointed out: their warnings are not shown beside a mistake.
fn required<'n>(config: &Object<'n, '_>, key: &str, reader: &mut Reader<'_>) -> Option<&'n Node> {
    let is_other = |(other, meant): &&(&str, &str)| *meant == key && config.get(other).is_some();
    match MISNAMED.iter().find(is_other) {
        Some((other, _)) if config.get(key).is_none() => {
            let message = format!("unknown key `{other}` in the config of an agent, and `{key}` is missing");
            reader.mistake(config.key_at(other), config.path, message, format!("did you mean `{key}`?"));
            None
        }
        _ => config.required(key, reader),
    }
}

fn process(config: &Object<'_, '_>, word: &str, reader: &mut Reader<'_>) -> Option<ProcessAgent> {
    warn_unknown(config, keys::AGENT_PROCESS, word, reader);
    let command = required(config, "command", reader)
        .and_then(|node| words_of(node, &config.path.key("command"), reader));
    let args = match config.get("args") {
        Some(node) => super::commands::arguments_of(node, &config.path.key("args"), reader),
        None => Some(Vec::new()),
    };
    let working_dir = config.nonblank("working_dir", reader).map(str::to_owned);
    let environment = read_environment(config, reader);
    let inherit_environment = config.boolean("inherit_environment", reader).unwrap_or_default();
    let allowed_env_vars = config.texts("allowed_env_vars", reader).unwrap_or_default();
    let mut words = command?;
    words.extend(args?);
    Some(ProcessAgent { command: words, working_dir, environment, inherit_environment, allowed_env_vars })
}

fn http(config: &Object<'_, '_>, reader: &mut Reader<'_>) -> Option<HttpAgent> {
    const SCHEMES: &[&str] = &["http://", "https://"];
    warn_unknown(config, keys::AGENT_HTTP, "http", reader);
    required(config, "endpoint", reader);
    let endpoint = address(config, "endpoint", SCHEMES, reader);
    let stream_endpoint = address(config, "stream_endpoint", SCHEMES, reader);
    let health_endpoint = address(config, "health_endpoint", SCHEMES, reader);
    let headers = headers(config, reader);
    let verify_ssl = config.boolean("verify_ssl", reader).unwrap_or(true);
    let allow_internal = config.boolean("allow_internal", reader);
    Some(HttpAgent {
        endpoint: endpoint?,
        stream_endpoint,
        headers,
        verify_ssl,
        health_endpoint,
        allow_internal,
    })
}

fn remote(
    config: &Object<'_, '_>,
    word: &str,
    schemes: &[&str],
    reader: &mut Reader<'_>,
) -> Option<RemoteAgent> {
    warn_unknown(config, keys::AGENT_REMOTE, word, reader);
    required(config, "endpoint", reader);
    let endpoint = address(config, "endpoint", schemes, reader);
    let headers = headers(config, reader);
    let verify_ssl = config.boolean("verify_ssl", reader).unwrap_or(true);
    Some(RemoteAgent { endpoint: endpoint?, headers, verify_ssl })
}

fn address(config: &Object<'_, '_>, key: &str, schemes: &[&str], reader: &mut Reader<'_>) -> Option<String> {
    let found = config.nonblank(key, reader)?.trim();
    let problem = crate::agent::address_problem(found);
    if let (Some(problem), Some(node)) = (problem, config.get(key)) {
        // A variable's value may be a secret.
        let is_variable = reader.substituted.contains_key(&node.at);
        let problem = if is_variable { "its host or port is wrong".to_owned() } else { problem.to_string() };
        let message = format!("the address {} cannot be used: {problem}", reader.shown(node));
        reader.mistake(node.at, &config.path.key(key), message, "");
        return None;
    }
    if schemes.iter().any(|scheme| found.len() > scheme.len() && found.starts_with(scheme)) {
        return Some(found.to_owned());
    }
    let node = config.get(key)?;
    let message = format!("the address {} has the wrong form", reader.shown(node));
    reader.mistake(
        node.at,
        &config.path.key(key),
        message,
        format!("begin it with {}", schemes.join(" or ")),
    );
    None
}

fn headers(config: &Object<'_, '_>, reader: &mut Reader<'_>) -> Vec<(String, SecretValue)> {
    let path = config.path.key("headers");
    let Some(node) = config.get("headers") else { return Vec::new() };
    let Some(object) = Object::open(node, &path, "headers", reader) else { return Vec::new() };
    let mut headers = Vec::new();
    for (key, value) in object.entries() {
        let Some(value) = text(value, &path.key(&key.name), reader) else { continue };
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if key.name.is_empty() || !key.name.bytes().all(token) || value.chars().any(char::is_control) {
            let message = format!("the header {} has a name or value that cannot be sent", quoted(&key.name));
            reader.mistake(key.at, &path, message, "");
            continue;
        }
        headers.push((key.name.clone(), SecretValue(value.to_owned())));
    }
    headers
}
