//! System call filter of a process.

use crate::sys::process::Instruction;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
/// Bit of the x32 calls of x86_64, which would go around a filter of the ordinary numbers.
const X32: u32 = 0x4000_0000;

const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;
const OFFSET_FIRST_ARGUMENT: u32 = 16;
const OFFSET_SECOND_ARGUMENT: u32 = 24;
const OFFSET_THIRD_ARGUMENT: u32 = 32;
/// Distance of an argument's upper half, on the little-endian machines that this is built for.
const HIGH_HALF: u32 = 4;

const ALLOW: u32 = 0x7fff_0000;
const FAIL: u32 = 0x0005_0000;

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_GREATER_EQUAL: u16 = 0x35;
const JUMP_ANY_BIT: u16 = 0x45;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;

// Numbers that are the same on all architectures, newer than the C library's list.
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;
const FCHMODAT2: i64 = 452;

/// Terminal and file attribute requests of `ioctl`.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541C;
const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u32 = 0x401c_5820;

/// Kinds of sockets that a process may open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// All of them: the host's network is allowed.
    All,
    /// Those that a network namespace confines, and Unix sockets. AF_VSOCK, for one, knows no namespaces.
    Namespaced,
    /// Those that a network namespace confines: for runs whose mounts do not mask Unix sockets.
    Internet,
    /// TCP only.
    Tcp,
    /// None; connected pairs work.
    None,
}

/// What the filter has to hold beyond the calls that are always refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) sockets: Sockets,
    /// Refuses changes of modes, owners, times and attributes, wherever the file is: a filter cannot see paths.
    pub(crate) refuses_metadata: bool,
    /// Refuses System V and POSIX message passing, which knows no folders.
    pub(crate) refuses_ipc: bool,
}

/// Calls that no process of a run needs, and that reach beyond it: new mounts, keyrings, kernel programs, module loading.
const REFUSED: [i64; 25] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
];

/// Calls that programs have a substitute for: `clone3` hides its flags from a filter, rings do their work past it, and the memory of a
/// `memfd` that no process maps is in no count.
const NOT_IMPLEMENTED: [i64; 6] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
];

/// Largest System V segment, in bytes. Segments that no process attaches are in no count; the kernel allows 4,096 of them in a namespace.
const SEGMENT: u32 = 1024 * 1024;

const METADATA: [i64; 14] = [
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
];

#[cfg(target_arch = "x86_64")]
const OLD_METADATA: [i64; 6] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_METADATA: [i64; 0] = [];

const IPC: [i64; 6] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Builds the filter of a process.
pub(crate) fn program(wanted: Wanted) -> Vec<Instruction> {
    let mut program =
        vec![load(OFFSET_ARCHITECTURE), jump(JUMP_EQUAL, ARCHITECTURE, 1, 0), fail(libc::ENOSYS)];
    program.push(load(OFFSET_NUMBER));
    program.extend([jump(JUMP_GREATER_EQUAL, X32, 0, 1), fail(libc::ENOSYS)]);
    for number in REFUSED {
        refuse(&mut program, number, libc::EPERM);
    }
    for number in NOT_IMPLEMENTED {
        refuse(&mut program, number, libc::ENOSYS);
    }
    if wanted.refuses_metadata {
        for number in METADATA.into_iter().chain(OLD_METADATA).chain([FILE_SETATTR]) {
            refuse(&mut program, number, libc::EPERM);
        }
    }
    if wanted.refuses_ipc {
        for number in IPC {
            refuse(&mut program, number, libc::EPERM);
        }
    } else {
        on_call(
            &mut program,
            libc::SYS_shmget,
            &[
                load(OFFSET_SECOND_ARGUMENT + HIGH_HALF),
                jump(JUMP_EQUAL, 0, 1, 0),
                fail(libc::EINVAL),
                load(OFFSET_SECOND_ARGUMENT),
                jump(JUMP_GREATER_EQUAL, SEGMENT + 1, 0, 1),
                fail(libc::EINVAL),
                allow(),
            ],
        );
    }
    // A user namespace below ours would give capabilities over its own mounts and sockets, and with them kernel code to attack.
    for number in [libc::SYS_clone, libc::SYS_unshare] {
        on_call(
            &mut program,
            number,
            &[
                load(OFFSET_FIRST_ARGUMENT),
                jump(JUMP_ANY_BIT, libc::CLONE_NEWUSER.cast_unsigned(), 0, 1),
                fail(libc::EPERM),
                allow(),
            ],
        );
    }
    let mut requests = vec![load(OFFSET_SECOND_ARGUMENT)];
    let refused: &[u32] = if wanted.refuses_metadata {
        &[TIOCSTI, TIOCLINUX, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR]
    } else {
        &[TIOCSTI, TIOCLINUX]
    };
    for request in refused {
        requests.extend([jump(JUMP_EQUAL, *request, 0, 1), fail(libc::EPERM)]);
    }
    requests.push(allow());
    on_call(&mut program, libc::SYS_ioctl, &requests);
    if let Some(check) = socket_check(wanted.sockets) {
        on_call(&mut program, libc::SYS_socket, &check);
    }
    program.push(allow());
    program
}

/// Body of the check on `socket`, which ends in a result.
fn socket_check(sockets: Sockets) -> Option<Vec<Instruction>> {
    let families: &[i32] = match sockets {
        Sockets::All => return None,
        Sockets::Namespaced => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Sockets::Internet => &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
        Sockets::Tcp => &[libc::AF_INET, libc::AF_INET6],
        Sockets::None => &[],
    };
    let mut check = Vec::new();
    if sockets == Sockets::Tcp {
        /// Bits of the type argument that are no flags.
        const KIND: u32 = 0xf;
        check.extend([
            load(OFFSET_SECOND_ARGUMENT),
            instruction(AND, KIND, 0, 0),
            jump(JUMP_EQUAL, libc::SOCK_STREAM.cast_unsigned(), 1, 0),
            fail(libc::EACCES),
            // Landlock knows no other protocol: multipath TCP goes past its rules.
            load(OFFSET_THIRD_ARGUMENT),
            jump(JUMP_EQUAL, libc::IPPROTO_TCP.cast_unsigned(), 2, 0),
            jump(JUMP_EQUAL, 0, 1, 0),
            fail(libc::EACCES),
        ]);
    }
    check.push(load(OFFSET_FIRST_ARGUMENT));
    for family in families {
        check.extend([jump(JUMP_EQUAL, family.cast_unsigned(), 0, 1), allow()]);
    }
    check.push(fail(libc::EACCES));
    Some(check)
}

fn refuse(program: &mut Vec<Instruction>, number: i64, errno: i32) {
    on_call(program, number, &[fail(errno)]);
}

/// Runs `body`, which ends in a result, if the call has the given number; its number stays loaded otherwise.
fn on_call(program: &mut Vec<Instruction>, number: i64, body: &[Instruction]) {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let skip = u8::try_from(body.len()).unwrap_or(u8::MAX);
    program.push(jump(JUMP_EQUAL, number, 0, skip));
    program.extend_from_slice(body);
}

fn instruction(code: u16, value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code, jt: if_true, jf: if_false, k: value }
}

fn load(offset: u32) -> Instruction {
    instruction(LOAD, offset, 0, 0)
}

fn jump(code: u16, value: u32, if_true: u8, if_false: u8) -> Instruction {
    instruction(code, value, if_true, if_false)
}

fn allow() -> Instruction {
    instruction(RETURN, ALLOW, 0, 0)
}

fn fail(errno: i32) -> Instruction {
    instruction(RETURN, FAIL | errno.cast_unsigned(), 0, 0)
}

#[cfg(test)]
mod tests;
