use proptest::prelude::*;
use serde_json::json;

use super::super::exchange::Message;
use super::*;
use crate::vendor::Role;

fn base(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn request(model: &str) -> ChatRequest {
    ChatRequest {
        model: model.to_owned(),
        system: "judge".to_owned(),
        messages: vec![
            Message::user("one"),
            Message::assistant("two"),
            Message { role: Role::System, content: "mind".to_owned() },
        ],
        temperature: 0.5,
        max_tokens: 64,
    }
}

fn sent(vendor: Vendor, model: &str) -> (String, Value) {
    let outgoing = chat(vendor, &base("http://host/prefix/"), &request(model)).unwrap();
    (outgoing.url.to_string(), serde_json::from_slice(&outgoing.body).unwrap())
}

#[test]
fn each_vendor_is_asked_in_its_own_words() {
    let turns = json!([
        {"role": "system", "content": "judge"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "system", "content": "mind"},
    ]);
    let (url, body) = sent(Vendor::OpenAi, "gpt-4.1");
    assert_eq!(url, "http://host/prefix/chat/completions");
    assert_eq!(body, json!({"model": "gpt-4.1", "messages": turns, "temperature": 0.5, "max_tokens": 64}));

    let (url, body) = sent(Vendor::Anthropic, "claude-haiku-4-5");
    assert_eq!(url, "http://host/prefix/v1/messages");
    let said = json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]);
    assert_eq!(
        body,
        json!({"model": "claude-haiku-4-5", "system": "judge\n\nmind", "messages": said,
               "temperature": 0.5, "max_tokens": 64})
    );

    let (url, body) = sent(Vendor::Gemini, "models/gemini-2.5-flash");
    assert_eq!(url, "http://host/prefix/v1beta/models/gemini-2.5-flash:generateContent");
    assert_eq!(
        body,
        json!({
            "system_instruction": {"parts": [{"text": "judge"}, {"text": "mind"}]},
            "contents": [{"role": "user", "parts": [{"text": "one"}]}, {"role": "model", "parts": [{"text": "two"}]}],
            "generationConfig": {"temperature": 0.5, "maxOutputTokens": 64},
        })
    );

    let (url, body) = sent(Vendor::Ollama, "llama3:8b");
    assert_eq!(url, "http://host/prefix/api/chat");
    assert_eq!(
        body,
        json!({"model": "llama3:8b", "messages": turns, "stream": false,
               "options": {"temperature": 0.5, "num_predict": 64}})
    );
}

#[test]
fn models_that_think_are_asked_without_a_temperature() {
    for model in
        ["o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5-mini-2025-08-07", "gpt-5.4", "gpt-6.1-sol", "gpt-10"]
    {
        let (_, body) = sent(Vendor::OpenAi, model);
        assert_eq!(body["max_completion_tokens"], 64, "{model}");
        assert!(body.get("temperature").is_none() && body.get("max_tokens").is_none(), "{model}");
    }
    for model in ["gpt-4.1", "gpt-4o", "gpt-3.5-turbo", "olmo", "gpt-oss:20b", "qwen3"] {
        let (_, body) = sent(Vendor::OpenAi, model);
        assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(64), &json!(0.5)), "{model}");
    }
}

#[test]
fn a_model_name_cannot_leave_its_place_in_the_address() {
    for (model, path) in [
        ("../../v1/files", "/v1beta/models/..%2F..%2Fv1%2Ffiles:generateContent"),
        ("..", "/v1beta/models/..:generateContent"),
        ("a?key=b#c", "/v1beta/models/a%3Fkey=b%23c:generateContent"),
        ("a%2Fb", "/v1beta/models/a%252Fb:generateContent"),
    ] {
        let outgoing = chat(Vendor::Gemini, &base("http://host"), &request(model)).unwrap();
        assert_eq!(outgoing.url.path(), path);
        assert_eq!((outgoing.url.query(), outgoing.url.fragment()), (None, None));
    }
}

#[test]
fn what_cannot_be_asked_is_said() {
    for temperature in [f64::NAN, f64::INFINITY, -0.1] {
        let wrong = ChatRequest { temperature, ..request("m") };
        let error = chat(Vendor::OpenAi, &base("http://host"), &wrong).unwrap_err();
        assert!(matches!(error, ProviderError::Invalid(_)), "{error}");
    }
    assert!(chat(Vendor::OpenAi, &base("http://host"), &request("")).is_err());
    let error = embed(Vendor::Anthropic, &base("http://host"), "m", &["a"]).unwrap_err();
    assert!(error.to_string().contains("`anthropic` gives no vectors"), "{error}");
}

#[test]
fn an_answer_cut_short_or_withheld_is_an_error_that_names_the_reason() {
    let openai = |reason: &str| json!({"choices": [{"message": {"content": "{\"score\": 1"}, "finish_reason": reason}]});
    let anthropic =
        |reason: &str| json!({"content": [{"type": "text", "text": "half"}], "stop_reason": reason});
    let gemini = |reason: &str| json!({"candidates": [{"content": {"parts": [{"text": "half"}]}, "finishReason": reason}]});
    let ollama = |reason: &str| json!({"message": {"content": "half"}, "done_reason": reason});
    let cases = [
        (Vendor::OpenAi, openai("length"), "length", false),
        (Vendor::OpenAi, openai("content_filter"), "content_filter", true),
        (Vendor::OpenAi, openai("tool_calls"), "tool_calls", false),
        (
            Vendor::OpenAi,
            json!({"choices": [{"message": {"content": null, "refusal": "I cannot"}, "finish_reason": "stop"}]}),
            "I cannot",
            true,
        ),
        (Vendor::Anthropic, anthropic("max_tokens"), "max_tokens", false),
        (Vendor::Anthropic, anthropic("model_context_window_exceeded"), "context_window", false),
        (Vendor::Anthropic, anthropic("refusal"), "refusal", true),
        (Vendor::Anthropic, anthropic("tool_use"), "tool_use", false),
        (Vendor::Gemini, gemini("MAX_TOKENS"), "MAX_TOKENS", false),
        (Vendor::Gemini, gemini("SAFETY"), "SAFETY", true),
        (Vendor::Gemini, gemini("PROHIBITED_CONTENT"), "PROHIBITED_CONTENT", true),
        (Vendor::Gemini, json!({"promptFeedback": {"blockReason": "BLOCKLIST"}}), "BLOCKLIST", true),
        (Vendor::Ollama, ollama("length"), "length", false),
    ];
    for (vendor, body, reason, refused) in cases {
        let error = chat_reply(vendor, "m", body.to_string().as_bytes()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(matches!(error, ProviderError::Refused { status: 200, .. }), refused, "{error}");
        assert!(!error.retryable());
    }
}

#[test]
fn thoughts_are_no_part_of_the_answer_but_of_its_price() {
    let body = json!({
        "candidates": [{"content": {"parts": [{"text": "hm", "thought": true}, {"text": "yes"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "thoughtsTokenCount": 5},
    });
    let reply = chat_reply(Vendor::Gemini, "asked", body.to_string().as_bytes()).unwrap();
    assert_eq!((reply.text.as_str(), reply.model.as_str()), ("yes", "asked"));
    assert_eq!((reply.input_tokens, reply.output_tokens), (Some(3), Some(9)));

    let body = json!({"model": "m", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "yes"}
    ], "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 9}});
    let reply = chat_reply(Vendor::Anthropic, "asked", body.to_string().as_bytes()).unwrap();
    assert_eq!((reply.text.as_str(), reply.output_tokens), ("yes", Some(9)));
}

#[test]
fn an_empty_answer_is_an_error() {
    let body = json!({"choices": [{"message": {"content": " \n"}, "finish_reason": "stop"}]});
    assert!(chat_reply(Vendor::OpenAi, "m", body.to_string().as_bytes()).is_err());
    assert!(chat_reply(Vendor::Anthropic, "m", br#"{"content": [], "stop_reason": "end_turn"}"#).is_err());
}

#[test]
fn vectors_come_back_in_the_order_of_the_texts() {
    let body = json!({"model": "m", "data": [
        {"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.0]}
    ], "usage": {"prompt_tokens": 7, "total_tokens": 7}});
    let vectors = embed_reply("asked", 2, body.to_string().as_bytes()).unwrap();
    assert_eq!(vectors.vectors, [vec![1.0, 0.0], vec![0.0, 1.0]]);
    assert_eq!((vectors.model.as_str(), vectors.tokens), ("m", Some(7)));
}

#[test]
fn vectors_that_do_not_fit_the_texts_are_refused() {
    for data in [
        json!([]),
        json!([{"index": 0, "embedding": [1.0]}]),
        json!([{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]),
        json!([{"index": 0, "embedding": [1.0]}, {"index": 2, "embedding": [1.0]}]),
        json!([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]),
        json!([{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]),
        json!([{"index": 0, "embedding": [1e300]}, {"index": 1, "embedding": [1.0]}]),
        json!([{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]),
    ] {
        let body = json!({"data": data}).to_string();
        assert!(embed_reply("m", 2, body.as_bytes()).is_err(), "{body}");
    }
}

#[test]
fn a_refusal_is_read_in_every_usual_shape() {
    for body in [
        r#"{"error": {"message": "no", "type": "x"}}"#,
        r#"{"type": "error", "error": {"type": "x", "message": "no"}}"#,
        r#"[{"error": {"code": 400, "message": "no"}}]"#,
        r#"{"error": "no"}"#,
        r#"{"message": "no"}"#,
        r#"{"detail": "no"}"#,
        "no",
    ] {
        assert_eq!(error_message(body.as_bytes()), "no", "{body}");
    }
}

proptest! {
    #[test]
    fn no_reply_breaks_the_reader(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        for vendor in Vendor::ALL {
            let _ = chat_reply(vendor, "m", &body);
        }
        let _ = embed_reply("m", 1, &body);
        let _ = error_message(&body);
    }
}
