//! A changed policy is in force on every transport at once.

use proctor_clients::ahp::Decision;

use crate::ahp_serve::agent::{self, all, ask, connect};
use crate::ahp_serve::server::{POLICY, Server, decided, records, until};
use crate::support::{Folder, text};

#[test]
fn a_changed_policy_is_seen_by_every_transport() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let mut tries = 0;
    let mut caller = server.connect();
    let mut now_it_is = |wanted: &str| {
        until("the changed policy is in force", || {
            tries += 1;
            (decided(&caller.tool(&format!("{tries}"), "look")) == wanted).then_some(())
        });
    };
    agent::run(async {
        let mut clients = Vec::new();
        for (name, transport) in all(&server) {
            let client = connect(transport, name).await.unwrap();
            assert!(matches!(ask(&client, "look").await, Decision::Allow { .. }), "{name}");
            clients.push((name, client));
        }
        folder.write("policy.yaml", &POLICY.replace("then: allow", "then: deny"));
        tokio::task::block_in_place(|| now_it_is("block"));
        for (name, client) in &clients {
            assert!(matches!(ask(client, "look").await, Decision::Block { .. }), "{name}");
        }
        // One that is broken changes nothing.
        folder.write("policy.yaml", "version: \"1\"\nrules: [");
        tokio::task::block_in_place(|| {
            until("the broken policy is refused", || server.said().contains("is refused").then_some(()));
        });
        for (name, client) in &clients {
            assert!(matches!(ask(client, "look").await, Decision::Block { .. }), "{name}");
        }
        folder.write("policy.yaml", POLICY);
        tokio::task::block_in_place(|| now_it_is("allow"));
        for (name, client) in &clients {
            assert!(matches!(ask(client, "look").await, Decision::Allow { .. }), "{name}");
        }
    });
    server.stop();
    let codes: Vec<String> =
        records(&folder, "policy").iter().map(|record| text(record, "code").to_owned()).collect();
    assert!(codes.iter().any(|code| code == "refused"), "{codes:?}");
    assert!(codes.len() >= 4, "{codes:?}");
}
