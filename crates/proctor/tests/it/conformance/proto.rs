//! Protocol buffers as JSON: the project's own `.proto` files, read when the tests run.
//!
//! Enumerations are written by name, bytes as text, or as `hex:…` if they are no text. An answer has every member without presence, also
//! if it has its default value.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

use proctor_core::hex;
use proctor_core::json::Json;
use protox::prost_reflect::prost::Message as _;
use protox::prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, MethodDescriptor,
    ReflectMessage as _, Value,
};

const FILES: [&str; 7] = [
    "agent.proto",
    "approval.proto",
    "audit.proto",
    "invalidation.proto",
    "policy.proto",
    "topology.proto",
    "proctor/ahp/v1/harness.proto",
];

/// A message that cannot be built or read.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error("there is no method `{0}`")]
    Method(String),
    #[error("`{message}` has no field `{field}`")]
    Field { message: String, field: String },
    #[error("`{field}` cannot be {value}")]
    Value { field: String, value: String },
    #[error("the answer cannot be read: {0}")]
    Answer(#[from] protox::prost_reflect::prost::DecodeError),
}

/// The method that a case calls: `PolicyService/CheckAction`.
pub fn method(name: &str) -> Result<MethodDescriptor, MessageError> {
    let (service, method) = name.split_once('/').unwrap_or((name, ""));
    let service = pool().services().find(|candidate| candidate.name() == service);
    service
        .and_then(|service| service.methods().find(|candidate| candidate.name() == method))
        .ok_or_else(|| MessageError::Method(name.to_owned()))
}

fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folders = [crates.join("wire/proto/assembly"), crates.join("clients/proto")];
        let mut compiler = protox::Compiler::new(folders).unwrap();
        compiler.include_imports(true).open_files(FILES).unwrap();
        compiler.descriptor_pool()
    })
}

/// The bytes of a message.
pub fn encode(descriptor: &MessageDescriptor, json: &Json) -> Result<Vec<u8>, MessageError> {
    Ok(message(descriptor, json)?.encode_to_vec())
}

/// The message in these bytes.
pub fn decode(descriptor: MessageDescriptor, bytes: &[u8]) -> Result<Json, MessageError> {
    Ok(message_json(&DynamicMessage::decode(descriptor, bytes)?))
}

fn message(descriptor: &MessageDescriptor, json: &Json) -> Result<DynamicMessage, MessageError> {
    let members = json.as_object().ok_or_else(|| MessageError::Value {
        field: descriptor.name().to_owned(),
        value: json.to_string(),
    })?;
    let mut message = DynamicMessage::new(descriptor.clone());
    for (name, member) in members {
        let field = descriptor.get_field_by_name(name).ok_or_else(|| MessageError::Field {
            message: descriptor.name().to_owned(),
            field: name.clone(),
        })?;
        message.set_field(&field, field_value(&field, member)?);
    }
    Ok(message)
}

fn field_value(field: &FieldDescriptor, json: &Json) -> Result<Value, MessageError> {
    let refused = || MessageError::Value { field: field.name().to_owned(), value: json.to_string() };
    if field.is_map() {
        let members = json.as_object().ok_or_else(refused)?;
        let Kind::Message(entry) = field.kind() else { return Err(refused()) };
        let value = entry.map_entry_value_field();
        let entries = members.iter().map(|(name, member)| {
            Ok((MapKey::String(name.clone()), scalar(&value, member).ok_or_else(refused)?))
        });
        return Ok(Value::Map(entries.collect::<Result<HashMap<_, _>, MessageError>>()?));
    }
    if field.is_list() {
        let items = json.as_array().ok_or_else(refused)?;
        return Ok(Value::List(items.iter().map(|item| single(field, item)).collect::<Result<_, _>>()?));
    }
    single(field, json)
}

fn single(field: &FieldDescriptor, json: &Json) -> Result<Value, MessageError> {
    if let Kind::Message(descriptor) = field.kind() {
        return Ok(Value::Message(message(&descriptor, json)?));
    }
    scalar(field, json)
        .ok_or_else(|| MessageError::Value { field: field.name().to_owned(), value: json.to_string() })
}

fn scalar(field: &FieldDescriptor, json: &Json) -> Option<Value> {
    Some(match field.kind() {
        Kind::String => Value::String(json.as_str()?.to_owned()),
        Kind::Bytes => Value::Bytes(bytes(json.as_str()?)?.into()),
        Kind::Bool => Value::Bool(json.as_bool()?),
        Kind::Enum(values) => match json.as_str() {
            Some(name) => Value::EnumNumber(values.get_value_by_name(name)?.number()),
            None => Value::EnumNumber(i32::try_from(json.as_i64()?).ok()?),
        },
        Kind::Int32 | Kind::Sint32 => Value::I32(i32::try_from(json.as_i64()?).ok()?),
        Kind::Int64 | Kind::Sint64 => Value::I64(json.as_i64()?),
        Kind::Uint32 => Value::U32(u32::try_from(json.as_u64()?).ok()?),
        Kind::Uint64 => Value::U64(json.as_u64()?),
        _ => return None,
    })
}

/// The bytes of a text, or of `hex:…`.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    match text.strip_prefix("hex:") {
        Some(digits) => hex::decode(digits).ok(),
        None => Some(text.as_bytes().to_vec()),
    }
}

/// Bytes as a text, or as `hex:…`.
pub fn bytes_text(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains(char::is_control));
    text.map_or_else(|| format!("hex:{}", hex::encode(bytes)), str::to_owned)
}

fn message_json(message: &DynamicMessage) -> Json {
    let mut json = Json::object();
    for field in message.descriptor().fields() {
        if message.has_field(&field) || !field.supports_presence() {
            json.push(field.name(), value_json(&field, &message.get_field(&field)));
        }
    }
    json
}

fn value_json(field: &FieldDescriptor, value: &Value) -> Json {
    match value {
        Value::Bool(value) => Json::from(*value),
        Value::I32(value) => number(value),
        Value::I64(value) => number(value),
        Value::U32(value) => number(value),
        Value::U64(value) => number(value),
        Value::F32(value) => number(value),
        Value::F64(value) => number(value),
        Value::String(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => Json::from(bytes_text(bytes)),
        Value::EnumNumber(found) => match field.kind() {
            Kind::Enum(values) => {
                values.get_value(*found).map_or_else(|| number(found), |value| Json::from(value.name()))
            }
            _ => number(found),
        },
        Value::Message(message) => message_json(message),
        Value::List(items) => Json::Array(items.iter().map(|item| value_json(field, item)).collect()),
        Value::Map(entries) => {
            let Kind::Message(entry) = field.kind() else { return Json::Null };
            let value = entry.map_entry_value_field();
            let mut members: Vec<(String, Json)> = entries
                .iter()
                .map(|(key, member)| {
                    (key.as_str().unwrap_or_default().to_owned(), value_json(&value, member))
                })
                .collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Json::Object(members)
        }
    }
}

fn number(value: &impl ToString) -> Json {
    Json::Number(value.to_string().into())
}
