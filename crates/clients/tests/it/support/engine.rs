//! An engine to test a client with: it keeps to the protocol where its mode does not say otherwise, and refuses what the protocol
//! refuses, so that a client that breaks the rules is found out.

use std::io::{BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;

use serde_json::{Value, json};

/// Serves on the standard streams and ends the process.
pub(crate) fn serve(mode: &str) -> ! {
    let log_level =
        std::env::args().next_back().and_then(|last| last.strip_prefix("--log-level=").map(str::to_owned));
    let Some(log_level) = log_level else { exit_with(1, "the last argument is not the log level") };
    if mode == "dead" {
        exit_with(3, "no judge provider");
    }
    if mode == "asleep" {
        sleep_for_ever();
    }
    // Until this runtime is dropped the signal to terminate does nothing.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _deaf = (mode == "stubborn").then(|| {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap()
    });
    let mut engine =
        Engine { mode: mode.to_owned(), log_level, initialized: false, evaluated: 0, held: Vec::new() };
    for line in std::io::stdin().lock().lines() {
        engine.line(&line.unwrap());
    }
    if mode == "stubborn" || mode == "lazy" {
        sleep_for_ever();
    }
    std::process::exit(0);
}

struct Engine {
    mode: String,
    log_level: String,
    initialized: bool,
    evaluated: usize,
    held: Vec<(Value, Value)>,
}

impl Engine {
    fn line(&mut self, line: &str) {
        let Ok(request) = serde_json::from_str::<Value>(line) else {
            return refuse(&json!(0), -32700, "PARSE_ERROR");
        };
        let id = &request["id"];
        if !id.is_i64() {
            return refuse(&json!(0), -32700, "PARSE_ERROR");
        }
        let (Some("2.0"), Some(method)) = (request["jsonrpc"].as_str(), request["method"].as_str()) else {
            return refuse(id, -32600, "INVALID_REQUEST");
        };
        let params = &request["params"];
        match method {
            "initialize" if self.initialized => refuse(id, 3003, "SESSION_ERROR"),
            "initialize" => self.initialize(id, params),
            _ if !self.initialized => refuse(id, 3003, "SESSION_ERROR"),
            "evaluate_batch" => self.evaluate(id, params),
            "submit_plugin_result" => {
                let whole =
                    ["trace_id", "plugin_name", "assertion_id"].iter().all(|name| params[*name].is_string());
                self.evaluated += 1;
                answer(id, &json!({"accepted": whole && params["result"]["status"] == "pass"}));
            }
            "validate_trace_tree" => {
                answer(id, &json!({"valid": true, "depth": 0, "of": params["trace"]["trace_id"]}));
            }
            "query_drift" => answer(
                id,
                &json!({"report": {"assertion_id": params["assertion_id"], "count": 0, "window": params.get("window_size")}}),
            ),
            "generate_user_message" => {
                let said = format!(
                    "{}, {}",
                    params["persona"]["name"],
                    params["conversation_history"].as_array().unwrap().len()
                );
                answer(id, &json!({"message": said, "fault": params.get("fault_config")}));
            }
            "shutdown" if self.mode == "stubborn" || self.mode == "lazy" => {}
            "shutdown" if self.mode == "rude" => std::process::exit(5),
            "shutdown" => {
                answer(id, &json!({"sessions_completed": 1, "assertions_evaluated": self.evaluated}));
                std::process::exit(0);
            }
            _ => refuse(id, -32601, "METHOD_NOT_FOUND"),
        }
    }

    fn initialize(&mut self, id: &Value, params: &Value) {
        if self.mode == "mute" {
            say(&format!("thinking as {}", std::process::id()));
            return;
        }
        let told = params["sdk_name"] == "proctor"
            && params["sdk_version"].is_string()
            && params["preferred_encoding"] == "json";
        if params["protocol_version"] != json!(1) || !told {
            return refuse(id, 3003, "SESSION_ERROR");
        }
        self.initialized = true;
        let able = ["layers_1_4", "trace_tree", "plugins"];
        let missing: Vec<&Value> = params["required_capabilities"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|wanted| !able.iter().any(|able| *wanted == able))
            .collect();
        answer(
            id,
            &json!({
                "engine_version": format!("stand-in at {}", self.log_level),
                "protocol_version": if self.mode == "newer" { 2 } else { 1 },
                "capabilities": able,
                "missing": missing,
                "compatible": missing.is_empty(),
                "encoding": "json",
                "max_concurrent_requests": if self.mode == "single" { 1 } else { 64 },
                "max_trace_size_bytes": 10_485_760,
                "max_steps_per_trace": 10_000,
                "later_versions_may_add": ["fields"],
            }),
        );
        match self.mode.as_str() {
            "blind" => sleep_for_ever(),
            "quiet end" => {
                // Its output is closed, and it lives on: the same process goes on as another program.
                let error = again("asleep").stdout(std::process::Stdio::null()).exec();
                exit_with(1, &error.to_string());
            }
            _ => {}
        }
    }

    fn evaluate(&mut self, id: &Value, params: &Value) {
        let trace = &params["trace"];
        let (Some(trace_id), Some(assertions)) =
            (trace["trace_id"].as_str(), params["assertions"].as_array())
        else {
            return refuse(id, 1001, "INVALID_TRACE");
        };
        let results: Vec<Value> = assertions.iter().map(|assertion| {
            json!({"assertion_id": assertion["assertion_id"], "status": "pass", "score": 1, "explanation": trace_id, "cost": 0, "duration_ms": 0})
        }).collect();
        self.evaluated += results.len();
        let result = json!({"results": results, "total_cost": 0, "total_duration_ms": 0});
        match self.mode.as_str() {
            "backwards" | "single" => {
                self.held.push((id.clone(), result));
                let wanted = if self.mode == "single" { 1 } else { 10 };
                if self.held.len() == wanted {
                    for (id, result) in self.held.drain(..).rev() {
                        answer(&id, &result);
                    }
                }
            }
            "dies" => {
                self.held.push((id.clone(), result));
                if self.held.len() == 3 {
                    exit_with(7, "out of paper");
                }
            }
            "silent" if trace_id == "never" => say("got it"),
            "late" if trace_id == "first" => {
                self.held.push((id.clone(), result));
                say("holding");
            }
            "late" => {
                for (id, result) in self.held.drain(..) {
                    answer(&id, &result);
                }
                answer(id, &result);
            }
            "talkative" => {
                let line = [b"x".repeat(99).as_slice(), b"\n"].concat();
                for _ in 0..10_486 {
                    std::io::stderr().write_all(&line).unwrap();
                }
                say("that was all");
                answer(id, &result);
            }
            "heir" => {
                // It has all streams of this one, and ends when the client closes their input.
                #[expect(
                    clippy::zombie_processes,
                    reason = "it outlives this process: that is what is tested"
                )]
                let _heir = again("waits for the end").spawn().unwrap();
                exit_with(8, "my child stays");
            }
            "garbage" => garbage(id, &result),
            "long" => {
                let length = usize::try_from(trace["length"].as_u64().unwrap()).unwrap();
                answer(id, &json!({"results": "x".repeat(length)}));
            }
            _ => answer(id, &result),
        }
    }
}

/// Lines of no use around an answer.
fn garbage(id: &Value, result: &Value) {
    let others = [
        "",
        "hello",
        "[]",
        "17",
        "{\"jsonrpc\":\"2.0\"",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":1}",
        "\u{fffd}",
    ];
    for line in others {
        send(line.as_bytes());
    }
    send(b"\xff\xfe");
    send(br#"{"jsonrpc":"2.0","id":123456,"result":{}}"#);
    send(br#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
    send(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#);
    send(br#"{"jsonrpc":"2.0","method":"drift_alert","params":{"assertion_id":"a-1","status":"drift_detected"}}"#);
    answer(id, result);
    answer(id, &json!("again"));
    send(br#"{"jsonrpc":"2.0","method":"the_end"}"#);
}

fn answer(id: &Value, result: &Value) {
    send(json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string().as_bytes());
}

fn refuse(id: &Value, code: i64, error_type: &str) {
    let error = json!({"code": code, "message": "no", "data": {"error_type": error_type, "retryable": code == 3001, "detail": "said the stand-in"}});
    send(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().as_bytes());
}

fn send(line: &[u8]) {
    let mut out = std::io::stdout().lock();
    out.write_all(line).unwrap();
    out.write_all(b"\n").unwrap();
    out.flush().unwrap();
}

fn exit_with(code: i32, words: &str) -> ! {
    say(words);
    std::process::exit(code);
}

/// Command that runs this program as an engine of another mode.
fn again(mode: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(std::env::args_os().skip(1)).env(crate::attest_client::MODE, mode);
    command
}

fn say(words: &str) {
    std::io::stderr().write_all(format!("{words}\n").as_bytes()).unwrap();
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::park();
    }
}
