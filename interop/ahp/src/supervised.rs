//! Our server, ready for an agent on one transport.

use a3s_ahp::{AhpClient, AuthConfig, Transport};

use crate::Way;
use crate::ours::Place;
use crate::process::Server;
use crate::wire::Wire;

/// Our server: `proctor serve`, or on standard input and output `proctor harness`.
#[derive(Debug)]
pub struct Supervised {
    /// Folders of the server.
    pub place: Place,
    way: Way,
    server: Option<Server>,
}

impl Supervised {
    /// Starts it with this policy.
    pub fn start(way: Way, policy: &str) -> Supervised {
        Supervised::start_in(way, Place::new(policy))
    }

    /// Starts the server in a prepared folder.
    pub fn start_in(way: Way, place: Place) -> Supervised {
        // Standard input and output belong to whoever starts the program.
        let server = (way != Way::Stdio).then(|| place.serve());
        Supervised { place, way, server }
    }

    fn said(&self, member: &str) -> &str {
        self.server.as_ref().expect("it serves a network transport").text(member)
    }

    /// Transport of the official client to this server.
    pub fn transport(&self, auth: Option<AuthConfig>) -> Transport {
        match self.way {
            Way::Stdio => {
                let (program, args) = self.place.harness();
                Transport::Stdio { program, args }
            }
            Way::Unix => Transport::UnixSocket { path: self.said("ahp_socket").to_owned() },
            Way::Http => Transport::Http { url: format!("http://{}/ahp", self.said("http")), auth },
            Way::WebSocket => {
                Transport::WebSocket { url: format!("ws://{}/ahp/ws", self.said("http")), auth }
            }
        }
    }

    /// The official client, connected and introduced.
    pub async fn client(&self) -> AhpClient {
        let client = AhpClient::new(self.transport(None)).await.unwrap();
        client.handshake(vec!["pre_action".to_owned()]).await.unwrap();
        client
    }

    /// A connection of nothing but bytes.
    pub async fn wire(&self) -> Wire {
        match self.way {
            Way::Stdio => {
                let (program, arguments) = self.place.harness();
                Wire::stdio(&program, &arguments)
            }
            Way::Unix => Wire::unix(self.said("ahp_socket")).await,
            Way::Http => Wire::http(self.said("http")).await,
            Way::WebSocket => Wire::websocket(&format!("ws://{}/ahp", self.said("http"))).await,
        }
    }

    /// Stops a server; one on standard input and output ends with its client.
    pub fn stop(self) -> Place {
        drop(self.server);
        self.place
    }
}
