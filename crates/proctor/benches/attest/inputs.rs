//! Requests to engines. The same in every run; every assertion passes.

use serde_json::{Value, json};

/// One of the assertion ids of the small batch: they stay the same, so that history grows under them.
const FIXED_ID: &str = "bench-schema";

/// A request that is sent many times, each time with another id.
pub struct Request {
    rest: String,
    /// Number of assertions that pass.
    pub passes: usize,
}

impl Request {
    fn new(method: &str, params: &Value, passes: usize) -> Request {
        Request { rest: format!(",\"method\":\"{method}\",\"params\":{params}}}\n"), passes }
    }

    /// Adds the line with this id.
    pub fn write(&self, id: u64, line: &mut Vec<u8>) {
        line.extend_from_slice(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}").as_bytes());
        line.extend_from_slice(self.rest.as_bytes());
    }

    /// Approximate length of a line.
    pub fn length(&self) -> usize {
        self.rest.len() + 30
    }
}

/// The first request.
pub fn initialize() -> Request {
    let params = json!({
        "sdk_name": "attest-bench",
        "sdk_version": "0",
        "protocol_version": 1,
        "required_capabilities": ["layers_1_4"],
        "preferred_encoding": "json",
    });
    Request::new("initialize", &params, 0)
}

/// Asks for what is remembered, which has to be written before.
pub fn drift(window: u32) -> Request {
    Request::new("query_drift", &json!({"assertion_id": FIXED_ID, "window_size": window}), 0)
}

/// Four assertions on a trace of two steps.
pub fn small() -> Request {
    let trace = json!({
        "schema_version": 1,
        "trace_id": "trace-small",
        "agent_id": "support",
        "input": {"question": "Where is my order 1042?"},
        "steps": [
            {
                "type": "llm_call",
                "name": "completion",
                "args": {"model": "some-model"},
                "result": {"completion": "I will look it up.", "tokens": 120},
            },
            {
                "type": "tool_call",
                "name": "find_order",
                "args": {"order": 1042},
                "result": {"order": 1042, "status": "shipped", "carrier": "post"},
            },
        ],
        "output": {
            "message": "Your order 1042 was shipped yesterday and comes by post.",
            "structured": {"order": 1042, "status": "shipped"},
        },
        "metadata": {"total_tokens": 340, "cost_usd": 0.004, "latency_ms": 900, "model": "some-model"},
        "parent_trace_id": null,
    });
    let schema = json!({
        "type": "object",
        "required": ["order", "status"],
        "properties": {"order": {"type": "integer"}, "status": {"enum": ["open", "shipped", "delivered"]}},
    });
    let assertions = [
        ("schema", json!({"target": "output.structured", "schema": schema})),
        (
            "constraint",
            json!({"field": "metadata.cost_usd", "operator": "lte", "value": 0.01, "soft": false}),
        ),
        (
            "trace",
            json!({"check": "contains_in_order", "tools": ["completion", "find_order"], "soft": false}),
        ),
        (
            "content",
            json!({"target": "output.message", "check": "contains", "value": "shipped", "case_sensitive": false, "soft": false}),
        ),
    ];
    let named = assertions
        .iter()
        .map(|(kind, spec)| json!({"assertion_id": format!("bench-{kind}"), "type": kind, "spec": spec}));
    let named: Vec<Value> = named.collect();
    Request::new("evaluate_batch", &json!({"trace": trace, "assertions": named}), assertions.len())
}

/// Twenty assertions on a trace of this many steps, each of about 500 bytes.
pub fn large(steps: usize) -> Request {
    let trace = json!({
        "schema_version": 1,
        "trace_id": "trace-large",
        "agent_id": "planner",
        "input": {"task": "go through every order"},
        "steps": (0..steps).map(step).collect::<Vec<Value>>(),
        "output": {
            "message": format!("All orders were looked at. {} The last one is shipped.", text(3, 4000)),
            "structured": {"orders": steps, "status": "shipped", "names": ["first", "last"]},
        },
        "metadata": {"total_tokens": 900_000, "cost_usd": 4.5, "latency_ms": 90_000, "model": "some-model"},
        "parent_trace_id": null,
    });
    let assertions: Vec<Value> = twenty()
        .into_iter()
        .enumerate()
        .map(|(index, (kind, spec))| json!({"assertion_id": format!("large-{index}"), "type": kind, "spec": spec}))
        .collect();
    let passes = assertions.len();
    Request::new("evaluate_batch", &json!({"trace": trace, "assertions": assertions}), passes)
}

/// Every tenth step asks a model, every thousandth another agent, the others are tools.
fn step(index: usize) -> Value {
    let asks_model = index.is_multiple_of(10);
    let begin = 1_790_000_000_000_u64 + index as u64 * 10;
    let mut step = json!({
        "type": if asks_model { "llm_call" } else { "tool_call" },
        "name": if asks_model { "completion".to_owned() } else { format!("tool_{}", index % 50) },
        "args": {"order": index, "fields": ["status", "carrier"], "note": text(index, 100)},
        "result": {"order": index, "status": "shipped", "weight": 1.5, "log": text(index + 7, 140)},
        "started_at_ms": begin,
        "ended_at_ms": begin + 8,
        "agent_id": null,
    });
    if index % 1000 == 55
        && let Some(step) = step.as_object_mut()
    {
        let agent = format!("helper-{}", index / 1000);
        step.insert("type".to_owned(), json!("agent_call"));
        step.insert("name".to_owned(), json!(agent));
        let sub_trace = json!({
            "schema_version": 1,
            "trace_id": format!("trace-{agent}"),
            "agent_id": agent,
            "input": {"order": index},
            "steps": [{"type": "tool_call", "name": "look", "args": {"order": index}, "result": {"found": true}}],
            "output": {"message": "found it"},
            "metadata": {"total_tokens": 10, "cost_usd": 0.001, "latency_ms": 5},
            "parent_trace_id": "trace-large",
        });
        step.insert("sub_trace".to_owned(), sub_trace);
    }
    step
}

fn twenty() -> [(&'static str, Value); 20] {
    let order =
        json!({"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}});
    let shipped =
        json!({"type": "object", "required": ["status"], "properties": {"status": {"const": "shipped"}}});
    let tools = |names: &[&str]| json!(names);
    [
        ("schema", json!({"target": "output.structured", "schema": shipped})),
        ("schema", json!({"target": "output", "schema": {"type": "object", "minProperties": 2}})),
        ("schema", json!({"target": "steps[?name=='tool_49'].args", "schema": order})),
        ("schema", json!({"target": "steps[?name=='tool_7'].result", "schema": shipped})),
        ("constraint", json!({"field": "metadata.cost_usd", "operator": "lte", "value": 5, "soft": false})),
        (
            "constraint",
            json!({"field": "metadata.total_tokens", "operator": "between", "min": 1, "max": 1_000_000}),
        ),
        ("constraint", json!({"field": "steps.length", "operator": "lte", "value": 10_000, "soft": false})),
        ("constraint", json!({"field": "steps[?type=='tool_call'].length", "operator": "gte", "value": 1})),
        (
            "trace",
            json!({"check": "contains_in_order", "tools": tools(&["completion", "tool_1", "tool_49"])}),
        ),
        (
            "trace",
            json!({"check": "exact_order", "tools": tools(&["tool_17", "tool_18", "tool_19", "completion"])}),
        ),
        ("trace", json!({"check": "loop_detection", "tool": "completion", "max_repetitions": 1000})),
        (
            "trace",
            json!({"check": "required_tools", "tools": tools(&["tool_1", "tool_2", "tool_3", "completion"])}),
        ),
        ("trace", json!({"check": "forbidden_tools", "tools": tools(&["delete_order", "send_money"])})),
        ("content", json!({"target": "output.message", "check": "contains", "value": "the last one"})),
        (
            "content",
            json!({"target": "output.message", "check": "regex_match", "value": "last one is (shipped|open)"}),
        ),
        (
            "content",
            json!({"target": "output.message", "check": "keyword_all", "values": ["orders", "shipped"]}),
        ),
        (
            "content",
            json!({"target": "output.message", "check": "forbidden", "values": ["password", "secret"]}),
        ),
        (
            "content",
            json!({"target": "steps[?name=='tool_49'].result.status", "check": "contains", "value": "shipped"}),
        ),
        ("trace_tree", json!({"check": "agent_called", "agent_id": "helper-0"})),
        ("trace_tree", json!({"check": "aggregate_tokens", "operator": "lte", "value": 2_000_000})),
    ]
}

/// A text of this length, which another seed makes another.
fn text(seed: usize, length: usize) -> String {
    const WORDS: [&str; 8] =
        ["parcel ", "north ", "seven ", "\"quoted\" ", "before ", "crème ", "line\n", "table "];
    let mut text = String::with_capacity(length + 10);
    let mut place = seed;
    while text.len() < length {
        text.push_str(WORDS.get(place % WORDS.len()).copied().unwrap_or_default());
        place = place.wrapping_mul(5).wrapping_add(seed % 13 + 1);
    }
    text
}
