//! Layer 2, `constraint`: bounds on cost, tokens, time, step counts, or any number in the trace.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::check::Fold;
use crate::each::EachValue;
use crate::raw::{self, DuplicateName};
use crate::spec;
use crate::target::{self, Resolved, Target};
use crate::text::Text;
use crate::trace::{Head, Step, StepKind};
use crate::verdict::{Status, Verdict, cut};

mod bound;

pub(crate) use bound::{Bound, Quantity};

/// The members that a spec may have.
pub(crate) const MEMBERS: &[&str] =
    &["field", "target", "operator", "op", "value", "min", "max", "soft", "threshold"];

/// Compiles a constraint spec.
pub(crate) fn compile(spec: Option<&RawValue>) -> Result<Box<dyn Fold>, Verdict> {
    let written: Written<'_> = spec::read(spec)?;
    let field =
        spec::either(written.field, written.target).ok_or_else(|| spec::missing("field", "a constraint"))?;
    let operator = spec::either(written.operator, written.op)
        .ok_or_else(|| spec::missing("operator", "a constraint"))?;
    let number = |name: &str, raw: Option<&RawValue>| raw.map(|raw| Quantity::read(name, raw)).transpose();
    let parsed = Field::parse(&field)?;
    Ok(Box::new(Constraint {
        path: field.as_str().to_owned(),
        each: match &parsed {
            // A bound excludes numbers, so that it holds for each of them.
            Field::Value { target, .. } => EachValue::of(target, true),
            Field::Count(..) | Field::Metadata(_) => None,
        },
        field: parsed,
        bound: Bound::read(
            &operator,
            number("value", written.value)?,
            number("min", written.min)?,
            number("max", written.max)?,
        )?,
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
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
    #[serde(borrow, default)]
    min: Option<&'a RawValue>,
    #[serde(borrow, default)]
    max: Option<&'a RawValue>,
    #[serde(default)]
    soft: Option<bool>,
}

struct Constraint {
    path: String,
    field: Field,
    bound: Bound,
    soft: bool,
    /// The fold over all values of the field, if it leads into steps.
    each: Option<EachValue>,
}

impl Fold for Constraint {
    fn step(&mut self, step: &Step<'_>) {
        let Some(mut each) = self.each.take() else { return self.field.step(step) };
        if let Field::Value { target, whole } = &self.field {
            each.step(target, step, &mut |step, path| {
                let number = self.number_in_step(path, target, whole.as_ref(), step)?;
                Some(number.and_then(|number| self.judge(path, &number)))
            });
        }
        self.each = Some(each);
    }

    fn verdict(&self, head: &Head<'_>) -> Verdict {
        if let (Some(each), Field::Value { target, .. }) = (&self.each, &self.field) {
            return each.verdict(target);
        }
        let path = &self.path;
        let judged = self.number(head).and_then(|number| self.judge(path, &number));
        judged.map_or_else(|failure| failure, |held| Verdict::pass(format!("`{path}` {held}")))
    }
}

impl Constraint {
    /// The finding on one number, worded to follow its path; or the failure.
    fn judge(&self, path: &str, number: &Quantity) -> Result<String, Verdict> {
        let bound = &self.bound;
        if bound.holds(number) {
            return Ok(format!("is {number}, which is {bound}"));
        }
        Err(Verdict::fail(self.soft, format!("`{path}` is {number}, but should be {bound}"))
            .at(path)
            .evidence(bound.to_string(), number.to_string())
            .suggest("find out what drives the number, or change the bound"))
    }

    /// The number in one step; `None` if this step need not have one.
    fn number_in_step(
        &self,
        path: &str,
        target: &Target,
        whole: Option<&Target>,
        step: &Step<'_>,
    ) -> Option<Result<Quantity, Verdict>> {
        let absent = match target.in_step(path, step) {
            Some(Ok(Resolved::Value(value))) => return Some(self.read(path, &value)),
            Some(Ok(Resolved::Empty)) => Some(self.no_number(path, "it is not set")),
            Some(Err(absent)) if absent.status == Status::HardFail => Some(absent),
            Some(Err(undecided)) => return Some(Err(undecided)),
            None => None,
        };
        // A path that ends in `length` may mean the length of its parent.
        match whole.and_then(|whole| whole.in_step(path, step)) {
            Some(Ok(Resolved::Value(value))) => match raw::length(&value) {
                Some(length) => Some(Ok(length.into())),
                None => absent.map(Err),
            },
            Some(Err(undecided)) if undecided.status == Status::Error => Some(Err(undecided)),
            Some(_) | None => absent.map(Err),
        }
    }

    /// Resolves the field to a number; a missing one is a hard failure, because nothing was measured.
    fn number(&self, head: &Head<'_>) -> Result<Quantity, Verdict> {
        let path = &self.path;
        match &self.field {
            Field::Count(_, count) => Ok((*count).into()),
            Field::Metadata(members) => self.metadata(head, members),
            Field::Value { target, whole } => match target.resolve(head) {
                Ok(Resolved::Value(value)) => self.read(path, &value),
                Ok(Resolved::Empty) => Err(self.no_number(path, "it is not set")),
                // A path that ends in `length` may mean the length of its parent.
                Err(absent) if absent.status == Status::HardFail => match whole {
                    Some(whole) => match whole.resolve(head) {
                        Ok(Resolved::Value(value)) => raw::length(&value).map(Quantity::from).ok_or(absent),
                        Err(ambiguous) if ambiguous.status == Status::Error => Err(ambiguous),
                        Ok(Resolved::Empty) | Err(_) => Err(absent),
                    },
                    None => Err(absent),
                },
                Err(ambiguous) => Err(ambiguous),
            },
        }
    }

    fn metadata(&self, head: &Head<'_>, members: &[String]) -> Result<Quantity, Verdict> {
        let ambiguous = |twice: &DuplicateName| target::ambiguous(&self.path, twice);
        let mut here = head.metadata.raw.map(RawValue::get);
        for (at, name) in members.iter().enumerate() {
            let Some(object) = here else { break };
            let found = raw::sole_member(object, name).map_err(|twice| ambiguous(&twice))?;
            if found.is_none() && at > 0 && at + 1 == members.len() && name == LENGTH {
                return match raw::duplicate(object) {
                    Some(twice) => Err(ambiguous(&twice)),
                    None => raw::length(object).map(Quantity::from).ok_or_else(|| {
                        self.no_number(&self.path, "there is no list and no object whose length it could be")
                    }),
                };
            }
            here = found.map(RawValue::get);
        }
        match here {
            Some(value) => self.read(&self.path, value),
            None => known(head, members).ok_or_else(|| self.no_number(&self.path, "it is not set")),
        }
    }

    fn read(&self, path: &str, value: &str) -> Result<Quantity, Verdict> {
        match value.trim() {
            "null" => Err(self.no_number(path, "it is not set")),
            value => Quantity::parse(value)
                .ok_or_else(|| self.no_number(path, &format!("it is `{}`", cut(value, SHOWN)))),
        }
    }

    fn no_number(&self, path: &str, why: &str) -> Verdict {
        Verdict::fail(false, format!("`{path}` is not a number: {why}"))
            .at(path)
            .evidence(format!("a number that is {}", self.bound), why)
            .suggest("have the agent record this number, or check the field's spelling")
    }
}

/// Metadata that stored traces carry as parsed numbers.
fn known(head: &Head<'_>, members: &[String]) -> Option<Quantity> {
    let [only] = members else { return None };
    let number = match only.as_str() {
        "cost_usd" => head.metadata.cost_usd,
        "total_tokens" => head.metadata.total_tokens,
        "latency_ms" => head.metadata.latency_ms,
        _ => None,
    };
    number.map(Quantity::from)
}

/// Source of the number.
enum Field {
    /// Number of steps of a kind; counted as they come.
    Count(Counted, usize),
    /// A member of the metadata.
    Metadata(Vec<String>),
    /// A value in the output or in a step, and its parent for `….length`.
    Value { target: Target, whole: Option<Target> },
}

/// Pseudo-member for the number of elements, where no member has this name.
const LENGTH: &str = "length";

/// Limit of shown bytes of a value that is no number.
const SHOWN: usize = 80;

enum Counted {
    All,
    Kind(String),
    Name(String),
}

impl Field {
    fn parse(path: &str) -> Result<Field, Verdict> {
        if let Some(counted) = Counted::parse(path) {
            return counted.map(|counted| Field::Count(counted, 0));
        }
        if let Some(rest) = path.strip_prefix("metadata.") {
            let members: Vec<String> = rest.split('.').map(str::to_owned).collect();
            if members.iter().all(|name| !name.is_empty()) {
                return Ok(Field::Metadata(members));
            }
        }
        let whole = path.strip_suffix(".length").and_then(|whole| Target::parse(whole).ok());
        Target::parse(path).map(|target| Field::Value { target, whole }).map_err(|_| {
            Verdict::error(format!("`{path}` is not a field that can be compared")).at(path).suggest(
                "use `metadata.NAME`, `metadata.NAME.length`, `steps.length`, `steps[?type=='KIND'].length`, `steps[?name=='TOOL'].length`, \
                 `output.NAME`, `steps[?name=='TOOL'].args.NAME` `steps[?name=='TOOL'].result.NAME`, or these of every step (`steps[*]`)",
            )
        })
    }

    fn step(&mut self, step: &Step<'_>) {
        match self {
            Field::Count(counted, count) if counted.includes(step) => *count = count.saturating_add(1),
            Field::Value { target, whole } => {
                target.step(step);
                if let Some(whole) = whole {
                    whole.step(step);
                }
            }
            Field::Count(..) | Field::Metadata(_) => {}
        }
    }
}

impl Counted {
    const KINDS: [StepKind<'static>; 4] =
        [StepKind::LlmCall, StepKind::ToolCall, StepKind::Retrieval, StepKind::AgentCall];

    /// Reads a path if it counts steps; one that can never count any is a mistake.
    fn parse(path: &str) -> Option<Result<Counted, Verdict>> {
        if path == "steps.length" {
            return Some(Ok(Counted::All));
        }
        let inside = |prefix: &str| {
            let word = path.strip_prefix(prefix)?.strip_suffix("'].length")?;
            (!word.contains('\'')).then_some(word)
        };
        if let Some(kind) = inside("steps[?type=='") {
            return Some(if Counted::KINDS.iter().any(|known| known.word() == kind) {
                Ok(Counted::Kind(kind.to_owned()))
            } else {
                let kinds = Counted::KINDS.each_ref().map(StepKind::word).join(", ");
                Err(Verdict::error(format!("`{kind}` is not a type of step: `{path}` would always be 0"))
                    .at(path)
                    .evidence(kinds.as_str(), kind)
                    .suggest(format!("use one of: {kinds}")))
            });
        }
        inside("steps[?name=='").map(|name| match name {
            "" => Err(Verdict::error(format!("`{path}` names no step"))
                .at(path)
                .suggest("write the tool's name between the quotes")),
            name => Ok(Counted::Name(name.to_owned())),
        })
    }

    fn includes(&self, step: &Step<'_>) -> bool {
        match self {
            Counted::All => true,
            Counted::Kind(kind) => step.kind.word() == kind,
            Counted::Name(name) => step.is_named(name),
        }
    }
}

#[cfg(test)]
mod tests;
