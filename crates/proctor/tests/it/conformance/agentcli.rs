//! agentcli: lines on stdin and stdout of `agentcli serve`.

use proctor_core::json::Json;

use super::case::{Case, Grammar, Kind, Step};
use super::values::Values;
use super::{Cause, Problem, Runner, rpc};
use crate::agentcli::place::{Place, Server};

pub const GRAMMAR: Grammar = Grammar {
    shared: &["environment", "files"],
    actions: &["request", "notify", "text"],
    options: &["id"],
    expectations: &[Kind::Result, Kind::Error, Kind::NoReply],
    transports: &[],
};

/// One runner: the protocol has one transport.
pub fn runners() -> Vec<Box<dyn Runner>> {
    vec![Box::new(Stdio { plain: None })]
}

struct Stdio {
    /// Server of all cases without an environment or files of their own: the protocol has no state between lines.
    plain: Option<(Place, Server)>,
}

impl Runner for Stdio {
    fn transport(&self) -> &'static str {
        "stdio"
    }

    fn run(&mut self, case: &Case) -> Result<(), Problem> {
        let members = |key: &str| case.shared(key).and_then(Json::as_object).unwrap_or_default();
        let (environment, files) = (members("environment"), members("files"));
        if environment.is_empty() && files.is_empty() {
            let (place, server) = self.plain.take().unwrap_or_else(|| {
                let place = Place::new();
                let server = place.serve();
                (place, server)
            });
            let (place, server) = steps(case, place, server)?;
            self.plain = Some((place, server));
            return Ok(());
        }
        let mut place = Place::new();
        for (name, value) in environment {
            place.set(name, value.as_str().unwrap());
        }
        for (name, text) in files {
            std::fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
            place.write(name, text.as_str().unwrap());
        }
        let server = place.serve();
        let (_, server) = steps(case, place, server)?;
        server.end();
        Ok(())
    }
}

/// Runs the steps. A server whose case failed is not used again.
fn steps(case: &Case, place: Place, mut server: Server) -> Result<(Place, Server), Problem> {
    let mut values = Values::default();
    values.set("folder", place.root().display().to_string());
    for step in &case.steps {
        self::step(&mut server, &mut values, step)
            .map_err(|cause| Problem::Step { line: step.line, cause })?;
    }
    Ok((place, server))
}

fn step(server: &mut Server, values: &mut Values, step: &Step) -> Result<(), Cause> {
    let sent = values.fill(&step.sent)?;
    let id = Json::from("the request");
    let (line, id) = match step.action {
        "text" => {
            let text = sent.as_str().ok_or(Cause::Unusable("`text` is a text"))?;
            (text.to_owned(), step.option("id").cloned().unwrap_or_default())
        }
        "notify" => {
            let (method, params) = rpc::method_and_params(&sent)?;
            (rpc::notification(method, params), Json::Null)
        }
        _ => {
            let (method, params) = rpc::method_and_params(&sent)?;
            (rpc::request(&id, method, params), id)
        }
    };
    let expected = step.expected("stdio").ok_or(Cause::Unusable("nothing is expected"))?;
    server.send(&line);
    if expected.kind == Kind::NoReply {
        // Lines are answered one after the other: the next answer is that of the next question.
        let next = server.ask(r#"{"jsonrpc":"2.0","id":"next","method":"agentcli.ping"}"#);
        return match next.get("id").and_then(Json::as_str) {
            Some("next") => Ok(()),
            _ => Err(Cause::Answer { expected: "no reply", found: next.to_string() }),
        };
    }
    let reply =
        Json::parse(server.line().as_bytes()).map_err(|_| Cause::Unusable("the reply is not JSON"))?;
    if reply.get("id") != Some(&id) {
        return Err(Cause::Answer { expected: "a reply with that `id`", found: reply.to_string() });
    }
    let part = rpc::check(expected, &reply, values)?;
    values.keep(step, part)?;
    Ok(())
}
