//! Limits of a run.

use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// Bounds on what the processes of a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory: of each process's data, and of the resident memory of all together.
    pub memory: u64,
    /// Processes and threads at the same time.
    pub processes: u32,
    /// Bytes of a single file.
    pub file_size: u64,
    /// Open descriptors of each process.
    pub descriptors: u64,
    /// Time from start to forced end.
    pub wall_time: Duration,
}

impl Default for Limits {
    /// Values that compilers, test runners and browsers stay below, and that 8 runs at a time leave a machine usable with.
    fn default() -> Self {
        Self {
            memory: 4096 * MIB,
            processes: 512,
            file_size: 1024 * MIB,
            descriptors: 4096,
            wall_time: Duration::from_secs(300),
        }
    }
}

/// Limit that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Limit {
    /// Memory of all processes.
    Memory = 1,
    /// Number of processes and threads.
    Processes,
    /// Size of a file.
    FileSize,
    /// Time.
    WallTime,
}

impl Limit {
    pub(crate) fn from_number(number: i32) -> Option<Self> {
        [Self::Memory, Self::Processes, Self::FileSize, Self::WallTime]
            .into_iter()
            .find(|limit| *limit as i32 == number)
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::FileSize => "file size",
            Self::WallTime => "wall time",
        })
    }
}
