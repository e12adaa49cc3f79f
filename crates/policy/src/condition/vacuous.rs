//! Conditions that hold for an action of which nothing was found: no commands, no paths, no hosts.

use proctor_facts::Fact;

use super::node::{Comprehension, Constant, Function, Member, Node, Operator};

/// What is known of a value if all lists of the action are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Truth(bool),
    Whole(i64),
    EmptyList,
    Unknown,
}

/// Whether a condition holds whenever all lists of the action are empty, because of an `all` over one of them.
pub(super) fn holds_without_anything(node: &Node) -> bool {
    let mut vacuous = false;
    known(node, &mut vacuous) == Known::Truth(true) && vacuous
}

/// Recursion is bounded by the depth that loading allows. `vacuous` is set where an `all` has nothing to look at.
fn known(node: &Node, vacuous: &mut bool) -> Known {
    use Known::{EmptyList, Truth, Unknown, Whole};
    match node {
        Node::Constant(Constant::Bool(truth)) => Truth(*truth),
        Node::Constant(Constant::Int(number)) => Whole(*number),
        Node::List(items) if items.is_empty() => EmptyList,
        Node::Member(Member::Findings) => EmptyList,
        Node::Member(Member::Fact(fact)) if is_list(*fact) => EmptyList,
        Node::Not(operand) => match known(operand, vacuous) {
            Truth(truth) => Truth(!truth),
            _ => Unknown,
        },
        Node::And(pair) => match (known(&pair.0, vacuous), known(&pair.1, vacuous)) {
            (Truth(false), _) | (_, Truth(false)) => Truth(false),
            (Truth(true), Truth(true)) => Truth(true),
            _ => Unknown,
        },
        Node::Or(pair) => match (known(&pair.0, vacuous), known(&pair.1, vacuous)) {
            (Truth(true), _) | (_, Truth(true)) => Truth(true),
            (Truth(false), Truth(false)) => Truth(false),
            _ => Unknown,
        },
        Node::Binary(operator, pair) => compared(*operator, known(&pair.0, vacuous), known(&pair.1, vacuous)),
        Node::Call(Function::Size, arguments) => match arguments.as_slice() {
            [only] if known(only, vacuous) == EmptyList => Whole(0),
            _ => Unknown,
        },
        Node::Comprehension(parts) if known(&parts.0, vacuous) == EmptyList => match parts.1 {
            Comprehension::All(_) => {
                *vacuous = true;
                Truth(true)
            }
            Comprehension::Exists(_) | Comprehension::ExistsOne(_) => Truth(false),
            Comprehension::Filter(_) | Comprehension::Map(..) => EmptyList,
        },
        _ => Unknown,
    }
}

fn compared(operator: Operator, left: Known, right: Known) -> Known {
    use Known::{EmptyList, Truth, Unknown, Whole};
    match (operator, left, right) {
        (Operator::Equal, EmptyList, EmptyList) => Truth(true),
        (Operator::In, _, EmptyList) | (Operator::NotEqual, EmptyList, EmptyList) => Truth(false),
        (operator, Whole(left), Whole(right)) => match operator {
            Operator::Equal => Truth(left == right),
            Operator::NotEqual => Truth(left != right),
            Operator::Less => Truth(left < right),
            Operator::LessEqual => Truth(left <= right),
            Operator::Greater => Truth(left > right),
            Operator::GreaterEqual => Truth(left >= right),
            _ => Unknown,
        },
        _ => Unknown,
    }
}

fn is_list(fact: Fact) -> bool {
    matches!(
        fact,
        Fact::Paths
            | Fact::Writes
            | Fact::Commands
            | Fact::Hosts
            | Fact::Unknown
            | Fact::Expansions
            | Fact::Assignments
            | Fact::Opaque
    )
}
