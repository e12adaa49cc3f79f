//! gRPC over a Unix socket, from clients that name the socket's path as the authority.

use proctor_clients::health;
use proctor_net::listen::{ListenOptions, serve_unix};
use proctor_net::unix::UnixSocket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

fn literal(first: u8, value: &[u8]) -> Vec<u8> {
    [&[first, u8::try_from(value.len()).unwrap()], value].concat()
}

/// Header block of a call: POST, http, path, authority, `te: trailers`, and the content type.
fn call(authority: &[u8]) -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    block.extend(literal(0x44, b"/grpc.health.v1.Health/Check"));
    block.extend(literal(0x41, authority));
    block.extend([&[0x40, 2], &b"te"[..]].concat());
    block.extend([&[8], &b"trailers"[..]].concat());
    block.extend(literal(0x5f, b"application/grpc"));
    block
}

/// The kinds of the frames of a stream, up to its end.
async fn kinds(connection: &mut UnixStream, stream: u8) -> Vec<u8> {
    let mut kinds = Vec::new();
    loop {
        let mut header = [0; 9];
        connection.read_exact(&mut header).await.unwrap();
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        connection.read_exact(&mut payload).await.unwrap();
        if header[8] == stream {
            kinds.push(header[3]);
            // A reset is an end, too.
            if header[3] == 3 || header[4] & END_STREAM != 0 {
                return kinds;
            }
        }
    }
}

#[tokio::test]
async fn the_path_of_the_socket_as_authority_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let stop = CancellationToken::new();
    let socket = UnixSocket::bind(&path).await.unwrap();
    let app = health::routes(stop.clone());
    let serving = tokio::spawn(serve_unix(socket, app, ListenOptions::default(), stop.clone()));
    let mut connection = UnixStream::connect(&path).await.unwrap();
    connection.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    connection.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let path = path.to_str().unwrap().as_bytes();
    let encoded = path.iter().fold(String::new(), |text, byte| text + &format!("%{byte:02X}"));
    let authorities: [&[u8]; 6] = [
        b"localhost",
        path,
        &encoded.as_bytes()[..encoded.len().min(90) / 3 * 3],
        b"%2Fs",
        b"/",
        b"unix:/a b?c#d@e:f",
    ];
    for (number, authority) in (0_u8..).zip(authorities) {
        let stream = 2 * number + 1;
        connection.write_all(&frame(HEADERS, END_HEADERS, stream, &call(authority))).await.unwrap();
        connection.write_all(&frame(DATA, END_STREAM, stream, &[0; 5])).await.unwrap();
        let authority = String::from_utf8_lossy(authority);
        assert_eq!(kinds(&mut connection, stream).await, [HEADERS, DATA, HEADERS], "{authority}");
    }
    // The same field again, by its index in the table.
    let stream = 13;
    let mut block = call(b"x");
    let at = block.iter().position(|byte| *byte == 0x41).unwrap();
    // The table begins at 62: the path of this call, then the content type, `te` and authority of the one before.
    block.splice(at..at + 3, [0x80 | (62 + 3)]);
    connection.write_all(&frame(HEADERS, END_HEADERS, stream, &block)).await.unwrap();
    connection.write_all(&frame(DATA, END_STREAM, stream, &[0; 5])).await.unwrap();
    assert_eq!(kinds(&mut connection, stream).await, [HEADERS, DATA, HEADERS]);
    drop(connection);
    stop.cancel();
    serving.await.unwrap().unwrap();
}
