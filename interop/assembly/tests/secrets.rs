//! Secrets that must not be stored: tokens.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};

use aa_proto::assembly::agent::v1::{ControlStreamRequest, DeregisterRequest};
use aa_proto::assembly::approval::v1::ApprovalDecisionType;
use aa_proto::assembly::audit::v1::{AuditEvent, ReportEventsRequest};
use aa_proto::assembly::common::v1::Decision;
use aa_proto::assembly::policy::v1::BatchCheckRequest;
use interop_assembly::actions::{question, tool};
use interop_assembly::gateway::{Place, Way};
use interop_assembly::link::{Link, bearing, bearing_as_bearer};
use interop_assembly::policies::ASKING;

#[tokio::test]
async fn tokens_are_written_down_nowhere() {
    let place = Place::new(ASKING);
    let alice = place.approver("alice");
    let gateway = place.start();
    let mut names = Vec::new();
    let mut tokens = vec!["a-token-that-nobody-has".to_owned()];
    for way in Way::ALL {
        let link = gateway.link_by(way).await;
        let (name, own) = uses_its_token_everywhere(&link, &alice).await;
        names.push(name);
        tokens.extend(own);
    }
    let shown = place.order(&["agent", "show", &names[0], "--json"]);
    let told = place.order(&["audit", "tail", "--json"]);
    for token in tokens.iter().chain([&alice]) {
        assert!(!shown.contains(token) && !told.contains(token), "a token is printed: {shown}\n{told}");
    }
    // While the gateway runs, and when it is gone.
    let while_it_runs = Files::below(place.path());
    gateway.terminate().await;
    for files in [while_it_runs, Files::below(place.path())] {
        for name in &names {
            let with_name = files.with(name.as_bytes());
            assert!(with_name.contains(&place.log()), "what is written is found: {with_name:?}");
            let is_state = |file: &PathBuf| file.starts_with(place.path().join("gateway.proctor"));
            assert!(with_name.iter().any(is_state), "what is written is found: {with_name:?}");
        }
        for token in &tokens {
            for spelling in spellings(token) {
                assert_eq!(files.with(&spelling), Vec::<PathBuf>::new(), "{}", spelling.escape_ascii());
            }
        }
        for spelling in spellings(&alice) {
            let mut found = files.with(&spelling);
            // She keeps it there herself.
            found.retain(|file| !file.ends_with("alice.token"));
            assert_eq!(found, Vec::<PathBuf>::new(), "{}", spelling.escape_ascii());
        }
    }
}

/// An agent that shows its token wherever one can be shown, and gets another. Returns its name and both tokens.
async fn uses_its_token_everywhere(link: &Link, approver: &str) -> (String, [String; 2]) {
    let mut agent = link.register("platform").await;
    let first = agent.token.clone();
    let again = link.registration(&agent).await.unwrap();
    agent.token = link.lifecycle().register(again).await.unwrap().into_inner().credential_token;
    assert_ne!(agent.token, first);

    link.heartbeat(&agent).await.unwrap();
    let request =
        ControlStreamRequest { agent_id: Some(agent.id.clone()), credential_token: agent.token.clone() };
    let commands = link.lifecycle().control_stream(request).await.unwrap();
    let asked = link.check(&agent, tool("deploy", "{}")).await;
    let requests = vec![question(&agent, tool("deploy", "{}")); 3];
    link.policy().batch_check(BatchCheckRequest { requests }).await.unwrap();
    let event = |id: &str| AuditEvent {
        event_id: format!("{id}-{}", agent.id.agent_id),
        agent_id: Some(agent.id.clone()),
        ..AuditEvent::default()
    };
    let request = ReportEventsRequest { events: vec![event("one")] };
    link.audit().report_events(bearing(&agent.token, request)).await.unwrap();
    let request = ReportEventsRequest { events: vec![event("other")] };
    link.audit().report_events(bearing_as_bearer(&agent.token, request)).await.unwrap();
    let decided = link.decide(approver, &asked.approval_id, ApprovalDecisionType::Approved).await.unwrap();
    assert!(decided.success, "{decided:?}");
    assert_eq!(link.decision(&agent, tool("deploy", "{}")).await, Decision::Allow);

    // What is refused is recorded, too.
    let own = agent.token.clone();
    for wrong in [&first, "a-token-that-nobody-has"] {
        wrong.clone_into(&mut agent.token);
        assert_eq!(link.decision(&agent, tool("deploy", "{}")).await, Decision::Deny);
        link.heartbeat(&agent).await.unwrap_err();
    }
    drop(commands);
    let request = DeregisterRequest {
        agent_id: Some(agent.id.clone()),
        credential_token: own.clone(),
        reason: "done".into(),
    };
    assert!(link.lifecycle().deregister(request).await.unwrap().into_inner().success);
    (agent.id.agent_id, [first, own])
}

/// A token as it may have been written: as text, as digits, in base 64, and as the bytes that a UUID stands for.
fn spellings(token: &str) -> Vec<Vec<u8>> {
    let mut spellings = vec![token.as_bytes().to_vec(), token.to_uppercase().into_bytes()];
    let mut of_bytes = |bytes: &[u8]| {
        let digits = hex::encode(bytes);
        spellings.push(digits.to_uppercase().into_bytes());
        spellings.push(digits.into_bytes());
        spellings.push(base64(bytes));
    };
    of_bytes(token.as_bytes());
    if let Ok(bytes) = hex::decode(token.replace('-', "")) {
        of_bytes(&bytes);
        spellings.push(bytes);
    }
    spellings
}

/// In base 64, as far as it does not depend on how its end is filled up.
fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |three: &[u8]| {
        let number = three.iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| DIGITS[number >> shift & 63])
    };
    bytes.chunks_exact(3).flat_map(digits).collect()
}

/// Content of all files of a folder.
struct Files(Vec<(PathBuf, Vec<u8>)>);

impl Files {
    fn below(folder: &Path) -> Files {
        let mut files = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    files.push((entry.path(), std::fs::read(entry.path()).unwrap()));
                }
            }
        }
        Files(files)
    }

    /// The files that hold this.
    fn with(&self, sought: &[u8]) -> Vec<PathBuf> {
        let holds = |bytes: &[u8]| bytes.windows(sought.len()).any(|window| window == sought);
        self.0.iter().filter(|(_, bytes)| holds(bytes)).map(|(path, _)| path.clone()).collect()
    }
}

#[test]
fn the_spellings_are_right() {
    let found = spellings("ee43ecdb-c295-4db2-8907-64c9f3f42f75");
    for expected in [
        &b"ee43ecdb-c295-4db2-8907-64c9f3f42f75"[..],
        b"65653433656364622d633239352d346462322d383930372d363463396633663432663735",
        b"ZWU0M2VjZGItYzI5NS00ZGIyLTg5MDctNjRjOWYzZjQyZjc1",
        b"EE43ECDBC2954DB2890764C9F3F42F75",
        b"7kPs28KVTbKJB2TJ8/Qv",
        &[0xee, 0x43, 0xec, 0xdb, 0xc2, 0x95, 0x4d, 0xb2, 0x89, 0x07, 0x64, 0xc9, 0xf3, 0xf4, 0x2f, 0x75],
    ] {
        assert!(found.iter().any(|spelling| spelling == expected), "{}", expected.escape_ascii());
    }
}
