//! User at the other end of a TCP connection within this machine, as the kernel knows it.
//!
//! The kernel is asked over netlink for exactly one connection, in constant time. Where that is closed off (gVisor, filters of system calls),
//! the tables in `/proc/net` are searched. A socket whose process has closed it has no owner any more, and is not found.

#[cfg(target_os = "linux")]
mod netlink;
#[cfg(target_os = "linux")]
mod table;

use std::net::{IpAddr, SocketAddr};

/// The user whose socket is bound to `peer` and connected to `local`; none if it cannot be found.
pub(super) fn of_peer(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    // The client of a listener for both families may be of either.
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let (peer, local) = (canonical(peer), canonical(local));
    if !is_loopback(peer.ip()) || peer.is_ipv4() != local.is_ipv4() {
        return None;
    }
    find(peer, local)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(target_os = "linux")]
fn find(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    netlink::find(peer, local).unwrap_or_else(|_| table::find(peer, local))
}

#[cfg(not(target_os = "linux"))]
fn find(_peer: SocketAddr, _local: SocketAddr) -> Option<u32> {
    None
}

/// States of a TCP socket that has been connected, and that its process may still hold: established, both waits for the other side's end,
/// and the wait for the own one.
#[cfg(target_os = "linux")]
const CONNECTED: [u8; 4] = [1, 4, 5, 8];

#[cfg(all(test, target_os = "linux"))]
mod tests;
