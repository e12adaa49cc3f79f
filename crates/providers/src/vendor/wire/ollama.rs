//! Ollama's native chat API.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::error::ProviderError;
use super::super::exchange::{ChatRequest, Role};
use super::{Answer, cut_short, parse};

pub(super) fn chat(request: &ChatRequest) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for message in &request.messages {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        };
        messages.push(json!({"role": role, "content": message.content}));
    }
    json!({
        "model": request.model,
        "messages": messages,
        "stream": false,
        "options": {"temperature": request.temperature, "num_predict": request.max_tokens},
    })
}

pub(super) fn chat_reply(body: &[u8]) -> Result<Answer, ProviderError> {
    #[derive(Deserialize)]
    struct Reply {
        model: Option<String>,
        message: Option<Said>,
        done_reason: Option<String>,
        prompt_eval_count: Option<u64>,
        eval_count: Option<u64>,
    }
    #[derive(Deserialize)]
    struct Said {
        content: Option<String>,
    }

    let reply: Reply = parse(body)?;
    if let Some(reason @ "length") = reply.done_reason.as_deref() {
        return Err(cut_short(reason));
    }
    let said = reply.message.ok_or_else(|| ProviderError::Unreadable("it holds no message".to_owned()))?;
    Ok(Answer {
        text: said.content.unwrap_or_default(),
        model: reply.model,
        input_tokens: reply.prompt_eval_count,
        output_tokens: reply.eval_count,
    })
}
