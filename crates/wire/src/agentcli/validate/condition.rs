//! Conditions of triggers: a part of the parent's output, or an ECMAScript regular expression.

use super::scalars::is_blank;

/// Longest regular expression, in bytes.
pub const MAX_REGEX: usize = 8 * 1024;

/// Deepest nesting of groups and classes in a regular expression.
// The compiler recurses for each group.
const MAX_NESTING: usize = 100;

/// Most alternatives: the compiler nests each one in the one before, and recurses through them.
const MAX_ALTERNATIVES: usize = 512;

/// Most quantifiers with counts: an expression is compiled in time and memory that grow with them.
const MAX_COUNTED: usize = 500;

/// A condition on the output of the parent task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition<'a> {
    /// The output contains this text.
    Contains(&'a str),
    /// The output matches this ECMAScript regular expression, without flags.
    Regex(&'a str),
}

/// Errors of conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The prefix is unknown.
    #[error("must begin with `contains:` or `regex:`")]
    Prefix,
    /// Nothing follows the prefix.
    #[error("needs a text after its prefix")]
    Empty,
    /// The expression is too long.
    #[error("regular expression is longer than {MAX_REGEX} bytes")]
    TooLong,
    /// The expression is nested too deeply, or has too many alternatives or repetitions.
    #[error("regular expression has too many groups, alternatives or repetitions")]
    TooDeep,
    /// The expression does not compile.
    #[error("regular expression is not a valid ECMAScript one")]
    Regex,
}

/// Reads a condition. Expressions are not compiled yet.
pub fn parse(text: &str) -> Result<Condition<'_>, ConditionError> {
    let condition = if let Some(part) = text.strip_prefix("contains:") {
        Condition::Contains(part)
    } else if let Some(expression) = text.strip_prefix("regex:") {
        Condition::Regex(expression)
    } else {
        return Err(ConditionError::Prefix);
    };
    let (Condition::Contains(rest) | Condition::Regex(rest)) = condition;
    if is_blank(rest) { Err(ConditionError::Empty) } else { Ok(condition) }
}

impl Condition<'_> {
    /// Checks that an expression compiles.
    pub fn check(self) -> Result<(), ConditionError> {
        match self {
            Condition::Contains(_) => Ok(()),
            Condition::Regex(expression) => compile(expression).map(|_| ()),
        }
    }
}

/// Compiles an ECMAScript regular expression without flags, within limits. Matching backtracks: its caller must bound the time.
pub fn compile(expression: &str) -> Result<regress::Regex, ConditionError> {
    if expression.len() > MAX_REGEX {
        return Err(ConditionError::TooLong);
    }
    if !is_bounded(expression) {
        return Err(ConditionError::TooDeep);
    }
    regress::Regex::new(expression).map_err(|_| ConditionError::Regex)
}

/// Whether nesting, alternatives and counted repetition stay within limits.
fn is_bounded(expression: &str) -> bool {
    let (mut depth, mut deepest, mut counted, mut alternatives) = (0usize, 0usize, 0usize, 1usize);
    let mut in_class = false;
    let mut bytes = expression.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            // The escaped character opens and closes nothing.
            b'\\' => {
                bytes.next();
            }
            b']' => in_class = false,
            _ if in_class => {}
            b'[' => in_class = true,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'{' => counted += 1,
            b'|' => alternatives += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest <= MAX_NESTING && counted <= MAX_COUNTED && alternatives <= MAX_ALTERNATIVES
}

#[cfg(test)]
mod tests;
