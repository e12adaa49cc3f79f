//! Contracts of tasks on this machine.

use proctor_core::json::Json;
use proctor_flow::run::{Parts, Runner};
use proctor_sandbox::{Features, Mode, Protection, Sandbox, Standing};
use proctor_wire::agentcli::error::Code;

use super::fixture::{ALLOW, World, code, exec, manifest, script};

/// Whether this machine holds a protection; a test that needs one it lacks is not run, and says so.
fn holds(world: &World, protections: &[Protection]) -> bool {
    let sandbox = Sandbox::new(Mode::Auto, Features::all(), world.folder.path()).unwrap();
    let is_held =
        |protection: &Protection| matches!(sandbox.protections().get(*protection), Standing::Held { .. });
    let all = protections.iter().all(is_held);
    #[expect(clippy::print_stderr, reason = "a skipped test is reported as not run")]
    if !all {
        eprintln!("not run: this machine lacks one of {protections:?}");
    }
    all
}

#[tokio::test]
async fn strict_runs_write_only_below_allowed_paths() {
    let world = World::new(Some(ALLOW));
    if !holds(&world, &[Protection::Writes, Protection::OtherProcesses, Protection::HiddenPaths]) {
        return;
    }
    for name in ["in", "out"] {
        std::fs::create_dir(world.work().join(name)).unwrap();
    }
    let runner = world.runner();
    let text = "echo in > in/file && ! echo out > out/file 2>/dev/null && ! echo top > file 2>/dev/null && ! ls ../state/ledger.key 2>/dev/null";
    let task = script("t", text, r#""contract":{"sandbox":"strict","allowed_paths":["in"]}"#);
    let result = exec(&runner, &manifest(&task), "t").await.unwrap();
    assert!(result.is_ok, "{}", result.json);
    assert!(world.work().join("in/file").exists());
    assert!(!world.work().join("out/file").exists() && !world.work().join("file").exists());
    // Without the level, allowed paths bind writes all the same.
    let task = script("t", "! echo out > out/file 2>/dev/null", r#""contract":{"allowed_paths":["in"]}"#);
    assert!(exec(&runner, &manifest(&task), "t").await.unwrap().is_ok);
    // Without allowed paths the working directory is the place to write.
    let task =
        script("t", "echo own > own && ! echo no > ../no 2>/dev/null", r#""contract":{"sandbox":"strict"}"#);
    assert!(exec(&runner, &manifest(&task), "t").await.unwrap().is_ok);
    assert!(world.work().join("own").exists());
}

#[tokio::test]
async fn closed_networks_reach_nothing_outside() {
    let world = World::new(Some(ALLOW));
    if !holds(&world, &[Protection::Network]) {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let probe = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
    let runner = world.runner();
    let task = |network: &str, more: &str| {
        let contract = format!(r#""contract":{{"network":"{network}"{more}}}"#);
        manifest(&super::fixture::shell(
            "t",
            r#""bash""#,
            &format!(r#"["-c",{}]"#, Json::from(probe.as_str())),
            &contract,
        ))
    };
    assert!(exec(&runner, &task("unrestricted", ""), "t").await.unwrap().is_ok);
    for network in ["none", "restricted"] {
        for more in ["", r#","sandbox":"strict""#, r#","sandbox":"permissive""#] {
            let result = exec(&runner, &task(network, more), "t").await.unwrap();
            assert!(!result.is_ok, "{network}{more}: {}", result.json);
        }
    }
    // Files are left alone where only the network is closed.
    let task = script("t", "echo x > ../beside", r#""contract":{"network":"none"}"#);
    assert!(exec(&runner, &manifest(&task), "t").await.unwrap().is_ok);
    assert!(world.folder.path().join("beside").exists());
}

#[tokio::test]
async fn contracts_that_cannot_be_enforced_start_nothing() {
    let world = World::new(Some(ALLOW));
    let runner = Runner::new(Parts { features: Features::none(), ..world.parts() }).unwrap();
    for contract in [
        r#"{"sandbox":"strict"}"#,
        r#"{"network":"none"}"#,
        r#"{"network":"restricted"}"#,
        r#"{"allowed_paths":["."]}"#,
    ] {
        let task = script("t", "touch ran", &format!(r#""contract":{contract}"#));
        let result = exec(&runner, &manifest(&task), "t").await;
        assert_eq!(code(&result), Some(Code::SandboxEnforcementUnavailable), "{contract}");
    }
    assert!(!world.work().join("ran").exists());
    assert!(world.story("w/t").iter().all(|line| line.starts_with("session") || line == "run ended"));
    let task = script("t", "touch ran", r#""contract":{"sandbox":"permissive","network":"none"}"#);
    let result = exec(&runner, &manifest(&task), "t").await.unwrap();
    assert!(result.is_ok);
    let warnings = result.json.get("warnings").unwrap().to_string();
    assert!(warnings.contains("writes confined") && warnings.contains("network closed"), "{warnings}");
}

#[tokio::test]
async fn a_working_directory_outside_of_allowed_paths_is_an_escape() {
    let world = World::new(Some(ALLOW));
    std::fs::create_dir(world.work().join("in")).unwrap();
    std::os::unix::fs::symlink("/", world.work().join("in/link")).unwrap();
    for cwd in ["..", "in/link", "/"] {
        let shell = format!(
            r#""shell":{{"program":"touch","args":["ran"],"cwd":"{cwd}"}},"contract":{{"allowed_paths":["in"]}}"#
        );
        let task = super::fixture::shell("t", "", "", &shell);
        assert_eq!(
            code(&exec(&world.runner(), &manifest(&task), "t").await),
            Some(Code::SandboxPathEscape),
            "{cwd}"
        );
    }
}
