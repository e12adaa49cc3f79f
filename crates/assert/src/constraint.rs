//! A number has a bound: cost, tokens, time, how many steps, or any number that the trace carries.

use std::cmp::Ordering;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::check::Fold;
use crate::raw;
use crate::spec;
use crate::target::{Resolved, Target};
use crate::text::Text;
use crate::trace::{Head, Step};
use crate::verdict::Verdict;

/// The members that a spec may have.
pub(crate) const MEMBERS: &[&str] =
    &["field", "target", "operator", "op", "value", "min", "max", "soft", "threshold"];

/// Makes a constraint ready.
pub(crate) fn compile(spec: Option<&RawValue>) -> Result<Box<dyn Fold>, Verdict> {
    let written: Written<'_> = spec::read(spec)?;
    let field =
        spec::either(written.field, written.target).ok_or_else(|| spec::missing("field", "a constraint"))?;
    let operator = spec::either(written.operator, written.op)
        .ok_or_else(|| spec::missing("operator", "a constraint"))?;
    Ok(Box::new(Constraint {
        path: field.as_str().to_owned(),
        field: Field::parse(&field)?,
        bound: Bound::read(&operator, written.value, written.min, written.max)?,
        soft: written.soft.unwrap_or(false),
    }))
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow, default)]
    field: Option<Text<'a>>,
    #[serde(borrow, default)]
    target: Option<Text<'a>>,
    #[serde(borrow, default)]
    operator: Option<Text<'a>>,
    #[serde(borrow, default)]
    op: Option<Text<'a>>,
    #[serde(default)]
    value: Option<f64>,
    #[serde(default)]
    min: Option<f64>,
    #[serde(default)]
    max: Option<f64>,
    #[serde(default)]
    soft: Option<bool>,
}

/// What a number is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    /// Less than.
    Below(f64),
    /// Less than or equal.
    AtMost(f64),
    /// Greater than.
    Above(f64),
    /// Greater than or equal.
    AtLeast(f64),
    /// Exactly.
    Equal(f64),
    /// Anything else.
    NotEqual(f64),
    /// From the first to the second, both included.
    Between(f64, f64),
}

impl Bound {
    /// The bound that an operator and its operands make.
    pub(crate) fn read(
        operator: &str,
        value: Option<f64>,
        min: Option<f64>,
        max: Option<f64>,
    ) -> Result<Bound, Verdict> {
        let make = match operator {
            "lt" | "<" => Bound::Below,
            "lte" | "<=" => Bound::AtMost,
            "gt" | ">" => Bound::Above,
            "gte" | ">=" => Bound::AtLeast,
            "eq" | "==" => Bound::Equal,
            "neq" | "!=" => Bound::NotEqual,
            "between" => {
                let min = min.ok_or_else(|| spec::missing("min", "`between`"))?;
                let max = max.ok_or_else(|| spec::missing("max", "`between`"))?;
                return Bound::range(min, max);
            }
            _ => return Err(unknown_operator(operator)),
        };
        value.map(make).ok_or_else(|| spec::missing("value", &format!("`{operator}`")))
    }

    /// From `min` to `max`, both included.
    pub(crate) fn range(min: f64, max: f64) -> Result<Bound, Verdict> {
        if min > max {
            return Err(Verdict::error(format!("`min` is {min} and `max` is {max}: no number lies between"))
                .suggest("exchange `min` and `max`"));
        }
        Ok(Bound::Between(min, max))
    }

    /// Whether a number is within it.
    pub(crate) fn holds(self, number: f64) -> bool {
        match self {
            Bound::Below(bound) => number < bound,
            Bound::AtMost(bound) => number <= bound,
            Bound::Above(bound) => number > bound,
            Bound::AtLeast(bound) => number >= bound,
            Bound::Equal(bound) => number.partial_cmp(&bound) == Some(Ordering::Equal),
            Bound::NotEqual(bound) => number.partial_cmp(&bound) != Some(Ordering::Equal),
            Bound::Between(min, max) => min <= number && number <= max,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Below(bound) => write!(formatter, "less than {bound}"),
            Bound::AtMost(bound) => write!(formatter, "at most {bound}"),
            Bound::Above(bound) => write!(formatter, "more than {bound}"),
            Bound::AtLeast(bound) => write!(formatter, "at least {bound}"),
            Bound::Equal(bound) => write!(formatter, "exactly {bound}"),
            Bound::NotEqual(bound) => write!(formatter, "not {bound}"),
            Bound::Between(min, max) => write!(formatter, "from {min} to {max}"),
        }
    }
}

fn unknown_operator(operator: &str) -> Verdict {
    const OPERATORS: &str = "lt, lte, gt, gte, eq, neq, between";
    Verdict::error(format!("`{operator}` is not an operator"))
        .evidence(OPERATORS, operator)
        .suggest(format!("use one of: {OPERATORS}"))
}

struct Constraint {
    path: String,
    field: Field,
    bound: Bound,
    soft: bool,
}

impl Fold for Constraint {
    fn step(&mut self, step: &Step<'_>) {
        self.field.step(step);
    }

    fn verdict(&self, head: &Head<'_>) -> Verdict {
        let number = match self.number(head) {
            Ok(number) => number,
            Err(verdict) => return verdict,
        };
        let Constraint { path, bound, .. } = self;
        if bound.holds(number) {
            return Verdict::pass(format!("`{path}` is {number}, which is {bound}"));
        }
        Verdict::fail(self.soft, format!("`{path}` is {number}, but should be {bound}"))
            .at(path.as_str())
            .evidence(bound.to_string(), number.to_string())
            .suggest("find out what drives the number, or change the bound")
    }
}

impl Constraint {
    /// The number that the trace has there. One that is not there fails hard: nothing was measured.
    fn number(&self, head: &Head<'_>) -> Result<f64, Verdict> {
        match &self.field {
            Field::Count(_, count) => {
                #[expect(clippy::cast_precision_loss, reason = "no trace has 2^53 steps")]
                return Ok(*count as f64);
            }
            Field::Metadata(members) => self.metadata(head, members),
            Field::Value(target) => match target.resolve(head)? {
                Resolved::Value(value) => self.read(&value),
                Resolved::Empty => Err(self.no_number("it is not set")),
            },
        }
    }

    fn metadata(&self, head: &Head<'_>, members: &[String]) -> Result<f64, Verdict> {
        let known = match members {
            [only] => match only.as_str() {
                "cost_usd" => head.metadata.cost_usd,
                "total_tokens" => head.metadata.total_tokens,
                "latency_ms" => head.metadata.latency_ms,
                _ => None,
            },
            _ => None,
        };
        if let Some(number) = known {
            return Ok(number);
        }
        let mut here = head.metadata.raw.map(RawValue::get);
        for name in members {
            here = here.and_then(|object| raw::member(object, name)).map(RawValue::get);
        }
        here.map_or_else(|| Err(self.no_number("it is not set")), |value| self.read(value))
    }

    fn read(&self, value: &str) -> Result<f64, Verdict> {
        match value.trim() {
            "null" => Err(self.no_number("it is not set")),
            value => serde_json::from_str(value).map_err(|_| {
                let shown: String = value.chars().take(80).collect();
                self.no_number(&format!("it is `{shown}`"))
            }),
        }
    }

    fn no_number(&self, why: &str) -> Verdict {
        Verdict::fail(false, format!("`{}` is not a number: {why}", self.path))
            .at(self.path.as_str())
            .evidence(format!("a number that is {}", self.bound), why)
            .suggest("have the agent record this number, or check the field's spelling")
    }
}

/// Where the number is.
enum Field {
    /// How many steps there are of a kind; counted as they come.
    Count(Counted, u64),
    /// A member of the metadata.
    Metadata(Vec<String>),
    /// A value in the output or in a step.
    Value(Target),
}

enum Counted {
    All,
    Kind(String),
    Name(String),
}

impl Field {
    fn parse(path: &str) -> Result<Field, Verdict> {
        if let Some(counted) = Counted::parse(path) {
            return Ok(Field::Count(counted, 0));
        }
        if let Some(rest) = path.strip_prefix("metadata.") {
            let members: Vec<String> = rest.split('.').map(str::to_owned).collect();
            if members.iter().all(|name| !name.is_empty()) {
                return Ok(Field::Metadata(members));
            }
        }
        Target::parse(path).map(Field::Value).map_err(|_| {
            Verdict::error(format!("`{path}` is not a field that can be compared")).at(path).suggest(
                "use `metadata.NAME`, `steps.length`, `steps[?type=='KIND'].length`, `steps[?name=='TOOL'].length`, \
                 `output.NAME`, `steps[?name=='TOOL'].args.NAME` or `steps[?name=='TOOL'].result.NAME`",
            )
        })
    }

    fn step(&mut self, step: &Step<'_>) {
        match self {
            Field::Count(counted, count) if counted.includes(step) => *count = count.saturating_add(1),
            Field::Value(target) => target.step(step),
            Field::Count(..) | Field::Metadata(_) => {}
        }
    }
}

impl Counted {
    fn parse(path: &str) -> Option<Counted> {
        if path == "steps.length" {
            return Some(Counted::All);
        }
        let inside = |prefix: &str| {
            let word = path.strip_prefix(prefix)?.strip_suffix("'].length")?;
            (!word.contains('\'')).then(|| word.to_owned())
        };
        inside("steps[?type=='").map(Counted::Kind).or_else(|| inside("steps[?name=='").map(Counted::Name))
    }

    fn includes(&self, step: &Step<'_>) -> bool {
        match self {
            Counted::All => true,
            Counted::Kind(kind) => step.kind.word() == kind,
            Counted::Name(name) => step.name.as_str() == name,
        }
    }
}

#[cfg(test)]
mod tests;
