//! Runs of workflows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_core::json::Json;
use proctor_flow::run::{Cancel, Options, Parts, Runner, WorkflowRun};
use proctor_wire::agentcli::error::Code;

use super::fixture::{ALLOW, Jumping, World, manifest, script};

fn child(id: &str, parent: &str, on: &str, text: &str, more: &str) -> String {
    let more = if more.is_empty() { String::new() } else { format!(",{more}") };
    script(id, text, &format!(r#""trigger":{{"parent":"{parent}","on":"{on}"{more}}}"#))
}

async fn run(world: &World, timer: Arc<Jumping>, tasks: &[String], root: Option<&str>) -> WorkflowRun {
    let runner = Runner::new(Parts { timer, ..world.parts() }).unwrap();
    let manifest = manifest(&tasks.join(","));
    runner.run_workflow(&manifest, None, root, &Options::default(), &mut Cancel::never()).await.unwrap()
}

/// Tasks with their status, in the order of the result.
fn statuses(run: &WorkflowRun) -> Vec<String> {
    let tasks = run.json.get("tasks").and_then(Json::as_array).unwrap();
    let text = |task: &Json, name: &str| task.get(name).and_then(Json::as_str).unwrap().to_owned();
    tasks.iter().map(|task| format!("{} {}", text(task, "task_id"), text(task, "status"))).collect()
}

fn order(world: &World) -> String {
    std::fs::read_to_string(world.work().join("order")).unwrap_or_default().split_whitespace().collect()
}

#[tokio::test]
async fn tasks_run_by_ready_time_then_by_sequence() {
    let world = World::new(Some(ALLOW));
    let timer = Arc::new(Jumping::default());
    let note = |id: &str| format!("echo {id} >> order");
    let tasks = [
        script("a", &note("a"), ""),
        child("late", "a", "success", &note("l"), r#""delay_s":60"#),
        child("soon", "a", "success", &note("s"), r#""delay_s":5"#),
        child("now", "a", "complete", &note("n"), ""),
        script("b", &note("b"), ""),
        child("below", "now", "success", &note("w"), ""),
    ];
    let done = run(&world, Arc::clone(&timer), &tasks, None).await;
    assert!(done.is_ok, "{}", done.json);
    assert_eq!(order(&world), "abnwsl");
    assert_eq!(*timer.waited.lock().unwrap(), [Duration::from_secs(5), Duration::from_secs(55)]);
    assert_eq!(statuses(&done), ["a ok", "b ok", "now ok", "below ok", "soon ok", "late ok"]);
    assert_eq!(world.story("w/below"), ["session ", "decision allow", "outcome ok", "run ended"]);
}

#[tokio::test]
async fn one_root_runs_with_what_it_triggers() {
    let world = World::new(Some(ALLOW));
    let tasks = [
        script("a", "true", ""),
        child("b", "a", "success", "true", ""),
        child("c", "b", "success", "true", ""),
        script("other", "true", ""),
    ];
    let done = run(&world, Arc::default(), &tasks, Some("b")).await;
    assert_eq!(statuses(&done), ["b ok", "c ok"]);
}

#[tokio::test]
async fn failures_trigger_their_children_and_fail_the_run() {
    let world = World::new(Some(ALLOW));
    let tasks = [
        script("a", "exit 1", ""),
        child("good", "a", "success", "true", ""),
        child("below", "good", "complete", "true", ""),
        child("bad", "a", "failure", "true", ""),
        child("any", "a", "complete", "true", ""),
    ];
    let done = run(&world, Arc::default(), &tasks, None).await;
    assert!(!done.is_ok);
    assert_eq!(statuses(&done), ["a failed", "good skipped", "below skipped", "bad ok", "any ok"]);
    assert_eq!(world.end("w/below").get("status"), Some(&Json::from("skipped")));
    assert_eq!(done.refused, None);
    // A refused task has not succeeded either, and says what it is.
    let refused = World::new(None);
    let done = run(
        &refused,
        Arc::default(),
        &[script("a", "true", ""), child("f", "a", "failure", "true", "")],
        None,
    )
    .await;
    assert_eq!(statuses(&done), ["a refused", "f refused"]);
    assert_eq!(done.refused, Some(Code::AuthorizationDenied));
    assert_eq!((&done.json["failed"], &done.json["refused"]), (&Json::from(2_u64), &Json::from(2_u64)));
}

#[tokio::test]
async fn on_failure_handlers_run_as_tasks_of_their_own() {
    let world = World::new(Some(ALLOW));
    let handler = r#""on_failure":{"shell":{"program":"touch","args":["handled"]}}"#;
    let done = run(&world, Arc::default(), &[script("a", "exit 1", handler)], None).await;
    assert_eq!(statuses(&done), ["a failed", "a.failure ok"]);
    assert!(world.work().join("handled").exists());
}

#[tokio::test]
async fn conditions_decide_on_the_output_of_the_parent() {
    let world = World::new(Some(ALLOW));
    let tasks = [
        script("a", "echo total: 42", ""),
        child("yes", "a", "success", "true", r#""condition":"contains:total""#),
        child("no", "a", "success", "true", r#""condition":"contains:missing""#),
        child("matched", "a", "success", "true", r#""condition":"regex:(?<=: )\\d+""#),
        child("unmatched", "a", "success", "true", r#""condition":"regex:^42""#),
        child("below", "unmatched", "complete", "true", ""),
    ];
    let done = run(&world, Arc::default(), &tasks, None).await;
    assert!(done.is_ok);
    assert_eq!(
        statuses(&done),
        ["a ok", "no skipped", "unmatched skipped", "below skipped", "yes ok", "matched ok"]
    );
}

#[tokio::test]
async fn a_catastrophic_expression_fails_its_task_in_time() {
    let world = World::new(Some(ALLOW));
    let tasks = [
        script("a", "printf a%.0s $(seq 40); echo '!'", ""),
        child("slow", "a", "success", "true", r#""condition":"regex:^(a+)+$""#),
        child("below", "slow", "complete", "true", ""),
        child("fine", "a", "success", "true", ""),
    ];
    let begun = Instant::now();
    let done = run(&world, Arc::default(), &tasks, None).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert!(!done.is_ok);
    assert_eq!(statuses(&done), ["a ok", "slow failed", "below skipped", "fine ok"]);
}

#[tokio::test]
async fn disabled_tasks_skip_their_branch() {
    let world = World::new(Some(ALLOW));
    let tasks = [
        script("a", "touch ran", r#""enabled":false"#),
        child("b", "a", "complete", "touch ran", ""),
        script("c", "true", ""),
    ];
    let done = run(&world, Arc::default(), &tasks, None).await;
    assert!(done.is_ok);
    assert_eq!(statuses(&done), ["a skipped", "b skipped", "c ok"]);
    assert!(!world.work().join("ran").exists());
}

#[tokio::test]
async fn circles_are_refused_before_anything_runs() {
    let world = World::new(Some(ALLOW));
    let tasks = [
        script("a", "touch ran", ""),
        child("x", "y", "complete", "true", ""),
        child("y", "x", "complete", "true", ""),
    ];
    let manifest = manifest(&tasks.join(","));
    let runner = world.runner();
    let refused = runner
        .run_workflow(&manifest, None, None, &Options::default(), &mut Cancel::never())
        .await
        .unwrap_err();
    assert_eq!(refused.failure.code, Code::ValidationError);
    assert!(!world.work().join("ran").exists());
}

#[tokio::test]
async fn cancelling_skips_what_has_not_begun() {
    let world = World::new(Some(ALLOW));
    let (_give, order) = tokio::sync::watch::channel(true);
    let manifest =
        manifest(&[script("a", "touch ran", ""), child("b", "a", "complete", "true", "")].join(","));
    let done = world
        .runner()
        .run_workflow(&manifest, None, None, &Options::default(), &mut Cancel::new(order))
        .await
        .unwrap();
    assert_eq!(statuses(&done), ["a skipped", "b skipped"]);
    assert!(!done.is_ok, "a cancelled run has not done what it should");
}

#[tokio::test]
async fn a_parent_starts_no_more_children_than_its_budget() {
    let world = World::new(Some(ALLOW));
    let tasks = [
        script("a", "true", r#""budgets":{"max_fanout":2}"#),
        child("off", "a", "success", "true", "").replace(r#""id":"off""#, r#""enabled":false,"id":"off""#),
        child("unmatched", "a", "failure", "true", ""),
        child("first", "a", "success", "true", ""),
        child("second", "a", "complete", "true", ""),
        child("third", "a", "success", "touch ran", ""),
        child("below", "third", "complete", "touch ran", ""),
    ];
    let done = run(&world, Arc::default(), &tasks, None).await;
    assert!(done.is_ok, "{}", done.json);
    assert_eq!(
        statuses(&done),
        [
            "a ok",
            "off skipped",
            "unmatched skipped",
            "third skipped",
            "below skipped",
            "first ok",
            "second ok"
        ]
    );
    assert!(!world.work().join("ran").exists());
    let reason = world.end("w/third");
    assert!(reason["reason"].as_str().unwrap().contains("max_fanout"), "{reason}");
    // Twenty-five where the budget does not say.
    let world = World::new(Some(ALLOW));
    let mut many = vec![script("a", "true", "")];
    many.extend((0..27).map(|number| child(&format!("c{number}"), "a", "success", "true", "")));
    let done = run(&world, Arc::default(), &many, None).await;
    let skipped: Vec<String> =
        statuses(&done).into_iter().filter(|status| status.ends_with("skipped")).collect();
    assert_eq!(skipped, ["c25 skipped", "c26 skipped"]);
}

#[tokio::test]
async fn retries_wait_their_turn_and_children_follow_the_last_attempt() {
    let world = World::new(Some(ALLOW));
    let timer = Arc::new(Jumping::default());
    let tasks = [
        script(
            "flaky",
            "echo f >> order; [ $(grep -c f order) -ge 2 ]",
            r#""reliability":{"max_retries":3}"#,
        ),
        child("after", "flaky", "success", "echo a >> order", ""),
        child("handler", "flaky", "failure", "echo h >> order", ""),
        script("other", "echo o >> order", ""),
        child("late", "other", "success", "echo l >> order", r#""delay_s":60"#),
    ];
    let done = run(&world, Arc::clone(&timer), &tasks, None).await;
    assert!(done.is_ok, "{}", done.json);
    assert_eq!(order(&world), "fofal", "another task runs while the retry waits");
    assert_eq!(statuses(&done), ["other ok", "flaky ok", "handler skipped", "after ok", "late ok"]);
    let attempts = done.json.pointer("/tasks/1/execution/attempts").and_then(Json::as_array).unwrap();
    assert_eq!(attempts.len(), 2);
}

#[tokio::test]
async fn cancelling_between_attempts_leaves_a_failed_task() {
    let world = World::new(Some(ALLOW));
    let (give, order) = tokio::sync::watch::channel(false);
    let manifest = manifest(
        &[
            script("a", "exit 1", r#""reliability":{"max_retries":3}"#),
            child("b", "a", "complete", "true", ""),
        ]
        .join(","),
    );
    let runner = world.runner();
    let mut cancel = Cancel::new(order);
    let options = Options::default();
    let running = runner.run_workflow(&manifest, None, None, &options, &mut cancel);
    let cancelling = async {
        while !world.story("w/a").iter().any(|record| record == "run ended") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        give.send(true).unwrap();
    };
    let (done, ()) = tokio::join!(running, cancelling);
    assert_eq!(statuses(&done.unwrap()), ["a failed", "b skipped"]);
}

#[tokio::test]
async fn the_output_that_a_result_shows_is_bounded() {
    let world = World::new(Some(ALLOW));
    let tasks: Vec<String> = (0..4)
        .map(|number| {
            let text = "head -c 10000000 /dev/zero | tr '\\0' x";
            script(&format!("t{number}"), text, r#""output":{"preview_bytes":10485760,"offload":"never"}"#)
        })
        .collect();
    let done = run(&world, Arc::default(), &tasks, None).await;
    assert!(done.is_ok);
    let of = |number: usize, name: &str| {
        done.json.pointer(&format!("/tasks/{number}/execution/result/{name}")).cloned().unwrap()
    };
    for number in 0..4 {
        let shown = if number < 3 { 10_000_000 } else { 0 };
        assert_eq!(of(number, "stdout").as_str().unwrap().len(), shown, "{number}");
        assert_eq!(of(number, "stdout_truncated"), Json::Bool(number == 3));
        assert_eq!(of(number, "stdout_bytes").as_u64(), Some(10_000_000));
    }
}
