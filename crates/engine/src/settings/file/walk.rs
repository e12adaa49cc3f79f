//! Deserializer over a parsed TOML document that knows where it is.

use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, Expected, IntoDeserializer as _, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::{Notes, Problem};

/// A value of the document.
pub(super) struct Walker<'w, 'i> {
    pub(super) value: &'w DeValue<'i>,
    /// Offset of the value.
    pub(super) offset: usize,
    /// Dotted path of the value's key.
    pub(super) path: String,
    pub(super) notes: &'w Notes,
}

/// Error of reading a value. Its place is filled in on the way up.
#[derive(Debug)]
pub(super) struct Failed {
    // Boxed: results of every value carry it.
    pub(super) problem: Box<Problem>,
    /// Offset of the value.
    pub(super) offset: Option<usize>,
    /// Offset of the key that the document can be read without.
    pub(super) key_offset: Option<usize>,
    /// Path of that key.
    pub(super) path: String,
}

impl Failed {
    fn new(problem: Problem) -> Failed {
        Failed { problem: Box::new(problem), offset: None, key_offset: None, path: String::new() }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.problem.fmt(out)
    }
}

impl std::error::Error for Failed {}

impl de::Error for Failed {
    fn custom<T: Display>(reason: T) -> Failed {
        Failed::new(Problem::Unusable { key: String::new(), reason: reason.to_string() })
    }

    fn invalid_value(found: Unexpected<'_>, _: &dyn Expected) -> Failed {
        let reason = match found {
            Unexpected::Signed(number) => format!("{number} is out of range"),
            Unexpected::Unsigned(number) => format!("{number} is out of range"),
            _ => "the value cannot be used".to_owned(),
        };
        de::Error::custom(reason)
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Failed {
        Failed::new(Problem::UnknownWord { key: String::new(), word: word.to_owned(), known })
    }

    fn missing_field(missing: &'static str) -> Failed {
        Failed::new(Problem::Missing { table: String::new(), missing })
    }
}

impl Walker<'_, '_> {
    fn wrong_type(&self, expected: &'static str) -> Failed {
        let found = match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        Failed::new(Problem::WrongType { key: String::new(), expected, found })
    }

    fn text(&self) -> Result<&str, Failed> {
        self.value.as_str().ok_or_else(|| self.wrong_type("a string"))
    }

    /// Fills in path and offset where the value itself is wrong, and not a part of it.
    fn placed<T>(&self, read: Result<T, Failed>) -> Result<T, Failed> {
        read.map_err(|mut failed| {
            if failed.offset.is_none() && failed.key_offset.is_none() {
                failed.offset = Some(self.offset);
                match &mut *failed.problem {
                    Problem::WrongType { key, .. }
                    | Problem::UnknownWord { key, .. }
                    | Problem::Unusable { key, .. } => key.clone_from(&self.path),
                    Problem::Missing { table, .. } => table.clone_from(&self.path),
                    Problem::Syntax(_) | Problem::UnknownKey { .. } => {}
                }
            }
            failed
        })
    }

    /// Visits the entries of a table, except unknown ones if its keys are known.
    fn visit_table<'de, V: Visitor<'de>>(
        &self,
        known: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        let DeValue::Table(table) = self.value else { return Err(self.wrong_type("a table")) };
        let mut entries = Vec::new();
        for (key, value) in table {
            let offset = key.span().start;
            if let Some(known) = known.filter(|known| !known.iter().any(|name| *name == key.get_ref())) {
                let (key, table) = (key.get_ref().to_string(), self.path.clone());
                self.notes.add(offset, Problem::UnknownKey { key, table, known });
            } else if !self.notes.left_out.borrow().contains(&offset) {
                entries.push((key, value));
            }
        }
        visitor.visit_map(Entries { table: self, rest: entries.into_iter(), value: None })
    }
}

impl<'de> Deserializer<'de> for Walker<'_, '_> {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let read = match self.value {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            DeValue::Integer(_) => return self.deserialize_u64(visitor),
            DeValue::Array(_) => return self.deserialize_seq(visitor),
            DeValue::Table(_) => self.visit_table(None, visitor),
            DeValue::Float(_) | DeValue::Datetime(_) => Err(self.wrong_type("another type")),
        };
        self.placed(read)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let number = self.value.as_integer().ok_or_else(|| self.wrong_type("a whole number"));
        let read = number.and_then(|number| match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => visitor.visit_i64(number),
            Err(_) => Err(de::Error::custom("the number is out of range")),
        });
        self.placed(read)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let value = self.value.as_bool().ok_or_else(|| self.wrong_type("`true` or `false`"));
        let read = value.and_then(|value| visitor.visit_bool(value));
        self.placed(read)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let read = self.text().and_then(|text| visitor.visit_str(text));
        self.placed(read)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        let read = self.text().and_then(|text| {
            let word: StrDeserializer<'_, Failed> = text.into_deserializer();
            visitor.visit_enum(word)
        });
        self.placed(read)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let read = match self.value {
            DeValue::Array(items) => {
                let items = items.iter().enumerate().map(|(index, item)| Walker {
                    value: item.get_ref(),
                    offset: item.span().start,
                    path: format!("{}[{index}]", self.path),
                    notes: self.notes,
                });
                visitor.visit_seq(Items(items))
            }
            _ => Err(self.wrong_type("a list")),
        };
        self.placed(read)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        let read = self.visit_table(None, visitor);
        self.placed(read)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        let read = self.visit_table(Some(fields), visitor);
        self.placed(read)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 f32 f64 char bytes byte_buf unit unit_struct newtype_struct
        tuple tuple_struct identifier ignored_any
    }
}

type Entry<'w, 'i> = (&'w Spanned<DeString<'i>>, &'w Spanned<DeValue<'i>>);

/// Entries of a table.
struct Entries<'w, 'i> {
    table: &'w Walker<'w, 'i>,
    rest: std::vec::IntoIter<Entry<'w, 'i>>,
    value: Option<Entry<'w, 'i>>,
}

impl<'de> de::MapAccess<'de> for Entries<'_, '_> {
    type Error = Failed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failed> {
        self.value = self.rest.next();
        let Some((key, _)) = self.value else { return Ok(None) };
        let key: StrDeserializer<'_, Failed> = (&**key.get_ref()).into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Failed> {
        let Some((key, value)) = self.value.take() else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        let parent = &self.table.path;
        let path =
            if parent.is_empty() { key.get_ref().to_string() } else { format!("{parent}.{}", key.get_ref()) };
        let notes = self.table.notes;
        let offset = value.span().start;
        seed.deserialize(Walker { value: value.get_ref(), offset, path: path.clone(), notes }).map_err(
            |mut failed| {
                if failed.key_offset.is_none() {
                    failed.key_offset = Some(key.span().start);
                    failed.path = path;
                }
                failed
            },
        )
    }
}

/// Items of a list.
struct Items<I>(I);

impl<'de, 'w, 'i: 'w, I: Iterator<Item = Walker<'w, 'i>>> de::SeqAccess<'de> for Items<I> {
    type Error = Failed;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Failed> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }
}
