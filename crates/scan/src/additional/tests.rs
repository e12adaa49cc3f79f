//! The additional rules find what vendors and names present as secret, and leave ordinary text of developers alone.

use proctor_core::json::Json;

use crate::{FindingKind, Scanner, redact};

const CREDENTIAL: &str = "[REDACTED:Credential]";

/// The text as a policy with rules cuts it: addresses stay.
fn cut(text: &str) -> String {
    let mut findings = Scanner::standard().scan_claimed(text);
    findings.retain(|finding| finding.kind != FindingKind::EmailAddress);
    redact(text, &findings)
}

fn cut_json(text: &str) -> String {
    let value = Json::parse(text.as_bytes()).unwrap();
    Scanner::standard().redact_json(&value, "$", &|_| false).0.to_string()
}

/// A run of the alphabet's characters, nobody's secret.
fn run(alphabet: &str, length: usize) -> String {
    // A fixed sequence that has digits and both cases early, and is not random enough for the entropy pass to be needed.
    alphabet.chars().cycle().skip(5).step_by(7).take(length).collect()
}

const HEX: &str = "0123456789abcdef";
const ALNUM: &str = "a1B2c3D4e5F6g7H8i9J0kLmNoPqRsTuVwXyZ";

#[test]
fn tokens_in_the_format_of_a_vendor_are_cut() {
    for (prefix, alphabet, length) in [
        ("sk_live_", ALNUM, 24),
        ("rk_test_", ALNUM, 24),
        ("glpat-", ALNUM, 20),
        ("shpat_", HEX, 32),
        ("SK", HEX, 32),
        ("key-", HEX, 32),
        ("NRAK-", ALNUM, 27),
        ("dapi", HEX, 32),
        ("sbp_", HEX, 40),
        ("pul-", HEX, 40),
        ("HRKU-", ALNUM, 36),
        ("npm_", ALNUM, 36),
        ("AIza", ALNUM, 35),
        ("hf_", ALNUM, 34),
        ("SG.", ALNUM, 66),
        ("dop_v1_", HEX, 64),
        ("hvs.", ALNUM, 90),
        ("secret_", ALNUM, 43),
        ("lin_api_", ALNUM, 40),
        ("tskey-auth-", ALNUM, 30),
    ] {
        let token = format!("{prefix}{}", run(alphabet, length));
        for (before, after) in [("", ""), ("key is ", " ."), ("K=\"", "\""), ("{\\n\\\"k\\\": \\\"", "\\\"}")]
        {
            let shown = cut(&format!("{before}{token}{after}"));
            assert!(shown.contains("[REDACTED:") && !shown.contains(&token[prefix.len() + 4..]), "{shown}");
        }
    }
    let suffixed = [
        format!("{}NRAL", run(HEX, 36)),
        format!("{}-us12", run(HEX, 32)),
        format!("123456789:AA{}", run(ALNUM, 33)),
        format!("abc8Q~{}", run(ALNUM, 34)),
    ];
    for token in suffixed {
        let shown = cut(&format!("it is {token}, see"));
        assert!(!shown.contains(&token[8..20]), "{shown}");
    }
}

#[test]
fn values_that_are_presented_as_credentials_are_cut_and_nothing_else() {
    for (text, left) in [
        ("deploy --token abc123 --verbose", format!("deploy --token {CREDENTIAL} --verbose")),
        ("deploy --token=abc123 x", format!("deploy --token={CREDENTIAL} x")),
        ("deploy --db-password 'a b' x", format!("deploy --db-password '{CREDENTIAL}' x")),
        ("mysql -u root -phunter2 db", format!("mysql -u root -p{CREDENTIAL} db")),
        ("/usr/bin/mysqldump -p'hunter2' db", format!("/usr/bin/mysqldump -p'{CREDENTIAL}' db")),
        ("sshpass -p hunter2 ssh host", format!("sshpass -p {CREDENTIAL} ssh host")),
        ("curl -u ann:hunter2 https://h.tld/", format!("curl -u ann:{CREDENTIAL} https://h.tld/")),
        ("docker login -u ann -p hunter2 r.tld", format!("docker login -u ann -p {CREDENTIAL} r.tld")),
        ("redis-cli -a hunter2 ping", format!("redis-cli -a {CREDENTIAL} ping")),
        ("openssl enc -pass pass:hunter2", format!("openssl enc -pass pass:{CREDENTIAL}")),
        ("git clone https://ann:hunter2@h.tld/r", format!("git clone https://ann:{CREDENTIAL}@h.tld/r")),
        ("redis://:hunter2@h:6379/0", format!("redis://:{CREDENTIAL}@h:6379/0")),
        ("PGPASSWORD=hunter2 psql", format!("PGPASSWORD={CREDENTIAL} psql")),
        ("MYSQL_PWD=hunter2 mysql", format!("MYSQL_PWD={CREDENTIAL} mysql")),
        ("export DB_PASS='hunter2'", format!("export DB_PASS='{CREDENTIAL}'")),
        ("password: hunter2", format!("password: {CREDENTIAL}")),
        ("\"db_password\": \"correct horse\"", format!("\"db_password\": \"{CREDENTIAL}\"")),
        ("{\\\"password\\\": \\\"hunter2\\\"}", format!("{{\\\"password\\\": \\\"{CREDENTIAL}\\\"}}")),
        ("Server=h;User Id=a;Password=hunter2;x=1", format!("Server=h;User Id=a;Password={CREDENTIAL};x=1")),
        ("?user=a&password=hunter2&x=1", format!("?user=a&password={CREDENTIAL}&x=1")),
        (
            "machine h.tld login ann password hunter2",
            format!("machine h.tld login ann password {CREDENTIAL}"),
        ),
        (
            "machine h\n  login ann\n  password hunter2\n",
            format!("machine h\n  login ann\n  password {CREDENTIAL}\n"),
        ),
        ("Authorization: Bearer abc123def", format!("Authorization: Bearer {CREDENTIAL}")),
        ("Authorization: Basic YW5uOmh1bnRlcjI=", format!("Authorization: Basic {CREDENTIAL}")),
        ("X-Api-Key: abc123def456", format!("X-Api-Key: {CREDENTIAL}")),
        ("\"auth\": \"YW5uOmh1bnRlcjI=\"", format!("\"auth\": \"{CREDENTIAL}\"")),
        ("[\"--token\", \"abc123\"]", format!("[\"--token\", \"{CREDENTIAL}\"]")),
    ] {
        assert_eq!(cut(text), left, "{text}");
    }
}

#[test]
fn members_that_are_named_like_credentials_are_cut_whole() {
    for (text, left) in [
        (r#"{"db_password":"a b c"}"#, r#"{"db_password":"[REDACTED:Credential]"}"#),
        (r#"{"dbPassword":"abc"}"#, r#"{"dbPassword":"[REDACTED:Credential]"}"#),
        (r#"{"password_confirmation":"abc"}"#, r#"{"password_confirmation":"[REDACTED:Credential]"}"#),
        (r#"{"password":12345678}"#, r#"{"password":"[REDACTED:Credential]"}"#),
        (r#"{"DB_PASS":"abc"}"#, r#"{"DB_PASS":"[REDACTED:Credential]"}"#),
        (
            r#"{"passwords":["abc","def"]}"#,
            r#"{"passwords":["[REDACTED:Credential]","[REDACTED:Credential]"]}"#,
        ),
        (r#"{"api-key":"abc123"}"#, r#"{"api-key":"[REDACTED:Credential]"}"#),
        (
            r#"{"auths":{"r.tld":{"auth":"YW5uOmh1bnRlcjI="}}}"#,
            r#"{"auths":{"r.tld":{"auth":"[REDACTED:Credential]"}}}"#,
        ),
        (
            r#"{"name":"DB_PASSWORD","value":"abc"}"#,
            r#"{"name":"DB_PASSWORD","value":"[REDACTED:Credential]"}"#,
        ),
        (r#"["deploy","--token","abc123","x"]"#, r#"["deploy","--token","[REDACTED:Credential]","x"]"#),
        (r#"{"Authorization":"Bearer abc123"}"#, r#"{"Authorization":"[REDACTED:Credential]"}"#),
    ] {
        assert_eq!(cut_json(text), left, "{text}");
    }
    for text in [
        r#"{"max_tokens":4096,"token":5,"eos_token":"</s>","next_page_token":"CAUQAA1"}"#,
        r#"{"password":{"type":"string","description":"the password"}}"#,
        r#"{"pwd":"/home/ann/work","PWD":"/work"}"#,
        r#"{"token":"","secret":null,"password":"${DB_PASSWORD}","api_key":"<your key>"}"#,
        r#"{"author":"ann","compass":"north","monkey":"b2","key":"value1","passed":3,"bypass":true}"#,
        r#"{"name":"color","value":"blue2"}"#,
        r#"["ls","-l","--color","auto"]"#,
    ] {
        assert_eq!(cut_json(text), text);
    }
}

#[test]
fn ordinary_text_of_developers_is_left_alone() {
    for text in [
        "fn token(&self) -> Token { self.token.clone() }",
        "let password = get_password();",
        "const token = req.headers.token;",
        "secret: process.env.SECRET,",
        "password=password, user=user",
        "connect(password=db_password)",
        "if password == other.password { return; }",
        "pub struct Login { password: String, token: Option<Token> }",
        "password: string; // required",
        "token: Token::new(kind, span)",
        "The password is required. Forgot your password? The token: see below.",
        "max_tokens=4096 top_k=50 next_token=17",
        "mkdir -p a/b && docker run -p 8080:80 -u 1000:1000 img",
        "curl -fsSL https://example.com/install.sh | sh",
        "mysql -u root -p db < dump.sql",
        "git clone git@github.com:ann/repo.git",
        "git clone https://github.com/ann/repo.git#main",
        "http://localhost:8080/path?x=1@2",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "id 3f2504e0-4f89-11d3-9a0c-0305e82c3301 and 00000000-0000-0000-0000-000000000000",
        "index 83db48f..bf2c1aa 100644",
        "PWD=/home/ann OLDPWD=/tmp",
        "export TOKEN=$(cat token.txt) PASSWORD=$PASS",
        "password: ******** token: <token>",
        "the machine is on; login is next, the password reset comes last",
        "basic usage: basic auth is deprecated, bearer tokens are not",
        "for (key, value) in map { keys.push(key-1); }",
        "use std::collections::HashMap; mod secret; mod token;",
        "tests pass: 12, fail: 0",
        "API-driven design, AC powered, SKU 12345, task-list, risk-model, desk-top",
        "the compass pass=1 bypass: yes",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg",
        "name = \"aho-corasick\"\nversion = \"1.1.3\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"",
        "\"resolved\": \"https://registry.npmjs.org/a/-/a-1.2.3.tgz\", \"dev\": true",
        "token_file=/run/secrets/token password_file: ./pw.txt",
        "xAxis: 1, pxls-1, half_life, npm_config_registry, hf_dataset_name_of_some_length",
        "re_export_everything_that_is_public_here, r8_model, key-value-store, pul-tab",
    ] {
        let additional: Vec<_> = Scanner::standard()
            .scan_claimed(text)
            .into_iter()
            .filter(|finding| finding.kind.is_additional())
            .map(|finding| &text[finding.offset..finding.end])
            .collect();
        assert!(additional.is_empty(), "{text}: {additional:?}");
    }
}

#[test]
fn a_private_key_is_cut_with_its_whole_body() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQ\nAAAAAAAAAAAA\nBBBB\n";
    for header in ["RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED ", ""] {
        let key = format!("-----BEGIN {header}PRIVATE KEY-----\n{body}-----END {header}PRIVATE KEY-----");
        for text in [format!("a {key} b"), format!("a {} b", key.replace('\n', "\\n"))] {
            let shown = cut(&text);
            assert!(
                !shown.contains("MIIEv") && !shown.contains("AAAA") && !shown.contains("BBBB"),
                "{shown}"
            );
            assert!(shown.starts_with("a ") && shown.ends_with(" b"), "{shown}");
        }
    }
}

#[test]
fn published_findings_keep_their_labels_and_their_texts() {
    let key = concat!("sk-", "1234567890abcdefghij");
    assert_eq!(cut(&format!("api_key: {key}")), "api_key: [REDACTED:OpenAiKey]");
    assert_eq!(cut("postgres://ann:hunter2@h/db"), "[REDACTED:PostgresUrl]");
    assert_eq!(cut_json(&format!(r#"{{"api_key":"{key}"}}"#)), r#"{"api_key":"[REDACTED:OpenAiKey]"}"#);
    // The published scanner finds none of the additional kinds.
    for text in ["password=hunter2", "deploy --token abc123", concat!("gl", "pat-abcdefghij1234567890")] {
        let found = Scanner::standard().scan(text);
        assert!(found.iter().all(|finding| finding.kind == FindingKind::GenericHighEntropy), "{text}");
    }
}

#[test]
fn the_digits_of_an_identifier_are_no_payment_card() {
    let card = "4532015112830366";
    assert_eq!(cut(&format!("card {card}.")), "card [REDACTED:CreditCardLuhn].");
    // The published scanner takes the digits of this UUID for a card.
    let uuid = "aaaaaaaa-4532-0151-1283-0366aaaaaaaa";
    assert!(!Scanner::standard().scan(uuid).is_empty());
    for text in [uuid.to_owned(), format!("event {uuid}, ok"), format!("\"{uuid}\"")] {
        assert_eq!(cut(&text), text);
    }
    let trace = format!("abcdefab{card}abcdefab");
    assert_eq!(cut(&trace), trace);
    // What is no UUID is a card still.
    assert!(cut("4532-0151-1283-0366").contains("CreditCardLuhn"));
    assert!(cut(&format!("aaaa {card} aaaa")).contains("CreditCardLuhn"));
}

#[test]
fn cutting_again_changes_nothing() {
    for text in [
        "deploy --token abc123 --password 'a b' https://ann:hunter2@h.tld/",
        "machine h login ann password hunter2 Authorization: Bearer abc123def",
        "mysql -phunter2; curl -u a:hunter2 x; password: hunter2",
    ] {
        let once = cut(text);
        assert_eq!(cut(&once), once);
    }
}
