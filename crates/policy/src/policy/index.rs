//! Index of rules by tool and kind, from the necessary conditions of their conditions.

use std::collections::HashMap;

use proctor_core::action::ActionKind;
use proctor_facts::Facts;

use crate::condition::Condition;

/// The rules that may match, by tool; lists are in document order and include the rules that name no tool.
pub(super) struct RuleIndex {
    by_tool: HashMap<String, Vec<usize>>,
    any_tool: Vec<usize>,
    kinds: Vec<u16>,
}

impl RuleIndex {
    pub(super) fn new<'a>(conditions: impl Iterator<Item = Option<&'a Condition>>) -> RuleIndex {
        let mut index = RuleIndex { by_tool: HashMap::new(), any_tool: Vec::new(), kinds: Vec::new() };
        for (number, condition) in conditions.enumerate() {
            let demands = condition.map(Condition::index);
            let kinds = demands.and_then(|demands| demands.kinds.as_ref());
            index.kinds.push(kinds.map_or(u16::MAX, |kinds| kinds.iter().map(|kind| bit(*kind)).sum()));
            match demands.and_then(|demands| demands.tools.clone()) {
                None => {
                    index.any_tool.push(number);
                    index.by_tool.values_mut().for_each(|rules| rules.push(number));
                }
                Some(tools) => {
                    for tool in tools {
                        let rules = index.by_tool.entry(tool).or_insert_with(|| index.any_tool.clone());
                        if rules.last() != Some(&number) {
                            rules.push(number);
                        }
                    }
                }
            }
        }
        index
    }

    pub(super) fn candidates(&self, facts: &Facts) -> Vec<usize> {
        let by_tool = self.by_tool.get(&facts.tool);
        let name = facts.name.to_lowercase();
        let by_name = if name == facts.tool { None } else { self.by_tool.get(&name) };
        let mut numbers = by_tool.or(by_name).unwrap_or(&self.any_tool).clone();
        if let (Some(_), Some(more)) = (by_tool, by_name) {
            numbers.extend_from_slice(more);
            numbers.sort_unstable();
            numbers.dedup();
        }
        let wanted = bit(facts.kind);
        numbers.retain(|number| self.kinds.get(*number).is_some_and(|kinds| kinds & wanted != 0));
        numbers
    }
}

fn bit(kind: ActionKind) -> u16 {
    1 << (kind as u16)
}
