//! The vendors' wire formats, seen from the server.

use axum::http::HeaderMap;
use proctor_providers::vendor::Vendor;
use serde_json::{Value, json};

/// Dimension of the vectors.
const DIMENSIONS: usize = 64;

pub fn vendor_of(path: &str) -> Option<Vendor> {
    match path {
        "/v1/chat/completions" | "/v1/embeddings" => Some(Vendor::OpenAi),
        "/v1/messages" => Some(Vendor::Anthropic),
        "/api/chat" => Some(Vendor::Ollama),
        _ => gemini_model(path).map(|_| Vendor::Gemini),
    }
}

/// The model in an address of Gemini's, which is the same in both of its versions.
fn gemini_model(path: &str) -> Option<&str> {
    let name = path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"))?;
    name.strip_suffix(":generateContent")
}

/// Refusal of the vendor: a status and a message.
pub fn check(
    vendor: Vendor,
    path: &str,
    headers: &HeaderMap,
    body: &Value,
    key: &str,
) -> Result<(), (u16, String)> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let no = |status: u16, message: &str| Err((status, message.to_owned()));
    let bearer = header("authorization").map(|value| value.trim_start_matches("Bearer "));
    match vendor {
        Vendor::OpenAi if bearer != Some(key) => return no(401, "Incorrect API key provided"),
        // Its own header, or the one that newer clients send.
        Vendor::Anthropic if header("x-api-key").or(bearer) != Some(key) => {
            return no(401, "invalid x-api-key");
        }
        // Gemini calls a wrong key a bad request.
        Vendor::Gemini if header("x-goog-api-key") != Some(key) => {
            return no(400, "API key not valid. Please pass a valid API key.");
        }
        // A local Ollama wants no key; one that is given must be right.
        Vendor::Ollama if bearer.is_some_and(|given| given != key) => return no(401, "unauthorized"),
        _ => {}
    }
    let version = header("anthropic-version");
    if vendor == Vendor::Anthropic && !matches!(version, Some("2023-06-01" | "2026-10-21")) {
        return no(400, "anthropic-version: header is required");
    }
    let Some(fields) = body.as_object() else { return no(400, "the body is not a JSON object") };
    let has = |name: &str| fields.contains_key(name);
    if vendor != Vendor::Gemini && !body["model"].is_string() {
        return no(400, "you must provide a model parameter");
    }
    if path.ends_with("/embeddings") {
        let texts = texts(body);
        return if texts.is_empty() { no(400, "input must not be empty") } else { Ok(()) };
    }
    // This one streams unless told not to.
    if body["stream"] == json!(true) || (vendor == Vendor::Ollama && !has("stream")) {
        return no(400, "this server does not stream");
    }
    let list = if vendor == Vendor::Gemini { "contents" } else { "messages" };
    let Some(messages) = body[list].as_array().filter(|messages| !messages.is_empty()) else {
        return no(400, &format!("{list}: at least one is required"));
    };
    let roles: &[&str] = match vendor {
        Vendor::OpenAi | Vendor::Ollama => &["system", "developer", "user", "assistant", "tool"],
        Vendor::Anthropic => &["user", "assistant"],
        Vendor::Gemini => &["user", "model"],
    };
    if !messages.iter().all(|message| roles.iter().any(|role| message["role"] == **role)) {
        return no(400, "a message has an unknown role");
    }
    let model = body["model"].as_str().unwrap_or_default();
    let begins = |names: &[&str]| names.iter().any(|name| model.starts_with(name));
    match vendor {
        Vendor::OpenAi if begins(&["o1", "o3", "o4", "gpt-5", "gpt-6"]) => {
            if has("max_tokens") {
                return no(
                    400,
                    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                );
            }
            if has("temperature") && body["temperature"] != json!(1) {
                return no(
                    400,
                    "Unsupported value: 'temperature' does not support this value with this model.",
                );
            }
        }
        Vendor::Anthropic => {
            if !body["max_tokens"].is_u64() {
                return no(400, "max_tokens: Field required");
            }
            // The newer version of the interface knows no temperature, nor do the newer models in the older version.
            let models =
                ["claude-opus-4-7", "claude-opus-5", "claude-sonnet-5", "claude-haiku-5", "claude-fable-5"];
            if has("temperature") && (version != Some("2023-06-01") || begins(&models)) {
                return no(400, "`temperature` is deprecated for this model.");
            }
        }
        _ => {}
    }
    Ok(())
}

/// A refusal in the vendor's own shape.
pub fn error(vendor: Vendor, status: u16, message: &str) -> Value {
    match vendor {
        Vendor::OpenAi => {
            let (kind, code) = match status {
                401 => ("invalid_request_error", json!("invalid_api_key")),
                429 => ("requests", json!("rate_limit_exceeded")),
                500.. => ("server_error", Value::Null),
                _ => ("invalid_request_error", Value::Null),
            };
            json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
        }
        Vendor::Anthropic => {
            let kind = match status {
                401 => "authentication_error",
                403 => "permission_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_double"})
        }
        Vendor::Gemini => {
            let name = match status {
                401 => "UNAUTHENTICATED",
                403 => "PERMISSION_DENIED",
                404 => "NOT_FOUND",
                429 => "RESOURCE_EXHAUSTED",
                503 => "UNAVAILABLE",
                504 => "DEADLINE_EXCEEDED",
                500.. => "INTERNAL",
                _ => "INVALID_ARGUMENT",
            };
            let mut error = json!({"code": status, "message": message, "status": name});
            if message.starts_with("API key not valid") {
                error["details"] = json!([{
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "API_KEY_INVALID",
                    "domain": "googleapis.com",
                    "metadata": {"service": "generativelanguage.googleapis.com"},
                }]);
            }
            json!({"error": error})
        }
        Vendor::Ollama => json!({"error": message}),
    }
}

/// An answer in the vendor's own shape. Tokens are words here: whoever reads the request can count them too.
pub fn success(vendor: Vendor, path: &str, body: &Value, text: &str, stop: Option<&str>) -> Value {
    let model = body["model"].as_str().unwrap_or_default();
    if path.ends_with("/embeddings") {
        return vectors(model, body);
    }
    let (read, written) = (words_in(body), text.split_whitespace().count());
    match vendor {
        Vendor::OpenAi => json!({
            "id": "chatcmpl-double",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": null, "annotations": []},
                "logprobs": null,
                "finish_reason": stop.unwrap_or("stop"),
            }],
            "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
        }),
        Vendor::Anthropic => json!({
            "id": "msg_double",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": text}],
            "stop_reason": stop.unwrap_or("end_turn"),
            "stop_sequence": null,
            "usage": {"input_tokens": read, "output_tokens": written},
        }),
        Vendor::Gemini => {
            let name = gemini_model(path);
            json!({
                "candidates": [{
                    "content": {"role": "model", "parts": [{"text": text}]},
                    "finishReason": stop.unwrap_or("STOP"),
                    "index": 0,
                }],
                "usageMetadata": {
                    "promptTokenCount": read,
                    "candidatesTokenCount": written,
                    "totalTokenCount": read + written,
                },
                "modelVersion": name,
                "responseId": "double",
            })
        }
        Vendor::Ollama => json!({
            "model": model,
            "created_at": "2024-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": text},
            "done": true,
            "done_reason": stop.unwrap_or("stop"),
            "total_duration": 1_000_000,
            "load_duration": 1_000,
            "prompt_eval_count": read,
            "prompt_eval_duration": 1_000,
            "eval_count": written,
            "eval_duration": 1_000,
        }),
    }
}

/// The words of everything that is said in a request.
fn words_in(body: &Value) -> usize {
    fn count(value: &Value) -> usize {
        match value {
            Value::String(text) => text.split_whitespace().count(),
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(fields) => ["content", "text", "parts"]
                .iter()
                .map(|name| count(&fields.get(*name).cloned().unwrap_or_default()))
                .sum(),
            _ => 0,
        }
    }
    ["messages", "contents", "system", "system_instruction", "systemInstruction"]
        .iter()
        .map(|name| count(&body[*name]))
        .sum()
}

fn texts(body: &Value) -> Vec<&str> {
    match &body["input"] {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Vectors of which similar texts have similar ones: each word adds to one place.
fn vectors(model: &str, body: &Value) -> Value {
    let texts = texts(body);
    let words: usize = texts.iter().map(|text| text.split_whitespace().count()).sum();
    let data: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let vector = vector(text);
            let embedding = if body["encoding_format"] == "base64" {
                let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
                json!(base64(&bytes))
            } else {
                json!(vector)
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    json!({
        "object": "list",
        "data": data,
        "model": model,
        "usage": {"prompt_tokens": words, "total_tokens": words},
    })
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, place| bits << 8 | u32::from(*three.get(place).unwrap_or(&0)));
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; DIMENSIONS];
    for word in
        text.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
    {
        // FNV-1a.
        let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        vector[usize::try_from(hash % DIMENSIONS as u64).unwrap_or(0)] += 1.0;
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length == 0.0 {
        // No word at all still has a direction.
        vector[0] = 1.0;
        return vector;
    }
    vector.iter().map(|number| number / length).collect()
}
