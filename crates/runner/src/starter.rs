//! Files of a first suite: tests, and an agent that passes them.

use std::io::Write as _;
use std::path::{Path, PathBuf};

const SUITE: &str = r#"# A first suite. Run it:  proctor test suite.yaml
test_suite: first-steps
defaults: {timeout_seconds: 30}

# The agent under test. `--agent` names another one.
agents:
  - {name: mine, type: cli, config: {command: python3 agent.py}}

tests:
  - id: answers
    name: Answers the task
    task:
      description: Say hello to Ada
      expected_artifacts: [answer.txt]
    # What `--agent reference` writes: a test that it does not pass cannot be passed.
    reference: [{path: answer.txt, content: "Hello Ada\n"}]
    assertions:
      - {type: file_contains, config: {path: answer.txt, pattern: Ada}, critical: true}
  - id: behaves
    name: Needs few steps and reports no errors
    task: {description: Say hello to Grace}
    reference: [{path: answer.txt, content: "Hello Grace\n"}]
    constraints: {max_steps: 5}
    assertions:
      - {type: file_exists, config: {path: answer.txt}}
      - {type: no_errors}
"#;

const AGENT: &str = include_str!("../../../examples/agents/minimal.py");

/// Name of the agent's file, here and in the suite; in the repository it has another.
const AGENT_FILE: &str = "agent.py";

fn agent() -> String {
    AGENT.replace("minimal.py", AGENT_FILE)
}

/// Error of writing a first suite.
#[derive(Debug, thiserror::Error)]
pub enum StarterError {
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A file is there already; it is left as it is.
    #[error("{} is there already; give another folder", .0.display())]
    Exists(PathBuf),
}

/// Writes a suite and its agent into a folder, which is made if it is not there. Returns the files; nothing is overwritten.
pub fn write(folder: &Path) -> Result<Vec<PathBuf>, StarterError> {
    let failed = |path: &Path, source| StarterError::Io { path: path.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    let files = [("suite.yaml", SUITE.to_owned()), (AGENT_FILE, agent())];
    let files = files.map(|(name, text)| (folder.join(name), text));
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(StarterError::Exists(path.clone()));
    }
    for (path, text) in &files {
        let file = std::fs::File::create_new(path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|source| failed(path, source))?;
    }
    Ok(files.map(|(path, _)| path).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{LoadOptions, load};

    #[test]
    fn the_suite_loads_without_a_warning() {
        let loaded = load(SUITE.as_bytes(), &LoadOptions::new(&|_| None, &|_| None)).unwrap();
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        assert_eq!(loaded.suite.tests.len(), 2);
        assert!(agent().contains("python3 agent.py") && !agent().contains("minimal.py"));
    }
}
