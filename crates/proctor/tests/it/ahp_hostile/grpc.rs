//! gRPC: frames of HTTP/2, written by hand.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::ahp_hostile::http::{PREFACE, connect, pour};
use crate::ahp_hostile::{Attack, messages};
use crate::ahp_serve::server::{Server, pre_action};

pub fn attacks() -> Vec<Attack> {
    vec![
        ("messages that are none (grpc)", broken_messages),
        ("200 MB in one message (grpc)", long_message),
        ("200 MB of a head (grpc)", endless_head),
        ("floods of small frames (grpc)", floods),
        ("frames that are none (grpc)", broken_frames),
        ("connections cut in the middle (grpc)", cut),
        ("calls that are begun and taken back (grpc)", taken_back),
    ]
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// A header, neither compressed nor remembered.
fn header(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0, u8::try_from(name.len()).unwrap()];
    out.extend(name.as_bytes());
    out.push(u8::try_from(value.len()).unwrap());
    out.extend(value.as_bytes());
    out
}

fn head(method: &str) -> Vec<u8> {
    [
        header(":method", "POST"),
        header(":scheme", "http"),
        header(":path", &format!("/proctor.ahp.v1.Harness/{method}")),
        header(":authority", "127.0.0.1"),
        header("content-type", "application/grpc"),
        header("te", "trailers"),
    ]
    .concat()
}

/// A message with its prefix: not compressed, so long.
fn message(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend(bytes);
    out
}

/// `proctor.ahp.v1.Request` with these fields.
fn request(id: &[u8], method: &[u8], params: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (tag, bytes) in [(0x0a, id), (0x12, method), (0x1a, params)] {
        out.push(tag);
        let mut length = bytes.len();
        while length >= 0x80 {
            out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        out.push(u8::try_from(length).unwrap());
        out.extend(bytes);
    }
    out
}

fn greeted(server: &Server) -> TcpStream {
    let mut stream = connect(server.grpc);
    stream.write_all(PREFACE).unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    stream
}

/// Ends the sending half, and reads what the server has to say until it ends the connection.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

/// Makes a call; returns the content of the answer, and whatever else came.
fn call(server: &Server, method: &str, body: &[u8]) -> Vec<u8> {
    let mut stream = greeted(server);
    stream.write_all(&frame(HEADERS, END_HEADERS, 1, &head(method))).unwrap();
    // All within the window that a stream begins with.
    assert!(body.len() < 65_000);
    for piece in body.chunks(16_000) {
        let _ = stream.write_all(&frame(DATA, 0, 1, piece));
    }
    let _ = stream.write_all(&frame(DATA, END_STREAM, 1, &[]));
    let mut all = Vec::new();
    loop {
        let mut start = [0u8; 9];
        match stream.read_exact(&mut start) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("{method} is not answered: {body:?}")
            }
            Err(_) => return all,
        }
        let length = u32::from_be_bytes([0, start[0], start[1], start[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        if stream.read_exact(&mut payload).is_err() {
            return all;
        }
        all.extend(payload);
        let ends = matches!(start[3], DATA | HEADERS) && start[4] & END_STREAM != 0;
        if ends || matches!(start[3], RST_STREAM | GOAWAY) {
            return all;
        }
    }
}

fn contains(all: &[u8], wanted: &str) -> bool {
    all.windows(wanted.len()).any(|window| window == wanted.as_bytes())
}

fn params_of(line: &str) -> String {
    let from = line.find("\"params\":").unwrap() + "\"params\":".len();
    line[from..line.len() - 1].to_owned()
}

fn broken_messages(server: &Server) {
    let good = params_of(&pre_action("1", "s", "look"));
    let answer = call(server, "Call", &message(&request(b"1", b"ahp/event", good.as_bytes())));
    assert!(contains(&answer, "\"allow\""), "a good one is answered: {}", String::from_utf8_lossy(&answer));
    let deep = "[".repeat(60_000);
    let bad = [
        vec![],
        vec![0xff; 100],
        message(&[]),
        message(&[0xff; 100]),
        message(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
        message(&request(&[0xff, 0xfe], b"ahp/event", good.as_bytes())),
        message(&request(b"1", b"ahp/nothing", good.as_bytes())),
        message(&request(b"1", b"ahp/event", b"")),
        message(&request(b"1", b"ahp/event", b"{")),
        message(&request(b"1", b"ahp/event", &[0xff; 50])),
        message(&request(b"1", b"ahp/event", deep.as_bytes())),
        message(&request("i".repeat(10_000).as_bytes(), b"ahp/event", good.as_bytes())),
        // Said to be compressed.
        [vec![1, 0, 0, 0, 5], vec![0; 5]].concat(),
        // Shorter than it says.
        [vec![0, 0, 0, 0, 200], vec![0; 5]].concat(),
        // Longer than it says.
        [message(&request(b"1", b"ahp/event", b"{}")), vec![0; 20]].concat(),
        [vec![0, 0xff, 0xff, 0xff, 0xff], vec![0; 5]].concat(),
    ];
    for method in ["Call", "Notify", "Stream", "Nothing"] {
        for body in &bad {
            let answer = call(server, method, body);
            assert!(!contains(&answer, "\"allow\""), "{method} {body:?}");
        }
    }
    for params in messages::broken().iter().filter(|params| params.len() < 60_000) {
        let answer = call(server, "Call", &message(&request(b"1", b"ahp/event", params)));
        assert!(!contains(&answer, "\"allow\""), "{}", String::from_utf8_lossy(params));
    }
}

fn long_message(server: &Server) {
    for method in ["Call", "Notify", "Stream"] {
        // The prefix says 200 MB; the rest follows, whatever the server's window is.
        let mut stream = greeted(server);
        stream.write_all(&frame(HEADERS, END_HEADERS, 1, &head(method))).unwrap();
        stream.write_all(&frame(DATA, 0, 1, &[0, 0x0c, 0x80, 0, 0])).unwrap();
        let taken = pour(&mut stream, &frame(DATA, 0, 1, &[b' '; 16_000]).repeat(64), 200);
        assert!(taken < (200 << 20), "{method}: all of it was taken");
    }
}

fn endless_head(server: &Server) {
    let piece = header("x-piece", &"y".repeat(120)).repeat(120);
    let mut stream = greeted(server);
    stream.write_all(&frame(HEADERS, 0, 1, &head("Call"))).unwrap();
    let taken = pour(&mut stream, &frame(CONTINUATION, 0, 1, &piece).repeat(64), 200);
    assert!(taken < (200 << 20), "all of it was taken");
    // The same in many calls, with heads that end.
    let mut stream = greeted(server);
    let mut all = Vec::new();
    for index in 0..200 {
        all.extend(frame(HEADERS, END_HEADERS, index * 2 + 1, &[head("Call"), piece.clone()].concat()));
    }
    pour(&mut stream, &all, 1);
}

fn floods(server: &Server) {
    let floods = [
        frame(PING, 0, 0, &[0; 8]),
        frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0xff, 0xff]),
        // An option that the server does not know.
        frame(SETTINGS, 0, 0, &[0xff, 0xff, 0, 0, 0, 1]),
        frame(0xee, 0, 0, &[0; 8]),
    ];
    for flood in floods {
        let mut stream = greeted(server);
        // Nobody reads the answers.
        crate::ahp_hostile::http::stuff(&mut stream, &flood.repeat(1000), 32 << 20);
    }
    // Messages without content on a stream that never ends.
    let mut stream = greeted(server);
    stream.write_all(&frame(HEADERS, END_HEADERS, 1, &head("Stream"))).unwrap();
    crate::ahp_hostile::http::stuff(&mut stream, &frame(DATA, 0, 1, &[]).repeat(1000), 8 << 20);
}

fn broken_frames(server: &Server) {
    let frames = [
        frame(DATA, 0, 1, b"no head came before"),
        frame(HEADERS, END_HEADERS, 0, &head("Call")),
        frame(HEADERS, END_HEADERS, 2, &head("Call")),
        frame(HEADERS, END_HEADERS, 1, &[0xff; 100]),
        frame(HEADERS, END_HEADERS | 8, 1, &[0xff; 10]),
        frame(SETTINGS, 0, 0, &[1, 2, 3]),
        frame(SETTINGS, 0, 1, &[]),
        frame(PING, 0, 0, &[1]),
        frame(CONTINUATION, END_HEADERS, 1, &[]),
        frame(RST_STREAM, 0, 1, &[0; 4]),
        // A window that no window can be.
        frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
        frame(8, 0, 0, &[0; 4]),
        // Longer than was agreed.
        frame(DATA, 0, 1, &vec![0; 20_000]),
        frame(5, 4, 1, &[0; 8]),
    ];
    for bytes in frames {
        let mut stream = greeted(server);
        let _ = stream.write_all(&bytes);
        let _ = rest(&mut stream);
    }
}

fn cut(server: &Server) {
    let params = params_of(&pre_action("cut", "s", "look"));
    let body = message(&request(b"cut", b"ahp/event", params.as_bytes()));
    let whole = [
        PREFACE.to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(HEADERS, END_HEADERS, 1, &head("Call")),
        frame(DATA, END_STREAM, 1, &body),
    ]
    .concat();
    for length in [1, PREFACE.len() + 3, PREFACE.len() + 40, whole.len() - 20, whole.len()] {
        for _ in 0..20 {
            connect(server.grpc).write_all(&whole[..length]).unwrap();
        }
    }
}

/// Calls that are reset at once: the server drops the work of each.
fn taken_back(server: &Server) {
    let mut stream = greeted(server);
    let mut all = Vec::new();
    for index in 0..5000u32 {
        all.extend(frame(HEADERS, END_HEADERS, index * 2 + 1, &head("Stream")));
        all.extend(frame(RST_STREAM, 0, index * 2 + 1, &[0, 0, 0, 8]));
    }
    pour(&mut stream, &all, 1);
}
