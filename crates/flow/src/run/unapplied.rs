//! Members of a task that a run does not apply: each one that is declared becomes a warning of the result.
//!
//! Some belong to a scheduler (delivery, queues, overlaps), some to agents alone. A member that is passed over in silence would feign
//! an effect.

use proctor_core::json::Json;
use proctor_wire::agentcli::effective::EffectiveTask;

use super::read::{integer, member, shell, text};

/// Warnings about members without effect. `user` is the account that processes run as.
pub(super) fn unapplied(task: &EffectiveTask, user: &str) -> Vec<String> {
    let mut found = Found(Vec::new());
    let declared = &task.task;
    let block = |name: &str| member(declared, name);
    let word = |name: &str, key: &str| block(name).and_then(|block| text(block, key));
    let number = |name: &str, key: &str| block(name).and_then(|block| integer(block, key));

    if word("delivery", "mode").is_some_and(|mode| mode != "none") {
        found.add("delivery", "nothing is announced, since only a scheduler delivers");
    }
    for key in ["max_pending_approvals", "max_queued_dispatches"] {
        if number("budgets", key).is_some() {
            found.add(&format!("budgets.{key}"), "it limits the queue of a scheduler");
        }
    }
    if word("reliability", "guarantee") == Some("at-least-once") {
        found.add("reliability.guarantee", "a run that is killed is not started again");
    }
    if word("reliability", "overlap_policy").is_some_and(|policy| policy != "allow") {
        found.add("reliability.overlap_policy", "runs of the same task may overlap");
    }
    if text(declared, "auth_profile").is_some() {
        found.add("auth_profile", "it names credentials of a scheduler");
    }
    if member(declared, "delete_after_run").and_then(Json::as_bool) == Some(true) {
        found.add("delete_after_run", "a run deletes no job");
    }
    if matches!(task.child_credential_policy.as_deref(), Some("inherit" | "downscope")) {
        found.add("child_credential_policy", "each task gets the credentials of its own identity only");
    }
    if text(&task.approval, "policy") == Some("manual") && text(&task.approval, "auto") == Some("approve") {
        found.add("approval.auto", "an approval that nobody gives in time is refused");
    }
    found.identity(task, user);
    if shell(declared).is_some() {
        found.of_shell(declared);
    } else {
        found.of_prompt(task);
    }
    found.0
}

struct Found(Vec<String>);

impl Found {
    fn add(&mut self, name: &str, instead: &str) {
        self.0.push(format!("`{name}` has no effect here: {instead}"));
    }

    fn identity(&mut self, task: &EffectiveTask, user: &str) {
        let flat = |name: &str| task.flat_identity.as_ref().and_then(|flat| text(flat, name));
        if flat("attestation").is_some() {
            self.add("identity.attestation", "only an authorization proof of a 0.2 manifest is verified");
        }
        let identity = task.identity.as_ref().unwrap_or(&Json::Null);
        let of = |block: &str, name: &str| member(identity, block).and_then(|block| text(block, name));
        if flat("run_as").or(of("subject", "run_as")).is_some_and(|account| account != user) {
            self.add("run_as", "processes run as the user that started them");
        }
        if of("auth", "refresh").is_some_and(|refresh| refresh != "never") {
            self.add("auth.refresh", "credentials are resolved once, when the run starts");
        }
        let constraints = member(identity, "trust").and_then(|trust| member(trust, "constraints"));
        let constraint = |name: &str| constraints.and_then(|constraints| member(constraints, name));
        if constraint("escalation").is_some_and(|escalation| *escalation != "fail") {
            let instead = "`contract.trust_enforcement` says what a low trust level does";
            self.add("trust.constraints.escalation", instead);
        }
        if constraint("escalation_timeout").is_some() {
            self.add("trust.constraints.escalation_timeout", "`approval.timeout_s` limits approvals");
        }
        if constraint("require_justification") == Some(&Json::Bool(true)) {
            self.add("trust.constraints.require_justification", "a run has no justification");
        }
    }

    fn of_shell(&mut self, task: &Json) {
        let intent = member(task, "intent");
        let is_plan = intent.is_some_and(|intent| {
            text(intent, "mode") == Some("plan") || member(intent, "read_only") == Some(&Json::Bool(true))
        });
        if is_plan {
            self.add("intent", "a shell task runs as it is written; confine it by `contract`");
        }
        let budgets = member(task, "budgets");
        for key in ["max_iterations", "max_context_items"] {
            if budgets.is_some_and(|budgets| member(budgets, key).is_some()) {
                self.add(&format!("budgets.{key}"), "it is for prompt tasks");
            }
        }
        for name in ["model_policy", "context", "session"] {
            let has_values = |block: &Json| {
                let members = block.as_object().unwrap_or_default();
                members.iter().any(|(_, value)| !value.is_null() && *value != "none")
            };
            if member(task, name).is_some_and(has_values) {
                self.add(name, "it is for prompt tasks");
            }
        }
    }

    fn of_prompt(&mut self, task: &EffectiveTask) {
        let budgets = member(&task.task, "budgets");
        if budgets.is_some_and(|budgets| member(budgets, "max_iterations").is_some()) {
            self.add("budgets.max_iterations", "agents count their iterations themselves");
        }
        let presentation = task.identity.as_ref().and_then(|identity| member(identity, "presentation"));
        let bindings = presentation.and_then(|block| member(block, "bindings")).and_then(Json::as_array);
        if bindings.is_some_and(|bindings| !bindings.is_empty()) {
            self.add("presentation.bindings", "an agent is handed no credentials");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctor_wire::agentcli::effective::select;

    fn names(task: &str, workflow: &str, top: &str) -> Vec<String> {
        let manifest = format!(
            r#"{{"version":"0.2",{top}"workflows":[{{"id":"w","name":"W",{workflow}"tasks":[{{"id":"t","name":"T",
                "schedule":{{"cron":"0 9 * * *"}},{task}}}]}}]}}"#
        );
        let manifest = Json::parse(manifest.as_bytes()).unwrap();
        let validation = proctor_wire::agentcli::validate::validate(&manifest);
        assert!(validation.is_ok(), "{}", validation.to_json());
        let task = select(&manifest, None, "t").unwrap();
        let found = unapplied(&task, "me");
        found.iter().map(|warning| warning.split('`').nth(1).unwrap().to_owned()).collect()
    }

    const SHELL: &str = r#""target":{"session_target":"shell"},"shell":{"program":"true"}"#;
    const PROMPT: &str = r#""target":{"session_target":"isolated"},"prompt":"p""#;

    #[test]
    fn members_that_are_applied_give_no_warning() {
        let applied = r#""output":{"format":"json"},"budgets":{"max_fanout":2},"reliability":{"max_retries":1,"guarantee":"at-most-once","overlap_policy":"allow"},
            "delivery":{"mode":"none"},"approval":{"policy":"manual","auto":"reject","risk_level":"high"},"runtime":{"timeout_ms":5},"delete_after_run":false,
            "contract":{"audit":"on-failure","max_cost_usd":1},"child_credential_policy":"none""#;
        let empty: [&str; 0] = [];
        assert_eq!(names(&format!("{SHELL},{applied}"), "", ""), empty);
        let hints = r#""intent":{"mode":"plan"},"context":{"retrieval":"recent"},"session":{"preferred_key":"k"},"model_policy":{"model":"m"},"budgets":{"max_context_items":3}"#;
        assert_eq!(names(&format!("{PROMPT},{hints}"), "", ""), empty);
        assert_eq!(names(SHELL, r#""model_policy":{"model":"m"},"#, ""), empty, "inherited by every task");
    }

    #[test]
    fn every_other_member_gives_one() {
        let queue = r#""delivery":{"mode":"announce","to":"ops"},"budgets":{"max_iterations":1,"max_context_items":1,"max_pending_approvals":1,"max_queued_dispatches":1},
            "reliability":{"guarantee":"at-least-once","overlap_policy":"queue"},"auth_profile":"a","delete_after_run":true,
            "approval":{"policy":"manual","auto":"approve"},"intent":{"read_only":true},"context":{"retrieval":"hybrid"},
            "session":{"preferred_key":"k"},"model_policy":{"model":"m"}"#;
        assert_eq!(
            names(&format!("{SHELL},{queue}"), r#""child_credential_policy":"inherit","#, ""),
            [
                "delivery",
                "budgets.max_pending_approvals",
                "budgets.max_queued_dispatches",
                "reliability.guarantee",
                "reliability.overlap_policy",
                "auth_profile",
                "delete_after_run",
                "child_credential_policy",
                "approval.auto",
                "intent",
                "budgets.max_iterations",
                "budgets.max_context_items",
                "model_policy",
                "context",
                "session",
            ]
        );
        let profile = r#""identity_profiles":[{"id":"i","provider":"azure-managed-identity","subject":{"run_as":"root"},
            "auth":{"mode":"service","refresh":"auto","provider_config":{"resource":"r"}},
            "trust":{"constraints":{"escalation":"human-approval","escalation_timeout":"5m","require_justification":true}},
            "presentation":{"bindings":[{"source":"credentials.access_token.value","target":{"kind":"env","name":"T"}}]}}],"#;
        assert_eq!(
            names(&format!(r#"{PROMPT},"identity":{{"ref":"i"}}"#), "", profile),
            [
                "run_as",
                "auth.refresh",
                "trust.constraints.escalation",
                "trust.constraints.escalation_timeout",
                "trust.constraints.require_justification",
                "presentation.bindings",
            ]
        );
    }
}
