use super::*;

fn canonical(json: &str) -> String {
    text(&Json::parse(json.as_bytes()).unwrap()).unwrap()
}

#[test]
fn numbers_print_as_in_javascript() {
    for (literal, printed) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0e7", "0"),
        ("1.0", "1"),
        ("-1.50", "-1.5"),
        ("2.5", "2.5"),
        ("100", "100"),
        ("1e2", "100"),
        ("1E21", "1e+21"),
        ("123456789012345680000", "123456789012345680000"),
        ("1234567890123456789012", "1.2345678901234568e+21"),
        ("9007199254740993", "9007199254740992"),
        ("0.1", "0.1"),
        ("0.000001", "0.000001"),
        ("0.0000001", "1e-7"),
        ("-0.00000123", "-0.00000123"),
        ("-0.000000123", "-1.23e-7"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("1e-400", "0"),
        ("4294967295", "4294967295"),
        ("4294967294", "4294967294"),
        ("333333333.33333329", "333333333.3333333"),
    ] {
        assert_eq!(number(literal).unwrap(), printed, "{literal}");
    }
    assert!(matches!(number("1e400"), Err(NotCanonical::NotFinite(_))));
    assert!(matches!(text(&Json::parse(b"[{\"a\":-1e999}]").unwrap()), Err(NotCanonical::NotFinite(_))));
}

#[test]
fn keys_sort_by_utf16_after_array_indices() {
    assert_eq!(
        canonical(r#"{"b":1,"a":{"d":[3,2,{"z":1,"y":2}],"c":null}}"#),
        r#"{"a":{"c":null,"d":[3,2,{"y":2,"z":1}]},"b":1}"#
    );
    // U+1F600 is a surrogate pair, which sorts before U+FB33 by code unit.
    assert_eq!(canonical("{\"\u{fb33}\":1,\"\u{1f600}\":2}"), "{\"\u{1f600}\":2,\"\u{fb33}\":1}");
    assert_eq!(
        canonical(r#"{"a":0,"10":1,"9":2,"01":3,"-1":4,"4294967295":5,"4294967294":6,"":7,"1.0":8}"#),
        r#"{"9":2,"10":1,"4294967294":6,"":7,"-1":4,"01":3,"1.0":8,"4294967295":5,"a":0}"#
    );
}

#[test]
fn strings_escape_only_what_they_must() {
    assert_eq!(
        canonical("\"\\u0000\\u0008\\t\\n\\f\\r\\u001f\\\"\\\\\\/\u{7f}\u{2028}é\""),
        "\"\\u0000\\b\\t\\n\\f\\r\\u001f\\\"\\\\/\u{7f}\u{2028}é\""
    );
}

#[test]
fn digests_do_not_depend_on_spelling_or_order() {
    let one = Json::parse(br#"{ "b": 1.0, "a": "\u0041" }"#).unwrap();
    let other = Json::parse(br#"{"a":"A","b":1}"#).unwrap();
    assert_eq!(digest(&one).unwrap(), digest(&other).unwrap());
    assert_eq!(
        digest(&Json::object()).unwrap(),
        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    );
}

#[test]
fn endless_nesting_is_an_error() {
    let mut value = Json::Null;
    for _ in 0..300 {
        value = Json::Array(vec![value]);
    }
    assert_eq!(text(&value), Err(NotCanonical::TooDeep));
}
