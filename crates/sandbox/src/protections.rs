//! Report of what holds each protection.

use crate::features::Feature;

/// Promise about the processes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protection {
    /// Files, modes, owners, attributes and times change only in writable folders.
    Writes,
    /// Hidden paths cannot be read, listed or connected to.
    HiddenPaths,
    /// Memory, environment and keyrings of other processes cannot be read, and no signal reaches them.
    OtherProcesses,
    /// Nothing outside of the run is reached over a network or a Unix socket.
    Network,
    /// Memory of the run is bounded.
    Memory,
    /// Number of processes and threads is bounded.
    Processes,
    /// Size of each file is bounded.
    FileSize,
    /// Number of descriptors is bounded.
    Descriptors,
    /// No process is left when the run ends.
    EndWithRun,
    /// No process is left when the calling process is killed.
    EndWithCaller,
}

impl Protection {
    /// All protections, in the order of reports.
    pub const ALL: [Self; 10] = [
        Self::Writes,
        Self::HiddenPaths,
        Self::OtherProcesses,
        Self::Network,
        Self::Memory,
        Self::Processes,
        Self::FileSize,
        Self::Descriptors,
        Self::EndWithRun,
        Self::EndWithCaller,
    ];
}

impl std::fmt::Display for Protection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Writes => "writes confined",
            Self::HiddenPaths => "hidden paths out of reach",
            Self::OtherProcesses => "other processes out of reach",
            Self::Network => "network closed",
            Self::Memory => "memory limit",
            Self::Processes => "process limit",
            Self::FileSize => "file size limit",
            Self::Descriptors => "descriptor limit",
            Self::EndWithRun => "processes end with the run",
            Self::EndWithCaller => "processes end with Proctor",
        })
    }
}

/// Feature that holds a protection.
pub type Holder = Feature;

/// State of a protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Held, by one feature or by several together.
    Held {
        /// Features that hold it, strongest first.
        by: Vec<Holder>,
    },
    /// Not asked for: the run is allowed to use the host's network.
    Waived,
    /// Held by nothing.
    Missing {
        /// Why.
        reason: String,
    },
}

impl std::fmt::Display for Standing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Held { by } => {
                for (at, holder) in by.iter().enumerate() {
                    let separator = if at == 0 { "" } else { ", " };
                    write!(formatter, "{separator}{holder}")?;
                }
                Ok(())
            }
            Self::Waived => formatter.write_str("not asked for"),
            Self::Missing { reason } => write!(formatter, "missing: {reason}"),
        }
    }
}

/// Report on all protections of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protections {
    entries: Vec<(Protection, Standing)>,
}

impl Protections {
    pub(crate) fn new(of: impl Fn(Protection) -> Standing) -> Self {
        Self { entries: Protection::ALL.into_iter().map(|protection| (protection, of(protection))).collect() }
    }

    /// Report before anything was tried out.
    pub(crate) const fn empty() -> Self {
        Self { entries: Vec::new() }
    }

    /// Whether nothing was tried out, because no process was started.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// State of one protection.
    pub fn get(&self, protection: Protection) -> &Standing {
        const UNKNOWN: &Standing = &Standing::Missing { reason: String::new() };
        self.entries.iter().find(|(known, _)| *known == protection).map_or(UNKNOWN, |(_, standing)| standing)
    }

    /// All protections with their states, in the order of [`Protection::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Protection, &Standing)> {
        self.entries.iter().map(|(protection, standing)| (*protection, standing))
    }

    /// Protections that nothing holds, with the reasons.
    pub fn missing(&self) -> impl Iterator<Item = (Protection, &str)> {
        self.iter().filter_map(|(protection, standing)| match standing {
            Standing::Missing { reason } => Some((protection, reason.as_str())),
            Standing::Held { .. } | Standing::Waived => None,
        })
    }

    pub(crate) fn set(&mut self, protection: Protection, standing: Standing) {
        if let Some(entry) = self.entries.iter_mut().find(|(known, _)| *known == protection) {
            entry.1 = standing;
        }
    }
}
