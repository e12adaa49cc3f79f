//! `proctor test` and agents that attack: what they cannot reach, what the report says, and what a killed Proctor leaves behind.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Variable of the agent: file with the attempts that it makes.
const ATTEMPTS: &str = "SANDBOX_ATTEMPTS";

/// End of an agent's script: a response with the right task id.
const ANSWER: &str = r#"id=$(sed 's/.*"task_id":"\([^"]*\)".*/\1/'); echo '{"version":"1.0","task_id":"'"$id"'","status":"completed","artifacts":[],"metrics":{}}'"#;

/// Role of this binary as part of an agent: makes the attempts of a file, and prints those that worked. Ordinary runs have none.
#[test]
fn attacker() {
    let Ok(attempts) = std::env::var(ATTEMPTS) else { return };
    for attempt in std::fs::read_to_string(attempts).unwrap().lines() {
        let (kind, target) = attempt.split_once(' ').unwrap();
        let path = Path::new(target);
        let worked = match kind {
            "read" => std::fs::read(path).is_ok(),
            "list" => std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()),
            "write" => std::fs::OpenOptions::new().append(true).open(path).is_ok(),
            "create" => std::fs::write(path, "x").is_ok(),
            "chmod" => {
                path.metadata().and_then(|file| std::fs::set_permissions(path, file.permissions())).is_ok()
            }
            "link" => std::fs::hard_link(path, format!("link-{}", target.len())).is_ok(),
            "unix" => UnixStream::connect(path).is_ok(),
            "tcp" => std::net::TcpStream::connect(target).is_ok(),
            other => panic!("{other}"),
        };
        if worked {
            println!("\nworked: {attempt}");
        }
    }
}

/// A user's home, state and suite.
struct Ground {
    folder: tempfile::TempDir,
    _sockets: Vec<UnixListener>,
    tcp: TcpListener,
}

impl Ground {
    fn new() -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for secret in ["ssh/id_ed25519", "aws/credentials", "gnupg/key", "netrc", "docker/config.json"] {
            write(&format!("home/.{secret}"), "secret");
        }
        write("home/notes.txt", "not secret");
        write("credential.key", "secret");
        write("state/kept.txt", "secret");
        write("work/expected/answer.txt", "42");
        write("work/solution.txt", "42");
        std::fs::create_dir_all(root.join("state/run")).unwrap();
        std::fs::create_dir_all(root.join("tmp")).unwrap();
        let sockets = ["state/run/owner.sock", "elsewhere.sock"]
            .map(|name| UnixListener::bind(root.join(name)).unwrap());
        Ground { folder, _sockets: sockets.into(), tcp: TcpListener::bind(("127.0.0.1", 0)).unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Writes the suite, and an agent that runs `body` before it answers.
    fn prepare(&self, tests: &str, body: &str) -> &'static str {
        std::fs::write(self.path("work/suite.yaml"), format!("test_suite: attacks\ntests:\n{tests}"))
            .unwrap();
        std::fs::write(self.path("work/agent.sh"), format!("{body}\n{ANSWER}\n")).unwrap();
        "stdio:sh agent.sh"
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::support::binary());
        command
            .args(["test", "suite.yaml", "--json"])
            .args(arguments)
            .current_dir(self.path("work"))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("PROCTOR_STATE", self.path("state"))
            .env("PROCTOR_CREDENTIAL", self.path("credential.key"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (Output, Value) {
        let output = self.command(arguments).output().unwrap();
        let json = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output, json)
    }
}

/// A test with a check file and a reference solution, whose agent gets the attempts of a file.
fn attacked(attempts: &Path) -> String {
    format!(
        "  - id: attack
    name: Attack
    task: {{description: Attack}}
    constraints: {{timeout_seconds: 60}}
    environment: {{{ATTEMPTS}: \"{}\"}}
    public: [{ATTEMPTS}]
    files: [{{path: expected, source: expected}}]
    reference: [{{path: solution.txt, source: solution.txt}}]
    assertions: [{{type: file_exists, config: {{path: expected/answer.txt}}}}, {{type: file_contains, config: {{path: worked.txt, pattern: ok}}}}]
",
        attempts.display()
    )
}

#[test]
fn an_agent_reaches_neither_state_nor_suite_nor_credentials_nor_sockets() {
    let ground = Ground::new();
    let at = |name: &str| ground.path(name).display().to_string();
    let secrets = [
        "home/.ssh/id_ed25519",
        "home/.aws/credentials",
        "home/.gnupg/key",
        "home/.netrc",
        "home/.docker/config.json",
        "credential.key",
        "state/kept.txt",
        "work/suite.yaml",
        "work/expected/answer.txt",
        "work/solution.txt",
    ];
    let mut attempts = Vec::new();
    for secret in secrets {
        attempts.extend(["read", "write", "chmod", "link"].map(|kind| format!("{kind} {}", at(secret))));
        attempts.push(format!("read /proc/self/root{}", at(secret)));
        attempts.push(format!("read /proc/{}/root{}", std::process::id(), at(secret)));
    }
    for folder in ["home/.ssh", "state", "state/run", "work/expected", "tmp"] {
        attempts.push(format!("create {}/planted", at(folder)));
    }
    attempts.push(format!("create {}/planted", at("home")));
    attempts.push(format!("chmod {}", at("home/notes.txt")));
    attempts.push(format!("read /proc/{}/environ", std::process::id()));
    attempts.push(format!("unix {}", at("state/run/owner.sock")));
    attempts.push(format!("unix {}", at("elsewhere.sock")));
    attempts.push(format!("tcp 127.0.0.1:{}", ground.tcp.local_addr().unwrap().port()));
    // Other runs: the folder above the own workspace's cannot be listed.
    let scratch = ground.path("tmp").join(format!("proctor-runs-{}", rustix::process::getuid().as_raw()));
    attempts.push(format!("list {}", scratch.display()));
    std::fs::write(ground.path("work/attempts.txt"), attempts.join("\n")).unwrap();
    let binary = std::env::current_exe().unwrap();
    let body = format!(
        "'{}' test_sandbox::attacker --exact --nocapture --test-threads=1 > log.txt 2>&1 || echo broken >&2
grep worked: log.txt >&2 || echo ok > worked.txt
# What does not hurt works.
cat {} > notes.txt || rm worked.txt",
        binary.display(),
        at("home/notes.txt")
    );
    let agent = ground.prepare(&attacked(&ground.path("work/attempts.txt")), &body);
    let (output, result) = ground.run(&["--agent", agent]);
    let notes = String::from_utf8_lossy(&output.stderr);
    let worked = &result["tests"][0]["runs"][0]["last_lines"];
    if notes.contains("not protected") {
        println!("not run: {notes}");
        return;
    }
    assert_eq!(result["summary"]["passed"], 1, "{worked}\n{notes}\n{result}");

    // The same attempts without a sandbox show that they are real.
    let (_, result) = ground.run(&["--agent", agent, "--sandbox", "off"]);
    assert_eq!(result["summary"]["passed"], 0);
    let worked = result["tests"][0]["runs"][0]["last_lines"].to_string();
    for attempt in ["read", "unix", "tcp", "list"] {
        assert!(worked.contains(&format!("worked: {attempt}")), "{attempt}: {worked}");
    }
}

/// A test that any agent passes.
const PLAIN: &str = "  - {id: a, name: A, task: {description: x}, assertions: [{type: no_errors}]}\n";

#[test]
fn the_report_names_what_held_each_protection() {
    let ground = Ground::new();
    let agent = ground.prepare(PLAIN, "");
    let (output, result) = ground.run(&["--agent", agent]);
    let isolation = &result["isolation"];
    assert_eq!((&isolation["agent_is_outside"], &isolation["sandbox"]), (&false.into(), &"auto".into()));
    let protections = isolation["protections"].as_array().unwrap();
    assert_eq!(protections.len(), 10, "{isolation}");
    for protection in protections {
        let is_held = protection["by"].as_array().is_some_and(|holders| !holders.is_empty());
        assert!(is_held || protection["reason"].is_string(), "{protection}");
    }
    assert_eq!(output.status.code(), Some(0));

    let text = Command::new(crate::support::binary())
        .args(["test", "suite.yaml", "--agent", agent, "--sandbox", "off"])
        .current_dir(ground.path("work"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("isolation, sandbox off:\n  writes confined: missing: the sandbox is off\n"),
        "{text}"
    );
}

#[test]
fn agents_behind_an_address_are_reported_as_outside() {
    let ground = Ground::new();
    ground.prepare(PLAIN, "");
    // Nobody answers there: the report comes all the same.
    for agent in ["http://127.0.0.1:9/", "ws://127.0.0.1:9/", "grpc://127.0.0.1:9"] {
        let (_, result) = ground.run(&["--agent", agent]);
        assert_eq!(result["isolation"]["agent_is_outside"], true, "{agent}: {result}");
        assert_eq!(result["isolation"]["protections"].as_array().unwrap().len(), 0);
    }
    let (_, result) = ground.run(&["--agent", "nop"]);
    assert_eq!(result["isolation"]["agent_is_outside"], false);
    assert_eq!(result["isolation"]["protections"].as_array().unwrap().len(), 0);
}

#[test]
fn require_refuses_and_lists_what_is_missing() {
    let ground = Ground::new();
    let agent = ground.prepare(PLAIN, "echo started > ../../../../started");
    let output = ground
        .command(&["--agent", agent, "--sandbox", "require"])
        .env("PROCTOR_SANDBOX_WITHOUT", "mount-namespace,landlock,resource-limits")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{text}");
    for missing in [
        "writes confined (",
        "hidden paths out of reach (",
        "file size limit (",
        "no Landlock (switched off)",
    ] {
        assert!(text.contains(missing), "{missing}: {text}");
    }
    // Also before an agent that starts nothing.
    let output = ground
        .command(&["--agent", "nop", "--sandbox", "require"])
        .env("PROCTOR_SANDBOX_WITHOUT", "landlock,mount-namespace")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let output =
        ground.command(&["--agent", "nop"]).env("PROCTOR_SANDBOX_WITHOUT", "cgroups").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("PROCTOR_SANDBOX_WITHOUT: `cgroups` is no kernel feature"), "{text}");
}

#[test]
fn missing_protections_are_told_and_the_suite_goes_on() {
    let ground = Ground::new();
    let agent = ground.prepare(PLAIN, "");
    let output = ground
        .command(&["--agent", agent])
        .env("PROCTOR_SANDBOX_WITHOUT", "mount-namespace,landlock")
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not protected: writes confined"));
    let writes = &result["isolation"]["protections"][0];
    assert!(
        writes["reason"].as_str().unwrap().contains("writing outside of the workspace was possible"),
        "{writes}"
    );
}

#[test]
fn an_agent_that_is_stopped_by_a_limit_fails_and_the_next_test_runs() {
    let ground = Ground::new();
    let second = PLAIN.replace("id: a", "id: b");
    // The first run crosses the limit on the size of a file; the folder is fresh for the second.
    let body = "case $(cat > request; cat request) in *'\"test_id\":\"a\"'*) exec dd if=/dev/zero of=big bs=1M count=1 seek=1100;; esac; exec < request";
    let agent = ground.prepare(&format!("{PLAIN}{second}"), body);
    let (_, result) = ground.run(&["--agent", agent]);
    let error = result["tests"][0]["runs"][0]["error"].as_str().unwrap_or_default();
    assert_eq!(error, "the agent crossed the limit on file size", "{result}");
    assert_eq!(result["tests"][1]["verdict"], "passed", "{result}");
}

/// Processes whose environment has the given text.
fn marked(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let environment = std::fs::read(entry.ok()?.path().join("environ")).ok()?;
        environment.windows(mark.len()).any(|window| window == mark.as_bytes()).then_some(())
    });
    processes.count()
}

#[test]
fn a_killed_proctor_leaves_no_process_and_the_next_start_removes_its_folders() {
    let ground = Ground::new();
    let mark = format!("mark-of-{}", std::process::id());
    let tests: String = (0..6)
        .map(|at| {
            format!("  - {{id: t{at}, name: T, task: {{description: x}}, environment: {{MARK: {mark}}}, public: [MARK], assertions: [{{type: no_errors}}]}}\n")
        })
        .collect();
    let agent = ground
        .prepare(&tests, "setsid sleep 300 & (setsid sh -c 'trap \"\" TERM HUP; sleep 300; sleep 300' &)");
    let scratch = ground.path("tmp").join(format!("proctor-runs-{}", rustix::process::getuid().as_raw()));
    let mut seed = crate::support::seed();
    for round in 0..crate::support::count(200) {
        let mut proctor = ground
            .command(&["--agent", agent, "--parallel", "3"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Moments from before the first agent to after the last one.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis((seed >> 33) & 0xff));
        proctor.kill().unwrap();
        proctor.wait().unwrap();
        let begin = Instant::now();
        while marked(&mark) > 0 {
            assert!(
                begin.elapsed() < Duration::from_secs(10),
                "round {round}: {} processes are left",
                marked(&mark)
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let (output, _) = ground.run(&["--agent", "nop"]);
    std::io::stderr().write_all(&output.stderr).unwrap();
    let left: Vec<_> = std::fs::read_dir(scratch).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}
