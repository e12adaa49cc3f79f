//! Isolation of a suite run: the report on it, and the files of a suite that no agent may read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proctor_core::json::Json;
use proctor_sandbox::{Mode, Protection, Protections, Sandbox, Standing};

use crate::agent::{Agent, AgentSpec};
use crate::suite::{FileSource, TestCase};

/// Files of one folder above which the whole folder is hidden: each hidden path costs every start of a program some microseconds.
const CROWD: usize = 64;

/// Entries of a folder that are hidden one by one because the agent's own files are among them.
const MAX_ENTRIES: usize = 4096;

/// Tests that are named in the report because they open the network; their number is always told.
const MAX_NAMED: usize = 100;

/// Report on what isolated the agent, and the programs of setup, teardown and checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// The side of the sandbox that the agent was on.
    pub agent: AgentSide,
    /// Strength of the sandbox.
    pub mode: Mode,
    /// Protections of the programs that were started; empty if there were none.
    pub protections: Protections,
    /// Ids of tests that allow the network of this machine.
    pub open_network: Vec<String>,
}

/// Side of the sandbox that an agent is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentSide {
    /// A program that Proctor starts, in the sandbox.
    Inside,
    /// An endpoint that somebody else runs: nothing of the sandbox applies to it.
    Outside,
    /// `nop` and `reference`, which start no program.
    BuiltIn,
}

impl Isolation {
    /// The report on a suite run. `has_listener` says whether agents reach a tools endpoint.
    pub fn of<'t>(
        sandbox: &Sandbox,
        agent: &Agent,
        tests: impl IntoIterator<Item = &'t TestCase>,
        has_listener: bool,
    ) -> Isolation {
        let agent = match agent.spec {
            AgentSpec::Process(_) => AgentSide::Inside,
            AgentSpec::Remote(_) => AgentSide::Outside,
            AgentSpec::Nop | AgentSpec::Reference => AgentSide::BuiltIn,
        };
        let protections =
            if has_listener { sandbox.protections_with_listener() } else { sandbox.protections().clone() };
        let open = tests.into_iter().filter(|test| test.network && agent == AgentSide::Inside);
        let open_network = open.map(|test| test.id.clone()).collect();
        Isolation { agent, mode: sandbox.mode(), protections, open_network }
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Json {
        let protections = self.protections.iter().map(|(protection, standing)| {
            let json = Json::object().with("name", protection.to_string());
            match standing {
                Standing::Held { by } => json.with(
                    "held_by",
                    by.iter().map(|holder| Json::from(holder.to_string())).collect::<Vec<_>>(),
                ),
                Standing::Waived => json.with("waived", true),
                Standing::Missing { reason } => json.with("missing", reason.as_str()),
            }
        });
        let named = self.open_network.iter().take(MAX_NAMED).map(|id| Json::from(id.as_str()));
        let mut json = Json::object()
            .with("agent", self.agent.word())
            .with("sandbox", mode_word(self.mode))
            .with("protections", protections.collect::<Vec<_>>());
        if !self.open_network.is_empty() {
            json.push("network_allowed_tests", self.open_network.len());
            json.push("network_allowed", named.collect::<Vec<_>>());
        }
        json
    }

    /// The report as lines for people.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.agent == AgentSide::Outside {
            lines.push(
                "isolation: none for the agent: Proctor does not start it, so it runs outside of the sandbox"
                    .to_owned(),
            );
        }
        if self.protections.is_empty() {
            if self.agent != AgentSide::Outside {
                lines.push("isolation: no program was started".to_owned());
            }
            return lines;
        }
        let what = match self.agent {
            AgentSide::Inside => "",
            AgentSide::Outside | AgentSide::BuiltIn => " of setup, teardown and checks",
        };
        lines.push(format!("isolation{what}, sandbox {}:", mode_word(self.mode)));
        for (protection, standing) in self.protections.iter() {
            lines.push(format!("  {protection}: {standing}"));
            if protection == Protection::Network && !self.open_network.is_empty() {
                let tests = if self.open_network.len() == 1 { "test allows" } else { "tests allow" };
                lines.push(format!("    {} {tests} the network of this machine", self.open_network.len()));
            }
        }
        lines
    }
}

impl AgentSide {
    /// The word for a side in reports.
    pub fn word(self) -> &'static str {
        match self {
            AgentSide::Inside => "inside the sandbox",
            AgentSide::Outside => "outside of the sandbox",
            AgentSide::BuiltIn => "built in",
        }
    }
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto => "auto",
        Mode::Require => "require",
        Mode::Off => "off",
    }
}

/// Files of `files` and `reference` on disk, which would tell an agent what it is checked against. Files that the agent itself needs
/// (`kept`) stay readable; a folder with very many files is given as a whole.
pub fn check_files<'t>(
    tests: impl IntoIterator<Item = &'t TestCase>,
    locate: &dyn Fn(&str) -> PathBuf,
    kept: &[PathBuf],
) -> Vec<PathBuf> {
    let mut written: BTreeSet<&str> = BTreeSet::new();
    for test in tests {
        for item in test.files.iter().chain(&test.reference) {
            if let FileSource::Path(path) = &item.source {
                written.insert(path);
            }
        }
    }
    let mut paths = BTreeSet::new();
    for path in written {
        add_around(&locate(path), kept, &mut paths);
    }
    let mut folders: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for path in paths {
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        folders.entry(folder).or_default().push(path);
    }
    let mut hidden = Vec::new();
    for (folder, files) in folders {
        if files.len() > CROWD && !leads_to(&folder, kept) {
            hidden.push(folder);
        } else {
            hidden.extend(files);
        }
    }
    hidden
}

/// Whether a folder is, or contains, one of the paths.
fn leads_to(folder: &Path, kept: &[PathBuf]) -> bool {
    kept.iter().any(|path| path.starts_with(folder))
}

/// Adds a path, or the entries of a folder that contains a kept path.
fn add_around(path: &Path, kept: &[PathBuf], hidden: &mut BTreeSet<PathBuf>) {
    if !leads_to(path, kept) {
        hidden.insert(path.to_owned());
        return;
    }
    let Ok(entries) = std::fs::read_dir(path) else { return };
    for entry in entries.flatten().take(MAX_ENTRIES) {
        // A link's target has a path of its own.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            add_around(&entry.path(), kept, hidden);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentSide, CROWD, Isolation, check_files};
    use crate::agent::{Agent, AgentSpec, Surroundings, resolve};
    use crate::suite::{LoadOptions, Suite, load};
    use proctor_sandbox::{Features, Mode, Sandbox};
    use std::path::{Path, PathBuf};

    fn suite(tests: &str) -> Suite {
        let source = format!("test_suite: demo\ntests:\n{tests}");
        load(source.as_bytes(), &LoadOptions::new(&|_| None, &|_| None)).unwrap().suite
    }

    fn test(id: &str, rest: &str) -> String {
        format!(
            "  - {{id: {id}, name: A, task: {{description: x}}, assertions: [{{type: no_errors}}]{rest}}}\n"
        )
    }

    fn agent(text: &str) -> Agent {
        let around =
            Surroundings { directory: Path::new("/work"), is_file: &|_| false, is_program: &|_| true };
        resolve(text, &[], &around).unwrap()
    }

    #[test]
    fn agents_that_are_not_started_here_are_reported_as_outside() {
        let base = std::env::temp_dir();
        let sandbox = Sandbox::deferred(Mode::Auto, Features::all(), &base);
        let suite = suite(&test("a", ", network: true"));
        let report = Isolation::of(&sandbox, &agent("http://127.0.0.1:1/"), &suite.tests, false);
        assert_eq!(report.agent, AgentSide::Outside);
        assert_eq!(report.lines().len(), 1);
        assert!(report.lines()[0].contains("outside of the sandbox"), "{:?}", report.lines());
        assert_eq!(
            report.to_json().to_string(),
            r#"{"agent":"outside of the sandbox","sandbox":"auto","protections":[]}"#
        );
        let built_in = Agent { name: "nop".to_owned(), spec: AgentSpec::Nop, timeout: None };
        let report = Isolation::of(&sandbox, &built_in, &suite.tests, false);
        assert_eq!(report.lines(), ["isolation: no program was started"]);
    }

    #[test]
    fn every_protection_is_named_with_its_holder_or_its_reason() {
        let base = std::env::temp_dir();
        let sandbox = Sandbox::deferred(Mode::Off, Features::all(), &base);
        let suite = suite(&(test("a", ", network: true") + &test("b", "")));
        let report = Isolation::of(&sandbox, &agent("stdio:true"), &suite.tests, false);
        let lines = report.lines();
        assert_eq!(lines[0], "isolation, sandbox off:");
        assert_eq!(lines[1], "  writes confined: missing: the sandbox is off");
        assert!(lines.contains(&"    1 test allows the network of this machine".to_owned()), "{lines:?}");
        let json = report.to_json().to_string();
        assert!(json.contains(r#"{"name":"writes confined","missing":"the sandbox is off"}"#), "{json}");
        assert!(json.contains(r#""network_allowed":["a"]"#), "{json}");
    }

    #[test]
    fn check_files_are_hidden_around_the_agents_own_files() {
        let item = |path: &str| format!(", files: [{{path: x, source: {path}}}]");
        let mut tests: String =
            (0..=CROWD).map(|at| test(&format!("c{at}"), &item(&format!("many/{at}")))).collect();
        tests += &test("own", ", reference: [{path: y, source: solution.txt}, {path: z, content: inline}]");
        let suite = suite(&tests);
        let locate = |written: &str| Path::new("/suite").join(written);
        let hidden = check_files(&suite.tests, &locate, &[]);
        assert_eq!(hidden, [PathBuf::from("/suite/solution.txt"), PathBuf::from("/suite/many")]);
        // The folder of the agent itself stays readable; its files are hidden one by one.
        let kept = [PathBuf::from("/suite/many/agent.py")];
        assert_eq!(check_files(&suite.tests, &locate, &kept).len(), CROWD + 2);
    }
}
