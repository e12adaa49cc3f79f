//! Attest: each case is one session with an engine on stdin and stdout.

use proctor_core::json::Json;
use serde_json::{Value, json};

use super::case::{Case, Grammar, Kind, Step};
use super::values::Values;
use super::{Cause, Problem, Runner, rpc};
use crate::attest_hostile::vendor::{Vendor, said};
use crate::support::attest::{Engine, Place};

pub const GRAMMAR: Grammar = Grammar {
    shared: &["trace", "initialize", "environment", "model"],
    actions: &["request", "assert", "text"],
    options: &["id"],
    expectations: &[Kind::Result, Kind::Error, Kind::Verdict],
    transports: &[],
};

/// One runner: the protocol has one transport.
pub fn runners() -> Vec<Box<dyn Runner>> {
    vec![Box::new(Stdio)]
}

struct Stdio;

impl Runner for Stdio {
    fn transport(&self) -> &'static str {
        "stdio"
    }

    fn run(&mut self, case: &Case) -> Result<(), Problem> {
        let place = Place::new();
        let environment = case.shared("environment").and_then(Json::as_object).unwrap_or_default();
        let mut variables: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
        let url = case.shared("model").and_then(Json::as_str).map(|says| vendor(says).url());
        if let Some(url) = &url {
            variables.extend([("ATTEST_JUDGE_BASE_URL", url.as_str()), ("ATTEST_EMBEDDING_BASE_URL", url)]);
        }
        let mut engine = place.start(&variables);
        if case.shared("initialize") != Some(&Json::Bool(false)) {
            engine.initialize();
        }
        let mut session = Session { engine, values: Values::default(), trace: case.shared("trace") };
        for step in &case.steps {
            session.step(step).map_err(|cause| Problem::Step { line: step.line, cause })?;
        }
        let (code, said) = session.engine.close();
        assert_eq!(code, 0, "the engine ends with its input: {said}");
        Ok(())
    }
}

struct Session<'a> {
    engine: Engine,
    values: Values,
    trace: Option<&'a Json>,
}

impl Session<'_> {
    fn step(&mut self, step: &Step) -> Result<(), Cause> {
        let sent = self.values.fill(&step.sent)?;
        let reply = match step.action {
            "request" => {
                let (method, params) = rpc::method_and_params(&sent)?;
                Json::from(self.engine.ask(method, &value(params)))
            }
            "assert" => {
                let assertion = sent.with("assertion_id", "the assertion");
                let trace = self.trace.ok_or(Cause::Unusable("`assert` needs a `trace`"))?;
                let params = Json::object()
                    .with("trace", self.values.fill(trace)?)
                    .with("assertions", vec![assertion]);
                Json::from(self.engine.ask("evaluate_batch", &value(&params)))
            }
            _ => {
                let text = sent.as_str().ok_or(Cause::Unusable("`text` is a text"))?;
                let reply = Json::from(self.engine.exchange(text));
                let id = step.option("id").cloned().unwrap_or_else(|| Json::from(0u8));
                if reply.get("id") != Some(&id) {
                    return Err(Cause::Answer {
                        expected: "a reply with that `id`",
                        found: reply.to_string(),
                    });
                }
                reply
            }
        };
        let expected = step.expected("stdio").ok_or(Cause::Unusable("nothing is expected"))?;
        let expected = match expected.kind {
            Kind::Verdict => {
                let results = Json::object().with("results", vec![expected.pattern.clone()]);
                super::case::Expectation { kind: Kind::Result, pattern: results }
            }
            _ => expected.clone(),
        };
        let part = rpc::check(&expected, &reply, &self.values)?;
        self.values.keep(step, part)?;
        Ok(())
    }
}

/// A vendor whose chat model says always the same. The vector of a text counts its letters.
fn vendor(says: &str) -> Vendor {
    let says = says.to_owned();
    Vendor::start(move |asked| {
        if !asked.path.ends_with("/embeddings") {
            return said(&says);
        }
        let texts = match &asked.body["input"] {
            Value::Array(texts) => texts.clone(),
            text => vec![text.clone()],
        };
        let data: Vec<Value> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| json!({"index": index, "object": "embedding", "embedding": letters(text)}))
            .collect();
        let usage = json!({"prompt_tokens": 1, "total_tokens": 1});
        (200, json!({"data": data, "model": "m", "usage": usage}).to_string())
    })
}

fn letters(text: &Value) -> Vec<usize> {
    let text = text.as_str().unwrap_or_default();
    ('a'..='z').map(|letter| text.matches(letter).count()).collect()
}

fn value(json: &Json) -> Value {
    serde_json::from_str(&json.to_string()).unwrap()
}
