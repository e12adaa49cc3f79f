//! Processes: creation, credentials, limits, signals, ends.

use super::memory::Stack;
use super::{Call, Errno, check, check_int, files};
use std::ffi::{CStr, CString};
use std::os::fd::{OwnedFd, RawFd};

/// Creates a process that runs `child` on `stack` and exits with its result.
///
/// With `CLONE_VM` the child shares the caller's memory, so `CLONE_VFORK` must keep the caller suspended meanwhile; without it the child
/// has a copy. In both cases `child` may neither allocate nor panic: another thread may have held the allocator's lock.
pub(crate) fn clone<F: FnMut() -> i32>(stack: &mut Stack, flags: i32, child: &mut F) -> Call<i32> {
    check_int(unsafe { libc::clone(enter::<F>, stack.top(), flags, std::ptr::from_mut(child).cast()) })
}

/// [`clone`] with a descriptor of the new process, in the descriptor table of the caller.
pub(crate) fn clone_with_descriptor<F: FnMut() -> i32>(
    stack: &mut Stack,
    flags: i32,
    child: &mut F,
) -> Call<(i32, RawFd)> {
    let mut descriptor: RawFd = -1;
    let pid = check_int(unsafe {
        libc::clone(
            enter::<F>,
            stack.top(),
            flags | libc::CLONE_PIDFD,
            std::ptr::from_mut(child).cast(),
            &raw mut descriptor,
        )
    })?;
    Ok((pid, descriptor))
}

extern "C" fn enter<F: FnMut() -> i32>(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `clone` passes a pointer to its `F`, which lives until the child ends or has a copy of its own.
    let child = unsafe { &mut *argument.cast::<F>() };
    child()
}

/// Strings of an argument or environment vector, with the array of pointers that `execve` wants.
#[derive(Debug)]
pub(crate) struct StringVector {
    _strings: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

// SAFETY: the pointers lead into the strings beside them, which never change.
unsafe impl Send for StringVector {}
// SAFETY: as above.
unsafe impl Sync for StringVector {}

impl StringVector {
    /// Belongs to the parent: allocates.
    pub(crate) fn new(strings: Vec<CString>) -> Self {
        let mut pointers: Vec<*const libc::c_char> = strings.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Self { _strings: strings, pointers }
    }
}

/// Replaces the process by a program. Returns only on failure.
pub(crate) fn execute(program: &CStr, arguments: &StringVector, environment: &StringVector) -> Errno {
    unsafe { libc::execve(program.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) };
    super::last_errno()
}

/// Signals of the calling thread that were blocked before [`block_signals`].
pub(crate) struct SignalMask(libc::sigset_t);

/// Blocks all signals of the calling thread, so that a child never runs a handler of its parent.
pub(crate) fn block_signals() -> SignalMask {
    // SAFETY: signal sets are plain data, filled in before use.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
    }
    SignalMask(before)
}

/// Restores what [`block_signals`] found.
pub(crate) fn restore_signals(mask: &SignalMask) {
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask.0, std::ptr::null_mut()) };
}

/// Unblocks all signals of the calling process.
pub(crate) fn unblock_signals() {
    let mut none: libc::sigset_t = unsafe { std::mem::zeroed() };
    unsafe {
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Sets every signal back to its default action.
pub(crate) fn reset_signal_actions() {
    /// Highest signal number of Linux.
    const LAST_SIGNAL: i32 = 64;
    for signal in 1..=LAST_SIGNAL {
        // Fails for KILL, STOP and the two that the C library keeps, which is right.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Descriptor that becomes readable when a child changed its state. SIGCHLD must be blocked.
pub(crate) fn child_events() -> Call<RawFd> {
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
    }
    check_int(unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })
}

/// Ended process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) pid: i32,
    /// `CLD_EXITED`, `CLD_KILLED` or `CLD_DUMPED`.
    pub(crate) code: i32,
    /// Exit status or signal number.
    pub(crate) status: i32,
}

/// Which children to wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Children {
    Any,
    Pid(i32),
    Descriptor(RawFd),
}

/// Reaps an ended child: `None` if none has ended and `wait` is false; ECHILD if there is none.
pub(crate) fn reap(which: Children, wait: bool) -> Call<Option<Ended>> {
    let (kind, id) = match which {
        Children::Any => (libc::P_ALL, 0),
        Children::Pid(pid) => (libc::P_PID, pid.cast_unsigned()),
        Children::Descriptor(fd) => (libc::P_PIDFD, fd.cast_unsigned()),
    };
    let options = libc::WEXITED | libc::__WALL | if wait { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: plain data, for which zeroes are valid.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        match check_int(unsafe { libc::waitid(kind, id, &raw mut info, options) }) {
            // SAFETY: `waitid` succeeded, so these members are set, or zero if nothing ended.
            Ok(_) => {
                let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
                return Ok((pid != 0).then_some(Ended { pid, code: info.si_code, status }));
            }
            Err(Errno(libc::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    }
}

pub(crate) fn send_signal(pid: i32, signal: i32) -> Call<()> {
    check_int(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Descriptor of a process, by which a signal never reaches another one that got the same number.
pub(crate) fn descriptor_of(pid: i32) -> Call<RawFd> {
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    RawFd::try_from(fd).map_err(|_| Errno(libc::EIO))
}

pub(crate) fn send_signal_to(descriptor: RawFd, signal: i32) -> Call<()> {
    check(unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            descriptor,
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0_u32,
        )
    })
    .map(drop)
}

/// Takes ownership of a process descriptor.
pub(crate) fn own_descriptor(fd: RawFd) -> OwnedFd {
    files::own(fd)
}

/// Puts the caller into a session of its own, without a terminal.
pub(crate) fn new_session() {
    // Fails only for a process group's leader, which a fresh child is not.
    unsafe { libc::setsid() };
}

pub(crate) fn parent_id() -> i32 {
    unsafe { libc::getppid() }
}

pub(crate) fn user_id() -> u32 {
    unsafe { libc::geteuid() }
}

pub(crate) fn group_id() -> u32 {
    unsafe { libc::getegid() }
}

fn control(option: i32, value: u64) -> Call<()> {
    check_int(unsafe { libc::prctl(option, value, 0_u64, 0_u64, 0_u64) }).map(drop)
}

/// Adopts orphaned descendants, as PID 1 does.
pub(crate) fn become_subreaper() -> Call<()> {
    control(libc::PR_SET_CHILD_SUBREAPER, 1)
}

/// Keeps processes of the same user from reading or tracing the caller.
pub(crate) fn forbid_tracing() -> Call<()> {
    control(libc::PR_SET_DUMPABLE, 0)
}

/// Whether processes of the same user may trace the caller.
#[cfg(test)]
pub(crate) fn allows_tracing() -> bool {
    check_int(unsafe { libc::prctl(libc::PR_GET_DUMPABLE, 0_u64, 0_u64, 0_u64, 0_u64) }) == Ok(1)
}

/// Kills the caller when its parent ends.
pub(crate) fn die_with_parent() -> Call<()> {
    control(libc::PR_SET_PDEATHSIG, u64::from(libc::SIGKILL.cast_unsigned()))
}

/// Keeps programs from gaining privileges; Landlock and seccomp ask for it.
pub(crate) fn forbid_new_privileges() -> Call<()> {
    control(libc::PR_SET_NO_NEW_PRIVS, 1)
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilitySets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up all capabilities, and the ways to get them back.
pub(crate) fn drop_capabilities() -> Call<()> {
    const VERSION_3: u32 = 0x2008_0522;
    /// One above the last capability number that any kernel could know.
    const END: u64 = 64;
    // NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each with its lock: user 0 gains nothing from `execve`.
    const SECURE_BITS: u64 = 0b1100_1111;
    for capability in 0..END {
        match control(libc::PR_CAPBSET_DROP, capability) {
            Ok(()) => {}
            // The first number that this kernel does not know, or an ordinary user without namespaces, who has none to lose.
            Err(Errno(libc::EINVAL | libc::EPERM)) => break,
            Err(errno) => return Err(errno),
        }
    }
    match control(libc::PR_SET_SECUREBITS, SECURE_BITS) {
        Ok(()) | Err(Errno(libc::EPERM)) => {}
        Err(errno) => return Err(errno),
    }
    let header = CapabilityHeader { version: VERSION_3, pid: 0 };
    let sets = [CapabilitySets { effective: 0, permitted: 0, inheritable: 0 }; 2];
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) }).map(drop)
}

/// Kind of a resource limit.
pub(crate) type Resource = libc::__rlimit_resource_t;

/// Lowers a resource limit, soft and hard; a hard limit that is already lower stays.
pub(crate) fn limit(resource: Resource, value: u64) -> Call<()> {
    let mut present = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    check_int(unsafe { libc::getrlimit(resource, &raw mut present) })?;
    let value = value.min(present.rlim_max);
    let wanted = libc::rlimit { rlim_cur: value, rlim_max: value };
    check_int(unsafe { libc::setrlimit(resource, &raw const wanted) }).map(drop)
}

/// Instruction of a system call filter.
pub(crate) type Instruction = libc::sock_filter;

/// Puts the calling process under a system call filter, for good.
pub(crate) fn filter_system_calls(program: &[Instruction]) -> Call<()> {
    let header = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno(libc::E2BIG))?,
        filter: program.as_ptr().cast_mut(),
    };
    check(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_u32, &raw const header)
    })
    .map(drop)
}

/// Milliseconds of a clock that never goes back.
pub(crate) fn milliseconds() -> u64 {
    microseconds() / 1000
}

/// Microseconds of a clock that never goes back.
pub(crate) fn microseconds() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1000
}

/// Shared memory segment of System V, for trying out whether another process can attach it.
#[derive(Debug)]
pub(crate) struct Segment(pub(crate) i32);

impl Segment {
    pub(crate) fn new() -> Call<Self> {
        check_int(unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o600) }).map(Self)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Whether the keyring of the session can be used.
pub(crate) fn can_use_keyring() -> bool {
    const GET_KEYRING_ID: i32 = 0;
    const SESSION_KEYRING: i32 = -3;
    check(unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 0) }).is_ok()
}

/// Whether a shared memory segment can be attached.
pub(crate) fn can_attach(segment: i32) -> bool {
    let address = unsafe { libc::shmat(segment, std::ptr::null(), 0) };
    if address.addr() == usize::MAX {
        return false;
    }
    unsafe { libc::shmdt(address) };
    true
}
