use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use tokio::io::AsyncReadExt;

use super::*;

const VALUE: &str = "p@ss \"word\"/9";

fn secrets() -> Secrets {
    Secrets::new([("TOKEN", VALUE), ("SHORT", "abc"), ("BLANK", "  abc      ")])
}

#[test]
fn every_spelling_is_cut() {
    for text in [
        VALUE.to_owned(),
        Json::from(VALUE).to_string(),
        "p%40ss%20%22word%22%2F9".to_owned(),
        "p%40ss+%22word%22%2f9".to_owned(),
        STANDARD.encode(VALUE),
        STANDARD.encode(format!("a{VALUE}b")),
        STANDARD.encode(format!("ab{VALUE}")),
    ] {
        let secrets = secrets();
        let (cut, found) = secrets.cut(&text);
        assert_eq!(found, ["TOKEN"], "{text}");
        assert!(cut.contains("[REDACTED:TOKEN]"), "{cut}");
    }
    assert_eq!(secrets().cut("abc stays").0, "abc stays");
}

#[test]
fn json_is_cut_leaf_by_leaf_with_member_names() {
    let mut value = Json::object().with(VALUE, vec![Json::from(format!("x{VALUE}"))]);
    let emitted = Emitted::default();
    secrets().cut_json(&mut value, &emitted);
    assert_eq!(value.to_string(), r#"{"[REDACTED:TOKEN]":["x[REDACTED:TOKEN]"]}"#);
    assert_eq!(emitted.names(), ["TOKEN"]);
}

#[test]
fn values_that_cannot_be_searched_for_hide_everything() {
    let long = "x".repeat(proctor_mask::MAX_SECRET_BYTES + 1);
    let secrets = Secrets::new([("LONG", long.as_str())]);
    assert_eq!(secrets.cut("anything").0, MARK);
    assert_eq!(secrets.cut_shortened("any…thing"), MARK);
    assert_eq!(secrets.cut_message(b"anything", &Emitted::default()).unwrap(), MARK.as_bytes());
    let mut value = Json::from("anything");
    secrets.cut_json(&mut value, &Emitted::default());
    assert_eq!(value, Json::from(MARK));
}

#[test]
fn a_shortened_text_ends_without_a_part_of_a_secret() {
    let secrets = Secrets::new([("KEY", "s3cr3t-v4lue-of-a-run")]);
    assert_eq!(secrets.cut_shortened("body: key s3cr3t-v4lu… (status 500)"), "body: key… (status 500)");
    assert_eq!(secrets.cut_shortened("body: key… s3cr3t-v4lu"), "body: key… s3cr3t-v4lu");
}

#[tokio::test]
async fn a_reader_cuts_across_chunks_and_lines_and_names_what_it_cut() {
    let secrets = Secrets::new([("KEY", "s3cr3t-v4lue\nof-a-run"), ("PIN", "48215550937261")]);
    let emitted = Emitted::default();
    let [first, second, third]: [&[u8]; 3] =
        [b"a s3cr3t-", b"v4lue\n  of-a-run\n{\"pin\":482155", b"50937261}\n"];
    let input = AsyncReadExt::chain(AsyncReadExt::chain(first, second), third);
    let mut text = String::new();
    secrets.reader(input, &emitted).read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "a [REDACTED:KEY]\n{\"pin\":\"[REDACTED:PIN]\"}\n");
    assert_eq!(emitted.names(), ["KEY", "PIN"]);
}

#[test]
fn only_the_limit_of_a_file_is_looked_at() {
    let secrets = Secrets::new([("KEY", "s3cr3t-v4lue")]);
    let text = format!("{}s3cr3t-v4lue", "x".repeat(200_000));
    for (limit, names) in [(100, &[][..]), (1 << 20, &["KEY"])] {
        let emitted = Emitted::default();
        secrets.look_in(text.as_bytes(), limit, &emitted);
        assert_eq!(emitted.names(), names);
    }
}

proptest! {
    #[test]
    fn base64_of_any_text_around_a_secret_shows_nothing_of_it(before in ".{0,9}", after in ".{0,9}") {
        let text = STANDARD.encode(format!("{before}{VALUE}{after}"));
        let secrets = secrets();
        prop_assert_eq!(secrets.cut(&text).1, ["TOKEN"]);
    }
}
