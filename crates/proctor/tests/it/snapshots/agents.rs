//! `proctor agent …` and `proctor op …`

use super::{POLICY, Transcript};

/// A transcript in a folder with an empty ledger.
fn initialised() -> Transcript {
    let transcript = Transcript::with_policy(POLICY);
    transcript.prepare("init");
    transcript
}

#[test]
fn orders_to_agents() {
    let mut transcript = initialised();
    // Orders are for those who were seen.
    for agent in ["builder", "other"] {
        transcript.execute(&format!("gate --agent {agent}"), "{\"tool\":\"x\"}\n");
    }
    let own = format!("uid:{}", rustix::process::getuid().as_raw());
    transcript.run_all(&[
        "agent list",
        "agent list --json",
        &format!("agent suspend {own}/builder --reason 'under investigation'"),
        &format!("agent kill {own}/other --json"),
        "agent list",
        "agent list --json",
        &format!("agent show {own}/builder"),
        &format!("agent show {own}/builder --json"),
        &format!("agent resume {own}/builder"),
        "agent list --all",
        "audit tail --kind agent",
    ]);
    transcript.check("agent");
}

#[test]
fn orders_that_are_refused() {
    let mut transcript = initialised();
    transcript.run_all(&[
        "agent show nobody",
        "agent resume uid:4711/builder",
        "agent deregister nobody",
        "agent kill nobody",
        "agent suspend",
    ]);
    transcript.check("agent_mistakes");
}

#[test]
fn operations() {
    let mut transcript = initialised();
    transcript.run_all(&[
        "op list",
        "op list --json",
        "op pause '*' --reason 'everybody stops'",
        "op pause agent:builder",
        "op terminate 4bf92f3577b34da6:00f067aa0ba902b7 --json",
        "op list",
        "op list --json",
        "op resume '*'",
        "op list",
        "op resume '*'",
        "op resume 4bf92f3577b34da6:00f067aa0ba902b7",
        "op pause nonsense",
    ]);
    transcript.check("op");
}

#[test]
fn a_suspended_agent_is_denied() {
    let mut transcript = initialised();
    transcript.run("op pause '*' --reason 'everybody stops'");
    transcript.run_with("gate", "{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}\n");
    transcript.check("op_denies");
}
