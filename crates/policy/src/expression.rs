//! Approval expressions: `requires_approval_if` of a tool.
//!
//! Clauses joined by `AND` and `OR` (`AND` binds tighter, no parentheses); a clause is a field, an operator and a literal.
//!
//! ```
//! use proctor_facts::Facts;
//! use proctor_policy::expression::Expression;
//!
//! let guard = Expression::parse(r#"path starts_with "/etc" OR args.amount > 100"#).unwrap();
//! let facts = Facts { paths: vec!["/etc/passwd".to_owned()], ..Facts::default() };
//! assert!(guard.requires_approval(&facts, &|_| None));
//! assert!(!guard.requires_approval(&Facts::default(), &|_| None));
//! assert_eq!(Expression::parse("comand == \"ls\"").unwrap_err().column, 1);
//! ```

mod evaluate;
mod field;
mod parse;

use std::fmt;

use rust_decimal::Decimal;

pub use field::{ContextType, Field};

/// The longest expression, in bytes.
pub const MAX_BYTES: usize = 4096;
/// The most clauses of an expression.
pub const MAX_CLAUSES: usize = 256;

/// An expression: it holds if every clause of one of its alternatives holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    alternatives: Vec<Vec<Clause>>,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// Left operand.
    pub field: Field,
    /// Operator.
    pub operator: Operator,
    /// Right operand.
    pub literal: Literal,
}

/// An operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `contains`
    Contains,
    /// `starts_with`
    StartsWith,
    /// `in`
    In,
    /// `not_in`
    NotIn,
}

/// A literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// A string, quoted or not; `L0`…`L3`, `Low`…`Critical` and `true` are strings here too.
    Text(String),
    /// A number, or a duration in seconds, with the text that it was written as.
    Number(Decimal, String),
    /// A list of strings.
    List(Vec<String>),
}

/// Problem in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// Column, in characters from 1.
    pub column: usize,
    /// Description of the problem, and the remedy.
    pub message: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for ExpressionError {}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        parse::parse(text).map(|alternatives| Expression { alternatives })
    }

    /// The alternatives, each a list of clauses that must all hold.
    pub fn alternatives(&self) -> &[Vec<Clause>] {
        &self.alternatives
    }
}

impl Operator {
    /// All operators with their words.
    pub const ALL: [(Operator, &'static str); 10] = [
        (Operator::Equal, "=="),
        (Operator::NotEqual, "!="),
        (Operator::Greater, ">"),
        (Operator::GreaterOrEqual, ">="),
        (Operator::Less, "<"),
        (Operator::LessOrEqual, "<="),
        (Operator::Contains, "contains"),
        (Operator::StartsWith, "starts_with"),
        (Operator::In, "in"),
        (Operator::NotIn, "not_in"),
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        Operator::ALL.iter().find(|(operator, _)| *operator == self).map_or("", |(_, word)| word)
    }

    /// Whether it compares by order: `>`, `>=`, `<`, `<=`.
    pub const fn is_ordered(self) -> bool {
        matches!(self, Operator::Greater | Operator::GreaterOrEqual | Operator::Less | Operator::LessOrEqual)
    }

    /// Whether it takes a list.
    pub const fn takes_list(self) -> bool {
        matches!(self, Operator::In | Operator::NotIn)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, clauses) in self.alternatives.iter().enumerate() {
            if index > 0 {
                out.write_str(" OR ")?;
            }
            for (index, clause) in clauses.iter().enumerate() {
                if index > 0 {
                    out.write_str(" AND ")?;
                }
                write!(out, "{} {} ", clause.field, clause.operator.word())?;
                match &clause.literal {
                    Literal::Text(text) => write_quoted(text, out)?,
                    Literal::Number(_, text) => out.write_str(text)?,
                    Literal::List(items) => {
                        out.write_str("[")?;
                        for (index, item) in items.iter().enumerate() {
                            if index > 0 {
                                out.write_str(", ")?;
                            }
                            write_quoted(item, out)?;
                        }
                        out.write_str("]")?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write_quoted(text: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(out, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;
