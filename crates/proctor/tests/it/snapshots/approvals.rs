//! `proctor approve …`

use super::Transcript;

const ASKED: &str =
    "{\"tool\":\"deploy\",\"args\":{\"to\":\"staging\"},\"session\":\"s2\",\"agent\":\"helper\"}\n";

/// The id of the first open approval.
fn waiting(transcript: &Transcript) -> String {
    transcript.member("approve list", "approval_id")
}

#[test]
fn approvals_are_listed_shown_and_decided() {
    let mut transcript = Transcript::with_ledger();
    transcript.execute("gate", ASKED);
    transcript.run_all(&["approve list", "approve list --json"]);
    let id = waiting(&transcript);
    transcript.run_all(&[
        &format!("approve show {id}"),
        &format!("approve show {id} --json"),
        &format!("approve allow {id} --reason 'release day'"),
    ]);
    let id = waiting(&transcript);
    transcript.run_all(&[
        &format!("approve deny {id} --reason 'not on a Friday' --json"),
        "approve list",
        "approve list --all",
        "audit tail --kind approval",
    ]);
    transcript.check("approve");
}

#[test]
fn a_refusal() {
    let mut transcript = Transcript::with_ledger();
    let id = waiting(&transcript);
    transcript.run(&format!("approve deny {id}"));
    transcript.run(&format!("approve show {id}"));
    transcript.run_with(
        "gate",
        "{\"tool\":\"deploy\",\"args\":{\"to\":\"prod\"},\"session\":\"s2\",\"agent\":\"helper\"}\n",
    );
    transcript.check("approve_deny");
}

#[test]
fn approvals_that_cannot_be_decided() {
    let mut transcript = Transcript::with_ledger();
    let id = waiting(&transcript);
    transcript.run_all(&[
        "approve show 01",
        "approve allow nonsense",
        "approve deny 01900000-0000-7000-8000-000000000000",
        &format!("approve allow {id} --credential nowhere.key"),
        &format!("approve allow {id} --reason 'key AKIAIOSFODNN7EXAMPLE'"),
        &format!("approve allow {id}"),
        &format!("approve deny {id}"),
    ]);
    transcript.check("approve_mistakes");
}
