//! Supervisor process of a run: sets the sandbox up, starts the program, and ends what it started.
//!
//! The parent creates a short-lived launcher that shares its memory, which enters the kept network namespace and creates the supervisor
//! with the other namespaces. The supervisor is a fork without an `execve`; it builds the mounts, creates the program's process (sharing
//! memory again, until `execve`), and then drops what it inherited and watches.
//!
//! Nothing in here allocates: the parent has other threads, and one of them may hold the allocator's lock at the time of the fork.

mod confined;
mod mounts;
mod processes;
mod watch;

use crate::error::Step;
use crate::plan::{Plan, RESERVED, Work};
use crate::sys::memory::Stack;
use crate::sys::process::{self, Children};
use crate::sys::{Call, Errno, files, landlock, mounts as namespaces, sockets};
use std::cell::Cell;
use std::os::fd::{AsRawFd as _, RawFd};

/// Kinds of messages from the supervisor: the program runs.
pub(crate) const STARTED: i32 = 1;
/// Setup failed: step, error number.
pub(crate) const FAILED: i32 = 2;
/// The program ended: code and status as of `waitid`.
pub(crate) const EXITED: i32 = 3;
/// A limit was crossed.
pub(crate) const CROSSED: i32 = 4;
/// The trial ended: what was possible, as bits; features that turned out missing.
pub(crate) const TRIED: i32 = 5;
/// Number of processes that were running when the end was asked for.
pub(crate) const LEFT: i32 = 6;

/// Kind of the message to the supervisor: end the run, with time between TERM and KILL in milliseconds.
pub(crate) const END: i32 = 1;

/// Bit of the second word of [`TRIED`]: `pid_max` of the namespace could not be set.
pub(crate) const NO_PID_MAX: i32 = 1;
/// Bit of the second word of [`TRIED`]: the supervisor cannot see the run's processes.
pub(crate) const NO_SAMPLES: i32 = 2;

/// Stacks of the three processes.
#[derive(Debug)]
pub(crate) struct Stacks {
    launcher: Stack,
    keeper: Stack,
    program: Stack,
}

impl Stacks {
    pub(crate) fn new() -> Call<Self> {
        Ok(Self { launcher: Stack::new()?, keeper: Stack::new()?, program: Stack::new()? })
    }
}

/// Kept namespaces that a run enters: of users, if the sandbox has one, and of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entered {
    pub(crate) user: Option<RawFd>,
    pub(crate) network: RawFd,
}

/// Created supervisor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Created {
    /// Process id in the namespace of the caller.
    pub(crate) pid: i32,
    /// Descriptor of the process.
    pub(crate) descriptor: RawFd,
}

/// Creates the supervisor of a run.
pub(crate) fn launch(
    plan: &Plan,
    entered: Option<Entered>,
    stacks: &mut Stacks,
) -> Result<Created, (Step, Errno)> {
    let Stacks { launcher, keeper, program } = stacks;
    let created: Cell<Result<Created, (Step, Errno)>> = Cell::new(Err((Step::Clone, Errno(libc::EAGAIN))));
    let mut in_launcher = || {
        created.set(enter(entered).and_then(|()| {
            // The supervisor becomes a child of the launcher's parent. Its descriptor lands in the table that both share.
            let flags = plan.clone_flags | libc::CLONE_PARENT;
            process::clone_with_descriptor(keeper, flags, &mut || run(plan, program))
                .map(|(pid, descriptor)| Created { pid, descriptor })
                .map_err(|errno| (Step::Clone, errno))
        }));
        0
    };
    let mask = process::block_signals();
    // No exit signal: neither the launcher nor the supervisor wakes handlers of the calling program, or is reaped by them.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES;
    let cloned = process::clone(launcher, flags, &mut in_launcher);
    if let Ok(pid) = cloned {
        let _ = process::reap(Children::Pid(pid), true);
    }
    process::restore_signals(&mask);
    match cloned {
        Ok(_) => created.get(),
        Err(errno) => Err((Step::Clone, errno)),
    }
}

fn enter(entered: Option<Entered>) -> Result<(), (Step, Errno)> {
    let Some(Entered { user, network }) = entered else { return Ok(()) };
    if let Some(user) = user {
        namespaces::enter_namespace(user, libc::CLONE_NEWUSER)
            .map_err(|errno| (Step::EnterNetwork, errno))?;
    }
    namespaces::enter_namespace(network, libc::CLONE_NEWNET).map_err(|errno| (Step::EnterNetwork, errno))
}

/// Body of the supervisor.
fn run(plan: &Plan, stack: &mut Stack) -> i32 {
    let channel = plan.watch.channel;
    match prepare(plan).and_then(|gaps| start(plan, stack, gaps)) {
        Ok(Some(program)) => {
            let watch = plan.watch;
            let [stdin, stdout, stderr] = plan.streams;
            for stream in [stdin, stdout, stderr] {
                files::close(stream);
            }
            if let Some(ruleset) = &plan.ruleset {
                files::close(ruleset.descriptor.as_raw_fd());
            }
            watch::until_the_end(watch, program)
        }
        Ok(None) => 0,
        Err((step, Errno(errno))) => {
            let _ = sockets::send(channel, [FAILED, step as i32, errno]);
            1
        }
    }
}

/// Sets everything up that the supervisor shares with the program. Returns the features that turned out missing.
fn prepare(plan: &Plan) -> Result<i32, (Step, Errno)> {
    process::reset_signal_actions();
    process::new_session();
    for (first, last) in &plan.closed {
        files::close_range(*first, *last).map_err(|errno| (Step::Descriptors, errno))?;
    }
    if let Some((users, groups)) = &plan.user_map {
        write_user_map(users, groups).map_err(|errno| (Step::UserMap, errno))?;
    }
    if !plan.watch.is_first {
        process::become_subreaper().map_err(|errno| (Step::Fork, errno))?;
    }
    files::change_directory(c"/").map_err(|errno| (Step::Directory, errno))?;
    if let Some(layers) = &plan.layers {
        mounts::prepare(layers)?;
    }
    let mut missing = 0;
    if let Some(pid_max) = &plan.pid_max
        && files::put(c"/proc/sys/kernel/pid_max", pid_max).is_err()
    {
        missing |= NO_PID_MAX;
    } else if plan.pid_max.is_some() {
        // Numbers below are used once, before the first wrap: skipping them makes the bound exact from the start. Kernels without this
        // setting have a bound that is higher by that many.
        let _ = files::put(c"/proc/sys/kernel/ns_last_pid", RESERVED);
    }
    if plan.user_map.is_some() {
        // A second lock beside the system call filter; kernels without this setting have the filter alone.
        let _ = files::put(c"/proc/sys/user/max_user_namespaces", b"0");
    }
    if let Some(layers) = &plan.layers {
        mounts::finish(layers)?;
    }
    if let Some(ruleset) = &plan.ruleset {
        for rule in &ruleset.rules {
            landlock::allow_path(ruleset.descriptor.as_raw_fd(), &rule.path, rule.allowed)
                .map_err(|errno| (Step::LandlockRules, errno))?;
        }
    }
    // The program runs as the same user, and must neither read nor steer its supervisor.
    process::forbid_tracing().map_err(|errno| (Step::Privileges, errno))?;
    Ok(missing)
}

/// Maps the caller's user and group into its new user namespace.
pub(crate) fn write_user_map(users: &[u8], groups: &[u8]) -> Call<()> {
    files::put(c"/proc/self/setgroups", b"deny")?;
    files::put(c"/proc/self/uid_map", users)?;
    files::put(c"/proc/self/gid_map", groups)
}

/// Starts the program. Returns its process id, or nothing if it was a trial.
fn start(plan: &Plan, stack: &mut Stack, missing: i32) -> Result<Option<i32>, (Step, Errno)> {
    let channel = plan.watch.channel;
    let failure: Cell<Option<(Step, Errno)>> = Cell::new(None);
    let possible = Cell::new(0_i32);
    let mut in_program = || {
        match confined::enter(plan) {
            Ok(()) => match &plan.work {
                Work::Execute { program, arguments, environment } => {
                    process::unblock_signals();
                    failure.set(Some((Step::Execute, process::execute(program, arguments, environment))));
                }
                Work::Try(trial) => possible.set(trial.run()),
            },
            Err(problem) => failure.set(Some(problem)),
        }
        127
    };
    // The program's process shares memory with this one until it executes or ends, and tells its failure that way.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let pid = process::clone(stack, flags, &mut in_program).map_err(|errno| (Step::Fork, errno))?;
    if let Some(problem) = failure.get() {
        return Err(problem);
    }
    if matches!(plan.work, Work::Try(_)) {
        let missing = if processes::can_sample() { missing } else { missing | NO_SAMPLES };
        let _ = sockets::send(channel, [TRIED, possible.get(), missing]);
        return Ok(None);
    }
    let _ = sockets::send(channel, [STARTED, 0, 0]);
    Ok(Some(pid))
}
