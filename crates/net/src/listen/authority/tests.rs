use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What is left of the input after the filter, given in pieces of this size.
async fn filtered(input: &[u8], piece: usize) -> Vec<u8> {
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let mut filter = AuthorityFilter::new(server);
    let mut output = Vec::new();
    for part in input.chunks(piece) {
        client.write_all(part).await.unwrap();
    }
    drop(client);
    filter.read_to_end(&mut output).await.unwrap();
    output
}

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
}

fn literal(first: &[u8], value: &[u8]) -> Vec<u8> {
    [first, &[u8::try_from(value.len()).unwrap()], value].concat()
}

/// The method, and the path as a literal whose text must not be taken for the authority.
fn around(field: &[u8]) -> Vec<u8> {
    [&[0x83, 0x86], &*literal(&[0x44], b"/:authority"), field, &[0x5f, 1, b'x']].concat()
}

#[tokio::test]
async fn an_authority_that_is_a_path_is_replaced_however_it_is_written() {
    let path: &[u8] = b"%2Ftmp%2Frun%2Fassembly.sock";
    let named = |prefix: u8| [&[prefix, 10], NAME].concat();
    let coded = [&[0x40, 0x80 | 8], CODED_NAME].concat();
    for first in [vec![0x41], vec![0x01], vec![0x11], named(0x40), named(0x00), coded] {
        let block = around(&literal(&first, path));
        let expected = around(&literal(&first, VALUE));
        let padded = |block: &[u8]| [&[2, 0, 0, 0, 0, 9], block, &[0, 0]].concat();
        let input = [
            PREFACE,
            &frame(4, 0, &[0, 3, 0, 0, 0, 9]),
            &frame(HEADERS, 4, &block),
            &frame(0, 1, b"a body that is longer than one piece"),
            &frame(HEADERS, 4 | PADDED | PRIORITY, &padded(&block)),
            // Trailers have none.
            &frame(HEADERS, 5, &literal(&[0x00, 1, b'a'], b"b")),
        ];
        let mut output = input.map(<[u8]>::to_vec);
        output[2] = frame(HEADERS, 4, &expected);
        output[4] = frame(HEADERS, 4 | PADDED | PRIORITY, &padded(&expected));
        for piece in [1, 7, 100_000] {
            assert_eq!(filtered(&input.concat(), piece).await, output.concat(), "{first:?}, {piece}");
        }
    }
}

#[test]
fn the_value_never_gets_longer() {
    for (value, text) in [(&b"%2Fa"[..], &b"loca"[..]), (b"/", b"l"), (b"localhost", b"localhost")] {
        let frame = frame(HEADERS, 4, &literal(&[0x41], value));
        assert!(replaced(&frame, 4).unwrap().ends_with(&literal(&[0x41], text)));
    }
    // 9 coded bytes are at least 3 characters.
    let coded = frame(HEADERS, 4, &[&[0x41, 0x80 | 9][..], &[0; 9]].concat());
    assert!(replaced(&coded, 4).unwrap().ends_with(&literal(&[0x41], b"loc")));
    assert_eq!(replaced(&frame(HEADERS, 4, &literal(&[0x41], b"")), 4), None);
}

#[tokio::test]
async fn anything_else_is_passed_on_as_it_is() {
    let cut = frame(HEADERS, 4, &[0x41, 100, b'x']);
    let huge = [&[0xff, 0xff, 0xff, HEADERS, 4, 0, 0, 0, 1], &[0x41; 50][..]].concat();
    for input in [
        b"GET / HTTP/1.1\r\nHost: /tmp/x\r\n\r\n".to_vec(),
        b"PRI * HTTP/1.1\r\n\r\n".to_vec(),
        PREFACE[..10].to_vec(),
        [PREFACE, &cut].concat(),
        [PREFACE, &huge].concat(),
        [PREFACE, &frame(HEADERS, 4 | PADDED, &[200, 0x41, 1, b'x'])].concat(),
        [PREFACE, &frame(HEADERS, 4, &[0x41, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])].concat(),
        [PREFACE, &frame(HEADERS, 4, &literal(&[0x41], &[b'/'; 100]))[..50]].concat(),
    ] {
        for piece in [1, 100_000] {
            assert_eq!(filtered(&input, piece).await, input);
        }
    }
}
