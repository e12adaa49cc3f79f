//! Processes of tasks: environment, input, output, time limits, cancelling.

use std::time::{Duration, Instant};

use proctor_core::json::Json;
use proctor_flow::run::{Cancel, Options, Parts, Runner};
use proctor_wire::agentcli::error::Code;

use super::fixture::{ALLOW, World, code, exec, manifest, script, shell};

fn stdout(json: &Json) -> String {
    json.pointer("/result/stdout").and_then(Json::as_str).unwrap().to_owned()
}

/// Whether a process with this identifier lives.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn the_environment_is_operational_variables_and_the_task_s_own() {
    let world = World::new(Some(ALLOW));
    let variables = [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/home/me"),
        ("LC_TIME", "C"),
        ("TZ", "UTC"),
        ("SSH_AUTH_SOCK", "/no"),
        ("PROCTOR_STATE", "/no"),
        ("LD_PRELOAD", "/no.so"),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into())).into();
    let runner = Runner::new(Parts { variables, ..world.parts() }).unwrap();
    let task = shell("t", "", "", r#""shell":{"program":"env","env":{"TZ":"Asia/Tokyo","MODE":"a b"}}"#);
    let result = exec(&runner, &manifest(&task), "t").await.unwrap();
    let mut lines: Vec<String> = stdout(&result.json).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["HOME=/home/me", "LC_TIME=C", "MODE=a b", "PATH=/usr/bin:/bin", "TZ=Asia/Tokyo"]);
}

#[tokio::test]
async fn arguments_are_passed_without_a_shell_and_input_as_it_is() {
    let world = World::new(Some(ALLOW));
    let runner = world.runner();
    let task = shell("t", r#""printf""#, r#"["%s|","$HOME; rm -rf *","a'b","*"]"#, "");
    let result = exec(&runner, &manifest(&task), "t").await.unwrap();
    assert_eq!(stdout(&result.json), "$HOME; rm -rf *|a'b|*|");
    let task = shell("t", "", "", r#""shell":{"program":"cat","stdin":"line\nend"}"#);
    let result = exec(&runner, &manifest(&task), "t").await.unwrap();
    assert_eq!(stdout(&result.json), "line\nend");
    // Without input of its own a task reads nothing, also if this process has a terminal.
    let task = shell("t", r#""cat""#, "[]", "");
    assert_eq!(stdout(&exec(&runner, &manifest(&task), "t").await.unwrap().json), "");
}

#[tokio::test]
async fn failures_of_the_process_are_results() {
    let world = World::new(Some(ALLOW));
    let runner = world.runner();
    let result = exec(&runner, &manifest(&script("t", "echo no >&2; exit 7", "")), "t").await.unwrap();
    assert!(!result.is_ok);
    assert_eq!(result.json.pointer("/result/exit_code").and_then(Json::as_i64), Some(7));
    assert_eq!(result.json.pointer("/result/stderr"), Some(&Json::from("no\n")));
    let result = exec(&runner, &manifest(&script("t", "kill -9 $$", "")), "t").await.unwrap();
    assert_eq!(result.json.pointer("/result/signal"), Some(&Json::from("SIGKILL")));
    assert_eq!(result.json.pointer("/result/exit_code"), Some(&Json::Null));
    let missing = shell("t", r#""no-such-program-here""#, "[]", "");
    assert_eq!(code(&exec(&runner, &manifest(&missing), "t").await), Some(Code::InvalidArgument));
}

#[tokio::test]
async fn a_time_limit_ends_everything_that_the_task_started() {
    let world = World::new(Some(ALLOW));
    // A child in a session of its own, and one that ignores TERM.
    let text = "trap '' TERM; setsid sh -c 'echo $$; sleep 300' & (trap '' TERM; echo $$; sleep 300 & wait; sleep 300) & echo $$; sleep 300; sleep 300";
    let task = script("t", text, r#""runtime":{"timeout_ms":700}"#);
    let begun = Instant::now();
    let result = exec(&world.runner(), &manifest(&task), "t").await.unwrap();
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(5) && took < Duration::from_secs(20), "TERM, 5 s, KILL: {took:?}");
    assert!(!result.is_ok);
    assert_eq!(result.json.pointer("/result/timed_out"), Some(&Json::Bool(true)));
    let output = stdout(&result.json);
    let pids: Vec<&str> = output.lines().collect();
    assert_eq!(pids.len(), 3, "{pids:?}");
    assert!(pids.iter().all(|pid| !lives(pid)), "{pids:?}");
}

#[tokio::test]
async fn processes_left_behind_end_with_the_run() {
    let world = World::new(Some(ALLOW));
    let task = script("t", "setsid sleep 300 & echo $!", "");
    let begun = Instant::now();
    let result = exec(&world.runner(), &manifest(&task), "t").await.unwrap();
    assert!(result.is_ok && begun.elapsed() < Duration::from_secs(4), "TERM is enough");
    assert!(!lives(stdout(&result.json).trim()));
    assert!(result.json.pointer("/result/left_behind").and_then(Json::as_u64) >= Some(1));
}

#[tokio::test]
async fn cancelling_ends_the_run_and_is_recorded() {
    let world = World::new(Some(ALLOW));
    let (give, order) = tokio::sync::watch::channel(false);
    let marker = world.work().join("begun");
    let task = manifest(&script("t", "touch begun; sleep 300", ""));
    let runner = world.runner();
    let running = async {
        let (options, mut cancel) = (Options::default(), Cancel::new(order));
        runner.exec(&task, None, "t", &options, &mut cancel).await
    };
    let cancelling = async {
        while !marker.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        give.send(true).unwrap();
    };
    let (result, ()) = tokio::join!(running, cancelling);
    let result = result.unwrap();
    assert!(!result.is_ok);
    assert_eq!(result.json.pointer("/result/cancelled"), Some(&Json::Bool(true)));
    assert_eq!(world.story("w/t"), ["session ", "decision allow", "outcome failed", "run ended"]);
}

#[tokio::test]
async fn the_option_replaces_the_task_s_time_limit() {
    let world = World::new(Some(ALLOW));
    let options = Options { timeout: Some(Duration::from_millis(200)), ..Options::default() };
    let task = manifest(&script("t", "sleep 300", r#""runtime":{"timeout_ms":600000}"#));
    let result = world.runner().exec(&task, None, "t", &options, &mut Cancel::never()).await.unwrap();
    assert_eq!(result.json.pointer("/result/timed_out"), Some(&Json::Bool(true)));
}

#[tokio::test]
async fn long_output_is_cut_counted_and_offloaded() {
    let world = World::new(Some(ALLOW));
    let runner = world.runner();
    let task = script("t", "head -c 200000 /dev/zero | tr '\\0' x", r#""output":{"preview_bytes":100}"#);
    let result = exec(&runner, &manifest(&task), "t").await.unwrap();
    let of = |name: &str| result.json.pointer(&format!("/result/{name}")).cloned().unwrap();
    assert_eq!(of("stdout").as_str().unwrap().len(), 100);
    assert_eq!((of("stdout_bytes").as_u64(), of("stdout_truncated").as_bool()), (Some(200_000), Some(true)));
    let file = std::path::PathBuf::from(of("stdout_path").as_str().unwrap());
    assert!(file.starts_with(world.state()));
    assert_eq!(std::fs::metadata(file).unwrap().len(), 200_000);
    let never = script("t", "head -c 20000000 /dev/zero", r#""output":{"offload":"never"}"#);
    let result = exec(&runner, &manifest(&never), "t").await.unwrap();
    assert_eq!(result.json.pointer("/result/stdout_path"), Some(&Json::Null));
    assert_eq!(result.json.pointer("/result/stdout_bytes").and_then(Json::as_u64), Some(20_000_000));
}

#[tokio::test]
async fn output_before_a_pipe_is_given_up_is_kept_as_a_part() {
    let world = World::new(Some(ALLOW));
    let (begun, go) = (world.work().join("begun"), world.work().join("go"));
    let text = "echo kept; echo $$ > pid; mv pid begun; while [ ! -e go ]; do sleep 0.02; done";
    let task = manifest(&script("t", text, r#""output":{"format":"text"}"#));
    let runner = world.runner();
    let (options, mut cancel) = (Options::default(), Cancel::never());
    let running = runner.exec(&task, None, "t", &options, &mut cancel);
    // A process outside of the run keeps the pipe open after its end.
    let holding = async {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let pid = std::fs::read_to_string(&begun).unwrap();
        let path = format!("/proc/{}/fd/1", pid.trim());
        let held = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        std::fs::write(&go, "").unwrap();
        held
    };
    let (result, _held) = tokio::join!(running, holding);
    let result = result.unwrap();
    assert_eq!(stdout(&result.json), "kept\n");
    assert_eq!(result.json.pointer("/result/stdout_truncated"), Some(&Json::Bool(true)));
    assert_eq!(result.code, Some(Code::ContractViolation), "a part is of no format");
}
