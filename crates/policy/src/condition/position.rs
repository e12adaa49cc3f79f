//! Positions in a condition.

use super::ConditionProblem;

/// A problem at a byte offset.
pub(super) fn problem_at(text: &str, offset: usize, message: String) -> ConditionProblem {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = text.get(..end).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    ConditionProblem {
        offset_line: before.matches('\n').count() + 1,
        offset_column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        message,
    }
}

/// Offset of a member's name, given the offset of the dot before it.
pub(super) fn member_after(text: &str, dot: usize, name: &str) -> usize {
    text.get(dot..).and_then(|rest| rest.find(name)).map_or(dot, |found| dot + found)
}

/// Offset of a function's name, given the offset of the bracket after it.
pub(super) fn name_before(text: &str, bracket: usize, name: &str) -> usize {
    text.get(..bracket).and_then(|before| before.rfind(name)).unwrap_or(bracket)
}
