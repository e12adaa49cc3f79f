//! Crowds of callers, and a server at its limits.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::ahp_hostile::websocket::upgraded;
use crate::ahp_hostile::{MOST_FOR_A_CROWD, assert_well, assert_well_below};
use crate::ahp_serve::server::{
    ANY_PORT, Caller, POLICY, Server, decided, decision_id, pre_action, records, until,
};
use crate::support::{Folder, binary, text};

/// Raises the descriptor limit of this process to its maximum; the server inherits it.
fn raise_descriptors() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    limit.maximum.unwrap_or(u64::MAX)
}

/// A thousand of them, or as many as this machine lets us have.
fn crowd() -> usize {
    let most = usize::try_from(raise_descriptors()).unwrap_or(usize::MAX);
    most.saturating_sub(200).min(1000)
}

#[test]
fn a_thousand_idle_connections_on_the_socket_leave_room_for_others() {
    let folder = Folder::with_policy(POLICY);
    let idle = crowd();
    let server = Server::start(&folder);
    let mut callers: Vec<Caller> = (0..idle).map(|_| server.connect()).collect();
    println!("{idle} on the Unix socket: {} MiB", server.peak() >> 20);
    assert_well(&server, "a thousand idle connections (unix)");
    // They are not dead: one of them speaks.
    assert_eq!(decided(&callers[idle / 2].tool("idle", "look")), "allow");
    drop(callers);
    server.stop();
}

#[test]
fn a_thousand_idle_connections_to_ports_leave_room_for_others() {
    let folder = Folder::with_policy(POLICY);
    let idle = crowd();
    for grpc in [false, true] {
        let server = Server::start(&folder);
        let address = if grpc { server.grpc } else { server.http };
        let mut streams: Vec<TcpStream> = (0..idle).map(|_| TcpStream::connect(address).unwrap()).collect();
        println!("{idle} on {}: {} MiB", if grpc { "gRPC" } else { "HTTP" }, server.peak() >> 20);
        assert_well(&server, "a thousand idle connections (http, grpc)");
        if !grpc {
            let stream = &mut streams[idle / 2];
            let body = pre_action("idle", "s", "look");
            stream
                .write_all((crate::ahp_serve::server::post_head("/ahp", &[], body.len()) + &body).as_bytes())
                .unwrap();
            assert_eq!(crate::ahp_serve::server::response(stream).0, 200);
        }
        drop(streams);
        server.stop();
    }
}

#[test]
fn a_thousand_idle_websockets_leave_room_for_others() {
    let folder = Folder::with_policy(POLICY);
    let idle = crowd();
    let server = Server::start(&folder);
    let mut sockets: Vec<TcpStream> = (0..idle).map(|_| upgraded(&server)).collect();
    println!("{idle} WebSockets: {} MiB", server.peak() >> 20);
    assert_well(&server, "a thousand idle connections (websocket)");
    let answer = crate::ahp_hostile::websocket::ask(&mut sockets[idle / 2], &pre_action("idle", "s", "look"));
    assert_eq!(text(&answer, "id"), "idle", "{answer}");
    drop(sockets);
    server.stop();
}

/// Sends as much as goes in, to all in turn, until nothing goes in any more. Nobody reads the answers.
fn flood(streams: &mut [impl Write], block: &[u8]) {
    let mut rest: Vec<usize> = vec![0; streams.len()];
    let (mut quiet, mut total) = (0, 0usize);
    while quiet < 50 && total < (1 << 30) {
        quiet += 1;
        for (stream, at) in streams.iter_mut().zip(&mut rest) {
            if let Ok(written) = stream.write(&block[*at..]) {
                *at = (*at + written) % block.len();
                total += written;
                quiet = 0;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

const CROWD: usize = 100;

#[test]
fn a_hundred_callers_that_send_without_reading_on_the_socket_do_not_fill_the_memory() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let mut callers: Vec<UnixStream> = (0..CROWD).map(|_| server.connect().stream).collect();
    for caller in &callers {
        caller.set_nonblocking(true).unwrap();
    }
    flood(&mut callers, format!("{}\n", pre_action("x", "s", "look")).repeat(50).as_bytes());
    println!("{CROWD} on the Unix socket: {} MiB", server.peak() >> 20);
    assert_well_below(&server, "a hundred callers that send without reading (unix)", MOST_FOR_A_CROWD);
}

#[test]
fn a_hundred_callers_that_send_without_reading_on_http_do_not_fill_the_memory() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let mut callers: Vec<TcpStream> =
        (0..CROWD).map(|_| crate::ahp_hostile::http::connect(server.http)).collect();
    for caller in &callers {
        caller.set_nonblocking(true).unwrap();
    }
    let body = pre_action("x", "s", "look");
    let head =
        crate::ahp_serve::server::post_head("/ahp", &[], body.len()).replace("connection: close\r\n", "");
    flood(&mut callers, (head + &body).repeat(50).as_bytes());
    println!("{CROWD} on HTTP: {} MiB", server.peak() >> 20);
    assert_well_below(&server, "a hundred callers that send without reading (http)", MOST_FOR_A_CROWD);
}

#[test]
fn a_hundred_callers_that_send_without_reading_on_websockets_do_not_fill_the_memory() {
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let mut callers: Vec<TcpStream> = (0..CROWD).map(|_| upgraded(&server)).collect();
    for caller in &callers {
        caller.set_nonblocking(true).unwrap();
    }
    flood(&mut callers, &crate::ahp_hostile::websocket::text_frame(&pre_action("x", "s", "look")).repeat(50));
    println!("{CROWD} WebSockets: {} MiB", server.peak() >> 20);
    assert_well_below(&server, "a hundred callers that send without reading (websocket)", MOST_FOR_A_CROWD);
}

#[test]
fn more_callers_than_the_socket_takes_close_those_that_do_nothing() {
    raise_descriptors();
    let folder = Folder::with_policy(POLICY);
    let server = Server::start(&folder);
    let mut first = server.connect();
    assert_eq!(decided(&first.tool("1", "look")), "allow");
    let crowd: Vec<UnixStream> = (0..1500).filter_map(|_| UnixStream::connect(&server.socket).ok()).collect();
    // The first of those who did nothing: its connection ends without an answer.
    let mut idlest = crowd.first().unwrap().try_clone().unwrap();
    idlest.set_read_timeout(Some(crate::ahp_serve::server::LONG)).unwrap();
    let mut rest = Vec::new();
    let _ = idlest.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    let mut last = crowd.last().unwrap().try_clone().unwrap();
    last.set_read_timeout(Some(crate::ahp_serve::server::LONG)).unwrap();
    last.write_all(format!("{}\n", pre_action("x", "s", "look")).as_bytes()).unwrap();
    assert_eq!(last.read(&mut [0u8]).unwrap(), 1, "the newest is served");
    assert_eq!(decided(&first.tool("2", "look")), "allow", "who was there first is served");
    drop((crowd, last, idlest));
    until("there is room again", || {
        let mut stream = UnixStream::connect(&server.socket).ok()?;
        stream.write_all(format!("{}\n", pre_action("y", "s", "look")).as_bytes()).ok()?;
        let mut byte = [0u8];
        (stream.read(&mut byte).ok()? == 1).then_some(())
    });
    assert_well(&server, "a crowd");
    server.stop();
}

#[test]
fn a_server_without_descriptors_serves_who_is_there_and_the_others_later() {
    raise_descriptors();
    let folder = Folder::with_policy(POLICY);
    let mut command = folder.command(&[]);
    let program = binary();
    command = {
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg("ulimit -n 64; exec \"$0\" \"$@\"").arg(program).args(ANY_PORT);
        shell.current_dir(command.get_current_dir().unwrap());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
    };
    let server = Server::spawn(command);
    let mut caller = server.connect();
    let mut answered = vec![decision_id(&caller.tool("before", "look"))];
    let (mut lines, mut plain) = (Vec::new(), Vec::new());
    for index in 0..200 {
        // The queue of those who wait to be accepted may be full, too; then there is nothing more to add.
        if let Ok(stream) = UnixStream::connect(&server.socket) {
            lines.push(stream);
        }
        plain.push(TcpStream::connect(if index % 2 == 0 { server.http } else { server.grpc }).unwrap());
    }
    until("all descriptors are taken", || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap().count();
        (open >= 62).then_some(())
    });
    for index in 0..20 {
        answered.push(decision_id(&caller.tool(&format!("during-{index}"), "look")));
    }
    let busy = cpu(server.child.id());
    for index in 0..20 {
        answered.push(decision_id(&caller.tool(&format!("still-{index}"), "look")));
    }
    println!("processor time while it was out of descriptors: {} ticks", cpu(server.child.id()) - busy);
    drop((lines, plain));
    let mut again = server.connect();
    answered.push(decision_id(&again.tool("after", "look")));
    assert_well(&server, "it was out of descriptors");
    server.stop();
    let recorded: Vec<String> =
        records(&folder, "decision").iter().map(|record| text(record, "id").to_owned()).collect();
    for id in &answered {
        assert!(recorded.contains(id), "{id} was answered and is not on record");
    }
}

/// The processor time of a process, in ticks.
fn cpu(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after = stat.rsplit_once(')').unwrap().1;
    after.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}
