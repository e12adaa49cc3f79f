//! Rows: the state as opaque text. A value is a JSON array that begins with the version; a key is unique in its fold.

use std::fmt::Write;

use proctor_core::canonical;
use proctor_core::json::Json;

/// A changed row of the state. The ledger saves it in the transaction of the record that changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The part of the state that the row belongs to.
    pub fold: &'static str,
    /// Key within that fold.
    pub key: String,
    /// New value; `None`: the row is deleted.
    pub value: Option<Vec<u8>>,
}

impl Row {
    pub(super) fn put(fold: &'static str, key: &str, value: Text) -> Row {
        Row { fold, key: key.to_owned(), value: Some(value.finish()) }
    }

    pub(super) fn delete(fold: &'static str, key: &str) -> Row {
        Row { fold, key: key.to_owned(), value: None }
    }
}

/// A saved row that cannot be read: the state has to be built again from the records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("saved state is damaged: {problem} in row `{key}` of `{fold}`: rebuild it from the records")]
pub struct StateDamage {
    /// The part of the state.
    pub fold: String,
    /// The row's key.
    pub key: String,
    /// Description of the problem.
    pub problem: &'static str,
}

/// Writes a row's value: a JSON array, version first.
pub(super) struct Text(String);

impl Text {
    pub(super) fn new() -> Text {
        Text("[1".to_owned())
    }

    #[must_use]
    pub(super) fn int(mut self, number: impl Into<i128>) -> Text {
        self.comma();
        push_int(&mut self.0, number.into());
        self
    }

    #[must_use]
    pub(super) fn text(mut self, text: &str) -> Text {
        self.comma();
        canonical::string(text, &mut self.0);
        self
    }

    #[must_use]
    pub(super) fn list<T>(
        mut self,
        items: impl IntoIterator<Item = T>,
        write: impl Fn(Text, T) -> Text,
    ) -> Text {
        self.comma();
        self.0.push('[');
        for item in items {
            self = write(self, item);
        }
        self.0.push(']');
        self
    }

    fn comma(&mut self) {
        if !self.0.ends_with('[') {
            self.0.push(',');
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.push(']');
        self.0.into_bytes()
    }
}

/// Rows are written for every record and are mostly integers, nearly all of them short.
fn push_int(out: &mut String, number: i128) {
    let Ok(mut rest) = u64::try_from(number.unsigned_abs()) else {
        // Writing to a String cannot fail.
        let _ = write!(out, "{number}");
        return;
    };
    if number < 0 {
        out.push('-');
    }
    let mut digits = ['0'; 20];
    let mut count = 0;
    for digit in &mut digits {
        *digit = char::from(b'0' + u8::try_from(rest % 10).unwrap_or(0));
        rest /= 10;
        count += 1;
        if rest == 0 {
            break;
        }
    }
    out.extend(digits.iter().take(count).rev());
}

/// Reads a row's value, item by item. Every method gives `None` if the next item is not what was expected.
pub(super) struct Items<'a>(std::slice::Iter<'a, Json>);

impl<'a> Items<'a> {
    /// The items after the version.
    pub(super) fn of(value: &'a Json) -> Option<Items<'a>> {
        let mut items = value.as_array()?.iter();
        (items.next()?.as_u64()? == 1).then_some(Items(items))
    }

    pub(super) fn int<T: TryFrom<i128>>(&mut self) -> Option<T> {
        int(self.0.next()?)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        self.0.next()?.as_str()
    }

    /// A list of integers, whole.
    pub(super) fn ints<T: TryFrom<i128>>(&mut self) -> Option<Vec<T>> {
        self.0.next()?.as_array()?.iter().map(int).collect()
    }

    /// Checks that no item is left.
    pub(super) fn end(mut self) -> Option<()> {
        self.0.next().is_none().then_some(())
    }
}

fn int<T: TryFrom<i128>>(item: &Json) -> Option<T> {
    match item {
        Json::Number(text) => T::try_from(text.parse::<i128>().ok()?).ok(),
        _ => None,
    }
}

/// A key part in its one spelling, in quotes, so that parts cannot run together.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    canonical::string(text, &mut out);
    out
}

/// Splits a quoted part off the front of a key: the text, and the rest.
pub(super) fn unquote(key: &str) -> Option<(String, &str)> {
    let inner = key.strip_prefix('"')?;
    let mut escaped = false;
    let end = inner.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })?;
    let literal = key.get(..end + 2)?;
    match Json::parse(literal.as_bytes()) {
        Ok(Json::String(text)) => Some((text, key.get(end + 2..)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quoted_parts_come_apart_again(parts in prop::collection::vec(any::<String>(), 1..4)) {
            let key: String = parts.iter().map(|part| quoted(part)).collect();
            let mut rest = key.as_str();
            for part in &parts {
                let (text, after) = unquote(rest).unwrap();
                prop_assert_eq!(&text, part);
                rest = after;
            }
            prop_assert_eq!(rest, "");
        }
    }

    proptest! {
        #[test]
        fn integers_are_written_as_ever(number in any::<i128>(), shift in 0u32..128) {
            for number in [number >> shift, 0, i128::MIN, i128::MAX, i128::from(u64::MAX)] {
                let mut out = String::new();
                push_int(&mut out, number);
                prop_assert_eq!(out, number.to_string());
            }
        }
    }

    #[test]
    fn values_come_apart_again() {
        let row =
            Row::put("f", "k", Text::new().int(-3).text("a\"").list([1u64, 2], Text::int).int(u64::MAX));
        let value = row.value.unwrap();
        assert_eq!(value, br#"[1,-3,"a\"",[1,2],18446744073709551615]"#);
        let json = Json::parse(&value).unwrap();
        let mut items = Items::of(&json).unwrap();
        assert_eq!(items.int::<i64>(), Some(-3));
        assert_eq!(items.text(), Some("a\""));
        assert_eq!(items.ints::<u64>(), Some(vec![1, 2]));
        assert!(!items.is_at_end());
        assert_eq!(items.int::<u32>(), None);
        assert_eq!(items.end(), Some(()));
    }
}
