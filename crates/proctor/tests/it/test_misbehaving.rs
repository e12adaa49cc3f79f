//! Agents that misbehave: each kind is a test of one suite, and every one of them gets the verdict and the reason of its table. Afterwards
//! nothing is left: processes, descriptors, sockets and files are counted.

mod grpc;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const STDIO: &str = include_str!("test_misbehaving/stdio.txt");
const HTTP: &str = include_str!("test_misbehaving/http.txt");
const WEBSOCKET: &str = include_str!("test_misbehaving/websocket.txt");
const AGENT: &str = include_str!("test_misbehaving/agent.py");
const SERVER: &str = include_str!("test_misbehaving/server.py");

/// The kind that behaves. It answers when it is told to, so that everything can be counted while nothing else runs.
const CALM: &str = "calm";

/// Runs at a time.
const PARALLEL: usize = 8;

/// Time for something that is about to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A row of a table.
#[derive(Debug, Clone)]
struct Kind {
    id: String,
    seconds: String,
    verdict: String,
    /// Part of the reason, or of the warnings of a run that passes.
    text: String,
}

fn kinds(table: &str) -> Vec<Kind> {
    let rows = table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    rows.map(|line| {
        let cells: Vec<String> = line.splitn(4, '|').map(|cell| cell.trim().to_owned()).collect();
        let [id, seconds, verdict, text] = cells.try_into().unwrap_or_else(|_| panic!("four cells: {line}"));
        Kind { id, seconds, verdict, text }
    })
    .collect()
}

fn suite(kinds: &[Kind]) -> String {
    let mut suite = "test_suite: misbehaving\ntests:\n".to_owned();
    for Kind { id, seconds, .. } in kinds {
        let strict = id.contains("strict");
        writeln!(
            suite,
            "- {{id: {id}, name: {id}, task: {{description: Misbehave}}, constraints: {{timeout_seconds: {seconds}}}, \
             environment: {{KIND: {id}}}, public: [KIND], strict: {strict}, assertions: [{{type: no_errors}}]}}"
        )
        .unwrap();
    }
    suite
}

/// Things of a running `proctor`, while its only run is a calm one.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    descriptors: BTreeMap<String, usize>,
    processes: usize,
    files: usize,
}

/// A folder with an agent, where suites are run.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("agent.py"), AGENT).unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        Bench { folder }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a suite of these kinds. What is held is counted once only the calm one is running, which then is released.
    fn run(&self, agent: &str, kinds: &[Kind], release: &dyn Fn()) -> (Value, Held) {
        std::fs::write(self.path("suite.yaml"), suite(kinds)).unwrap();
        // Closes the gate of a run before.
        let _ = std::fs::remove_file(self.path("gate"));
        let mut proctor = Command::new(crate::support::binary())
            .args(["test", "suite.yaml", "--agent", agent, "--json"])
            .args(["--parallel", &PARALLEL.to_string()])
            .current_dir(self.folder.path())
            .env("TMPDIR", self.path("tmp"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = proctor.stdout.take().unwrap();
        let output = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        });
        let mut progress = BufReader::new(proctor.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let mut ended = 0;
        while ended + 1 < kinds.len() {
            let Some(line) = progress.next() else { panic!("{said}") };
            let line = line.unwrap();
            let is_verdict = |word: &&str| line.starts_with(&format!("proctor: {word} "));
            ended += usize::from(["passed", "failed", "error"].iter().any(is_verdict));
            writeln!(said, "{line}").unwrap();
        }
        let held = self.held(&proctor);
        release();
        said.extend(progress.map_while(Result::ok));
        let status = proctor.wait().unwrap();
        let text = output.join().unwrap();
        let result: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {said}{text}"));
        assert!(!text.contains('\u{1b}') && !said.contains('\u{1b}'), "nobody moves the reader's cursor");
        (result, held)
    }

    /// Waits until the calm run is under way, then counts.
    fn held(&self, proctor: &Child) -> Held {
        let processes = format!("/proc/{}/task", proctor.id());
        let started = Instant::now();
        loop {
            let first = self.count(proctor, &processes);
            std::thread::sleep(Duration::from_millis(50));
            let second = self.count(proctor, &processes);
            // The calm run has its folder, or the program has ended; and twice the same: the last of the others has gone.
            let is_under_way = second.files > 0 || second.descriptors.is_empty();
            if (first == second && is_under_way) || started.elapsed() > PATIENCE {
                return second;
            }
        }
    }

    fn count(&self, proctor: &Child, tasks: &str) -> Held {
        let mut descriptors: BTreeMap<String, usize> = BTreeMap::new();
        for entry in std::fs::read_dir(format!("/proc/{}/fd", proctor.id())).unwrap().flatten() {
            let Ok(target) = std::fs::read_link(entry.path()) else { continue };
            // Sockets, pipes and lock files have numbers of their own.
            let target = target.to_string_lossy();
            // The ledger opens as many readers as work at a time, and keeps them.
            if target.contains(".proctor/") {
                continue;
            }
            let kind =
                if target.starts_with('/') { "file" } else { target.split(':').next().unwrap_or_default() };
            let kind = kind.to_owned();
            *descriptors.entry(kind).or_default() += 1;
        }
        // Namespaces are kept for the next run, one for each that was running at the same time.
        for kind in ["net", "user"] {
            let kept: usize = descriptors.remove(kind).unwrap_or_default();
            assert!(kept <= PARALLEL, "{kept} namespaces");
        }
        let children = std::fs::read_dir(tasks).unwrap().flatten().map(|task| {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            children.split_whitespace().count()
        });
        let runs = self.path("tmp").read_dir().unwrap().flatten().map(|entry| entry.path());
        let files = runs.map(|folder| std::fs::read_dir(folder).map_or(1, Iterator::count)).sum();
        Held { descriptors, processes: children.sum(), files }
    }

    fn assert_no_processes_left(&self) {
        assert_eq!(processes_with(self.folder.path().to_str().unwrap()), [""; 0]);
    }

    /// Nothing is left of this folder's runs, but for the empty folder of all runs.
    fn assert_no_files_left(&self) {
        for entry in self.path("tmp").read_dir().unwrap().flatten() {
            let left: Vec<_> = std::fs::read_dir(entry.path()).unwrap().flatten().collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }
}

/// Command lines of processes that have this text in their command line or environment.
fn processes_with(text: &str) -> Vec<String> {
    let has = |path: &Path| {
        std::fs::read(path)
            .is_ok_and(|content| content.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    let is_process =
        |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit());
    let found = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    found
        .filter(|path| is_process(path) && (has(&path.join("cmdline")) || has(&path.join("environ"))))
        .map(|path| {
            String::from_utf8_lossy(&std::fs::read(path.join("cmdline")).unwrap_or_default()).into_owned()
        })
        .collect()
}

/// Every kind has the verdict and the reason of its row.
fn check(kinds: &[Kind], result: &Value) {
    let mut wrong = String::new();
    let tests = result["tests"].as_array().unwrap();
    assert_eq!(tests.len(), kinds.len(), "the suite went on to its end");
    for (kind, test) in kinds.iter().zip(tests) {
        let run = &test["runs"][0];
        let reason = if kind.verdict == "passed" { &run["warnings"] } else { &run["error"] };
        let reason = reason.as_str().map_or_else(|| reason.to_string(), str::to_owned);
        let is_right = test["verdict"] == kind.verdict.as_str() && reason.contains(&kind.text);
        if !is_right {
            writeln!(
                wrong,
                "{}: wanted {} {:?}, got {} {reason}, {}",
                kind.id, kind.verdict, kind.text, test["verdict"], run["error"]
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Runs a table and counts, beside a run of the calm kind alone.
fn judge(bench: &Bench, agent: &str, table: &str, release: &dyn Fn()) -> Value {
    let kinds = kinds(table);
    let calm: Vec<Kind> = kinds.iter().filter(|kind| kind.id == CALM).cloned().collect();
    assert_eq!(calm.len(), 1);
    let (_, alone) = bench.run(agent, &calm, release);
    let (result, after_others) = bench.run(agent, &kinds, release);
    check(&kinds, &result);
    assert_eq!(after_others, alone, "left after the others");
    bench.assert_no_files_left();
    result
}

#[test]
fn over_standard_streams() {
    let bench = Bench::new();
    let gate = bench.path("gate");
    let release = || std::fs::write(&gate, "").unwrap();
    let result = judge(&bench, "stdio:python3 agent.py", STDIO, &release);
    bench.assert_no_processes_left();
    let run = |id: &str| {
        let tests = result["tests"].as_array().unwrap();
        tests.iter().find(|test| test["id"] == id).unwrap()["runs"][0].clone()
    };
    assert_eq!(run("crash-before-the-response")["last_lines"][0], "out of luck");
    assert_eq!(run("silent-exit")["last_lines"][0], "nothing to say");
    assert_eq!(run("ignores-term")["last_lines"][0], "deaf");
    assert_eq!(run("invalid-event")["flawed_events"], 1);
    assert_eq!(run("events-out-of-sequence")["flawed_events"], 1);
}

/// A server of agents, which ends with its standard input.
struct Server {
    process: Child,
    port: u16,
}

impl Server {
    fn start(bench: &Bench) -> Server {
        let script = bench.path("server.py");
        std::fs::write(&script, SERVER).unwrap();
        let mut process =
            Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Server { process, port: line.trim().parse().unwrap() }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.rsplit("\r\n").next().unwrap().to_owned()
    }

    /// Every connection was closed.
    fn assert_none_open(&self) {
        let started = Instant::now();
        while self.get("/open") != "0" {
            assert!(started.elapsed() < PATIENCE, "{} connections are open", self.get("/open"));
            std::thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

#[test]
fn over_http_with_one_body_and_with_events() {
    let bench = Bench::new();
    let server = Server::start(&bench);
    let release = || drop(server.get("/go"));
    judge(&bench, &format!("http://127.0.0.1:{}/run", server.port), HTTP, &release);
    server.assert_none_open();
}

#[test]
fn over_websocket() {
    let bench = Bench::new();
    let server = Server::start(&bench);
    let release = || drop(server.get("/go"));
    judge(&bench, &format!("ws://127.0.0.1:{}/socket", server.port), WEBSOCKET, &release);
    server.assert_none_open();
    let kinds = kinds("calm | 60 | error | reason");
    for (path, reason) in [("refused", "HTTP status 403"), ("moved", "redirect")] {
        let (result, _) = bench.run(&format!("ws://127.0.0.1:{}/{path}", server.port), &kinds, &|| {});
        check(&[Kind { text: reason.to_owned(), ..kinds[0].clone() }], &result);
    }
}

#[test]
fn an_agent_that_cannot_be_started_or_reached_is_an_error_of_each_test() {
    let bench = Bench::new();
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for scheme in ["http", "ws", "grpc"] {
        let kinds = kinds(
            "one | 60 | error | the agent cannot be connected to\ntwo | 20 | error | the agent cannot be connected to",
        );
        let (result, _) = bench.run(&format!("{scheme}://{unused}"), &kinds, &|| {});
        check(&kinds, &result);
    }
    let kinds = kinds("one | 60 | error | could not be started\ntwo | 20 | error | could not be started");
    let (result, _) = bench.run("stdio:./absent-program", &kinds, &|| {});
    check(&kinds, &result);
    bench.assert_no_processes_left();
    bench.assert_no_files_left();
}

const PLAIN: &str = "\
more-than-is-taken | 60 | error | the agent wrote more than 10000000 bytes
much-on-stderr | 60 | passed |
held-open | 60 | passed |
never-ending-log | 1 | failed | TIMEOUT: the agent took longer than 1 s
crash | 60 | error | the agent exited with status 7
calm | 60 | passed |
";

#[test]
fn programs_that_know_no_protocol() {
    let bench = Bench::new();
    let script = r#"case $KIND in
more-than-is-taken) cat /dev/zero ;;
much-on-stderr) head -c 20000000 /dev/zero >&2; echo done ;;
held-open) sleep 4000 & echo done ;;
never-ending-log) cat /dev/zero >&2 ;;
crash) echo bad luck >&2; exit 7 ;;
calm) while [ ! -e "${0%/*}/gate" ]; do sleep 0.02; done; echo done ;;
esac
"#;
    std::fs::write(bench.path("plain.sh"), script).unwrap();
    let gate = bench.path("gate");
    let kinds = kinds(PLAIN);
    let release = || std::fs::write(&gate, "").unwrap();
    let (result, _) = bench.run("plain:sh plain.sh", &kinds, &release);
    check(&kinds, &result);
    assert_eq!(result["tests"][4]["runs"][0]["last_lines"][0], "bad luck");
    bench.assert_no_processes_left();
    bench.assert_no_files_left();
}
