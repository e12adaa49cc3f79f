//! Search of the kernel's tables of TCP sockets, `/proc/net/tcp` and `/proc/net/tcp6`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Longest table that is read, some 100,000 sockets; a socket behind that is not found.
const MAX_TABLE: u64 = 16 << 20;

/// The user that holds the connection from `peer` to `local`.
pub(super) fn find(peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    // A socket of the later family may have addresses of the earlier one.
    ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|path| {
        let table = BufReader::new(File::open(path).ok()?.take(MAX_TABLE));
        search(table, peer, local)
    })
}

pub(super) fn search(table: impl BufRead, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
    table.lines().skip(1).map_while(Result::ok).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (from, to) = (address(fields.next()?)?, address(fields.next()?)?);
        if (from, to) != (peer, local) {
            return None;
        }
        let state = u8::from_str_radix(fields.next()?, 16).ok()?;
        // Queues, timer and retransmissions are in between; a timeout is between user and inode.
        let uid = fields.nth(3)?.parse().ok()?;
        let inode: u64 = fields.nth(1)?.parse().ok()?;
        (super::CONNECTED.contains(&state) && inode != 0).then_some(uid)
    })
}

/// Reads an address: words of 32 bits, each in the machine's order, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let mut bytes = Vec::with_capacity(16);
    for start in (0..words.len()).step_by(8) {
        let word = u32::from_str_radix(words.get(start..start + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let address = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(address, u16::from_str_radix(port, 16).ok()?))
}
