//! `proctor policy …`

use std::io::Read;
use std::path::{Path, PathBuf};

use proctor_core::decision::{Decision, Effect};
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::session::{Caller, SessionKey};
use proctor_core::time::Clock;
use proctor_facts::Workspace;
use proctor_policy::document::Problem;
use proctor_policy::input::Input;
use proctor_policy::judge::{Judgement, Request, changed_args, judge};
use proctor_policy::policy::Policy;
use proctor_policy::prepare::prepare_in;
use proctor_policy::scan::{Scanner, redact};
use proctor_policy::state::State;

mod explain;

use super::action_args::{self, Described};
use super::{Context, policy_accept, policy_test};
use crate::cli::{ActionArgs, PolicyCommand};
use crate::failure::{CHECKS_FAILED, DENIED, Failure, OK, Outcome, UNDECIDED};
use crate::output;
use proctor_engine::access::{load_policy, local_caller};
use proctor_engine::add_details;
use proctor_engine::policy_files;
use proctor_system::{RealPaths, SystemClock, SystemRandomness};

pub(super) fn run(context: &Context, command: PolicyCommand) -> Outcome {
    match command {
        PolicyCommand::Lint { path } => lint(context, path),
        PolicyCommand::Check(arguments) => check(context, &arguments),
        PolicyCommand::Explain(arguments) => explain::run(context, &arguments),
        PolicyCommand::Test { file } => policy_test::run(context, &file),
        PolicyCommand::Accept(arguments) => policy_accept::run(context, &arguments),
        PolicyCommand::Scan => scan(context),
        PolicyCommand::Schema => {
            output::data(proctor_policy::document::schema::SCHEMA.trim_end())?;
            Ok(OK)
        }
    }
}

fn lint(context: &Context, path: Option<PathBuf>) -> Outcome {
    let path = path
        .or_else(|| context.config.engine.policy.clone())
        .ok_or_else(|| Failure::from("no policy is named: pass a file, or configure `policy`"))?;
    if let Err(error) = std::fs::metadata(&path) {
        return Err(Failure::io(&path, &error));
    }
    match policy_files::load(&path) {
        Ok(policy) => lint_warnings(context, &path, &policy),
        Err(problems) => lint_problems(context, &problems),
    }
}

fn lint_warnings(context: &Context, path: &Path, policy: &Policy) -> Outcome {
    if context.json {
        let warnings = policy
            .warnings()
            .iter()
            .map(|warning| place_json(&warning.file, warning.at.line, warning.at.column, &warning.message));
        output::data(
            Json::object()
                .with("ok", true)
                .with("digest", policy.digest().to_string())
                .with("problems", Vec::<Json>::new())
                .with("warnings", warnings.collect::<Vec<_>>()),
        )?;
        return Ok(OK);
    }
    for warning in policy.warnings() {
        output::data(format!(
            "{}:{}:{}: warning: {}",
            warning.file, warning.at.line, warning.at.column, warning.message
        ))?;
    }
    let (documents, rules) = (policy.documents().len(), policy.rule_count());
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    output::data(format!(
        "{}: {documents} document{}, {rules} rule{}, digest {}",
        path.display(),
        plural(documents),
        plural(rules),
        policy.digest()
    ))?;
    Ok(OK)
}

fn lint_problems(context: &Context, problems: &[Problem]) -> Outcome {
    if context.json {
        let listed = problems
            .iter()
            .map(|problem| place_json(&problem.file, problem.at.line, problem.at.column, &problem.message));
        output::data(
            Json::object()
                .with("ok", false)
                .with("problems", listed.collect::<Vec<_>>())
                .with("warnings", Vec::<Json>::new()),
        )?;
    } else {
        for problem in problems {
            output::data(problem)?;
        }
        output::note(&format!("{} problem{}", problems.len(), if problems.len() == 1 { "" } else { "s" }));
    }
    Ok(CHECKS_FAILED)
}

fn place_json(file: &str, line: usize, column: usize, message: &str) -> Json {
    Json::object().with("file", file).with("line", line).with("column", column).with("message", message)
}

/// A decision without a record, on the state that the ledger has now, or on none if there is no ledger.
pub(super) struct Trial {
    pub(super) judgement: Judgement,
    pub(super) input: Input,
    pub(super) args: Option<Json>,
}

pub(super) fn trial(
    policy: &Policy,
    described: &Described,
    caller: &Caller,
    state: &State,
    now: proctor_core::time::Timestamp,
    workspace: Workspace<'_>,
) -> Trial {
    let key = SessionKey {
        principal: caller.principal.clone(),
        agent: described.agent.clone(),
        session: described.session.clone(),
    };
    // Without a ledger there is neither a secret nor a session of record: both are made from what identifies them.
    let seed = key.digest();
    let session = SessionId::from_bytes(first_sixteen(&seed));
    let prepared = prepare_in(policy, &described.action, workspace);
    let digest = described.action.digest(&[0; 32], &caller.principal, &prepared.facts.tool);
    let request = Request {
        action: &described.action,
        prepared,
        caller,
        agent: &described.agent,
        session,
        digest,
        now,
        record: RecordId::new(now, &SystemRandomness),
        fresh_approval: ApprovalId::new(now, &SystemRandomness),
    };
    let input = request.clone().into_input();
    let judgement = judge(policy, request, &state.view(caller, session, digest, now));
    let args = changed_args(&described.action, &judgement.decision);
    Trial { judgement, input, args }
}

fn first_sixteen(digest: &Digest) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    bytes.iter_mut().zip(digest.as_bytes()).for_each(|(target, source)| *target = *source);
    bytes
}

fn check(context: &Context, arguments: &ActionArgs) -> Outcome {
    let described = action_args::read(arguments)?;
    if arguments.record {
        return check_recorded(context, &described);
    }
    let policy = load_policy(&context.config.engine)?;
    let caller = caller(context);
    let workspace = workspace_of(context, &caller);
    let trial = trial(&policy, &described, &caller, &State::default(), SystemClock.now(), workspace);
    let decision = &trial.judgement.decision;
    if context.json {
        output::data(decision_json(decision, trial.args.as_ref()))?;
    } else {
        print_decision(decision)?;
    }
    Ok(exit_code(decision.effect))
}

fn check_recorded(context: &Context, described: &Described) -> Outcome {
    let config = &context.config;
    let command = Json::object()
        .with("op", "check")
        .with("agent", config.engine.agent.as_str())
        .with("team", config.engine.team.as_str())
        .with("org", config.engine.org.as_str())
        .with("line", described.line.to_string());
    let answer = super::records::Owner::open_or_make(context)?.command(&command)?;
    if context.json {
        output::data(&answer)?;
    } else {
        let effect = output::member(&answer, "decision").parse::<Effect>().unwrap_or(Effect::Deny);
        output::data(format!("{}  {}", output::effect(effect), output::member(&answer, "rule")))?;
        output::data(format!("  {}", output::shown(output::member(&answer, "reason"), 400)))?;
        output::data(output::dim(&format!("  recorded as {}", output::member(&answer, "decision_id"))))?;
    }
    Ok(exit_code(output::member(&answer, "decision").parse().unwrap_or(Effect::Deny)))
}

fn caller(context: &Context) -> Caller {
    let config = &context.config;
    local_caller(
        rustix::process::getuid().as_raw(),
        &config.engine.agent,
        &config.engine.team,
        &config.engine.org,
    )
}

/// The workspace that is pinned for a caller of this machine.
fn workspace_of<'a>(context: &'a Context, caller: &Caller) -> Workspace<'a> {
    Workspace { folder: context.config.engine.workspaces.of(&caller.principal), resolver: Some(&RealPaths) }
}

fn exit_code(effect: Effect) -> u8 {
    match effect {
        Effect::Allow | Effect::Redact | Effect::Modify => OK,
        Effect::Deny => DENIED,
        Effect::Ask | Effect::Defer => UNDECIDED,
    }
}

fn decision_json(decision: &Decision, args: Option<&Json>) -> Json {
    let mut out = Json::object()
        .with("decision", decision.effect.word())
        .with("rule", decision.rule.as_str())
        .with("reason", decision.reason.as_str());
    // An approval that nobody asked for yet has no identifier worth showing.
    let shown = Decision { approval: None, ..decision.clone() };
    add_details(&mut out, &shown);
    if let Some(args) = args {
        out.push("args", args.clone());
    }
    out.with("policy", decision.policy.to_string()).with("recorded", false)
}

fn print_decision(decision: &Decision) -> Result<(), Failure> {
    output::data(format!("{}  {}", output::effect(decision.effect), decision.rule))?;
    output::data(format!("  {}", output::shown(&decision.reason, 400)))?;
    for change in &decision.changes {
        output::data(format!("  {} → {}", change.path, output::shown(&change.replacement.to_string(), 200)))?;
    }
    Ok(())
}

fn scan(context: &Context) -> Outcome {
    const MOST: u64 = 64 << 20;
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(MOST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::from(format!("stdin: {error}")))?;
    if bytes.len() as u64 > MOST {
        return Err(Failure::from(format!("stdin: more than {MOST} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::from(format!("stdin: invalid UTF-8 at byte {}", error.utf8_error().valid_up_to()))
    })?;
    let scanner = Scanner::standard();
    let findings = scanner.scan(&text);
    let redacted = redact(&text, &findings);
    if context.json {
        let listed = findings.iter().map(|finding| {
            Json::object()
                .with("kind", finding.kind.name())
                .with("offset", finding.offset)
                .with("end", finding.end)
        });
        output::data(Json::object().with("findings", listed.collect::<Vec<_>>()).with("redacted", redacted))?;
        return Ok(OK);
    }
    for finding in &findings {
        output::note(&format!("{} at bytes {} to {}", finding.kind.name(), finding.offset, finding.end));
    }
    output::data(redacted.strip_suffix('\n').unwrap_or(&redacted))?;
    Ok(OK)
}
