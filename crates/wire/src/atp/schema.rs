//! The document's JSON Schemas and the gRPC definition, as texts.

/// JSON Schema (draft 7) of a request.
pub const REQUEST: &str = include_str!("../../../../schemas/atp/v1/request.schema.json");
/// JSON Schema (draft 7) of a response.
pub const RESPONSE: &str = include_str!("../../../../schemas/atp/v1/response.schema.json");
/// JSON Schema (draft 7) of an event.
pub const EVENT: &str = include_str!("../../../../schemas/atp/v1/event.schema.json");
/// gRPC service `proctor.atp.v1.Agent` in protocol buffers version 3.
pub const PROTO: &str = include_str!("../../../../schemas/atp/v1/agent.proto");
