//! The stand-in of openclaw-scheduler, started through a script that sets its switches.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_core::json::Json;
use proctor_flow::scheduler::{Client, Invocation};
use tempfile::TempDir;

/// A scheduler of a test's own, with its database and its log of calls.
pub(crate) struct StandIn {
    folder: TempDir,
    script: PathBuf,
}

impl StandIn {
    /// A scheduler with these switches.
    pub(crate) fn new(switches: &[(&str, &str)]) -> StandIn {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("openclaw-scheduler");
        let stand_in = StandIn { folder, script };
        stand_in.set(switches);
        stand_in
    }

    /// Replaces the switches.
    pub(crate) fn set(&self, switches: &[(&str, &str)]) {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/openclaw_scheduler.py");
        let mut text = format!("#!/bin/sh\nexport STAND_IN_LOG='{}'\n", self.log_path().display());
        for (name, value) in switches {
            text.push_str(&format!("export {name}='{value}'\n"));
        }
        text.push_str(&format!("exec python3 -B '{}' \"$@\"\n", program.display()));
        std::fs::write(&self.script, text).unwrap();
        std::fs::set_permissions(&self.script, std::fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// A client that starts it.
    pub(crate) fn client(&self) -> Client {
        let client = Client::new(&Invocation {
            prefix: None,
            bin: Some(self.script.display().to_string()),
            db_path: Some(self.database().display().to_string()),
        });
        client.unwrap().with_time(Duration::from_secs(20))
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("scheduler.db")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("calls")
    }

    /// Arguments of all calls so far.
    pub(crate) fn calls(&self) -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(self.log_path()).unwrap_or_default();
        text.lines()
            .map(|line| {
                let line = Json::parse(line.as_bytes()).unwrap();
                line.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
            })
            .collect()
    }

    /// Calls by their commands: `capabilities`, `jobs list`, `jobs add`, ….
    pub(crate) fn commands(&self) -> Vec<String> {
        self.calls().iter().map(|call| call.iter().take(2).cloned().collect::<Vec<_>>().join(" ")).collect()
    }
}
