use std::path::PathBuf;
use std::sync::{Condvar, Mutex};

use futures_util::future::BoxFuture;
use proctor_core::random::SeededRandomness;
use proctor_sandbox::{Features, Mode, Sandbox};

use super::*;
use crate::agent::{AgentSpec, ProcessSpec};
use crate::recording::{EndedRun, Recorder, RecordingError, StartedRun};
use crate::suite::{LoadOptions, load};

/// Time for something that is about to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A recorder that keeps nothing, and calls a function when a run begins.
struct Observer<F>(F);

impl<F: Fn(&str) + Send + Sync> Recorder for Observer<F> {
    fn run_started<'a>(&'a self, run: StartedRun<'a>) -> BoxFuture<'a, Result<(), RecordingError>> {
        Box::pin(async move {
            (self.0)(&run.test.id);
            Ok(())
        })
    }

    fn run_ended<'a>(&'a self, _: EndedRun<'a>) -> BoxFuture<'a, Result<(), RecordingError>> {
        Box::pin(async { Ok(()) })
    }

    fn test_ended<'a>(&'a self, _: &'a TestResult) -> BoxFuture<'a, Result<(), RecordingError>> {
        Box::pin(async { Ok(()) })
    }
}

fn bench(ids: &[&str], spec: AgentSpec, scratch: &std::path::Path, recorder: Arc<dyn Recorder>) -> Bench {
    let test = |id: &&str| format!("  - {{id: {id}, name: N, task: {{description: x}}}}\n");
    let source = format!("test_suite: s\ntests:\n{}", ids.iter().map(test).collect::<String>());
    let suite = load(source.as_bytes(), &LoadOptions::new(&|_| None, &|_| None)).unwrap().suite;
    let agent = Agent { name: "a".to_owned(), spec, timeout: None, retries: 0, retry_delay: Duration::ZERO };
    let (interrupt, interrupted) = tokio::sync::watch::channel(false);
    // A sender that is gone would count as an interrupt.
    std::mem::forget(interrupt);
    let around = Surroundings {
        sandbox: Sandbox::deferred(Mode::Off, Features::all(), scratch),
        scratch: scratch.to_owned(),
        hidden: Vec::new(),
        variables: Vec::new(),
        suite_directory: PathBuf::from("/"),
        working_directory: PathBuf::from("/"),
        interrupted,
        endpoints: None,
        judges: None,
        prices: |_, _, _| 0.0,
        recorder: Some(recorder),
    };
    Bench {
        suite: Arc::new(suite),
        agent: Arc::new(agent),
        around: Arc::new(around),
        randomness: Arc::new(SeededRandomness::new(1)),
    }
}

fn options(bench: &Bench, parallel: usize) -> Options {
    Options {
        selected: (0..bench.suite.tests.len()).collect(),
        runs: None,
        parallel,
        fail_fast: false,
        retries: None,
        known: HashMap::new(),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Two runs that each wait, without giving their thread back, for the other one to begin.
#[test]
fn a_run_that_keeps_its_thread_busy_does_not_hold_up_the_others() {
    let scratch = tempfile::tempdir().unwrap();
    let (begun, changed) = (Mutex::new(0), Condvar::new());
    let recorder = Observer(move |_: &str| {
        let mut count = begun.lock().unwrap();
        *count += 1;
        changed.notify_all();
        let (count, _) = changed.wait_timeout_while(count, PATIENCE, |count| *count < 2).unwrap();
        assert_eq!(*count, 2, "the other run did not begin");
    });
    let bench = bench(&["one", "two"], AgentSpec::Nop, scratch.path(), Arc::new(recorder));
    let result = runtime().block_on(run_suite(&bench, &options(&bench, 2), &mut |_| {}));
    assert_eq!(result.counts().passed, 2);
}

#[test]
fn a_panic_in_one_test_is_its_error_and_the_others_go_on_in_order() {
    let scratch = tempfile::tempdir().unwrap();
    let recorder = Observer(|id: &str| assert_ne!(id, "two", "a defect"));
    let bench = bench(&["one", "two", "three"], AgentSpec::Nop, scratch.path(), Arc::new(recorder));
    let mut ended = Vec::new();
    let mut finished = |test: &TestResult| ended.push(test.id.clone());
    let result = runtime().block_on(run_suite(&bench, &options(&bench, 1), &mut finished));
    assert_eq!(ended, ["one", "two", "three"]);
    let verdicts: Vec<&str> = result.tests.iter().map(TestResult::word).collect();
    assert_eq!(verdicts, ["passed", "error", "passed"]);
    assert!(result.tests[1].not_run.as_deref().unwrap().contains("a defect in Proctor"));
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "its folders are removed");
}

#[test]
fn fail_fast_leaves_out_the_tests_after_the_first_that_did_not_pass() {
    let scratch = tempfile::tempdir().unwrap();
    let recorder = Observer(|id: &str| assert_ne!(id, "two", "a defect"));
    let bench = bench(&["one", "two", "three"], AgentSpec::Nop, scratch.path(), Arc::new(recorder));
    let options = Options { fail_fast: true, ..options(&bench, 1) };
    let result = runtime().block_on(run_suite(&bench, &options, &mut |_| {}));
    let verdicts: Vec<&str> = result.tests.iter().map(TestResult::word).collect();
    assert_eq!(verdicts, ["passed", "error", "not_run"]);
    assert_eq!(result.tests[2].not_run.as_deref(), Some("an earlier test did not pass (`--fail-fast`)"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_suite_run_that_is_dropped_leaves_no_process() {
    let (scratch, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let pid_file = outside.path().join("pid");
    let script = format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 1000", pid_file.display());
    let spec = AgentSpec::Process(ProcessSpec {
        words: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
        is_plain: false,
        working_dir: None,
        environment: Vec::new(),
        inherited: vec!["PATH".to_owned()],
        inherits_others: false,
    });
    let mut bench = bench(&["one"], spec, scratch.path(), Arc::new(Observer(|_: &str| {})));
    if let Some(around) = Arc::get_mut(&mut bench.around) {
        around.variables = std::env::vars_os().collect();
    }
    let runtime = runtime();
    let pid = runtime.block_on(async {
        let begun = async {
            loop {
                if let Ok(pid) = std::fs::read_to_string(&pid_file) {
                    return pid.trim().to_owned();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let (options, mut finished) = (options(&bench, 1), |_: &TestResult| {});
        let running = run_suite(&bench, &options, &mut finished);
        tokio::select! {
            result = running => panic!("the agent ended: {result:?}"),
            pid = tokio::time::timeout(PATIENCE, begun) => pid.expect("the agent begins"),
        }
    });
    // The runtime waits for the tasks to be dropped, and these for their processes.
    drop(runtime);
    assert!(!std::path::Path::new("/proc").join(&pid).exists(), "process {pid} is left");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "its folders are removed");
}
