//! HTTP, written by hand.

use std::io::{Read, Write};
use std::net::TcpStream;

use proctor_core::json::Json;

use crate::ahp_hostile::{Attack, messages};
use crate::ahp_serve::server::{LONG, Server, decided, post, post_head, pre_action, response, result};

pub fn attacks() -> Vec<Attack> {
    vec![
        ("odd ids (http)", odd_ids),
        ("broken messages (http)", broken_messages),
        ("200 MB with a length (http)", long_body),
        ("200 MB in chunks (http)", endless_body),
        ("an endless head (http)", endless_head),
        ("heads that are none (http)", broken_heads),
        ("connections cut in the middle (http)", cut),
        ("callers that do not read (http)", slow_readers),
        ("garbage after the preface of HTTP/2 (http)", garbage_http2),
    ]
}

pub fn connect(address: std::net::SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream
}

fn odd_ids(server: &Server) {
    for (body, id) in messages::odd_ids() {
        let (status, answer) = post(server.http, "/ahp", &[], body.as_bytes());
        assert_eq!(status, 200, "{answer}");
        let answer = Json::parse(answer.as_bytes()).unwrap();
        assert_eq!(answer.get("id"), Some(&id), "{answer}");
        assert_eq!(decided(&result(&answer)), "allow", "{answer}");
    }
}

fn broken_messages(server: &Server) {
    for body in messages::broken() {
        let (status, answer) = post(server.http, "/ahp", &[], &body);
        assert!(matches!(status, 200 | 400), "{status} {answer}");
        messages::assert_refused(&Json::parse(answer.as_bytes()).unwrap());
    }
    for (path, wanted) in [("/", 404), ("/ahp/", 404), ("/ahp/../ahp", 404), ("/metrics", 404)] {
        let (status, answer) = post(server.http, path, &[], pre_action("1", "s", "look").as_bytes());
        assert_eq!(status, wanted, "{path}: {answer}");
    }
}

/// Writes until the server has enough; returns how much it took.
pub fn pour(stream: &mut TcpStream, piece: &[u8], times: usize) -> usize {
    (0..times).take_while(|_| stream.write_all(piece).is_ok()).count() * piece.len()
}

fn long_body(server: &Server) {
    let mut stream = connect(server.http);
    stream.write_all(post_head("/ahp", &[], 200 << 20).as_bytes()).unwrap();
    pour(&mut stream, &vec![b' '; 1 << 20], 200);
    let (status, _) = response(&mut stream);
    assert!(matches!(status, 413 | 0), "{status}");
    // One that waits for the answer before it sends sees the refusal.
    let mut stream = connect(server.http);
    stream.write_all(post_head("/ahp", &[], 200 << 20).as_bytes()).unwrap();
    assert_eq!(response(&mut stream).0, 413);
    // Neither does a length that no number holds do harm.
    let mut stream = connect(server.http);
    let head =
        post_head("/ahp", &[], 7).replace("content-length: 7", "content-length: 99999999999999999999999");
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(response(&mut stream).0, 400);
}

fn endless_body(server: &Server) {
    let mut stream = connect(server.http);
    let head = post_head("/ahp", &[], 7).replace("content-length: 7", "transfer-encoding: chunked");
    stream.write_all(head.as_bytes()).unwrap();
    let mut chunk = b"100000\r\n".to_vec();
    chunk.extend(vec![b' '; 1 << 20]);
    chunk.extend(b"\r\n");
    let taken = pour(&mut stream, &chunk, 200);
    assert!(taken < (200 << 20), "all of it was taken");
    let (status, _) = response(&mut stream);
    assert!(matches!(status, 413 | 0), "{status}");
}

fn endless_head(server: &Server) {
    for piece in ["x: ".to_owned() + &"y".repeat(1 << 20), "x: y\r\n".repeat(100_000), "G".repeat(1 << 20)] {
        let mut stream = connect(server.http);
        stream.write_all(b"POST /ahp HTTP/1.1\r\n").unwrap();
        let taken = pour(&mut stream, piece.as_bytes(), 200);
        assert!(taken < (100 << 20), "{taken} bytes of a head were taken");
    }
}

fn broken_heads(server: &Server) {
    let body = pre_action("1", "s", "look");
    for (from, to) in [
        ("POST /ahp", "POST"),
        ("HTTP/1.1", "HTTP/9.9"),
        ("POST", "P\0ST"),
        ("host: 127.0.0.1", "host: evil.example"),
        ("content-type: application/json", "content-type: text/plain"),
        ("content-type: application/json\r\n", ""),
        ("content-length: ", "content-length: -"),
        ("content-length: ", "content-length: 1\r\ncontent-length: "),
        ("connection: close", "origin: https://evil.example"),
        ("POST /ahp", "GET /ahp"),
        ("POST /ahp", "PUT /ahp"),
    ] {
        let head = post_head("/ahp", &[], body.len());
        assert!(head.contains(from), "{from}");
        let mut stream = connect(server.http);
        let _ = stream.write_all(format!("{}{body}", head.replacen(from, to, 1)).as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let (status, answer) = response(&mut stream);
        assert!(!answer.contains("\"allow\""), "{to}: {status} {answer}");
        assert!((400..600).contains(&status) || status == 0, "{to}: {status} {answer}");
    }
    // A smuggled second request: two lengths, two meanings.
    let mut stream = connect(server.http);
    let head = post_head("/ahp", &[], 5).replace("\r\n\r\n", "\r\ntransfer-encoding: chunked\r\n\r\n");
    let _ =
        stream.write_all(format!("{head}0\r\n\r\n{}{body}", post_head("/ahp", &[], body.len())).as_bytes());
    let (_, answer) = response(&mut stream);
    assert!(!answer.contains("\"allow\""), "{answer}");
}

fn cut(server: &Server) {
    let body = pre_action("cut", "s", "look");
    let whole = post_head("/ahp", &[], body.len()) + &body;
    for length in [1, 20, whole.len() - body.len(), whole.len() - 10, whole.len()] {
        for _ in 0..20 {
            let mut stream = connect(server.http);
            stream.write_all(&whole.as_bytes()[..length]).unwrap();
        }
    }
}

/// Writes as much as goes in without anybody reading the answers.
pub fn stuff(stream: &mut TcpStream, block: &[u8], most: usize) -> usize {
    stream.set_nonblocking(true).unwrap();
    let (mut total, mut refused) = (0, 0);
    while refused < 50 && total < most {
        match stream.write(block) {
            Ok(written) => {
                total += written;
                refused = 0;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                refused += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            Err(_) => break,
        }
    }
    total
}

fn slow_readers(server: &Server) {
    let body = r#"{"jsonrpc":"2.0","id":"q","method":"ahp/query","params":{"session_id":"s","agent_id":"a","query_type":"policy","payload":{}}}"#;
    let head = post_head("/ahp", &[], body.len()).replace("connection: close\r\n", "");
    let block = format!("{head}{body}").repeat(50);
    let mut callers: Vec<_> = (0..8).map(|_| connect(server.http)).collect();
    for caller in &mut callers {
        let taken = stuff(caller, block.as_bytes(), 64 << 20);
        assert!(taken < (64 << 20), "the server reads on although nobody takes its answers");
    }
    crate::ahp_hostile::assert_well(server, "callers that do not read, while they are there");
}

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn garbage_http2(server: &Server) {
    for address in [server.http, server.grpc] {
        for garbage in [&[0xff; 4096][..], &[0; 4096], b"GET / HTTP/1.1\r\n\r\n"] {
            for start in [PREFACE, &PREFACE[..10], b""] {
                let mut stream = connect(address);
                let _ = stream.write_all(start);
                let _ = stream.write_all(garbage);
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let mut rest = Vec::new();
                // It ends, one way or the other.
                let _ = stream.read_to_end(&mut rest);
                assert!(rest.len() < 100_000);
            }
        }
    }
}
