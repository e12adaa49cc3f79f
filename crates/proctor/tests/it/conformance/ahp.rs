//! The Agent Harness Protocol: `proctor harness` and `proctor serve`.

mod connection;

use proctor_core::json::Json;

use super::case::{COMMAND, Case, Expectation, Grammar, Kind, Step};
use super::values::Values;
use super::{Cause, Problem, Runner, rpc};
use crate::ahp_serve::agent;
use crate::ahp_serve::server::Server;
use crate::support::Folder;
use connection::Connection;

pub const GRAMMAR: Grammar = Grammar {
    shared: &["policy", "settings"],
    actions: &["event", "notify", "request", "message", "text", COMMAND],
    options: &["id"],
    expectations: &[Kind::Result, Kind::Error, Kind::NoReply, Kind::Refusal],
    transports: &["stdio", "unix", "http", "websocket", "websocket-ws", "grpc"],
};

/// A runner for each transport: those of `proctor serve`, and `proctor harness`.
pub fn runners() -> Vec<Box<dyn Runner>> {
    let folder = Folder::with_policy("default: deny\n");
    let server = Server::start(&folder);
    let mut names: Vec<&'static str> = agent::all(&server).into_iter().map(|(name, _)| name).collect();
    names.push(connection::STDIO);
    for name in GRAMMAR.transports {
        assert!(names.contains(name), "`{name}` is a transport of cases and not of the binary");
    }
    names.into_iter().map(|name| Box::new(Ahp { name, opened: Vec::new() }) as Box<dyn Runner>).collect()
}

struct Ahp {
    name: &'static str,
    opened: Vec<Opened>,
}

/// A folder with a policy, and the server on it. `proctor harness` is started for each case.
struct Opened {
    policy: String,
    settings: String,
    server: Option<Server>,
    folder: Folder,
}

impl Runner for Ahp {
    fn transport(&self) -> &'static str {
        self.name
    }

    fn run(&mut self, case: &Case) -> Result<(), Problem> {
        let name = self.name;
        let opened = self.open(case);
        let mut session = Session {
            name,
            connection: Connection::open(name, &opened.folder, opened.server.as_ref()),
            folder: &opened.folder,
            values: Values::default(),
            sent: 0,
        };
        session.values.set("session", case.name.as_str());
        for step in &case.steps {
            session.step(step).map_err(|cause| Problem::Step { line: step.line, cause })?;
        }
        let unasked = session.connection.close();
        assert!(unasked.is_empty(), "replies that nothing waited for: {unasked:?}");
        Ok(())
    }
}

impl Ahp {
    /// The folder and the server of this policy; cases with the same one share them.
    fn open(&mut self, case: &Case) -> &Opened {
        let (policy, settings) = (case.shared_text("policy"), case.shared_text("settings"));
        let same = |opened: &Opened| opened.policy == policy && opened.settings == settings;
        let index = self.opened.iter().position(same).unwrap_or_else(|| {
            let folder = Folder::with_approver(policy);
            folder.write("proctor.toml", &format!("policy = \"policy.yaml\"\n{settings}"));
            let server = (self.name != connection::STDIO).then(|| Server::start(&folder));
            let (policy, settings) = (policy.to_owned(), settings.to_owned());
            self.opened.push(Opened { policy, settings, server, folder });
            self.opened.len() - 1
        });
        &self.opened[index]
    }
}

struct Session<'a> {
    name: &'static str,
    connection: Connection,
    folder: &'a Folder,
    values: Values,
    sent: usize,
}

impl Session<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Cause> {
        if step.action == COMMAND {
            return rpc::run_command(self.folder, step, &self.values);
        }
        let expected = step.expected(self.name).ok_or(Cause::Unusable("nothing is expected"))?;
        let sent = self.values.fill(&step.sent)?;
        self.sent += 1;
        let own = Json::from(format!("step-{}", self.sent));
        let (text, id) = match step.action {
            "event" => (rpc::request(&own, "ahp/event", &self.event(sent)?), Some(own)),
            "notify" => (rpc::notification("ahp/event", &self.event(sent)?), None),
            "request" => {
                let (method, params) = rpc::method_and_params(&sent)?;
                (rpc::request(&own, method, params), Some(own))
            }
            "message" => {
                let id = step.option("id").or_else(|| sent.get("id"));
                (sent.to_string(), id.cloned())
            }
            _ => {
                let text = sent.as_str().ok_or(Cause::Unusable("`text` is a text"))?;
                (text.to_owned(), Some(step.option("id").cloned().unwrap_or_default()))
            }
        };
        let reply = match (expected.kind, id) {
            (Kind::NoReply | Kind::Refusal, _) => self.connection.notify(&text),
            (_, Some(id)) => Some(self.connection.ask(&text, &id)),
            (_, None) => return Err(Cause::Unusable("a message without `id` has no reply")),
        };
        self.check(step, expected, reply)
    }

    fn check(&mut self, step: &Step, expected: &Expectation, reply: Option<Json>) -> Result<(), Cause> {
        match (expected.kind, reply) {
            (Kind::NoReply, None) => Ok(()),
            (Kind::NoReply, Some(reply)) => {
                Err(Cause::Answer { expected: "no reply", found: reply.to_string() })
            }
            // Streams stay silent; only calls with an answer of their own can say that a notification was refused.
            (Kind::Refusal, None) if !self.connection.answers_notifications() => Ok(()),
            (_, None) => Err(Cause::Answer { expected: "a reply", found: "none".to_owned() }),
            (_, Some(reply)) => {
                let part = rpc::check(expected, &reply, &self.values)?;
                self.values.keep(step, part)?;
                Ok(())
            }
        }
    }

    /// The params of an event, with the members that every event has, in the session of the case.
    fn event(&self, mut event: Json) -> Result<Json, Cause> {
        if event.as_object().is_none() {
            return Err(Cause::Unusable("an event is a mapping"));
        }
        let usual = [
            ("session_id", self.values.get("session")?.clone()),
            ("agent_id", Json::from("coder")),
            ("timestamp", Json::from("2026-06-02T09:15:00Z")),
            ("depth", Json::from(0u8)),
        ];
        for (name, value) in usual {
            if event.get(name).is_none() {
                event.push(name, value);
            }
        }
        Ok(event)
    }
}
