//! The client of Attest engines, against engines that are real processes: this program itself, started again as one.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::poll;
use proctor_clients::attest::{
    AttestClient, ClientError, Diagnostics, Ending, EngineBuilder, EngineError, EngineOptions, LogLevel,
    ShutdownResult, Stage,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Variable that makes this process an engine, and selects which one.
pub(crate) const MODE: &str = "PROCTOR_TEST_ENGINE_MODE";

/// The entry point of engine processes; passes at once in the test run itself.
#[test]
fn engine_double() {
    if let Ok(mode) = std::env::var(MODE) {
        crate::support::engine::serve(&mode);
    }
}

fn engine(mode: &str) -> EngineBuilder {
    // The last separator makes the log level an argument that the test harness does not read.
    ["attest_client::engine_double", "--exact", "--nocapture", "--quiet", "--"]
        .into_iter()
        .fold(EngineBuilder::new(std::env::current_exe().unwrap()), EngineBuilder::arg)
        .env(MODE, mode)
}

async fn started(mode: &str) -> AttestClient {
    engine(mode).start().await.unwrap()
}

async fn started_with(mode: &str, options: EngineOptions) -> AttestClient {
    engine(mode).options(options).start().await.unwrap()
}

fn trace(id: &str) -> Value {
    json!({"trace_id": id, "output": {"message": "done"}})
}

fn assertions() -> Value {
    json!([{"assertion_id": "a-1", "type": "content", "spec": {}}])
}

async fn evaluate(client: &AttestClient, id: &str) -> Result<Value, ClientError> {
    client.evaluate_batch(&trace(id), &assertions()).await.map(|raw| value(&raw))
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap()
}

/// Trace that a result is about.
fn about(result: &Value) -> &str {
    result["results"][0]["explanation"].as_str().unwrap()
}

fn is_alive(process_id: u32) -> bool {
    Path::new(&format!("/proc/{process_id}")).exists()
}

async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what} did not happen");
}

#[tokio::test]
async fn a_session_from_start_to_end() {
    let client = started("normal").await;
    let process_id = client.process_id().unwrap();
    assert_eq!(client.engine().engine_version, "stand-in at warn");
    assert_eq!(client.engine().max_concurrent_requests, 64);
    assert_eq!(
        evaluate(&client, "t-1").await.unwrap(),
        json!({
            "results": [{"assertion_id": "a-1", "status": "pass", "score": 1, "explanation": "t-1", "cost": 0, "duration_ms": 0}],
            "total_cost": 0,
            "total_duration_ms": 0,
        })
    );
    let result = json!({"status": "pass", "score": 0.95});
    assert!(client.submit_plugin_result("t-1", "p", "a-2", &result).await.unwrap());
    assert!(!client.submit_plugin_result("t-1", "p", "a-2", &json!({"status": "soft_fail"})).await.unwrap());
    let tree = client.validate_trace_tree(&trace("t-2")).await.unwrap();
    assert_eq!(value(&tree), json!({"valid": true, "depth": 0, "of": "t-2"}));
    let drift = client.query_drift("a-1", Some(20)).await.unwrap();
    assert_eq!(value(&drift)["report"], json!({"assertion_id": "a-1", "count": 0, "window": 20}));
    let said = client.generate_user_message(&json!({"name": "Ann"}), &json!([{}, {}]), None).await.unwrap();
    assert_eq!(said, "\"Ann\", 2");

    let report = client.shutdown().await.unwrap();
    assert_eq!(report.statistics, Some(ShutdownResult { sessions_completed: 1, assertions_evaluated: 3 }));
    assert_eq!((report.ending, report.status.code(), report.problem), (Ending::Exited, Some(0), None));
    assert!(!is_alive(process_id));
}

#[tokio::test]
async fn the_log_level_is_the_last_argument() {
    let options = EngineOptions { log_level: LogLevel::Debug, ..EngineOptions::default() };
    let client = started_with("normal", options).await;
    assert_eq!(client.engine().engine_version, "stand-in at debug");
}

#[tokio::test]
async fn an_error_answer_is_told_with_all_it_says() {
    let client = started("normal").await;
    let error = client.evaluate_batch(&json!({}), &json!([])).await.unwrap_err();
    let expected = EngineError {
        code: 1001,
        message: "no".to_owned(),
        error_type: "INVALID_TRACE".to_owned(),
        retryable: false,
        detail: "said the stand-in".to_owned(),
    };
    assert_eq!(error, ClientError::Refused { method: "evaluate_batch".to_owned(), error: expected });
    let text = error.to_string();
    assert_eq!(text, "the engine refused `evaluate_batch`: no (code 1001, INVALID_TRACE): said the stand-in");
    let unknown = client.request("list_results", &json!({})).await.unwrap_err();
    assert!(matches!(&unknown, ClientError::Refused { error, .. } if error.code == -32601), "{unknown}");
    assert_eq!(about(&evaluate(&client, "after").await.unwrap()), "after");
}

#[tokio::test]
async fn raw_json_on_several_lines_is_one_request() {
    let client = started("normal").await;
    let laid_out = RawValue::from_string(serde_json::to_string_pretty(&trace("pretty")).unwrap()).unwrap();
    assert!(laid_out.get().contains('\n'));
    let result = client.evaluate_batch(&laid_out, &assertions()).await.unwrap();
    assert_eq!(about(&value(&result)), "pretty");
    assert_eq!(client.diagnostics().unroutable, 0);
}

#[tokio::test]
async fn answers_in_any_order_reach_their_calls() {
    let client = started("backwards").await;
    let names: Vec<String> = (0..10).map(|number| format!("t-{number}")).collect();
    let results = join_all(names.iter().map(|name| evaluate(&client, name))).await;
    for (name, result) in names.iter().zip(results) {
        assert_eq!(about(&result.unwrap()), name);
    }
    assert_eq!((client.in_flight(), client.diagnostics().unknown_ids), (0, 0));
}

#[tokio::test]
async fn many_more_calls_than_the_engine_takes_at_once_all_get_answers() {
    for mode in ["single", "normal"] {
        let client = started(mode).await;
        let names: Vec<String> = (0..300).map(|number| format!("t-{number}")).collect();
        let results = join_all(names.iter().map(|name| evaluate(&client, name))).await;
        for (name, result) in names.iter().zip(results) {
            assert_eq!(about(&result.unwrap()), name);
        }
        assert_eq!(client.diagnostics().answers, 301);
    }
}

#[tokio::test]
async fn an_engines_own_limit_of_calls_is_kept() {
    let client = started("single").await;
    let (first, second) = (evaluate(&client, "first"), evaluate(&client, "second"));
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    assert_eq!(client.in_flight(), 1);
    assert_eq!(about(&first.await.unwrap()), "first");
    assert_eq!(about(&second.await.unwrap()), "second");
}

#[tokio::test]
async fn the_death_of_the_engine_fails_everybody_who_waits() {
    let client = started("dies").await;
    let errors = join_all(["a", "b", "c"].map(|name| evaluate(&client, name))).await;
    for error in errors.into_iter().map(Result::unwrap_err).chain([evaluate(&client, "d").await.unwrap_err()])
    {
        let ClientError::Ended(end) = &error else { panic!("{error}") };
        assert_eq!(end.status.unwrap().code(), Some(7));
        assert!(end.stderr.ends_with("out of paper\n"), "{}", end.stderr);
        assert_eq!(error.to_string(), "the engine ended (exit status: 7); its last words:\n  out of paper");
    }
    assert!(client.next_notification().await.is_none());
    assert!(matches!(client.shutdown().await, Err(ClientError::Ended(_))));
}

#[tokio::test]
async fn the_death_is_noticed_although_a_descendant_holds_the_streams() {
    let client = started("heir").await;
    let error = evaluate(&client, "a").await.unwrap_err();
    let ClientError::Ended(end) = &error else { panic!("{error}") };
    assert_eq!(end.status.unwrap().code(), Some(8));
    assert!(end.stderr.contains("my child stays"), "{error}");
}

#[tokio::test]
async fn an_engine_killed_by_a_signal_is_told_as_such() {
    let client = started("silent").await;
    let waiting = evaluate(&client, "never");
    let killing = async {
        until("the request", || client.stderr_tail().contains("got it")).await;
        let process_id = rustix::process::Pid::from_raw(client.process_id().unwrap().cast_signed()).unwrap();
        rustix::process::kill_process(process_id, rustix::process::Signal::KILL).unwrap();
    };
    let (result, ()) = tokio::join!(waiting, killing);
    let Err(ClientError::Ended(end)) = result else { panic!("{result:?}") };
    assert_eq!(end.status.unwrap().signal(), Some(9));
}

#[tokio::test]
async fn an_engine_that_closes_its_output_is_of_no_use() {
    let client = started("quiet end").await;
    let process_id = client.process_id().unwrap();
    let error = evaluate(&client, "a").await.unwrap_err();
    assert!(matches!(&error, ClientError::Ended(end) if end.status.is_none()), "{error}");
    drop(client);
    until("its end", || !is_alive(process_id)).await;
}

#[tokio::test]
async fn an_engine_that_dies_at_once_tells_why() {
    let error = engine("dead").start().await.unwrap_err();
    let ClientError::Ended(end) = &error else { panic!("{error}") };
    assert_eq!(end.status.unwrap().code(), Some(3));
    assert!(error.to_string().ends_with("no judge provider"), "{error}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let error = AttestClient::spawn("/nowhere/attest-engine", [""; 0], EngineOptions::default()).await;
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("the engine `/nowhere/attest-engine` cannot be started: "), "{text}");
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_a_timeout_and_others_go_on() {
    let client = started("silent").await;
    let params = json!({"trace": trace("never"), "assertions": []});
    let limit = Duration::from_secs(1);
    let error = client.request_within(limit, "evaluate_batch", &params).await.unwrap_err();
    let ClientError::Timeout { method, after, stage, .. } = &error else { panic!("{error}") };
    assert_eq!((method.as_str(), *after, *stage), ("evaluate_batch", limit, Stage::Answer));
    let text = error.to_string();
    assert!(
        text.starts_with("`evaluate_batch` took longer than 1000 ms: the engine did not answer"),
        "{text}"
    );
    assert_eq!(client.in_flight(), 0);
    assert_eq!(about(&evaluate(&client, "after").await.unwrap()), "after");
}

#[tokio::test]
async fn a_write_that_blocks_is_covered_by_the_timeout() {
    let client = started("blind").await;
    let large = json!({"trace_id": "large", "text": "x".repeat(4_000_000)});
    let params = json!({"trace": large, "assertions": []});
    for _ in 0..2 {
        let error = client.request_within(Duration::from_millis(100), "evaluate_batch", &params).await;
        assert!(matches!(error, Err(ClientError::Timeout { stage: Stage::Write, .. })), "{error:?}");
        assert_eq!(client.in_flight(), 0);
    }
}

#[tokio::test]
async fn waiting_for_a_place_is_covered_by_the_timeout() {
    let options = EngineOptions { max_in_flight: 1, ..EngineOptions::default() };
    let client = started_with("silent", options).await;
    let mut first = Box::pin(evaluate(&client, "never"));
    assert!(poll!(&mut first).is_pending());
    let second = client.request_within(Duration::from_millis(50), "query_drift", &json!({})).await;
    assert!(matches!(second, Err(ClientError::Timeout { stage: Stage::Slot, .. })), "{second:?}");
    drop(first);
    assert_eq!(about(&evaluate(&client, "after").await.unwrap()), "after");
}

#[tokio::test]
async fn a_cancelled_call_frees_its_place_and_its_late_answer_is_nobodys() {
    let options = EngineOptions { max_in_flight: 1, ..EngineOptions::default() };
    let client = started_with("late", options).await;
    let mut first = Box::pin(evaluate(&client, "first"));
    assert!(poll!(&mut first).is_pending());
    assert_eq!(client.in_flight(), 1);
    until("the request", || client.stderr_tail().contains("holding")).await;
    drop(first);
    assert_eq!(client.in_flight(), 0);
    assert_eq!(about(&evaluate(&client, "second").await.unwrap()), "second");
    assert_eq!(about(&evaluate(&client, "third").await.unwrap()), "third");
    assert_eq!(client.diagnostics().unknown_ids, 1);
}

#[tokio::test]
async fn an_engine_that_talks_much_never_blocks() {
    let client = started("talkative").await;
    assert_eq!(about(&evaluate(&client, "a").await.unwrap()), "a");
    until("the end of the talk", || client.stderr_tail().ends_with("that was all\n")).await;
    assert!(client.diagnostics().stderr_bytes > 1024 * 1024);
    assert_eq!(client.stderr_tail().len(), 64 * 1024);
}

#[tokio::test]
async fn garbage_is_counted_and_left_out_and_notifications_are_kept() {
    let client = started("garbage").await;
    let before = client.diagnostics();
    assert_eq!(about(&evaluate(&client, "a").await.unwrap()), "a");
    let first = client.next_notification().await.unwrap();
    assert_eq!(first.method, "drift_alert");
    assert_eq!(value(&first.params.unwrap()), json!({"assertion_id": "a-1", "status": "drift_detected"}));
    let last = client.next_notification().await.unwrap();
    assert_eq!((last.method.as_str(), last.params.is_none()), ("the_end", true));
    let after = client.diagnostics();
    assert_eq!(
        after,
        Diagnostics {
            answers: before.answers + 1,
            unreadable: before.unreadable + 8,
            unknown_ids: before.unknown_ids + 2,
            unroutable: before.unroutable + 2,
            notifications: 2,
            ..before
        }
    );
    assert!(client.take_notifications().is_empty());
    assert_eq!(client.shutdown().await.unwrap().ending, Ending::Exited);
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_its_call_and_the_next_one_is_whole() {
    let options = EngineOptions { max_answer_bytes: 1000, ..EngineOptions::default() };
    let client = started_with("long", options).await;
    let ask = |length: usize| {
        let trace = json!({"trace_id": "t", "length": length});
        let client = &client;
        async move { client.evaluate_batch(&trace, &json!([])).await }
    };
    let error = ask(1_000_000).await.unwrap_err();
    assert_eq!(error, ClientError::AnswerTooLong { method: "evaluate_batch".to_owned(), max: 1000 });
    assert_eq!(value(&ask(900).await.unwrap())["results"].as_str().unwrap().len(), 900);
    assert_eq!(client.diagnostics().too_long, 1);
}

#[tokio::test]
async fn a_long_answer_within_the_limit_arrives_whole() {
    let client = started("long").await;
    let trace = json!({"trace_id": "t", "length": 5_000_000});
    let result = client.evaluate_batch(&trace, &json!([])).await.unwrap();
    assert_eq!(value(&result)["results"].as_str().unwrap().len(), 5_000_000);
}

#[tokio::test]
async fn a_request_that_would_kill_an_engine_is_not_sent() {
    let client = started("normal").await;
    let error = evaluate(&client, &"x".repeat(10 * 1024 * 1024)).await.unwrap_err();
    let method = "evaluate_batch".to_owned();
    assert_eq!(error, ClientError::RequestTooLong { method, max: 10_485_759 });
    assert_eq!(about(&evaluate(&client, "after").await.unwrap()), "after");
}

#[tokio::test]
async fn an_incompatible_engine_is_refused_with_what_it_lacks() {
    let required = ["layers_1_4", "simulation", "layers_5_6"].map(str::to_owned).to_vec();
    let options = EngineOptions { required_capabilities: required, ..EngineOptions::default() };
    let error = engine("normal").options(options).start().await.unwrap_err();
    let missing = ["simulation", "layers_5_6"].map(str::to_owned).to_vec();
    let engine_version = "stand-in at warn".to_owned();
    assert_eq!(error, ClientError::Incompatible { engine_version, missing });
}

#[tokio::test]
async fn an_engine_of_another_protocol_version_is_refused() {
    let error = engine("newer").start().await.unwrap_err();
    let text = error.to_string();
    assert!(text.ends_with("it speaks version 2, this client version 1"), "{text}");
}

#[tokio::test]
async fn a_handshake_without_an_answer_is_a_timeout_and_leaves_no_process() {
    let options = EngineOptions { handshake_timeout: Duration::from_secs(3), ..EngineOptions::default() };
    let error = engine("mute").options(options).start().await.unwrap_err();
    let ClientError::Timeout { method, stderr, .. } = &error else { panic!("{error}") };
    assert_eq!(method, "initialize");
    let process_id = stderr.trim().strip_prefix("thinking as ").unwrap().parse().unwrap();
    assert!(!is_alive(process_id));
    assert!(error.to_string().ends_with(&format!("its last words:\n  thinking as {process_id}")), "{error}");
}

#[tokio::test]
async fn an_engine_that_ignores_shutdown_is_terminated() {
    let options = EngineOptions {
        shutdown_timeout: Duration::from_millis(100),
        terminate_timeout: Duration::from_secs(60),
        ..EngineOptions::default()
    };
    let client = started_with("lazy", options).await;
    let process_id = client.process_id().unwrap();
    let report = client.shutdown().await.unwrap();
    assert_eq!((report.ending, report.status.signal()), (Ending::Terminated, Some(15)));
    assert!(matches!(report.problem, Some(ClientError::Timeout { .. })), "{:?}", report.problem);
    assert_eq!(report.statistics, None);
    assert!(!is_alive(process_id));
}

#[tokio::test]
async fn an_engine_that_ignores_signals_too_is_killed() {
    let options = EngineOptions {
        shutdown_timeout: Duration::from_millis(100),
        terminate_timeout: Duration::from_millis(100),
        ..EngineOptions::default()
    };
    let client = started_with("stubborn", options).await;
    let process_id = client.process_id().unwrap();
    let report = client.shutdown().await.unwrap();
    assert_eq!((report.ending, report.status.signal()), (Ending::Killed, Some(9)));
    assert!(!is_alive(process_id));
}

#[tokio::test]
async fn an_engine_that_leaves_without_a_word_is_told() {
    let report = started("rude").await.shutdown().await.unwrap();
    assert_eq!((report.ending, report.status.code(), report.statistics), (Ending::Exited, Some(5), None));
    let Some(ClientError::Ended(end)) = report.problem else { panic!("{:?}", report.problem) };
    assert_eq!(end.status.unwrap().code(), Some(5));
}

#[tokio::test]
async fn a_dropped_client_leaves_no_engine() {
    let client = started("stubborn").await;
    let process_id = client.process_id().unwrap();
    drop(client);
    until("its end", || !is_alive(process_id)).await;
}

#[test]
fn an_engine_does_not_survive_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = runtime.block_on(started("stubborn"));
    let process_id = client.process_id().unwrap();
    drop(runtime);
    let stat = format!("/proc/{process_id}/stat");
    // Killed; what is left of it is collected by the next runtime or with this process.
    let dead = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    for _ in 0..2000 {
        if dead() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the engine is still there");
}
