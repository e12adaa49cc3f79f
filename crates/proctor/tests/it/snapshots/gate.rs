//! Lines of the gate.

use super::{ACTIONS, POLICY, Transcript};

#[test]
fn lines_are_answered() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.run_with("gate", ACTIONS);
    transcript.check("gate");
}

#[test]
fn arguments_are_changed() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.run_with(
        "gate",
        "{\"ref\":1,\"tool\":\"search\",\"args\":{\"query\":\"parser\",\"limit\":5000}}\n\
         {\"ref\":2,\"tool\":\"bash\",\"args\":{\"command\":\"echo AKIAIOSFODNN7EXAMPLE\"}}\n",
    );
    transcript.check("gate_changes");
}

#[test]
fn malformed_lines_are_denied() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.run_with(
        "gate",
        "{\"tool\":\n\
         []\n\
         {\"tol\":\"bash\"}\n\
         {\"tool\":7}\n\
         {\"tool\":\"bash\",\"tool\":\"rm\"}\n\
         {\"kind\":\"tool_cal\",\"tool\":\"bash\"}\n\
         {\"outcome\":{\"decision_id\":\"nonsense\"}}\n",
    );
    transcript.run("audit tail --kind alarm");
    transcript.check("gate_malformed");
}

#[test]
fn without_a_policy_everything_is_denied() {
    let mut transcript = Transcript::empty();
    transcript.run_with("gate", "{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}\n");
    transcript.check("gate_without_policy");
}
