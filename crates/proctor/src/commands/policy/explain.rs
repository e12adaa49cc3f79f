//! `proctor policy explain`: the decision on an action, with what every rule says and why the others say nothing.

use proctor_core::json::Json;
use proctor_core::time::Clock;
use proctor_engine::access::load_policy;
use proctor_policy::evaluate::Opinion;
use proctor_policy::explain::{SilentRule, silent_rules};
use proctor_policy::state::State;
use proctor_system::SystemClock;

use super::{caller, decision_json, exit_code, print_decision, trial, workspace_of};
use crate::cli::ActionArgs;
use crate::commands::Context;
use crate::commands::action_args;
use crate::failure::{Failure, Outcome};
use crate::output;

/// Length limit of a text in a row.
const SHOWN: usize = 200;

pub(super) fn run(context: &Context, arguments: &ActionArgs) -> Outcome {
    let described = action_args::read(arguments)?;
    let policy = load_policy(&context.config.engine)?;
    let (state, caller) = (State::default(), caller(context));
    let workspace = workspace_of(context, &caller);
    let trial = trial(&policy, &described, &caller, &state, SystemClock.now(), workspace);
    let (judgement, input) = (&trial.judgement, &trial.input);
    let answers = state.view(&caller, input.session, input.digest, input.now);
    let silent = silent_rules(&policy, input, &answers);
    let facts =
        Json::parse(&judgement.body).ok().and_then(|body| body.get("read_set").cloned()).unwrap_or_default();
    if context.json {
        output::data(
            decision_json(&judgement.decision, trial.args.as_ref())
                .with("opinions", judgement.opinions.iter().map(opinion_json).collect::<Vec<_>>())
                .with("silent", silent.iter().map(silent_json).collect::<Vec<_>>())
                .with("read_set", facts),
        )?;
        return Ok(exit_code(judgement.decision.effect));
    }
    print_decision(&judgement.decision)?;
    print_opinions(&judgement.opinions)?;
    print_silent(&silent)?;
    output::data("")?;
    output::data("what the rules saw:")?;
    if let Some(facts) = facts.get("action").and_then(Json::as_object) {
        for (name, value) in facts {
            output::data(format!("  {name} = {}", output::shown(&value.to_string(), 300)))?;
        }
    }
    Ok(exit_code(judgement.decision.effect))
}

fn opinion_json(opinion: &Opinion) -> Json {
    Json::object()
        .with("effect", opinion.effect.word())
        .with("rule", opinion.rule.as_str())
        .with("reason", opinion.reason.as_str())
        .with("file", opinion.file.as_str())
        .with("line", opinion.at.line)
}

fn silent_json(silent: &SilentRule) -> Json {
    let causes: Vec<Json> = silent.causes.iter().map(|cause| Json::from(cause.as_str())).collect();
    Json::object()
        .with("effect", silent.effect.word())
        .with("rule", silent.rule.as_str())
        .with("file", silent.file.as_str())
        .with("line", silent.at.line)
        .with("causes", causes)
}

fn print_opinions(opinions: &[Opinion]) -> Result<(), Failure> {
    output::data("")?;
    output::data("what the policy says, in the order it was asked:")?;
    if opinions.is_empty() {
        output::data("  nothing: the default decides")?;
    }
    let rows = opinions.iter().map(|opinion| {
        let place = if opinion.at.line == 0 {
            opinion.file.clone()
        } else {
            format!("{}:{}", opinion.file, opinion.at.line)
        };
        vec![
            format!("  {}", output::effect(opinion.effect)),
            opinion.rule.clone(),
            output::shown(&opinion.reason, SHOWN),
            output::dim(&place),
        ]
    });
    output::table(&rows.collect::<Vec<_>>())
}

fn print_silent(silent: &[SilentRule]) -> Result<(), Failure> {
    if silent.is_empty() {
        return Ok(());
    }
    output::data("")?;
    output::data("rules that did not speak, and why:")?;
    for rule in silent {
        let place = output::dim(&format!("{}:{}", rule.file, rule.at.line));
        output::data(format!("  {}  {}  {place}", output::effect(rule.effect), rule.rule))?;
        for cause in &rule.causes {
            output::data(format!("    {}", output::shown(cause, SHOWN)))?;
        }
    }
    Ok(())
}
