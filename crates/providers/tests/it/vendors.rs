//! The clients against a server that speaks each vendor's wire format.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use proctor_providers::vendor::{
    Backoff, ChatRequest, Client, Endpoint, Key, Limits, Message, ProviderError, Vendor,
};
use serde_json::json;

use crate::double::{Double, KEY, Reply, USUAL_TEXT};

/// Long enough for everything that is to succeed on a busy machine.
const ENOUGH: Duration = Duration::from_secs(30);

fn endpoint(double: &Double, vendor: Vendor) -> Endpoint {
    Endpoint::usual(vendor, Some(Key::new(KEY))).at(double.url(vendor))
}

fn unlimited() -> Limits {
    Limits { per_minute: 0, ..Limits::default() }
}

/// Delays that are too short to notice.
fn hurry() -> Backoff {
    Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(20), seed: 1 }
}

fn client(double: &Double, vendor: Vendor) -> Client {
    Client::with_backoff(endpoint(double, vendor), unlimited(), hurry()).unwrap()
}

fn model(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::OpenAi => "gpt-4.1",
        Vendor::Anthropic => "claude-haiku-4-5",
        Vendor::Gemini => "gemini-2.5-flash",
        Vendor::Ollama => "llama3",
    }
}

fn ask(vendor: Vendor, text: &str) -> ChatRequest {
    ChatRequest {
        model: model(vendor).to_owned(),
        system: "you judge".to_owned(),
        messages: vec![Message::user(text)],
        temperature: 0.0,
        max_tokens: 256,
    }
}

#[test]
fn every_vendor_answers_with_text_model_and_usage() {
    let double = Double::start();
    for vendor in Vendor::ALL {
        let reply = client(&double, vendor).chat(&ask(vendor, "is this good"), ENOUGH).unwrap();
        assert_eq!(reply.text, USUAL_TEXT, "{vendor}");
        assert_eq!(reply.model, model(vendor));
        // Two words of instructions and three of the question; nine of the answer.
        assert_eq!((reply.input_tokens, reply.output_tokens), (Some(5), Some(9)), "{vendor}");
    }
    let agent = &double.seen()[0].headers["user-agent"];
    assert!(agent.starts_with("proctor/"), "{agent}");
}

#[test]
fn models_with_other_rules_are_asked_by_those() {
    let double = Double::start();
    for (vendor, model) in [
        (Vendor::OpenAi, "o3"),
        (Vendor::OpenAi, "gpt-5-mini"),
        (Vendor::OpenAi, "gpt-6.1-sol"),
        (Vendor::Anthropic, "claude-opus-4-7"),
        (Vendor::Anthropic, "claude-sonnet-5-5"),
    ] {
        let request = ChatRequest { model: model.to_owned(), ..ask(vendor, "hello") };
        client(&double, vendor).chat(&request, ENOUGH).unwrap_or_else(|error| panic!("{model}: {error}"));
    }
}

#[test]
fn a_wrong_key_is_refused_at_once_and_said_so() {
    let double = Double::start();
    for (vendor, expected) in
        [(Vendor::OpenAi, 401), (Vendor::Anthropic, 401), (Vendor::Gemini, 400), (Vendor::Ollama, 401)]
    {
        let endpoint = Endpoint { key: Some(Key::new("wrong")), ..endpoint(&double, vendor) };
        let client = Client::with_backoff(endpoint, unlimited(), hurry()).unwrap();
        let error = client.chat(&ask(vendor, "hello"), ENOUGH).unwrap_err();
        let ProviderError::Refused { status, .. } = &error else { panic!("{vendor}: {error:?}") };
        assert_eq!(*status, expected);
        assert!(!error.retryable());
    }
    assert_eq!(double.seen().len(), 4, "a wrong key is tried once");
}

#[test]
fn a_server_that_is_too_busy_is_asked_again_when_it_says() {
    let double = Double::start();
    for vendor in Vendor::ALL {
        let headers = BTreeMap::from([("retry-after".to_owned(), "0.05".to_owned())]);
        double.script([Reply { headers, ..Reply::status(429) }, Reply::text("then")]);
        let pace = Backoff { longest: Duration::from_secs(30), ..hurry() };
        let client = Client::with_backoff(endpoint(&double, vendor), unlimited(), pace).unwrap();
        let began = Instant::now();
        assert_eq!(client.chat(&ask(vendor, "hello"), ENOUGH).unwrap().text, "then", "{vendor}");
        assert!(began.elapsed() >= Duration::from_millis(50), "asked before the time it named");
    }
    assert_eq!(double.seen().len(), 8);
}

#[test]
fn a_server_that_wants_a_longer_pause_than_there_is_time_is_not_asked_again() {
    let double = Double::start();
    // Longer than the longest pause, and longer than the deadline.
    for (wanted, longest, deadline) in [("31", 30, 300), ("20", 30, 5)] {
        let headers = BTreeMap::from([("retry-after".to_owned(), wanted.to_owned())]);
        double.script([Reply { headers, ..Reply::status(429) }]);
        let pace = Backoff { longest: Duration::from_secs(longest), ..hurry() };
        let client = Client::with_backoff(endpoint(&double, Vendor::OpenAi), unlimited(), pace).unwrap();
        let began = Instant::now();
        let error = client.chat(&ask(Vendor::OpenAi, "hello"), Duration::from_secs(deadline)).unwrap_err();
        let seconds = wanted.parse().unwrap();
        assert_eq!(error, ProviderError::RateLimited { retry_after: Some(Duration::from_secs(seconds)) });
        assert!(error.retryable());
        assert!(began.elapsed() < Duration::from_secs(5), "it waited for nothing");
    }
    assert_eq!(double.seen().len(), 2);
}

#[test]
fn money_that_ran_out_is_said_and_not_retried() {
    let double = Double::start();
    let body = json!({"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}});
    double.script([Reply { status: 429, ..Reply::body(body.to_string()) }]);
    let error = client(&double, Vendor::OpenAi).chat(&ask(Vendor::OpenAi, "hello"), ENOUGH).unwrap_err();
    assert!(error.to_string().contains("exceeded your current quota"), "{error}");
    assert_eq!(double.seen().len(), 1);
}

#[test]
fn passing_failures_are_retried_and_others_are_not() {
    for status in [408, 500, 502, 503, 504, 529] {
        let double = Double::start();
        double.script([Reply::status(status), Reply::status(status), Reply::text("at last")]);
        let reply = client(&double, Vendor::Anthropic).chat(&ask(Vendor::Anthropic, "hello"), ENOUGH);
        assert_eq!(reply.unwrap().text, "at last", "{status}");
        assert_eq!(double.seen().len(), 3);
    }
    for status in [400, 403, 404, 413, 422, 501] {
        let double = Double::start();
        double.script([Reply { text: Some("never".to_owned()), ..Reply::status(status) }]);
        let error = client(&double, Vendor::OpenAi).chat(&ask(Vendor::OpenAi, "hello"), ENOUGH).unwrap_err();
        assert_eq!(error, ProviderError::Refused { status, message: "never".to_owned() });
        assert_eq!(double.seen().len(), 1, "{status}");
    }
}

#[test]
fn retries_end() {
    let double = Double::start();
    double.script([Reply { times: 0, text: Some("still down".to_owned()), ..Reply::status(500) }]);
    let limits = Limits { retries: 2, ..unlimited() };
    let client = Client::with_backoff(endpoint(&double, Vendor::Gemini), limits, hurry()).unwrap();
    let error = client.chat(&ask(Vendor::Gemini, "hello"), ENOUGH).unwrap_err();
    assert_eq!(error, ProviderError::Refused { status: 500, message: "still down".to_owned() });
    assert!(error.retryable());
    assert_eq!(double.seen().len(), 3, "one question and two retries");
}

#[test]
fn a_pause_that_ends_after_the_deadline_is_not_made() {
    let double = Double::start();
    double.script([Reply { times: 0, ..Reply::status(500) }]);
    let pace = Backoff { first: Duration::from_secs(100), longest: Duration::from_secs(100), seed: 1 };
    let client = Client::with_backoff(endpoint(&double, Vendor::OpenAi), unlimited(), pace).unwrap();
    let began = Instant::now();
    let error = client.chat(&ask(Vendor::OpenAi, "hello"), Duration::from_secs(20)).unwrap_err();
    assert!(matches!(error, ProviderError::Refused { status: 500, .. }), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_connection_that_breaks_is_tried_again() {
    let double = Double::start();
    double.script([Reply { broken: true, ..Reply::default() }, Reply::text("whole")]);
    let reply = client(&double, Vendor::Ollama).chat(&ask(Vendor::Ollama, "hello"), ENOUGH);
    assert_eq!(reply.unwrap().text, "whole");
}

#[test]
fn a_port_that_nobody_listens_on_is_an_error_for_people() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let endpoint = Endpoint::usual(Vendor::Ollama, None).at(format!("http://{closed}"));
    let error = Client::with_backoff(endpoint, unlimited(), hurry())
        .unwrap()
        .chat(&ask(Vendor::Ollama, "hello"), ENOUGH)
        .unwrap_err();
    assert!(error.to_string().starts_with("the provider cannot be reached: no connection"), "{error}");
    assert!(error.retryable());
}

#[test]
fn an_answer_that_does_not_come_ends_at_the_deadline() {
    let double = Double::start();
    for vendor in Vendor::ALL {
        double.script([Reply { hold: Some("slow".to_owned()), ..Reply::default() }]);
        let error =
            client(&double, vendor).chat(&ask(vendor, "hello"), Duration::from_millis(300)).unwrap_err();
        assert_eq!(error, ProviderError::TimedOut, "{vendor}");
    }
    double.release("slow");
}

#[test]
fn one_attempt_has_a_limit_of_its_own_and_is_not_repeated() {
    let double = Double::start();
    double.script([Reply { hold: Some("slow".to_owned()), ..Reply::default() }]);
    let limits = Limits { attempt: Duration::from_millis(300), ..unlimited() };
    let client = Client::with_backoff(endpoint(&double, Vendor::OpenAi), limits, hurry()).unwrap();
    assert_eq!(client.chat(&ask(Vendor::OpenAi, "hello"), ENOUGH), Err(ProviderError::TimedOut));
    assert!(double.seen().len() <= 1);
    double.release("slow");
}

#[test]
fn a_reply_over_the_limit_is_not_read() {
    let double = Double::start();
    let limits = Limits { max_reply_bytes: 1000, ..unlimited() };
    let client = Client::with_backoff(endpoint(&double, Vendor::OpenAi), limits, hurry()).unwrap();
    double.script([Reply::text(&"long ".repeat(200))]);
    let error = client.chat(&ask(Vendor::OpenAi, "hello"), ENOUGH).unwrap_err();
    assert_eq!(error, ProviderError::TooLong { limit: 1000 });
    assert!(client.chat(&ask(Vendor::OpenAi, "hello"), ENOUGH).is_ok(), "a short one still passes");
}

#[test]
fn a_reply_without_a_length_is_bounded_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        // Ends only because the client stops reading.
        while stream.write_all(&[b' '; 4096]).is_ok() {}
    });
    let endpoint = Endpoint::usual(Vendor::Ollama, None).at(format!("http://{address}"));
    let limits = Limits { max_reply_bytes: 100_000, ..unlimited() };
    let client = Client::with_backoff(endpoint, limits, hurry()).unwrap();
    let error = client.chat(&ask(Vendor::Ollama, "hello"), ENOUGH).unwrap_err();
    assert_eq!(error, ProviderError::TooLong { limit: 100_000 });
    drop(client);
    server.join().unwrap();
}

#[test]
fn what_is_no_answer_is_an_error_and_is_not_retried() {
    for vendor in Vendor::ALL {
        for body in [
            "",
            "not json",
            "[]",
            "{}",
            "null",
            r#"{"choices": []}"#,
            r#"{"candidates": []}"#,
            r#"{"content": []}"#,
        ] {
            let double = Double::start();
            double.script([Reply::body(body)]);
            let error = client(&double, vendor).chat(&ask(vendor, "hello"), ENOUGH).unwrap_err();
            assert!(matches!(error, ProviderError::Unreadable(_)), "{vendor} {body}: {error:?}");
            assert_eq!(double.seen().len(), 1);
        }
    }
}

#[test]
fn an_answer_cut_short_or_withheld_is_an_error() {
    let double = Double::start();
    for (vendor, stop, refused) in [
        (Vendor::OpenAi, "length", false),
        (Vendor::OpenAi, "content_filter", true),
        (Vendor::Anthropic, "max_tokens", false),
        (Vendor::Anthropic, "refusal", true),
        (Vendor::Gemini, "MAX_TOKENS", false),
        (Vendor::Gemini, "SAFETY", true),
        (Vendor::Ollama, "length", false),
    ] {
        double.script([Reply { stop: Some(stop.to_owned()), ..Reply::default() }]);
        let error = client(&double, vendor).chat(&ask(vendor, "hello"), ENOUGH).unwrap_err();
        assert_eq!(matches!(error, ProviderError::Refused { .. }), refused, "{error:?}");
        assert!(error.to_string().contains(stop), "{error}");
    }
}

#[test]
fn a_key_that_the_server_repeats_is_not_shown() {
    let double = Double::start();
    for vendor in Vendor::ALL {
        let bodies = [
            json!({"error": {"message": format!("bad key {KEY} here")}}).to_string(),
            json!({"error": KEY}).to_string(),
            format!("<h1>{}</h1>", KEY.to_uppercase()),
            // Something that is read as a reply and whose reader repeats it.
            json!({"choices": KEY, "content": KEY, "candidates": KEY, "message": KEY}).to_string(),
        ];
        for (place, body) in bodies.into_iter().enumerate() {
            let status = if place == 3 { 200 } else { 401 };
            double.script([Reply { status, ..Reply::body(body) }]);
            let error = client(&double, vendor).chat(&ask(vendor, "hello"), ENOUGH).unwrap_err();
            let shown = format!("{error} {error:?}").to_lowercase();
            assert!(!shown.contains(KEY), "{shown}");
            assert!(shown.contains("[key]"), "{shown}");
        }
    }
    assert!(!format!("{:?}", client(&double, Vendor::OpenAi)).contains(KEY));
    // What a model says is kept and shown, too.
    for vendor in Vendor::ALL {
        double.script([Reply::text(&format!("your key is {KEY}, is it not?"))]);
        let said = client(&double, vendor).chat(&ask(vendor, "hello"), ENOUGH).unwrap().text;
        assert_eq!(said, "your key is [key], is it not?");
    }
}

#[test]
fn the_key_does_not_follow_a_redirect() {
    let other = Double::start();
    let double = Double::start();
    let target = format!("{}/chat/completions", other.url(Vendor::OpenAi));
    for status in [301, 302, 307, 308] {
        let headers = BTreeMap::from([("location".to_owned(), target.clone())]);
        double.script([Reply { headers, ..Reply::status(status) }]);
        let error = client(&double, Vendor::OpenAi).chat(&ask(Vendor::OpenAi, "hello"), ENOUGH).unwrap_err();
        assert!(error.to_string().contains("redirects to"), "{error}");
    }
    assert!(other.seen().is_empty());
}

#[test]
fn vectors_come_in_the_order_of_the_texts_with_usage() {
    let double = Double::start();
    let client = client(&double, Vendor::OpenAi);
    let embed = |texts: &[&str]| client.embed("text-embedding-3-small", texts, ENOUGH);
    let both = embed(&["a red house", "two green trees"]).unwrap();
    let second = embed(&["two green trees"]).unwrap();
    assert_eq!(both.vectors.len(), 2);
    assert_eq!(both.vectors[1], second.vectors[0]);
    assert_ne!(both.vectors[0], both.vectors[1]);
    assert_eq!((both.model.as_str(), both.tokens), ("text-embedding-3-small", Some(6)));
    assert!(embed(&[]).unwrap().vectors.is_empty());
    assert_eq!(double.seen().len(), 2, "nothing is asked for no texts");

    let many = vec!["x"; 2049];
    assert!(matches!(embed(&many), Err(ProviderError::Invalid(_))));
    for vendor in [Vendor::Anthropic, Vendor::Gemini, Vendor::Ollama] {
        let error = self::client(&double, vendor).embed("m", &["x"], ENOUGH).unwrap_err();
        assert!(error.to_string().contains(vendor.name()), "{error}");
    }
}

#[test]
fn questions_are_asked_at_once_and_answered_in_order() {
    let double = Double::start();
    double.script((0..8).map(|number| Reply {
        when: Some(format!("question {number}")),
        hold: Some("gate".to_owned()),
        ..Reply::text(&format!("answer {number}"))
    }));
    let client = client(&double, Vendor::OpenAi);
    let asking = std::thread::spawn(move || {
        let mut questions: Vec<_> =
            (0..8).map(|number| ask(Vendor::OpenAi, &format!("question {number}"))).collect();
        // One that cannot be asked takes no other with it.
        questions.insert(3, ChatRequest { temperature: f64::NAN, ..questions[0].clone() });
        client.chat_all(&questions, ENOUGH)
    });
    // None is answered before all are asked.
    double.wait_for_held(8);
    double.release("gate");
    let mut replies = asking.join().unwrap();
    assert!(matches!(replies.remove(3), Err(ProviderError::Invalid(_))));
    let texts: Vec<_> = replies.into_iter().map(|reply| reply.unwrap().text).collect();
    assert_eq!(texts, (0..8).map(|number| format!("answer {number}")).collect::<Vec<_>>());
}

#[test]
fn clones_on_many_threads_share_the_limit_of_requests() {
    let double = Double::start();
    let limits = Limits { per_minute: 1, burst: 3, ..Limits::default() };
    let client = Client::with_backoff(endpoint(&double, Vendor::OpenAi), limits, hurry()).unwrap();
    let threads: Vec<_> = (0..6)
        .map(|_| {
            let client = client.clone();
            std::thread::spawn(move || client.chat(&ask(Vendor::OpenAi, "hello"), Duration::from_secs(20)))
        })
        .collect();
    let (answered, refused): (Vec<_>, Vec<_>) =
        threads.into_iter().map(|thread| thread.join().unwrap()).partition(Result::is_ok);
    assert_eq!((answered.len(), refused.len()), (3, 3));
    for error in refused {
        // Said at once: there is no room before the deadline.
        assert!(matches!(error, Err(ProviderError::Throttled { .. })), "{error:?}");
    }
    assert_eq!(double.seen().len(), 3);
}

#[test]
fn a_call_waits_for_its_turn() {
    let double = Double::start();
    let limits = Limits { per_minute: 600, burst: 1, ..Limits::default() };
    let client = Client::with_backoff(endpoint(&double, Vendor::OpenAi), limits, hurry()).unwrap();
    let began = Instant::now();
    for _ in 0..4 {
        client.chat(&ask(Vendor::OpenAi, "hello"), ENOUGH).unwrap();
    }
    assert!(began.elapsed() >= Duration::from_millis(300), "three turns of a tenth of a second");
}

#[test]
fn a_call_from_inside_another_runtime_blocks_but_works() {
    let double = Double::start();
    let client = client(&double, Vendor::OpenAi);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let reply = runtime.block_on(async move { client.chat(&ask(Vendor::OpenAi, "hello"), ENOUGH) });
    assert!(reply.is_ok());
}

#[test]
fn a_base_url_may_end_with_a_slash() {
    let double = Double::start();
    for vendor in Vendor::ALL {
        let endpoint = endpoint(&double, vendor).at(format!("{}/", double.url(vendor)));
        let client = Client::new(endpoint, Limits::default()).unwrap();
        assert!(client.chat(&ask(vendor, "hello"), ENOUGH).is_ok(), "{vendor}");
    }
}

#[test]
fn a_client_that_cannot_work_is_refused_when_it_is_made() {
    for endpoint in [
        Endpoint::usual(Vendor::OpenAi, None).at("api.openai.com"),
        Endpoint::usual(Vendor::OpenAi, Some(Key::new("a\u{7}b"))),
    ] {
        assert!(matches!(Client::new(endpoint, Limits::default()), Err(ProviderError::Invalid(_))));
    }
}

const PROXIED_URL: &str = "PROCTOR_TEST_PROXIED_URL";

#[test]
fn a_proxy_of_the_environment_is_not_used_for_this_machine() {
    let double = Double::start();
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap();
    // The environment is read once and by the whole process: the call is made by a process of its own.
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "vendors::asks_where_the_environment_says"])
        .env(PROXIED_URL, double.url(Vendor::OpenAi));
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"] {
        child.env(name, format!("http://{address}"));
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("REQUEST_METHOD");
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(double.seen().len(), 1, "the child did not ask");
    proxy.set_nonblocking(true).unwrap();
    assert!(proxy.accept().is_err(), "the proxy was used");
}

/// The other half of the test above; by itself it asks nobody.
#[test]
fn asks_where_the_environment_says() {
    let Ok(url) = std::env::var(PROXIED_URL) else { return };
    let endpoint = Endpoint::usual(Vendor::OpenAi, Some(Key::new(KEY))).at(url);
    Client::new(endpoint, Limits { retries: 0, ..Limits::default() })
        .unwrap()
        .chat(&ask(Vendor::OpenAi, "hello"), ENOUGH)
        .unwrap();
}
