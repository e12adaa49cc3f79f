//! `proctor session …`

use super::Transcript;

#[test]
fn sessions_are_listed() {
    let mut transcript = Transcript::with_ledger();
    transcript.run_all(&["session list", "session list --json"]);
    transcript.check("session_list");
}

#[test]
fn a_session_is_shown() {
    let mut transcript = Transcript::with_ledger();
    transcript.run_all(&["session show s1", "session show s2", "session show s1 --trace"]);
    transcript.check("session_show");
}

#[test]
fn a_session_is_shown_as_json() {
    let mut transcript = Transcript::with_ledger();
    transcript.run("session show s2 --json");
    transcript.check("session_show_json");
}

#[test]
fn sessions_that_are_not_there() {
    let mut transcript = Transcript::with_ledger();
    transcript.execute("gate", "{\"tool\":\"x\",\"session\":\"s1\",\"agent\":\"other\"}\n");
    transcript.run_all(&[
        "session show nobody",
        "session show 01900000-0000-7000-8000-000000000000",
        "session show s1",
    ]);
    transcript.check("session_mistakes");
}
