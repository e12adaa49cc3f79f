//! The logical shape of a condition, and whether one implies another. Incomplete, but never wrong: what it calls implied is.

use std::collections::BTreeSet;

use super::node::{Constant, Member, Node, Operator};

/// A condition as `&&` and `||` of parts that are only compared as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// True for every action.
    Always,
    /// True for none.
    Never,
    /// All of these hold.
    All(Vec<Shape>),
    /// One of these holds.
    Any(Vec<Shape>),
    /// A member is one of these words.
    Word(String, BTreeSet<String>),
    /// Any other part.
    Part(String),
}

/// Shape of a node.
pub(super) fn of(node: &Node) -> Shape {
    match node {
        Node::Constant(Constant::Bool(true)) => Shape::Always,
        Node::Constant(Constant::Bool(false)) => Shape::Never,
        Node::And(pair) => Shape::All(vec![of(&pair.0), of(&pair.1)]),
        Node::Or(pair) => Shape::Any(vec![of(&pair.0), of(&pair.1)]),
        Node::Binary(Operator::Equal, pair) => match &**pair {
            (Node::Member(member), Node::Constant(Constant::Text(word)))
            | (Node::Constant(Constant::Text(word)), Node::Member(member)) => {
                words(*member, [word.to_string()])
            }
            _ => part(node),
        },
        Node::Binary(Operator::In, pair) => match &**pair {
            (Node::Member(member), Node::List(items)) => {
                let word = |item: &Node| match item {
                    Node::Constant(Constant::Text(word)) => Some(word.to_string()),
                    _ => None,
                };
                let found: Option<Vec<String>> = items.iter().map(word).collect();
                found.map_or_else(|| part(node), |found| words(*member, found))
            }
            _ => part(node),
        },
        _ => part(node),
    }
}

fn words(member: Member, words: impl IntoIterator<Item = String>) -> Shape {
    Shape::Word(format!("{member:?}"), words.into_iter().collect())
}

/// Two parts are the same if all that they are made of is: patterns and questions show their texts.
fn part(node: &Node) -> Shape {
    Shape::Part(format!("{node:?}"))
}

impl Shape {
    /// Whether the other one holds wherever this one does; false if `steps` are used up before that is known.
    pub fn implies(&self, other: &Shape, steps: &mut usize) -> bool {
        let Some(left) = steps.checked_sub(1) else { return false };
        *steps = left;
        match (self, other) {
            (_, Shape::Always) | (Shape::Never, _) => true,
            (_, Shape::All(parts)) => parts.iter().all(|part| self.implies(part, steps)),
            (Shape::Any(parts), _) => parts.iter().all(|part| part.implies(other, steps)),
            (Shape::All(mine), Shape::Any(theirs)) => {
                mine.iter().any(|part| part.implies(other, steps))
                    || theirs.iter().any(|part| self.implies(part, steps))
            }
            (Shape::All(parts), _) => parts.iter().any(|part| part.implies(other, steps)),
            (_, Shape::Any(parts)) => parts.iter().any(|part| self.implies(part, steps)),
            (Shape::Word(mine, words), Shape::Word(theirs, others)) => {
                mine == theirs && words.is_subset(others)
            }
            (Shape::Part(mine), Shape::Part(theirs)) => mine == theirs,
            _ => false,
        }
    }
}
