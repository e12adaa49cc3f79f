//! Agent Assembly: `proctor serve`, on its gRPC port and on its Unix socket.

use std::collections::BTreeMap;

use proctor_clients::assembly::client::Identity;
use proctor_core::digest::Digest;
use proctor_core::json::Json;
use tonic::Status;

use super::calls::{Connection, code_name};
use super::case::{COMMAND, Case, Grammar, Kind, Step};
use super::matcher::compare;
use super::values::Values;
use super::{Cause, Problem, Runner, proto, rpc};
use crate::ahp_serve::server::Server;
use crate::support::{Folder, text};

pub const GRAMMAR: Grammar = Grammar {
    shared: &["policy", "settings", "agents"],
    actions: &["register", "call", "check", COMMAND],
    options: &["as", "message", "messages", "metadata"],
    expectations: &[Kind::Result, Kind::Error],
    transports: &[],
};

/// Name and token of the person who may decide approvals.
const APPROVER: (&str, &str) = ("approver", "approver-Lk38-vQe1-zRt6-yUo4");

/// A runner for each transport.
pub fn runners() -> Vec<Box<dyn Runner>> {
    vec![
        Box::new(Assembly { name: "grpc", opened: Vec::new() }),
        Box::new(Assembly { name: "unix", opened: Vec::new() }),
    ]
}

struct Assembly {
    name: &'static str,
    opened: Vec<Opened>,
}

struct Opened {
    policy: String,
    settings: String,
    connection: Connection,
    _server: Server,
    folder: Folder,
}

impl Runner for Assembly {
    fn transport(&self) -> &'static str {
        self.name
    }

    fn run(&mut self, case: &Case) -> Result<(), Problem> {
        let opened = self.open(case);
        let mut session = Session {
            connection: &opened.connection,
            folder: &opened.folder,
            values: Values::default(),
            identities: BTreeMap::new(),
        };
        session.values.set(&format!("{}.token", APPROVER.0), APPROVER.1);
        let names = case.shared("agents").and_then(Json::as_array).unwrap_or_default();
        for name in names.iter().filter_map(Json::as_str) {
            session.introduce(name, &case.name);
        }
        for step in &case.steps {
            session.step(step).map_err(|cause| Problem::Step { line: step.line, cause })?;
        }
        Ok(())
    }
}

impl Assembly {
    /// The server of this policy; cases with the same one share it.
    fn open(&mut self, case: &Case) -> &Opened {
        let (policy, settings) = (case.shared_text("policy"), case.shared_text("settings"));
        let same = |opened: &Opened| opened.policy == policy && opened.settings == settings;
        let index = self.opened.iter().position(same).unwrap_or_else(|| {
            let folder = Folder::with_approver(policy);
            let digest = Digest::of(APPROVER.1.as_bytes());
            let token =
                format!("[[token]]\nname = \"{}\"\napprover = true\nsha256 = \"{digest}\"\n", APPROVER.0);
            folder.write("proctor.toml", &format!("policy = \"policy.yaml\"\n{settings}\n{token}"));
            let server = Server::start(&folder);
            let endpoint = match self.name {
                "unix" => format!("unix:{}", text(&server.announced, "assembly_socket")),
                _ => format!("http://{}", server.grpc),
            };
            let connection = Connection::open(&endpoint);
            let (policy, settings) = (policy.to_owned(), settings.to_owned());
            self.opened.push(Opened { policy, settings, connection, _server: server, folder });
            self.opened.len() - 1
        });
        &self.opened[index]
    }
}

struct Session<'a> {
    connection: &'a Connection,
    folder: &'a Folder,
    values: Values,
    identities: BTreeMap<String, Identity>,
}

/// Messages of an answer, or its status.
type Answer = Result<Vec<Json>, Status>;

impl Session<'_> {
    /// Gives an agent of the case its key. It is another one in each case, since cases share a server.
    fn introduce(&mut self, name: &str, case: &str) {
        let seed = Digest::of(format!("{case}/{name}").as_bytes());
        let identity = Identity::generate(*seed.as_bytes());
        self.values.set(&format!("{name}.did"), identity.did());
        self.values.set(&format!("{name}.key"), identity.public_key());
        self.values.set(&format!("{name}.id"), Json::object().with("agent_id", identity.did()));
        self.identities.insert(name.to_owned(), identity);
    }

    fn step(&mut self, step: &Step) -> Result<(), Cause> {
        let sent = self.values.fill(&step.sent)?;
        let expected = match step.action {
            COMMAND => return rpc::run_command(self.folder, step, &self.values),
            _ => step.expected("").ok_or(Cause::Unusable("nothing is expected"))?,
        };
        let pattern = self.values.fill(&expected.pattern)?;
        let mut is_stream = false;
        let answer = match step.action {
            "register" => self.register(step, sent.as_str().unwrap_or_default())?,
            "check" => {
                let request = self.with_token(step, sent)?;
                self.call("PolicyService/CheckAction", &[request], &[], 1)?
            }
            _ => {
                let name = sent.as_str().unwrap_or_default();
                is_stream = proto::method(name)?.is_server_streaming();
                let wanted = if is_stream { pattern.as_array().map_or(1, <[Json]>::len) } else { 1 };
                self.call(name, &self.messages(step)?, &self.metadata(step)?, wanted)?
            }
        };
        let part = match (expected.kind, answer) {
            (Kind::Result, Ok(messages)) if is_stream => Json::Array(messages),
            (Kind::Result, Ok(messages)) => messages
                .into_iter()
                .next()
                .ok_or(Cause::Answer { expected: "a message", found: "the end of the call".to_owned() })?,
            (Kind::Error, Err(status)) => {
                Json::object().with("code", code_name(status.code())).with("message", status.message())
            }
            (_, Err(status)) => {
                return Err(Cause::Answer { expected: "a message", found: status.to_string() });
            }
            (_, Ok(messages)) => {
                return Err(Cause::Answer { expected: "a status", found: Json::Array(messages).to_string() });
            }
        };
        compare(&pattern, &part)?;
        self.values.keep(step, &part)?;
        Ok(())
    }

    fn call(
        &self,
        name: &str,
        messages: &[Json],
        metadata: &[(String, String)],
        wanted: usize,
    ) -> Result<Answer, Cause> {
        Ok(self.connection.call(&proto::method(name)?, messages, metadata, wanted)?)
    }

    /// Registers with a proof: a challenge, its signature, and the request with both.
    fn register(&mut self, step: &Step, name: &str) -> Result<Answer, Cause> {
        let mut request = match step.option("message") {
            Some(message) => self.values.fill(message)?,
            None => Json::object(),
        };
        let identity = self.identities.get(name).ok_or(Cause::Unusable("the agent is not in `agents`"))?;
        let mut id = request.get("agent_id").cloned().unwrap_or_else(Json::object);
        id.push("agent_id", identity.did());
        let asked = Json::object().with("agent_id", id.clone()).with("public_key", identity.public_key());
        let challenge = match self.call("AgentLifecycleService/RequestChallenge", &[asked], &[], 1)? {
            Ok(messages) => messages.into_iter().next().unwrap_or_default(),
            Err(status) => return Ok(Err(status)),
        };
        let nonce = text(&challenge, "nonce").to_owned();
        let signed: [u8; 32] = proto::bytes(&nonce).and_then(|nonce| nonce.try_into().ok()).unwrap();
        let proof = proto::bytes_text(&identity.prove(&signed));
        if !request.set_pointer("/agent_id", id.clone()) {
            request.push("agent_id", id.clone());
        }
        let request = request
            .with("public_key", identity.public_key())
            .with("possession_proof", proof.as_str())
            .with("registration_nonce", nonce.as_str());
        let answer = self.call("AgentLifecycleService/Register", &[request], &[], 1)?;
        self.values.set(&format!("{name}.nonce"), nonce);
        self.values.set(&format!("{name}.proof"), proof);
        if let Ok([response]) = answer.as_deref() {
            self.values.set(&format!("{name}.token"), text(response, "credential_token"));
            self.values.set(&format!("{name}.id"), id);
        }
        Ok(answer)
    }

    /// A request with the id and the token of the agent that the step names, unless it has its own.
    fn with_token(&self, step: &Step, mut request: Json) -> Result<Json, Cause> {
        if let Some(name) = step.option("as").and_then(Json::as_str) {
            for (member, value) in [("agent_id", "id"), ("credential_token", "token")] {
                if request.get(member).is_none() {
                    request.push(member, self.values.get(&format!("{name}.{value}"))?.clone());
                }
            }
        }
        Ok(request)
    }

    fn messages(&self, step: &Step) -> Result<Vec<Json>, Cause> {
        match (step.option("message"), step.option("messages")) {
            (Some(message), None) => Ok(vec![self.values.fill(message)?]),
            (None, Some(messages)) => match self.values.fill(messages)? {
                Json::Array(messages) => Ok(messages),
                _ => Err(Cause::Unusable("`messages` is a list")),
            },
            _ => Err(Cause::Unusable("a call has `message` or `messages`")),
        }
    }

    /// The metadata of a call: the token of the one that the step names, and its own.
    fn metadata(&self, step: &Step) -> Result<Vec<(String, String)>, Cause> {
        let mut metadata = Vec::new();
        if let Some(name) = step.option("as").and_then(Json::as_str) {
            let token = self.values.text(&format!("{name}.token"))?;
            metadata.push(("x-aa-credential-token".to_owned(), token));
        }
        if let Some(own) = step.option("metadata") {
            let own = self.values.fill(own)?;
            let members = own.as_object().ok_or(Cause::Unusable("`metadata` is a mapping"))?;
            let texts = members.iter().map(|(name, value)| {
                let value = value.as_str().ok_or(Cause::Unusable("metadata is text"))?;
                Ok((name.clone(), value.to_owned()))
            });
            metadata.extend(texts.collect::<Result<Vec<_>, Cause>>()?);
        }
        Ok(metadata)
    }
}
