use proctor_ledger::{Ledger, Options};
use proctor_policy::policy::Source;
use proctor_system::{SystemClock, SystemRandomness};

use super::*;
use crate::Parts;
use crate::state_dir::StateDir;

fn engine(folder: &Path, document: &str) -> Engine {
    let state = StateDir::new(&folder.join("state"));
    state.create(&SystemRandomness).unwrap();
    let options = Options::new(state.key().unwrap(), Arc::new(SystemClock), Arc::new(SystemRandomness));
    Engine::start(Parts {
        ledger: Ledger::open(state.path(), options).unwrap(),
        policy: Policy::compile(vec![Source::document("policy.yaml", document)]).unwrap(),
        secret: [7; 32],
        clock: Arc::new(SystemClock),
        randomness: Arc::new(SystemRandomness),
        resolver: None,
        answer: Duration::from_secs(30),
    })
    .unwrap()
}

/// Of two reloads the one that read the files last stores last: what was replaced does not come back.
#[test]
fn a_reload_reads_the_files_only_when_no_other_reload_is_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let engine = engine(folder.path(), "default: ask\n");
    std::fs::write(&path, "default: allow\n").unwrap();
    let other = engine.begin_reload();
    std::thread::scope(|scope| {
        let (started, waits) = std::sync::mpsc::sync_channel(1);
        let (engine, path) = (&engine, &path);
        scope.spawn(move || {
            started.send(()).unwrap();
            look_again(path, engine);
        });
        waits.recv().unwrap();
        // The first reload is not over: the second has read nothing yet, so it finds what is written now.
        std::fs::write(path, "default: deny\n").unwrap();
        drop(other);
    });
    let wanted = sources_digest(&policy_files::read_sources(&path).unwrap());
    assert_eq!(engine.policy().digest(), wanted);
}

#[test]
fn a_change_that_keeps_length_and_modification_time_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let engine = engine(folder.path(), "default: ask\n");
    std::fs::write(&path, "default: deny\n").unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let times = std::fs::FileTimes::new().set_modified(file.metadata().unwrap().modified().unwrap());
    let before = look(&path, &engine);
    // The clock of the file system has a step; the change is written until it falls into another one.
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while look(&path, &engine) == before {
        assert!(std::time::Instant::now() < deadline, "the change is not seen");
        std::fs::write(&path, "default: ask \n").unwrap();
        file.set_times(times).unwrap();
    }
    let after = look(&path, &engine);
    assert_eq!(before[0].1, after[0].1, "the length is the same");
    assert_eq!(before[0].3[..2], after[0].3[..2], "the modification time is the same");
}
