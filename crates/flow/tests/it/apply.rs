//! Apply and plan on the stand-in.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proctor_core::json::Json;
use proctor_flow::scheduler::{
    AdoptBy, ApplyError, ConsumeError, LocalProof, Options, Proofs, Replay, apply, plan,
};
use proctor_wire::agentcli::error::{Code, Failure};

use crate::stand_in::StandIn;

const SECRET: &str = "sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789ABCD";

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

/// A child that is declared before its parent, and the parent.
fn two_tasks() -> Json {
    manifest("0.1", "", &["report", "collect"])
}

/// A manifest whose workflow has further members; `report` is triggered by `collect`.
fn manifest(version: &str, members: &str, tasks: &[&str]) -> Json {
    let tasks: Vec<String> = tasks
        .iter()
        .map(|id| {
            let start = if *id == "report" {
                r#""trigger":{"parent":"collect","on":"success"}"#
            } else {
                r#""schedule":{"cron":"0 9 * * *"}"#
            };
            format!(
                r#"{{"id":"{id}","name":"Task {id}","target":{{"session_target":"shell"}},"shell":{{"program":"echo","args":["{id}"]}},{start}}}"#
            )
        })
        .collect();
    let comma = if members.is_empty() { "" } else { "," };
    json(&format!(
        r#"{{"version":"{version}","workflows":[{{"id":"w","name":"W"{comma}{members},"tasks":[{}]}}]}}"#,
        tasks.join(",")
    ))
}

/// Accepts every proof, with one key.
struct Accepting;

impl Proofs for Accepting {
    async fn verify(&self, workflow_id: &str, task_id: &str) -> Result<LocalProof, Failure> {
        let summary = Json::object().with("verified", true).with("task", format!("{workflow_id}:{task_id}"));
        Ok(LocalProof { summary, replay_key: Some("jti:1".to_owned()) })
    }
}

struct Refusing;

impl Proofs for Refusing {
    async fn verify(&self, _: &str, _: &str) -> Result<LocalProof, Failure> {
        Err(Failure::new(Code::AuthorizationProofFailed, "the proof is expired"))
    }
}

#[derive(Default)]
struct Used(Mutex<BTreeSet<String>>);

impl Replay for Used {
    async fn consume(&self, keys: &[String]) -> Result<(), ConsumeError> {
        let mut used = self.0.lock().unwrap();
        if keys.iter().any(|key| used.contains(key)) {
            return Err(ConsumeError::Used);
        }
        used.extend(keys.iter().cloned());
        Ok(())
    }
}

async fn run(stand_in: &StandIn, manifest: &Json, options: Options) -> Result<Json, ApplyError> {
    apply(&stand_in.client(), manifest, options, &Accepting, &Used::default()).await
}

fn actions(result: &Json) -> Vec<(&str, &str)> {
    let text = |action: &'static str, item: &Json| item[action].as_str().unwrap().to_owned().leak() as &str;
    result["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (text("action", item), text("name", item)))
        .collect()
}

#[tokio::test]
async fn parents_are_written_first_and_again_updates() {
    let stand_in = StandIn::new(&[]);
    let first = run(&stand_in, &two_tasks(), Options::default()).await.unwrap();
    assert_eq!(actions(&first), [("created", "Task collect"), ("created", "Task report")]);
    assert_eq!(
        first.to_string().replace(&stand_in.database().display().to_string(), "DB"),
        format!(
            concat!(
                r#"{{"ok":true,"target":"openclaw-scheduler","dry_run":false,"scheduler":{{"command":{:?},"db_path":"DB"}},"#,
                r#""capabilities":{{"source":"static","negotiated":false,"handoff_version":null}},"#,
                r#""handoff":{{"field_version":"1","projected_fields":41,"v02_fields_included":false}},"job_count":2,"#,
                r#""actions":[{{"action":"created","job_id":"{}","name":"Task collect","invocation_mode":"schedule"}},"#,
                r#"{{"action":"created","job_id":"{}","name":"Task report","invocation_mode":"trigger"}}]}}"#,
            ),
            stand_in.client().label(),
            proctor_wire::agentcli::expand::compiled_id("w", "collect"),
            proctor_wire::agentcli::expand::compiled_id("w", "report"),
        )
    );
    let second = run(&stand_in, &two_tasks(), Options::default()).await.unwrap();
    assert_eq!(actions(&second), [("updated", "Task collect"), ("updated", "Task report")]);
    assert_eq!(
        stand_in.commands(),
        ["jobs list", "jobs add", "jobs add", "jobs list", "jobs update", "jobs update"]
    );
    // Creation leaves nulls out and has a boolean; an update has nulls, and neither id nor origin.
    let calls = stand_in.calls();
    let (created, updated) = (json(&calls[1][2]), json(&calls[4][3]));
    assert_eq!(created["enabled"], Json::Bool(true));
    assert!(created.get("payload_model").is_none() && created["origin"] == "system");
    assert_eq!(updated.get("payload_model"), Some(&Json::Null));
    assert!(updated.get("id").is_none() && updated.get("origin").is_none());
    assert_eq!(updated.as_object().unwrap().len(), 39);
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_answers_the_same() {
    let stand_in = StandIn::new(&[]);
    let options = Options { dry_run: true, explain: true, ..Options::default() };
    let result = run(&stand_in, &two_tasks(), options).await.unwrap();
    assert_eq!(actions(&result), [("created", "Task collect"), ("created", "Task report")]);
    assert_eq!(result["dry_run"], Json::Bool(true));
    assert_eq!(result["explain"].as_array().unwrap().len(), 2);
    assert_eq!(stand_in.commands(), ["jobs list"]);
}

#[tokio::test]
async fn jobs_made_by_hand_are_adopted_by_name() {
    let stand_in = StandIn::new(&[]);
    let by_hand = r#"{"id":"mine","name":"Task collect","origin":"alice","session_target":"shell","payload_kind":"shellCommand","schedule_cron":"* * * * *"}"#;
    stand_in.client().add("mine", &json(by_hand)).await.unwrap();
    let options = Options { adopt_by: AdoptBy::Name, ..Options::default() };
    let result = run(&stand_in, &two_tasks(), options).await.unwrap();
    assert_eq!(actions(&result), [("adopted", "Task collect"), ("created", "Task report")]);
    assert_eq!(result.pointer("/actions/0/adopted_from_job_id").and_then(Json::as_str), Some("mine"));
    let rows = stand_in.client().jobs().await.unwrap();
    assert_eq!(rows.len(), 2);
    let collect = rows.iter().find(|row| row["name"] == "Task collect").unwrap();
    assert_eq!(collect["origin"], "alice");
    // By id, which is the default, the job made by hand is another one.
    let other = StandIn::new(&[]);
    other.client().add("mine", &json(by_hand)).await.unwrap();
    run(&other, &two_tasks(), Options::default()).await.unwrap();
    assert_eq!(other.client().jobs().await.unwrap().len(), 3);
}

#[tokio::test]
async fn an_adoption_that_cannot_delete_takes_itself_back() {
    let stand_in = StandIn::new(&[("STAND_IN_FAULT", "crash:jobs delete:1")]);
    let by_hand = r#"{"id":"mine","name":"Task collect","origin":"alice","session_target":"shell","payload_kind":"shellCommand","schedule_cron":"* * * * *"}"#;
    stand_in.client().add("mine", &json(by_hand)).await.unwrap();
    let options = Options { adopt_by: AdoptBy::Name, ..Options::default() };
    let error = run(&stand_in, &two_tasks(), options).await.unwrap_err();
    assert!(matches!(error, ApplyError::Adoption { rollback: None, .. }), "{error}");
    assert_eq!(error.code(), Code::SchedulerError);
    let rows = stand_in.client().jobs().await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["id"], "mine");
    assert!(!error.to_string().contains("Abcdefgh"), "{error}");
}

const BY_HAND: &str = r#"{"id":"mine","name":"Task collect","origin":"alice","session_target":"shell","payload_kind":"shellCommand","schedule_cron":"* * * * *"}"#;

#[tokio::test]
async fn an_adoption_whose_deletion_deletes_nothing_fails() {
    let options = Options { adopt_by: AdoptBy::Name, ..Options::default() };
    // The rollback of the first works; that of the second deletes nothing either; the list of the third says nothing.
    for (fault, is_rolled_back) in [
        ("kept:jobs delete:1", true),
        ("kept:jobs delete", false),
        ("kept:jobs delete:1,object:jobs list:2", true),
    ] {
        let stand_in = StandIn::new(&[("STAND_IN_FAULT", fault)]);
        stand_in.client().add("mine", &json(BY_HAND)).await.unwrap();
        let error = run(&stand_in, &two_tasks(), options).await.unwrap_err();
        let ApplyError::Adoption { rollback, .. } = &error else { panic!("{fault}: {error}") };
        assert_eq!(rollback.is_none(), is_rolled_back, "{fault}: {error}");
        assert_eq!(error.code(), Code::SchedulerError);
        assert!(error.to_string().contains("still there"), "{error}");
        stand_in.set(&[]);
        let rows = stand_in.client().jobs().await.unwrap();
        assert_eq!(rows.len(), if is_rolled_back { 1 } else { 2 }, "{fault}");
        assert!(rows.iter().any(|row| row["id"] == "mine"), "{fault}");
    }
}

#[tokio::test]
async fn an_adoption_whose_deletion_is_only_seen_in_the_list_succeeds() {
    let stand_in = StandIn::new(&[("STAND_IN_FAULT", "unsaid:jobs delete")]);
    stand_in.client().add("mine", &json(BY_HAND)).await.unwrap();
    let options = Options { adopt_by: AdoptBy::Name, ..Options::default() };
    let result = run(&stand_in, &two_tasks(), options).await.unwrap();
    assert_eq!(actions(&result), [("adopted", "Task collect"), ("created", "Task report")]);
    assert!(stand_in.client().jobs().await.unwrap().iter().all(|row| row["id"] != "mine"));
}

#[tokio::test]
async fn a_failure_midway_names_what_was_written() {
    let stand_in = StandIn::new(&[("STAND_IN_FAULT", "crash:jobs add:2")]);
    let error = run(&stand_in, &two_tasks(), Options::default()).await.unwrap_err();
    assert_eq!(error.written().len(), 1);
    assert_eq!(error.written()[0].name, "Task collect");
    let text = error.to_string();
    assert!(text.contains("job `Task report` was not written"), "{text}");
    assert!(text.ends_with("; written before: created `Task collect`"), "{text}");
    assert!(text.contains("ValidationError") && !text.contains("Abcdefgh"), "{text}");
    assert_eq!(error.to_failure().code.rpc_code(), -32603);
    // The same manifest can be applied again.
    stand_in.set(&[]);
    let result = run(&stand_in, &two_tasks(), Options::default()).await.unwrap();
    assert_eq!(actions(&result), [("updated", "Task collect"), ("created", "Task report")]);
}

#[tokio::test]
async fn identities_are_negotiated_and_sent_as_text() {
    let stand_in = StandIn::new(&[]);
    let manifest = json(
        r#"{"version":"0.2","identity_profiles":[{"id":"svc","provider":"env-bearer","auth":{"mode":"service","provider_config":{"token_env":"T"}}}],
            "workflows":[{"id":"w","name":"W","identity":{"ref":"svc"},"tasks":[{"id":"a","name":"A","target":{"session_target":"shell"},
            "shell":{"program":"echo"},"schedule":{"cron":"0 9 * * *"}}]}]}"#,
    );
    let result = run(&stand_in, &manifest, Options::default()).await.unwrap();
    assert_eq!(
        result["capabilities"].to_string(),
        r#"{"source":"runtime","negotiated":true,"handoff_version":"2"}"#
    );
    assert_eq!(
        result["handoff"].to_string(),
        r#"{"field_version":"2","projected_fields":67,"v02_fields_included":true}"#
    );
    let rows = stand_in.client().jobs().await.unwrap();
    let identity = json(rows[0]["identity"].as_str().unwrap());
    assert_eq!(identity["provider"], "env-bearer");
    // The same again changes nothing.
    let options = Options::default();
    let planned = plan(&stand_in.client(), &manifest, options).await.unwrap();
    assert!(!planned.changes_anything(), "{}", planned.to_text());
}

#[tokio::test]
async fn a_flat_identity_is_sent_where_it_can_be_and_warned_about_where_not() {
    let members = r#""identity":{"principal":"ops@host"},"contract":{"sandbox":"strict"}"#;
    let manifest = manifest("0.1", members, &["collect"]);
    let able = StandIn::new(&[]);
    let result = run(&able, &manifest, Options::default()).await.unwrap();
    assert!(result["capabilities"].get("warnings").is_none());
    assert_eq!(able.client().jobs().await.unwrap()[0]["contract_sandbox"], "strict");
    for switches in [[("STAND_IN_HANDOFF", "1")], [("STAND_IN_FAULT", "garbage:capabilities")]] {
        let unable = StandIn::new(&switches);
        let result = run(&unable, &manifest, Options::default()).await.unwrap();
        let warnings = result["capabilities"]["warnings"].to_string();
        assert!(warnings.contains("identity_principal, contract_sandbox"), "{warnings}");
        assert!(unable.client().jobs().await.unwrap()[0]["contract_sandbox"].is_null());
    }
}

#[tokio::test]
async fn features_that_the_scheduler_lacks_are_refused_before_anything_is_written() {
    let output = r#""version":"0.2","workflows":[{"id":"w","name":"W","tasks":[{"id":"a","name":"A","target":{"session_target":"shell"},"shell":{"program":"echo"},"schedule":{"cron":"0 9 * * *"}"#;
    for (extra, feature) in [
        (r#","output":{"format":"json"}"#, "structured_output_format"),
        (r#","approval":{"required":true}"#, "root_approval_gate"),
        (r#","contract":{"required_trust_level":"supervised"}"#, "trust_evaluation"),
    ] {
        let stand_in = StandIn::new(&[("STAND_IN_FEATURES", r#"{"trust_evaluation":"false"}"#)]);
        let manifest = json(&format!("{{{output}{extra}}}]}}]}}"));
        let error = run(&stand_in, &manifest, Options::default()).await.unwrap_err();
        assert_eq!(error.code(), Code::UnsupportedCapability);
        assert!(error.to_string().contains(feature), "{error}");
        assert_eq!(stand_in.commands(), ["capabilities"]);
    }
}

fn with_proof() -> Json {
    json(
        r#"{"version":"0.2","authorization_proof_profiles":[{"id":"p","method":"jwt","public_key":"-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEh7iTSOx7yfD5ElvYBDoFpdvf7SDf\nXsZAkHkYIIAYqJLkjFyPOqmgnqfNuKEZPF0yoAvn2uQQCXT8sMDBTBHZXg==\n-----END PUBLIC KEY-----\n","proof":{"value_from":{"env":"PROOF"}}}],
            "workflows":[{"id":"w","name":"W","authorization_proof":{"ref":"p"},"tasks":[{"id":"a","name":"A","target":{"session_target":"shell"},
            "shell":{"program":"echo"},"schedule":{"cron":"0 9 * * *"}}]}]}"#,
    )
}

#[tokio::test]
async fn proofs_are_verified_here_and_are_used_once() {
    let stand_in = StandIn::new(&[("STAND_IN_FEATURES", "{}")]);
    let manifest = with_proof();
    let used = Used::default();
    let go = |manifest: Json, dry_run: bool| {
        let (client, used) = (stand_in.client(), &used);
        async move { apply(&client, &manifest, Options { dry_run, ..Options::default() }, &Accepting, used).await }
    };
    go(manifest.clone(), true).await.expect("a dry run does not use the proof");
    let first = go(manifest.clone(), false).await.unwrap();
    assert_eq!(
        first["authorization_proof_verifications"].to_string(),
        r#"[{"source":{"workflow_id":"w","task_id":"a"},"authorization_proof_ref":"p","verification":{"verified":true,"task":"w:a"}}]"#
    );
    assert!(first.pointer("/actions/0/authorization_proof_verification").is_some());
    go(manifest.clone(), false).await.expect("an apply that changes nothing needs no new proof");
    // Another cron changes the job.
    let changed = json(&manifest.to_string().replace("0 9", "0 8"));
    let error = go(changed, false).await.unwrap_err();
    assert!(matches!(error, ApplyError::Consume(ConsumeError::Used)), "{error}");
    assert_eq!(error.to_failure().code.word(), "authorization_proof_failed");
    assert_eq!(stand_in.client().jobs().await.unwrap()[0]["schedule_cron"], "0 9 * * *");

    let error = apply(&stand_in.client(), &manifest, Options::default(), &Refusing, &Used::default())
        .await
        .unwrap_err();
    assert_eq!(error.to_failure().code, Code::AuthorizationProofFailed);
}

#[tokio::test]
async fn proofs_are_verified_and_used_up_here_whatever_the_scheduler_says() {
    let stand_in = StandIn::new(&[]);
    let manifest = with_proof();
    let refused = apply(&stand_in.client(), &manifest, Options::default(), &Refusing, &Used::default()).await;
    assert_eq!(refused.unwrap_err().to_failure().code, Code::AuthorizationProofFailed);
    assert!(!stand_in.commands().iter().any(|command| command == "jobs add"));
    let used = Used::default();
    let result = apply(&stand_in.client(), &manifest, Options::default(), &Accepting, &used).await.unwrap();
    assert!(result.pointer("/actions/0/authorization_proof_verification").is_some());
    // The protocol has this member only for schedulers that do not verify.
    assert!(result.get("authorization_proof_verifications").is_none());
    let changed = json(&manifest.to_string().replace("0 9", "0 8"));
    let error = apply(&stand_in.client(), &changed, Options::default(), &Accepting, &used).await.unwrap_err();
    assert!(matches!(error, ApplyError::Consume(ConsumeError::Used)), "{error}");
    assert_eq!(stand_in.client().jobs().await.unwrap()[0]["schedule_cron"], "0 9 * * *");
}

#[tokio::test]
async fn hostile_answers_are_errors_within_bounds() {
    let unchanged = |stand_in: &StandIn| !stand_in.commands().iter().any(|command| command == "jobs add");
    for fault in ["garbage:jobs list", "huge:jobs list", "deep:jobs list", "crash:jobs list"] {
        let stand_in = StandIn::new(&[("STAND_IN_FAULT", fault)]);
        let start = Instant::now();
        let error = run(&stand_in, &two_tasks(), Options::default()).await.unwrap_err();
        assert!(matches!(error, ApplyError::Call(_)), "{fault}: {error}");
        assert!(start.elapsed() < Duration::from_secs(10), "{fault}: {:?}", start.elapsed());
        assert!(unchanged(&stand_in));
        assert!(!error.to_string().contains("Abcdefgh"), "{error}");
    }
    for fault in ["silent:jobs add", "unconfirmed:jobs add", "other-id:jobs add", "garbage:jobs add"] {
        let stand_in = StandIn::new(&[("STAND_IN_FAULT", fault)]);
        let error = run(&stand_in, &two_tasks(), Options::default()).await.unwrap_err();
        assert!(matches!(error, ApplyError::Interrupted { .. }), "{fault}: {error}");
        assert!(error.to_string().contains("it is not known whether"), "{error}");
    }
}

#[tokio::test]
async fn calls_that_hang_are_ended_with_their_children() {
    for (fault, problem) in
        [("hang:jobs list", "took longer than 1 s"), ("endless-error:jobs list", "answered with more than")]
    {
        let stand_in = StandIn::new(&[("STAND_IN_FAULT", fault)]);
        let client = stand_in.client().with_time(Duration::from_secs(1));
        let start = Instant::now();
        let error =
            apply(&client, &two_tasks(), Options::default(), &Accepting, &Used::default()).await.unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
        assert!(start.elapsed() < Duration::from_secs(8));
        // Nobody is left who has the stand-in's folder in its command line.
        let folder = stand_in.database().parent().unwrap().display().to_string();
        let end = Instant::now() + Duration::from_secs(5);
        while is_mentioned(&folder) {
            assert!(Instant::now() < end, "a process of {folder} is left");
            tokio::task::yield_now().await;
        }
    }
}

/// Whether a process has the text in its environment.
fn is_mentioned(text: &str) -> bool {
    let own = std::process::id().to_string();
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.bytes().all(|byte| byte.is_ascii_digit())
            && name != own
            && std::fs::read(entry.path().join("environ"))
                .is_ok_and(|environment| String::from_utf8_lossy(&environment).contains(text))
    })
}

#[tokio::test]
async fn a_missing_program_says_how_to_name_it() {
    let client = proctor_flow::scheduler::Client::new(&proctor_flow::scheduler::Invocation {
        bin: Some("/nonexistent/openclaw-scheduler".to_owned()),
        ..Default::default()
    })
    .unwrap();
    let error =
        apply(&client, &two_tasks(), Options::default(), &Accepting, &Used::default()).await.unwrap_err();
    assert!(error.to_string().contains("schedulerBin"), "{error}");
    assert_eq!(error.code(), Code::SchedulerError);
}

#[tokio::test]
async fn secrets_never_reach_a_command_line() {
    let stand_in = StandIn::new(&[]);
    let text = two_tasks()
        .to_string()
        .replace("\"echo\",\"args\":[\"collect\"]", &format!("\"echo\",\"args\":[\"{SECRET}\"]"));
    assert!(text.contains(SECRET));
    let error = run(&stand_in, &json(&text), Options::default()).await.unwrap_err();
    assert!(matches!(error, ApplyError::Secret { .. }), "{error}");
    assert!(!error.to_string().contains("Abcdefgh"), "{error}");
    assert!(stand_in.calls().is_empty());
    // A plan shows the job without it.
    let planned = plan(&stand_in.client(), &json(&text), Options::default()).await.unwrap();
    for shown in [planned.to_text(), planned.to_json().to_string()] {
        assert!(shown.contains("REDACTED") && !shown.contains("Abcdefgh"), "{shown}");
    }
}

#[tokio::test]
async fn arguments_beyond_the_systems_limit_are_refused_clearly() {
    let stand_in = StandIn::new(&[]);
    let long = "ä".repeat(80_000);
    let text = two_tasks().to_string().replace("[\"collect\"]", &format!("[\"{long}\"]"));
    let error = run(&stand_in, &json(&text), Options::default()).await.unwrap_err();
    assert!(error.to_string().contains("shorten"), "{error}");
}

#[tokio::test]
async fn circles_are_refused_before_the_scheduler_is_started() {
    let stand_in = StandIn::new(&[]);
    let text = two_tasks()
        .to_string()
        .replace(r#""schedule":{"cron":"0 9 * * *"}"#, r#""trigger":{"parent":"report","on":"success"}"#);
    let error = run(&stand_in, &json(&text), Options::default()).await.unwrap_err();
    assert!(matches!(error, ApplyError::Cycle(_)), "{error}");
    assert!(stand_in.calls().is_empty());
}

#[tokio::test]
async fn a_plan_shows_what_would_change() {
    let stand_in = StandIn::new(&[]);
    run(&stand_in, &manifest("0.1", "", &["collect"]), Options::default()).await.unwrap();
    let changed = json(&two_tasks().to_string().replace("0 9 *", "0 8 *"));
    let planned = plan(&stand_in.client(), &changed, Options::default()).await.unwrap();
    let text = planned.to_text();
    let id = |task| proctor_wire::agentcli::expand::compiled_id("w", task);
    assert!(
        text.starts_with(&format!(
            "~ updated Task collect ({}, schedule)\n    schedule_cron: \"0 9 * * *\" -> \"0 8 * * *\"\n+ created Task report ({}, trigger)\n",
            id("collect"),
            id("report")
        )),
        "{text}"
    );
    assert!(text.ends_with("1 created, 1 updated, 0 adopted, 0 unchanged\n"), "{text}");
    let json = planned.to_json();
    assert_eq!(json["summary"].to_string(), r#"{"created":1,"updated":1,"adopted":0,"unchanged":0}"#);
    assert_eq!(
        json.pointer("/changes/0/fields").unwrap().to_string(),
        r#"[{"field":"schedule_cron","old":"0 9 * * *","new":"0 8 * * *"}]"#
    );
    assert_eq!(stand_in.commands().iter().filter(|command| *command == "jobs add").count(), 1);
}
