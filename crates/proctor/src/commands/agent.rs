//! `proctor agent …` and `proctor op …`: who is registered, and orders to them.

use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_ledger::Reader;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order as Direction};
use proctor_policy::scan::{Identifiers, Scanner};
use proctor_policy::state::{AgentInfo, Registry};

use super::{Context, records};
use crate::cli::{AgentCommand, OpArgs, OpCommand, OrderArgs};
use crate::failure::{OK, Outcome};
use crate::output;
use proctor_engine::access::open_reader;
use proctor_engine::orders::{self, Order};
use proctor_engine::state_dir::StateDir;

pub(super) fn run(context: &Context, command: &AgentCommand) -> Outcome {
    match command {
        AgentCommand::List { all } => list(context, *all),
        AgentCommand::Show { agent } => show(context, agent),
        AgentCommand::Suspend(arguments) => order(context, arguments, Order::Suspend),
        AgentCommand::Resume(arguments) => order(context, arguments, Order::Resume),
        AgentCommand::Kill(arguments) => order(context, arguments, Order::Kill),
        AgentCommand::Deregister(arguments) => order(context, arguments, Order::Deregister),
    }
}

fn list(context: &Context, all: bool) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let state = proctor_engine::read_state(&reader)?;
    let registry = state.registry();
    let mut agents: Vec<&AgentInfo> = registry.list().collect();
    agents.retain(|agent| {
        all || !agent.is_deregistered || !agent.suspended.is_empty() || agent.killed.is_some()
    });
    if context.json {
        for agent in agents {
            output::data(agent_json(registry, agent))?;
        }
        return Ok(OK);
    }
    if agents.is_empty() {
        output::note("no agent is registered");
        return Ok(OK);
    }
    let mut rows =
        vec![["AGENT", "STATUS", "NAME", "TEAM", "RISK", "DEPTH", "REGISTERED"].map(str::to_owned).to_vec()];
    for agent in agents {
        let own = agent.registration.clone().unwrap_or_default();
        let or_dash = |text: &str, most: usize| output::shown(if text.is_empty() { "-" } else { text }, most);
        let shown = if agent.agent.is_empty() { &agent.principal } else { &agent.agent };
        // A principal that never registered is listed because it is stopped.
        let (depth, registered) = match &agent.registration {
            Some(_) => (own.depth.to_string(), records::clock_time(agent.registered_at)),
            None => ("-".to_owned(), "-".to_owned()),
        };
        rows.push(vec![
            or_dash(shown, 60),
            orders::status(registry, agent).to_owned(),
            or_dash(&own.name, 24),
            or_dash(&agent.team, 16),
            or_dash(&own.risk, 8),
            depth,
            registered,
        ]);
    }
    output::table(&rows)?;
    Ok(OK)
}

fn show(context: &Context, named: &str) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let state = proctor_engine::read_state(&reader)?;
    let registry = state.registry();
    // Without its key only the names that records show are known.
    let secret = StateDir::new(&context.config.engine.state).secret().unwrap_or_default();
    let identifiers = Identifiers::new(Scanner::standard(), &secret);
    let agent =
        orders::find(registry, named, &|recorded, identifier| identifiers.stands_for(recorded, identifier))?;
    let told = told(&reader, agent);
    if context.json {
        let mut out = agent_json(registry, agent);
        out.push("says", told);
        output::data(out)?;
        return Ok(OK);
    }
    let own = agent.registration.clone().unwrap_or_default();
    let line = |name: &str, value: &str| {
        if value.is_empty() {
            Ok(())
        } else {
            output::data(format!("{name:<11} {}", output::shown(value, 400)))
        }
    };
    line("agent", &agent.agent)?;
    line("principal", &agent.principal)?;
    line("status", orders::status(registry, agent))?;
    if let Some(stop) = registry.stop(&agent.principal) {
        line("why", &stop.reason)?;
    }
    line("name", &own.name)?;
    line("team", &agent.team)?;
    line("org", &agent.org)?;
    line("risk", &own.risk)?;
    line("parent", &own.parent)?;
    line("started by", &own.tool)?;
    line("because", &own.reason)?;
    if own.observe {
        line("asks", "to be only observed (the policy's `observe` decides)")?;
    }
    if agent.registration.is_some() {
        line("registered", &agent.registered_at.to_string())?;
    }
    for child in registry.children(&agent.principal) {
        line("child", &format!("{} ({})", child.agent, orders::status(registry, child)))?;
    }
    for (name, value) in told.as_object().unwrap_or_default() {
        let is_empty = value.as_array().is_some_and(<[Json]>::is_empty)
            || value.as_object().is_some_and(<[(String, Json)]>::is_empty);
        if !is_empty {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line(name, &text)?;
        }
    }
    Ok(OK)
}

/// Data of the agent's last registration.
fn told(reader: &Reader, agent: &AgentInfo) -> Json {
    let filter = Filter {
        kinds: vec![RecordKind::Agent],
        principal: Some(agent.principal.clone()),
        ..Filter::default()
    };
    for record in reader.records(filter, Direction::Descending).map_while(Result::ok) {
        if !matches!(record.envelope.code.as_str(), "registered" | "token") {
            continue;
        }
        if let Ok(BodyState::Present { bytes, .. }) = reader.body(record.seq) {
            return Json::parse(&bytes).unwrap_or_default();
        }
    }
    Json::Null
}

fn agent_json(registry: &Registry, agent: &AgentInfo) -> Json {
    let own = agent.registration.clone().unwrap_or_default();
    let mut out = Json::object()
        .with("agent", agent.agent.as_str())
        .with("principal", agent.principal.as_str())
        .with("key", proctor_engine::orders::key_of(agent))
        .with("status", orders::status(registry, agent))
        .with("name", own.name)
        .with("team", agent.team.as_str())
        .with("org", agent.org.as_str())
        .with("risk_tier", own.risk)
        .with("depth", own.depth)
        .with("parent", own.parent)
        .with("observe", own.observe);
    if agent.registration.is_some() {
        out.push("registered_at", agent.registered_at.to_string());
    }
    if let Some(stop) = registry.stop(&agent.principal) {
        out.push("why", stop.reason);
    }
    if let Some(policy) = agent.told {
        out.push("policy", policy.to_string());
    }
    out
}

fn order(context: &Context, arguments: &OrderArgs, order: Order) -> Outcome {
    let command = Json::object()
        .with("op", "agent")
        .with("order", order.word())
        .with("agent", arguments.agent.as_str())
        .with("reason", arguments.reason.as_str());
    let answer = records::command(context, &command)?;
    if context.json {
        output::data(&answer)?;
    } else {
        output::data(format!(
            "{} {}",
            output::member(&answer, "principal"),
            output::member(&answer, "status")
        ))?;
    }
    Ok(OK)
}

pub(super) fn run_op(context: &Context, command: &OpCommand) -> Outcome {
    let (word, arguments) = match command {
        OpCommand::List => return list_ops(context),
        OpCommand::Pause(arguments) => ("pause", arguments),
        OpCommand::Resume(arguments) => ("resume", arguments),
        OpCommand::Terminate(arguments) => ("terminate", arguments),
    };
    operate(context, word, arguments)
}

fn list_ops(context: &Context) -> Outcome {
    let reader = open_reader(&context.config.engine.state)?;
    let state = proctor_engine::read_state(&reader)?;
    let operations: Vec<(&str, bool)> = state.registry().operations().collect();
    if operations.is_empty() && !context.json {
        output::note("no operation is stopped");
    }
    for (operation, ended) in operations {
        let word = if ended { "terminated" } else { "paused" };
        if context.json {
            output::data(Json::object().with("operation", operation).with("status", word))?;
        } else {
            output::data(format!("{word:<11} {}", output::shown(operation, 200)))?;
        }
    }
    Ok(OK)
}

fn operate(context: &Context, word: &str, arguments: &OpArgs) -> Outcome {
    let command = Json::object()
        .with("op", "operation")
        .with("order", word)
        .with("operation", arguments.operation.as_str())
        .with("reason", arguments.reason.as_str());
    let answer = records::command(context, &command)?;
    if context.json {
        output::data(&answer)?;
    } else {
        output::data(format!("{} {word}d", output::member(&answer, "operation")))?;
    }
    Ok(OK)
}
