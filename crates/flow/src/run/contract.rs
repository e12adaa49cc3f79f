//! Contract of a task: working directory, confinement of its processes, and what of it this machine can enforce.
//!
//! | Declared | Effect |
//! |---|---|
//! | `allowed_paths` | files change only below these paths; the task's `cwd` lies below one of them |
//! | `sandbox: strict` | files change only below `allowed_paths`, or below the working directory if there are none; other processes and Proctor's own state are out of reach |
//! | `sandbox: permissive` | the same as far as it can be enforced; what cannot is a warning |
//! | `network: none`, `restricted` | nothing outside of the run is reached; processes of the run reach each other over a loopback interface of their own. A manifest names no hosts, so `restricted` admits none |
//!
//! A contract that cannot be enforced refuses the run, unless `sandbox` is `permissive`.

use std::path::{Path, PathBuf};

use proctor_core::json::Json;
use proctor_sandbox::{Feature, Features, Mode, Network, Protection, Sandbox, Spec};
use proctor_wire::agentcli::error::{Code, Failure};

use super::read::{member, shell, text, texts};

/// Strictness that a contract asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Only what other members of the contract ask for.
    Declared,
    /// As much as can be enforced.
    Permissive,
    /// Everything.
    Strict,
}

/// Confinement of a task's processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Confinement {
    level: Level,
    /// Folders below which files may change; `None`: everywhere.
    writable: Option<Vec<PathBuf>>,
    is_network_closed: bool,
    /// Working directory.
    pub(super) directory: PathBuf,
}

/// Ways of starting processes, tried out at most once each.
#[derive(Debug, Clone)]
pub(super) struct Sandboxes {
    /// Ends everything a run started, and confines nothing.
    free: Sandbox,
    /// Uses every protection.
    confined: Sandbox,
    /// Confines the network, and leaves files alone.
    offline: Sandbox,
}

impl Sandboxes {
    pub(super) fn new(scratch: &Path, features: Features) -> Sandboxes {
        let offline = features.without(Feature::MountNamespace).without(Feature::Landlock);
        Sandboxes {
            free: Sandbox::deferred(Mode::Off, features, scratch),
            confined: Sandbox::deferred(Mode::Auto, features, scratch),
            offline: Sandbox::deferred(Mode::Auto, offline, scratch),
        }
    }
}

impl Confinement {
    /// Reads the contract of a task. Relative paths start from `base`, the folder that the run was asked for in.
    pub(super) fn read(task: &Json, contract: &Json, base: &Path) -> Result<Confinement, Failure> {
        let declared = shell(task).and_then(|shell| text(shell, "cwd"));
        let directory = resolve(base, declared.unwrap_or("."), "the working directory")?;
        if !directory.is_dir() {
            let shown = declared.unwrap_or_default();
            return Err(invalid(format!("the working directory `{shown}` is no folder")));
        }
        let listed = texts(contract, "allowed_paths");
        let allowed: Vec<PathBuf> =
            listed.iter().map(|path| resolve(base, path, "the allowed path")).collect::<Result<_, _>>()?;
        let has_allowed = member(contract, "allowed_paths").is_some();
        if has_allowed && declared.is_some() && !allowed.iter().any(|path| directory.starts_with(path)) {
            let message = format!(
                "the working directory `{}` is outside of `allowed_paths`",
                declared.unwrap_or_default()
            );
            return Err(Failure::new(Code::SandboxPathEscape, message));
        }
        let level = match text(contract, "sandbox") {
            Some("strict") => Level::Strict,
            Some("permissive") => Level::Permissive,
            _ => Level::Declared,
        };
        let writable = match (has_allowed, level) {
            (true, _) => Some(allowed),
            (false, Level::Declared) => None,
            (false, _) => Some(vec![directory.clone()]),
        };
        let is_everywhere = |folders: &Vec<PathBuf>| folders.iter().any(|folder| folder.parent().is_none());
        if level != Level::Declared && writable.as_ref().is_some_and(is_everywhere) {
            let message =
                "`allowed_paths` names the root of the file system, where a sandbox confines nothing";
            return Err(Failure::new(Code::SandboxPathEscape, message));
        }
        // Below the root is everywhere.
        let writable = writable.filter(|folders| !folders.iter().any(|folder| folder.parent().is_none()));
        let is_network_closed = matches!(text(contract, "network"), Some("none" | "restricted"));
        Ok(Confinement { level, writable, is_network_closed, directory })
    }

    /// Folders of `allowed_paths`, resolved, or the working directory in their place.
    pub(super) fn allowed(&self) -> Option<&[PathBuf]> {
        self.writable.as_deref()
    }

    /// Picks the sandbox. Returns it with what it does not hold; a gap in what the contract demands refuses the run.
    pub(super) fn enforce(
        &self,
        sandboxes: &Sandboxes,
        state: &Path,
    ) -> Result<(Sandbox, Vec<String>), Failure> {
        // A writable folder stays reachable inside a hidden one, and the state directory is hidden from tasks.
        let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
        if self.writable.iter().flatten().any(|folder| folder.starts_with(&state)) {
            let message = "`allowed_paths` names Proctor's state directory, which no task may reach";
            return Err(Failure::new(Code::SandboxPathEscape, message));
        }
        let sandbox = match (&self.writable, self.level, self.is_network_closed) {
            (None, Level::Declared, false) => return Ok((sandboxes.free.clone(), Vec::new())),
            (None, _, _) => &sandboxes.offline,
            (Some(_), _, _) => &sandboxes.confined,
        };
        sandbox.try_out().map_err(|error| {
            Failure::new(Code::SandboxUnavailable, format!("there is no sandbox: {error}"))
        })?;
        let protections = sandbox.protections_with(&self.network());
        let demanded = self.demanded();
        let missing: Vec<String> = protections
            .missing()
            .filter(|(protection, _)| demanded.contains(protection))
            .map(|(protection, reason)| format!("{protection} ({reason})"))
            .collect();
        if missing.is_empty() || self.level == Level::Permissive {
            let warning = |gap: &String| format!("the sandbox is permissive and does not hold: {gap}");
            return Ok((sandbox.clone(), missing.iter().map(warning).collect()));
        }
        let message = format!("the contract cannot be enforced here: {}", missing.join("; "));
        Err(Failure::new(Code::SandboxEnforcementUnavailable, message))
    }

    /// Confinement of a task that an agent carries out, outside of any sandbox of ours. Returns a warning if it is permissive.
    pub(super) fn outside(&self) -> Result<Option<String>, Failure> {
        let message = "an agent carries the task out, and cannot be confined from here";
        match self.level {
            Level::Declared if self.writable.is_none() && !self.is_network_closed => Ok(None),
            Level::Permissive => Ok(Some(message.to_owned())),
            Level::Declared | Level::Strict => {
                Err(Failure::new(Code::SandboxEnforcementUnavailable, message))
            }
        }
    }

    fn demanded(&self) -> Vec<Protection> {
        let mut demanded = vec![Protection::EndWithRun];
        if self.writable.is_some() {
            demanded.push(Protection::Writes);
        }
        if self.is_network_closed {
            demanded.push(Protection::Network);
        }
        if self.level != Level::Declared {
            demanded.extend([Protection::OtherProcesses, Protection::EndWithCaller]);
            demanded.extend(self.writable.is_some().then_some(Protection::HiddenPaths));
        }
        demanded
    }

    fn network(&self) -> Network {
        if self.is_network_closed { Network::None } else { Network::Host }
    }

    /// Applies the confinement to a process. `presented` is the folder of its credentials, inside the hidden state directory.
    pub(super) fn apply(&self, spec: Spec, state: &Path, presented: Option<&Path>) -> Spec {
        let mut spec = spec.network(self.network());
        for folder in self.writable.iter().flatten() {
            spec = spec.writable(folder);
        }
        if self.writable.is_none() {
            return spec;
        }
        // Only a writable folder stays reachable inside a hidden one.
        if let Some(folder) = presented {
            spec = spec.writable(folder);
        }
        spec.hidden([state])
    }
}

fn resolve(base: &Path, path: &str, what: &str) -> Result<PathBuf, Failure> {
    base.join(path).canonicalize().map_err(|error| {
        invalid(format!("{what} `{path}` cannot be used: {}", proctor_system::describe(&error)))
    })
}

fn invalid(message: String) -> Failure {
    Failure::new(Code::SandboxPathInvalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(base: &Path, task: &str, contract: &str) -> Result<Confinement, Failure> {
        let parse = |text: &str| Json::parse(text.as_bytes()).unwrap();
        Confinement::read(&parse(task), &parse(contract), base)
    }

    fn task(cwd: &str) -> String {
        format!(r#"{{"target":{{"session_target":"shell"}},"shell":{{"program":"x","cwd":"{cwd}"}}}}"#)
    }

    #[test]
    fn working_directories_outside_of_allowed_paths_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in ["in/deep", "out"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(base.join("out"), base.join("in/link")).unwrap();
        let code =
            |cwd: &str| read(&base, &task(cwd), r#"{"allowed_paths":["in"]}"#).err().map(|error| error.code);
        assert_eq!(code("in/deep"), None);
        assert_eq!(code("in"), None);
        for outside in ["out", ".", "in/../out", "in/link", "/"] {
            assert_eq!(code(outside), Some(Code::SandboxPathEscape), "{outside}");
        }
        assert_eq!(code("nowhere"), Some(Code::SandboxPathInvalid));
        let gone = read(&base, &task("in"), r#"{"allowed_paths":["gone"]}"#).unwrap_err();
        assert_eq!(gone.code, Code::SandboxPathInvalid);
        assert!(read(&base, &task("out"), "{}").is_ok());
    }

    #[test]
    fn the_state_directory_and_the_root_are_no_allowed_paths_of_a_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("state/flow")).unwrap();
        let sandboxes = Sandboxes::new(folder.path(), Features::all());
        for allowed in ["state", "state/flow"] {
            let contract = format!(r#"{{"sandbox":"strict","allowed_paths":["{allowed}"]}}"#);
            let confinement = read(&base, &task(allowed), &contract).unwrap();
            let refused = confinement.enforce(&sandboxes, &base.join("state")).map(drop).unwrap_err();
            assert_eq!(refused.code, Code::SandboxPathEscape, "{allowed}");
        }
        let everywhere = read(&base, &task("."), r#"{"sandbox":"strict","allowed_paths":["/"]}"#);
        assert_eq!(everywhere.map(drop).unwrap_err().code, Code::SandboxPathEscape);
        assert!(read(&base, &task("."), r#"{"allowed_paths":["/"]}"#).is_ok());
    }

    #[test]
    fn what_cannot_be_enforced_refuses_the_run_unless_permissive() {
        let folder = tempfile::tempdir().unwrap();
        let sandboxes = Sandboxes::new(folder.path(), Features::none());
        let code = |contract: &str| {
            let confinement = read(folder.path(), &task("."), contract).unwrap();
            confinement.enforce(&sandboxes, Path::new("/nowhere")).map_err(|error| error.code)
        };
        let unavailable = Code::SandboxEnforcementUnavailable;
        for contract in [
            r#"{"sandbox":"strict"}"#,
            r#"{"network":"none"}"#,
            r#"{"network":"restricted","sandbox":"none"}"#,
            r#"{"allowed_paths":["."]}"#,
        ] {
            assert_eq!(code(contract).unwrap_err(), unavailable, "{contract}");
        }
        let (_, gaps) = code(r#"{"sandbox":"permissive","network":"none"}"#).unwrap();
        assert!(gaps.iter().any(|gap| gap.contains("writes confined")), "{gaps:?}");
        assert!(gaps.iter().any(|gap| gap.contains("network closed")), "{gaps:?}");
        assert!(code("{}").unwrap().1.is_empty());
        assert!(code(r#"{"sandbox":"none","network":"unrestricted"}"#).unwrap().1.is_empty());
    }
}
