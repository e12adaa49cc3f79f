//! Surroundings of the program: its folders, the working directory, and the variables it reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Folders, variables and names that the binary hands to the door: libraries do not read the process environment.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The working directory.
    pub working_dir: PathBuf,
    /// Folder of the program's own files (`AGENTCLI_HOME`, else `~/.agentcli`).
    pub home: PathBuf,
    /// Home folder of the user, for `~`.
    pub user_home: Option<PathBuf>,
    /// State directory of the ledger that runs are recorded in.
    pub state: PathBuf,
    /// Environment variables of the process.
    pub variables: BTreeMap<String, String>,
    /// `user@host`: the principal of a task without an identity.
    pub user_at_host: String,
}

impl Surroundings {
    /// A variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Folder of registered manifests.
    pub fn manifests(&self) -> PathBuf {
        self.home.join("manifests")
    }

    /// A path as the user wrote it: `~` expanded, relative ones from the working directory.
    pub fn path(&self, written: &str) -> PathBuf {
        match (written.strip_prefix("~/"), &self.user_home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ if written == "~" => self.user_home.clone().unwrap_or_else(|| self.working_dir.clone()),
            _ => self.working_dir.join(written),
        }
    }
}
