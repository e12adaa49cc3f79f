//! Credentials of callers: tokens, keys and certificates.

use std::path::Path;

use proctor_clients::ahp::client::{AuthConfig, ClientOptions, Transport};
use proctor_net::tls::ClientTls;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustix::process::Signal;

use crate::ahp_serve::agent::{self, connect, connect_with, grpc, http, websocket};
use crate::ahp_serve::server::{ANY_PORT, POLICY, Server, post, pre_action, records};
use crate::support::{Folder, text};

const CI: &str = "ci-zB7q-Kd93-PwX1-rMv0";
const BOT: &str = "bot-Jf20-vnQ8-sLk4-tYe6";
const OPS: &str = "ops-Ha55-wCx9-dGu3-oIn7";
const WRONG: &str = "wrong-Tr4e-mPz6-bVd2-uQs8";

fn folder_with_tokens() -> Folder {
    let folder = Folder::with_policy(POLICY);
    // Not beside the policy in the state directory: the test looks for them there.
    folder.write("ci.token", &format!("{CI}\n"));
    let digest = proctor_core::digest::Digest::of(BOT.as_bytes());
    let settings = format!(
        r#"policy = "policy.yaml"
[[token]]
name = "ci"
team = "release"
org = "acme"
file = "ci.token"
[[token]]
name = "bot"
sha256 = "{digest}"
"#
    );
    folder.write("proctor.toml", &settings);
    folder
}

/// A token that only the server's own environment holds: people who look at what it recorded do not have it.
#[test]
fn a_token_of_the_environment_is_wanted_by_the_server_alone() {
    let folder = Folder::with_policy(POLICY);
    folder
        .write("proctor.toml", "policy = \"policy.yaml\"\n[[token]]\nname = \"ops\"\nenv = \"OPS_TOKEN\"\n");
    let refused = folder.run(&ANY_PORT);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains("`OPS_TOKEN` is not set"), "{said}");
    let mut command = folder.command(&ANY_PORT);
    command.env("OPS_TOKEN", OPS);
    let server = Server::spawn(command);
    let headers = [("x-api-key", OPS)];
    let (status, answer) = post(server.http, "/ahp", &headers, pre_action("1", "s", "look").as_bytes());
    assert!(status == 200 && answer.contains("\"allow\""), "{status} {answer}");
    let (_, _, said) = server.end(Signal::TERM);
    let decisions = records(&folder, "decision");
    assert_eq!(text(&decisions[0], "principal"), "agent:ops", "{decisions:?}");
    assert_no_secret(&folder, &said, &[OPS]);
}

#[test]
fn a_token_says_who_calls_on_every_transport() {
    let folder = folder_with_tokens();
    let server = Server::start(&folder);
    let mut wanted = Vec::new();
    agent::run(async {
        for (owner, secret) in [("ci", CI), ("bot", BOT)] {
            let shown = [("bearer", AuthConfig::bearer(secret)), ("key", AuthConfig::api_key(secret))];
            for (kind, auth) in shown {
                let transports = [
                    ("http", http(&server, Some(auth.clone()))),
                    ("ws", websocket(&server, "/ahp", Some(auth.clone()))),
                    ("ws-url", websocket(&server, "/ahp/ws", Some(auth.clone().in_url()))),
                    ("grpc", grpc(&server, Some(auth))),
                ];
                for (transport, how) in transports {
                    let name = format!("{owner}-{kind}-{transport}");
                    let client = connect(how, &name).await.unwrap_or_else(|error| panic!("{name}: {error}"));
                    agent::ask(&client, "look").await;
                    client.close().await.unwrap();
                    wanted.push((name, format!("agent:{owner}")));
                }
            }
        }
    });
    for (name, query) in [("token", format!("token={CI}")), ("api_key", format!("x=1&api_key={CI}"))] {
        let body = pre_action("1", name, "look").replace("\"hand\"", &format!("\"{name}\""));
        let (status, answer) = post(server.http, &format!("/ahp?{query}"), &[], body.as_bytes());
        assert!(status == 200 && answer.contains("\"allow\""), "{status} {answer}");
        wanted.push((name.to_owned(), "agent:ci".to_owned()));
    }
    let (_, _, said) = server.end(Signal::TERM);
    let decisions = records(&folder, "decision");
    assert_eq!(decisions.len(), wanted.len());
    for (name, principal) in &wanted {
        let record = decisions.iter().find(|record| text(record, "agent") == name).unwrap();
        assert_eq!(text(record, "principal"), principal, "{record}");
        if principal == "agent:ci" {
            assert_eq!((text(record, "team"), text(record, "org")), ("release", "acme"), "{record}");
        }
    }
    assert_no_secret(&folder, &said, &[CI, BOT]);
}

#[test]
fn a_wrong_token_opens_nothing_and_leaves_no_trace() {
    let folder = folder_with_tokens();
    let server = Server::start(&folder);
    agent::run(async {
        let wrong = [
            Some(AuthConfig::bearer(WRONG)),
            Some(AuthConfig::api_key(WRONG)),
            Some(AuthConfig::bearer(&CI[..CI.len() - 1])),
            None,
        ];
        for auth in wrong {
            let transports = [
                http(&server, auth.clone()),
                websocket(&server, "/ahp", auth.clone()),
                websocket(&server, "/ahp", auth.clone().map(AuthConfig::in_url)),
                grpc(&server, auth.clone()),
            ];
            for transport in transports {
                let shown = format!("{transport:?}");
                let options = ClientOptions { reconnect: None, ..ClientOptions::default() };
                let refused = connect_with(transport, "intruder", options).await;
                let error = refused.map(|_| ()).expect_err(&shown).to_string();
                assert!(!error.contains(WRONG) && !error.contains(CI), "{error}");
            }
        }
    });
    for (path, headers) in [
        (format!("/ahp?token={WRONG}"), vec![]),
        ("/ahp".to_owned(), vec![("authorization", "Basic Y2k6eA==")]),
        // A header counts before a parameter, and a secret that is there twice counts for nothing.
        (format!("/ahp?token={CI}"), vec![("authorization", "Bearer wrong-Tr4e-mPz6-bVd2-uQs8")]),
        ("/ahp".to_owned(), vec![("x-api-key", WRONG), ("x-api-key", CI)]),
    ] {
        let (status, answer) = post(server.http, &path, &headers, pre_action("1", "s", "look").as_bytes());
        assert!(matches!(status, 400 | 401 | 403), "{path} {headers:?}: {status} {answer}");
    }
    let (_, _, said) = server.end(Signal::TERM);
    for record in records(&folder, "") {
        assert!(!text(&record, "principal").starts_with("agent:"), "{record}");
        assert!(text(&record, "agent") != "intruder" && text(&record, "agent") != "hand", "{record}");
    }
    assert_no_secret(&folder, &said, &[CI, BOT, WRONG]);
}

/// No file of the state directory, and nothing that was said, holds one of these.
fn assert_no_secret(folder: &Folder, said: &str, secrets: &[&str]) {
    fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, found);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    files(&folder.state(), &mut found);
    assert!(found.len() > 2, "{found:?}");
    for secret in secrets {
        assert!(!said.contains(secret), "stderr holds a secret");
        for file in &found {
            let bytes = std::fs::read(file).unwrap();
            let holds = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!holds, "{} holds a secret", file.display());
        }
    }
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate and its key, as PEM text.
    fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

#[test]
fn a_client_certificate_says_who_calls_on_every_transport() {
    let folder = Folder::with_policy(POLICY);
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let (certificate, key) = ours.issue("127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth);
    folder.write("server.pem", &certificate);
    folder.write("server.key", &key);
    folder.write("ca.pem", &ours.0.pem());
    let tls = "[tls]\ncertificate = \"server.pem\"\nkey = \"server.key\"\nclient_ca = \"ca.pem\"\n";
    folder.write("proctor.toml", &format!("policy = \"policy.yaml\"\n{tls}"));
    let server = Server::start(&folder);
    let transports = |server: &Server| {
        [
            Transport::Http { url: format!("https://{}/ahp", server.http), auth: None },
            Transport::WebSocket { url: format!("wss://{}/ahp", server.http), auth: None },
            Transport::Grpc { url: format!("https://{}", server.grpc), auth: None },
        ]
    };
    let builder = ours.issue("builder.example", ExtendedKeyUsagePurpose::ClientAuth);
    let stranger = other.issue("builder.example", ExtendedKeyUsagePurpose::ClientAuth);
    let options = |shown: Option<&(String, String)>| {
        let tls = ClientTls::default().with_authority(ours.0.pem());
        let tls = match shown {
            Some((certificate, key)) => tls.with_certificate(certificate.as_bytes(), key.as_bytes()),
            None => tls,
        };
        ClientOptions { tls, reconnect: None, ..ClientOptions::default() }
    };
    agent::run(async {
        for transport in transports(&server) {
            let client = connect_with(transport, "honest", options(Some(&builder))).await.unwrap();
            agent::ask(&client, "look").await;
            client.close().await.unwrap();
        }
        for shown in [None, Some(&stranger)] {
            for transport in transports(&server) {
                let what = format!("{transport:?}");
                assert!(connect_with(transport, "stranger", options(shown)).await.is_err(), "{what}");
            }
        }
        // A client that does not trust this server does not talk to it.
        let wary = ClientOptions {
            tls: ClientTls::default()
                .with_authority(other.0.pem())
                .with_certificate(builder.0.as_bytes(), builder.1.as_bytes()),
            reconnect: None,
            ..ClientOptions::default()
        };
        for transport in transports(&server) {
            assert!(connect_with(transport, "wary", wary.clone()).await.is_err());
        }
        // Nor does plain text get through.
        assert!(connect(http(&server, None), "plain").await.is_err());
    });
    server.stop();
    let decisions = records(&folder, "decision");
    assert_eq!(decisions.len(), 3);
    for record in records(&folder, "").iter().filter(|record| !text(record, "agent").is_empty()) {
        assert_eq!(
            (text(record, "agent"), text(record, "principal")),
            ("honest", "cert:builder.example"),
            "{record}"
        );
    }
}
