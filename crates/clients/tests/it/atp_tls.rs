//! `https`, `wss` and `grpcs` agents: a private authority is trusted, any other is not.

use std::sync::Arc;

use proctor_clients::atp::agent::{Agent, AgentServer, Events, grpc, http, websocket};
use proctor_clients::atp::client::{AgentClient, ClientOptions, ConnectError, ExecuteError};
use proctor_core::time::{ManualClock, Timestamp};
use proctor_net::auth::Credentials;
use proctor_net::listen::ListenOptions;
use proctor_net::tls::{ClientTls, ServerTls};
use proctor_wire::atp::{Request, Response, Status};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::support::atp::{REQUEST, transcript};
use crate::support::port::Running;

struct Silent;

impl Agent for Silent {
    async fn execute(&self, request: Request, _events: Events) -> Response {
        Response::new(request.task_id(), Status::Completed)
    }
}

/// The PEM text of an authority, and the settings of a server that it vouches for.
fn authority() -> (String, ServerTls) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let server =
        ServerTls::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes(), None).unwrap();
    (authority.pem(), server)
}

#[tokio::test]
async fn agents_with_a_certificate_of_the_named_authority_are_reached() {
    let (pem, server_tls) = authority();
    let (other, _) = authority();
    for scheme in ["https", "wss", "grpcs"] {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(0)));
        let server = AgentServer::new(Silent, clock);
        let local = Arc::new(Credentials::none());
        let app = match scheme {
            "https" => http::router(server, local),
            "wss" => websocket::router(server, local),
            _ => grpc::routes(server, local),
        };
        let options = ListenOptions { tls: Some(server_tls.clone()), ..ListenOptions::default() };
        let running = Running::start(app, options).await;
        let url = format!("{scheme}://localhost:{}", running.address.port());
        let ask = async |tls: ClientTls| {
            let options = ClientOptions { tls, ..ClientOptions::default() };
            transcript(AgentClient::new(&url, &options).unwrap().execute(REQUEST.into())).await
        };
        let got = ask(ClientTls::default().with_authority(pem.clone())).await;
        assert_eq!(got.texts().len(), 1, "{scheme}");
        for tls in [ClientTls::default(), ClientTls::default().with_authority(other.clone())] {
            let error = ask(tls).await.error();
            let is_refused = matches!(&error, ExecuteError::Connect(ConnectError::Failed(reason)) if reason.contains("certificate"));
            assert!(is_refused, "{scheme}: {error:?}");
        }
        running.stop().await;
    }
}
