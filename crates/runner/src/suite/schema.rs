//! The JSON Schema of suites, for editors and other tools. The loader is stricter where a schema cannot say it.

/// The schema, JSON Schema draft-07.
pub const SCHEMA: &str = include_str!("../../../../schemas/atp/v1/suite.schema.json");

#[cfg(test)]
mod tests;
