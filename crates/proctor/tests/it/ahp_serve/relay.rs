//! `proctor harness` beside a server that owns the state directory.

use std::collections::HashSet;

use proctor_core::json::Json;
use rustix::process::Signal;

use crate::ahp_serve::server::{
    POLICY, Server, assert_verifies, confirmation, decided, decision_id, notification, pre_action, records,
    request, result, until, wait,
};
use crate::support::{Folder, Gate, text};

const STRICTER: &str = r#"
version: "1"
default: deny
rules:
  - { id: nothing, when: action.tool == "look", then: deny, reason: not any more }
"#;

/// `proctor harness`, on its standard input and output.
fn harness(folder: &Folder) -> Gate {
    Gate::spawn(folder.command(&["harness"]))
}

trait Tool {
    fn tool(&mut self, id: &str, tool: &str) -> Json;
}

impl Tool for Gate {
    fn tool(&mut self, id: &str, tool: &str) -> Json {
        let answer = self.ask(&pre_action(id, "s", tool));
        assert_eq!(text(&answer, "id"), id, "{answer}");
        result(&answer)
    }
}

#[test]
fn a_relay_passes_the_owners_decisions_on() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let mut relay = harness(&folder);
    let answer = relay.tool("1", "look");
    assert_eq!(decided(&answer), "allow");
    assert_eq!(decided(&relay.tool("2", "wipe")), "block");
    // The owner's policy changes: so do the relay's answers.
    folder.write("policy.yaml", STRICTER);
    let mut direct = server.connect();
    let mut tries = 0;
    until("the new policy is in force", || {
        tries += 1;
        (decided(&direct.tool(&format!("d{tries}"), "look")) == "block").then_some(())
    });
    let refused = relay.tool("3", "look");
    assert_eq!((decided(&refused), text(&refused, "reason")), ("block", "not any more"));
    let (code, said) = relay.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("relaying"), "{said}");
    server.stop();
    let principal = format!("uid:{}", rustix::process::getuid().as_raw());
    let decisions = records(&folder, "decision");
    let relayed = decisions.iter().find(|record| text(record, "id") == decision_id(&answer)).unwrap();
    assert_eq!(text(relayed, "principal"), principal);
}

#[test]
fn approvals_and_binding_are_shared() {
    let folder = Folder::with_approver(POLICY);
    let server = Server::start(&folder);
    let mut relay = harness(&folder);
    let mut direct = server.connect();
    let publish =
        |id: &str| request(id, "pre_action", "s", r#"{"tool_name":"publish","arguments":{"to":"main"}}"#);
    let asked = result(&relay.ask(&publish("1")));
    assert_eq!(decided(&asked), "escalate", "{asked}");
    let approval = text(&asked, "approval_id").to_owned();
    let again = result(&direct.ask(&publish("2")));
    assert_eq!((decided(&again), text(&again, "approval_id")), ("defer", approval.as_str()), "{again}");
    let allow = folder.run(&["approve", "allow", &approval]);
    assert!(allow.status.success(), "{}", String::from_utf8_lossy(&allow.stderr));
    let granted = result(&direct.ask(&publish("3")));
    assert_eq!(decided(&granted), "allow", "{granted}");
    // Once, whichever way it was asked for.
    let spent = result(&relay.ask(&publish("4")));
    assert_eq!(decided(&spent), "escalate", "{spent}");
    assert_ne!(text(&spent, "approval_id"), approval);

    // Decided through the relay, reported to the socket, and the other way round.
    let first = decision_id(&relay.tool("5", "look"));
    let second = decision_id(&direct.tool("6", "look"));
    let done = |id: &str| {
        format!(r#"{{"tool_name":"look","result":{{"success":true}},"metadata":{{"decision_id":"{id}"}}}}"#)
    };
    direct.send(&notification("post_action", "s", &done(&first)));
    direct.tool("7", "wipe");
    relay.send(&notification("post_action", "s", &done(&second)));
    relay.tool("8", "wipe");
    let (code, said) = relay.end();
    assert_eq!(code, 0, "{said}");
    server.stop();
    assert_eq!(records(&folder, "alarm"), Vec::<Json>::new());
    let decisions = records(&folder, "decision");
    let outcomes = records(&folder, "outcome");
    for id in [first, second] {
        let decision = decisions.iter().find(|record| text(record, "id") == id).unwrap();
        let sequence = decision.get("seq").unwrap();
        let bound = outcomes.iter().any(|outcome| outcome.pointer("/links/0") == Some(sequence));
        assert!(bound, "{id} has no outcome: {outcomes:?}");
    }
}

#[test]
fn a_relay_with_another_policy_does_not_start() {
    let folder = Folder::with_policy(POLICY);
    folder.write("other.yaml", STRICTER);
    let server = Server::start(&folder);
    let refused = folder
        .run_with(&["harness", "--policy", "other.yaml"], &format!("{}\n", pre_action("1", "s", "look")));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), &[][..]), "{said}");
    assert!(said.contains("the owner's policy is"), "{said}");
    server.stop();
    assert_eq!(records(&folder, "decision"), Vec::<Json>::new());
}

#[test]
fn when_the_owner_is_killed_the_relay_blocks_and_then_decides_itself() {
    let folder = Folder::with_policy(POLICY);
    folder.write("proctor.toml", "policy = \"policy.yaml\"\n[ahp]\nhold_ms = 7000\n");
    let mut server = Server::start(&folder);
    let mut relay = harness(&folder);
    let mut allowed = vec![decision_id(&relay.tool("before", "look"))];
    // In flight: the owner holds it, for a person.
    relay.send(&pre_action("held", "s", "publish"));
    relay.send(&confirmation("confirm"));
    until("both are asked for", || (folder.json(&["approve", "list", "--json"]).len() == 2).then_some(()));
    server.signal(Signal::KILL);
    server.ended();
    let mut answers = [relay.receive(), relay.receive()];
    answers.sort_by_key(|answer| text(answer, "id").to_owned());
    assert_eq!(
        (text(&answers[0], "id"), decided(&result(&answers[0]))),
        ("confirm", "reject"),
        "{}",
        answers[0]
    );
    assert_eq!((text(&answers[1], "id"), decided(&result(&answers[1]))), ("held", "block"), "{}", answers[1]);
    assert!(text(&result(&answers[1]), "reason").contains("not recorded"), "{}", answers[1]);

    // From now on everything is blocked, until the relay is the owner itself.
    let mut tries = 0;
    let first = until("the relay decides", || {
        tries += 1;
        let answer = relay.tool(&format!("after-{tries}"), "look");
        match decided(&answer) {
            "allow" => Some(decision_id(&answer)),
            other => {
                assert_eq!(other, "block", "{answer}");
                None
            }
        }
    });
    allowed.push(first);
    assert_eq!(decided(&relay.tool("wipe", "wipe")), "block");
    for index in 0..20 {
        allowed.push(decision_id(&relay.tool(&format!("own-{index}"), "look")));
    }
    // As the owner it is one for others.
    let mut second = harness(&folder);
    allowed.push(decision_id(&second.tool("through", "look")));
    assert_eq!(second.end().0, 0);
    let (code, said) = relay.end();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the owner of the state directory is gone"), "{said}");
    let recorded: Vec<String> =
        records(&folder, "decision").iter().map(|record| text(record, "id").to_owned()).collect();
    for id in &allowed {
        assert!(recorded.contains(id), "{id} was answered and is not on record");
    }
    assert_verifies(&folder);
}

#[test]
fn an_owner_killed_under_a_relays_load_loses_no_answer() {
    let folder = Folder::with_policy(POLICY);
    let mut allowed = Vec::new();
    for round in 0..crate::support::count(40) {
        let mut server = Server::start(&folder);
        let mut relay = harness(&folder);
        let total = 400;
        let mut stdin = relay.stdin;
        let writer = std::thread::spawn(move || {
            for index in 0..total {
                let line = pre_action(&format!("r{index}"), "s", "look");
                std::io::Write::write_all(&mut stdin, format!("{line}\n").as_bytes()).unwrap();
            }
        });
        let (mut seen, mut blocked) = (HashSet::new(), 0);
        for index in 0..total {
            if index == 37 + round {
                server.signal(Signal::KILL);
                server.ended();
            }
            let mut line = String::new();
            std::io::BufRead::read_line(&mut relay.stdout, &mut line).unwrap();
            let answer = Json::parse(line.as_bytes()).unwrap();
            assert!(seen.insert(text(&answer, "id").to_owned()), "answered twice: {answer}");
            let answer = result(&answer);
            match decided(&answer) {
                "allow" => allowed.push(decision_id(&answer)),
                other => {
                    assert_eq!(other, "block", "{answer}");
                    blocked += 1;
                }
            }
        }
        writer.join().unwrap();
        assert_eq!(wait(&mut relay.child).code(), Some(0));
        println!("round {round}: {blocked} of {total} blocked");
    }
    let recorded: HashSet<String> =
        records(&folder, "decision").iter().map(|record| text(record, "id").to_owned()).collect();
    for id in &allowed {
        assert!(recorded.contains(id), "{id} was answered and is not on record");
    }
    assert_verifies(&folder);
}

#[test]
fn a_harness_ends_with_its_input_and_answers_everything_first() {
    let folder = Folder::with_policy(POLICY);
    let lines: String = (0..500).map(|index| pre_action(&format!("{index}"), "s", "look") + "\n").collect();
    let alone = folder.run_with(&["harness"], &lines);
    assert_eq!(alone.status.code(), Some(0), "{}", String::from_utf8_lossy(&alone.stderr));
    assert_eq!(crate::support::lines(&alone).len(), 500);
    let server = Server::start(&folder);
    let relayed = folder.run_with(&["harness"], &lines);
    assert_eq!(relayed.status.code(), Some(0), "{}", String::from_utf8_lossy(&relayed.stderr));
    assert_eq!(crate::support::lines(&relayed).len(), 500);
    server.stop();
    assert_eq!(records(&folder, "decision").len(), 1000);
}

#[test]
fn a_signal_ends_a_harness() {
    let folder = Folder::with_policy(POLICY);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut gate = harness(&folder);
        assert_eq!(decided(&gate.tool("1", "look")), "allow");
        let pid = rustix::process::Pid::from_raw(gate.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(wait(&mut gate.child).code(), Some(code));
    }
}
