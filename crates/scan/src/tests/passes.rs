//! Every kind and every pass. Secrets are put together from parts, so that none stands in this file.

use super::{FindingKind as K, RANDOM, found, kinds, redacted};

#[test]
fn every_literal_starts_a_finding_of_its_kind_in_any_case() {
    let literals = [
        (concat!("sk-", "ant-"), K::AnthropicKey),
        ("sk-", K::OpenAiKey),
        ("AKIA", K::AwsAccessKey),
        ("ASIA", K::AwsAccessKey),
        (r#""type": "service_account""#, K::GcpServiceAccount),
        (r#""type":"service_account""#, K::GcpServiceAccount),
        (r#""type" : "service_account""#, K::GcpServiceAccount),
        (r#""type" :"service_account""#, K::GcpServiceAccount),
        ("DefaultEndpointsProtocol=", K::AzureConnectionString),
        ("ghp_", K::GitHubPat),
        ("github_pat_", K::GitHubPat),
        ("ghs_", K::GitHubAppToken),
        ("gho_", K::GitHubOAuthToken),
        ("ghu_", K::GitHubUserToken),
        ("ghr_", K::GitHubRefreshToken),
        ("xoxb-", K::SlackBotToken),
        ("xoxp-", K::SlackUserToken),
        ("xoxa-", K::SlackOAuthToken),
        ("xapp-", K::SlackAppToken),
        ("xoxr-", K::SlackRefreshToken),
        ("postgres://", K::PostgresUrl),
        ("mysql://", K::MysqlUrl),
        ("mongodb://", K::MongodbUrl),
        (concat!("-----BEGIN RSA ", "PRIVATE KEY-----"), K::RsaPrivateKey),
        (concat!("-----BEGIN EC ", "PRIVATE KEY-----"), K::EcPrivateKey),
        (concat!("-----BEGIN OPENSSH ", "PRIVATE KEY-----"), K::OpensshPrivateKey),
        (concat!("-----BEGIN ", "PRIVATE KEY-----"), K::PrivateKey),
        (concat!("-----BEGIN PGP ", "PRIVATE KEY BLOCK-----"), K::PgpPrivateKey),
        ("AccountKey=", K::AzureConnectionString),
    ];
    for (literal, kind) in literals {
        for written in [literal.to_owned(), literal.to_uppercase(), literal.to_lowercase()] {
            let secret = format!("{written}abc");
            assert_eq!(found(&format!("x {secret} y")), [(kind, secret.as_str())], "{written}");
        }
    }
}

#[test]
fn a_literal_reaches_to_the_first_terminator_or_the_end() {
    for terminator in [
        " ", "\t", "\n", "\r", "\u{b}", "\"", "'", ",", ";", ")", "]", "}", "\u{a0}", "\u{3000}", "\u{2028}",
        "\u{85}",
    ] {
        let text = format!("(ghp_ab(c{terminator}rest");
        assert_eq!(found(&text), [(K::GitHubPat, "ghp_ab(c")], "{terminator:?}");
    }
    assert_eq!(found("ghp_äöü"), [(K::GitHubPat, "ghp_äöü")]);
    assert_eq!(found("ghp_ rest"), [(K::GitHubPat, "ghp_")]);
}

#[test]
fn literals_in_one_token_are_all_found_and_those_of_one_kind_joined() {
    assert_eq!(found("ghp_a-ghs_b"), [(K::GitHubPat, "ghp_a-ghs_b"), (K::GitHubAppToken, "ghs_b")]);
    assert_eq!(found("ghp_a-ghp_b"), [(K::GitHubPat, "ghp_a-ghp_b")]);
    assert_eq!(redacted("x=ghp_a-ghs_b."), "x=[REDACTED:GitHubPat]");
}

const HEADER: &str = concat!("-----BEGIN RSA ", "PRIVATE KEY-----");
const FOOTER: &str = concat!("-----END RSA ", "PRIVATE KEY-----");

#[test]
fn a_pem_block_with_a_short_last_line_is_cut_to_its_end() {
    let long_line = "AAAABBBB".repeat(3);
    let block = format!("{HEADER}\n{long_line}\nshort==\n{FOOTER}");
    assert_eq!(found(&format!("key: {block} rest")), [(K::RsaPrivateKey, block.as_str())]);
    assert_eq!(redacted(&format!("key: {block}.")), "key: [REDACTED:RsaPrivateKey].");

    // A long last line is left to the entropy pass, and a block of short lines is no key.
    for body in [long_line.clone(), format!("short\n{long_line}"), "short\nlines".to_owned(), String::new()] {
        let text = format!("{HEADER}\n{body}\n{FOOTER}");
        assert_eq!(found(&text), [(K::RsaPrivateKey, HEADER)], "{body}");
    }
    // Without an end line there is nothing to reach to.
    assert_eq!(found(&format!("{HEADER}\n{long_line}\nshort")), [(K::RsaPrivateKey, HEADER)]);
}

#[test]
fn the_border_between_short_and_long_pem_lines_is_twenty() {
    let reaches = |body: String| found(&format!("{HEADER}\n{body}\n{FOOTER}"))[0].1.ends_with(FOOTER);
    assert!(reaches(format!("{}\n{}", "A".repeat(20), "B".repeat(19))));
    assert!(reaches(format!("{}\nB", "A".repeat(20))));
    assert!(!reaches(format!("{}\n{}", "A".repeat(20), "B".repeat(20))));
    assert!(!reaches(format!("{}\n{}", "A".repeat(19), "B".repeat(19))));
}

#[test]
fn pem_headers_that_share_an_end_line_are_judged_each_for_itself() {
    let long_line = "AAAABBBB".repeat(3);
    // The second header sees only short lines.
    let text = format!("{HEADER}\n{long_line}\n{HEADER}\nshort\n{FOOTER}");
    let first_to_end = text.as_str();
    assert_eq!(found(&text), [(K::RsaPrivateKey, first_to_end)]);
    // Each block has its own end line.
    let block = format!("{HEADER}\n{long_line}\nx\n{FOOTER}");
    let two = format!("{block}\nbetween\n{block}");
    assert_eq!(redacted(&two), "[REDACTED:RsaPrivateKey]\nbetween\n[REDACTED:RsaPrivateKey]");
}

#[test]
fn an_end_line_without_closing_dashes_is_cut_to_the_lines_end() {
    let text = format!("{HEADER}\n{}\nshort\n-----END RSA\nrest", "A".repeat(24));
    assert_eq!(redacted(&text), "[REDACTED:RsaPrivateKey]\nrest");
}

#[test]
fn social_security_numbers_are_found_in_ascii_and_full_width() {
    assert_eq!(found("ssn=123-45-6789"), [(K::SsnPattern, "123-45-6789")]);
    let wide = "\u{FF11}\u{FF12}\u{FF13}\u{FF0D}\u{FF14}\u{FF15}\u{FF0D}\u{FF16}\u{FF17}\u{FF18}\u{FF19}";
    assert_eq!(found(&format!("番号{wide}です")), [(K::SsnPattern, wide)]);
    assert_eq!(redacted("123-45-6789, 12"), "[REDACTED:SsnPattern], 12");
    for other in [
        "123 45 6789",
        "123.45.6789",
        "123456789",
        "12-345-6789",
        "123-45-678",
        "123-45-67890",
        "123--45-6789",
        "123\u{2013}45\u{2013}6789",
        "123_45_6789",
    ] {
        assert_eq!(found(other), [], "{other}");
    }
}

/// A valid card number, put together from its parts.
fn card(separator: &str) -> String {
    ["4532", "0151", "1283", "0366"].join(separator)
}

#[test]
fn card_numbers_are_found_with_any_single_separator() {
    for separator in ["", " ", "-", ".", "\u{3000}", "\u{FF0D}", "\u{FF0E}"] {
        let number = card(separator);
        assert_eq!(
            found(&format!("card {number}!")),
            [(K::CreditCardLuhn, number.as_str())],
            "{separator:?}"
        );
    }
    for separator in ["\u{2013}", "\u{a0}", ",", "/", "_", "\t", "\n", "  ", " - "] {
        assert_eq!(found(&format!("card {}!", card(separator))), [], "{separator:?}");
    }
    // A separator at the end is not part of the number.
    let number = card("");
    assert_eq!(found(&format!("{number}-x")), [(K::CreditCardLuhn, number.as_str())]);
    let wide: String =
        number.chars().map(|digit| char::from_u32(digit as u32 - 0x30 + 0xFF10).unwrap()).collect();
    assert_eq!(found(&wide), [(K::CreditCardLuhn, wide.as_str())]);
}

#[test]
fn card_numbers_have_thirteen_to_nineteen_digits_and_a_check_digit() {
    for length in 10..=22 {
        let is_card = (13..=19).contains(&length);
        let stem = "4".repeat(length - 1);
        let valid = ('0'..='9').filter(|check| !found(&format!("{stem}{check}")).is_empty()).count();
        assert_eq!(valid, usize::from(is_card), "{length} digits");
    }
    assert_eq!(kinds("4532015112830367"), []);
}

#[test]
fn a_number_is_walked_for_twenty_four_characters_and_then_anew() {
    let number = card("");
    // Twenty-four digits are passed over together; the card after them stands on its own.
    let text = format!("{}{number}", "1".repeat(24));
    assert_eq!(found(&text), [(K::CreditCardLuhn, number.as_str())]);
    // Digits before it, within the walk, belong to the number.
    assert_eq!(found(&format!("11{}{number}", "1".repeat(4))), []);
}

#[test]
fn addresses_start_after_a_delimiter_and_end_at_a_terminator() {
    assert_eq!(found("to: a@b.c, ok"), [(K::EmailAddress, "a@b.c")]);
    assert_eq!(found("KEY=user@host.tld"), [(K::EmailAddress, "KEY=user@host.tld")]);
    for delimiter in ["<", ",", ";", "\"", "'", " ", "\n", "\u{3000}"] {
        let text = format!("x{delimiter}me@host.tld");
        assert_eq!(found(&text), [(K::EmailAddress, "me@host.tld")], "{delimiter:?}");
    }
    assert_eq!(found("(me@host.tld)"), [(K::EmailAddress, "(me@host.tld")]);
    for other in ["@host.tld", "me@host", "me@.c", "me@ host.tld", "me@", "@", "me@h,o.st"] {
        assert_eq!(found(other), [], "{other}");
    }
    // Two signs: each has its own local part, and the findings are joined.
    assert_eq!(found("a@b.c@d.e"), [(K::EmailAddress, "a@b.c@d.e")]);
}

#[test]
fn the_parts_of_an_address_are_bounded() {
    let local = |length: usize| format!("{}@b.cd", "x".repeat(length));
    assert_eq!(kinds(&local(64)), [K::EmailAddress]);
    assert_eq!(kinds(&local(65)), []);
    let address = format!("a@b.{}", "x".repeat(300));
    assert_eq!(found(&address), [(K::EmailAddress, &address[..257])]);
    // The bound falls inside a character.
    let address = format!("a@b.{}", "é".repeat(300));
    assert_eq!(found(&address), [(K::EmailAddress, &address[..256])]);
    // The dot comes too late.
    assert_eq!(kinds(&format!("a@{}.c", "x".repeat(255))), []);
}

#[test]
fn a_random_token_is_cut_up_to_its_first_terminator() {
    assert_eq!(found(&format!("is {RANDOM} so")), [(K::GenericHighEntropy, RANDOM)]);
    let token = "k=!Q2w#E4r%T6y&U8i(O0p{,]}A1s";
    assert_eq!(found(token), [(K::GenericHighEntropy, "k=!Q2w#E4r%T6y&U8i(O0p{")]);
    // One that opens with a terminator is not cut to nothing.
    let quoted = "'!Q2w#E4r%T6y&U8i(O0p{A1s$D3f'";
    assert_eq!(found(quoted), [(K::GenericHighEntropy, "'!Q2w#E4r%T6y&U8i(O0p{A1s$D3f")]);
    // Non-ASCII text splits a token, and is not part of it.
    assert_eq!(found(&format!("ключ{RANDOM}ключ")), [(K::GenericHighEntropy, RANDOM)]);
}

#[test]
fn tokens_are_judged_between_twenty_and_sixty_four_bytes() {
    let alphabet: String =
        ('!'..='~').filter(|c| !c.is_ascii_alphanumeric() && !"\"',;)]}@".contains(*c)).collect();
    let mixed: String = alphabet.chars().zip('a'..='z').flat_map(|(a, b)| [a, b]).collect();
    assert_eq!(kinds(&mixed[..22]), [], "22 distinct bytes carry less than 4.5 bits");
    assert_eq!(kinds(&mixed[..24]), [K::GenericHighEntropy]);
    let long: String = mixed.chars().cycle().take(65).collect();
    assert_eq!(kinds(&long[..64]), [K::GenericHighEntropy]);
    assert_eq!(kinds(&long), [], "no run of letters is long enough");
}

#[test]
fn entropy_must_be_over_the_bar_and_not_at_it() {
    // 16 bytes once and 8 bytes twice: exactly 4.5 bits.
    let at_the_bar = format!("{}{}", "abcdefghijklmnop", "qrstuvwxqrstuvwx");
    assert_eq!(kinds(&at_the_bar), []);
    let over = format!("{}{}", "abcdefghijklmnopy", "qrstuvwxqrstuvw");
    assert_eq!(kinds(&over), [K::GenericHighEntropy]);
}

/// Forty-six letters: 23 of them twice, 4.52 bits; every change below takes the entropy under 4.5.
fn long_base64(tail: &str) -> String {
    format!("{}{}{tail}", "abcdefghijklmnopqrstuvw", "abcdefghijklmno")
}

#[test]
fn long_base64_has_a_lower_bar() {
    let entropy_is_between = long_base64("aaabbbcccd");
    assert_eq!(kinds(&entropy_is_between), [K::GenericHighEntropy]);
    // Too short.
    assert_eq!(kinds(&long_base64("")), []);
    // A byte four times in a row.
    assert_eq!(kinds(&long_base64("aaaabbbccd")), []);
    // Too many symbols: 5 of 48 is more than a tenth, 4 is not.
    assert_eq!(kinds(&long_base64("a-b-c-d-ef")), [K::GenericHighEntropy]);
    assert_eq!(kinds(&long_base64("a-b-c-d-e-")), []);
    // Not all base64.
    assert_eq!(kinds(&format!("{}=={}", "abcdefghijklmnopqrs", "tuvwabcdefghijklmnoaaabbbcccd")), []);
}

#[test]
fn base64_runs_inside_longer_tokens_are_found_without_an_upper_bound() {
    let text = format!("{}={RANDOM}.{}", "k".repeat(40), "v".repeat(40));
    assert_eq!(found(&text), [(K::GenericHighEntropy, RANDOM)]);
    let long = RANDOM.repeat(4);
    assert_eq!(found(&long), [(K::GenericHighEntropy, long.as_str())]);
}

#[test]
fn sixty_four_hex_digits_are_found_plain_or_separated() {
    let digits = "0a1B".repeat(16);
    assert_eq!(found(&format!("<{digits}>")), [(K::GenericHighEntropy, digits.as_str())]);
    assert_eq!(found(&digits[1..]), []);
    for separator in [":", "-"] {
        let pairs = vec!["aB"; 32].join(separator);
        assert_eq!(
            found(&format!("fp={separator}{pairs}{separator}z")),
            [(K::GenericHighEntropy, pairs.as_str())],
            "{separator}"
        );
        assert_eq!(found(&vec!["aB"; 31].join(separator)), []);
    }
    assert_eq!(found(&vec!["aB"; 32].join(".")), []);
}

#[test]
fn a_secret_split_by_one_character_is_found_as_two() {
    let (left, right) = ("abcDEF012ghi", "JKL345mnoPQR");
    for gap in [" ", "\n", "\t", "\u{200b}", "é", "\u{3000}"] {
        assert_eq!(
            found(&format!("{left}{gap}{right}")),
            [(K::GenericHighEntropy, left), (K::GenericHighEntropy, right)],
            "{gap:?}"
        );
    }
    for gap in ["  ", "\r\n", "éé", ". "] {
        assert_eq!(found(&format!("{left}{gap}{right}")), [], "{gap:?}");
    }
    assert_eq!(found("abcDEF012gh JKL345mnoPQ"), [], "22 bytes are too few");
    assert_eq!(found(&format!("{left} {}", "J".repeat(60))), []);
    // The runs at the edges of longer tokens count, not the tokens.
    assert_eq!(
        redacted(&format!("x={left} {right}=y")),
        "x=[REDACTED:GenericHighEntropy] [REDACTED:GenericHighEntropy]=y"
    );
}

#[test]
fn a_split_secret_is_left_alone_where_something_was_found_before() {
    let (left, right) = ("abcDEF012ghi", "JKL345mnoPQR");
    assert_eq!(kinds(&format!("ghp_{left} {right}")), [K::GitHubPat]);
    assert_eq!(kinds(&format!("{left} {right}@b.cd")), [K::EmailAddress]);
    // The middle of three belongs to the first pair.
    assert_eq!(
        found(&format!("{left} {right} {left}")),
        [(K::GenericHighEntropy, left), (K::GenericHighEntropy, right)]
    );
}

#[test]
fn our_own_labels_are_not_secrets() {
    for kind in K::ALL {
        let label = kind.replacement();
        assert_eq!(found(label), []);
        assert_eq!(found(&format!("a={label}{label},b='{label}'")), []);
    }
    assert_eq!(found("[REDACTED]"), []);
    // Only what is exactly a label is passed over.
    let text = format!("[REDACTED:{RANDOM}]");
    assert_eq!(kinds(&text), [K::GenericHighEntropy]);
    // A label splits what stands around it.
    assert_eq!(found("abcDEF012ghi[REDACTED]JKL345mnoPQR"), []);
}

#[test]
fn account_keys_are_found_wherever_they_stand() {
    let text =
        concat!("DefaultEndpointsProtocol=https;AccountName=me;AccountKey", "=abc/def==;EndpointSuffix=x");
    assert_eq!(
        redacted(text),
        "[REDACTED:AzureConnectionString];AccountName=me;[REDACTED:AzureConnectionString];EndpointSuffix=x"
    );
    // Hidden behind a literal that shares a letter with it.
    let text = concat!("AKI", "AccountKey=abc");
    assert_eq!(
        found(text),
        [(K::AwsAccessKey, text), (K::AzureConnectionString, concat!("Account", "Key=abc"))]
    );
}

#[test]
fn prose_and_code_are_clean() {
    for text in [
        "",
        "The quick brown fox jumps over the lazy dog.",
        "fn main() { println!(\"{}\", 1 + 2); }",
        "https://example.com/docs/getting-started?page=2#install",
        "/usr/local/lib/python3.12/site-packages/requests/adapters.py",
        "550e8400-e29b-41d4-a716-446655440000",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "2026-01-02T03:04:05.678Z",
        "+1 (555) 010-9999",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn a_literal_needs_no_word_boundary() {
    assert_eq!(found("risk-free"), [(K::OpenAiKey, "sk-free")]);
}
