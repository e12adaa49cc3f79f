//! Evaluating a condition.

use std::borrow::Cow;
use std::rc::Rc;

use proctor_core::json::Json;

use super::activation::Activation;
use super::functions;
use super::node::{Asked, Comprehension, Kind, Node, Operator};
use super::value::Value;

/// Most steps that one evaluation may take; then it ends in an error. A step is about ten nanoseconds.
pub const MAX_STEPS: usize = 200_000;
/// Longest text, in bytes, and longest list that a condition may build.
pub const MAX_BUILT: usize = 64 * 1024;
/// Longest glob or taint that a condition may compute.
const MAX_ASKED: usize = 256;

/// Failure of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// A member below `args`, `result` or `metadata` is not there.
    Missing,
    /// Any other error.
    Error(Cow<'static, str>),
}

impl Fault {
    pub(super) fn error(message: impl Into<Cow<'static, str>>) -> Fault {
        Fault::Error(message.into())
    }

    /// The more severe of two faults.
    fn worse(self, other: Fault) -> Fault {
        match self {
            Fault::Missing => other,
            Fault::Error(_) => self,
        }
    }
}

/// State of an evaluation.
pub(super) struct Evaluator<'v> {
    activation: &'v Activation<'v>,
    locals: Vec<Value<'v>>,
    steps: usize,
}

impl<'v> Evaluator<'v> {
    pub(super) fn new(activation: &'v Activation<'v>) -> Evaluator<'v> {
        Evaluator { activation, locals: Vec::new(), steps: MAX_STEPS }
    }

    /// The value of a node. Recursion is bounded by the depth that loading allows.
    pub(super) fn value(&mut self, node: &'v Node) -> Result<Value<'v>, Fault> {
        self.spend(1)?;
        match node {
            Node::Constant(constant) => Ok(Value::of_constant(constant)),
            Node::Local(index) => {
                self.locals.get(*index).cloned().ok_or_else(|| Fault::error("a variable is not set"))
            }
            Node::Member(member) => self.activation.member(*member),
            Node::Select(operand, name) => {
                let operand = self.value(operand)?;
                self.select(&operand, name)?.ok_or_else(|| absent(&operand, name))
            }
            Node::Has(operand, name) => {
                let operand = self.value(operand)?;
                Ok(Value::Bool(self.select(&operand, name)?.is_some()))
            }
            Node::Index(pair) => self.index(&pair.0, &pair.1),
            Node::Past(function, scope, Asked::Fixed(question)) => {
                self.activation.past(*function, *scope, question)
            }
            Node::Past(function, scope, Asked::Computed(argument)) => {
                let argument = self.value(argument)?;
                match argument.as_text() {
                    Some(text) if text.len() <= MAX_ASKED => {
                        self.activation.past(*function, *scope, &function.question(*scope, text.to_owned()))
                    }
                    Some(_) => Err(Fault::error(format!(
                        "what is asked about the past is longer than {MAX_ASKED} bytes"
                    ))),
                    None => Err(mismatch("a function about the past", argument.kind())),
                }
            }
            Node::Within(function, folder) => {
                self.spend(self.activation.path_count())?;
                Ok(Value::Bool(self.activation.contains(*function, folder)))
            }
            Node::Not(operand) => self.truth(operand).map(|truth| Value::Bool(!truth)),
            Node::Negate(operand) => functions::negate(&self.value(operand)?),
            Node::And(pair) => self.both(&pair.0, &pair.1, false),
            Node::Or(pair) => self.both(&pair.0, &pair.1, true),
            Node::Choice(parts) => {
                if self.truth(&parts.0)? {
                    self.value(&parts.1)
                } else {
                    self.value(&parts.2)
                }
            }
            Node::Binary(Operator::In, pair) => self.is_in(&pair.0, &pair.1),
            Node::Binary(operator, pair) => {
                let left = self.value(&pair.0)?;
                let right = self.value(&pair.1)?;
                self.spend(left.weight().min(right.weight()))?;
                if *operator == Operator::Add {
                    // Adding copies both sides.
                    self.spend(left.weight() + right.weight())?;
                }
                functions::binary(*operator, &left, &right)
            }
            Node::List(items) => {
                let items = items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, Fault>>()?;
                Ok(Value::List(items.into()))
            }
            Node::Map(entries) => self.map(entries),
            Node::Call(function, arguments) => self.call(*function, arguments),
            Node::Matches(operand, pattern) => {
                let operand = self.value(operand)?;
                let text = operand.as_text().ok_or_else(|| mismatch("matches", operand.kind()))?;
                self.spend(text.len() / 8)?;
                Ok(Value::Bool(pattern.is_match(text)))
            }
            Node::Comprehension(parts) => self.comprehension(&parts.0, &parts.1),
        }
    }

    /// The value of a node that has to be a boolean.
    pub(super) fn truth(&mut self, node: &'v Node) -> Result<bool, Fault> {
        match self.value(node)? {
            Value::Bool(truth) => Ok(truth),
            other => Err(Fault::error(format!("expected a boolean, found {}", other.kind().words()))),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        if let Some(rest) = self.steps.checked_sub(steps) {
            self.steps = rest;
            Ok(())
        } else {
            self.steps = 0;
            Err(Fault::error(format!("the condition needs more than {MAX_STEPS} steps")))
        }
    }

    /// `||` and `&&`: a side that decides wins over a fault of the other.
    fn both(&mut self, left: &'v Node, right: &'v Node, decides: bool) -> Result<Value<'v>, Fault> {
        match self.truth(left) {
            Ok(truth) if truth == decides => Ok(Value::Bool(decides)),
            Ok(_) => self.truth(right).map(Value::Bool),
            Err(fault) => match self.truth(right) {
                Ok(truth) if truth == decides => Ok(Value::Bool(decides)),
                Ok(_) => Err(fault),
                Err(other) => Err(fault.worse(other)),
            },
        }
    }

    fn select(&mut self, operand: &Value<'v>, name: &str) -> Result<Option<Value<'v>>, Fault> {
        self.spend(operand.length().unwrap_or(0) / 16)?;
        Ok(match operand {
            Value::Json(object) => object.get(name).map(Value::of_json),
            _ => operand.lookup(&Value::Text(name)),
        })
    }

    fn index(&mut self, operand: &'v Node, index: &'v Node) -> Result<Value<'v>, Fault> {
        let operand = self.value(operand)?;
        let index = self.value(index)?;
        if let Some(name) = index.as_text() {
            return self.select(&operand, name)?.ok_or_else(|| absent(&operand, name));
        }
        let place = match index {
            Value::Int(place) => usize::try_from(place).ok(),
            Value::Uint(place) => usize::try_from(place).ok(),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole and within a list's length"
            )]
            Value::Double(place) if place.fract() == 0.0 && (0.0..1e9).contains(&place) => {
                Some(place as usize)
            }
            _ => None,
        };
        let found = match operand.kind() {
            Kind::Map => operand.lookup(&index),
            _ => place.and_then(|place| operand.element(place)),
        };
        found.ok_or_else(|| match operand {
            Value::Texts(_) | Value::Findings(_) | Value::List(_) => {
                Fault::error("the list has no element at this index")
            }
            _ => absent(&operand, "of this index"),
        })
    }

    fn is_in(&mut self, item: &'v Node, range: &'v Node) -> Result<Value<'v>, Fault> {
        let item = self.value(item)?;
        if let Node::List(nodes) = range
            && nodes.iter().all(|node| matches!(node, Node::Constant(_)))
        {
            self.spend(nodes.len())?;
            let found = nodes.iter().any(
                |node| matches!(node, Node::Constant(constant) if Value::of_constant(constant).equals(&item)),
            );
            return Ok(Value::Bool(found));
        }
        let range = self.value(range)?;
        let length = range.length().ok_or_else(|| mismatch("in", range.kind()))?;
        self.spend(length.saturating_mul(1 + item.weight()))?;
        let found = match &range {
            Value::Json(Json::Object(_)) | Value::Map(_) => range.lookup(&item).is_some(),
            _ => (0..length).filter_map(|place| range.element(place)).any(|element| element.equals(&item)),
        };
        Ok(Value::Bool(found))
    }

    fn map(&mut self, entries: &'v [(Node, Node)]) -> Result<Value<'v>, Fault> {
        let mut built: Vec<(Value<'v>, Value<'v>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.value(key)?;
            if !matches!(key.kind(), Kind::Text | Kind::Int | Kind::Uint | Kind::Bool) {
                return Err(Fault::error(format!("the key of a map cannot be {}", key.kind().words())));
            }
            self.spend(built.len())?;
            if built.iter().any(|(other, _)| other.equals(&key)) {
                return Err(Fault::error("a map has the same key twice"));
            }
            let value = self.value(value)?;
            built.push((key, value));
        }
        Ok(Value::Map(built.into()))
    }

    fn call(&mut self, function: super::node::Function, arguments: &'v [Node]) -> Result<Value<'v>, Fault> {
        match arguments {
            [only] => {
                let only = self.value(only)?;
                self.spend(only.as_text().map_or(0, str::len) / 64)?;
                functions::one(function, only)
            }
            [receiver, argument] => {
                let receiver = self.value(receiver)?;
                let argument = self.value(argument)?;
                self.spend(receiver.as_text().map_or(0, str::len) / 64)?;
                functions::two(function, &receiver, &argument)
            }
            _ => Err(Fault::error("a function has a wrong number of arguments")),
        }
    }

    fn comprehension(
        &mut self,
        range: &'v Node,
        comprehension: &'v Comprehension,
    ) -> Result<Value<'v>, Fault> {
        let range = self.value(range)?;
        let length = range.length().ok_or_else(|| {
            Fault::error(format!("a list or a map can be gone through, and this is {}", range.kind().words()))
        })?;
        let mut built = Vec::new();
        let mut count = 0usize;
        let mut fault: Option<Fault> = None;
        for place in 0..length {
            let Some(element) = range.element(place) else { break };
            self.spend(1)?;
            self.locals.push(element);
            let stop = self.visit(comprehension, &mut built, &mut count, &mut fault);
            self.locals.pop();
            match stop {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => {}
                Err(fault) => return Err(fault),
            }
        }
        match (comprehension, fault) {
            (_, Some(fault)) => Err(fault),
            (Comprehension::All(_), None) => Ok(Value::Bool(true)),
            (Comprehension::Exists(_), None) => Ok(Value::Bool(false)),
            (Comprehension::ExistsOne(_), None) => Ok(Value::Bool(count == 1)),
            (Comprehension::Filter(_) | Comprehension::Map(..), None) => Ok(Value::List(Rc::from(built))),
        }
    }

    /// Evaluates a macro for one element; `Some` ends it.
    fn visit(
        &mut self,
        comprehension: &'v Comprehension,
        built: &mut Vec<Value<'v>>,
        count: &mut usize,
        fault: &mut Option<Fault>,
    ) -> Result<Option<Value<'v>>, Fault> {
        match comprehension {
            Comprehension::All(test) | Comprehension::Exists(test) => {
                let decides = matches!(comprehension, Comprehension::Exists(_));
                match self.truth(test) {
                    Ok(truth) if truth == decides => return Ok(Some(Value::Bool(decides))),
                    Ok(_) => {}
                    Err(found) => {
                        *fault = Some(match fault.take() {
                            Some(earlier) => earlier.worse(found),
                            None => found,
                        });
                    }
                }
            }
            Comprehension::ExistsOne(test) => *count += usize::from(self.truth(test)?),
            Comprehension::Filter(test) => {
                if self.truth(test)? {
                    built.extend(self.locals.last().cloned());
                }
            }
            Comprehension::Map(test, body) => {
                let wanted = match test {
                    Some(test) => self.truth(test)?,
                    None => true,
                };
                if wanted {
                    built.push(self.value(body)?);
                }
            }
        }
        Ok(None)
    }
}

/// The fault of reading a member that is not there: missing below the action's JSON, an error elsewhere.
fn absent(operand: &Value<'_>, name: &str) -> Fault {
    match operand {
        Value::Map(_) => {
            Fault::error(format!("the map has no member `{}`", name.chars().take(64).collect::<String>()))
        }
        _ => Fault::Missing,
    }
}

/// Fault: the argument's type does not fit the function.
pub(super) fn mismatch(name: &str, kind: Kind) -> Fault {
    Fault::error(format!("`{name}` is not for {}", kind.words()))
}
