//! Homes and caches that cannot be used.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use serde_json::json;

use crate::support::attest::{Engine, Place, contains, trace};
use crate::support::binary;

/// Asserts that assertions are judged without the cache, and that only history is refused.
fn assert_serves_without_history(mut engine: Engine, name: &str) {
    engine.initialize();
    engine.assert_well(name);
    let dynamic =
        json!({"target": "output.message", "check": "contains", "value": "hello", "threshold": "dynamic"});
    let found = engine.verdict(&trace("t"), crate::support::attest::content("d", &dynamic));
    assert_eq!(found["status"], "pass", "{name}: {found}");
    let plugin = engine.verdict(&trace("t"), crate::support::attest::assertion("p", "plugin", &json!({})));
    assert_eq!(plugin["status"], "soft_fail");
    let submit = json!({"trace_id": "t", "assertion_id": "p", "result": {"status": "pass", "score": 1}});
    assert_eq!(engine.result("submit_plugin_result", &submit)["accepted"], true, "{name}");
    let (code, said) = engine.refusal("query_drift", &json!({"assertion_id": "a"}));
    assert_eq!(code, 3001, "{name}: {said}");
    engine.assert_well(name);
    let (code, said) = engine.close();
    assert_eq!(code, 0, "{name}: {said}");
    assert!(said.contains("WARN"), "{name}: {said}");
}

fn command_at(place: &Place, cache: &Path) -> std::process::Command {
    let mut command = place.command(&["--log-level=warn"]);
    command.env("ATTEST_CACHE_DIR", cache);
    command
}

#[test]
fn no_place_for_a_cache() {
    let place = Place::new();
    std::fs::write(place.path("file"), "not a folder").unwrap();
    for cache in [place.path("file"), place.path("file/below"), "/proc/none/cache".into(), "/dev/null".into()]
    {
        assert_serves_without_history(
            Engine::spawn(command_at(&place, &cache)),
            &cache.display().to_string(),
        );
    }
    let mut homeless = place.command(&["--log-level=warn"]);
    homeless.env_remove("ATTEST_CACHE_DIR").env_remove("HOME");
    assert_serves_without_history(Engine::spawn(homeless), "no home");
    let mut unwritable = place.command(&["--log-level=warn"]);
    unwritable.env_remove("ATTEST_CACHE_DIR").env("HOME", "/proc/none");
    assert_serves_without_history(Engine::spawn(unwritable), "a home that cannot be written");
}

#[test]
fn a_folder_that_may_only_be_read() {
    let allow = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for with_file in [false, true] {
        let place = Place::new();
        std::fs::create_dir(place.cache()).unwrap();
        if with_file {
            place.ready(&[]).assert_well("the first");
            allow(&place.database(), 0o444);
        }
        allow(&place.cache(), 0o555);
        let mut command = command_at(&place, &place.cache());
        if rustix::process::getuid().is_root() {
            // The administrator may write everywhere, so somebody else starts the program, from where they can reach it.
            let program = place.path("attest-engine");
            std::fs::remove_file(&program).unwrap();
            if std::fs::hard_link(binary(), &program).is_err() {
                std::fs::copy(binary(), &program).unwrap();
            }
            allow(place.dir.path(), 0o755);
            command.uid(65534).gid(65534);
        }
        assert_serves_without_history(Engine::spawn(command), "a read-only cache");
        allow(&place.cache(), 0o755);
    }
}

#[test]
fn a_database_that_is_none() {
    let mut torn = b"SQLite format 3\0".to_vec();
    torn.resize(4096, 0xff);
    for (name, bytes) in
        [("garbage", b"this is not a database, and it never was one ".repeat(1_000)), ("a torn header", torn)]
    {
        let place = Place::new();
        std::fs::create_dir(place.cache()).unwrap();
        std::fs::write(place.database(), &bytes).unwrap();
        assert_serves_without_history(Engine::spawn(command_at(&place, &place.cache())), name);
        assert_eq!(std::fs::read(place.database()).unwrap(), bytes, "{name}: it is left as it was");
    }
    // A database of somebody else, and a folder of that name.
    let place = Place::new();
    std::fs::create_dir(place.cache()).unwrap();
    let connection = rusqlite::Connection::open(place.database()).unwrap();
    connection
        .execute_batch("CREATE TABLE assertion_history (a INTEGER); CREATE TABLE embeddings (b)")
        .unwrap();
    drop(connection);
    assert_serves_without_history(Engine::spawn(command_at(&place, &place.cache())), "other tables");
    let place = Place::new();
    std::fs::create_dir_all(place.database()).unwrap();
    assert_serves_without_history(Engine::spawn(command_at(&place, &place.cache())), "a folder");
}

/// The official command line deletes the file while engines run.
#[test]
fn the_database_is_deleted_meanwhile() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    engine.assert_well("the start");
    assert!(place.run(&["cache", "clear"]).status.success());
    for index in 0..20 {
        engine.verdict(&trace(&format!("after{index}")), contains("a", "hello"));
    }
    let report = engine.result("query_drift", &json!({"assertion_id": "a"}));
    assert_eq!(report["report"]["count"], 20, "{report}");
    assert_eq!(engine.close().0, 0);
    assert!(place.rows().len() >= 20);
}

/// A file that another process holds: requests are answered, and the rows are written once it is free.
#[test]
fn the_database_is_locked_meanwhile() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    engine.assert_well("the start");
    // Reading history waits until the first row is there.
    engine.result("query_drift", &json!({"assertion_id": "well"}));
    let connection = rusqlite::Connection::open(place.database()).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    for index in 0..50 {
        engine.verdict(&trace(&format!("t{index}")), contains("a", "hello"));
    }
    connection.execute_batch("ROLLBACK").unwrap();
    drop(connection);
    assert_eq!(engine.close().0, 0);
    assert_eq!(place.rows().len(), 51);
}
