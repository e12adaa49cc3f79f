//! The Anthropic Messages API.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::error::ProviderError;
use super::super::exchange::{ChatRequest, Role};
use super::{Answer, cut_short, not_a_text, parse, withheld};

pub(super) fn chat(request: &ChatRequest) -> Value {
    let mut system = request.system.clone();
    let mut messages = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            // There is one place for instructions, outside the conversation.
            Role::System => {
                if !system.is_empty() {
                    system.push_str("\n\n");
                }
                system.push_str(&message.content);
                continue;
            }
        };
        messages.push(json!({"role": role, "content": message.content}));
    }
    let mut body = Map::from_iter([
        ("model".to_owned(), json!(request.model)),
        ("max_tokens".to_owned(), json!(request.max_tokens)),
        ("messages".to_owned(), json!(messages)),
    ]);
    if !system.is_empty() {
        body.insert("system".to_owned(), json!(system));
    }
    if takes_temperature(&request.model) {
        body.insert("temperature".to_owned(), json!(request.temperature));
    }
    Value::Object(body)
}

/// Whether the model accepts a temperature: all up to 4.6 do, all later ones refuse it.
///
/// Decided by version, so that a new model works on the day it appears. Names are `claude-3-5-haiku-20241022` or
/// `claude-opus-4-7`; a name without a version is a new one (`claude-mythos-preview`), a name that is not Claude's belongs to
/// a compatible server.
fn takes_temperature(model: &str) -> bool {
    let Some(name) = model.strip_prefix("claude-") else { return true };
    let mut numbers = name
        .split(['-', '.', '@'])
        .skip_while(|part| part.parse::<u32>().is_err())
        // A date is no part of the version.
        .map_while(|part| part.parse::<u32>().ok().filter(|number| *number < 1_000));
    match (numbers.next(), numbers.next()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) < (4, 7),
        (None, _) => false,
    }
}

pub(super) fn chat_reply(body: &[u8]) -> Result<Answer, ProviderError> {
    #[derive(Deserialize)]
    struct Reply {
        model: Option<String>,
        content: Vec<Block>,
        stop_reason: Option<String>,
        usage: Option<Usage>,
    }
    #[derive(Deserialize)]
    struct Block {
        #[serde(rename = "type")]
        kind: String,
        text: Option<String>,
    }
    #[derive(Deserialize)]
    struct Usage {
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
    }

    let reply: Reply = parse(body)?;
    match reply.stop_reason.as_deref() {
        Some(reason @ ("max_tokens" | "model_context_window_exceeded")) => return Err(cut_short(reason)),
        Some(reason @ "refusal") => return Err(withheld(reason)),
        Some(reason @ ("tool_use" | "pause_turn")) => return Err(not_a_text(reason)),
        _ => {}
    }
    // Thoughts come as blocks of other kinds.
    let text = reply.content.into_iter().filter(|block| block.kind == "text").filter_map(|block| block.text);
    Ok(Answer {
        text: text.collect(),
        model: reply.model,
        input_tokens: reply.usage.as_ref().and_then(|usage| usage.input_tokens),
        output_tokens: reply.usage.as_ref().and_then(|usage| usage.output_tokens),
    })
}

#[cfg(test)]
mod tests {
    use super::takes_temperature;

    #[test]
    fn models_after_4_6_are_asked_without_a_temperature() {
        for model in [
            "claude-3-haiku-20240307",
            "claude-3-5-haiku-latest",
            "claude-sonnet-4-20250514",
            "claude-haiku-4-5",
            "claude-opus-4-6",
            "local-model",
        ] {
            assert!(takes_temperature(model), "{model}");
        }
        for model in [
            "claude-opus-4-7",
            "claude-opus-4-8",
            "claude-opus-5",
            "claude-opus-5-5",
            "claude-sonnet-5",
            "claude-haiku-5-5-20261007",
            "claude-fable-5-1",
            "claude-mythos-preview",
        ] {
            assert!(!takes_temperature(model), "{model}");
        }
    }
}
