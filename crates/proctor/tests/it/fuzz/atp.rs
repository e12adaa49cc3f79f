//! Readers of the Agent Test Protocol: messages, conversations, event streams, calls of tools, and suites.

use bytes::Bytes;
use proctor_core::json::Json;
use proctor_wire::atp::tool::{Call, Route};
use proctor_wire::atp::validate::{Kind, validate};
use proctor_wire::atp::{Conversation, Event, ReadError, Request, Response, Source, Strictness};

use crate::fuzz::{Material, drive};

const REQUEST: &[u8] = br#"{"version":"1.0","task_id":"550e8400-e29b-41d4-a716-446655440000","task":{"description":"d","input_data":{"a":[1,null]},"expected_artifacts":["a.md",{"type":"file","format":"markdown","name":"r"}]},"constraints":{"max_steps":5,"max_tokens":10,"timeout_seconds":30,"allowed_tools":["t"],"budget_usd":1.50},"context":{"tools_endpoint":"http://127.0.0.1:1/x","workspace_path":"/w","environment":{"KEY":"value"}},"metadata":{"test_id":"t","run_number":1},"x":null}"#;

const RESPONSE: &[u8] = br#"{"version":"1.0","task_id":"t-1","status":"partial","artifacts":[{"type":"file","path":"a/b.md","content_type":"text/plain","size_bytes":3,"content_hash":"sha256:00","content":"abc"},{"type":"structured","name":"n","schema":"s","data":{"x":0.20}},{"type":"reference","path":"/w/big","size_bytes":15000000}],"metrics":{"total_tokens":10,"wall_time_seconds":1.5,"cost_usd":0.45},"error":null,"error_code":"TOOL_ERROR","error_details":{"tool":"t"},"trace_id":"x"}"#;

const EVENTS: [&[u8]; 4] = [
    br#"{"version":"1.0","task_id":"t-1","timestamp":"2025-01-21T10:30:45.123Z","sequence":0,"event_type":"tool_call","payload":{"tool":"web_search","input":{"q":"x"},"output":[1],"duration_ms":1.5,"status":"success","error":null}}"#,
    br#"{"version":"1.0","task_id":"t-1","timestamp":"2025-01-21T10:30:45","sequence":1,"event_type":"llm_request","payload":{"model":"m","input_tokens":1,"output_tokens":2,"temperature":0.7}}"#,
    br#"{"task_id":"t-1","event_type":"reasoning","payload":{"thought":"t","plan":"a, b"}}"#,
    br#"{"version":"1.3","task_id":"t-1","timestamp":"2025-01-21T10:30:45+01:00","sequence":2,"event_type":"new_kind","payload":{}}"#,
];

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\n",
    "null",
    "-1",
    "1e400",
    "1.0",
    "\"version\":\"1.0\"",
    "\"version\":\"2.0\"",
    "\"task_id\":\"t-1\"",
    "\"task\":{",
    "\"description\":\"d\"",
    "\"status\":\"completed\"",
    "\"artifacts\":[",
    "\"type\":\"file\"",
    "\"path\":\"../x\"",
    "\"path\":\"C:\\\\x\"",
    "\"content\":\"YWJj\"",
    "\"content_hash\":\"sha256:",
    "\"size_bytes\":",
    "\"metrics\":{",
    "\"event_type\":\"progress\"",
    "\"event_type\":\"error\"",
    "\"sequence\":",
    "\"timestamp\":\"2016-12-31T23:59:60Z\"",
    "\"payload\":{",
    "\"percentage\":101",
    "\"environment\":{",
    "\\ud800",
    "\\u0000",
    "\u{feff}",
    "\u{2028}",
];

fn read(kind: Kind, json: Json, strictness: Strictness) -> Result<Json, ReadError> {
    match kind {
        Kind::Request => Request::read(json, strictness).map(|read| read.message.into_json()),
        Kind::Response => Response::read(json, strictness).map(|read| read.message.into_json()),
        Kind::Event => Event::read(json, strictness).map(|read| read.message.into_json()),
    }
}

/// Every input is read as every kind of message, in both modes: a message that was read is read again as itself, and a refusal has a path.
#[test]
fn atp_messages() {
    let valid: Vec<&[u8]> = [REQUEST, RESPONSE].into_iter().chain(EVENTS).collect();
    drive("atp message", &Material { words: WORDS, valid: &valid }, |data| {
        for kind in [Kind::Request, Kind::Response, Kind::Event] {
            for strictness in [Strictness::Lenient, Strictness::Strict] {
                let report = validate(kind, data, strictness);
                if report.is_valid() != (report.invalid == 0)
                    || (!report.is_valid() && report.lines().is_empty())
                {
                    return Err("an invalid message without a reason".into());
                }
                let Ok(json) = proctor_wire::atp::parse_json(data) else { continue };
                match read(kind, json, strictness) {
                    Ok(message) => {
                        let again = read(kind, message.clone(), strictness).ok();
                        if again.as_ref() != Some(&message) {
                            return Err(format!("read as {message}, and then as {again:?}").into());
                        }
                    }
                    Err(error) if error.to_string().contains('$') => {}
                    Err(error) => return Err(format!("a refusal without a path: {error}").into()),
                }
            }
        }
        Ok(())
    });
}

/// Lines of any text as the messages of a run: it ends with a response, or with a reason.
#[test]
fn atp_conversations() {
    let run: Vec<u8> = EVENTS.into_iter().chain([RESPONSE, &b"loading"[..]]).collect::<Vec<_>>().join(&b'\n');
    let valid: &[&[u8]] = &[&run, RESPONSE, EVENTS[0]];
    drive("atp conversation", &Material { words: WORDS, valid }, |data| {
        let sources = [
            Source::StderrLine,
            Source::Message,
            Source::Sse { event: "" },
            Source::Sse { event: "response" },
            Source::Event,
            Source::Response,
        ];
        for source in sources {
            let mut conversation = Conversation::new("t-1");
            let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
            for line in &lines {
                conversation.feed(source, line);
            }
            conversation.feed_output(data);
            let ended = conversation.finish();
            if ended.response.is_none() && ended.problems.is_empty() {
                return Err(format!("{source:?}: neither a response nor a reason").into());
            }
            let kept = ended.events.len() as u64 + ended.counts.dropped;
            if kept != ended.counts.received || ended.counts.invalid > ended.counts.received {
                return Err(format!("{source:?}: events were counted as {:?}", ended.counts).into());
            }
        }
        Ok(())
    });
}

/// Event streams: the events do not depend on the chunks that the bytes come in, and a limit holds.
#[test]
fn atp_event_streams() {
    use proctor_net::sse::{Decoder, Event as SseEvent, TooLong};
    const LIMIT: usize = 4096;

    fn decode<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Result<Vec<SseEvent>, TooLong> {
        let mut decoder = Decoder::new(LIMIT);
        let mut events = Vec::new();
        for chunk in chunks {
            let mut chunk = Bytes::copy_from_slice(chunk);
            while let Some(event) = decoder.decode(&mut chunk)? {
                events.push(event);
            }
        }
        events.extend(decoder.finish()?);
        Ok(events)
    }

    let words = &[
        "data:",
        "data: ",
        "event:",
        "event: response",
        "id: 7",
        "retry: 1",
        ":",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "{}",
        "\u{feff}",
        "x",
    ];
    let valid: &[&[u8]] = &[
        b"data: {\"event_type\":\"progress\"}\n\nevent: response\ndata: {\ndata: \"status\": 1}\r\n\r\n: ping\n\n",
        b"\xEF\xBB\xBFevent: a\rdata:1\r\rdata\ndata: last block without end",
    ];
    drive("event stream", &Material { words, valid }, |data| {
        let whole = decode(std::iter::once(data));
        for size in [1, 2, 7] {
            if decode(data.chunks(size)) != whole {
                return Err(format!("other events in chunks of {size} bytes").into());
            }
        }
        match whole {
            Ok(events) if events.iter().any(|event| event.data.len() > LIMIT) => {
                Err("an event over the limit".into())
            }
            _ => Ok(()),
        }
    });
}

/// The first line is method, path and query, the rest the body of a call.
#[test]
fn atp_tool_calls() {
    let words = &[
        "POST",
        "GET",
        "DELETE",
        " ",
        "/",
        "\n",
        "tools/call",
        "/tools",
        "/records",
        "/health",
        "web_search",
        "%2e%2e",
        "%zz",
        "..",
        "?",
        "&",
        "tool=",
        "limit=",
        "-1",
        "{",
        "}",
        "\"tool\":",
        "\"input\":",
        "\"task_id\":",
        "null",
        ",",
        "\"x\"",
        "\\u0000",
        "\u{0}",
    ];
    let valid: &[&[u8]] = &[
        b"POST /web_search \n{\"task_id\":\"t\",\"input\":{\"query\":\"q\"}}",
        b"POST /tools/call \n{\"tool\":\"a\",\"input\":\"text\",\"task_id\":\"t\"}",
        b"GET /records tool=a&task_id=t&limit=5\n",
        b"DELETE /records \n",
        b"GET /tools/web_search \n",
    ];
    drive("tool call", &Material { words, valid }, |data| {
        let text = String::from_utf8_lossy(data);
        let (line, body) = text.split_once('\n').unwrap_or((&text, ""));
        let mut parts = line.splitn(3, ' ');
        let (method, path, query) =
            (parts.next().unwrap_or(""), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let Ok(route) = Route::parse(method, path, query) else { return Ok(()) };
        let Ok(call) = Call::read(&route, body.as_bytes()) else { return Ok(()) };
        if call.tool.is_empty() || call.tool.chars().any(char::is_control) {
            return Err(format!("a call of the tool {:?}", call.tool).into());
        }
        let again = Call::read(&route, call.to_json().to_string().as_bytes());
        if again.as_ref() != Ok(&call) {
            return Err(format!("read as {call:?}, and then as {again:?}").into());
        }
        Ok(())
    });
}

/// Suites: every refusal has a position inside of the source, and a suite that loads has tests with limits.
#[test]
fn suites() {
    use proctor_runner::suite::{LoadOptions, SecretFinding, load};

    let words = &[
        "test_suite:",
        "version:",
        "defaults:",
        "agents:",
        "tests:",
        "- ",
        "id: a",
        "name: n",
        "task:",
        "{",
        "}",
        "[",
        "]",
        ",",
        "description:",
        "${NAME}",
        "${NAME:x}",
        "${",
        "assertions:",
        "type: contains",
        "config:",
        "pattern: '(a+)+$'",
        "type: composite",
        "all:",
        "scoring:",
        "quality_weight: 1",
        "constraints:",
        "timeout_seconds: 0",
        "max_steps: 1e9",
        "mock_tools:",
        "approvals:",
        "reference:",
        "files:",
        "path: ../x",
        "setup:",
        "skip: why",
        "runs: 3",
        "pass_rate: 2",
        "attest:",
        "network: true",
        "public:",
        "environment:",
        "&a",
        "*a",
        "<<:",
        "|",
        ">-",
        "\"",
        "'",
        "#",
        "\t",
        "\n",
        "\n  ",
        "\n    ",
        "~",
        "!!str",
        "---",
        "\u{feff}",
        "critical: true",
    ];
    let valid: &[&[u8]] = &[
        include_bytes!("../../../../runner/tests/it/worked-example.yaml"),
        b"test_suite: s\ndefaults: {timeout_seconds: 20, runs_per_test: 2, scoring: {quality_weight: 1}}\nagents:\n  - {name: a, type: cli, config: {command: python3, args: [agent.py], environment: {K: \"${V:x}\"}}}\n  - {name: b, type: http, config: {endpoint: http://127.0.0.1:1/execute}}\ntests:\n  - id: one\n    name: One\n    tags: [smoke]\n    task: {description: Do it, input_data: {a: 1}, expected_artifacts: [a.md]}\n    constraints: {max_steps: 5, allowed_tools: [t], budget_usd: 0.5}\n    environment: {KEY: value}\n    public: [KEY]\n    runs: 3\n    pass_rate: 0.5\n    setup: [\"echo a\"]\n    reference: [{path: a.md, content: x}]\n    assertions:\n      - {type: contains, config: {pattern: hello}}\n      - {type: behavior, config: {must_use_tools: [t], no_errors: true}}\n      - {type: file_exists, config: {path: a.md}, critical: true}\n",
        b"{\"test_suite\":\"s\",\"tests\":[{\"id\":\"a\",\"name\":\"A\",\"task\":{\"description\":\"d\"},\"assertions\":[]}]}",
    ];
    let environment = |name: &str| (name == "NAME").then(|| "value".to_owned());
    let scan = |text: &str| text.find("AKIA").map(|offset| SecretFinding { kind: "key".to_owned(), offset });
    drive("suite", &Material { words, valid }, |data| {
        let lines = data.split(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
        match load(data, &LoadOptions::new(&environment, &scan)) {
            Ok(loaded) if loaded.suite.tests.is_empty() => Err("a suite without tests".into()),
            Ok(loaded)
                if loaded.suite.tests.iter().any(|test| test.settings.constraints.timeout_seconds == 0) =>
            {
                Err("a test without time".into())
            }
            Ok(_) => Ok(()),
            Err(mistakes) if mistakes.is_empty() => Err("refused without a reason".into()),
            Err(mistakes) => match mistakes.iter().find(|mistake| mistake.at.line > lines) {
                Some(mistake) => Err(format!("a mistake beyond the end: {mistake}").into()),
                None => Ok(()),
            },
        }
    });
}
