//! The filter, run by an interpreter of the few instructions that it uses.

use super::*;

/// Result of a call with these arguments: `Ok` if it is let through, its error number otherwise.
fn run(program: &[Instruction], architecture: u32, number: i64, arguments: [u64; 3]) -> Result<(), i32> {
    let mut accumulator = 0_u32;
    let mut at = 0_usize;
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let jump = |taken: bool| usize::from(if taken { jt } else { jf });
        match code {
            LOAD => {
                accumulator = match k {
                    OFFSET_NUMBER => u32::try_from(number).unwrap(),
                    OFFSET_ARCHITECTURE => architecture,
                    at if at >= OFFSET_FIRST_ARGUMENT => {
                        let from = usize::try_from(at - OFFSET_FIRST_ARGUMENT).unwrap();
                        let half = arguments[from / 8] >> (from % 8 * 8);
                        u32::try_from(half & u64::from(u32::MAX)).unwrap()
                    }
                    other => panic!("offset {other}"),
                }
            }
            AND => accumulator &= k,
            JUMP_EQUAL => at += jump(accumulator == k),
            JUMP_GREATER_EQUAL => at += jump(accumulator >= k),
            JUMP_ANY_BIT => at += jump(accumulator & k != 0),
            RETURN if k == ALLOW => return Ok(()),
            RETURN => return Err((k & 0xffff).cast_signed()),
            other => panic!("code {other}"),
        }
    }
}

fn call(wanted: Wanted, number: i64, arguments: [u64; 3]) -> Result<(), i32> {
    run(&program(wanted), ARCHITECTURE, number, arguments)
}

const OPEN: Wanted = Wanted { sockets: Sockets::All, refuses_metadata: false, refuses_ipc: false };

fn wide(value: i32) -> u64 {
    u64::try_from(value).unwrap()
}

fn socket(sockets: Sockets, family: i32, kind: i32) -> Result<(), i32> {
    let wanted = Wanted { sockets, ..OPEN };
    call(wanted, libc::SYS_socket, [wide(family), wide(kind), 0])
}

#[test]
fn ordinary_calls_pass_and_listed_ones_fail() {
    for number in [libc::SYS_read, libc::SYS_openat, libc::SYS_fchmod, libc::SYS_shmget, libc::SYS_execve] {
        assert_eq!(call(OPEN, number, [0, 0, 0]), Ok(()));
    }
    for number in REFUSED {
        assert_eq!(call(OPEN, number, [0, 0, 0]), Err(libc::EPERM));
    }
    for number in NOT_IMPLEMENTED {
        assert_eq!(call(OPEN, number, [0, 0, 0]), Err(libc::ENOSYS));
    }
    let closed = Wanted { refuses_metadata: true, refuses_ipc: true, ..OPEN };
    for number in METADATA.into_iter().chain(OLD_METADATA).chain(IPC).chain([FILE_SETATTR]) {
        assert_eq!(call(closed, number, [0, 0, 0]), Err(libc::EPERM));
    }
    assert_eq!(call(closed, libc::SYS_read, [0, 0, 0]), Ok(()));
}

#[test]
fn foreign_architectures_and_x32_are_not_served() {
    assert_eq!(run(&program(OPEN), 0x4000_0003, libc::SYS_read, [0, 0, 0]), Err(libc::ENOSYS));
    assert_eq!(call(OPEN, libc::SYS_read + i64::from(X32), [0, 0, 0]), Err(libc::ENOSYS));
}

#[test]
fn sockets_are_those_of_the_network_asked_for() {
    let families =
        [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_VSOCK, libc::AF_PACKET];
    for family in families {
        assert_eq!(socket(Sockets::All, family, libc::SOCK_DGRAM), Ok(()));
        assert_eq!(socket(Sockets::None, family, libc::SOCK_STREAM), Err(libc::EACCES));
        let is_internet = [libc::AF_INET, libc::AF_INET6].contains(&family);
        assert_eq!(socket(Sockets::Tcp, family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC).is_ok(), is_internet);
        assert_eq!(socket(Sockets::Tcp, family, libc::SOCK_DGRAM), Err(libc::EACCES));
        let is_confined = ![libc::AF_VSOCK, libc::AF_PACKET].contains(&family);
        assert_eq!(socket(Sockets::Namespaced, family, libc::SOCK_DGRAM).is_ok(), is_confined);
        let is_masked = family != libc::AF_UNIX;
        assert_eq!(socket(Sockets::Internet, family, libc::SOCK_DGRAM).is_ok(), is_confined && is_masked);
    }
}

#[test]
fn user_namespaces_and_typed_terminal_input_are_refused() {
    let flags = wide(libc::CLONE_NEWUSER | libc::SIGCHLD);
    assert_eq!(call(OPEN, libc::SYS_clone, [flags, 0, 0]), Err(libc::EPERM));
    assert_eq!(call(OPEN, libc::SYS_clone, [wide(libc::SIGCHLD), 0, 0]), Ok(()));
    let [input, flags] = [TIOCSTI, FS_IOC_SETFLAGS].map(u64::from);
    assert_eq!(call(OPEN, libc::SYS_ioctl, [0, input, 0]), Err(libc::EPERM));
    assert_eq!(call(OPEN, libc::SYS_ioctl, [0, flags, 0]), Ok(()));
    let closed = Wanted { refuses_metadata: true, ..OPEN };
    assert_eq!(call(closed, libc::SYS_ioctl, [0, flags, 0]), Err(libc::EPERM));
}

#[test]
fn segments_that_nobody_attaches_stay_small() {
    let segment = |size: u64| call(OPEN, libc::SYS_shmget, [0, size, 0]);
    assert_eq!(segment(u64::from(SEGMENT)), Ok(()));
    assert_eq!(segment(u64::from(SEGMENT) + 1), Err(libc::EINVAL));
    // Beyond 32 bits, with a small lower half.
    assert_eq!(segment(1 << 32), Err(libc::EINVAL));
}

#[test]
fn only_plain_tcp_is_under_the_rules_on_ports() {
    let wanted = Wanted { sockets: Sockets::Tcp, ..OPEN };
    let stream = |protocol: i32| {
        call(wanted, libc::SYS_socket, [wide(libc::AF_INET), wide(libc::SOCK_STREAM), wide(protocol)])
    };
    assert_eq!((stream(0), stream(libc::IPPROTO_TCP)), (Ok(()), Ok(())));
    assert_eq!(stream(libc::IPPROTO_MPTCP), Err(libc::EACCES));
    assert_eq!(stream(libc::IPPROTO_SCTP), Err(libc::EACCES));
}
