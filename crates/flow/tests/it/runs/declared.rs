//! Members of a task that a run applies: format of output, cost, audit, retries; and warnings about those that it does not.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_flow::run::{
    AgentAnswer, AgentFailure, AgentRequest, AgentRuntime, BoxFuture, Cancel, Execution, Options, Parts,
    Refusal, Runner,
};
use proctor_wire::agentcli::error::Code;

use super::fixture::{ALLOW, Jumping, World, exec, manifest, script};

async fn run(world: &World, text: &str, more: &str) -> Execution {
    exec(&world.runner(), &manifest(&script("t", text, more)), "t").await.unwrap()
}

fn warnings(execution: &Execution) -> Vec<String> {
    let listed = execution.json.get("warnings").and_then(Json::as_array).unwrap();
    listed.iter().map(|warning| warning.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn output_of_another_format_fails_the_task() {
    let world = World::new(Some(ALLOW));
    for (text, format, is_ok) in [
        (r#"echo '{"a":1}'"#, "json", true),
        ("echo done", "json", false),
        ("true", "json", false),
        (r#"echo '{"a":1}'; echo '[2]'"#, "ndjson", true),
        (r#"echo '{"a":1}'; echo done"#, "ndjson", false),
        ("echo done", "text", true),
        (r"printf '\377'", "text", false),
    ] {
        let more = format!(r#""output":{{"format":"{format}"}},"verify":{{"shell":"touch verified"}}"#);
        let result = run(&world, text, &more).await;
        assert_eq!(result.is_ok, is_ok, "{format} {text}: {}", result.json);
        assert_eq!(result.code, (!is_ok).then_some(Code::ContractViolation), "{format} {text}");
        assert_eq!(warnings(&result).len(), usize::from(!is_ok), "{:?}", warnings(&result));
        let verified = world.work().join("verified");
        assert_eq!(verified.exists(), is_ok, "output is checked before the verify command runs");
        let _gone = std::fs::remove_file(verified);
    }
    // A process that failed says so, whatever its output is.
    let failed = run(&world, "exit 3", r#""output":{"format":"json"}"#).await;
    assert_eq!((failed.is_ok, failed.code), (false, None));
}

#[tokio::test]
async fn a_previous_failure_of_the_format_is_a_failure_on_record() {
    let world = World::new(Some(ALLOW));
    run(&world, "echo done", r#""output":{"format":"json"}"#).await;
    assert_eq!(world.story("w/t"), ["session ", "decision allow", "outcome failed", "run ended"]);
    assert_eq!(world.end("w/t").get("code"), Some(&Json::from("contract_violation")));
}

#[tokio::test]
async fn the_audit_of_the_contract_says_when_output_is_recorded() {
    for (audit, text, is_recorded) in [
        ("always", "echo seen-output", true),
        ("on-failure", "echo seen-output", false),
        ("on-failure", "echo seen-output; exit 1", true),
        ("none", "echo seen-output; exit 1", false),
    ] {
        let world = World::new(Some(ALLOW));
        run(&world, text, &format!(r#""contract":{{"audit":"{audit}"}}"#)).await;
        let records = world.records();
        let outcome = records.iter().find(|(envelope, _)| envelope.kind.word() == "outcome").unwrap();
        assert_eq!(outcome.1.contains("seen-output"), is_recorded, "{audit}: {}", outcome.1);
    }
}

#[tokio::test]
async fn members_without_effect_are_warnings() {
    let world = World::new(Some(ALLOW));
    let more = r#""delivery":{"mode":"announce","to":"ops"},"intent":{"mode":"plan"}"#;
    let found = warnings(&run(&world, "true", more).await);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("`delivery` has no effect here"), "{found:?}");
    let preview = proctor_flow::run::preview(
        &manifest(&script("t", "true", more)),
        None,
        "t",
        &world.work(),
        &Options::default(),
    );
    assert_eq!(preview.unwrap().get("warnings").and_then(Json::as_array).map(<[Json]>::len), Some(2));
}

/// Runner whose delays end at once.
fn jumping(world: &World) -> (Runner, Arc<Jumping>) {
    let timer = Arc::new(Jumping::default());
    let parts = Parts { timer: Arc::clone(&timer) as Arc<dyn proctor_flow::run::Timer>, ..world.parts() };
    (Runner::new(parts).unwrap(), timer)
}

async fn attempt(runner: &Runner, task: &str) -> Result<Execution, Refusal> {
    runner.exec(&manifest(task), None, "t", &Options::default(), &mut Cancel::never()).await
}

const TWICE: &str = r#""reliability":{"max_retries":2}"#;

#[tokio::test]
async fn a_failed_task_is_tried_again_after_growing_delays() {
    let world = World::new(Some(ALLOW));
    let (runner, timer) = jumping(&world);
    let third = script("t", "echo x >> count; [ $(wc -l < count) -ge 3 ]", TWICE);
    let done = attempt(&runner, &third).await.unwrap();
    assert!(done.is_ok, "{}", done.json);
    assert_eq!(*timer.waited.lock().unwrap(), [30, 60].map(Duration::from_secs));
    let attempts = done.json.get("attempts").and_then(Json::as_array).unwrap();
    let ok: Vec<Option<bool>> = attempts.iter().map(|entry| entry["ok"].as_bool()).collect();
    assert_eq!(ok, [Some(false), Some(false), Some(true)]);
    // Each attempt is a run of its own: session, decision, outcome, end, and the end names the run before.
    let one = ["session ", "decision allow", "outcome failed", "run ended"];
    let last = ["session ", "decision allow", "outcome ok", "run ended"];
    assert_eq!(world.story("w/t"), [one, one, last].concat());
    let ends: Vec<Json> = world
        .records()
        .iter()
        .filter(|(envelope, _)| envelope.kind.word() == "run")
        .map(|(_, body)| Json::parse(body.as_bytes()).unwrap()["data"].clone())
        .collect();
    assert_eq!(ends[0].get("retry_of"), None);
    assert_eq!(ends[2]["retry_of"], ends[1]["execution_id"]);
    assert_eq!(ends[2]["attempt"].as_u64(), Some(3));
    // All attempts fail: the last one is the result, and there are no more than declared.
    std::fs::remove_file(world.work().join("count")).unwrap();
    let failed = attempt(&runner, &script("t", "echo x >> count; exit 1", TWICE)).await.unwrap();
    assert!(!failed.is_ok);
    assert_eq!(std::fs::read_to_string(world.work().join("count")).unwrap(), "x\nx\nx\n");
    // Without a failure, and without retries, nothing is repeated, and no attempts are listed.
    assert!(attempt(&runner, &script("t", "true", TWICE)).await.unwrap().json.get("attempts").is_none());
    assert!(attempt(&runner, &script("t", "exit 1", "")).await.unwrap().json.get("attempts").is_none());
}

#[tokio::test]
async fn time_limits_formats_and_verify_commands_are_tried_again() {
    let world = World::new(Some(ALLOW));
    let (runner, _) = jumping(&world);
    for more in
        [r#""runtime":{"timeout_ms":100}"#, r#""output":{"format":"json"}"#, r#""verify":{"shell":"exit 1"}"#]
    {
        let text = if more.contains("timeout") { "sleep 300" } else { "true" };
        let once = r#""reliability":{"max_retries":1}"#;
        let failed = attempt(&runner, &script("t", text, &format!("{more},{once}"))).await.unwrap();
        let attempts = failed.json.get("attempts").and_then(Json::as_array).unwrap();
        assert_eq!((failed.is_ok, attempts.len()), (false, 2), "{more}");
    }
}

#[tokio::test]
async fn refusals_cancelled_runs_and_missing_evidence_are_not_tried_again() {
    let denied = World::new(None);
    let (runner, timer) = jumping(&denied);
    assert!(attempt(&runner, &script("t", "true", TWICE)).await.is_err());
    assert!(timer.waited.lock().unwrap().is_empty());

    // The approval of the first attempt is used up: the second one asks, and the failure of the first is the result.
    let asking = World::new(Some(&ALLOW.replace("then: allow", "then: ask")));
    let (runner, timer) = jumping(&asking);
    let task = script("t", "exit 4", TWICE);
    let asked = attempt(&runner, &task).await.unwrap_err();
    asking.approve(asked.approval.unwrap().id, true);
    let failed = attempt(&runner, &task).await.unwrap();
    assert_eq!(timer.waited.lock().unwrap().len(), 1);
    assert_eq!(failed.json.pointer("/result/exit_code").and_then(Json::as_i64), Some(4));
    let attempts = failed.json.get("attempts").and_then(Json::as_array).unwrap();
    assert_eq!(attempts[1]["code"], "approval_required");
    assert!(attempts[1]["approval_id"].as_str().is_some());

    let world = World::new(Some(ALLOW));
    let (runner, timer) = jumping(&world);
    let options = Options { require_evidence: true, ..Options::default() };
    let bare = manifest(&script("t", "true", TWICE));
    let result = runner.exec(&bare, None, "t", &options, &mut Cancel::never()).await.unwrap();
    assert_eq!((result.is_ok, result.code), (false, Some(Code::EvidenceFailed)));
    assert!(timer.waited.lock().unwrap().is_empty());

    // A delay ends when the run is cancelled.
    let real = world.runner();
    let (give, order) = tokio::sync::watch::channel(false);
    let failing = manifest(&script("t", "touch begun; exit 1", TWICE));
    let options = Options::default();
    let mut cancel = Cancel::new(order);
    let running = real.exec(&failing, None, "t", &options, &mut cancel);
    let cancelling = async {
        while !world.story("w/t").iter().any(|record| record == "outcome failed") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        give.send(true).unwrap();
    };
    let (result, ()) = tokio::join!(running, cancelling);
    assert!(!result.unwrap().is_ok);
}

/// Agent that says what it cost.
struct Costly(&'static str);

impl AgentRuntime for Costly {
    fn has(&self, _: &str) -> bool {
        true
    }

    fn run<'a>(&'a self, _: AgentRequest<'a>) -> BoxFuture<'a, Result<AgentAnswer, AgentFailure>> {
        let cost_usd = Some(self.0.parse().unwrap());
        Box::pin(async move {
            Ok(AgentAnswer { is_ok: true, output: "{}".to_owned(), cost_usd, ..AgentAnswer::default() })
        })
    }
}

#[tokio::test]
async fn prompt_tasks_have_a_cost_limit_a_format_and_a_verify_command() {
    let world = World::new(Some(ALLOW));
    let ask = async |cost: &'static str, more: &str| {
        let agents: Option<Arc<dyn AgentRuntime>> = Some(Arc::new(Costly(cost)));
        let runner = Runner::new(Parts { agents, ..world.parts() }).unwrap();
        let task = format!(
            r#"{{"id":"t","name":"t","target":{{"session_target":"isolated"}},"prompt":"x","schedule":{{"cron":"0 0 * * *"}},{more}}}"#
        );
        exec(&runner, &manifest(&task), "t").await.unwrap()
    };
    let limit = r#""contract":{"max_cost_usd":0.5},"output":{"format":"json"}"#;
    assert!(ask("0.5", limit).await.is_ok);
    assert_eq!(ask("0.51", limit).await.code, Some(Code::ContractViolation));
    assert_eq!(
        ask("0", r#""verify":{"shell":"touch verified; exit 1"}"#).await.code,
        Some(Code::VerifyFailed)
    );
    assert!(world.work().join("verified").exists());
}
