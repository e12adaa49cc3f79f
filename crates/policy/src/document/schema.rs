//! The JSON Schema of the document, for editors and other tools. The reader is stricter where a schema cannot say it.

/// The schema, JSON Schema draft-07.
pub const SCHEMA: &str = include_str!("../../../../schemas/policy/v1/policy-document.schema.json");
