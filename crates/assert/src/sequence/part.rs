//! What the checks on traces and on trees of traces have in common.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::check::Fold;
use crate::text::Text;
use crate::trace::{Head, Step};
use crate::verdict::{Status, Verdict};

/// A check that need not count steps, and need not know whether it is soft.
pub(crate) trait Part: Send {
    /// Sees the next step, which has this index.
    fn step(&mut self, index: usize, step: &Step<'_>);

    /// What it finds in a trace that has this head and exactly the steps seen so far. A failure is hard here.
    fn finding(&self, seen: usize, head: &Head<'_>) -> Verdict;
}

/// The check as the crate knows it.
pub(crate) fn folded(part: impl Part + 'static, soft: bool) -> Box<dyn Fold> {
    Box::new(Counted { part, soft, seen: 0 })
}

struct Counted<P> {
    part: P,
    soft: bool,
    seen: usize,
}

impl<P: Part> Fold for Counted<P> {
    fn step(&mut self, step: &Step<'_>) {
        self.part.step(self.seen, step);
        self.seen = self.seen.saturating_add(1);
    }

    fn verdict(&self, head: &Head<'_>) -> Verdict {
        let mut verdict = self.part.finding(self.seen, head);
        if self.soft && verdict.status == Status::HardFail {
            verdict.status = Status::SoftFail;
        }
        verdict
    }
}

/// From whom to whom: written as `["a", "b"]` or `{"from": "a", "to": "b"}`.
pub(crate) struct Pair<'a> {
    pub(crate) from: Text<'a>,
    pub(crate) to: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Pair<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pair<'a>, D::Error> {
        struct PairVisitor;

        impl<'de> Visitor<'de> for PairVisitor {
            type Value = Pair<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a pair of names")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Pair<'de>, A::Error> {
                use serde::de::Error;
                let from = items.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
                let to = items.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
                match items.next_element::<IgnoredAny>()? {
                    None => Ok(Pair { from, to }),
                    Some(_) => Err(A::Error::invalid_length(3, &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Pair<'de>, A::Error> {
                use serde::de::Error;
                let (mut from, mut to) = (None, None);
                while let Some(name) = members.next_key::<Text<'de>>()? {
                    match name.as_str() {
                        "from" => from = Some(members.next_value()?),
                        "to" => to = Some(members.next_value()?),
                        _ => drop(members.next_value::<IgnoredAny>()?),
                    }
                }
                match (from, to) {
                    (Some(from), Some(to)) => Ok(Pair { from, to }),
                    (None, _) => Err(A::Error::missing_field("from")),
                    (_, None) => Err(A::Error::missing_field("to")),
                }
            }
        }

        deserializer.deserialize_any(PairVisitor)
    }
}

/// How many names of a list are shown.
const SHOWN: usize = 20;

/// How many bytes of one name are shown.
const NAME: usize = 60;

/// A name that is short enough to be shown.
pub(crate) fn brief(name: &str) -> Cow<'_, str> {
    match name.get(..name.floor_char_boundary(NAME)) {
        Some("") => Cow::Borrowed("(no name)"),
        Some(start) if start.len() < name.len() => Cow::Owned(format!("{start}…")),
        _ => Cow::Borrowed(name),
    }
}

/// Names as a list that is short enough to be shown.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut shown = Shown::default();
    for name in names {
        shown.note(name);
    }
    shown.to_string()
}

/// The first names of a sequence, and how many there are.
#[derive(Default)]
pub(crate) struct Shown {
    first: Vec<String>,
    total: usize,
}

impl Shown {
    pub(crate) fn note(&mut self, name: &str) {
        if self.first.len() < SHOWN {
            self.first.push(brief(name).into_owned());
        }
        self.total = self.total.saturating_add(1);
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first.is_empty() {
            return formatter.write_str("nothing");
        }
        formatter.write_str(&self.first.join(", "))?;
        match self.total.saturating_sub(self.first.len()) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// A number of things, in words.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
