//! Report on protections, from the features in use and the attempts that succeeded.

use super::Attempt;
use crate::features::Feature;
use crate::mechanisms::Mechanisms;
use crate::protections::{Protection, Protections, Standing};

/// Report of a sandbox that is switched off. The supervisor still ends runs, but nothing keeps a run from killing it.
pub(crate) fn off() -> Protections {
    Protections::new(|_| Standing::Missing { reason: "the sandbox is off".to_owned() })
}

/// Report of a sandbox in which the given attempts succeeded.
pub(super) fn protections(mechanisms: &Mechanisms, possible: i32) -> Protections {
    Protections::new(|protection| standing(protection, mechanisms, possible))
}

fn standing(protection: Protection, mechanisms: &Mechanisms, possible: i32) -> Standing {
    let candidates = candidates(protection, mechanisms);
    let breach = attempts(protection).iter().find(|(attempt, _)| possible & attempt.bit() != 0);
    if possible & Attempt::WriteInside.bit() == 0 {
        return Standing::Missing { reason: "the trial could not write to its own workspace".to_owned() };
    }
    let by: Vec<Feature> = candidates.iter().copied().filter(|feature| mechanisms.has(*feature)).collect();
    let reason = match breach {
        Some((_, text)) => format!("{text} was possible"),
        None if !is_enough(protection, mechanisms) => insufficient(protection).to_owned(),
        None => return Standing::Held { by },
    };
    let why = mechanisms.why_absent(&candidates);
    Standing::Missing { reason: if why.is_empty() { reason } else { format!("{reason}: {why}") } }
}

/// Features that hold a protection, strongest first.
fn candidates(protection: Protection, mechanisms: &Mechanisms) -> Vec<Feature> {
    use Feature::{
        IpcNamespace, Landlock, MountNamespace, NetworkNamespace, PidMax, PidNamespace, ResourceLimits,
        Seccomp, Supervisor, UserNamespace,
    };
    match protection {
        Protection::Writes => vec![MountNamespace, Landlock, Seccomp, IpcNamespace],
        Protection::HiddenPaths if mechanisms.has(MountNamespace) => vec![MountNamespace],
        Protection::HiddenPaths => vec![MountNamespace, Landlock, Seccomp],
        Protection::OtherProcesses => vec![PidNamespace, UserNamespace, Landlock, Seccomp],
        Protection::Network => vec![NetworkNamespace, MountNamespace, Seccomp, Landlock],
        Protection::Memory => vec![ResourceLimits, Supervisor, Seccomp],
        // The kernel counts a user's processes apart only in a user namespace, and never binds user 0.
        Protection::Processes if crate::sys::process::user_id() != 0 && mechanisms.has(UserNamespace) => {
            vec![PidMax, ResourceLimits, Supervisor]
        }
        Protection::Processes => vec![PidMax, Supervisor],
        Protection::FileSize | Protection::Descriptors => vec![ResourceLimits],
        Protection::EndWithRun | Protection::EndWithCaller if mechanisms.has(PidNamespace) => {
            vec![PidNamespace]
        }
        Protection::EndWithRun | Protection::EndWithCaller => vec![PidNamespace, Supervisor, Landlock],
    }
}

/// Whether the features in use hold a protection that the trial cannot test by a single attempt.
fn is_enough(protection: Protection, mechanisms: &Mechanisms) -> bool {
    match protection {
        // Resource limits bound one process; only the supervisor adds them up.
        Protection::Memory => mechanisms.has(Feature::Supervisor),
        Protection::Processes => {
            let has_count = crate::sys::process::user_id() != 0
                && mechanisms.has(Feature::UserNamespace)
                && mechanisms.has(Feature::ResourceLimits);
            mechanisms.has(Feature::PidMax) || mechanisms.has(Feature::Supervisor) || has_count
        }
        _ => true,
    }
}

fn insufficient(protection: Protection) -> &'static str {
    match protection {
        Protection::Memory => "nothing adds up the memory of several processes",
        _ => "nothing counts the processes of a run",
    }
}

/// Attempts that break a protection, as texts for a reason.
fn attempts(protection: Protection) -> &'static [(Attempt, &'static str)] {
    match protection {
        Protection::Writes => &[
            (Attempt::Write, "writing outside of the workspace"),
            (Attempt::Metadata, "changing mode, owner, times or attributes outside of the workspace"),
            (Attempt::Pipe, "writing to a named pipe of another process"),
            (Attempt::Link, "linking a foreign file into the workspace"),
            (Attempt::SharedMemory, "attaching shared memory of another process"),
        ],
        Protection::HiddenPaths => &[
            (Attempt::ReadHidden, "reading a hidden file"),
            (Attempt::HiddenSocket, "connecting to a socket in a hidden folder"),
        ],
        Protection::Network => &[
            (Attempt::Tcp, "connecting to a TCP port"),
            (Attempt::Udp, "sending a datagram"),
            (Attempt::UnixPath, "connecting to a Unix socket"),
            (Attempt::UnixElsewhere, "connecting to a Unix socket whose name does not tell its path"),
            (Attempt::UnixAbstract, "connecting to an abstract Unix socket"),
            (Attempt::Vsock, "opening a socket to the hypervisor"),
        ],
        Protection::OtherProcesses => &[
            (Attempt::ReadProcess, "reading the environment of another process"),
            (Attempt::Signal, "sending a signal to another process"),
            (Attempt::Keyring, "using the keyring of the session"),
        ],
        Protection::Memory => &[
            (Attempt::Memory, "mapping more memory than allowed"),
            (Attempt::UnmappedMemory, "holding memory that no process maps"),
        ],
        Protection::Processes => &[],
        Protection::FileSize => &[(Attempt::FileSize, "writing a file beyond its limit")],
        Protection::Descriptors => &[(Attempt::Descriptors, "opening more descriptors than allowed")],
        Protection::EndWithRun | Protection::EndWithCaller => {
            &[(Attempt::KillSupervisor, "killing the supervisor")]
        }
    }
}
