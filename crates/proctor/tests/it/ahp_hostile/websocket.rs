//! WebSocket frames, written by hand.

use std::io::{Read, Write};
use std::net::TcpStream;

use proctor_core::json::Json;

use crate::ahp_hostile::http::{connect, pour, stuff};
use crate::ahp_hostile::{Attack, messages};
use crate::ahp_serve::server::{Server, decided, pre_action, result};
use crate::support::text;

pub fn attacks() -> Vec<Attack> {
    vec![
        ("odd ids (websocket)", odd_ids),
        ("broken messages (websocket)", broken_messages),
        ("200 MB in one frame (websocket)", long_frame),
        ("200 MB in fragments (websocket)", endless_fragments),
        ("200 MB of fragments without content (websocket)", empty_fragments),
        ("frames that are none (websocket)", broken_frames),
        ("connections cut in the middle (websocket)", cut),
        ("callers that do not read (websocket)", slow_readers),
        ("upgrades that are none (websocket)", broken_upgrades),
    ]
}

const TEXT: u8 = 1;
const CONTINUATION: u8 = 0;
const CLOSE: u8 = 8;
const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
/// Length codes of frames that are longer than one byte can say.
const TWO_BYTES: u8 = 126;
const EIGHT_BYTES: u8 = 127;

const UPGRADE: &str = "GET /ahp HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

pub fn upgraded(server: &Server) -> TcpStream {
    upgraded_at(server, "/ahp")
}

pub fn upgraded_at(server: &Server, path: &str) -> TcpStream {
    let mut stream = connect(server.http);
    stream.write_all(UPGRADE.replacen("/ahp", path, 1).as_bytes()).unwrap();
    let mut head = Vec::new();
    let mut byte = [0u8];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream
}

/// A frame as a client sends it; a mask of zeros changes nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match u16::try_from(payload.len()) {
        Ok(length @ ..=125) => out.push(MASKED | u8::try_from(length).unwrap()),
        Ok(length) => {
            out.push(MASKED | TWO_BYTES);
            out.extend(length.to_be_bytes());
        }
        Err(_) => {
            out.push(MASKED | EIGHT_BYTES);
            out.extend((payload.len() as u64).to_be_bytes());
        }
    }
    out.extend([0; 4]);
    out.extend(payload);
    out
}

/// The next message; none when the server has ended the connection.
pub fn receive(stream: &mut TcpStream) -> Option<Json> {
    loop {
        let mut head = [0u8; 2];
        stream.read_exact(&mut head).ok()?;
        let length = match head[1] {
            TWO_BYTES => {
                let mut length = [0u8; 2];
                stream.read_exact(&mut length).ok()?;
                usize::from(u16::from_be_bytes(length))
            }
            EIGHT_BYTES => {
                let mut length = [0u8; 8];
                stream.read_exact(&mut length).ok()?;
                usize::try_from(u64::from_be_bytes(length)).unwrap()
            }
            length => usize::from(length),
        };
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).ok()?;
        match head[0] & 0x0f {
            1 => return Some(Json::parse(&payload).unwrap()),
            8 => return None,
            _ => {}
        }
    }
}

pub fn text_frame(message: &str) -> Vec<u8> {
    frame(FIN | TEXT, message.as_bytes())
}

pub fn close_frame() -> Vec<u8> {
    frame(FIN | CLOSE, &[])
}

/// Sends a message, and waits for the next one.
pub fn ask(stream: &mut TcpStream, message: &str) -> Json {
    stream.write_all(&text_frame(message)).unwrap();
    receive(stream).unwrap()
}

fn odd_ids(server: &Server) {
    let mut stream = upgraded(server);
    for (message, id) in messages::odd_ids() {
        let answer = ask(&mut stream, &message);
        assert_eq!(answer.get("id"), Some(&id), "{answer}");
        assert_eq!(decided(&result(&answer)), "allow", "{answer}");
    }
}

fn broken_messages(server: &Server) {
    let mut stream = upgraded(server);
    for (index, message) in messages::broken().into_iter().enumerate() {
        let is_text = std::str::from_utf8(&message).is_ok();
        let good = format!("good-{index}");
        stream.write_all(&frame(FIN | TEXT, &message)).unwrap();
        let _ = stream.write_all(&frame(FIN | TEXT, pre_action(&good, "s", "look").as_bytes()));
        loop {
            match receive(&mut stream) {
                Some(answer) if text(&answer, "id") == good => break,
                Some(answer) => messages::assert_refused(&answer),
                // Text that is none breaks the rules of WebSocket itself: the connection ends.
                None => {
                    assert!(!is_text, "cut off: {}", String::from_utf8_lossy(&message));
                    stream = upgraded(server);
                    break;
                }
            }
        }
    }
}

fn long_frame(server: &Server) {
    let mut stream = upgraded(server);
    let mut head = vec![FIN | TEXT, MASKED | EIGHT_BYTES];
    head.extend((200u64 << 20).to_be_bytes());
    head.extend([0; 4]);
    stream.write_all(&head).unwrap();
    let taken = pour(&mut stream, &vec![b' '; 1 << 20], 200);
    assert!(taken < (200 << 20), "all of it was taken");
    // Longer than any memory.
    for length in [1u64 << 40, 1 << 62, u64::MAX] {
        let mut stream = upgraded(server);
        let mut head = vec![FIN | TEXT, MASKED | EIGHT_BYTES];
        head.extend(length.to_be_bytes());
        head.extend([0; 4]);
        let _ = stream.write_all(&head);
        assert_eq!(receive(&mut stream), None);
    }
}

fn endless_fragments(server: &Server) {
    let mut stream = upgraded(server);
    stream.write_all(&frame(TEXT, b"{")).unwrap();
    let taken = pour(&mut stream, &frame(CONTINUATION, &vec![b' '; 1 << 20]), 200);
    assert!(taken < (200 << 20), "all of it was taken");
}

fn empty_fragments(server: &Server) {
    let mut stream = upgraded(server);
    stream.write_all(&frame(TEXT, b"")).unwrap();
    let many = frame(CONTINUATION, b"").repeat(200_000);
    pour(&mut stream, &many, crate::support::count(160));
    // And pings without end.
    let mut stream = upgraded(server);
    stuff(&mut stream, &frame(FIN | 9, &[b'p'; 125]).repeat(100), 64 << 20);
}

fn broken_frames(server: &Server) {
    let message = pre_action("bad", "s", "look");
    let mut unmasked = frame(FIN | TEXT, message.as_bytes());
    unmasked[1] &= 0x7f;
    let frames = [
        unmasked,
        frame(FIN | 0x70 | TEXT, message.as_bytes()),
        frame(FIN | 3, message.as_bytes()),
        frame(FIN | CONTINUATION, message.as_bytes()),
        frame(FIN | 9, &[0; 200]),
        frame(9, b"half a ping"),
        [frame(TEXT, b"{"), frame(FIN | TEXT, message.as_bytes())].concat(),
        frame(FIN | 8, &[1]),
        frame(FIN | 8, &[0xff; 10]),
        vec![0xff; 4096],
        vec![0; 4096],
    ];
    for bytes in frames {
        let mut stream = upgraded(server);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        while let Some(answer) = receive(&mut stream) {
            messages::assert_refused(&answer);
        }
    }
    // A binary message is none of ours: passed over, and the next one answered.
    let mut stream = upgraded(server);
    stream.write_all(&frame(FIN | 2, message.as_bytes())).unwrap();
    stream.write_all(&frame(FIN | TEXT, pre_action("good", "s", "look").as_bytes())).unwrap();
    let answer = receive(&mut stream).unwrap();
    assert_eq!(text(&answer, "id"), "good", "{answer}");
}

fn cut(server: &Server) {
    let whole = frame(FIN | TEXT, pre_action("cut", "s", "look").as_bytes());
    for length in [1, 2, 4, whole.len() / 2, whole.len()] {
        for _ in 0..10 {
            upgraded(server).write_all(&whole[..length]).unwrap();
        }
    }
    for length in [1, 20, UPGRADE.len() - 1] {
        for _ in 0..10 {
            connect(server.http).write_all(&UPGRADE.as_bytes()[..length]).unwrap();
        }
    }
}

fn slow_readers(server: &Server) {
    let query = r#"{"jsonrpc":"2.0","id":"q","method":"ahp/query","params":{"session_id":"s","agent_id":"a","query_type":"policy","payload":{}}}"#;
    let block = frame(FIN | TEXT, query.as_bytes()).repeat(100);
    let mut callers: Vec<_> = (0..8).map(|_| upgraded(server)).collect();
    for caller in &mut callers {
        let taken = stuff(caller, &block, 64 << 20);
        assert!(taken < (64 << 20), "the server reads on although nobody takes its answers");
    }
    crate::ahp_hostile::assert_well(server, "callers that do not read, while they are there");
}

fn broken_upgrades(server: &Server) {
    for (from, to) in [
        ("sec-websocket-version: 13", "sec-websocket-version: 7"),
        ("sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""),
        ("upgrade: websocket\r\n", ""),
        ("host: 127.0.0.1", "host: evil.example"),
        ("host: 127.0.0.1", "host: 127.0.0.1\r\norigin: https://evil.example"),
        ("GET /ahp", "GET /nothing"),
    ] {
        assert!(UPGRADE.contains(from));
        let mut stream = connect(server.http);
        stream.write_all(UPGRADE.replace(from, to).as_bytes()).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 101"), "{to}");
    }
}
