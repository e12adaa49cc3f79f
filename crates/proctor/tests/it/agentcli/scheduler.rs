//! `apply`, `plan` and `inspect` on the stand-in of openclaw-scheduler, through the program and through RPC.

mod applied;
mod inspected;
pub mod proofs;
mod refused;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use proctor_core::json::Json;

use super::place::{ALLOW, Place, at};

/// Secret in the trace of a stand-in that was told to crash.
pub const TRACED: &str = "sk-proj-Abcdefghijklmnopqrstuvwxyz0123456789ABCD";

/// A child that is declared before its parent, and the parent; `workflow` are members of the workflow, each with its comma.
pub fn two_tasks(version: &str, workflow: &str) -> String {
    format!(
        r#"{{"version":"{version}","workflows":[{{"id":"w","name":"W",{workflow}"tasks":[{{"id":"report","name":"Report","target":{{"session_target":"shell"}},"shell":{{"program":"echo","args":["report"]}},"trigger":{{"parent":"collect","on":"success"}}}},{{"id":"collect","name":"Collect","target":{{"session_target":"shell"}},"shell":{{"program":"echo","args":["collect"]}},"schedule":{{"cron":"0 9 * * *"}}}}]}}]}}"#
    )
}

/// A place whose scheduler is the stand-in; the environment names it.
pub fn place(switches: &[(&str, &str)]) -> Place {
    let mut place = Place::with_policy(ALLOW);
    switch(&place, switches);
    let text = |name: &str| place.path(name).display().to_string();
    let (program, database) = (text("openclaw-scheduler"), text("scheduler.db"));
    place.set("AGENTCLI_SCHEDULER_BIN", &program);
    place.set("AGENTCLI_SCHEDULER_DB", &database);
    place
}

/// Replaces the switches of the stand-in.
pub fn switch(place: &Place, switches: &[(&str, &str)]) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../flow/tests/it/openclaw_scheduler.py");
    let mut text = format!("#!/bin/sh\nexport STAND_IN_LOG='{}'\n", place.path("calls").display());
    for (name, value) in switches {
        text.push_str(&format!("export {name}='{value}'\n"));
    }
    text.push_str(&format!("exec python3 -B '{}' \"$@\"\n", program.display()));
    place.write("openclaw-scheduler", &text);
    let script = place.path("openclaw-scheduler");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o700)).unwrap();
}

/// Commands that the stand-in was called with so far.
pub fn calls(place: &Place) -> Vec<String> {
    let text = std::fs::read_to_string(place.path("calls")).unwrap_or_default();
    text.lines()
        .map(|line| {
            let words = Json::parse(line.as_bytes()).unwrap();
            let words: Vec<&str> =
                words.as_array().unwrap().iter().take(2).map(|word| word.as_str().unwrap()).collect();
            words.join(" ")
        })
        .collect()
}

/// Kinds and names of an apply's actions.
pub fn actions(result: &Json) -> Vec<String> {
    let text = |item: &Json, name: &str| at(item, name).as_str().unwrap().to_owned();
    at(result, "/actions")
        .as_array()
        .unwrap()
        .iter()
        .map(|item| format!("{} {}", text(item, "/action"), text(item, "/name")))
        .collect()
}
