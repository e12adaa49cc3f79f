//! Helpers shared by the checks on traces and on trace trees.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::check::Fold;
use crate::text::Text;
use crate::trace::{Head, Step};
use crate::verdict::{Status, Verdict};

/// A check that need not count steps, and need not know whether it is soft.
pub(crate) trait Part: Send {
    /// Folds the next step, which has this index.
    fn step(&mut self, index: usize, step: &Step<'_>);

    /// The verdict on a trace with this head and exactly the steps seen so far. A failure is hard here.
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

/// A name in a spec. Unlike other texts it is never read from `null`, which would be a name that nothing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name<'a>(Text<'a>);

impl Deref for Name<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_str()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name<'a>, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Text(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Text(Cow::Owned(text.to_owned()))))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

/// A pair of names, written as `["a", "b"]` or `{"from": "a", "to": "b"}`.
pub(crate) struct Pair<'a> {
    pub(crate) from: Name<'a>,
    pub(crate) to: Name<'a>,
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
                        "from" if from.is_some() => return Err(A::Error::duplicate_field("from")),
                        "to" if to.is_some() => return Err(A::Error::duplicate_field("to")),
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

/// Limit of names in a list of a spec.
const MOST_NAMES: usize = 10_000;

/// A list of a spec that has no more names than anybody needs.
pub(crate) fn not_too_many(length: usize, member: &str) -> Result<(), Verdict> {
    if length <= MOST_NAMES {
        return Ok(());
    }
    Err(Verdict::error(format!("`{member}` of the spec is too long: {length} entries"))
        .evidence(format!("at most {MOST_NAMES} entries"), length.to_string())
        .suggest(format!("give `{member}` fewer entries")))
}

/// Whether no name consists of nothing but space.
pub(crate) fn not_blank<'n, 't: 'n>(
    names: impl IntoIterator<Item = &'n Name<'t>>,
    member: &str,
) -> Result<(), Verdict> {
    if names.into_iter().any(|name| name.trim().is_empty()) { Err(nameless(member)) } else { Ok(()) }
}

/// A mistake in a spec: a name that says nothing.
pub(crate) fn nameless(member: &str) -> Verdict {
    Verdict::error(format!("`{member}` of the spec has an empty name"))
        .evidence("a name", "an empty one")
        .suggest(format!("write the name that is meant into `{member}`"))
}

/// Members of a spec that its check reads. A member that only other checks read is a mistake: whoever wrote it believes that
/// something is checked.
pub(crate) fn only<const N: usize>(
    check: &str,
    read: &[&str],
    written: [(&'static str, bool); N],
) -> Result<(), Verdict> {
    let unread = written.into_iter().find(|(member, there)| *there && !read.contains(member));
    let Some((member, _)) = unread else { return Ok(()) };
    let wanted = if read.is_empty() { "no other member".to_owned() } else { listed(read.iter().copied()) };
    Err(Verdict::error(format!("{check} does not read `{member}`, it reads: {wanted}"))
        .evidence(wanted.as_str(), member)
        .suggest(format!("take `{member}` out of the spec, or use what {check} reads: {wanted}")))
}

/// Limit of names of a list that are shown.
const SHOWN: usize = 20;

/// Limit of bytes of one name that are shown.
const NAME: usize = 60;

/// A name that is short enough to be shown.
pub(crate) fn brief(name: &str) -> Cow<'_, str> {
    match name.get(..name.floor_char_boundary(NAME)) {
        Some("") => Cow::Borrowed("(no name)"),
        Some(start) if start.len() < name.len() => Cow::Owned(format!("{start}…")),
        _ => Cow::Borrowed(name),
    }
}

/// The name of a step and, if there is one, its other name, short enough to be shown.
pub(crate) fn names_of<'s>(step: &'s Step<'_>) -> Cow<'s, str> {
    if step.alias.is_empty() || step.alias == step.name {
        return brief(&step.name);
    }
    Cow::Owned(format!("{} ({})", brief(&step.name), brief(&step.alias)))
}

/// Names as a list that is short enough to be shown.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut shown = NamePreview::default();
    for name in names {
        shown.note(name);
    }
    shown.to_string()
}

/// The first names of a sequence, and how many there are.
#[derive(Default)]
pub(crate) struct NamePreview {
    first: Vec<String>,
    total: usize,
}

impl NamePreview {
    pub(crate) fn note(&mut self, name: &str) {
        self.add(|| brief(name));
    }

    pub(crate) fn note_step(&mut self, step: &Step<'_>) {
        self.add(|| names_of(step));
    }

    fn add<'n>(&mut self, name: impl FnOnce() -> Cow<'n, str>) {
        if self.first.len() < SHOWN {
            self.first.push(name().into_owned());
        }
        self.total = self.total.saturating_add(1);
    }
}

impl fmt::Display for NamePreview {
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

/// A count with its noun.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}
