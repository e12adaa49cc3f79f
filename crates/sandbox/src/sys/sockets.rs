//! Sockets, messages between parent and supervisor, and waiting.

use super::{Call, Errno, check_int, files};
use std::os::fd::{OwnedFd, RawFd};

/// Message between parent and supervisor.
pub(crate) type Words = [i32; 3];

/// Creates a connected pair of sockets that keep the borders of messages.
pub(crate) fn message_pair() -> Call<(OwnedFd, OwnedFd)> {
    let mut ends: [RawFd; 2] = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    check_int(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    let [left, right] = ends;
    Ok((files::own(left), files::own(right)))
}

/// Sends a message without waiting.
pub(crate) fn send(fd: RawFd, words: Words) -> Call<()> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    let sent = unsafe { libc::send(fd, words.as_ptr().cast(), size_of::<Words>(), flags) };
    if sent < 0 { Err(super::last_errno()) } else { Ok(()) }
}

/// Receives a message; `None` when the other end is closed.
pub(crate) fn receive(fd: RawFd, wait: bool) -> Call<Option<Words>> {
    let mut words: Words = [0; 3];
    let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
    loop {
        let count = unsafe { libc::recv(fd, words.as_mut_ptr().cast(), size_of::<Words>(), flags) };
        return match usize::try_from(count) {
            Ok(0) => Ok(None),
            Ok(length) if length == size_of::<Words>() => Ok(Some(words)),
            Ok(_) => Err(Errno(libc::EBADMSG)),
            Err(_) => match super::last_errno() {
                // The peer ended with a message of ours unread. The error is reported once; what the peer had sent comes after it.
                Errno(libc::EINTR | libc::ECONNRESET) => continue,
                errno => Err(errno),
            },
        };
    }
}

/// Waits until one of two descriptors can be read, or the time has passed. A negative time waits for ever.
pub(crate) fn wait_readable(first: RawFd, second: RawFd, milliseconds: i32) -> Call<(bool, bool)> {
    let mut entries = [
        libc::pollfd { fd: first, events: libc::POLLIN, revents: 0 },
        libc::pollfd { fd: second, events: libc::POLLIN, revents: 0 },
    ];
    match check_int(unsafe { libc::poll(entries.as_mut_ptr(), 2, milliseconds) }) {
        Ok(_) | Err(Errno(libc::EINTR)) => {}
        Err(errno) => return Err(errno),
    }
    let [first, second] = entries;
    Ok((first.revents != 0, second.revents != 0))
}

/// Opens a socket; a plain number, for children.
pub(crate) fn open(domain: i32, kind: i32) -> Call<RawFd> {
    check_int(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, 0) })
}

/// Starts listening at a free port of 127.0.0.1, in the network namespace of the caller.
pub(crate) fn listen_on_loopback(backlog: i32) -> Call<RawFd> {
    let fd = open(libc::AF_INET, libc::SOCK_STREAM)?;
    let address = loopback(0);
    let result = check_int(unsafe {
        libc::bind(fd, (&raw const address).cast(), socket_length::<libc::sockaddr_in>())
    })
    .and_then(|_| check_int(unsafe { libc::listen(fd, backlog) }));
    match result {
        Ok(_) => Ok(fd),
        Err(errno) => {
            files::close(fd);
            Err(errno)
        }
    }
}

/// Connects a socket to a port of 127.0.0.1.
pub(crate) fn connect_loopback(fd: RawFd, port: u16) -> Call<()> {
    let address = loopback(port);
    check_int(unsafe { libc::connect(fd, (&raw const address).cast(), socket_length::<libc::sockaddr_in>()) })
        .map(drop)
}

/// Connects a socket to a Unix address: a path, or an abstract name that begins with a zero byte.
pub(crate) fn connect_unix(fd: RawFd, name: &[u8]) -> Call<()> {
    let mut address = libc::sockaddr_un { sun_family: AF_UNIX_FAMILY, sun_path: [0; 108] };
    if name.len() >= address.sun_path.len() {
        return Err(Errno(libc::ENAMETOOLONG));
    }
    for (target, byte) in address.sun_path.iter_mut().zip(name) {
        *target = byte.cast_signed();
    }
    let length = socket_length::<libc::sa_family_t>().saturating_add(u32::try_from(name.len()).unwrap_or(0));
    check_int(unsafe { libc::connect(fd, (&raw const address).cast(), length) }).map(drop)
}

/// Ends listening on a socket, in every duplicate of its descriptor.
pub(crate) fn stop_listening(fd: RawFd) {
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}

/// Brings the loopback interface of the caller's network namespace up.
pub(crate) fn raise_loopback() -> Call<()> {
    let fd = open(libc::AF_INET, libc::SOCK_DGRAM)?;
    // SAFETY: an interface request is plain data, for which zeroes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (target, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *target = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).unwrap_or(1);
    let result = check_int(unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS, &raw const request) });
    files::close(fd);
    result.map(drop)
}

#[expect(clippy::cast_possible_truncation, reason = "address families are small numbers")]
const AF_UNIX_FAMILY: libc::sa_family_t = libc::AF_UNIX as libc::sa_family_t;
#[expect(clippy::cast_possible_truncation, reason = "address families are small numbers")]
const AF_INET_FAMILY: libc::sa_family_t = libc::AF_INET as libc::sa_family_t;

fn loopback(port: u16) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: AF_INET_FAMILY,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    }
}

fn socket_length<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

/// Sends a request to the kernel's socket diagnosis, and hands each packet of the answer to `read` until that says that it was the last.
/// It belongs to the parent.
pub(crate) fn diagnose(request: &[u8], mut read: impl FnMut(&[u8]) -> Call<bool>) -> Call<()> {
    /// Packets of an answer are smaller.
    const PACKET: usize = 64 * 1024;
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    let socket = check_int(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) })
        .map(files::own)?;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&socket);
    let sent = unsafe { libc::send(fd, request.as_ptr().cast(), request.len(), libc::MSG_NOSIGNAL) };
    if sent < 0 {
        return Err(super::last_errno());
    }
    let mut packet = vec![0_u8; PACKET];
    loop {
        let count = unsafe { libc::recv(fd, packet.as_mut_ptr().cast(), packet.len(), 0) };
        match usize::try_from(count) {
            Ok(0) => return Err(Errno(libc::EIO)),
            Ok(length) => {
                if read(packet.get(..length).unwrap_or_default())? {
                    return Ok(());
                }
            }
            Err(_) => match super::last_errno() {
                Errno(libc::EINTR) => {}
                errno => return Err(errno),
            },
        }
    }
}
