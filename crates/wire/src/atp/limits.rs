//! Limits of messages. Those that the document's schemas have bind in both modes, the others only in runs.

/// Bytes of one message on any transport: a longer one is cut off before it is parsed.
pub const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// Nesting of arrays and objects in a message.
pub const MAX_DEPTH: usize = proctor_core::json::MAX_DEPTH;
/// Values of one message, containers included: a value costs up to twenty times the memory of the bytes it is written with.
pub const MAX_VALUES: usize = 1_000_000;
/// Characters of a task id that is no UUID.
pub const MAX_TASK_ID: usize = 128;
/// Characters of a description by the document's schema.
pub const MAX_DESCRIPTION_STRICT: usize = 10_000;
/// Characters of a description in a run, as in the released platform.
pub const MAX_DESCRIPTION: usize = 100_000;
/// Characters of a path, of `workspace_path` and of `tools_endpoint`: `PATH_MAX` of Linux.
pub const MAX_PATH: usize = 4_096;
/// `constraints.max_steps`.
pub const MAX_STEPS: u64 = 1_000;
/// `constraints.max_tokens`.
pub const MAX_TOKENS: u64 = 10_000_000;
/// `constraints.timeout_seconds`: a day.
pub const MAX_TIMEOUT_SECONDS: u64 = 86_400;
/// The wall-clock limit of a request that names none.
pub const DEFAULT_TIMEOUT_SECONDS: u64 = 300;
/// Entries of `context.environment`.
pub const MAX_ENVIRONMENT: usize = 100;
/// Top-level members of `metadata`.
pub const MAX_METADATA: usize = 50;
/// Artifacts of a response, and expected artifacts of a request.
pub const MAX_ARTIFACTS: usize = 1_000;
/// Characters of an artifact's inline content.
pub const MAX_CONTENT: usize = 10_000_000;
/// Characters of a content type.
pub const MAX_CONTENT_TYPE: usize = 256;
/// Characters of a content hash.
pub const MAX_CONTENT_HASH: usize = 128;
/// Characters of a structured artifact's name.
pub const MAX_ARTIFACT_NAME: usize = 256;
/// Characters of `error` of a response.
pub const MAX_ERROR: usize = 10_000;
/// Characters of `error_code`. Ours: codes are short words.
pub const MAX_ERROR_CODE: usize = 128;
/// Characters of `trace_id`.
pub const MAX_TRACE_ID: usize = 256;
/// Characters of a tool's name. Ours: names of tools become keys of tables and metrics.
pub const MAX_TOOL_NAME: usize = 256;
/// Events of one conversation; more are counted and dropped.
pub const MAX_EVENTS: usize = 100_000;
/// Bytes of text of all events that a conversation keeps: bounds its memory where the limits of single messages do not.
pub const MAX_EVENT_BYTES: usize = 128 * 1024 * 1024;
/// Values in all events that a conversation keeps, for the same reason as [`MAX_VALUES`].
pub const MAX_EVENT_VALUES: usize = 4_000_000;
/// Problems and warnings that are listed one by one; the others are counted. Their number is the sender's choice.
pub const MAX_LISTED: usize = 100;
