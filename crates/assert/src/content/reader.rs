//! Reading the operands of a content check. A missing or unused member is an error: it must not make a check that
//! always passes.

use serde_json::value::RawValue;

use super::words::{MOST, Word, Words};
use super::{Written, lowered};
use crate::constraint::{Bound, Quantity};
use crate::spec;
use crate::text::Text;
use crate::verdict::Verdict;

/// Reads what one check is given.
pub(super) struct Reader<'w> {
    pub(super) written: &'w Written<'w>,
    pub(super) check: &'w str,
    pub(super) case_sensitive: bool,
}

impl Reader<'_> {
    /// Exactly one word.
    pub(super) fn one(&self) -> Result<Word, Verdict> {
        self.only(&["value"], "`value`")?;
        let text = self.value()?.ok_or_else(|| self.missing("value"))?;
        Ok(self.word(&text))
    }

    /// Reads one value, or a list that means each of its values; an empty list is the empty text.
    pub(super) fn one_or_more(&self) -> Result<Words, Verdict> {
        self.only(&["value", "values"], "`value` or `values`")?;
        let words = match (self.value()?, self.values()?) {
            (Some(_), Some(_)) => return Err(spec::both("value", "values", self.check)),
            (Some(text), None) => vec![self.word(&text)],
            (None, Some(words)) if words.is_empty() => vec![self.word("")],
            (None, Some(words)) => words,
            (None, None) => return Err(self.missing("value")),
        };
        Ok(Words::new(words))
    }

    /// Reads a list; a value alone is a list of one.
    pub(super) fn several(&self) -> Result<Words, Verdict> {
        self.only(&["value", "values"], "`values`")?;
        let words = match (self.value()?, self.values()?) {
            (Some(_), Some(_)) => return Err(spec::both("value", "values", self.check)),
            (Some(text), None) if text.is_empty() => {
                return Err(Verdict::error(format!("`value` of `{}` is empty", self.check))
                    .suggest("name the words in `values`"));
            }
            (Some(text), None) => vec![self.word(&text)],
            (None, Some(words)) => words,
            (None, None) => return Err(self.missing("values")),
        };
        Ok(Words::new(words))
    }

    /// The text of a pattern; `pattern` is another name for `value`.
    pub(super) fn pattern(&self) -> Result<String, Verdict> {
        self.only(&["value", "pattern"], "the pattern as `value` (or `pattern`)")?;
        let pattern = self.written.pattern.as_ref().map(Text::as_str);
        let value = self.value()?;
        let text = spec::either(value.as_deref(), pattern).ok_or_else(|| self.missing("value"))?;
        Ok(text.to_owned())
    }

    /// The bound of a count.
    pub(super) fn count(&self) -> Result<Bound, Verdict> {
        self.only(&["value", "min", "max", "operator"], "`min`, `max`, or `operator` and `value`")?;
        let Written { operator, op, .. } = self.written;
        let Written { value, min, max, .. } = *self.written;
        let number =
            |name: &str, raw: Option<&RawValue>| raw.map(|raw| Quantity::read(name, raw)).transpose();
        let (min, max) = (number("min", min)?, number("max", max)?);
        if let Some(operator) = spec::either(operator.as_ref(), op.as_ref()) {
            return Bound::read(operator, number("value", value)?, min, max);
        }
        if value.is_some() {
            return Err(spec::missing("operator", "`word_count` with a `value`"));
        }
        match (min, max) {
            (Some(min), Some(max)) => Bound::range(min, max),
            (Some(min), None) => Ok(Bound::AtLeast(min)),
            (None, Some(max)) => Ok(Bound::AtMost(max)),
            (None, None) => Err(spec::missing("min` or `max", "`word_count`")),
        }
    }

    /// Refuses what the check does not read.
    fn only(&self, read: &[&str], instead: &str) -> Result<(), Verdict> {
        let Written { value, values, pattern, min, max, operator, op, .. } = self.written;
        for (member, given) in [
            ("value", value.is_some()),
            ("values", values.is_some()),
            ("pattern", pattern.is_some()),
            ("min", min.is_some()),
            ("max", max.is_some()),
            ("operator", operator.is_some() || op.is_some()),
        ] {
            if given && !read.contains(&member) {
                return Err(spec::not_read(member, self.check, instead));
            }
        }
        Ok(())
    }

    fn value(&self) -> Result<Option<Text<'_>>, Verdict> {
        let Some(value) = self.written.value else { return Ok(None) };
        serde_json::from_str(value.get())
            .map(Some)
            .map_err(|_| Verdict::error("`value` is not a string").suggest("write `value` as a string"))
    }

    fn values(&self) -> Result<Option<Vec<Word>>, Verdict> {
        let Some(values) = &self.written.values else { return Ok(None) };
        if values.len() > MOST {
            return Err(Verdict::error(format!("`values` has {} words, more than {MOST}", values.len()))
                .suggest("use fewer words, or a pattern"));
        }
        let word = |(place, value): (usize, &Option<Text<'_>>)| match value {
            Some(text) => Ok(self.word(text)),
            None => Err(Verdict::error(format!("values[{place}] is null"))
                .suggest("write each of `values` as a string")),
        };
        values.iter().enumerate().map(word).collect::<Result<Vec<Word>, Verdict>>().map(Some)
    }

    fn word(&self, text: &str) -> Word {
        let searched = if self.case_sensitive { text.to_owned() } else { lowered(text).into_owned() };
        Word { written: text.to_owned(), searched }
    }

    fn missing(&self, member: &str) -> Verdict {
        spec::missing(member, &format!("`{}`", self.check))
    }
}
