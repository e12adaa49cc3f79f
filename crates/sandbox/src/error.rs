//! Failures of starting and ending processes.

use crate::protections::Protection;
use std::io;
use std::path::PathBuf;

/// Failure of a sandbox operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is neither a path of a file that can be executed nor found in `PATH`.
    #[error("`{program}` {problem}")]
    ProgramNotFound {
        /// Program as the specification names it.
        program: String,
        /// Reason why it cannot be executed.
        problem: ProgramProblem,
    },
    /// A text of the specification has a zero byte or exceeds a bound.
    #[error("{what} cannot be passed to a process: {reason}")]
    InvalidSpec {
        /// Part of the specification.
        what: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A path of the specification cannot be used.
    #[error("{what} `{path}` cannot be used: {source}")]
    Path {
        /// Role of the path.
        what: &'static str,
        /// Path as given.
        path: PathBuf,
        /// Reason of the operating system.
        source: io::Error,
    },
    /// Protections are missing, and the mode demands all of them.
    #[error("protections that are required are missing: {0}; use mode `auto` to run without them")]
    Missing(Missing),
    /// A step between creation of the process and start of the program failed.
    #[error("the process could not be started: {step}: {source}")]
    Setup {
        /// Step that failed.
        step: Step,
        /// Reason of the operating system.
        source: io::Error,
    },
    /// The process's supervisor ended without a word.
    #[error("the supervisor of the process was killed before the program started")]
    SupervisorLost,
    /// A system call of the calling process failed.
    #[error("{what} failed: {source}")]
    System {
        /// Operation.
        what: &'static str,
        /// Reason of the operating system.
        source: io::Error,
    },
}

/// Reason why a program cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramProblem {
    /// No folder of `PATH` has it.
    #[error("is no executable program; give a path, or a name that the process's `PATH` leads to")]
    NotInPath,
    /// Nothing is at its path.
    #[error("does not exist")]
    Missing,
    /// Its path is not that of a regular file.
    #[error("is a folder or another special file, and no program")]
    NoFile,
    /// No execute bit is set.
    #[error("is not executable: run `chmod +x` on it, or name its interpreter before it")]
    NotExecutable,
    /// The kernel does not know its format.
    #[error(
        "has no `#!` line, and is no program of this system: name its interpreter before it, or begin it with a line like `#!/bin/sh`"
    )]
    NoInterpreterLine,
    /// The interpreter of its first line is not there.
    #[error("cannot be started: the interpreter of its `#!` line, `{0}`, does not exist")]
    NoInterpreter(String),
    /// Its first line ends in a carriage return, which belongs to the interpreter's name then.
    #[error(
        "cannot be started: its lines end as on Windows (CR LF), so that its interpreter would be `{0}\\r`; write it with LF line ends"
    )]
    WindowsLineEnds(String),
}

/// Protections that nothing holds, with the reason for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(pub Vec<(Protection, String)>);

impl std::fmt::Display for Missing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (protection, reason)) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { "; " };
            write!(formatter, "{separator}{protection} ({reason})")?;
        }
        Ok(())
    }
}

/// Step of setting up a process, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Step {
    /// Entering the kept user and network namespace.
    EnterNetwork = 1,
    /// Creating the supervisor with its namespaces.
    Clone,
    /// Closing inherited descriptors.
    Descriptors,
    /// Mapping the user into the user namespace.
    UserMap,
    /// Building the mount namespace.
    Mounts,
    /// Masking hidden paths.
    Masks,
    /// Opening writable folders.
    Writable,
    /// Filling the set of Landlock rules.
    LandlockRules,
    /// Creating the program's process.
    Fork,
    /// Connecting the standard streams.
    Streams,
    /// Entering the working directory.
    Directory,
    /// Setting resource limits.
    ResourceLimits,
    /// Giving up the ways to new privileges.
    Privileges,
    /// Applying the Landlock rules.
    Landlock,
    /// Dropping capabilities.
    Capabilities,
    /// Installing the system call filter.
    Filter,
    /// Executing the program.
    Execute,
}

impl Step {
    const ALL: [Self; 17] = [
        Self::EnterNetwork,
        Self::Clone,
        Self::Descriptors,
        Self::UserMap,
        Self::Mounts,
        Self::Masks,
        Self::Writable,
        Self::LandlockRules,
        Self::Fork,
        Self::Streams,
        Self::Directory,
        Self::ResourceLimits,
        Self::Privileges,
        Self::Landlock,
        Self::Capabilities,
        Self::Filter,
        Self::Execute,
    ];

    pub(crate) fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as i32 == number)
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::EnterNetwork => "entering the network namespace",
            Self::Clone => "creating the namespaces",
            Self::Descriptors => "closing descriptors",
            Self::UserMap => "mapping the user",
            Self::Mounts => "making the file system read-only",
            Self::Masks => "masking hidden paths",
            Self::Writable => "opening writable folders",
            Self::LandlockRules => "filling the Landlock ruleset",
            Self::Fork => "creating the process",
            Self::Streams => "connecting the standard streams",
            Self::Directory => "entering the working directory",
            Self::ResourceLimits => "setting resource limits",
            Self::Privileges => "giving up privileges",
            Self::Landlock => "applying the Landlock ruleset",
            Self::Capabilities => "dropping capabilities",
            Self::Filter => "installing the system call filter",
            Self::Execute => "executing the program",
        })
    }
}
