//! Necessary conditions of a condition, by which rules are indexed.

use proctor_core::action::ActionKind;
use proctor_facts::Fact;

use super::node::{Constant, Member, Node, Operator};

/// Necessary conditions of a condition; `None` matches all actions, an empty list none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    /// The action's kind is one of these.
    pub kinds: Option<Vec<ActionKind>>,
    /// Lower-cased tool names, one of which is the name as sent or the canonical one, lower-cased too.
    pub tools: Option<Vec<String>>,
}

/// Reads it from comparisons with literals that are joined by `&&` and `||`. A fault elsewhere does not matter: `&&` with a
/// false side is false.
pub(super) fn of(node: &Node) -> Index {
    match node {
        Node::And(pair) => {
            let (left, right) = (of(&pair.0), of(&pair.1));
            Index {
                kinds: match (left.kinds, right.kinds) {
                    (Some(left), Some(right)) => {
                        Some(left.into_iter().filter(|kind| right.contains(kind)).collect())
                    }
                    (left, right) => left.or(right),
                },
                // A tool has two names, so that two lists can both hold and share nothing: the shorter one is kept.
                tools: match (left.tools, right.tools) {
                    (Some(left), Some(right)) => Some(if right.len() < left.len() { right } else { left }),
                    (left, right) => left.or(right),
                },
            }
        }
        Node::Or(pair) => {
            let (left, right) = (of(&pair.0), of(&pair.1));
            Index { kinds: union(left.kinds, right.kinds), tools: union(left.tools, right.tools) }
        }
        Node::Constant(Constant::Bool(false)) => Index { kinds: Some(Vec::new()), tools: Some(Vec::new()) },
        Node::Binary(Operator::Equal, pair) => match &**pair {
            (Node::Member(member), Node::Constant(constant))
            | (Node::Constant(constant), Node::Member(member)) => named(*member, &[constant]),
            _ => Index::default(),
        },
        Node::Binary(Operator::In, pair) => match &**pair {
            (Node::Member(member), Node::List(items)) => {
                let constants: Option<Vec<&Constant>> = items
                    .iter()
                    .map(|item| match item {
                        Node::Constant(constant) => Some(constant),
                        _ => None,
                    })
                    .collect();
                constants.map(|constants| named(*member, &constants)).unwrap_or_default()
            }
            _ => Index::default(),
        },
        _ => Index::default(),
    }
}

fn named(member: Member, constants: &[&Constant]) -> Index {
    let words = constants.iter().filter_map(|constant| match constant {
        Constant::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    match member {
        Member::Fact(Fact::Kind) => {
            let mut kinds = Vec::new();
            for kind in words.filter_map(|word| word.parse::<ActionKind>().ok()) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            Index { kinds: Some(kinds), tools: None }
        }
        Member::Fact(Fact::Tool | Fact::Name) => {
            let mut tools = Vec::new();
            for tool in words.map(str::to_lowercase) {
                if !tools.contains(&tool) {
                    tools.push(tool);
                }
            }
            Index { kinds: None, tools: Some(tools) }
        }
        _ => Index::default(),
    }
}

fn union<T: PartialEq>(left: Option<Vec<T>>, right: Option<Vec<T>>) -> Option<Vec<T>> {
    let (mut all, right) = (left?, right?);
    for item in right {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    Some(all)
}
