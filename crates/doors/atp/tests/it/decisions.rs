//! Decisions and their outcomes: one record each, for each call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_door_atp::{ApprovalAnswer, CallStatus, Question, RecordedCall, Run};

use crate::fixture::{POLICY, bench, bench_with, json};

#[tokio::test]
async fn an_allowed_call_runs_and_is_one_decision_and_one_outcome() {
    let bench = bench();
    let reply = bench.call("echo", r#"{"a":1}"#).await;
    assert_eq!(reply["status"], "success");
    assert_eq!(reply["output"], json(r#"{"a":1}"#));
    assert!(reply["duration_ms"].as_u64().is_some() && reply.get("error").is_none());
    assert_eq!(bench.kinds(), ["decision allow", "outcome ok"]);
    let records = bench.records();
    let (decision, body) = &records[0];
    assert_eq!((decision.door.as_str(), decision.tool.as_str()), ("atp", "echo"));
    assert_eq!(decision.principal, "uid:1000/run-1");
    assert_eq!(body.pointer("/read_set/action/args/a").and_then(Json::as_u64), Some(1));
    assert_eq!(records[1].1["result"], json(r#"{"a":1}"#));
    let calls = bench.door.finish().await.calls;
    assert_eq!(calls.len(), 1);
    let record = calls[0].decision.as_ref().unwrap().record.unwrap();
    assert_eq!((record.0, calls[0].status), (decision.id, CallStatus::Success));
    assert_eq!(records[1].0.links, [record.1]);
    assert_eq!(calls[0].outcome, Some(record.1 + 1));
}

#[tokio::test]
async fn a_denied_call_does_not_run() {
    let bench = bench();
    let reply = bench.call("purge", "{}").await;
    assert_eq!((reply["status"].as_str(), reply["error_code"].as_str()), (Some("error"), Some("TOOL_ERROR")));
    assert_eq!(reply["error_details"]["rule"], "no-purging");
    assert_eq!(reply["error_details"]["reason"], "Nothing is purged.");
    assert!(bench.tools.seen.lock().unwrap().is_empty());
    assert_eq!(bench.kinds(), ["decision deny"]);
    assert_eq!(bench.door.finish().await.calls[0].status, CallStatus::Denied);
}

#[tokio::test]
async fn a_question_that_nobody_answers_is_a_refusal() {
    let bench = bench();
    let reply = bench.call("mail", "{}").await;
    assert_eq!(reply["error_code"], "TOOL_ERROR");
    assert_eq!(reply["error_details"]["rule"], "ask-mail");
    assert!(bench.tools.seen.lock().unwrap().is_empty());
    assert_eq!(bench.kinds(), ["decision ask"]);
    assert_eq!(bench.door.finish().await.calls[0].status, CallStatus::NotApproved);
}

fn answering(is_approved: bool) -> impl FnOnce(&mut Run) {
    move |run| {
        run.approvals = Some(Arc::new(move |question: &Question<'_>| {
            assert_eq!((question.tool, question.rule), ("mail", "ask-mail"));
            Some(ApprovalAnswer { is_approved, reason: "by the suite".to_owned() })
        }));
    }
}

#[tokio::test]
async fn approvals_of_the_run_let_a_call_happen_and_are_on_record() {
    let bench = bench_with(POLICY, answering(true));
    let reply = bench.call("mail", r#"{"to":"a"}"#).await;
    assert_eq!(reply["status"], "success");
    // No alarm: the call was approved, though by no person.
    assert_eq!(bench.kinds(), ["decision ask", "observation simulated_approval", "outcome ok"]);
    let records = bench.records();
    assert_eq!(records[1].1["data"]["approved"].as_bool(), Some(true));
    assert_eq!(records[1].1["data"]["decision_id"].as_str(), Some(records[0].0.id.to_string().as_str()));
    assert_eq!(records[2].1["binding"], "simulated_approval");
    let reader = bench.engine.ledger().reader();
    let trace = proctor_engine::traces::read_trace(&reader, records[0].0.session.unwrap()).unwrap();
    let steps: Vec<&str> = trace.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!((steps.as_slice(), trace.denied.len()), (&["mail"][..], 0), "the call was made");
    assert_eq!(trace.steps[0].result, json(r#"{"to":"a"}"#));
    assert_eq!(bench.door.finish().await.calls[0].decision.as_ref().unwrap().effect, Effect::Ask);
}

#[tokio::test]
async fn approvals_of_the_run_can_refuse() {
    let bench = bench_with(POLICY, answering(false));
    let reply = bench.call("mail", "{}").await;
    assert_eq!(reply["error_code"], "TOOL_ERROR");
    assert!(reply["error"].as_str().unwrap().contains("by the suite"));
    assert!(bench.tools.seen.lock().unwrap().is_empty());
    assert_eq!(bench.kinds(), ["decision ask", "observation simulated_approval"]);
}

#[tokio::test]
async fn changed_arguments_reach_the_tool() {
    let bench = bench();
    let reply = bench.call("limited", r#"{"limit":100,"q":"x"}"#).await;
    assert_eq!(reply["output"], json(r#"{"limit":5,"q":"x"}"#));
    let calls = bench.door.finish().await.calls;
    assert_eq!(calls[0].changed_input, Some(json(r#"{"limit":5,"q":"x"}"#)));
    assert_eq!(calls[0].call.input, Some(json(r#"{"limit":100,"q":"x"}"#)));
}

#[tokio::test]
async fn credentials_are_cut_from_the_arguments_and_from_the_ledger() {
    let bench = bench();
    let key = format!("AKIA{}", "IOSFODNN7EXAMPLQ");
    let reply = bench.call("echo", &format!(r#"{{"key":"{key}"}}"#)).await;
    assert_eq!(reply["status"], "success");
    assert!(!reply.to_string().contains(&key), "{reply}");
    assert_eq!(bench.kinds()[0], "decision redact");
    assert!(bench.records().iter().all(|(_, body)| !body.to_string().contains(&key)));
}

#[tokio::test]
async fn secrets_of_the_run_reach_the_tool_and_not_the_ledger() {
    let bench = bench_with(POLICY, |run| {
        run.cut_secrets =
            Some(Arc::new(|value: Json| json(&value.to_string().replace("hunter2hunter2", "[cut]"))));
    });
    let reply = bench.call("echo", r#"{"password":"hunter2hunter2"}"#).await;
    assert_eq!(reply["output"]["password"], "hunter2hunter2");
    bench.call("nothing", r#""hunter2hunter2""#).await;
    assert!(bench.records().iter().all(|(_, body)| !body.to_string().contains("hunter2")));
}

#[tokio::test]
async fn inputs_that_are_no_objects_reach_the_tool_as_they_are() {
    let bench = bench();
    assert_eq!(bench.call("echo", r#""text""#).await["output"], "text");
    assert_eq!(bench.call("echo", "[1]").await["output"], json("[1]"));
    assert_eq!(bench.call("echo", "null").await["output"], json("{}"));
    assert_eq!(bench.records()[0].1.pointer("/read_set/action/args/input"), Some(&Json::from("text")));
}

#[tokio::test]
async fn failures_of_tools_are_outcomes() {
    let bench = bench_with(POLICY, |run| run.call_timeout = Duration::from_millis(50));
    let failed = bench.call("fail", "{}").await;
    assert_eq!(
        (failed["error"].as_str(), failed["error_code"].as_str()),
        (Some("the disk is full"), Some("TOOL_ERROR"))
    );
    assert_eq!(failed["output"], "half");
    assert_eq!(bench.call("panic", "{}").await["error_code"], "INTERNAL_ERROR");
    assert_eq!(bench.call("hang", "{}").await["error_code"], "TIMEOUT");
    let unknown = bench.call("nothing", "{}").await;
    assert_eq!(unknown["error_code"], "TOOL_NOT_FOUND");
    assert_eq!(unknown["error_details"]["available_tools"].as_array().map(<[Json]>::len), Some(8));
    assert_eq!(bench.kinds(), ["decision allow", "outcome failed"].repeat(4));
    let statuses: Vec<CallStatus> = bench.door.finish().await.calls.iter().map(|call| call.status).collect();
    assert_eq!(
        statuses,
        [CallStatus::Failed, CallStatus::Failed, CallStatus::TimedOut, CallStatus::UnknownTool]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_calls_are_each_recorded_once() {
    let seen: Arc<Mutex<usize>> = Arc::default();
    let counted = Arc::clone(&seen);
    let bench = bench_with(POLICY, move |run| {
        run.on_call = Some(Arc::new(move |_: &RecordedCall| *counted.lock().unwrap() += 1));
    });
    let bench = Arc::new(bench);
    let calls: Vec<_> = (0..40)
        .map(|number| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move { bench.call("echo", &format!(r#"{{"n":{number}}}"#)).await })
        })
        .collect();
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap()["output"]["n"].as_u64(), Some(number as u64));
    }
    let records = bench.records();
    let count = |kind| records.iter().filter(|(envelope, _)| envelope.kind == kind).count();
    assert_eq!((count(RecordKind::Decision), count(RecordKind::Outcome), records.len()), (40, 40, 80));
    let Ok(bench) = Arc::try_unwrap(bench) else { panic!("all calls have ended") };
    let finished = bench.door.finish().await;
    let mut decisions: Vec<u64> =
        finished.calls.iter().map(|call| call.decision.as_ref().unwrap().record.unwrap().1).collect();
    decisions.sort_unstable();
    decisions.dedup();
    assert_eq!((decisions.len(), *seen.lock().unwrap()), (40, 40));
}
