//! Operators.

use cel::common::ast::{CallExpr, IdedExpr, operators};

use proctor_core::action::ActionKind;
use proctor_core::nearest;
use proctor_facts::Fact;

use super::super::names::WEEKDAYS;
use super::super::node::{Constant, Kind, Member, Node, Operator};
use super::{Lowered, Lowering, leftmost};

impl Lowering<'_> {
    /// The node of an operator; `Err` if the call is not one.
    pub(super) fn lower_operator(&mut self, id: u64, call: &CallExpr) -> Result<Option<Lowered>, ()> {
        let arguments = call.args.as_slice();
        Ok(match (call.func_name.as_str(), arguments) {
            (operators::LOGICAL_AND, [left, right]) => self.lower_logical(left, right, "&&"),
            (operators::LOGICAL_OR, [left, right]) => self.lower_logical(left, right, "||"),
            (operators::LOGICAL_NOT, [operand]) => self.lower_not(id, operand),
            (operators::NEGATE, [operand]) => self.lower_negate(id, operand),
            (operators::CONDITIONAL, [test, then, otherwise]) => self.lower_choice(test, then, otherwise),
            (operators::INDEX, [operand, index]) => self.lower_index(id, operand, index),
            (name, [left, right]) => match binary(name) {
                Some((operator, sign)) => self.lower_binary(id, operator, sign, left, right),
                None => return Err(()),
            },
            _ => return Err(()),
        })
    }

    fn lower_logical(&mut self, left: &IdedExpr, right: &IdedExpr, sign: &str) -> Option<Lowered> {
        let (left_id, right_id) = (leftmost(left), leftmost(right));
        let (left, right) = (self.lower(left), self.lower(right));
        let (left, right) = (left?, right?);
        let fits = self.boolean(left_id, left.kind, sign) & self.boolean(right_id, right.kind, sign);
        if !fits {
            return None;
        }
        // A member that `has(…)` was asked about before is not missing where it counts.
        let fragile = left.fragile || (right.fragile && !left.guards);
        let (guards, asks) = (left.guards || right.guards, left.asks || right.asks);
        let pair = Box::new((left.node, right.node));
        let node = if sign == "&&" { Node::And(pair) } else { Node::Or(pair) };
        Some(Lowered::new(node, Kind::Bool).with(fragile, guards, asks))
    }

    fn lower_not(&mut self, id: u64, operand: &IdedExpr) -> Option<Lowered> {
        let operand_id = leftmost(operand);
        let operand = self.lower(operand)?;
        if !self.boolean(operand_id, operand.kind, "!") {
            return None;
        }
        if operand.fragile {
            let offset = self.offset(id);
            self.warnings.push(super::problem_at(
                self.text,
                offset,
                "`!` over a member that may be missing: if it is missing the condition is false, not true; ask `has(…)` first".to_owned(),
            ));
        }
        let (fragile, guards, asks) = (operand.fragile, operand.guards, operand.asks);
        Some(Lowered::new(Node::Not(Box::new(operand.node)), Kind::Bool).with(fragile, guards, asks))
    }

    fn lower_negate(&mut self, id: u64, operand: &IdedExpr) -> Option<Lowered> {
        let operand = self.lower(operand)?;
        if !matches!(operand.kind, Kind::Any | Kind::Int | Kind::Double | Kind::Duration) {
            self.problem(id, format!("`-` is not for {}", operand.kind.words()));
            return None;
        }
        let (fragile, guards, asks) = (operand.fragile, operand.guards, operand.asks);
        Some(Lowered::new(Node::Negate(Box::new(operand.node)), operand.kind).with(fragile, guards, asks))
    }

    fn lower_choice(&mut self, test: &IdedExpr, then: &IdedExpr, otherwise: &IdedExpr) -> Option<Lowered> {
        let test_id = leftmost(test);
        let (test, then, otherwise) = (self.lower(test), self.lower(then), self.lower(otherwise));
        let (test, then, otherwise) = (test?, then?, otherwise?);
        if !self.boolean(test_id, test.kind, "?") {
            return None;
        }
        let kind = if then.kind == otherwise.kind { then.kind } else { Kind::Any };
        let fragile = test.fragile || ((then.fragile || otherwise.fragile) && !test.guards);
        let guards = test.guards || then.guards || otherwise.guards;
        let asks = test.asks || then.asks || otherwise.asks;
        Some(
            Lowered::new(Node::Choice(Box::new((test.node, then.node, otherwise.node))), kind)
                .with(fragile, guards, asks),
        )
    }

    fn lower_index(&mut self, id: u64, operand: &IdedExpr, index: &IdedExpr) -> Option<Lowered> {
        let index_id = leftmost(index);
        let variable = self.variable(operand);
        let index = self.lower(index);
        if let Some(variable) = variable {
            return if let Node::Constant(Constant::Text(name)) = index?.node {
                self.lower_member(index_id, variable, &name)
            } else {
                self.problem(
                    index_id,
                    format!("members of `{variable}` are named in the condition, not computed"),
                );
                None
            };
        }
        let operand = self.lower(operand);
        let (operand, index) = (operand?, index?);
        let kind = match operand.kind {
            Kind::Any | Kind::List | Kind::Map => Kind::Any,
            Kind::Texts => Kind::Text,
            other => {
                self.problem(id, format!("{} has no elements", other.words()));
                return None;
            }
        };
        if operand.kind.is_list() && !(index.kind == Kind::Any || index.kind.is_number()) {
            self.problem(
                index_id,
                format!("the index of a list is an int, and this is {}", index.kind.words()),
            );
            return None;
        }
        let fragile = operand.fragile || index.fragile || matches!(operand.kind, Kind::Any | Kind::Map);
        let (guards, asks) = (operand.guards || index.guards, operand.asks || index.asks);
        Some(
            Lowered::new(Node::Index(Box::new((operand.node, index.node))), kind).with(fragile, guards, asks),
        )
    }

    fn lower_binary(
        &mut self,
        id: u64,
        operator: Operator,
        sign: &str,
        left: &IdedExpr,
        right: &IdedExpr,
    ) -> Option<Lowered> {
        let (left_id, right_id) = (leftmost(left), leftmost(right));
        let (left, right) = (self.lower(left), self.lower(right));
        let (left, right) = (left?, right?);
        let known_words = self.check_words(left_id, &left.node, right_id, &right.node);
        self.check_tools(left_id, &left.node, right_id, &right.node);
        let Some(kind) = result_kind(operator, left.kind, right.kind) else {
            let message = match operator {
                Operator::Equal | Operator::NotEqual => {
                    format!("{} is never equal to {}", left.kind.words(), right.kind.words())
                }
                _ => format!("`{sign}` is not for {} and {}", left.kind.words(), right.kind.words()),
            };
            self.problem(id, message);
            return None;
        };
        if !known_words {
            return None;
        }
        let (fragile, guards, asks) =
            (left.fragile || right.fragile, left.guards || right.guards, left.asks || right.asks);
        Some(
            Lowered::new(Node::Binary(operator, Box::new((left.node, right.node))), kind)
                .with(fragile, guards, asks),
        )
    }

    /// `action.kind` and `time.weekday` have fixed words: comparing them with another is a slip of the pen.
    fn check_words(&mut self, left_id: u64, left: &Node, right_id: u64, right: &Node) -> bool {
        let (member, words, words_id) = match (left, right) {
            (Node::Member(member), words) => (*member, words, right_id),
            (words, Node::Member(member)) => (*member, words, left_id),
            _ => return true,
        };
        let known: Vec<&str> = match member {
            Member::Fact(Fact::Kind) => ActionKind::ALL.into_iter().map(ActionKind::word).collect(),
            Member::Weekday => WEEKDAYS.to_vec(),
            _ => return true,
        };
        let mut fits = true;
        for word in std::iter::once(words).chain(match words {
            Node::List(items) => items.as_slice(),
            _ => &[],
        }) {
            let Node::Constant(Constant::Text(word)) = word else { continue };
            if known.contains(&word.as_ref()) {
                continue;
            }
            fits = false;
            let hint = match nearest(word, &known) {
                Some(close) => format!("did you mean \"{close}\"?"),
                None => format!("it is one of {}", known.join(", ")),
            };
            let name = if member == Member::Fact(Fact::Kind) { "action.kind" } else { "time.weekday" };
            let offset = self.offset(words_id);
            let offset = super::member_after(self.text, offset, word);
            self.problems.push(super::problem_at(
                self.text,
                offset,
                format!("`{name}` is never \"{}\"; {hint}", super::truncate(word)),
            ));
        }
        fits
    }

    fn boolean(&mut self, id: u64, kind: Kind, sign: &str) -> bool {
        let fits = matches!(kind, Kind::Bool | Kind::Any);
        if !fits {
            self.problem(id, format!("`{sign}` is for booleans, and this is {}", kind.words()));
        }
        fits
    }
}

fn binary(name: &str) -> Option<(Operator, &'static str)> {
    Some(match name {
        operators::EQUALS => (Operator::Equal, "=="),
        operators::NOT_EQUALS => (Operator::NotEqual, "!="),
        operators::LESS => (Operator::Less, "<"),
        operators::LESS_EQUALS => (Operator::LessEqual, "<="),
        operators::GREATER => (Operator::Greater, ">"),
        operators::GREATER_EQUALS => (Operator::GreaterEqual, ">="),
        operators::ADD => (Operator::Add, "+"),
        operators::SUBSTRACT => (Operator::Subtract, "-"),
        operators::MULTIPLY => (Operator::Multiply, "*"),
        operators::DIVIDE => (Operator::Divide, "/"),
        operators::MODULO => (Operator::Remainder, "%"),
        operators::IN => (Operator::In, "in"),
        _ => return None,
    })
}

/// Result type of an operator for operands of these types; `None` if it does not take them.
fn result_kind(operator: Operator, left: Kind, right: Kind) -> Option<Kind> {
    use Kind::{Any, Bool, Bytes, Double, Duration, Int, List, Map, Null, Text, Texts, Timestamp, Uint};
    match operator {
        Operator::Equal | Operator::NotEqual => {
            let comparable = left == right
                || matches!(left, Any | Null)
                || matches!(right, Any | Null)
                || (left.is_number() && right.is_number())
                || (left.is_list() && right.is_list());
            comparable.then_some(Bool)
        }
        Operator::Less | Operator::LessEqual | Operator::Greater | Operator::GreaterEqual => {
            let ordered = |kind: Kind| {
                matches!(kind, Any | Bool | Int | Uint | Double | Text | Bytes | Duration | Timestamp)
            };
            let comparable = ordered(left)
                && ordered(right)
                && (left == right || left == Any || right == Any || (left.is_number() && right.is_number()));
            comparable.then_some(Bool)
        }
        Operator::Add => match (left, right) {
            (Any, _) | (_, Any) => Some(Any),
            (Texts, Texts) => Some(Texts),
            (Texts | List, Texts | List) => Some(List),
            (Timestamp, Duration) | (Duration, Timestamp) => Some(Timestamp),
            (Int | Uint | Double | Text | Bytes | Duration, _) if left == right => Some(left),
            _ => None,
        },
        Operator::Subtract => match (left, right) {
            (Any, _) | (_, Any) => Some(Any),
            (Timestamp, Duration) => Some(Timestamp),
            (Timestamp, Timestamp) => Some(Duration),
            (Int | Uint | Double | Duration, _) if left == right => Some(left),
            _ => None,
        },
        Operator::Multiply | Operator::Divide | Operator::Remainder => match (left, right) {
            (Any, other) | (other, Any) if other == Any || other.is_number() => Some(Any),
            (Double, Double) if operator == Operator::Remainder => None,
            (Int | Uint | Double, _) if left == right => Some(left),
            _ => None,
        },
        Operator::In => match (left, right) {
            (_, Any | List | Map) | (Any | Text, Texts) => Some(Bool),
            _ => None,
        },
    }
}
