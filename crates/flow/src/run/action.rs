//! Action of a run, as policy sees it: the command or the prompt, and every other command that the run would start.

use proctor_core::action::{Action, ActionKind};
use proctor_core::json::Json;
use proctor_wire::agentcli::effective::EffectiveTask;
use rust_decimal::Decimal;

use super::Options;
use super::read::{agent_id, member, shell, text, texts};

/// Name of the tool in actions of shell tasks.
const PROCESS: &str = "process_exec";
/// Name of the tool in actions of prompt tasks.
const AGENT: &str = "agent_spawn";

/// Builds the action of a run. The digest of its arguments covers the effective task hash and what options put in the place of the task's
/// own members, so that an approval is good for this task as it is written and asked for, and for no other.
pub(super) fn action(task: &EffectiveTask, task_hash: &str, cwd: &str, options: &Options) -> Action {
    let mut args = Json::object()
        .with("workflow", task.workflow_id.as_str())
        .with("task", task.task_id.as_str())
        .with("task_hash", grouped(task_hash));
    if let Some(timeout) = options.timeout {
        args.push("timeout_ms", u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    }
    // Evidence of a task that declares none is an addition, which needs no other approval.
    if let Some(provider) = options.evidence_provider.as_ref().filter(|_| task.evidence.is_some()) {
        args.push("evidence_provider", provider.as_str());
    }
    // A member of this name is a command for policy: the verify command is judged like the task's own.
    if let Some(shell) = task.verify.as_ref().and_then(|verify| text(verify, "shell")) {
        args.push("verify", Json::object().with("command", shell));
    }
    let mut action =
        Action { cwd: cwd.to_owned(), cost_usd: expected_cost(&task.contract), ..Action::default() };
    if let Some(shell) = shell(&task.task) {
        action.kind = ActionKind::ProcessExec;
        PROCESS.clone_into(&mut action.name);
        action.command = command_line(shell);
        // A shell runs its input: a member of this name is a command for policy, too.
        if let Some(input) = shell.get("stdin").and_then(Json::as_str).filter(|input| !input.is_empty()) {
            args.push("stdin", input);
        }
        let names = member(shell, "env").and_then(Json::as_object).unwrap_or_default();
        let names = names.iter().map(|(name, _)| name.as_str()).chain(presented_variables(task));
        let names: Vec<Json> = names.map(Json::from).collect();
        if !names.is_empty() {
            args.push("variables", names);
        }
    } else {
        action.kind = ActionKind::AgentSpawn;
        AGENT.clone_into(&mut action.name);
        text(&task.task, "prompt").unwrap_or_default().clone_into(&mut action.text);
        text(&task.model_policy, "model").unwrap_or_default().clone_into(&mut action.model);
        args.push("agent_id", agent_id(&task.task));
    }
    action.args = args;
    action
}

/// Names of the variables that the identity's credentials are presented in.
fn presented_variables(task: &EffectiveTask) -> impl Iterator<Item = &str> {
    let presentation = task.identity.as_ref().and_then(|identity| member(identity, "presentation"));
    let bindings = presentation.and_then(|presentation| member(presentation, "bindings"));
    let targets = bindings.and_then(Json::as_array).unwrap_or_default().iter();
    targets.filter_map(|binding| {
        let target = member(binding, "target")?;
        match text(target, "kind")? {
            "env" => text(target, "name"),
            "file" => text(target, "expose_as"),
            _ => None,
        }
    })
}

/// Adds the approval that the task or its authorization provider requires.
pub(super) fn require_approval(
    action: &mut Action,
    reason: &str,
    timeout_s: Option<u64>,
    scope: Option<&str>,
) {
    let mut required = Json::object().with("reason", reason);
    if let Some(timeout_s) = timeout_s {
        required.push("timeout_s", timeout_s);
    }
    if let Some(scope) = scope {
        required.push("approvers", vec![Json::from(scope)]);
    }
    action.metadata = Json::object().with("required_approval", required);
}

/// Highest cost that the contract names, which budgets reserve.
fn expected_cost(contract: &Json) -> Decimal {
    spending_limit(contract).unwrap_or(Decimal::ZERO)
}

/// The contract's `max_cost_usd`.
pub(super) fn spending_limit(contract: &Json) -> Option<Decimal> {
    let Some(Json::Number(literal)) = member(contract, "max_cost_usd") else { return None };
    let parsed = Decimal::from_str_exact(literal).or_else(|_| Decimal::from_scientific(literal));
    parsed.ok().filter(|cost| !cost.is_sign_negative())
}

/// Command line of a shell block, with words quoted where a shell needs it.
fn command_line(shell: &Json) -> String {
    let program = text(shell, "program").unwrap_or_default();
    let words: Vec<&str> = std::iter::once(program).chain(texts(shell, "args")).collect();
    command_line_of_words(&words)
}

/// Command line of words, quoted where a shell needs it.
pub(super) fn command_line_of_words(words: &[&str]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Action of a `command` value source, decided on its own before the command runs in the folder `cwd`. A grant is good for this manifest.
pub(super) fn source_action(task: &EffectiveTask, command: &str, cwd: &str) -> Action {
    let args = Json::object()
        .with("workflow", task.workflow_id.as_str())
        .with("task", task.task_id.as_str())
        .with("manifest_digest", grouped(&task.manifest_digest))
        .with("purpose", "value source");
    Action {
        kind: ActionKind::ProcessExec,
        name: PROCESS.to_owned(),
        command: command.to_owned(),
        cwd: cwd.to_owned(),
        args,
        ..Action::default()
    }
}

/// Digest as a list of groups. The scanner of actions and records looks at each text on its own: whole, a digest is a word of random
/// letters, or holds digits enough for the number of a card, and either would change the decision.
pub(super) fn grouped(digest: &str) -> Json {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    let groups = (0..hex.len()).step_by(8).filter_map(|from| hex.get(from..from + 8));
    Json::Array(groups.map(Json::from).collect())
}
