//! Policy, approvals and the other checks before anything is started.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_flow::run::adapters::{AuthorizationProviders, ProofVerifier};
use proctor_flow::run::{
    Authorized, Authorizer, BoxFuture, Cancel, Identities, Options, Parts, Proofs, ResolvedIdentity, Runner,
    Subject, Verdict,
};
use proctor_identity::environment::Environment;
use proctor_identity::http::Client;
use proctor_identity::session::TrustLevel;
use proctor_proof::jwt::KeyCache;
use proctor_system::SystemClock;
use proctor_wire::agentcli::error::{Code, Failure};

use super::fixture::{
    ALLOW, Fixed, FixedProof, IDENTITY, PROFILE, Planted, World, code, exec, manifest, manifest_with, script,
};

/// Task that leaves a file behind if it runs.
fn marker(more: &str) -> String {
    script("t", "echo ran; touch ran", more)
}

fn has_run(world: &World) -> bool {
    world.work().join("ran").exists()
}

#[tokio::test]
async fn an_allowed_run_is_a_decision_with_its_outcome_and_its_end() {
    let world = World::new(Some(ALLOW));
    let result = exec(&world.runner(), &manifest(&marker("")), "t").await.unwrap();
    assert!(result.is_ok && has_run(&world));
    let json = &result.json;
    assert_eq!(json.pointer("/result/stdout"), Some(&Json::from("ran\n")), "{json}");
    assert_eq!(json.pointer("/result/exit_code").and_then(Json::as_i64), Some(0));
    let id = json.get("execution_id").and_then(Json::as_str).unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    assert_eq!(json.get("principal_used"), Some(&Json::from("me@here")));
    assert_eq!(world.story("w/t"), ["session ", "decision allow", "outcome ok", "run ended"]);
    let (envelope, body) =
        world.records().into_iter().find(|(envelope, _)| envelope.decision.is_some()).unwrap();
    assert_eq!((envelope.door.as_str(), envelope.tool.as_str()), ("agentcli", "shell"));
    assert!(body.contains("process_exec") && body.contains("touch ran"), "{body}");
}

#[tokio::test]
async fn denied_and_unmentioned_runs_start_nothing_and_are_on_record() {
    let deny = ALLOW.replace("then: allow", "then: deny");
    for policy in [Some(deny.as_str()), Some("version: \"1\"\ndefault: deny\n"), None] {
        let world = World::new(policy);
        let result = exec(&world.runner(), &manifest(&marker("")), "t").await;
        assert_eq!(code(&result), Some(Code::AuthorizationDenied), "{policy:?}");
        assert!(!has_run(&world));
        assert_eq!(world.story("w/t"), ["session ", "decision deny", "run ended"]);
        assert_eq!(world.end("w/t").get("code"), Some(&Json::from("authorization_denied")));
        let id = result.unwrap_err().to_json().get("execution_id").cloned();
        assert_eq!(world.end("w/t").get("execution_id"), id.as_ref());
    }
}

#[tokio::test]
async fn an_approval_lets_one_run_of_the_same_task_through() {
    let world = World::new(Some(&ALLOW.replace("then: allow", "then: ask")));
    let runner = world.runner();
    let manifest = manifest(&marker(""));
    let first = exec(&runner, &manifest, "t").await.unwrap_err();
    assert_eq!(first.failure.code, Code::ApprovalRequired);
    let approval = first.approval.clone().unwrap();
    assert!(approval.expires.is_some());
    let again = exec(&runner, &manifest, "t").await.unwrap_err();
    assert_eq!(again.approval.as_ref().map(|approval| approval.id), Some(approval.id), "the same question");
    world.approve(approval.id, true);
    // The approval is good for the task as it was written.
    let other = super::fixture::manifest(&script("t", "touch other", ""));
    assert_eq!(code(&exec(&runner, &other, "t").await), Some(Code::ApprovalRequired));
    assert!(!has_run(&world));
    assert!(exec(&runner, &manifest, "t").await.unwrap().is_ok);
    assert!(has_run(&world));
    let later = exec(&runner, &manifest, "t").await.unwrap_err();
    assert_eq!(later.failure.code, Code::ApprovalRequired);
    assert_ne!(later.approval.map(|approval| approval.id), Some(approval.id), "it is used up");
}

#[tokio::test]
async fn an_approval_covers_the_options_that_replace_members_of_the_task() {
    let world = World::new(Some(&ALLOW.replace("then: allow", "then: ask")));
    let runner = world.runner();
    let manifest = manifest_with(
        &marker(r#""evidence":{"ref":"e"}"#),
        r#""evidence_profiles":[{"id":"e","provider":"ledger"}]"#,
    );
    let run =
        async |options: &Options| runner.exec(&manifest, None, "t", options, &mut Cancel::never()).await;
    let short = Options { timeout: Some(Duration::from_secs(10)), ..Options::default() };
    let asked = run(&short).await.unwrap_err().approval.unwrap();
    world.approve(asked.id, true);
    for other in [
        Options::default(),
        Options { timeout: Some(Duration::from_secs(36_000)), ..Options::default() },
        Options { evidence_provider: Some("none".to_owned()), ..short.clone() },
    ] {
        assert_eq!(code(&run(&other).await), Some(Code::ApprovalRequired), "{other:?}");
    }
    assert!(!has_run(&world));
    assert!(run(&short).await.unwrap().is_ok && has_run(&world));
}

#[tokio::test]
async fn a_value_source_that_policy_asks_about_names_its_approval() {
    let profiles = r#""authorization_proof_profiles":[{"id":"p","method":"detached-signature","public_key":"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n","proof":{"value_from":{"command":"touch sourced; echo c2ln"}}}]"#;
    let task = manifest_with(&marker(r#""authorization_proof":{"ref":"p"}"#), profiles);
    let options = Options { allow_commands: true, ..Options::default() };
    for (effect, expected) in [("ask", Code::ApprovalRequired), ("deny", Code::AuthorizationDenied)] {
        let rule = format!(
            "  - id: sources\n    when: has(action.args.purpose) && action.args.purpose == \"value source\"\n    then: {effect}\n"
        );
        let world = World::new(Some(&format!("{ALLOW}{rule}")));
        let environment = Arc::new(Environment::new([("PATH", "/usr/bin:/bin")], world.work()));
        let keys = Arc::new(KeyCache::new(Arc::new(Client::new(&environment))));
        let proofs = Arc::new(ProofVerifier { environment, keys, clock: Arc::new(SystemClock) });
        let runner = Runner::new(Parts { proofs, ..world.parts() }).unwrap();
        let run = async || runner.exec(&task, None, "t", &options, &mut Cancel::never()).await;
        let refused = run().await.unwrap_err();
        assert_eq!(refused.failure.code, expected, "{refused:?}");
        assert_eq!(refused.approval.is_some(), effect == "ask", "{refused:?}");
        assert!(!world.work().join("sourced").exists() && !has_run(&world));
        if let Some(approval) = refused.approval {
            assert_eq!(
                refused.failure.message.matches(&approval.id.to_string()).count(),
                1,
                "as tasks name it"
            );
            world.approve(approval.id, true);
            // The source runs now; what it prints is no signature.
            assert_eq!(code(&run().await), Some(Code::AuthorizationProofFailed));
            assert!(world.work().join("sourced").exists() && !has_run(&world));
        }
    }
}

#[tokio::test]
async fn a_refused_approval_is_a_deny() {
    let world = World::new(Some(&ALLOW.replace("then: allow", "then: ask")));
    let runner = world.runner();
    let manifest = manifest(&marker(""));
    let asked = exec(&runner, &manifest, "t").await.unwrap_err();
    world.approve(asked.approval.unwrap().id, false);
    assert_eq!(code(&exec(&runner, &manifest, "t").await), Some(Code::AuthorizationDenied));
    assert!(!has_run(&world));
}

#[tokio::test]
async fn the_task_s_own_approval_tightens_policy_and_never_loosens_it() {
    let gate = r#""approval":{"policy":"manual","timeout_s":60}"#;
    let world = World::new(Some(ALLOW));
    let runner = world.runner();
    let task = manifest(&marker(gate));
    let asked = exec(&runner, &task, "t").await.unwrap_err();
    assert_eq!(asked.failure.code, Code::ApprovalRequired);
    world.approve(asked.approval.unwrap().id, true);
    assert!(exec(&runner, &task, "t").await.unwrap().is_ok);
    // Where policy does not mention the run, nobody is asked.
    let closed = World::new(Some("version: \"1\"\ndefault: deny\n"));
    assert_eq!(code(&exec(&closed.runner(), &task, "t").await), Some(Code::AuthorizationDenied));
    // An approver of another name may not decide.
    let scoped = manifest(&marker(r#""approval":{"policy":"manual","approver_scope":"bob"}"#));
    let asked = exec(&runner, &scoped, "t").await.unwrap_err().approval.unwrap();
    let engine = Arc::clone(&world.engine);
    let decided =
        std::thread::spawn(move || engine.decide_as("approver:ann", asked.id, true, "", &Json::object()));
    assert!(decided.join().unwrap().is_err());
    let rejected = manifest(&marker(r#""approval":{"policy":"auto-reject"}"#));
    assert_eq!(code(&exec(&runner, &rejected, "t").await), Some(Code::ApprovalAutoRejected));
    let free = manifest(&marker(r#""approval":{"policy":"auto-approve"}"#));
    assert!(exec(&runner, &free, "t").await.unwrap().is_ok);
}

/// Runner with parts of its own for a world.
type MakeRunner = Box<dyn Fn(&World) -> Runner>;

#[tokio::test]
async fn later_refusals_end_the_run_with_an_outcome_that_says_so() {
    let more = r#""identity_profiles":[{"id":"i","provider":"env-bearer","auth":{"mode":"service","provider_config":{"token_env":"T"}}}],
        "authorization_proof_profiles":[{"id":"p","method":"jwt","public_key":"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n","proof":{"value_from":{"env":"P"}}}],
        "authorization_profiles":[{"id":"a","provider":"none"}]"#;
    let task = |members: &str| manifest_with(&marker(members), more);
    let cases: [(&str, Code, MakeRunner); 3] = [
        (
            r#""authorization_proof":{"ref":"p"}"#,
            Code::AuthorizationProofFailed,
            Box::new(|world| {
                let proofs = Arc::new(FixedProof(Err(Code::AuthorizationProofFailed)));
                Runner::new(proctor_flow::run::Parts { proofs, ..world.parts() }).unwrap()
            }),
        ),
        (
            r#""identity":{"ref":"i"},"contract":{"required_trust_level":"autonomous","trust_enforcement":"strict"}"#,
            Code::TrustLevelInsufficient,
            Box::new(|world| {
                let identities =
                    Arc::new(Planted { trust: Some(TrustLevel::Supervised), ..Planted::default() });
                Runner::new(proctor_flow::run::Parts { identities, ..world.parts() }).unwrap()
            }),
        ),
        (
            r#""authorization":{"ref":"a"}"#,
            Code::AuthorizationDenied,
            Box::new(|world| {
                let authorizer = Arc::new(Fixed(Verdict::Deny));
                Runner::new(proctor_flow::run::Parts { authorizer, ..world.parts() }).unwrap()
            }),
        ),
    ];
    for (members, expected, runner) in cases {
        let world = World::new(Some(ALLOW));
        let result = exec(&runner(&world), &task(members), "t").await;
        assert_eq!(code(&result), Some(expected), "{result:?}");
        assert!(!has_run(&world), "{members}");
        assert_eq!(
            world.story("w/t"),
            ["session ", "decision allow", "outcome failed", "run ended"],
            "{members}"
        );
        assert_eq!(world.end("w/t").get("code"), Some(&Json::from(expected.word())));
    }
}

#[tokio::test]
async fn an_escalation_is_an_approval() {
    let world = World::new(Some(ALLOW));
    let authorizer = Arc::new(Fixed(Verdict::Escalate));
    let runner = Runner::new(proctor_flow::run::Parts { authorizer, ..world.parts() }).unwrap();
    let manifest = manifest_with(
        &marker(r#""authorization":{"ref":"a"}"#),
        r#""authorization_profiles":[{"id":"a","provider":"none"}]"#,
    );
    let asked = exec(&runner, &manifest, "t").await.unwrap_err();
    assert_eq!(asked.failure.code, Code::AuthorizationEscalationRequired);
    assert!(!has_run(&world));
    world.approve(asked.approval.unwrap().id, true);
    let done = exec(&runner, &manifest, "t").await.unwrap();
    assert!(done.is_ok && has_run(&world));
    assert_eq!(done.json.pointer("/authorization/escalation_approved"), Some(&Json::Bool(true)));
}

#[tokio::test]
async fn invalid_manifests_and_unknown_tasks_are_refused_without_a_record() {
    let world = World::new(Some(ALLOW));
    let runner = world.runner();
    let before = world.records().len();
    let invalid = Json::parse(br#"{"version":"0.2","workflows":[]}"#).unwrap();
    let refusal = exec(&runner, &invalid, "t").await.unwrap_err();
    assert_eq!(refusal.failure.code, Code::ValidationError);
    assert!(refusal.to_json().get("validation").is_some());
    assert_eq!(code(&exec(&runner, &manifest(&marker("")), "other").await), Some(Code::InvalidArgument));
    assert_eq!(world.records().len(), before);
}

#[tokio::test]
async fn a_preview_has_no_effects() {
    let world = World::new(Some(ALLOW));
    let before = world.records().len();
    let task = manifest_with(&marker(IDENTITY), PROFILE);
    let preview =
        proctor_flow::run::preview(&task, None, "t", &world.work(), &proctor_flow::run::Options::default())
            .unwrap();
    assert_eq!(preview.get("dry_run"), Some(&Json::Bool(true)));
    assert_eq!(preview.pointer("/declared_identity/provider"), Some(&Json::from("env-bearer")));
    assert_eq!(world.records().len(), before);
    assert!(!has_run(&world));
}

#[tokio::test]
async fn verify_command_and_input_are_decided_with_the_task() {
    let policy = format!(
        "{ALLOW}  - id: no-deletes\n    when: action.commands.exists(command, command.contains(\"rm -rf\"))\n    then: deny\n"
    );
    let world = World::new(Some(&policy));
    let runner = world.runner();
    let bad = manifest(&marker(r#""verify":{"shell":"rm -rf work"}"#));
    assert_eq!(code(&exec(&runner, &bad, "t").await), Some(Code::AuthorizationDenied));
    assert!(!has_run(&world));
    // A shell runs its input.
    let input = r#""shell":{"program":"sh","stdin":"touch ran; rm -rf work"}"#;
    let fed = manifest(&super::fixture::shell("t", "", "", input));
    assert_eq!(code(&exec(&runner, &fed, "t").await), Some(Code::AuthorizationDenied));
    assert!(!has_run(&world));
    let failing = manifest(&marker(r#""verify":{"shell":"test -e nothing"}"#));
    let result = exec(&runner, &failing, "t").await.unwrap();
    assert_eq!((result.is_ok, result.code), (false, Some(Code::VerifyFailed)));
    let warned = manifest(&marker(r#""verify":{"shell":"exit 3","on_failure":"warn"}"#));
    let result = exec(&runner, &warned, "t").await.unwrap();
    assert!(result.is_ok, "{}", result.json);
    assert_eq!(result.json.pointer("/verify/exit_code").and_then(Json::as_i64), Some(3));
    let slow = manifest(&marker(r#""verify":{"shell":"sleep 60","timeout_seconds":1}"#));
    let result = exec(&runner, &slow, "t").await.unwrap();
    assert_eq!(result.json.pointer("/verify/timed_out"), Some(&Json::Bool(true)));
    assert!(!result.is_ok);
}

/// Parts that count how often they are asked.
#[derive(Default)]
struct Counted {
    proofs: AtomicUsize,
    identities: AtomicUsize,
    authorizations: AtomicUsize,
}

impl Counted {
    fn counts(&self) -> [usize; 3] {
        [&self.proofs, &self.identities, &self.authorizations].map(|count| count.load(Ordering::SeqCst))
    }
}

impl Proofs for Counted {
    fn verify<'a>(&'a self, subject: Subject<'a>) -> BoxFuture<'a, Result<Json, Failure>> {
        self.proofs.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { FixedProof(Ok(())).verify(subject).await })
    }
}

impl Identities for Counted {
    fn resolve<'a>(&'a self, _: Subject<'a>) -> BoxFuture<'a, Result<Box<dyn ResolvedIdentity>, Failure>> {
        self.identities.fetch_add(1, Ordering::SeqCst);
        let own: Box<dyn ResolvedIdentity> =
            Box::new(Planted { secret: "planted-value".to_owned(), ..Planted::default() });
        Box::pin(async move { Ok(own) })
    }

    fn sweep(&self, _: &std::path::Path) {}
}

impl Authorizer for Counted {
    fn evaluate<'a>(
        &'a self,
        subject: Subject<'a>,
        identity: Option<&'a dyn ResolvedIdentity>,
        proof: &'a Json,
    ) -> BoxFuture<'a, Result<Authorized, Failure>> {
        self.authorizations.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Fixed(Verdict::Permit).evaluate(subject, identity, proof).await })
    }
}

#[tokio::test]
async fn nothing_is_verified_resolved_or_asked_before_the_policy_has_allowed_the_run() {
    let more = r#""identity_profiles":[{"id":"i","provider":"env-bearer","auth":{"mode":"service","provider_config":{"token_env":"T"}}}],
        "authorization_proof_profiles":[{"id":"p","method":"jwt","public_key":"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n","proof":{"value_from":{"env":"P"}}}],
        "authorization_profiles":[{"id":"a","provider":"none"}]"#;
    let members = r#""authorization_proof":{"ref":"p"},"identity":{"ref":"i"},"authorization":{"ref":"a"}"#;
    let task = manifest_with(&marker(members), more);
    let ask = ALLOW.replace("then: allow", "then: ask");
    let deny = ALLOW.replace("then: allow", "then: deny");
    for policy in [None, Some("version: \"1\"\ndefault: deny\n"), Some(&deny), Some(&ask)] {
        let world = World::new(policy);
        let counted = Arc::new(Counted::default());
        let parts = Parts {
            proofs: Arc::clone(&counted) as Arc<dyn Proofs>,
            identities: Arc::clone(&counted) as Arc<dyn Identities>,
            authorizer: Arc::clone(&counted) as Arc<dyn Authorizer>,
            ..world.parts()
        };
        let runner = Runner::new(parts).unwrap();
        let refused = exec(&runner, &task, "t").await;
        assert!(refused.is_err(), "{policy:?}");
        assert_eq!(counted.counts(), [0, 0, 0], "{policy:?}");
        assert!(!has_run(&world), "{policy:?}");
    }
    let world = World::new(Some(ALLOW));
    let counted = Arc::new(Counted::default());
    let parts = Parts {
        proofs: Arc::clone(&counted) as Arc<dyn Proofs>,
        identities: Arc::clone(&counted) as Arc<dyn Identities>,
        authorizer: Arc::clone(&counted) as Arc<dyn Authorizer>,
        ..world.parts()
    };
    assert!(exec(&Runner::new(parts).unwrap(), &task, "t").await.unwrap().is_ok);
    assert_eq!(counted.counts(), [1, 1, 1]);
}

#[tokio::test]
async fn a_failed_provider_lets_nothing_run_unless_its_errors_only_warn() {
    let profile = |on_error: &str| {
        format!(
            r#""authorization_profiles":[{{"id":"a","provider":"opa","provider_config":{{"endpoint":"http://127.0.0.1:1/"}}{on_error}}}]"#
        )
    };
    let task = |on_error: &str| manifest_with(&marker(r#""authorization":{"ref":"a"}"#), &profile(on_error));
    let world = World::new(Some(ALLOW));
    let nothing: [(&str, &str); 0] = [];
    let client = Client::new(&Environment::new(nothing, "/"));
    let authorizer = Arc::new(AuthorizationProviders { folder: world.work(), client });
    let runner = Runner::new(Parts { authorizer, ..world.parts() }).unwrap();
    for on_error in ["", r#","on_error":"deny""#] {
        assert_eq!(code(&exec(&runner, &task(on_error), "t").await), Some(Code::AuthorizationError));
        assert!(!has_run(&world));
    }
    let weakened = exec(&runner, &task(r#","on_error":"warn""#), "t").await.unwrap();
    assert!(weakened.is_ok && has_run(&world));
    assert!(world.records().iter().any(|(envelope, _)| envelope.code == "authorization_weakened"));
}
