//! Rego modules: `data.proctor.decision` over the record gives `{effect, id, reason}`, or a set or array of such objects.
//!
//! Undefined is no opinion. Everything else that is not such an object, an error of evaluation included, is a deny: a rule that
//! could not be evaluated may have been the one that forbids. A module that reads the clock, draws random numbers, prints, or
//! builds ranges without bound is refused at load; execution is bounded by a number of instructions, not by time, so that it
//! ends the same way everywhere.
//!
//! Each evaluation runs twice. The engine's virtual machine counts instructions, but treats a rule that failed, or two rules
//! that contradict each other, as undefined, which would be no opinion; its interpreter reports both, but has no bound other
//! than time. So the machine goes first, as the bound, and the interpreter's answer counts.

mod query;

use std::collections::BTreeMap;
use std::sync::Arc;

use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::program::Program;
use regorus::rvm::vm::RegoVM;
use regorus::{CompiledPolicy, Value};

use proctor_core::decision::Effect;
use proctor_core::json::Json;

use super::bounds::{self, Syntax};
use super::record::{self, MemberValue};
use super::{Engine, ModuleProblem, Opinion, is_rule_id, truncate};
use crate::condition::CallingAgent;
use crate::input::Input;
use crate::question::AnswerSource;

pub use query::{QueryFailure, RegoQuery};

/// Most instructions that one evaluation may take.
pub const MAX_INSTRUCTIONS: usize = 250_000;

const ENTRY: &str = "data.proctor.decision";

const SYNTAX: Syntax = Syntax { comment: "#", raw_quote: Some('`'), statement_end: '\n' };

/// Functions that a policy may not use, and why.
const REFUSED: [(&str, &str); 13] = [
    ("time.now_ns", "reads the clock; use `input.time.now`"),
    ("rand.intn", "draws random numbers"),
    ("uuid.rfc4122", "draws random numbers"),
    ("opa.runtime", "reads the environment"),
    ("http.send", "uses the network"),
    ("net.lookup_ip_addr", "uses the network"),
    ("rego.parse_module", "reads other programs"),
    ("io.jwt.decode_verify", "reads the clock"),
    ("test.sleep", "waits"),
    ("trace", "writes notes that nobody reads"),
    ("print", "writes to the standard error"),
    ("numbers.range", "can build a list without bound"),
    ("numbers.range_step", "can build a list without bound"),
];

/// A Rego module, compiled once.
pub struct RegoModule {
    program: Arc<Program>,
    policy: CompiledPolicy,
}

impl std::fmt::Debug for RegoModule {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RegoModule").finish_non_exhaustive()
    }
}

impl RegoModule {
    /// Compiles a module of the package `proctor`.
    pub fn compile(file: &str, text: &str) -> Result<RegoModule, Vec<ModuleProblem>> {
        let (program, policy) = compile_checked(file, text, ENTRY, Some("proctor"))?;
        Ok(RegoModule { program, policy })
    }
}

/// Compiles a module with one entry point, and refuses functions that decisions cannot depend on.
fn compile_checked(
    file: &str,
    text: &str,
    entry: &str,
    package: Option<&str>,
) -> Result<(Arc<Program>, CompiledPolicy), Vec<ModuleProblem>> {
    bounds::check(file, text, &SYNTAX).map_err(|problem| vec![problem])?;
    let refused = refused_functions(file, text);
    if !refused.is_empty() {
        return Err(refused);
    }
    let (program, policy) = compile(file, text, entry, package)
        .map_err(|error| vec![problem_of(file, text, &error.to_string())])?;
    // The compiler knows every function that is called, however its name was written.
    for builtin in &program.builtin_info_table {
        if let Some((name, why)) = REFUSED.iter().find(|(name, _)| *name == builtin.name) {
            let message = format!("`{name}` {why}: decisions have to be derivable again");
            return Err(vec![ModuleProblem::at(file, text, 0, message)]);
        }
    }
    Ok((program, policy))
}

/// Runs a program for its number of instructions alone.
fn measure(program: &Arc<Program>, entry: &str, input: Value) -> Result<(), regorus::rvm::vm::VmError> {
    let mut machine = RegoVM::new();
    machine.load_program(Arc::clone(program));
    machine.set_max_instructions(MAX_INSTRUCTIONS);
    machine.set_input(input);
    machine.set_data(Value::new_object())?;
    machine.execute_entry_point_by_name(entry).map(drop)
}

impl Engine for RegoModule {
    fn evaluate(&self, input: &Input, answers: &dyn AnswerSource) -> Vec<Opinion> {
        let value = input_value(input, answers);
        if let Err(error) = measure(&self.program, ENTRY, value.clone()) {
            return vec![refusal(&format!("the module could not be evaluated: {error}"))];
        }
        let result = self.policy.eval_with_input(value);
        match result {
            Ok(Value::Undefined) => Vec::new(),
            Ok(Value::Set(items)) => items.iter().map(opinion).collect(),
            Ok(Value::Array(items)) => items.iter().map(opinion).collect(),
            Ok(value) => vec![opinion(&value)],
            Err(error) => vec![refusal(&format!(
                "the module could not be evaluated: {}",
                reason_of(&format!("{error:#}"))
            ))],
        }
    }
}

/// A module that does not compile.
#[derive(Debug, thiserror::Error)]
enum RegoError {
    /// The engine's message, with its chain of causes.
    #[error("{0}")]
    Engine(String),
    #[error("the package is `{found}`, and has to be `{expected}`")]
    Package { found: String, expected: String },
    #[error("the module has no rule `{0}`")]
    NoRule(String),
}

fn engine_error(error: impl std::fmt::Display) -> RegoError {
    RegoError::Engine(format!("{error:#}"))
}

fn compile(
    file: &str,
    text: &str,
    entry: &str,
    package: Option<&str>,
) -> Result<(Arc<Program>, CompiledPolicy), RegoError> {
    let mut engine = regorus::Engine::new();
    // In OPA's lenient mode an error in a function makes a rule undefined, and a deny rule would say nothing.
    engine.set_strict_builtin_errors(true);
    let found = engine.add_policy(file.to_owned(), text.to_owned()).map_err(engine_error)?;
    let found = found.trim_start_matches("data.");
    if let Some(expected) = package.filter(|expected| *expected != found) {
        return Err(RegoError::Package { found: found.to_owned(), expected: expected.to_owned() });
    }
    let rule = entry.rsplit('.').next().unwrap_or(entry);
    let entry_point: regorus::Rc<str> = entry.into();
    let policy = engine.compile_with_entrypoint(&entry_point).map_err(|error| {
        // The engine has no error type: a missing rule is known by its text alone.
        match engine_error(error) {
            RegoError::Engine(text)
                if text.contains("not a valid rule path") || text.contains("not found") =>
            {
                RegoError::NoRule(rule.to_owned())
            }
            other => other,
        }
    })?;
    let program = Compiler::compile_from_policy(&policy, &[entry]).map_err(engine_error)?;
    Ok((program, policy))
}

/// Uses of refused functions in the text, with their positions.
fn refused_functions(file: &str, text: &str) -> Vec<ModuleProblem> {
    let words: Vec<(usize, &str)> = bounds::code(text, &SYNTAX).collect();
    let mut problems = Vec::new();
    for (place, (offset, _)) in words.iter().enumerate() {
        let after_dot = place > 0 && words.get(place - 1).is_some_and(|(_, word)| *word == ".");
        if after_dot {
            continue;
        }
        for (name, why) in REFUSED {
            let mut parts = name.split('.').flat_map(|part| [".", part]).skip(1);
            let mut following = words.iter().skip(place).map(|(_, word)| *word);
            let matches = parts.by_ref().all(|part| following.next() == Some(part));
            if matches && following.next() == Some("(") {
                let message = format!("`{name}` {why}: decisions have to be derivable again");
                problems.push(ModuleProblem::at(file, text, *offset, message));
            }
        }
    }
    problems
}

/// The compiler's message, with the position taken out of it.
fn problem_of(file: &str, text: &str, error: &str) -> ModuleProblem {
    let place = error.split_once(&format!("--> {file}:")).and_then(|(_, rest)| {
        let mut numbers = rest.lines().next()?.splitn(2, ':');
        Some((numbers.next()?.trim().parse().ok()?, numbers.next()?.trim().parse().ok()?))
    });
    let message = reason_of(error);
    let (line, column) = place.unwrap_or((1, 1));
    let mut problem = ModuleProblem::at(file, text, 0, truncate(message));
    (problem.line, problem.column) = (line, column);
    problem
}

/// The last line of a message, which says what was wrong.
fn reason_of(error: &str) -> &str {
    error.rsplit_once("error: ").map_or(error, |(_, message)| message).trim()
}

/// Reads one object of the result.
fn opinion(value: &Value) -> Opinion {
    let Value::Object(members) = value else {
        return refusal("the module's decision is not an object with `effect`, `id` and `reason`");
    };
    let mut opinion = Opinion { effect: Effect::Deny, rule: "rego".to_owned(), reason: String::new() };
    let mut effect = None;
    for (name, value) in members.iter() {
        match (name, value) {
            (Value::String(name), Value::String(word)) if &**name == "effect" => match &**word {
                "allow" => effect = Some(Effect::Allow),
                "deny" => effect = Some(Effect::Deny),
                "ask" => effect = Some(Effect::Ask),
                "defer" => effect = Some(Effect::Defer),
                other => {
                    return refusal(&format!(
                        "the module's decision has the unknown effect `{}`",
                        truncate(other)
                    ));
                }
            },
            (Value::String(name), Value::String(id)) if &**name == "id" && is_rule_id(id) => {
                opinion.rule = id.to_string();
            }
            (Value::String(name), Value::String(reason)) if &**name == "reason" => {
                opinion.reason = truncate(reason);
            }
            _ => {
                return refusal(
                    "the module's decision has a member other than `effect`, `id` and `reason`, or one that is not a fitting text",
                );
            }
        }
    }
    match effect {
        Some(effect) => {
            opinion.effect = effect;
            opinion
        }
        None => refusal("the module's decision has no `effect`"),
    }
}

fn refusal(reason: &str) -> Opinion {
    Opinion { effect: Effect::Deny, rule: "rego".to_owned(), reason: truncate(reason) }
}

fn input_value(input: &Input, answers: &dyn AnswerSource) -> Value {
    let acting = CallingAgent::ask(input, answers);
    object([
        ("action", object_of(record::action(input, |_| true))),
        ("agent", object_of(record::agent(input, acting.as_ref()))),
        ("session", object_of(record::session(input))),
        ("time", object_of(record::time(input))),
    ])
}

fn object<'n>(members: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let members: BTreeMap<Value, Value> =
        members.into_iter().map(|(name, value)| (Value::from(name), value)).collect();
    Value::from(members)
}

fn object_of<'i>(members: impl IntoIterator<Item = (&'static str, MemberValue<'i>)>) -> Value {
    object(members.into_iter().map(|(name, part)| (name, member_value(&part))))
}

fn member_value(part: &MemberValue<'_>) -> Value {
    match part {
        MemberValue::Text(text) => Value::from(*text),
        MemberValue::Built(text) => Value::from(text.as_str()),
        MemberValue::Whole(number) => Value::from(*number),
        MemberValue::Truth(truth) => Value::from(*truth),
        MemberValue::Decimal(number) => number_value(&number.to_string()),
        MemberValue::Texts(texts) => {
            Value::from(texts.iter().map(|text| Value::from(*text)).collect::<Vec<Value>>())
        }
        MemberValue::Json(json) => json_value(json),
    }
}

/// Recursion is bounded by the depth that the JSON parser allows.
fn json_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::from(*value),
        Json::Number(text) => number_value(text),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from(items.iter().map(json_value).collect::<Vec<Value>>()),
        Json::Object(members) => {
            object(members.iter().map(|(name, value)| (name.as_str(), json_value(value))))
        }
    }
}

fn number_value(text: &str) -> Value {
    if let Ok(whole) = text.parse::<i64>() {
        return Value::from(whole);
    }
    // The engine writes numbers out in full: one with a huge exponent would fill the answers. What it should not hold as a
    // number stays visible as its text.
    let exponent = text.split_once(['e', 'E']).map_or(Some(0), |(_, exponent)| exponent.parse::<i32>().ok());
    match exponent {
        Some(-300..=300) if text.len() <= 64 => {
            Value::from_numeric_string(text).unwrap_or_else(|_| Value::from(text))
        }
        _ => Value::from(text),
    }
}
