//! Lowering of the parsed expression to resolved nodes: every name is looked up, every type that is known is checked, and all mistakes are
//! reported at once.

mod calls;
mod operators;
mod tools;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo};

use proctor_core::nearest;

use super::ConditionProblem;
use super::names::{PAST, VARIABLES, members_of};
use super::node::{Constant, Kind, Node};
use super::position::{member_after, problem_at};

/// Deepest tree that is evaluated: long chains of `+` or `.` grow it without brackets.
pub(super) const MAX_DEPTH: usize = 96;

/// A node, with what is known about it.
pub(super) struct Lowered {
    pub(super) node: Node,
    pub(super) kind: Kind,
    /// Whether its value can be missing.
    pub(super) fragile: bool,
    /// Whether `has(…)` is asked in it.
    pub(super) guards: bool,
    /// Whether it asks about the past.
    pub(super) asks: bool,
}

impl Lowered {
    fn new(node: Node, kind: Kind) -> Lowered {
        Lowered { node, kind, fragile: false, guards: false, asks: false }
    }

    /// Adds the properties of a part.
    fn with(mut self, fragile: bool, guards: bool, asks: bool) -> Lowered {
        self.fragile |= fragile;
        self.guards |= guards;
        self.asks |= asks;
        self
    }
}

/// Compiler state: problems, local variables, depth.
pub(super) struct Lowering<'t> {
    text: &'t str,
    source: &'t SourceInfo,
    locals: Vec<(String, Kind)>,
    depth: usize,
    pub(super) problems: Vec<ConditionProblem>,
    pub(super) warnings: Vec<ConditionProblem>,
}

impl<'t> Lowering<'t> {
    pub(super) fn new(text: &'t str, source: &'t SourceInfo) -> Lowering<'t> {
        Lowering { text, source, locals: Vec::new(), depth: 0, problems: Vec::new(), warnings: Vec::new() }
    }

    /// The node of an expression; `None` if it has a mistake, which is then in `problems`.
    pub(super) fn lower(&mut self, expr: &IdedExpr) -> Option<Lowered> {
        if self.depth >= MAX_DEPTH {
            // One report is enough: every level above would repeat it.
            if !self.problems.iter().any(|problem| problem.message.contains("nested too deeply")) {
                self.problem(
                    expr.id,
                    "the condition is nested too deeply; split it into several rules".to_owned(),
                );
            }
            return None;
        }
        self.depth += 1;
        let lowered = self.lower_expr(expr);
        self.depth -= 1;
        lowered
    }

    fn lower_expr(&mut self, expr: &IdedExpr) -> Option<Lowered> {
        match &expr.expr {
            Expr::Literal(literal) => Some(lower_literal(literal)),
            Expr::Ident(name) => self.lower_name(expr.id, name),
            Expr::Select(select) => self.lower_select(expr.id, &select.operand, &select.field),
            Expr::Call(call) => self.lower_call(expr.id, call),
            Expr::List(list) => {
                let items: Vec<Option<Lowered>> = list.elements.iter().map(|item| self.lower(item)).collect();
                let items: Vec<Lowered> = items.into_iter().collect::<Option<_>>()?;
                let texts = !items.is_empty() && items.iter().all(|item| item.kind == Kind::Text);
                let (fragile, guards, asks) = (
                    items.iter().any(|item| item.fragile),
                    items.iter().any(|item| item.guards),
                    items.iter().any(|item| item.asks),
                );
                let node = Node::List(items.into_iter().map(|item| item.node).collect());
                Some(
                    Lowered::new(node, if texts { Kind::Texts } else { Kind::List })
                        .with(fragile, guards, asks),
                )
            }
            Expr::Map(map) => {
                let mut entries = Vec::new();
                let (mut fragile, mut guards, mut asks) = (false, false, false);
                let mut complete = true;
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        complete = false;
                        continue;
                    };
                    match (self.lower(&entry.key), self.lower(&entry.value)) {
                        (Some(key), Some(value)) => {
                            fragile |= key.fragile || value.fragile;
                            guards |= key.guards || value.guards;
                            asks |= key.asks || value.asks;
                            entries.push((key.node, value.node));
                        }
                        _ => complete = false,
                    }
                }
                complete.then(|| Lowered::new(Node::Map(entries), Kind::Map).with(fragile, guards, asks))
            }
            Expr::Struct(structure) => {
                self.problem(
                    expr.id,
                    format!("there is no type `{}`: conditions cannot make messages", structure.type_name),
                );
                None
            }
            Expr::Comprehension(_) | Expr::Unspecified => {
                self.problem(expr.id, "this cannot be read as a condition".to_owned());
                None
            }
        }
    }

    fn lower_name(&mut self, id: u64, name: &str) -> Option<Lowered> {
        if let Some((index, (_, kind))) =
            self.locals.iter().enumerate().rev().find(|(_, (local, _))| local == name)
        {
            // What comes out of a list can be JSON of the action, but it is there itself.
            return Some(Lowered::new(Node::Local(index), *kind));
        }
        if VARIABLES.contains(&name) {
            let member = members_of(name).first().map_or("", |(member, _, _)| *member);
            self.problem(
                id,
                format!("`{name}` is not a value by itself; name a member, such as `{name}.{member}`"),
            );
            return None;
        }
        let mut known: Vec<&str> = self.locals.iter().map(|(local, _)| local.as_str()).collect();
        known.extend(VARIABLES);
        let hint = match nearest(name, &known) {
            Some(close) => format!("did you mean `{close}`?"),
            None => {
                "known are `action`, `agent`, `session` and `time`; texts are written in quotes".to_owned()
            }
        };
        self.problem(id, format!("unknown variable `{}`; {hint}", truncate(name)));
        None
    }

    fn lower_select(&mut self, id: u64, operand: &IdedExpr, field: &str) -> Option<Lowered> {
        if let Some(variable) = self.variable(operand) {
            return self.lower_member(id, variable, field);
        }
        let operand = self.lower(operand)?;
        if !matches!(operand.kind, Kind::Any | Kind::Map) {
            let offset = member_after(self.text, self.offset(id), field);
            let hint = if super::names::function(field).is_some() {
                format!("; `{field}` is a function: write `{field}(…)`")
            } else {
                String::new()
            };
            let message = format!("{} has no member `{}`{hint}", operand.kind.words(), truncate(field));
            self.problems.push(problem_at(self.text, offset, message));
            return None;
        }
        let (guards, asks) = (operand.guards, operand.asks);
        Some(
            Lowered::new(Node::Select(Box::new(operand.node), field.into()), Kind::Any)
                .with(true, guards, asks),
        )
    }

    fn lower_member(&mut self, id: u64, variable: &'static str, field: &str) -> Option<Lowered> {
        let members = members_of(variable);
        if let Some((_, member, kind)) = members.iter().find(|(name, _, _)| *name == field) {
            return Some(Lowered::new(Node::Member(*member), *kind).with(false, false, member.asks()));
        }
        let offset = member_after(self.text, self.offset(id), field);
        let asks_past = matches!(variable, "agent" | "session");
        let message = if asks_past && PAST.iter().any(|(name, _, _)| *name == field) {
            format!("`{variable}.{field}` is a function: write `{variable}.{field}(\"…\")`")
        } else {
            let mut known: Vec<&str> = members.iter().map(|(name, _, _)| *name).collect();
            if asks_past {
                known.extend(PAST.iter().map(|(name, _, _)| *name));
            }
            let hint = match nearest(field, &known) {
                Some(close) => format!("did you mean `{variable}.{close}`?"),
                None => format!("it has {}", known.join(", ")),
            };
            format!("`{variable}` has no member `{}`; {hint}", truncate(field))
        };
        self.problems.push(problem_at(self.text, offset, message));
        None
    }

    /// The variable that this expression names, unless a macro's own variable hides it.
    fn variable(&self, expr: &IdedExpr) -> Option<&'static str> {
        let Expr::Ident(name) = &expr.expr else { return None };
        if self.locals.iter().any(|(local, _)| local == name) {
            return None;
        }
        VARIABLES.into_iter().find(|variable| variable == name)
    }

    fn offset(&self, id: u64) -> usize {
        self.source.offset_for(id).map_or(0, |(start, _)| usize::try_from(start).unwrap_or(0))
    }

    fn problem(&mut self, id: u64, message: String) {
        let offset = self.offset(id);
        self.problems.push(problem_at(self.text, offset, message));
    }
}

/// The identifier of the part of an expression that stands first in the text.
fn leftmost(expr: &IdedExpr) -> u64 {
    let mut current = expr;
    loop {
        current = match &current.expr {
            Expr::Select(select) => &select.operand,
            Expr::Call(call) => match (&call.target, call.args.first()) {
                (Some(target), _) => target,
                (None, Some(first)) if call.func_name.starts_with('_') => first,
                _ => return current.id,
            },
            _ => return current.id,
        };
    }
}

fn lower_literal(literal: &LiteralValue) -> Lowered {
    let (constant, kind) = match literal {
        LiteralValue::Null => (Constant::Null, Kind::Null),
        LiteralValue::Boolean(value) => (Constant::Bool(*value.inner()), Kind::Bool),
        LiteralValue::Int(value) => (Constant::Int(*value.inner()), Kind::Int),
        LiteralValue::UInt(value) => (Constant::Uint(*value.inner()), Kind::Uint),
        LiteralValue::Double(value) => (Constant::Double(*value.inner()), Kind::Double),
        LiteralValue::String(value) => (Constant::Text(value.inner().into()), Kind::Text),
        LiteralValue::Bytes(value) => (Constant::Bytes(value.inner().into()), Kind::Bytes),
    };
    Lowered::new(Node::Constant(constant), kind)
}

/// A name for a message: long ones are cut.
fn truncate(name: &str) -> String {
    if name.chars().count() > 64 { name.chars().take(64).chain(['…']).collect() } else { name.to_owned() }
}
