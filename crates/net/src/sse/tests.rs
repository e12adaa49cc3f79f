use proptest::prelude::*;

use super::*;

type Decoded = Result<Vec<(String, Vec<u8>)>, TooLong>;

/// The events of a stream that comes in these chunks.
fn decode_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Decoded {
    let mut decoder = Decoder::new(limit);
    let mut events = Vec::new();
    let mut keep = |event: Event| events.push((event.name, event.data.to_vec()));
    for chunk in chunks {
        let mut chunk = Bytes::copy_from_slice(chunk);
        while let Some(event) = decoder.decode(&mut chunk)? {
            keep(event);
        }
        assert!(chunk.is_empty(), "a decoder without an event has used up the chunk");
    }
    if let Some(event) = decoder.finish()? {
        keep(event);
    }
    Ok(events)
}

fn check(text: &str, expected: &[(&str, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(name, data)| ((*name).to_owned(), data.as_bytes().to_vec())).collect();
    let decoded = decode_chunks([text.as_bytes()], MAX_EVENT);
    assert_eq!(decoded.as_ref(), Ok(&expected), "{text:?} at once");
    let bytes = decode_chunks(text.as_bytes().chunks(1), MAX_EVENT);
    assert_eq!(bytes, Ok(expected), "{text:?} byte by byte");
}

#[test]
fn streams_are_read_as_browsers_read_them() {
    check("data: a\n\n", &[("", "a")]);
    check("data: a\r\rdata: b\r\n\r\ndata: c\n\n", &[("", "a"), ("", "b"), ("", "c")]);
    check("data: a\ndata:b\ndata:  c\n\n", &[("", "a\nb\n c")]);
    check("event: response\ndata: {}\n\ndata: 2\n\n", &[("response", "{}"), ("", "2")]);
    check("event: x\nevent: y\ndata: 1\n\n", &[("y", "1")]);
    check(": comment\n:\n\ndata: 1\n: more\n\n", &[("", "1")]);
    check("id: 7\nretry: 10\nunknown: x\ndata: 1\n\n", &[("", "1")]);
    // An event without data is none, and its name does not pass to the next one.
    check("event: lost\n\ndata: 1\n\n", &[("", "1")]);
    check("data\n\ndata\ndata\n\ndata:\n\n", &[("", ""), ("", "\n"), ("", "")]);
    check("data:a:b: c\n\n", &[("", "a:b: c")]);
    check("Data: 1\n\n data: 2\n\n", &[]);
    check("\u{feff}data: 1\n\n", &[("", "1")]);
    check("\u{feff}\u{feff}data: 1\n\ndata: 2\n\n", &[("", "2")]);
    check("", &[]);
    check("\n\r\n\r\r\n\n", &[]);
}

#[test]
fn a_last_block_without_a_blank_line_is_delivered() {
    check("data: 1", &[("", "1")]);
    check("data: 1\n", &[("", "1")]);
    check("data: 0\n\nevent: response\r\ndata: {\r\ndata: }", &[("", "0"), ("response", "{\n}")]);
    check("data: 0\n\nevent: response", &[("", "0")]);
}

#[test]
fn lines_and_events_are_bounded() {
    let ok = |text: &str| decode_chunks(text.as_bytes().chunks(3), 8).is_ok();
    assert!(ok("data:abc\n\ndata:abc\n\n"));
    assert!(!ok("data:abcd\n\n"));
    // A line without an end, a comment without an end, and a block of many short lines.
    assert!(!ok("xxxxxxxxx"));
    assert!(!ok(":xxxxxxxx"));
    assert!(ok("data:12\ndata:34\ndata:56\n\n"));
    assert!(!ok("data:12\ndata:34\ndata:56\ndata\n\n"));
    assert!(ok(&"event:xy\n".repeat(1000)));
}

proptest! {
    #[test]
    fn chunks_do_not_change_the_events(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just("data: "), Just("data:"), Just("data"), Just("event: "), Just(":"), Just("id: 1"), Just(" "),
                Just("\n"), Just("\r"), Just("\r\n"), Just("\n\n"), Just("\u{feff}"), Just("x"), Just("{\"a\":1}"),
            ],
            0..60,
        ),
        cuts in proptest::collection::vec(1_usize..9, 1..40),
        limit in prop_oneof![Just(MAX_EVENT), 4_usize..40],
    ) {
        let text = pieces.concat();
        let mut chunks = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, behind) = rest.split_at((*cut).min(rest.len()));
            chunks.push(chunk);
            rest = behind;
        }
        prop_assert_eq!(decode_chunks(chunks, limit), decode_chunks([text.as_bytes()], limit));
    }

    #[test]
    fn written_events_are_read_again(
        events in proptest::collection::vec(("[a-z]{0,5}", "[ -~\n]{0,20}"), 0..8),
        end in prop_oneof![Just("\n"), Just("\r"), Just("\r\n")],
    ) {
        let mut text = String::new();
        for (name, data) in &events {
            text.push_str(&format!("event: {name}{end}"));
            for line in data.split('\n') {
                text.push_str(&format!("data: {line}{end}"));
            }
            text.push_str(end);
        }
        let expected: Vec<_> =
            events.into_iter().map(|(name, data)| (name, data.into_bytes())).collect();
        prop_assert_eq!(decode_chunks([text.as_bytes()], MAX_EVENT), Ok(expected));
    }
}
