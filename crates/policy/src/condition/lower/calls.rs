//! Functions, macros and questions about the past.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use regex::RegexBuilder;

use proctor_core::nearest;
use proctor_facts::workspace::is_inner_folder;

use super::super::names::{CONTAINMENT, FUNCTIONS, MACROS, PAST, Signature, Style, function};
use super::super::node::{Asked, Comprehension, Constant, Function, Kind, Node, PastFunction};
use super::super::position::{name_before, problem_at};
use super::super::time;
use super::{Lowered, Lowering, leftmost, truncate};
use crate::question::Scope;

/// Largest compiled pattern, in bytes, and largest cache of its matcher.
const MAX_PATTERN: usize = 1 << 20;

impl Lowering<'_> {
    pub(super) fn lower_call(&mut self, id: u64, call: &CallExpr) -> Option<Lowered> {
        if call.target.is_none()
            && let Ok(lowered) = self.lower_operator(id, call)
        {
            return lowered;
        }
        let name = call.func_name.as_str();
        let offset = name_before(self.text, self.offset(id), name);
        match &call.target {
            None if name == "has" => self.lower_has(offset, &call.args),
            Some(target) => match self.variable(target) {
                Some("action") => self.lower_containment(offset, name, &call.args),
                Some(variable) => self.lower_past(offset, variable, name, &call.args),
                None if MACROS.contains(&name) && name != "has" => {
                    self.lower_macro(offset, name, target, &call.args)
                }
                None => self.lower_function(offset, name, Some(target), &call.args),
            },
            None => self.lower_function(offset, name, None, &call.args),
        }
    }

    fn lower_has(&mut self, offset: usize, arguments: &[IdedExpr]) -> Option<Lowered> {
        let [IdedExpr { id, expr: Expr::Select(select) }] = arguments else {
            self.report(offset, "`has` takes one member, as in `has(action.args.command)`".to_owned());
            return None;
        };
        if let Some(variable) = self.variable(&select.operand) {
            // These members are never missing.
            self.lower_member(*id, variable, &select.field)?;
            return Some(Lowered::new(Node::Constant(Constant::Bool(true)), Kind::Bool));
        }
        let operand = self.lower(&select.operand)?;
        if !matches!(operand.kind, Kind::Any | Kind::Map) {
            self.report(offset, format!("{} has no members", operand.kind.words()));
            return None;
        }
        let (fragile, asks) = (operand.fragile, operand.asks);
        Some(
            Lowered::new(Node::Has(Box::new(operand.node), select.field.as_str().into()), Kind::Bool)
                .with(fragile, true, asks),
        )
    }

    fn lower_containment(&mut self, offset: usize, name: &str, arguments: &[IdedExpr]) -> Option<Lowered> {
        let Some((_, function)) = CONTAINMENT.iter().find(|(known, _)| *known == name) else {
            let known = CONTAINMENT.map(|(known, _)| known);
            let hint = match nearest(name, &known) {
                Some(close) => format!("did you mean `action.{close}`?"),
                None => format!("it has {}", known.join(", ")),
            };
            self.report(offset, format!("`action` has no function `{}`; {hint}", truncate(name)));
            return None;
        };
        // Written rather than computed, so that no argument of the agent can choose the folder.
        let folder = match arguments {
            [IdedExpr { expr: Expr::Literal(LiteralValue::String(folder)), .. }] => folder.inner(),
            _ => "/",
        };
        if !is_inner_folder(folder) {
            self.report(
                offset,
                format!("`action.{name}` takes a folder of the workspace, as in `action.{name}(\"src\")`"),
            );
            return None;
        }
        Some(Lowered::new(Node::Within(*function, folder.into()), Kind::Bool))
    }

    fn lower_past(
        &mut self,
        offset: usize,
        variable: &str,
        name: &str,
        arguments: &[IdedExpr],
    ) -> Option<Lowered> {
        let scope = match variable {
            "session" => Scope::Session,
            "agent" => Scope::Agent,
            _ => {
                self.report(offset, format!("`{variable}` has no function `{}`", truncate(name)));
                return None;
            }
        };
        let Some((_, function, kind)) = PAST.iter().find(|(known, _, _)| *known == name) else {
            let known: Vec<&str> = PAST.iter().map(|(known, _, _)| *known).collect();
            let hint = match nearest(name, &known) {
                Some(close) => format!("did you mean `{variable}.{close}`?"),
                None => format!("it has {}", known.join(", ")),
            };
            self.report(offset, format!("`{variable}` has no function `{}`; {hint}", truncate(name)));
            return None;
        };
        let [argument] = arguments else {
            self.report(
                offset,
                format!("`{variable}.{name}` takes one text, as in `{variable}.{name}(\"read_*\")`"),
            );
            return None;
        };
        let argument_id = leftmost(argument);
        let argument = self.lower(argument)?;
        let asked = match argument.node {
            Node::Constant(Constant::Text(text)) if text.is_empty() => {
                self.problem(argument_id, format!("`{variable}.{name}` of an empty text matches nothing"));
                return None;
            }
            Node::Constant(Constant::Text(text)) => {
                if *function != PastFunction::Tainted {
                    self.check_asked_tool(offset, &text);
                }
                Asked::Fixed(function.question(scope, text.into()))
            }
            node if matches!(argument.kind, Kind::Text | Kind::Any) => Asked::Computed(Box::new(node)),
            _ => {
                self.problem(
                    argument_id,
                    format!("`{variable}.{name}` takes a string, and this is {}", argument.kind.words()),
                );
                return None;
            }
        };
        Some(Lowered::new(Node::Past(*function, scope, asked), *kind).with(
            argument.fragile,
            argument.guards,
            true,
        ))
    }

    fn lower_macro(
        &mut self,
        offset: usize,
        name: &str,
        target: &IdedExpr,
        arguments: &[IdedExpr],
    ) -> Option<Lowered> {
        let range = self.lower(target);
        let (variable, test, body) = match arguments {
            [variable, body] => (variable, None, body),
            [variable, test, body] if name == "map" => (variable, Some(test), body),
            _ => {
                self.report(offset, format!("`{name}` takes a name and an expression, as in `action.paths.{name}(p, p.startsWith(\"/etc/\"))`"));
                return None;
            }
        };
        let Expr::Ident(local) = &variable.expr else {
            self.problem(variable.id, format!("the first argument of `{name}` is a name of your choice"));
            return None;
        };
        let range = range?;
        let element = match range.kind {
            Kind::Texts => Kind::Text,
            Kind::Any | Kind::List | Kind::Map => Kind::Any,
            other => {
                self.report(
                    offset,
                    format!("`{name}` goes through a list or a map, and this is {}", other.words()),
                );
                return None;
            }
        };
        self.locals.push((local.clone(), element));
        let test = test.map(|test| (leftmost(test), self.lower(test)));
        let body_id = leftmost(body);
        let body = self.lower(body);
        self.locals.pop();
        let test = match test {
            Some((id, test)) => Some((id, test?)),
            None => None,
        };
        let body = body?;
        if name != "map" && !matches!(body.kind, Kind::Bool | Kind::Any) {
            self.problem(body_id, format!("`{name}` needs a condition, and this is {}", body.kind.words()));
            return None;
        }
        if let Some((id, test)) = &test
            && !matches!(test.kind, Kind::Bool | Kind::Any)
        {
            self.problem(*id, format!("`map` needs a condition here, and this is {}", test.kind.words()));
            return None;
        }
        let test = test.map(|(_, test)| test);
        let parts = || [Some(&range), test.as_ref(), Some(&body)].into_iter().flatten();
        let (fragile, guards, asks) = (
            parts().any(|part| part.fragile),
            parts().any(|part| part.guards),
            parts().any(|part| part.asks),
        );
        let fragile = if body.guards { range.fragile } else { fragile };
        let kind = match name {
            "filter" => range.kind,
            "map" if body.kind == Kind::Text => Kind::Texts,
            "map" => Kind::List,
            _ => Kind::Bool,
        };
        let kind = if name == "filter" && !kind.is_list() { Kind::List } else { kind };
        let comprehension = match name {
            "all" => Comprehension::All(body.node),
            "exists" => Comprehension::Exists(body.node),
            "filter" => Comprehension::Filter(body.node),
            "map" => Comprehension::Map(test.map(|test| test.node), body.node),
            _ => Comprehension::ExistsOne(body.node),
        };
        Some(
            Lowered::new(Node::Comprehension(Box::new((range.node, comprehension))), kind)
                .with(fragile, guards, asks),
        )
    }

    fn lower_function(
        &mut self,
        offset: usize,
        name: &str,
        target: Option<&IdedExpr>,
        arguments: &[IdedExpr],
    ) -> Option<Lowered> {
        let given: Vec<(u64, Option<Lowered>)> = target
            .into_iter()
            .chain(arguments)
            .map(|argument| (leftmost(argument), self.lower(argument)))
            .collect();
        let Some(signature) = function(name) else {
            self.report(offset, unknown_function(name));
            return None;
        };
        let as_method = target.is_some();
        if (as_method && signature.style == Style::Global) || (!as_method && signature.style == Style::Method)
        {
            let written = if as_method { format!("{name}(x)") } else { format!("x.{name}(…)") };
            self.report(offset, format!("`{name}` is written `{written}`"));
            return None;
        }
        if given.len() != signature.takes.len() {
            let expected = signature.takes.len() - usize::from(as_method);
            self.report(
                offset,
                format!(
                    "`{name}` takes {expected} {} here, not {}",
                    if expected == 1 { "argument" } else { "arguments" },
                    arguments.len()
                ),
            );
            return None;
        }
        let mut fits = true;
        for ((id, given), takes) in given.iter().zip(signature.takes) {
            let Some(given) = given else { continue };
            if given.kind != Kind::Any && !takes.contains(&given.kind) && !takes.contains(&Kind::Any) {
                let expected: Vec<&str> = takes.iter().map(|kind| kind.words()).collect();
                self.problem(
                    *id,
                    format!("`{name}` is for {}, and this is {}", expected.join(" or "), given.kind.words()),
                );
                fits = false;
            }
        }
        let ids: Vec<u64> = given.iter().map(|(id, _)| *id).collect();
        let given: Vec<Lowered> = given.into_iter().map(|(_, given)| given).collect::<Option<_>>()?;
        if !fits {
            return None;
        }
        let (fragile, guards, asks) = (
            given.iter().any(|part| part.fragile),
            given.iter().any(|part| part.guards),
            given.iter().any(|part| part.asks),
        );
        let node = self.call_node(signature, given.into_iter().map(|part| part.node).collect(), &ids)?;
        Some(Lowered::new(node, signature.gives).with(fragile, guards, asks))
    }

    /// Builds at load what does not depend on the action: patterns, durations, timestamps.
    fn call_node(&mut self, signature: &Signature, mut nodes: Vec<Node>, ids: &[u64]) -> Option<Node> {
        let last_id = ids.last().copied().unwrap_or_default();
        match (signature.function, nodes.as_slice()) {
            (Function::Matches, [_, Node::Constant(Constant::Text(pattern))]) => {
                match RegexBuilder::new(pattern).size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN).build() {
                    Ok(pattern) => {
                        nodes.truncate(1);
                        Some(Node::Matches(Box::new(nodes.pop()?), Box::new(pattern)))
                    }
                    Err(error) => {
                        let error = error.to_string();
                        let line =
                            error.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
                        self.problem(last_id, format!("this is not a pattern that can be used: {line}"));
                        None
                    }
                }
            }
            (Function::Matches, _) => {
                self.problem(
                    last_id,
                    "the pattern of `matches` is written in the condition, not computed".to_owned(),
                );
                None
            }
            (Function::Duration, [Node::Constant(Constant::Text(text))]) => {
                if let Some(micros) = time::parse_duration(text) {
                    Some(Node::Constant(Constant::Duration(micros)))
                } else {
                    self.problem(
                        last_id,
                        format!(
                            "`{}` is not a duration; write for example \"1h30m\", \"90s\" or \"250ms\"",
                            truncate(text)
                        ),
                    );
                    None
                }
            }
            (Function::Timestamp, [Node::Constant(Constant::Text(text))]) => {
                if let Some(micros) = time::parse_timestamp(text) {
                    Some(Node::Constant(Constant::Timestamp(micros)))
                } else {
                    self.problem(
                        last_id,
                        format!(
                            "`{}` is not a timestamp; write for example \"2026-11-15T20:45:00Z\"",
                            truncate(text)
                        ),
                    );
                    None
                }
            }
            (function, _) => Some(Node::Call(function, nodes)),
        }
    }

    fn report(&mut self, offset: usize, message: String) {
        self.problems.push(problem_at(self.text, offset, message));
    }
}

fn unknown_function(name: &str) -> String {
    let known: Vec<&str> = FUNCTIONS.iter().map(|signature| signature.name).chain(MACROS).collect();
    match nearest(name, &known) {
        Some(close) => format!("unknown function `{}`; did you mean `{close}`?", truncate(name)),
        None if PAST.iter().any(|(past, _, _)| *past == name) => {
            format!("`{name}` is a function of `session` and `agent`: write `session.{name}(\"…\")`")
        }
        None => format!("unknown function `{}`; known are {}", truncate(name), known.join(", ")),
    }
}
