//! OpenAI chat completions and embeddings, and compatible servers.

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::error::ProviderError;
use super::super::exchange::{ChatRequest, Role, Vectors};
use super::{Answer, cut_short, not_a_text, parse, withheld};

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
    if reasons(&request.model) {
        // These refuse the older name of the limit, and any temperature but their own.
        json!({"model": request.model, "messages": messages, "max_completion_tokens": request.max_tokens})
    } else {
        json!({
            "model": request.model,
            "messages": messages,
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
        })
    }
}

/// Whether the model is one of those that think before they answer: `o1`, `o3`, `o4-mini`, and GPT from 5 on.
fn reasons(model: &str) -> bool {
    if let Some(version) = model.strip_prefix("gpt-") {
        let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
        return digits.parse::<u32>().is_ok_and(|major| major >= 5);
    }
    model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

pub(super) fn chat_reply(body: &[u8]) -> Result<Answer, ProviderError> {
    #[derive(Deserialize)]
    struct Reply {
        model: Option<String>,
        choices: Vec<Choice>,
        usage: Option<Usage>,
    }
    #[derive(Deserialize)]
    struct Choice {
        message: Said,
        finish_reason: Option<String>,
    }
    #[derive(Deserialize)]
    struct Said {
        content: Option<String>,
        refusal: Option<String>,
    }
    #[derive(Deserialize)]
    struct Usage {
        prompt_tokens: Option<u64>,
        completion_tokens: Option<u64>,
    }

    let reply: Reply = parse(body)?;
    let choice = reply.choices.into_iter().next();
    let choice = choice.ok_or_else(|| ProviderError::Unreadable("it holds no choices".to_owned()))?;
    match choice.finish_reason.as_deref() {
        Some(reason @ "length") => return Err(cut_short(reason)),
        Some(reason @ "content_filter") => return Err(withheld(reason)),
        Some(reason @ ("tool_calls" | "function_call")) => return Err(not_a_text(reason)),
        _ => {}
    }
    if let Some(refusal) = choice.message.refusal.filter(|refusal| !refusal.is_empty()) {
        return Err(ProviderError::Refused { status: 200, message: refusal });
    }
    Ok(Answer {
        text: choice.message.content.unwrap_or_default(),
        model: reply.model,
        input_tokens: reply.usage.as_ref().and_then(|usage| usage.prompt_tokens),
        output_tokens: reply.usage.as_ref().and_then(|usage| usage.completion_tokens),
    })
}

pub(super) fn embed(model: &str, texts: &[&str]) -> Value {
    json!({"model": model, "input": texts, "encoding_format": "float"})
}

pub(super) fn embed_reply(asked: &str, count: usize, body: &[u8]) -> Result<Vectors, ProviderError> {
    #[derive(Deserialize)]
    struct Reply {
        model: Option<String>,
        data: Vec<Item>,
        usage: Option<Usage>,
    }
    #[derive(Deserialize)]
    struct Item {
        index: Option<usize>,
        embedding: Vec<f32>,
    }
    #[derive(Deserialize)]
    struct Usage {
        prompt_tokens: Option<u64>,
        total_tokens: Option<u64>,
    }

    let unreadable = |text: String| Err(ProviderError::Unreadable(text));
    let reply: Reply = parse(body)?;
    if reply.data.len() != count {
        return unreadable(format!("it holds {} vectors for {count} texts", reply.data.len()));
    }
    let mut items: Vec<(usize, Vec<f32>)> = reply
        .data
        .into_iter()
        .enumerate()
        .map(|(place, item)| (item.index.unwrap_or(place), item.embedding))
        .collect();
    items.sort_by_key(|(index, _)| *index);
    if items.iter().enumerate().any(|(place, (index, _))| *index != place) {
        return unreadable("its vectors are not numbered one for each text".to_owned());
    }
    let length = items.first().map_or(0, |(_, vector)| vector.len());
    let sound = |vector: &Vec<f32>| {
        vector.len() == length && !vector.is_empty() && vector.iter().all(|number| number.is_finite())
    };
    if !items.iter().all(|(_, vector)| sound(vector)) {
        return unreadable("its vectors are empty, of different lengths or not finite".to_owned());
    }
    Ok(Vectors {
        vectors: items.into_iter().map(|(_, vector)| vector).collect(),
        model: reply.model.filter(|name| !name.is_empty()).unwrap_or_else(|| asked.to_owned()),
        tokens: reply.usage.and_then(|usage| usage.prompt_tokens.or(usage.total_tokens)),
    })
}
