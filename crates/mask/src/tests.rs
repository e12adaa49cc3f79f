use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

fn masker(secrets: &[&str]) -> Masker {
    Masker::new(secrets.iter().copied()).unwrap()
}

/// Output of a masked stream whose chunks end at these positions.
fn in_chunks(masker: &Masker, bytes: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut stream = masker.stream();
    let mut rest = bytes;
    for &size in sizes {
        let (chunk, later) = rest.split_at(size.min(rest.len()));
        stream.push(chunk, &mut out);
        rest = later;
    }
    stream.push(rest, &mut out);
    stream.finish(&mut out);
    out
}

#[test]
fn whole_values_are_masked_and_neighbours_stay() {
    let masker = masker(&["hunter2", "hunter2-long"]);
    assert_eq!(masker.mask_text("xhunter2y hunter2-longer hunter"), "x[REDACTED]y [REDACTED]er hunter");
    assert_eq!(masker.mask_text("hunter2hunter2"), "[REDACTED][REDACTED]");
}

#[test]
fn overlapping_values_leave_no_remainder() {
    assert_eq!(masker(&["abcd", "cdef"]).mask_text("-abcdef-"), "-[REDACTED]-");
    assert_eq!(masker(&["aaaa"]).mask_text("baaaaaab"), "b[REDACTED]b");
}

#[test]
fn every_encoding_is_masked_with_its_border_characters() {
    let secret = "pa/ss?wörd+1>";
    let masker = masker(&[secret]);
    for before in ["", "u", "u:", "usr", "user"] {
        for after in ["", "\n", ";x", "...", "abcd"] {
            let plain = format!("{before}{secret}{after}");
            for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
                let shown = masker.mask_text(&format!("<{}>", engine.encode(&plain)));
                assert!(shown.contains(MARK), "{before:?} {after:?} {shown}");
                // Nothing remains but characters of the neighbours: their own bits, and padding.
                let left: String =
                    shown.replace(MARK, "").chars().filter(|it| !"<>=".contains(*it)).collect();
                assert!(
                    left.len() <= (before.len() * 8).div_ceil(6) + (after.len() * 8).div_ceil(6),
                    "{shown}"
                );
                if before.len() % 3 == 0 && after.is_empty() {
                    assert_eq!(left.len(), before.len() * 8 / 6, "{shown}");
                }
            }
        }
    }
}

#[test]
fn escapes_of_escapes_are_masked() {
    let masker = masker(&["to\"k/en é𝄞"]);
    for text in [
        r#"to\"k\/en é𝄞"#,
        r"\u0074\u006f\u0022k\u002Fen\u0020\u00e9\ud834\udd1e",
        r#"to\\\"k\\/en \\u00e9\\uD834\\uDD1E"#,
        "to%22k%2fen%20%C3%A9%f0%9d%84%9e",
        "to%22k%2Fen+%c3%a9%F0%9D%84%9E",
        "to%2522k%252Fen%2520%25C3%25A9%25F0%259D%2584%259E",
        r"to\u002522k\u00252Fen%20\u0025C3%A9\u0025F0%9D%84%9E",
        "to%5C%22k%5C%2Fen%20%5Cu00e9%5CuD834%5Cudd1e",
    ] {
        assert_eq!(masker.mask_text(&format!("[{text}]")), format!("[{MARK}]"), "{text}");
    }
}

#[test]
fn spellings_of_programs_are_masked() {
    for (secret, text) in [
        ("first line\nsecond/line\nthird", "first line\r\n    second/line\r\n    third"),
        ("first line\nsecond/line\nthird", "first line\\n  second\\/line\\nthird"),
        ("hunter2hunter2", "68756e7465723268756e74657232"),
        ("hunter2hunter2", "68756E7465723268756E74657232"),
        ("hunter2hunter2", "\\x68unter2\\x68unter2"),
        ("hunter2hunter2", "hunt\0er2hunter2"),
        ("hunter2hunter2", "hunt\x1b[1;31mer2\x1b[0mhunter2"),
        ("hunter2hunter2", "hunt\\u001b[1;31mer2hunter2"),
        ("hunter2hunter2", "hunter2\n  hunter2"),
        ("two words & \"more\"", "two words &amp; &quot;more&#34;"),
        ("two words & \"more\"", "two+words+%26+%22more%22"),
        ("two words $HOME", "two\\ words\\ \\$HOME"),
    ] {
        let masker = masker(&[secret]);
        assert_eq!(masker.mask_text(&format!("<{text}>")), format!("<{MARK}>"), "{text}");
        for size in 1..9 {
            let shown = in_chunks(&masker, format!("<{text}>").as_bytes(), &[size; 40]);
            assert_eq!(String::from_utf8_lossy(&shown), format!("<{MARK}>"), "{text}");
        }
    }
}

#[test]
fn base64_over_several_lines_is_masked() {
    let masker = masker(&["hunter2hunter2"]);
    for before in 40..60 {
        let encoded = STANDARD.encode(format!("{}hunter2hunter2{}", "a".repeat(before), "z".repeat(40)));
        let lines: Vec<&str> =
            encoded.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        assert!(masker.mask_text(&lines.join("\n")).contains(MARK), "{before}");
        assert!(masker.mask_text(&lines.join("\\r\\n")).contains(MARK), "{before}");
    }
}

#[test]
fn the_beginning_of_a_value_is_left_out_where_a_text_was_cut_off() {
    let masker = masker(&["hunter2hunter2"]);
    for (text, shown) in [
        ("the key hunter2hu", "the key "),
        ("the key hunt%65r2h", "the key "),
        ("the key aHVudGVyM", "the key "),
        ("the key hunter2hunter2", "the key [REDACTED]"),
        ("the keyh", "the keyh"),
    ] {
        let (mut stream, mut out) = (masker.stream(), Vec::new());
        stream.push(text.as_bytes(), &mut out);
        stream.finish_cut_off(&mut out);
        assert_eq!(String::from_utf8(out).unwrap().trim(), shown.trim(), "{text}");
    }
}

#[test]
fn names_are_shown_and_noted() {
    let masker = Masker::named([("A", "hunter2"), ("B", "hunter2-long"), ("C", "absent")]).unwrap();
    let mut found = BTreeSet::new();
    let shown = masker.mask_text_noting("x hunter2-long, hunter2", &mut found);
    assert_eq!(shown, "x [REDACTED:B], [REDACTED:A]");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["A", "B"]);
}

#[test]
fn numbers_in_json_lines_become_strings() {
    let masker = Masker::named([("PIN", "48215550937261")]).unwrap();
    let (mut stream, mut out) = (masker.stream().of_json_lines(), Vec::new());
    stream.push(
        b"{\"a\\\"\":48215550937261,\"b\":\"48215550937261\"}\nit's 5\" 48215550937261\n[48215550937261]\n",
        &mut out,
    );
    stream.finish(&mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\"a\\\"\":\"[REDACTED:PIN]\",\"b\":\"[REDACTED:PIN]\"}\nit's 5\" [REDACTED:PIN]\n[\"[REDACTED:PIN]\"]\n"
    );
}

#[test]
fn base64_inside_json_and_urls_is_masked() {
    let masker = masker(&["???>>~~zz"]);
    let encoded = STANDARD.encode("???>>~~zz");
    assert!(encoded.contains('/') && encoded.contains('+'), "{encoded}");
    let json = encoded.replace('/', "\\/").replace('+', "\\u002b");
    let url = encoded.replace('/', "%2F").replace('+', "%2b");
    let form = STANDARD.encode(r#"{"k":"a\"b"}"#);
    assert!(!masker.mask_text(&json).contains(&json[4..8]));
    assert!(!masker.mask_text(&url).contains(&url[..4]));
    // A value that was escaped before it was encoded.
    assert!(
        super::tests::masker(&["a\"bcd"]).mask_text(&STANDARD.encode(r#"{"k":"a\"bcd"}"#)).contains(MARK)
    );
    assert!(!masker.mask_text(&form).contains(MARK));
}

#[test]
fn hexadecimal_digits_are_masked() {
    let masker = masker(&["hunter2"]);
    assert_eq!(masker.mask_text("<68756e74657232>"), "<[REDACTED]>");
    assert_eq!(masker.mask_text("<68756E74657232>"), "<[REDACTED]>");
}

#[test]
fn values_that_were_broken_into_lines_are_masked() {
    let secret: String = (0_u8..200).map(|number| char::from(b'a' + number % 26)).collect();
    let masker = masker(&[&secret]);
    for (before, engine) in [("", &STANDARD), ("x", &STANDARD), ("xy", &URL_SAFE_NO_PAD)] {
        let encoded = engine.encode(format!("{before}{secret}zzz"));
        for (width, separator) in
            [(76, "\n"), (64, "\r\n"), (10, "\n    "), (1, "\n"), (76, "\\n"), (76, "\\r\\n\\t")]
        {
            let lines: Vec<&str> =
                encoded.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
            let text = format!("<{}>", lines.join(separator));
            let shown = masker.mask_text(&text);
            assert!(shown.len() < 40 && shown.contains(MARK), "{width} {separator:?}: {shown}");
            for size in [1, 7, 77] {
                let sizes = vec![size; text.len() / size];
                assert_eq!(in_chunks(&masker, text.as_bytes(), &sizes), shown.as_bytes(), "{width} {size}");
            }
        }
    }
    let text = format!("{}\n{}", &secret[..90], &secret[90..]);
    assert_eq!(masker.mask_text(&text), MARK);
}

#[test]
fn line_breaks_and_blanks_without_end_are_not_held_back() {
    let masker = masker(&["hunter2"]);
    for filler in ["\n", "\r", "\r\n", " ", "\n  ", "\t\n", "%0a", "\\n"] {
        let mut stream = masker.stream();
        let mut out = Vec::new();
        stream.push(b"hunt", &mut out);
        for _ in 0..100 {
            stream.push(filler.repeat(1000).as_bytes(), &mut out);
        }
        let total = 4 + filler.len() * 100_000;
        assert!(total - out.len() < 4096, "{filler:?}: {} bytes are held back", total - out.len());
    }
}

#[test]
fn malformed_escapes_pass_unchanged() {
    let masker = masker(&["hunter2"]);
    for text in
        ["%", "%4", "%zz", "100% \\", "\\u12", "\\ud800", "\\ud800\\u0041", "\\x41", "%%41", "\\\\u0041"]
    {
        assert_eq!(masker.mask_text(text), text);
    }
}

#[test]
fn text_that_cannot_be_a_secret_is_released_at_once() {
    let masker = masker(&["hunter2"]);
    let mut stream = masker.stream();
    let mut out = Vec::new();
    stream.push(b"progress 1\n", &mut out);
    assert_eq!(out, b"progress 1\n");
    stream.push(b"hunt", &mut out);
    assert_eq!(out, b"progress 1\n");
    stream.push(b"er2\n}", &mut out);
    assert_eq!(out, b"progress 1\n[REDACTED]\n}");
}

#[test]
fn short_and_trimmed_values_are_masked_too() {
    assert_eq!(masker(&["x"]).mask_text("axb"), "a[REDACTED]b");
    assert_eq!(masker(&[" padded\n"]).mask_text("=padded="), "=[REDACTED]=");
    assert!(masker(&[]).is_empty() && masker(&[""]).is_empty());
    assert_eq!(masker(&[]).mask_text("axb"), "axb");
}

#[test]
fn json_is_masked_in_values_names_and_numbers() {
    let masker = masker(&["hunter2", "12345678"]);
    let value =
        Json::parse(br#"{"hunter2":1,"xhunter2":12345678,"hunter2 ":["a hunter2",true,null,7]}"#).unwrap();
    assert_eq!(
        masker.mask_json(&value).to_string(),
        r#"{"[REDACTED]":1,"x[REDACTED]":"[REDACTED]","[REDACTED] ":["a [REDACTED]",true,null,7]}"#
    );
    let clash = Json::object().with("hunter2", 1).with("12345678", 2);
    assert_eq!(masker.mask_json(&clash).to_string(), r#"{"[REDACTED]":1,"[REDACTED] 2":2}"#);
}

#[test]
fn too_many_bytes_are_refused() {
    let secret = "x".repeat(MAX_SECRET_BYTES + 1);
    assert_eq!(Masker::new([secret.as_str()]).unwrap_err(), MaskError);
}

#[test]
fn nothing_of_a_secret_is_printed() {
    let masker = masker(&["hunter2"]);
    assert!(!format!("{masker:?} {:?}", masker.stream()).contains("hunter2"));
}

/// The secret written with a random choice of escapes for every character.
fn escaped(secret: &str, style: u8, choices: &[u8]) -> String {
    let mut out = String::new();
    for (character, choice) in secret.chars().zip(choices.iter().cycle()) {
        let mut buffer = [0; 4];
        let bytes = character.encode_utf8(&mut buffer).bytes();
        match (style, choice % 4) {
            (1, 0 | 1) => bytes.for_each(|byte| out.push_str(&format!("%{byte:02X}"))),
            (1, 2) => bytes.for_each(|byte| out.push_str(&format!("%{byte:02x}"))),
            (2, 0 | 1) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            (2, 2) if character == '/' => out.push_str("\\/"),
            (1, _) if character == '%' => out.push_str("%25"),
            (2, _) if character == '"' || character == '\\' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push(character),
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_occurrence_survives_and_other_bytes_stay(
        secrets in prop::collection::vec("[A-Za-z0-9/+\"\\\\%. é𝄞-]{5,24}", 1..4),
        pieces in prop::collection::vec((0_u8..8, 0_usize..4, prop::collection::vec(any::<u8>(), 1..8), "[#!()\n]{0,5}"), 0..8),
        sizes in prop::collection::vec(1_usize..9, 0..60),
    ) {
        let masker = Masker::new(secrets.iter().map(String::as_str)).unwrap();
        let (mut text, mut expected) = (String::new(), String::new());
        for (style, which, choices, filler) in &pieces {
            let secret = &secrets[which % secrets.len()];
            text.push_str(&match style {
                3 => STANDARD.encode(secret),
                4 => URL_SAFE_NO_PAD.encode(secret),
                5 => escaped(&escaped(secret, 2, choices), 1, choices),
                6 => escaped(&escaped(secret, 2, choices), 2, choices),
                7 => escaped(&escaped(&escaped(secret, 2, choices), 2, choices), 2, choices),
                _ => escaped(secret, *style, choices),
            });
            // A separator that occurs in no secret and no encoding.
            text.push_str(&format!("\n#{filler}\n"));
            expected.push_str(&format!("\n#{filler}\n"));
        }
        let whole = masker.mask(text.as_bytes());
        let chunked = in_chunks(&masker, text.as_bytes(), &sizes);
        prop_assert_eq!(&whole, &chunked);
        let shown = String::from_utf8(whole).unwrap();
        prop_assert_eq!(shown.replace(MARK, "").replace('=', ""), expected.replace('=', ""));
    }

    #[test]
    fn bytes_without_a_secret_are_never_changed(
        bytes in prop::collection::vec(prop_oneof![Just(b'%'), Just(b'\\'), Just(b'u'), any::<u8>()], 0..300),
        sizes in prop::collection::vec(0_usize..20, 0..40),
    ) {
        // 24 bytes do not arise by chance.
        let masker = masker(&["QkHq0o2Vd1mXWz8sT4uYb7Lp"]);
        prop_assert_eq!(in_chunks(&masker, &bytes, &sizes), bytes);
    }

    #[test]
    fn raw_occurrences_in_any_bytes_are_masked(
        before in prop::collection::vec(prop::sample::select(b"abAB%\\u0041 ".to_vec()), 0..40),
        after in prop::collection::vec(prop::sample::select(b"abAB%\\u0041 ".to_vec()), 0..40),
        secret in "[abAB%\\\\u041]{2,8}",
        sizes in prop::collection::vec(0_usize..7, 0..40),
    ) {
        let masker = Masker::new([secret.as_str()]).unwrap();
        let bytes = [&before, secret.as_bytes(), &after].concat();
        let shown = in_chunks(&masker, &bytes, &sizes);
        prop_assert_eq!(&shown, &masker.mask(&bytes));
        let remains = String::from_utf8_lossy(&shown).replace(MARK, "\n");
        prop_assert!(!remains.contains(&secret), "{} in {}", secret, remains);
    }
}
