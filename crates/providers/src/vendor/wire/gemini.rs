//! The Gemini API.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::error::ProviderError;
use super::super::exchange::{ChatRequest, Role};
use super::{Answer, cut_short, parse, withheld};

pub(super) fn chat(request: &ChatRequest) -> Value {
    let mut instructions = Vec::new();
    if !request.system.is_empty() {
        instructions.push(json!({"text": request.system}));
    }
    let mut contents = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        let part = json!({"text": message.content});
        match message.role {
            Role::User => contents.push(json!({"role": "user", "parts": [part]})),
            Role::Assistant => contents.push(json!({"role": "model", "parts": [part]})),
            // There is one place for instructions, outside the conversation.
            Role::System => instructions.push(part),
        }
    }
    let mut body = Map::from_iter([
        ("contents".to_owned(), json!(contents)),
        (
            "generationConfig".to_owned(),
            json!({"temperature": request.temperature, "maxOutputTokens": request.max_tokens}),
        ),
    ]);
    if !instructions.is_empty() {
        body.insert("system_instruction".to_owned(), json!({"parts": instructions}));
    }
    Value::Object(body)
}

pub(super) fn chat_reply(body: &[u8]) -> Result<Answer, ProviderError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Reply {
        model_version: Option<String>,
        #[serde(default)]
        candidates: Vec<Candidate>,
        prompt_feedback: Option<Feedback>,
        usage_metadata: Option<Usage>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Candidate {
        content: Option<Content>,
        finish_reason: Option<String>,
    }
    #[derive(Deserialize)]
    struct Content {
        #[serde(default)]
        parts: Vec<Part>,
    }
    #[derive(Deserialize)]
    struct Part {
        text: Option<String>,
        #[serde(default)]
        thought: bool,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Feedback {
        block_reason: Option<String>,
    }
    #[derive(Deserialize)]
    struct Usage {
        #[serde(rename = "promptTokenCount")]
        prompt: Option<u64>,
        #[serde(rename = "candidatesTokenCount")]
        candidates: Option<u64>,
        #[serde(rename = "thoughtsTokenCount")]
        thoughts: Option<u64>,
    }

    let reply: Reply = parse(body)?;
    if let Some(reason) = reply.prompt_feedback.and_then(|feedback| feedback.block_reason) {
        return Err(withheld(&reason));
    }
    let candidate = reply.candidates.into_iter().next();
    let candidate =
        candidate.ok_or_else(|| ProviderError::Unreadable("it holds no candidates".to_owned()))?;
    match candidate.finish_reason.as_deref() {
        None | Some("STOP" | "FINISH_REASON_UNSPECIFIED") => {}
        Some(reason @ "MAX_TOKENS") => return Err(cut_short(reason)),
        // All others are filters, or calls of tools that were not offered.
        Some(reason) => return Err(withheld(reason)),
    }
    let parts = candidate.content.map(|content| content.parts).unwrap_or_default();
    let usage = reply.usage_metadata;
    Ok(Answer {
        text: parts.into_iter().filter(|part| !part.thought).filter_map(|part| part.text).collect(),
        model: reply.model_version,
        input_tokens: usage.as_ref().and_then(|usage| usage.prompt),
        // Thoughts are counted apart, and cost what the answer costs.
        output_tokens: usage
            .as_ref()
            .and_then(|usage| Some(usage.candidates?.saturating_add(usage.thoughts.unwrap_or(0)))),
    })
}
