//! The kernel's answer about one TCP connection (`sock_diag(7)`).

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recvfrom, sendto, socket_with};

/// `SOCK_DIAG_BY_FAMILY`, as request and as answer.
const BY_FAMILY: u16 = 20;
/// `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// `NLM_F_REQUEST`.
const REQUEST: u16 = 1;
/// `ENOENT`, negative as in messages.
const NOT_FOUND: i32 = -2;
const HEADER: usize = 16;
/// Length of a connection's address pair in requests and answers, without interface and cookie.
const PAIR: usize = 36;

/// The user that holds the connection from `peer` to `local`; none if there is none. An error: the kernel cannot be asked.
pub(super) fn find(peer: SocketAddr, local: SocketAddr) -> io::Result<Option<u32>> {
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, &request(peer, &pair(peer, local)), SendFlags::empty(), &kernel)?;
    let mut answer = [0; 1024];
    // The kernel answers before `sendto` returns.
    let (length, _, from) = recvfrom(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
    if from.is_none_or(|from| from.pid() != 0) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    read(answer.get(..length).unwrap_or_default(), (peer, local))
}

/// Addresses and ports as the kernel writes them, those of the socket that is looked for first.
fn pair(peer: SocketAddr, local: SocketAddr) -> [u8; PAIR] {
    let mut bytes = Vec::with_capacity(PAIR);
    bytes.extend(peer.port().to_be_bytes());
    bytes.extend(local.port().to_be_bytes());
    for address in [peer, local] {
        match address.ip() {
            IpAddr::V4(address) => bytes.extend(address.octets().into_iter().chain([0; 12])),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
    }
    bytes.try_into().unwrap_or([0; PAIR])
}

fn request(peer: SocketAddr, pair: &[u8; PAIR]) -> Vec<u8> {
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let mut body = vec![u8::try_from(family.as_raw()).unwrap_or_default(), IPPROTO_TCP, 0, 0];
    // All states.
    body.extend(u32::MAX.to_ne_bytes());
    body.extend(pair);
    // Any interface, and no cookie.
    body.extend(0u32.to_ne_bytes());
    body.extend([u8::MAX; 8]);
    let length = u32::try_from(HEADER + body.len()).unwrap_or_default();
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

const IPPROTO_TCP: u8 = 6;

fn read(answer: &[u8], pair: (SocketAddr, SocketAddr)) -> io::Result<Option<u32>> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let kind = u16::from_ne_bytes(at(answer, 4).ok_or_else(malformed)?);
    let body = answer.get(HEADER..).ok_or_else(malformed)?;
    if kind == ERROR {
        let errno = i32::from_ne_bytes(at(body, 0).ok_or_else(malformed)?);
        return if errno == NOT_FOUND { Ok(None) } else { Err(io::Error::from_raw_os_error(-errno)) };
    }
    if kind != BY_FAMILY {
        return Err(malformed());
    }
    let [family, state, ..] = at::<4>(body, 0).ok_or_else(malformed)?;
    let is_v4 = AddressFamily::INET.as_raw() == u16::from(family);
    let end = |port: usize, address: usize| {
        let port = u16::from_be_bytes(at(body, port)?);
        // A socket of the later family may have addresses of the earlier one.
        let address = if is_v4 {
            IpAddr::from(at::<4>(body, address)?)
        } else {
            IpAddr::from(at::<16>(body, address)?).to_canonical()
        };
        Some(SocketAddr::new(address, port))
    };
    let found = end(4, 8).zip(end(6, 24)).ok_or_else(malformed)?;
    // Behind the pair: interface, cookie, expiry and two queues.
    let uid = u32::from_ne_bytes(at(body, 64).ok_or_else(malformed)?);
    let inode = u32::from_ne_bytes(at(body, 68).ok_or_else(malformed)?);
    // Without such a connection the kernel answers with a socket that listens on the port; one without an inode belongs to nobody.
    let is_held = super::CONNECTED.contains(&state) && found == pair && inode != 0;
    Ok(is_held.then_some(uid))
}

fn at<const N: usize>(bytes: &[u8], start: usize) -> Option<[u8; N]> {
    bytes.get(start..)?.first_chunk().copied()
}
