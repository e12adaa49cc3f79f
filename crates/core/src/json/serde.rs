//! `Json` and serde: other people's types read from a `Json`, and a `Json` inside them.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer, forward_to_deserialize_any};
use serde_json::value::RawValue;

use super::Json;

/// A `Json` that does not fit a type, with the pointer to the mismatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeError {
    /// The RFC 6901 pointer to the position, from the inside out until it is complete.
    path: Vec<String>,
    message: String,
}

/// The failure to write a type as a [`Json`].
#[derive(Debug, thiserror::Error)]
pub enum FromTypeError {
    /// The type's own serialisation failed.
    #[error(transparent)]
    Serialise(#[from] serde_json::Error),
    /// The serialised text exceeds the limits of [`Json`].
    #[error(transparent)]
    Parse(#[from] super::JsonError),
}

impl Json {
    /// Reads a type from this value. The error names the place.
    ///
    /// ```
    /// use proctor_core::json::Json;
    /// let value = Json::parse(br#"{"size": [1, "two"]}"#).unwrap();
    /// let sizes = value.read::<std::collections::BTreeMap<String, Vec<u32>>>();
    /// assert!(sizes.unwrap_err().to_string().ends_with("at /size/1"));
    /// ```
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ShapeError> {
        T::deserialize(self)
    }

    /// Writes any type as a `Json`.
    pub fn from_type<T: Serialize + ?Sized>(value: &T) -> Result<Json, FromTypeError> {
        Ok(Json::parse(&serde_json::to_vec(value)?)?)
    }
}

impl ShapeError {
    fn at(mut self, step: impl fmt::Display) -> ShapeError {
        self.path.push(step.to_string());
        self
    }

    /// The RFC 6901 pointer to the position; empty for the whole value.
    pub fn pointer(&self) -> String {
        let steps = self.path.iter().rev();
        steps.map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
    }
}

impl fmt::Display for ShapeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)?;
        if self.path.is_empty() { Ok(()) } else { write!(formatter, " at {}", self.pointer()) }
    }
}

impl std::error::Error for ShapeError {}

impl serde::de::Error for ShapeError {
    fn custom<T: fmt::Display>(message: T) -> ShapeError {
        ShapeError { path: Vec::new(), message: message.to_string() }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Number(literal) => match (literal.parse::<u64>(), literal.parse::<i64>()) {
                // `-0` is not `0` to everybody.
                _ if literal.starts_with("-0") => number(literal, serializer),
                (Ok(value), _) => serializer.serialize_u64(value),
                (_, Ok(value)) => serializer.serialize_i64(value),
                _ => number(literal, serializer),
            },
            Json::String(text) => serializer.serialize_str(text),
            Json::Array(items) => {
                let mut out = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    out.serialize_element(item)?;
                }
                out.end()
            }
            Json::Object(members) => {
                let mut out = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    out.serialize_entry(name, value)?;
                }
                out.end()
            }
        }
    }
}

/// A number that is no machine integer, written with its own digits.
fn number<S: Serializer>(literal: &str, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(literal.to_owned()).map_err(S::Error::custom)?.serialize(serializer)
}

/// By this name a `Json` asks for a value as it is. A `Json` that it is read from then gives numbers as their literal
/// text, as bytes, which no JSON text can; every other source takes it for an ordinary newtype.
const AS_IT_IS: &str = "$proctor_core::json::Json";

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_newtype_struct(AS_IT_IS, JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bytes<E: serde::de::Error>(self, literal: &[u8]) -> Result<Json, E> {
        match Json::parse(literal) {
            Ok(number @ Json::Number(_)) => Ok(number),
            _ => Err(E::invalid_type(Unexpected::Bytes(literal), &self)),
        }
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_none<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        Json::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        let literal = serde_json::to_string(&value).map_err(E::custom)?;
        if value.is_finite() {
            Ok(Json::Number(literal.into()))
        } else {
            Err(E::invalid_value(Unexpected::Float(value), &self))
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(Json::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element()? {
            out.push(item);
        }
        Ok(Json::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut out: Vec<(String, Json)> = Vec::new();
        while let Some((name, value)) = members.next_entry::<String, Json>()? {
            out.push((name, value));
        }
        if let Some(name) = duplicate(&out) {
            return Err(serde::de::Error::custom(format!("duplicate member `{name}`")));
        }
        Ok(Json::Object(out))
    }
}

fn duplicate(members: &[(String, Json)]) -> Option<&str> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.iter().zip(names.iter().skip(1)).find(|(one, next)| one == next).map(|(name, _)| *name)
}

impl<'de> Deserializer<'de> for &'de Json {
    type Error = ShapeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self {
            Json::Null => visitor.visit_unit(),
            Json::Bool(value) => visitor.visit_bool(*value),
            Json::Number(literal) => match (literal.parse::<u64>(), literal.parse::<i64>()) {
                (Ok(value), _) => visitor.visit_u64(value),
                (_, Ok(value)) => visitor.visit_i64(value),
                _ => match literal.parse::<f64>() {
                    Ok(value) => visitor.visit_f64(value),
                    Err(_) => Err(serde::de::Error::custom("not a number")),
                },
            },
            Json::String(text) => visitor.visit_borrowed_str(text),
            Json::Array(items) => visitor.visit_seq(Items { rest: items.iter(), next: 0 }),
            Json::Object(members) => visitor.visit_map(Members { rest: members.iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        if self.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        match self {
            Json::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Json::Object(members) => match members.as_slice() {
                [(name, value)] => visitor.visit_enum(Variant { name, value }),
                _ => Err(serde::de::Error::invalid_value(
                    Unexpected::Map,
                    &"an object with exactly one member, which names the variant",
                )),
            },
            other => Err(serde::de::Error::custom(format!(
                "expected a name or an object, found {}",
                other.type_name()
            ))),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        match self {
            Json::Number(literal) if name == AS_IT_IS => visitor.visit_bytes(literal.as_bytes()),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    /// Members by position are refused: rules that look for them by name would see none.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        match self {
            Json::Array(_) => Err(serde::de::Error::invalid_type(Unexpected::Seq, &"an object")),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        match self {
            Json::Number(literal) if !literal.parse::<f64>().is_ok_and(f64::is_finite) => {
                Err(serde::de::Error::custom("number out of range"))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ShapeError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

struct Items<'de> {
    rest: std::slice::Iter<'de, Json>,
    next: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = ShapeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ShapeError> {
        let Some(item) = self.rest.next() else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(item).map(Some).map_err(|error| error.at(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Members<'de> {
    rest: std::slice::Iter<'de, (String, Json)>,
    value: Option<(&'de str, &'de Json)>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = ShapeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ShapeError> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some((name, value));
        seed.deserialize(name.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ShapeError> {
        match self.value.take() {
            Some((name, value)) => seed.deserialize(value).map_err(|error| error.at(name)),
            None => Err(serde::de::Error::custom("a value was asked for before its name")),
        }
    }
}

struct Variant<'de> {
    name: &'de str,
    value: &'de Json,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = ShapeError;
    type Variant = VariantContent<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, VariantContent<'de>), ShapeError> {
        let name = seed.deserialize(self.name.into_deserializer())?;
        Ok((name, VariantContent { name: self.name, value: self.value }))
    }
}

struct VariantContent<'de> {
    name: &'de str,
    value: &'de Json,
}

impl<'de> VariantAccess<'de> for VariantContent<'de> {
    type Error = ShapeError;

    fn unit_variant(self) -> Result<(), ShapeError> {
        if self.value.is_null() {
            Ok(())
        } else {
            Err(serde::de::Error::custom(format!("`{}` takes no value", self.name)))
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ShapeError> {
        seed.deserialize(self.value).map_err(|error| error.at(self.name))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, ShapeError> {
        self.value.deserialize_any(visitor).map_err(|error| error.at(self.name))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ShapeError> {
        self.value.deserialize_struct("", fields, visitor).map_err(|error| error.at(self.name))
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Json {
        match value {
            serde_json::Value::Null => Json::Null,
            serde_json::Value::Bool(value) => Json::Bool(value),
            serde_json::Value::Number(number) => Json::Number(number.to_string().into()),
            serde_json::Value::String(text) => Json::String(text),
            serde_json::Value::Array(items) => Json::Array(items.into_iter().map(Json::from).collect()),
            serde_json::Value::Object(members) => {
                Json::Object(members.into_iter().map(|(name, value)| (name, Json::from(value))).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests;
