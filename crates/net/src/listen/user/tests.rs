use std::net::{SocketAddr, TcpListener, TcpStream};

use super::{netlink, of_peer, table};

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A connection of this process to itself: both ends, the client's first.
#[expect(clippy::unwrap_used, reason = "a test")]
fn connection(listener: &TcpListener, to: SocketAddr) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(to).unwrap();
    let (served, _) = listener.accept().unwrap();
    (client, served)
}

#[test]
fn the_user_of_a_connection_is_found_both_ways_and_in_both_families() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let listener = TcpListener::bind(address).unwrap();
        let (_client, served) = connection(&listener, listener.local_addr().unwrap());
        let (peer, local) = (served.peer_addr().unwrap(), served.local_addr().unwrap());
        assert_eq!(of_peer(peer, local), Some(own()), "{address}");
        assert_eq!(netlink::find(peer, local).unwrap(), Some(own()), "{address}");
        assert_eq!(table::find(peer, local), Some(own()), "{address}");
    }
}

#[test]
fn clients_of_either_family_are_found_behind_a_listener_for_both() {
    let listener = TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for to in [format!("127.0.0.1:{port}"), format!("[::ffff:127.0.0.1]:{port}")] {
        let (_client, served) = connection(&listener, to.parse().unwrap());
        let (peer, local) = (served.peer_addr().unwrap(), served.local_addr().unwrap());
        assert_eq!(of_peer(peer, local), Some(own()), "{to}");
        let canonical = |it: SocketAddr| SocketAddr::new(it.ip().to_canonical(), it.port());
        assert_eq!(table::find(canonical(peer), canonical(local)), Some(own()), "{to}");
    }
}

/// The kernel says 0 for sockets without an owner, which is root's number.
#[test]
fn a_socket_that_its_process_has_closed_belongs_to_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (client, served) = connection(&listener, listener.local_addr().unwrap());
    let (peer, local) = (served.peer_addr().unwrap(), served.local_addr().unwrap());
    drop(client);
    assert_eq!(netlink::find(peer, local).unwrap(), None);
    assert_eq!(table::find(peer, local), None);
    // A socket that listens on the closed one's port is not its owner's.
    drop(served);
    let other: SocketAddr = "127.0.0.1:1".parse().unwrap();
    assert_eq!(of_peer(listener.local_addr().unwrap(), other), None);
    assert_eq!(of_peer("192.0.2.1:7".parse().unwrap(), other), None);
}

#[test]
fn lines_of_the_table_are_matched_by_both_ends() {
    let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100\n\
        1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 12 1 0 100\n\
        2: 0100007F:9C41 0100007F:1F90 04 00000000:00000000 00:00000000 00000000     0        0 0 1 0 100\n\
        3: 0100007F:9C42 0100007F:1F90 02 00000000:00000000 00:00000000 00000000  1001        0 14 1 0 100\n\
        4: short\n";
    let text =
        if cfg!(target_endian = "big") { text.replace("0100007F", "7F000001") } else { text.to_owned() };
    let find = |port: u16| {
        let peer = SocketAddr::from(([127, 0, 0, 1], port));
        table::search(text.as_bytes(), peer, "127.0.0.1:8080".parse().unwrap())
    };
    assert_eq!(find(40000), Some(1001));
    assert_eq!((find(40001), find(40002), find(8080)), (None, None, None));
}
