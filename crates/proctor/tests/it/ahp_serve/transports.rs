//! The same session on every transport, and what the ledger says of it.

use proctor_core::json::Json;

use crate::ahp_serve::agent::{self, all, connect, stdio, whole_session};
use crate::ahp_serve::server::{POLICY, Server, assert_verifies, records};
use crate::support::{Folder, text};

fn uid() -> String {
    format!("uid:{}", rustix::process::getuid().as_raw())
}

/// Asserts the records of an agent that had a whole session.
fn assert_recorded(all: &[Json], name: &str, principal: &str, ids: &[String]) {
    let of_agent: Vec<&Json> = all.iter().filter(|record| text(record, "agent") == name).collect();
    assert!(!of_agent.is_empty(), "{name}: nothing on record");
    for record in &of_agent {
        assert_eq!(text(record, "principal"), principal, "{name}: {record}");
    }
    let of_kind =
        |kind: &str| of_agent.iter().filter(|record| text(record, "kind") == kind).collect::<Vec<_>>();
    let decided: Vec<&str> = of_kind("decision").iter().map(|record| text(record, "id")).collect();
    for id in ids {
        assert!(decided.contains(&id.as_str()), "{name}: {id} is not on record");
    }
    assert_eq!(decided.len(), ids.len(), "{name}: a question is no decision");
    let observed: Vec<&str> = of_kind("observation").iter().map(|record| text(record, "code")).collect();
    for code in ["handshake", "heartbeat", "session_end", "query"] {
        assert!(observed.contains(&code), "{name}: no `{code}` in {observed:?}");
    }
    assert!(!of_kind("outcome").is_empty(), "{name}: no outcome");
    assert_eq!(of_kind("alarm").len(), 0, "{name}: {:?}", of_kind("alarm"));
}

#[test]
fn the_same_session_on_every_transport() {
    let folder = Folder::with_approver(POLICY);
    let server = Server::start(&folder);
    let mut seen = Vec::new();
    agent::run(async {
        for (name, transport) in all(&server) {
            let client = connect(transport, name).await.unwrap();
            seen.push((name, whole_session(&client).await));
            client.close().await.unwrap();
        }
    });
    server.stop();
    agent::run(async {
        for (name, more) in [("stdio", &[][..]), ("stdio-named", &["--agent", "crow"])] {
            let transport = stdio(&folder.state(), &folder.path("policy.yaml"), more);
            let client = connect(transport, name).await.unwrap();
            seen.push((name, whole_session(&client).await));
            client.close().await.unwrap();
        }
    });
    let all = records(&folder, "");
    for (name, ids) in seen {
        let principal = match name {
            "unix" | "stdio" => uid(),
            "stdio-named" => format!("{}/crow", uid()),
            _ => "local".to_owned(),
        };
        assert_recorded(&all, name, &principal, &ids);
    }
    assert_verifies(&folder);
}

#[test]
fn whatever_an_agent_claims_its_principal_is_what_the_transport_proves() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let claims = ["agent:ci", "uid:0", "cert:root", "local", "agent:ci/../x"];
    agent::run(async {
        for claim in claims {
            for (_, transport) in all(&server) {
                let client = connect(transport, claim).await.unwrap();
                agent::ask(&client, "look").await;
                client.close().await.unwrap();
            }
        }
    });
    server.stop();
    let decisions = records(&folder, "decision");
    assert_eq!(decisions.len(), claims.len() * 5);
    let of =
        |principal: &str| decisions.iter().filter(|record| text(record, "principal") == principal).count();
    assert_eq!((of("local"), of(&uid())), (claims.len() * 4, claims.len()));
}
