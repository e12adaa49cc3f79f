//! A scan costs time linear in the text, whatever the text is.

use std::time::{Duration, Instant};

use super::{RANDOM, Scanner, redact};

const SIZE: usize = 1 << 20;

#[test]
fn a_megabyte_of_anything_is_scanned_and_cut_within_a_second() {
    let header = concat!("-----BEGIN RSA ", "PRIVATE KEY-----\n");
    let parts = [
        ("digits", "7"),
        ("grouped digits", "7 "),
        ("wide digits", "\u{FF17}"),
        ("separators", "-"),
        ("at signs", "@"),
        ("addresses", "<a@b.c"),
        ("signs without dots", "a@"),
        ("long local part", "ab@c"),
        ("one letter", "A"),
        ("base64", RANDOM),
        ("hex", "0123456789abcdef"),
        ("separated hex", "ab:"),
        ("prefixes", "sk-"),
        ("prefixes of many kinds", "ghp_ghs_xoxb-AKIA"),
        ("prefixes and terminators", "sk-,"),
        ("almost prefixes", "ghghgh-----BEGIN "),
        ("headers", header),
        ("headers and ends", "-----END-----BEGIN EC "),
        ("split secrets", "abcDEF012ghi JKL345mnoPQR "),
        ("labels", "[REDACTED:Custom]"),
        ("almost labels", "[REDACTED:"),
        ("brackets", "["),
        ("white space", " "),
        ("wide white space", "\u{3000}"),
        ("alternating", "a "),
        ("account keys", "AccountKey=;"),
        ("hidden account keys", concat!("AKI", "AccountKey=")),
    ];
    for (name, part) in parts {
        check(name, &part.repeat(SIZE / part.len()));
    }
    check(
        "headers before one end",
        &format!("{}{}\nx\n-----END", header.repeat(SIZE / 40), "A".repeat(SIZE / 5)),
    );
    check("an address far away", &format!("{}@b.c", "a".repeat(SIZE)));
}

fn check(name: &str, text: &str) {
    let start = Instant::now();
    let findings = Scanner::standard().scan(text);
    let redacted = redact(text, &findings);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(1), "{name}: {took:?} for {} findings", findings.len());
    assert!(redacted.len() <= text.len() * 20 + 100, "{name}");
}
