//! The vendors' wire formats: request bodies and reply parsing.

mod anthropic;
mod gemini;
mod ollama;
mod openai;

use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;

use super::endpoint::Vendor;
use super::error::ProviderError;
use super::exchange::{ChatReply, ChatRequest, Vectors};

/// A request before it has headers.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) url: Url,
    pub(super) body: Vec<u8>,
}

/// Authentication header of the vendor.
pub(super) fn key_header(vendor: Vendor, key: &str) -> (&'static str, String) {
    match vendor {
        Vendor::OpenAi | Vendor::Ollama => ("authorization", format!("Bearer {key}")),
        Vendor::Anthropic => ("x-api-key", key.to_owned()),
        Vendor::Gemini => ("x-goog-api-key", key.to_owned()),
    }
}

/// Headers that the vendor wants on every request.
pub(super) fn fixed_headers(vendor: Vendor) -> &'static [(&'static str, &'static str)] {
    match vendor {
        Vendor::Anthropic => &[("anthropic-version", "2023-06-01")],
        Vendor::OpenAi | Vendor::Gemini | Vendor::Ollama => &[],
    }
}

/// The request for a chat.
pub(super) fn chat(vendor: Vendor, base: &Url, request: &ChatRequest) -> Result<Outgoing, ProviderError> {
    if !request.temperature.is_finite() || request.temperature < 0.0 {
        let text = format!("the temperature must be a number from 0, not `{}`", request.temperature);
        return Err(ProviderError::Invalid(text));
    }
    if request.model.is_empty() {
        return Err(ProviderError::Invalid("no model is named: set the name of one".to_owned()));
    }
    match vendor {
        Vendor::OpenAi => outgoing(base, &["chat", "completions"], &openai::chat(request)),
        Vendor::Anthropic => outgoing(base, &["v1", "messages"], &anthropic::chat(request)),
        Vendor::Gemini => {
            // Vendors' lists name models with this prefix; the address has it already.
            let model = request.model.strip_prefix("models/").unwrap_or(&request.model);
            let method = format!("{model}:generateContent");
            outgoing(base, &["v1beta", "models", &method], &gemini::chat(request))
        }
        Vendor::Ollama => outgoing(base, &["api", "chat"], &ollama::chat(request)),
    }
}

/// The answer in a reply to a chat.
pub(super) fn chat_reply(vendor: Vendor, asked: &str, body: &[u8]) -> Result<ChatReply, ProviderError> {
    let reply = match vendor {
        Vendor::OpenAi => openai::chat_reply(body),
        Vendor::Anthropic => anthropic::chat_reply(body),
        Vendor::Gemini => gemini::chat_reply(body),
        Vendor::Ollama => ollama::chat_reply(body),
    }?;
    if reply.text.trim().is_empty() {
        return Err(ProviderError::Unreadable("the answer is empty".to_owned()));
    }
    let model = reply.model.filter(|name| !name.is_empty()).unwrap_or_else(|| asked.to_owned());
    Ok(ChatReply {
        text: reply.text,
        model,
        input_tokens: reply.input_tokens,
        output_tokens: reply.output_tokens,
    })
}

/// The request for vectors.
pub(super) fn embed(
    vendor: Vendor,
    base: &Url,
    model: &str,
    texts: &[&str],
) -> Result<Outgoing, ProviderError> {
    if vendor != Vendor::OpenAi {
        let text = format!(
            "the provider `{vendor}` gives no vectors here: use `openai` with a server that has /embeddings"
        );
        return Err(ProviderError::Invalid(text));
    }
    outgoing(base, &["embeddings"], &openai::embed(model, texts))
}

/// The vectors in a reply.
pub(super) fn embed_reply(asked: &str, count: usize, body: &[u8]) -> Result<Vectors, ProviderError> {
    openai::embed_reply(asked, count, body)
}

/// The message in an error body, in any of the usual shapes.
pub(super) fn error_message(body: &[u8]) -> String {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    // Some gateways wrap the error in a list of one.
    let value = value.as_ref().map(|value| value.get(0).unwrap_or(value));
    let message = value.and_then(|value| {
        [value.pointer("/error/message"), value.get("error"), value.get("message"), value.get("detail")]
            .into_iter()
            .flatten()
            .find_map(Value::as_str)
    });
    match message {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).into_owned(),
    }
}

/// Whether a refusal with the status of a rate limit means that nothing is left to spend, which no pause changes.
pub(super) fn is_out_of_money(body: &[u8]) -> bool {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let code = value.as_ref().and_then(|value| value.pointer("/error/code")).and_then(Value::as_str);
    code == Some("insufficient_quota")
}

/// An answer in no vendor's words.
struct Answer {
    text: String,
    model: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}

fn outgoing(base: &Url, path: &[&str], body: &Value) -> Result<Outgoing, ProviderError> {
    let mut url = base.clone();
    match url.path_segments_mut() {
        // Pushing encodes whatever a model's name could break out of the path with.
        Ok(mut segments) => segments.pop_if_empty().extend(path),
        Err(()) => return Err(ProviderError::Invalid(format!("the base URL `{base}` has no path"))),
    };
    let body = serde_json::to_vec(body).map_err(|error| ProviderError::Invalid(error.to_string()))?;
    Ok(Outgoing { url, body })
}

fn parse<'body, Reply: Deserialize<'body>>(body: &'body [u8]) -> Result<Reply, ProviderError> {
    serde_json::from_slice(body).map_err(|error| ProviderError::Unreadable(error.to_string()))
}

fn cut_short(reason: &str) -> ProviderError {
    ProviderError::Unreadable(format!(
        "it ends at the limit of output tokens (`{reason}`): allow more of them"
    ))
}

fn withheld(reason: &str) -> ProviderError {
    ProviderError::Refused { status: 200, message: format!("it stopped with `{reason}`") }
}

fn not_a_text(reason: &str) -> ProviderError {
    ProviderError::Unreadable(format!("it stopped with `{reason}` instead of a text"))
}

#[cfg(test)]
mod tests;
