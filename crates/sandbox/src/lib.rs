//! Child processes with a workspace, limits and isolation, on Linux.
//!
//! A [`Sandbox`] finds out once what the kernel grants, by trying it, and reports for each [`Protection`] what holds it. A [`Workspace`]
//! is the folder tree of a run. A [`Spec`] describes a process; [`Sandbox::spawn`] starts it under a small supervisor of its own, which is
//! PID 1 of the run's PID namespace where there is one. The supervisor reaps, samples memory and process count, keeps the wall time, and
//! ends everything the run started when it is told to, or when the calling process ends, be it by SIGKILL.
//!
//! ```
//! use proctor_sandbox::{Features, Mode, Network, Sandbox, Spec, Status, Workspace};
//! use std::io::Read as _;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let base = tempfile::tempdir()?;
//! let sandbox = Sandbox::new(Mode::Auto, Features::all(), base.path())?;
//! let workspace = Workspace::create(base.path())?;
//!
//! let spec = Spec::new("/bin/sh", workspace.workspace())
//!     .arguments(["-c", "echo made > result; echo done"])
//!     .environment("PATH", "/usr/bin:/bin")
//!     .environment("HOME", workspace.home())
//!     .environment("TMPDIR", workspace.tmp())
//!     .writable(workspace.root())
//!     .network(Network::None);
//! let mut process = sandbox.spawn(spec)?;
//!
//! let mut output = String::new();
//! std::fs::File::from(process.stdout.take().unwrap()).read_to_string(&mut output)?;
//! process.wait(Duration::from_secs(10))?;
//! let exit = process.terminate(Duration::from_secs(2))?;
//! assert_eq!(exit.status, Status::Exited(0));
//! assert_eq!(output, "done\n");
//!
//! let snapshot = workspace.snapshot()?;
//! assert_eq!(std::fs::read_to_string(snapshot.path().join("result"))?, "made\n");
//! # Ok(())
//! # }
//! ```
//!
//! What it does not do: memory of pipes and socket buffers is not counted; a Unix socket that a foreign program opens
//! *after* a process was started, or in another network namespace, is not masked; where Landlock holds the hidden paths, folders that contain one cannot be listed.

#![cfg(target_os = "linux")]

mod error;
mod features;
mod keeper;
mod landlock;
mod limits;
mod mechanisms;
mod network;
mod plan;
mod probe;
mod process;
mod protections;
mod sandbox;
mod seccomp;
mod spec;
mod sys;
#[cfg(feature = "tokio")]
pub mod wait;
mod workspace;

pub use error::{Error, Missing, ProgramProblem, Step};
pub use features::{Feature, Features, UnknownFeature};
pub use limits::{Limit, Limits};
pub use network::Loopback;
pub use process::{Exit, Process, Status};
pub use protections::{Holder, Protection, Protections, Standing};
pub use sandbox::{Mode, Sandbox};
pub use spec::{ENVIRONMENT, Network, PRIVATE_HOME_PATHS, Spec, Stream, homes, private_paths};
pub use sys::account::account_name;
pub use workspace::{CopyLimits, LeftOut, Snapshot, Workspace, WorkspaceError, read_left_file, sweep};
