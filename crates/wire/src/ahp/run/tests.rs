use proctor_core::json::Json;
use proptest::prelude::*;

use super::{MAX_ITEMS, MAX_PROBLEMS, MAX_REFERENCES, MAX_TEXT, Problem, RunState, session_matches};
use crate::ahp::{
    ArtifactRef, Contract, EvidenceRef, RunLifecycleEvent, RunStatus, TaskItem, TaskListEvent, TaskStatus,
    VerificationCheck, VerificationEvent, VerificationStatus,
};

fn run(status: RunStatus) -> Contract {
    Contract::RunLifecycle(RunLifecycleEvent {
        run_id: "run".into(),
        session_id: "ses".into(),
        status,
        prompt: None,
        result_summary: None,
        error: None,
        started_at: None,
        updated_at: "t".into(),
        metadata: None,
    })
}

fn task(id: &str, status: TaskStatus, depends_on: &[&str]) -> TaskItem {
    TaskItem {
        id: id.into(),
        title: format!("do {id}"),
        status,
        depends_on: depends_on.iter().map(ToString::to_string).collect(),
        evidence: vec![],
        artifacts: vec![],
        error: None,
        updated_at: None,
        metadata: None,
    }
}

fn list(tasks: Vec<TaskItem>) -> Contract {
    Contract::TaskList(TaskListEvent {
        run_id: "run".into(),
        session_id: "ses".into(),
        tasks,
        updated_at: "t".into(),
        metadata: None,
    })
}

fn check(id: &str, status: VerificationStatus) -> VerificationCheck {
    VerificationCheck {
        id: id.into(),
        subject: "it works".into(),
        status,
        command: None,
        message: None,
        evidence: vec![],
        artifacts: vec![],
        metadata: None,
    }
}

fn verified(status: VerificationStatus, checks: Vec<VerificationCheck>) -> Contract {
    Contract::Verification(VerificationEvent {
        run_id: "run".into(),
        session_id: "ses".into(),
        status,
        checks,
        residual_risks: vec![],
        updated_at: "t".into(),
        metadata: None,
    })
}

fn codes(problems: &[Problem]) -> Vec<&'static str> {
    problems.iter().map(|problem| problem.code).collect()
}

/// The codes of the problems of the last of these contracts.
fn last(contracts: &[Contract]) -> Vec<&'static str> {
    let mut state = RunState::default();
    contracts.iter().map(|contract| codes(&state.apply(contract))).last().unwrap_or_default()
}

use RunStatus::{Cancelled, Completed, Created, Executing, Failed, Planning, Verifying};

#[test]
fn runs_go_only_where_they_may() {
    let legal = [
        (Created, &[Planning, Executing, Failed, Cancelled][..]),
        (Planning, &[Executing, Completed, Failed, Cancelled]),
        (Executing, &[Planning, Verifying, Completed, Failed, Cancelled]),
        (Verifying, &[Executing, Completed, Failed, Cancelled]),
        (Completed, &[]),
        (Failed, &[]),
        (Cancelled, &[]),
    ];
    for (from, to) in legal {
        for next in RunStatus::ALL {
            let mut state = RunState::default();
            assert_eq!(state.apply(&run(from)), [], "a run may begin as `{}`", from.name());
            let problems = state.apply(&run(next));
            let expected = if from == next || to.contains(&next) { vec![] } else { vec!["run_transition"] };
            assert_eq!(codes(&problems), expected, "`{}` to `{}`", from.name(), next.name());
            assert_eq!(state.status, Some(next), "the last word counts");
        }
    }
}

#[test]
fn finished_tasks_do_not_begin_again() {
    for from in TaskStatus::ALL {
        for next in TaskStatus::ALL {
            let problems = last(&[list(vec![task("a", from, &[])]), list(vec![task("a", next, &[])])]);
            let again = matches!(from, TaskStatus::Completed | TaskStatus::Skipped | TaskStatus::Cancelled)
                && matches!(next, TaskStatus::Pending | TaskStatus::InProgress);
            let expected = if again { vec!["task_transition"] } else { vec![] };
            assert_eq!(problems, expected, "`{}` to `{}`", from.name(), next.name());
        }
    }
}

#[test]
fn tasks_do_not_vanish_before_they_are_done() {
    for status in TaskStatus::ALL {
        let problems = last(&[list(vec![task("a", status, &[])]), list(vec![])]);
        let expected = if status.is_final() { vec![] } else { vec!["task_vanished"] };
        assert_eq!(problems, expected, "{}", status.name());
    }
    let twice = vec![task("a", TaskStatus::Pending, &[]), task("a", TaskStatus::Pending, &[])];
    assert_eq!(last(&[list(twice), list(vec![])]), ["task_vanished"]);
}

#[test]
fn ids_are_unique_and_dependencies_known() {
    use TaskStatus::Pending;
    assert_eq!(last(&[list(vec![task("a", Pending, &[]), task("a", Pending, &[])])]), ["duplicate_task"]);
    assert_eq!(last(&[list(vec![task("a", Pending, &["b"])])]), ["unknown_dependency"]);
    assert_eq!(last(&[list(vec![task("a", Pending, &["b"]), task("b", Pending, &[])])]), [""; 0]);
}

#[test]
fn a_task_begins_when_what_it_depends_on_is_done() {
    for status in TaskStatus::ALL {
        for before in TaskStatus::ALL {
            let problems = last(&[list(vec![task("b", status, &["a"]), task("a", before, &[])])]);
            let began = matches!(status, TaskStatus::InProgress | TaskStatus::Completed);
            let done = matches!(before, TaskStatus::Completed | TaskStatus::Skipped);
            let expected = if began && !done { vec!["dependency_unfinished"] } else { vec![] };
            assert_eq!(problems, expected, "`{}` after `{}`", status.name(), before.name());
        }
    }
}

#[test]
fn cycles_are_found_and_named() {
    use TaskStatus::Pending;
    let cycle = |tasks: Vec<TaskItem>| {
        let problems = RunState::default().apply(&list(tasks));
        problems.into_iter().find(|problem| problem.code == "dependency_cycle").map(|problem| problem.message)
    };
    assert_eq!(cycle(vec![task("a", Pending, &["a"])]).unwrap(), "tasks wait for each other: `a` → `a`");
    // `start` leads into the cycle and is no part of it; `z` does not belong to it at all.
    assert_eq!(
        cycle(vec![
            task("start", Pending, &["a", "z"]),
            task("a", Pending, &["b", "z"]),
            task("b", Pending, &["c"]),
            task("c", Pending, &["a"]),
            task("z", Pending, &[]),
        ])
        .unwrap(),
        "tasks wait for each other: `a` → `b` → `c` → `a`"
    );
    let diamond = vec![
        task("d", Pending, &["b", "c", "b"]),
        task("b", Pending, &["a"]),
        task("c", Pending, &["a"]),
        task("a", Pending, &[]),
    ];
    assert_eq!(cycle(diamond), None);
    let ring = |size: usize| {
        let name = |at: usize| format!("t{at}");
        (0..size).map(|at| task(&name(at), Pending, &[&name((at + 1) % size)])).collect::<Vec<_>>()
    };
    assert!(cycle(ring(MAX_ITEMS)).unwrap().ends_with("→ … → `t0`"));
    let mut chain = ring(MAX_ITEMS);
    chain[MAX_ITEMS - 1].depends_on.clear();
    assert_eq!(cycle(chain), None);
}

#[test]
fn everything_depending_on_everything_is_bounded() {
    let names: Vec<String> = (0..MAX_ITEMS).map(|at| format!("t{at}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let tasks = names.iter().map(|name| task(name, TaskStatus::InProgress, &all)).collect();
    let problems = RunState::default().apply(&list(tasks));
    assert_eq!(problems.len(), MAX_PROBLEMS + 1);
    assert_eq!(problems.last().unwrap().code, "more_problems");
    assert_eq!(problems.last().unwrap().message, format!("and {} more problems", 1_000_001 - MAX_PROBLEMS));
}

#[test]
fn passed_means_that_every_check_did() {
    for whole in VerificationStatus::ALL {
        for part in VerificationStatus::ALL {
            let problems =
                last(&[verified(whole, vec![check("a", VerificationStatus::Passed), check("b", part)])]);
            let contradicts = matches!(
                part,
                VerificationStatus::Failed | VerificationStatus::Pending | VerificationStatus::Running
            );
            let expected = if whole == VerificationStatus::Passed && contradicts {
                vec!["passed_without_checks"]
            } else {
                vec![]
            };
            assert_eq!(problems, expected, "{} in {}", part.name(), whole.name());
        }
    }
    let twins = vec![check("a", VerificationStatus::Passed), check("a", VerificationStatus::Passed)];
    assert_eq!(last(&[verified(VerificationStatus::Passed, twins)]), ["duplicate_check"]);
}

#[test]
fn a_failed_check_does_not_hide_behind_many() {
    let mut checks: Vec<_> =
        (0..MAX_ITEMS).map(|at| check(&format!("c{at}"), VerificationStatus::Passed)).collect();
    checks.push(check("late", VerificationStatus::Failed));
    assert_eq!(last(&[verified(VerificationStatus::Passed, checks)]), ["passed_without_checks", "too_many"]);
}

#[test]
fn completed_means_that_tasks_and_verification_are_too() {
    let failed = verified(VerificationStatus::Failed, vec![]);
    for status in TaskStatus::ALL {
        let expected = if status.is_open() { vec!["completed_unfinished"] } else { vec![] };
        let tasks = list(vec![task("a", status, &[])]);
        // Whichever of the two is said last.
        assert_eq!(last(&[tasks.clone(), run(Completed)]), expected);
        assert_eq!(last(&[run(Completed), tasks.clone()]), expected);
        assert_eq!(last(&[tasks, run(RunStatus::Failed)]), [""; 0]);
    }
    assert_eq!(last(&[failed.clone(), run(Completed)]), ["completed_unverified"]);
    assert_eq!(last(&[run(Completed), failed.clone()]), ["completed_unverified"]);
    assert_eq!(last(&[failed, run(RunStatus::Failed)]), [""; 0]);
    assert_eq!(last(&[verified(VerificationStatus::NeedsReview, vec![]), run(Completed)]), [""; 0]);
}

#[test]
fn contracts_name_their_session_and_run() {
    assert_eq!(session_matches("ses", &run(Created)), None);
    let problem = session_matches("other", &run(Created)).unwrap();
    assert_eq!(problem.code, "session_mismatch");
    assert_eq!(problem.message, "the event is of session `other`, its contract of `ses`");

    let mut state = RunState::default();
    assert_eq!(state.apply(&run(Created)), []);
    let mut stray = list(vec![]);
    if let Contract::TaskList(event) = &mut stray {
        event.run_id = "another".into();
        event.session_id = "foreign".into();
    }
    assert_eq!(codes(&state.apply(&stray)), ["run_mismatch", "session_changed"]);
    assert_eq!((state.run_id.as_deref(), state.session_id.as_deref()), (Some("run"), Some("ses")));
}

#[test]
fn digests_are_sixty_four_hexadecimal_digits() {
    let artifact =
        |digest: &str| ArtifactRef { id: "x".into(), sha256: Some(digest.into()), ..ArtifactRef::default() };
    let shown = |digest: &str| EvidenceRef {
        kind: "log".into(),
        summary: "s".into(),
        artifact: Some(artifact(digest)),
        metadata: None,
    };
    for (digest, good) in [
        ("0123456789abcdef".repeat(4), true),
        ("0123456789ABCDEF".repeat(4), true),
        ("0123456789abcdef".repeat(4) + "0", false),
        ("g".repeat(64), false),
        ("é".repeat(32), false),
        (String::new(), false),
    ] {
        let mut one = task("a", TaskStatus::Completed, &[]);
        one.artifacts.push(artifact(&digest));
        one.evidence.push(shown(&digest));
        let mut other = check("c", VerificationStatus::Passed);
        other.artifacts.push(artifact(&digest));
        other.evidence.push(shown(&digest));
        let expected = if good { vec![] } else { vec!["bad_digest", "bad_digest"] };
        assert_eq!(last(&[list(vec![one])]), expected, "{digest}");
        assert_eq!(last(&[verified(VerificationStatus::Passed, vec![other])]), expected, "{digest}");
    }
}

#[test]
fn so_many_items_are_kept() {
    let mut state = RunState::default();
    let many: Vec<_> =
        (0..=MAX_ITEMS).map(|at| task(&format!("t{at}"), TaskStatus::Pending, &["t1000"])).collect();
    let mut many = many;
    many[MAX_ITEMS].depends_on.clear();
    // The last one is not kept, yet known: nothing is reported but the number, also when it is said again.
    for _ in 0..2 {
        assert_eq!(codes(&state.apply(&list(many.clone()))), ["too_many"]);
        assert_eq!(state.tasks.len(), MAX_ITEMS);
    }
    let checks: Vec<_> =
        (0..=MAX_ITEMS).map(|at| check(&format!("c{at}"), VerificationStatus::Passed)).collect();
    assert_eq!(codes(&state.apply(&verified(VerificationStatus::Passed, checks))), ["too_many"]);
    assert_eq!(state.verification.as_ref().unwrap().checks.len(), MAX_ITEMS);

    let mut one = task("a", TaskStatus::Pending, &[]);
    one.artifacts = vec![ArtifactRef::default(); MAX_REFERENCES + 1];
    one.depends_on = vec!["a".into(); MAX_ITEMS + 1];
    let mut state = RunState::default();
    assert_eq!(codes(&state.apply(&list(vec![one]))), ["dependency_cycle", "too_many", "too_many"]);
    assert_eq!(state.tasks[0].artifacts.len(), MAX_REFERENCES);
    assert_eq!(state.tasks[0].depends_on.len(), MAX_ITEMS);
}

#[test]
fn texts_are_cut_between_characters() {
    let long = "é".repeat(MAX_TEXT);
    let mut one = task(&format!("a{long}"), TaskStatus::Pending, &[]);
    one.metadata = Some(Json::object().with("long", long.as_str()));
    one.error = Some("x".repeat(MAX_TEXT));
    let mut state = RunState::default();
    for _ in 0..2 {
        assert_eq!(state.apply(&list(vec![one.clone()])), []);
    }
    assert_eq!(state.tasks[0].id.len(), MAX_TEXT - 1, "a two-byte character does not fit any more");
    assert_eq!(state.tasks[0].metadata, None);
    assert_eq!(state.tasks[0].error.as_ref().unwrap().len(), MAX_TEXT);
    let said = Contract::RunLifecycle(RunLifecycleEvent {
        run_id: long.clone(),
        session_id: long.clone(),
        status: RunStatus::Failed,
        prompt: Some(long.clone()),
        result_summary: Some(long.clone()),
        error: Some(long.clone()),
        started_at: Some(long.clone()),
        updated_at: long.clone(),
        metadata: None,
    });
    let mut state = RunState::default();
    state.apply(&said);
    for text in [
        &state.run_id,
        &state.session_id,
        &state.prompt,
        &state.result_summary,
        &state.error,
        &state.started_at,
        &state.updated_at,
    ] {
        assert_eq!(text.as_ref().unwrap().len(), MAX_TEXT);
    }
    let problem = RunState { session_id: Some("s".into()), ..state }.apply(&said).remove(0);
    assert!(problem.message.len() < 400, "{}", problem.message);
}

#[test]
fn metadata_that_could_not_be_read_back_is_left_out() {
    let mut deep = Json::Null;
    for _ in 0..proctor_core::json::MAX_DEPTH {
        deep = Json::Array(vec![deep]);
    }
    for metadata in [Json::object().with("deep", deep), Json::object().with("bad", Json::Number("x".into()))]
    {
        let mut one = task("a", TaskStatus::Pending, &[]);
        one.metadata = Some(metadata);
        let mut state = RunState::default();
        state.apply(&list(vec![one]));
        assert_eq!(state.tasks[0].metadata, None);
    }
    let mut one = task("a", TaskStatus::Pending, &[]);
    one.metadata = Some(Json::parse(br#"{"cost": 12345678901234567890.10, "never": 1e400}"#).unwrap());
    let mut state = RunState::default();
    state.apply(&list(vec![one.clone()]));
    assert_eq!(state.tasks[0], one);
    assert_eq!(state.to_json().read::<RunState>().unwrap(), state);
}

#[test]
fn what_was_said_once_of_a_run_stays() {
    let mut state = RunState::default();
    let mut first = run(Created);
    if let Contract::RunLifecycle(event) = &mut first {
        event.prompt = Some("build it".into());
        event.started_at = Some("09:00".into());
    }
    state.apply(&first);
    let mut over = run(RunStatus::Failed);
    if let Contract::RunLifecycle(event) = &mut over {
        event.error = Some("no disk".into());
        event.updated_at = "09:05".into();
    }
    state.apply(&over);
    assert_eq!(
        state.to_json().to_string(),
        r#"{"run_id":"run","session_id":"ses","status":"failed","prompt":"build it","error":"no disk","started_at":"09:00","updated_at":"09:05"}"#
    );
    if let Contract::RunLifecycle(event) = &mut over {
        event.error = Some("disk full".into());
    }
    state.apply(&over);
    assert_eq!(state.error.as_deref(), Some("disk full"), "the last word counts");
    assert_eq!(RunState::default().to_json(), Json::object());
    assert_eq!(Json::object().read::<RunState>().unwrap(), RunState::default());
}

fn any_task() -> impl Strategy<Value = TaskItem> {
    let id = || prop_oneof![9 => "[a-e]", 1 => any::<String>()];
    (
        id(),
        prop::sample::select(TaskStatus::ALL.to_vec()),
        prop::collection::vec(id(), 0..4),
        prop::option::of(any::<String>()),
        prop::option::of("[{}0-9.e]{1,8}"),
    )
        .prop_map(|(id, status, depends_on, digest, number)| TaskItem {
            id,
            title: digest.clone().unwrap_or_default(),
            status,
            depends_on,
            evidence: vec![],
            artifacts: vec![ArtifactRef { id: "x".into(), sha256: digest, ..ArtifactRef::default() }],
            error: None,
            updated_at: None,
            metadata: number
                .and_then(|text| Json::parse(text.as_bytes()).ok())
                .map(|n| Json::object().with("n", n)),
        })
}

fn any_contract() -> impl Strategy<Value = Contract> {
    let status = || prop::sample::select(VerificationStatus::ALL.to_vec());
    let lifecycle = (prop::sample::select(RunStatus::ALL.to_vec()), prop::option::of(any::<String>()));
    prop_oneof![
        lifecycle.prop_map(|(status, text)| {
            let mut contract = run(status);
            if let Contract::RunLifecycle(event) = &mut contract {
                event.started_at = text.clone();
                event.updated_at = text.clone().unwrap_or_default();
                event.error = text;
            }
            contract
        }),
        prop::collection::vec(any_task(), 0..8).prop_map(list),
        (status(), prop::collection::vec(("[a-c]", status()), 0..5)).prop_map(|(whole, checks)| {
            verified(whole, checks.iter().map(|(id, status)| check(id, *status)).collect())
        }),
    ]
}

/// A list has a cycle if some task is reachable from itself: the slow, obvious way.
fn has_cycle(tasks: &[TaskItem]) -> bool {
    let first = |id: &str| tasks.iter().find(|task| task.id == id);
    tasks.iter().any(|start| {
        let Some(start) = first(&start.id) else { return false };
        let mut reached: Vec<&str> = start.depends_on.iter().map(String::as_str).collect();
        let mut at = 0;
        while let Some(id) = reached.get(at).copied() {
            for next in first(id).into_iter().flat_map(|task| &task.depends_on) {
                if !reached.contains(&next.as_str()) {
                    reached.push(next);
                }
            }
            at += 1;
        }
        reached.contains(&start.id.as_str())
    })
}

proptest! {
    #[test]
    fn a_run_can_be_saved_and_continued_anywhere(
        contracts in prop::collection::vec(any_contract(), 0..12),
        at in 0usize..12,
    ) {
        let mut whole = RunState::default();
        let all: Vec<_> = contracts.iter().map(|contract| whole.apply(contract)).collect();

        let (before, after) = contracts.split_at(at.min(contracts.len()));
        let mut part = RunState::default();
        let mut told: Vec<_> = before.iter().map(|contract| part.apply(contract)).collect();
        let saved = part.to_json().to_string();
        let mut restored: RunState = Json::parse(saved.as_bytes()).unwrap().read().unwrap();
        prop_assert_eq!(&restored, &part);
        told.extend(after.iter().map(|contract| restored.apply(contract)));
        prop_assert_eq!(restored, whole);
        prop_assert_eq!(told, all);
    }

    #[test]
    fn saying_it_twice_changes_nothing(
        contracts in prop::collection::vec(any_contract(), 1..8),
    ) {
        let mut state = RunState::default();
        for contract in &contracts {
            let first = state.apply(contract);
            let once = state.clone();
            let second = state.apply(contract);
            prop_assert_eq!(&state, &once);
            let known = codes(&first);
            for code in codes(&second) {
                prop_assert!(known.contains(&code), "new problem {}", code);
                prop_assert!(!["run_transition", "task_transition", "task_vanished"].contains(&code));
            }
        }
    }

    #[test]
    fn cycles_are_found_exactly_where_there_are_some(tasks in prop::collection::vec(any_task(), 0..7)) {
        let expected = has_cycle(&tasks);
        let found = last(&[list(tasks)]).contains(&"dependency_cycle");
        prop_assert_eq!(found, expected);
    }
}
