//! A door in front of a real engine, with a workspace of its own.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proctor_clients::ahp::{ContextPerceptionDecision, MemoryRecallDecision};
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_ledger::{Ledger, Options};
use proctor_policy::policy::{Policy, Source};

use crate::{AhpDoor, AhpSettings};
use proctor_engine::state_dir::StateDir;
use proctor_engine::{Engine, Parts};
use proctor_system::{RealPaths, SystemClock, SystemRandomness};

/// Engine, door and temporary workspace of one test.
pub(crate) struct Fixture {
    /// Holds `work`, the workspace.
    pub folder: tempfile::TempDir,
    /// The door.
    pub door: AhpDoor,
}

impl Fixture {
    /// A door with this policy and these files in its workspace.
    pub(crate) fn new(policy: &str, files: &[(&str, &str)]) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        let state = StateDir::new(&folder.path().join(".proctor"));
        state.create(&SystemRandomness).unwrap();
        let options = Options::new(state.key().unwrap(), Arc::new(SystemClock), Arc::new(SystemRandomness));
        let parts = Parts {
            ledger: Ledger::open(state.path(), options).unwrap(),
            policy: Policy::compile(vec![Source::document("policy.yaml", policy)]).unwrap(),
            secret: state.secret().unwrap(),
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            resolver: Some(Box::new(RealPaths)),
            answer: Duration::from_secs(8),
        };
        let door = AhpDoor::new(
            Arc::new(Engine::start(parts).unwrap()),
            AhpSettings::new(folder.path().join("work")),
        );
        let fixture = Fixture { folder, door };
        for (path, text) in files {
            fixture.write(path, text);
        }
        fixture
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("work").join(path)
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Asks for context: intent, target and the rest of the payload as JSON.
    pub(crate) fn perceive(
        &self,
        intent: &str,
        target: &str,
        context: &str,
        constraints: &str,
    ) -> ContextPerceptionDecision {
        let text = format!(
            r#"{{"session_id":"s","intent":"{intent}","target":{target},"context":{context},"constraints":{constraints}}}"#
        );
        let asked = Json::parse(text.as_bytes()).unwrap().read().unwrap();
        self.door.perceive(&caller("agent:a"), "agent", "s", &asked)
    }

    /// Asks for memories.
    pub(crate) fn recall(
        &self,
        principal: &str,
        session: &str,
        query: &str,
        memory_type: &str,
        most: u64,
    ) -> MemoryRecallDecision {
        let asked = proctor_clients::ahp::MemoryRecallEvent {
            session_id: session.to_owned(),
            query: query.to_owned(),
            memory_type: memory_type.to_owned(),
            max_results: most,
            working_directory: String::new(),
        };
        self.door.recall(&caller(principal), "agent", session, &asked)
    }
}

/// A caller without team and organisation.
pub(crate) fn caller(principal: &str) -> Caller {
    Caller { principal: principal.to_owned(), ..Caller::default() }
}
