//! A confirmation that waits for a person delays nobody else.

use std::sync::mpsc::sync_channel;

use crate::ahp_serve::agent::{self, all};
use crate::ahp_serve::server::{LONG, POLICY, Server, confirmation, decided, pre_action, result, until};
use crate::support::{Folder, text};

fn folder(hold_ms: u32) -> Folder {
    let folder = Folder::with_approver(POLICY);
    folder.write("proctor.toml", &format!("policy = \"policy.yaml\"\n[ahp]\nhold_ms = {hold_ms}\n"));
    folder
}

#[test]
fn sixty_four_callers_are_answered_while_one_confirmation_is_held() {
    let folder = folder(7000);
    let server = Server::start(&folder);
    let mut caller = server.connect();
    caller.send(&confirmation("held"));
    let waiting = until("the approval is asked for", || folder.json(&["approve", "list", "--json"]).pop());

    // On the same connection.
    for index in 0..64 {
        caller.send(&pre_action(&format!("same-{index}"), "s", "look"));
    }
    let mut answered: Vec<String> = Vec::new();
    for _ in 0..64 {
        let answer = caller.next().unwrap();
        assert_eq!(decided(&result(&answer)), "allow", "{answer}");
        answered.push(text(&answer, "id").to_owned());
    }
    assert!(!answered.iter().any(|id| id == "held"), "the confirmation is still held");

    // On others, at the same time, on every transport.
    agent::run(async {
        let mut tasks = tokio::task::JoinSet::new();
        for index in 0..13 {
            for (name, transport) in all(&server) {
                tasks.spawn(async move {
                    let client = agent::connect(transport, &format!("{name}-{index}")).await.unwrap();
                    agent::ask(&client, "look").await;
                    client.close().await.unwrap();
                });
            }
        }
        assert!(tasks.len() >= 64);
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });

    // Only now a person decides: what comes next on the first connection is the answer that was held.
    let allow = folder.run(&["approve", "allow", text(&waiting, "approval_id")]);
    assert!(allow.status.success(), "{}", String::from_utf8_lossy(&allow.stderr));
    let answer = caller.next().unwrap();
    assert_eq!((text(&answer, "id"), decided(&result(&answer))), ("held", "approve"), "{answer}");
    server.stop();
}

#[test]
fn what_nobody_decides_is_answered_in_the_end() {
    let folder = folder(200);
    let server = Server::start(&folder);
    let mut caller = server.connect();
    let answer = result(&caller.ask(&confirmation("1")));
    assert_eq!(decided(&answer), "escalate", "{answer}");
    assert!(text(&answer, "reason").contains(text(&answer, "approval_id")), "{answer}");
    // Asked again, it is the same approval.
    let again = result(&caller.ask(&confirmation("2")));
    assert_eq!(text(&again, "approval_id"), text(&answer, "approval_id"));
    server.stop();
}

#[test]
fn many_held_questions_leave_room_for_others() {
    let folder = folder(7000);
    let server = Server::start(&folder);
    let (sender, receiver) = sync_channel(64);
    let mut holders = Vec::new();
    for index in 0..16 {
        let mut caller = server.connect();
        for question in 0..8 {
            caller.send(&pre_action(&format!("q{index}-{question}"), "s", "publish"));
        }
        holders.push(caller);
    }
    for index in 0..64 {
        let (socket, sender) = (server.socket.clone(), sender.clone());
        std::thread::spawn(move || {
            let mut caller = crate::ahp_serve::server::Caller::connect(&socket);
            let _ = sender.send(decided(&caller.tool(&format!("o{index}"), "look")).to_owned());
        });
    }
    for _ in 0..64 {
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), "allow");
    }
    // None of the questions was answered meanwhile.
    for holder in &mut holders {
        holder.stream.set_nonblocking(true).unwrap();
        let mut byte = [0u8];
        let read = std::io::Read::read(&mut holder.stream, &mut byte);
        assert_eq!(read.map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
    }
}
