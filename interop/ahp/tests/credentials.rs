//! The official client's credentials, against our released binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use a3s_ahp::{AhpClient, AuthConfig, Decision, EventType};
use interop_ahp::Way;
use interop_ahp::ours::Place;
use interop_ahp::policies::OPEN;
use interop_ahp::samples::payload;
use interop_ahp::supervised::Supervised;

const SECRET: &str = "a secret+with/odd=characters&more-than-32-bytes";

fn start(way: Way) -> Supervised {
    let place = Place::new(OPEN);
    let file = place.path().join("home/token");
    std::fs::write(&file, SECRET).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let settings = format!("[[token]]\nname = \"bot\"\nfile = {:?}\n", file.to_str().unwrap());
    std::fs::write(place.workspace().join("proctor.toml"), settings).unwrap();
    Supervised::start_in(way, place)
}

async fn decides(ours: &Supervised, auth: Option<AuthConfig>) -> Result<Decision, a3s_ahp::AhpError> {
    let client = AhpClient::new(ours.transport(auth)).await?;
    client.handshake(Vec::new()).await?;
    client.send_event_decision(EventType::PreAction, payload("pre_action")).await
}

async fn tokens_and_keys_open_the_door_and_nothing_else_does(way: Way) {
    let ours = start(way);
    for auth in [AuthConfig::bearer(SECRET), AuthConfig::api_key(SECRET)] {
        let decision = decides(&ours, Some(auth)).await.unwrap();
        assert!(matches!(decision, Decision::Allow { .. }), "{decision:?}");
    }
    let refused =
        [None, Some(AuthConfig::none()), Some(AuthConfig::bearer("wrong")), Some(AuthConfig::api_key(""))];
    for auth in refused {
        let refusal = decides(&ours, auth).await.unwrap_err().to_string();
        assert!(refusal.contains("401"), "{refusal}");
        assert!(!refusal.contains(SECRET));
    }
    let place = ours.stop();
    let records = place.run_json(&["audit", "tail", "-n", "200", "--principal", "agent:bot"]);
    assert!(records.iter().any(|record| record["kind"] == "decision"), "{records:#?}");
}

#[tokio::test]
async fn over_http() {
    tokens_and_keys_open_the_door_and_nothing_else_does(Way::Http).await;
}

#[tokio::test]
async fn over_websocket() {
    tokens_and_keys_open_the_door_and_nothing_else_does(Way::WebSocket).await;
}
