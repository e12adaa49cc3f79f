//! Names of tools that guard less than they seem to.

use proctor_facts::Fact;
use proctor_facts::tool::canonical_name;

use super::super::node::{Constant, Member, Node};
use super::super::position::{member_after, problem_at};
use super::{Lowering, truncate};
use crate::glob::Glob;

impl Lowering<'_> {
    /// Warns where `action.tool` is compared with a name that normalisation replaces: the comparison never holds.
    pub(super) fn check_tools(&mut self, left_id: u64, left: &Node, right_id: u64, right: &Node) {
        let (words, words_id) = match (left, right) {
            (Node::Member(Member::Fact(Fact::Tool)), words) => (words, right_id),
            (words, Node::Member(Member::Fact(Fact::Tool))) => (words, left_id),
            _ => return,
        };
        let listed =
            if let Node::List(items) = words { items.as_slice() } else { std::slice::from_ref(words) };
        let mut offset = self.offset(words_id);
        for item in listed {
            let Node::Constant(Constant::Text(word)) = item else { continue };
            let place = member_after(self.text, offset, word);
            offset = place;
            let canonical = canonical_name(word);
            if canonical != word.as_ref() {
                self.warnings.push(problem_at(
                    self.text,
                    place,
                    format!(
                        "`action.tool` is never \"{}\": it is the canonical name; write \"{}\", or compare `action.name`, the name as sent",
                        truncate(word),
                        truncate(&canonical)
                    ),
                ));
            }
        }
    }

    /// Warns where a question about the past names one of several names of a tool: calls under the others are not counted.
    pub(super) fn check_asked_tool(&mut self, offset: usize, pattern: &str) {
        let canonical = canonical_name(pattern);
        if Glob::new(pattern).is_literal() && canonical != pattern.to_lowercase() {
            let place = member_after(self.text, offset, pattern);
            self.warnings.push(problem_at(
                self.text,
                place,
                format!(
                    "\"{}\" is one of several names of `{canonical}`, and calls under the others are not found; write \"{canonical}\"",
                    truncate(pattern)
                ),
            ));
        }
    }
}
