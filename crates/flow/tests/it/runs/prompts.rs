//! Prompt tasks.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::json::Json;
use proctor_flow::run::{Cancel, Options, Parts, Runner};
use proctor_wire::agentcli::error::Code;

use super::fixture::{ALLOW, Mirror, World, code, exec, manifest};

fn prompt(agent: &str, prompt: &str, more: &str) -> Json {
    let more = if more.is_empty() { String::new() } else { format!(",{more}") };
    let target = format!(r#"{{"session_target":"isolated","agent_id":"{agent}"}}"#);
    manifest(&format!(
        r#"{{"id":"t","name":"t","target":{target},"prompt":"{prompt}","schedule":{{"cron":"0 0 * * *"}}{more}}}"#
    ))
}

fn runner(world: &World) -> Runner {
    Runner::new(Parts { agents: Some(Arc::new(Mirror)), ..world.parts() }).unwrap()
}

#[tokio::test]
async fn prompts_go_to_the_configured_agent_under_policy() {
    let world = World::new(Some(ALLOW));
    let result = exec(&runner(&world), &prompt("mirror", "hello", ""), "t").await.unwrap();
    assert!(result.is_ok);
    assert_eq!(result.json.pointer("/result/stdout"), Some(&Json::from("olleh")));
    assert_eq!(world.story("w/t"), ["session ", "decision allow", "outcome ok", "run ended"]);
    let closed = World::new(None);
    let denied = exec(&runner(&closed), &prompt("mirror", "hello", ""), "t").await;
    assert_eq!(code(&denied), Some(Code::AuthorizationDenied));
}

#[tokio::test]
async fn without_an_agent_there_is_no_runtime() {
    let world = World::new(Some(ALLOW));
    assert_eq!(code(&exec(&world.runner(), &prompt("mirror", "x", ""), "t").await), Some(Code::NoRuntime));
    assert_eq!(code(&exec(&runner(&world), &prompt("main", "x", ""), "t").await), Some(Code::NoRuntime));
    assert_eq!(world.story("w/t"), ["session ", "run ended", "session ", "run ended"]);
}

#[tokio::test]
async fn an_agent_cannot_be_confined_from_here() {
    let world = World::new(Some(ALLOW));
    let strict = prompt("mirror", "x", r#""contract":{"sandbox":"strict"}"#);
    assert_eq!(code(&exec(&runner(&world), &strict, "t").await), Some(Code::SandboxEnforcementUnavailable));
    let permissive = prompt("mirror", "x", r#""contract":{"sandbox":"permissive"}"#);
    let result = exec(&runner(&world), &permissive, "t").await.unwrap();
    assert_eq!(result.json.get("warnings").and_then(Json::as_array).map(<[Json]>::len), Some(1));
}

#[tokio::test]
async fn silent_agents_run_into_the_time_limit() {
    struct Silent;
    impl proctor_flow::run::AgentRuntime for Silent {
        fn has(&self, _: &str) -> bool {
            true
        }
        fn run<'a>(
            &'a self,
            _: proctor_flow::run::AgentRequest<'a>,
        ) -> proctor_flow::run::BoxFuture<
            'a,
            Result<proctor_flow::run::AgentAnswer, proctor_flow::run::AgentFailure>,
        > {
            Box::pin(std::future::pending())
        }
    }
    let world = World::new(Some(ALLOW));
    let runner = Runner::new(Parts { agents: Some(Arc::new(Silent)), ..world.parts() }).unwrap();
    let options = Options { timeout: Some(Duration::from_millis(50)), ..Options::default() };
    let result =
        runner.exec(&prompt("any", "x", ""), None, "t", &options, &mut Cancel::never()).await.unwrap();
    assert!(!result.is_ok);
    assert_eq!(result.json.pointer("/result/timed_out"), Some(&Json::Bool(true)));
}
