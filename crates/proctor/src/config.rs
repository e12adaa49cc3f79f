//! `proctor.toml`: found upward from the working directory, every key overridable by flag and by `PROCTOR_…`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

/// What the file may say. Unknown keys are refused.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    state: Option<PathBuf>,
    policy: Option<PathBuf>,
    durability: Option<Durability>,
    agent: Option<String>,
    team: Option<String>,
    org: Option<String>,
    trusted: Option<PathBuf>,
    #[serde(default)]
    gate: GateTable,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GateTable {
    answer_ms: Option<u64>,
}

/// When an answer may go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum, Default)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Once the operating system has the record: the process may die.
    #[default]
    Process,
    /// Once the disk has it: the machine may die.
    Power,
}

/// The settings in force.
#[derive(Debug, Clone)]
pub struct Config {
    /// The state directory.
    pub state: PathBuf,
    /// The policy: a file or a folder.
    pub policy: Option<PathBuf>,
    /// When an answer may go out.
    pub durability: Durability,
    /// The configured name of the agent that this user runs.
    pub agent: String,
    /// Its team.
    pub team: String,
    /// Its organisation.
    pub org: String,
    /// File of trusted keys.
    pub trusted: Option<PathBuf>,
    /// How long an answer may take before it is deny.
    pub answer: Duration,
    /// The file that was read.
    pub file: Option<PathBuf>,
}

/// What flags and variables say; clap reads both.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--state`
    pub state: Option<PathBuf>,
    /// `--policy`
    pub policy: Option<PathBuf>,
    /// `--durability`
    pub durability: Option<Durability>,
    /// `--agent`
    pub agent: Option<String>,
    /// `--team`
    pub team: Option<String>,
    /// `--org`
    pub org: Option<String>,
    /// `--trust`
    pub trusted: Option<PathBuf>,
    /// `--answer-ms`
    pub answer_ms: Option<u64>,
}

impl Config {
    /// Settings for a command that runs in `directory`.
    pub fn load(directory: &Path, overrides: &Overrides) -> Result<Config, String> {
        let found =
            directory.ancestors().map(|folder| folder.join("proctor.toml")).find(|file| file.is_file());
        let (file, base) = match &found {
            Some(path) => (read(path)?, path.parent().unwrap_or(directory).to_owned()),
            None => (File::default(), directory.to_owned()),
        };
        // Paths in the file start from the file, paths in flags from the working directory.
        let place = |flag: &Option<PathBuf>, key: &Option<PathBuf>| {
            flag.as_ref()
                .map(|path| directory.join(path))
                .or_else(|| key.as_ref().map(|path| base.join(path)))
        };
        let text = |flag: &Option<String>, key: &Option<String>| {
            flag.clone().or_else(|| key.clone()).unwrap_or_default()
        };
        let state = place(&overrides.state, &file.state);
        Ok(Config {
            state: state.unwrap_or_else(|| base.join(".proctor")),
            policy: place(&overrides.policy, &file.policy),
            durability: overrides.durability.or(file.durability).unwrap_or_default(),
            agent: text(&overrides.agent, &file.agent),
            team: text(&overrides.team, &file.team),
            org: text(&overrides.org, &file.org),
            trusted: place(&overrides.trusted, &file.trusted),
            answer: Duration::from_millis(overrides.answer_ms.or(file.gate.answer_ms).unwrap_or(8000)),
            file: found,
        })
    }
}

fn read(path: &Path) -> Result<File, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{line}:{column}: {}", path.display(), error.message())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_beat_the_file_and_paths_start_where_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(
            folder.path().join("proctor.toml"),
            "state = \"st\"\nagent = \"x\"\n[gate]\nanswer_ms = 5\n",
        )
        .unwrap();
        let config = Config::load(
            &inner,
            &Overrides { agent: Some("y".into()), policy: Some("p.yaml".into()), ..Overrides::default() },
        )
        .unwrap();
        assert_eq!(config.state, folder.path().join("st"));
        assert_eq!(config.policy, Some(inner.join("p.yaml")));
        assert_eq!(config.agent, "y");
        assert_eq!(config.answer, Duration::from_millis(5));
    }

    #[test]
    fn mistakes_have_a_place() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("proctor.toml"), "agent = \"x\"\npolcy = \"p\"\n").unwrap();
        let error = Config::load(folder.path(), &Overrides::default()).unwrap_err();
        assert!(error.contains("proctor.toml:2:1: unknown field `polcy`"), "{error}");
    }
}
