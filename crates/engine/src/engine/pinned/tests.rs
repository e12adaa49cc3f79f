use std::path::Path;
use std::time::Duration;

use proctor_ledger::keys::{Algorithm, SecretKey};
use proctor_ledger::{Ledger, Options};
use proctor_system::{SystemClock, SystemRandomness};

use super::*;
use crate::Parts;
use crate::approvers::PolicyStatement;
use crate::state_dir::StateDir;

const STRICT: &str = "version: \"1\"\ndefault: ask\nrules:\n  - { id: no-rm, when: 'action.command.contains(\"rm\")', then: deny }\n";
const WEAK: &str = "version: \"1\"\ndefault: ask\nrules: []\n";

fn compiled(text: &str) -> Policy {
    Policy::compile(sources(text)).unwrap()
}

fn sources(text: &str) -> Vec<Source> {
    vec![Source::document("policy.yaml", text)]
}

fn digest(text: &str) -> Digest {
    compiled(text).digest()
}

fn ann() -> SecretKey {
    SecretKey::from_seed("ann", Algorithm::Ed25519, &[1; 32]).unwrap()
}

/// A state directory, with `ann` as its approver.
fn guarded(folder: &Path) -> StateDir {
    let state = StateDir::new(&folder.join("state"));
    state.create(&SystemRandomness).unwrap();
    std::fs::write(state.approvers_file(), format!("approver {}\n", ann().verifier_key())).unwrap();
    state
}

fn started(state: &StateDir, text: &str) -> Engine {
    let options = Options::new(state.key().unwrap(), Arc::new(SystemClock), Arc::new(SystemRandomness));
    let parts = Parts {
        ledger: Ledger::open(state.path(), options).unwrap(),
        policy: compiled(text),
        secret: [7; 32],
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
        resolver: None,
        answer: Duration::from_secs(30),
    };
    let guard = PolicyGuard { approvers: Some(state.approvers_file()) };
    Engine::start_guarded(parts, guard).unwrap()
}

/// Codes of the records of a kind.
fn codes(engine: &Engine, kind: RecordKind) -> Vec<String> {
    let filter = Filter { kinds: vec![kind], ..Filter::default() };
    engine
        .ledger()
        .reader()
        .records(filter, Order::Ascending)
        .map(|record| record.unwrap().envelope.code)
        .collect()
}

fn accepting(engine: &Engine, to: &str) -> String {
    let last = pinned_policy(&engine.ledger().reader()).unwrap().unwrap();
    let ledger = engine.ledger().key().name().to_owned();
    let statement = PolicyStatement { ledger, after: last.sequence, from: last.digest, to: digest(to) };
    statement.sign(&ann()).unwrap()
}

fn keys(state: &StateDir, engine: &Engine) -> ApproverKeys {
    ApproverKeys::read(&state.approvers_file(), engine.ledger().key().name()).unwrap()
}

#[test]
fn a_weaker_policy_comes_into_force_only_when_an_approver_accepts_it() {
    let folder = tempfile::tempdir().unwrap();
    let state = guarded(folder.path());
    let engine = started(&state, STRICT);
    assert!(matches!(engine.reload(Ok(compiled(WEAK))), Reload::Weaker(changes) if changes.len() == 1));
    assert_eq!(engine.reload(Ok(compiled(WEAK))), Reload::Weaker(Vec::new()), "told before");
    assert_eq!(engine.policy().digest(), digest(STRICT));
    assert_eq!(engine.waiting_policy(), Some(digest(WEAK)));
    assert_eq!(codes(&engine, RecordKind::Alarm), [ALARM]);

    let keys = keys(&state, &engine);
    let signed = accepting(&engine, WEAK);
    let eve = SecretKey::from_seed("ann", Algorithm::Ed25519, &[2; 32]).unwrap();
    let last = pinned_policy(&engine.ledger().reader()).unwrap().unwrap();
    let ledger = engine.ledger().key().name().to_owned();
    let statement = PolicyStatement { ledger, after: last.sequence, from: last.digest, to: digest(WEAK) };
    let forged = engine.accept_policy(&statement.sign(&eve).unwrap(), sources(WEAK), &keys);
    assert_eq!(forged, Err(AcceptRefusal::Credential(CredentialError::UnknownSigner)));
    let other = engine.accept_policy(&signed, sources("version: \"1\"\ndefault: allow\n"), &keys);
    assert!(matches!(other, Err(AcceptRefusal::Other { .. })), "{other:?}");
    assert_eq!(engine.policy().digest(), digest(STRICT));

    let (approver, sequence) = engine.accept_policy(&signed, sources(WEAK), &keys).unwrap();
    assert_eq!((approver.as_str(), engine.policy().digest()), ("ann", digest(WEAK)));
    let record = engine.ledger().reader().envelope(sequence).unwrap();
    assert_eq!((record.code.as_str(), &*record.principal), ("loaded_accepted", "approver:ann"));
    assert_eq!(engine.waiting_policy(), None);

    // Made stricter again, the old statement is worth nothing.
    assert_eq!(engine.reload(Ok(compiled(STRICT))), Reload::Loaded);
    assert_eq!(engine.accept_policy(&signed, sources(WEAK), &keys), Err(AcceptRefusal::Outdated));
    assert_eq!(engine.policy().digest(), digest(STRICT));
}

#[test]
fn a_restart_runs_the_policy_on_record_until_a_weaker_one_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let state = guarded(folder.path());
    started(&state, STRICT).finish();
    for _ in 0..3 {
        let engine = started(&state, WEAK);
        assert_eq!(engine.policy().digest(), digest(STRICT));
        assert_eq!(engine.policy().rule_count(), 1, "the sources are those on record");
        assert_eq!(codes(&engine, RecordKind::Alarm), [ALARM], "one alarm for each policy");
        engine.finish();
    }
    let engine = started(&state, WEAK);
    engine.accept_policy(&accepting(&engine, WEAK), sources(WEAK), &keys(&state, &engine)).unwrap();
    engine.finish();
    drop(engine);
    let engine = started(&state, WEAK);
    assert_eq!((engine.policy().digest(), engine.waiting_policy()), (digest(WEAK), None));
    assert_eq!(codes(&engine, RecordKind::Policy), ["loaded", "loaded_accepted"]);
}

#[test]
fn a_policy_that_was_away_for_a_while_is_still_the_one_to_compare_with() {
    let folder = tempfile::tempdir().unwrap();
    let state = guarded(folder.path());
    started(&state, STRICT).finish();
    let options = Options::new(state.key().unwrap(), Arc::new(SystemClock), Arc::new(SystemRandomness));
    let parts = Parts {
        ledger: Ledger::open(state.path(), options).unwrap(),
        policy: Policy::closed(),
        secret: [7; 32],
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
        resolver: None,
        answer: Duration::from_secs(30),
    };
    let guard = PolicyGuard { approvers: Some(state.approvers_file()) };
    let closed = Engine::start_guarded(parts, guard).unwrap();
    assert_eq!(closed.policy().digest(), Policy::closed().digest());
    drop(closed);
    let engine = started(&state, WEAK);
    assert_eq!(engine.policy().digest(), digest(STRICT));
}

#[test]
fn an_approver_is_not_forgotten_when_the_file_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let state = guarded(folder.path());
    started(&state, STRICT).finish();
    std::fs::remove_file(state.approvers_file()).unwrap();
    let engine = started(&state, WEAK);
    assert_eq!(engine.policy().digest(), digest(STRICT));
}

#[test]
fn erasing_the_record_of_a_policy_does_not_make_way_for_a_weaker_one() {
    let folder = tempfile::tempdir().unwrap();
    let state = guarded(folder.path());
    let engine = started(&state, STRICT);
    let last = pinned_policy(&engine.ledger().reader()).unwrap().unwrap();
    engine.erase(last.sequence, "agent", "no reason").unwrap();
    engine.finish();
    drop(engine);
    let engine = started(&state, WEAK);
    assert_eq!(engine.policy().digest(), Policy::closed().digest());
}

#[test]
fn without_an_approver_a_weaker_policy_is_loaded_with_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let state = guarded(folder.path());
    std::fs::remove_file(state.approvers_file()).unwrap();
    let engine = started(&state, STRICT);
    assert_eq!(engine.reload(Ok(compiled(WEAK))), Reload::Loaded);
    assert_eq!(engine.policy().digest(), digest(WEAK));
    assert_eq!(codes(&engine, RecordKind::Alarm), [ALARM]);
    engine.finish();
    drop(engine);
    let weaker = "version: \"1\"\ndefault: allow\n";
    let engine = started(&state, weaker);
    assert_eq!(engine.policy().digest(), digest(weaker));
    assert_eq!(codes(&engine, RecordKind::Alarm), [ALARM, ALARM]);
}

#[test]
fn a_stricter_policy_is_loaded_at_once_and_without_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    let state = guarded(folder.path());
    let engine = started(&state, WEAK);
    assert_eq!(engine.reload(Ok(compiled(STRICT))), Reload::Loaded);
    assert_eq!(engine.policy().digest(), digest(STRICT));
    assert_eq!(codes(&engine, RecordKind::Alarm), Vec::<String>::new());
}

#[test]
fn alarms_about_weaker_policies_do_not_flood_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let state = guarded(folder.path());
    let engine = started(&state, STRICT);
    for number in 0..200 {
        let text = format!("{WEAK}# {number}\n");
        assert!(matches!(engine.reload(Ok(compiled(&text))), Reload::Weaker(_)));
        assert_eq!(engine.waiting_policy(), Some(digest(&text)));
    }
    assert_eq!(codes(&engine, RecordKind::Alarm).len(), MAX_ALARMS as usize);
}
