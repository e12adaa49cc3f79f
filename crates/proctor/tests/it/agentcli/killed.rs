//! Runs whose program is killed: credentials go at the next start, processes with the program, and nothing counts as a success.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use proctor_core::json::Json;

use super::place::{ALLOW, Place, at, echo, manifest};
use crate::ahp_serve::server::{ANY_PORT, Server, until};
use crate::support::binary;

const SECRET: &str = "tok-4f1c2a9d77e05b36";

/// Variable of the task's processes, by which they are found.
fn mark(place: &Place) -> String {
    format!("RUN_MARK={}", place.root().display())
}

/// A task with a presented file that starts another process, says so, and waits.
fn waiting(place: &Place, contract: &str) -> String {
    let script = "test -s \"$TOKEN_FILE\" || exit 9; sleep 1000 & echo $TOKEN; touch started; while ! test -e go; do sleep 0.02; done; echo done";
    manifest(
        &format!(
            r#""shell":{{"program":"/bin/sh","args":["-c",{}],"env":{{"RUN_MARK":{}}}}},"identity":{{"ref":"p"}}{contract}"#,
            Json::from(script),
            Json::from(place.root().to_str().unwrap())
        ),
        r#""identity_profiles":[{"id":"p","provider":"env-bearer","auth":{"mode":"service","provider_config":{"token_env":"PLANTED"}},"presentation":{"cleanup":"always","bindings":[{"source":"credentials.access_token.value","target":{"kind":"env","name":"TOKEN"}},{"source":"credentials.access_token.value","target":{"kind":"file","name":"token","expose_as":"TOKEN_FILE"}}]}}],"#,
    )
}

/// Starts the task, and returns when it waits.
fn start(place: &mut Place, contract: &str) -> Child {
    place.set("PLANTED", SECRET);
    place.write("m.json", &waiting(place, contract));
    let mut command = place.command(&place.path("agentcli"), &["exec", "m.json", "a"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the task runs", || {
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut said).unwrap();
            std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said).unwrap();
            panic!("{status}: {said}");
        }
        place.path("started").exists().then_some(())
    });
    child
}

/// Processes of the task, by their environment.
fn processes(place: &Place) -> Vec<u32> {
    let mark = mark(place);
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        })
        .collect()
}

/// Files that were presented and are still there.
fn presented(place: &Place) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(runs) = std::fs::read_dir(place.path("state/flow/presented")) else { return found };
    for run in runs.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        found.extend(std::fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path()));
    }
    found
}

/// The state after a kill: whole, and without a run that succeeded.
fn check_records(place: &Place, ends: usize) {
    let fsck = place.proctor(&["audit", "fsck"]);
    assert!(fsck.status.success(), "{}", String::from_utf8_lossy(&fsck.stdout));
    let audit = place.good(&["audit", "--limit", "100"]);
    let records: Vec<Json> = at(&audit, "/records").as_array().unwrap().to_vec();
    let of_task: Vec<&Json> =
        records.iter().filter(|record| at(record, "/workflow_id").as_str() == Some("w")).collect();
    assert_eq!(of_task.len(), ends, "{audit}");
    assert!(of_task.iter().all(|record| at(record, "/ok") == &Json::Bool(false)), "{audit}");
}

/// Another task of another workflow: the next start.
fn next_start(place: &Place) {
    place.write("next.json", &echo("next").replace(r#""id":"w""#, r#""id":"next""#));
    place.good(&["exec", "next.json", "a"]);
}

#[test]
fn a_killed_run_leaves_neither_credentials_nor_processes_nor_a_success() {
    for contract in ["", r#","contract":{"sandbox":"permissive"}"#] {
        let mut place = Place::with_policy(ALLOW);
        let mut child = start(&mut place, contract);
        let files = presented(&place);
        assert_eq!(files.len(), 1, "{files:?}");
        assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), SECRET);
        assert!(processes(&place).len() >= 2, "the task and its child");

        child.kill().unwrap();
        child.wait().unwrap();
        until("every process of the task ends", || processes(&place).is_empty().then_some(()));
        assert!(!place.path("go").exists());
        if contract.is_empty() {
            // Any command is a start.
            place.good(&["version"]);
            assert!(presented(&place).is_empty());
        }
        next_start(&place);
        assert!(presented(&place).is_empty(), "{contract}");
        assert_eq!(
            std::fs::read_dir(place.path("state/flow/presented")).unwrap().filter(is_folder).count(),
            0
        );
        check_records(&place, 0);
        let tail = place.proctor(&["audit", "tail", "--json", "-n", "1000"]);
        let text = String::from_utf8(tail.stdout).unwrap();
        assert!(text.contains("job:w/a") && !text.contains(SECRET), "{text}");
        // The task can be run again.
        std::fs::write(place.path("go"), "").unwrap();
        place.good(&["exec", "m.json", "a"]);
    }
}

fn is_folder(entry: &std::io::Result<std::fs::DirEntry>) -> bool {
    entry.as_ref().unwrap().path().is_dir()
}

#[test]
fn a_run_that_is_stopped_by_a_signal_cleans_up_itself_and_is_recorded_as_failed() {
    let mut place = Place::with_policy(ALLOW);
    let mut child = start(&mut place, "");
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = until("the program ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(1));
    assert!(processes(&place).is_empty());
    assert!(presented(&place).is_empty());
    check_records(&place, 1);
}

#[test]
fn a_run_whose_owner_is_killed_is_not_reported_as_a_success_that_is_not_on_record() {
    let mut place = Place::with_policy(ALLOW);
    let owner = Server::spawn(place.command(&binary(), &ANY_PORT));
    let mut child = start(&mut place, "");
    let _ = owner.end(rustix::process::Signal::KILL);
    place.write("go", "");
    let status = until("the program ends", || child.try_wait().unwrap());
    assert!(processes(&place).is_empty() && presented(&place).is_empty());
    let audit = place.good(&["audit"]);
    let is_recorded = audit.pointer("/records/0/ok") == Some(&Json::Bool(true));
    assert_eq!(status.success(), is_recorded, "{audit}");
    assert!(place.proctor(&["audit", "fsck"]).status.success());
    assert!(Path::new(&place.path("state")).exists());
}
