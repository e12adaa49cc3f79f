//! Vendor-neutral requests and replies.

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The system prompt.
    System,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The role.
    pub role: Role,
    /// The text.
    pub content: String,
}

impl Message {
    /// A user message.
    pub fn user(content: impl Into<String>) -> Message {
        Message { role: Role::User, content: content.into() }
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<String>) -> Message {
        Message { role: Role::Assistant, content: content.into() }
    }
}

/// A conversation to be continued by a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The vendor's name of the model.
    pub model: String,
    /// The instructions that stand before the conversation; empty is none.
    pub system: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Sampling temperature, from 0. Models that accept no such setting are asked without it.
    pub temperature: f64,
    /// Length limit of the answer in tokens. Models that think before they answer spend their thoughts from it as well.
    pub max_tokens: u32,
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatReply {
    /// The reply's text; never empty.
    pub text: String,
    /// The model that answered, as the server names it; the one that was asked if the server does not say.
    pub model: String,
    /// Number of input tokens, if the server says.
    pub input_tokens: Option<u64>,
    /// Number of output tokens (thoughts included), if the server says.
    pub output_tokens: Option<u64>,
}

/// Vectors of texts, in the order of the texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Vectors {
    /// The vectors: finite numbers, all of the same length, none empty.
    pub vectors: Vec<Vec<f32>>,
    /// The model that made them, as the server names it.
    pub model: String,
    /// Number of input tokens, if the server says.
    pub tokens: Option<u64>,
}
