use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::super::Json;

fn parse(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

fn problem<T: serde::de::DeserializeOwned>(text: &str) -> String {
    parse(text).read::<T>().map(|_| ()).unwrap_err().to_string()
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Shelf {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(default)]
    items: Vec<Item>,
    #[serde(default)]
    note: Json,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Item {
    Nothing,
    Book(String),
    Pair(u8, u8),
    Box { weight: f32, open: bool },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Plain,
    Rich { value: Json },
}

const NUMBERS: [&str; 16] = [
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "1.10",
    "1e5",
    "-1.5E+3",
    "1e400",
    "-1e-400",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "12345678901234567890.12345678901234567890",
    "0.1000",
];

#[test]
fn numbers_are_written_with_their_own_digits() {
    for literal in NUMBERS {
        assert_eq!(serde_json::to_string(&parse(literal)).unwrap(), literal);
        let inside = format!(r#"{{"a":[{literal}]}}"#);
        assert_eq!(serde_json::to_string(&parse(&inside)).unwrap(), inside);
    }
}

#[test]
fn numbers_are_read_from_a_json_with_their_own_digits() {
    for literal in NUMBERS {
        assert_eq!(parse(literal).read::<Json>().unwrap().to_string(), literal);
        let inside = format!(r#"{{"name":"x","note":{{"deep":[{literal},null]}}}}"#);
        let shelf: Shelf = parse(&inside).read().unwrap();
        assert_eq!(shelf.note.to_string(), format!(r#"{{"deep":[{literal},null]}}"#));
        assert_eq!(parse(literal).read::<Option<Json>>().unwrap().unwrap().to_string(), literal);
    }
}

#[test]
fn a_tagged_enum_reads_all_members_first_and_rounds() {
    let read: Tagged = parse(r#"{"value":[1,-2,1.10,true,null,"x",{"y":{}}],"kind":"rich"}"#).read().unwrap();
    assert_eq!(read, Tagged::Rich { value: parse(r#"[1,-2,1.1,true,null,"x",{"y":{}}]"#) });
    assert_eq!(parse(r#"{"kind":"plain","more":1}"#).read::<Tagged>().unwrap(), Tagged::Plain);
}

#[test]
fn a_json_is_read_by_other_readers_too() {
    let text = r#"{"b":[1,-2,2.5,true,null,"é"],"a":{}}"#;
    assert_eq!(serde_json::from_str::<Json>(text).unwrap(), parse(text));
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::from_value::<Json>(value.clone()).unwrap()["a"], Json::object());
    assert_eq!(Json::from(value.clone()), serde_json::from_value::<Json>(value).unwrap());
}

#[test]
fn names_stay_unique() {
    let error = serde_json::from_str::<Json>(r#"{"x":{"a":1,"b":2,"a":3}}"#).unwrap_err();
    assert!(error.to_string().starts_with("duplicate member `a`"), "{error}");
}

#[test]
fn bytes_are_numbers_only_if_they_are_a_numbers_text() {
    use serde::de::IntoDeserializer;
    use serde::de::value::{BytesDeserializer, Error};
    let read = |bytes: &'static [u8]| {
        let deserializer: BytesDeserializer<'_, Error> = bytes.into_deserializer();
        Json::deserialize(deserializer)
    };
    assert_eq!(read(b"1.10").unwrap().to_string(), "1.10");
    for bad in [&b"\"text\""[..], b"[1]", b"1 2", b"", b"\xff", b"NaN"] {
        assert!(read(bad).is_err());
    }
}

#[test]
fn a_number_that_is_none_is_not_written() {
    for bad in ["", "abc", "1 2", "--1"] {
        assert!(serde_json::to_string(&Json::Number(bad.into())).is_err(), "{bad}");
    }
}

#[test]
fn integers_must_be_integers_that_fit() {
    assert_eq!(parse("4294967295").read::<u32>().unwrap(), u32::MAX);
    assert_eq!(parse("-0").read::<u64>().unwrap(), 0);
    assert_eq!(parse("18446744073709551615").read::<u64>().unwrap(), u64::MAX);
    assert_eq!(parse("-9223372036854775808").read::<i64>().unwrap(), i64::MIN);
    for bad in ["4294967296", "-1", "5.0", "1e0", "\"5\"", "null", "true", "[5]", "1e400"] {
        assert!(parse(bad).read::<u32>().is_err(), "{bad}");
    }
    assert!(parse("18446744073709551616").read::<u64>().is_err());
    assert!(parse("9223372036854775808").read::<i64>().is_err());
    assert!(parse("-9223372036854775809").read::<i64>().is_err());
}

#[test]
fn floats_are_any_number_that_is_finite() {
    for (text, number) in [("1", 1.0), ("-2", -2.0), ("0.5", 0.5), ("1e3", 1000.0), ("0", 0.0)] {
        assert!((parse(text).read::<f64>().unwrap() - number).abs() < f64::EPSILON);
    }
    assert!((parse("0.9").read::<f32>().unwrap() - 0.9).abs() < f32::EPSILON);
    assert_eq!(problem::<f64>("1e400"), "number out of range");
    assert_eq!(problem::<f32>("-1e400"), "number out of range");
    assert!(parse("\"1\"").read::<f32>().is_err());
    assert!(parse("null").read::<f32>().is_err());
}

#[test]
fn absent_and_null_options_are_the_same() {
    let none = Shelf { name: "x".into(), width: None, items: vec![], note: Json::Null };
    assert_eq!(parse(r#"{"name":"x"}"#).read::<Shelf>().unwrap(), none);
    assert_eq!(parse(r#"{"name":"x","width":null}"#).read::<Shelf>().unwrap(), none);
    assert_eq!(parse("null").read::<Option<Json>>().unwrap(), None);
    assert_eq!(parse("null").read::<Json>().unwrap(), Json::Null);
    parse("null").read::<()>().unwrap();
}

#[test]
fn enums_in_all_their_forms() {
    let items = r#"{"name":"x","items":["nothing",{"nothing":null},{"book":"b"},{"pair":[1,2]},{"box":{"open":true,"weight":1}}]}"#;
    assert_eq!(
        parse(items).read::<Shelf>().unwrap().items,
        [
            Item::Nothing,
            Item::Nothing,
            Item::Book("b".into()),
            Item::Pair(1, 2),
            Item::Box { weight: 1.0, open: true }
        ]
    );
}

#[test]
fn errors_name_the_place() {
    for (text, message) in [
        (r#"{"width":1}"#, "missing field `name`"),
        (r#"{"name":1}"#, "invalid type: integer `1`, expected a string at /name"),
        (r#"{"name":"x","width":-1}"#, "invalid value: integer `-1`, expected u32 at /width"),
        (r#"{"name":"x","items":null}"#, "invalid type: unit value, expected a sequence at /items"),
        (r#"{"name":"x","items":["nothing",7]}"#, "expected a name or an object, found a number at /items/1"),
        (
            r#"{"name":"x","items":[{}]}"#,
            "invalid value: map, expected an object with exactly one member, which names the variant at /items/0",
        ),
        (
            r#"{"name":"x","items":[{"book":"a","pair":[1,2]}]}"#,
            "invalid value: map, expected an object with exactly one member, which names the variant at /items/0",
        ),
        (r#"{"name":"x","items":[{"nothing":1}]}"#, "`nothing` takes no value at /items/0"),
        (
            r#"{"name":"x","items":["book"]}"#,
            "invalid type: unit variant, expected newtype variant at /items/0",
        ),
        (
            r#"{"name":"x","items":[{"book":7}]}"#,
            "invalid type: integer `7`, expected a string at /items/0/book",
        ),
        (
            r#"{"name":"x","items":[{"pair":[1,"a"]}]}"#,
            "invalid type: string \"a\", expected u8 at /items/0/pair/1",
        ),
        (r#"{"name":"x","items":[{"box":{"weight":1}}]}"#, "missing field `open` at /items/0/box"),
        (
            r#"{"name":"x","items":[{"box":[1,true]}]}"#,
            "invalid type: sequence, expected an object at /items/0/box",
        ),
        (r#"["x"]"#, "invalid type: sequence, expected an object"),
        ("3", "invalid type: integer `3`, expected struct Shelf"),
    ] {
        assert_eq!(problem::<Shelf>(text), message, "{text}");
    }
    let unknown = problem::<Shelf>(r#"{"name":"x","items":["lamp"]}"#);
    assert!(unknown.starts_with("unknown variant `lamp`") && unknown.ends_with(" at /items/0"), "{unknown}");
}

#[test]
fn places_are_escaped() {
    let error =
        parse(r#"{"a/b":{"m~n":true}}"#).read::<BTreeMap<String, BTreeMap<String, u8>>>().unwrap_err();
    assert_eq!(error.pointer(), "/a~1b/m~0n");
    assert_eq!(parse("true").read::<u8>().unwrap_err().pointer(), "");
}

#[test]
fn members_that_a_type_does_not_know_are_skipped_whatever_they_hold() {
    let text = r#"{"name":"x","more":{"deep":[1e400,{"a":"b"}]},"width":3}"#;
    assert_eq!(parse(text).read::<Shelf>().unwrap().width, Some(3));
}

#[test]
fn a_type_becomes_a_json() {
    let shelf = Shelf {
        name: "é\n".into(),
        width: Some(3),
        items: vec![Item::Nothing, Item::Box { weight: 0.9, open: false }],
        note: parse("1.10"),
    };
    let value = Json::from_type(&shelf).unwrap();
    // A 32-bit float is written with the digits that it needs, and a `Json` as it was.
    assert_eq!(
        value.to_string(),
        r#"{"name":"é\n","width":3,"items":["nothing",{"box":{"weight":0.9,"open":false}}],"note":1.10}"#
    );
    assert_eq!(value.read::<Shelf>().unwrap(), shelf);
    let map: BTreeMap<Vec<u8>, u8> = [(vec![1], 1)].into();
    assert!(Json::from_type(&map).is_err());
}

/// Any JSON that a text can hold.
fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,24})?([eE][+-]?[0-9]{1,4})?"
            .prop_map(|literal| Json::Number(literal.into())),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::hash_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn written_by_serde_and_parsed_it_is_the_same(json in any_json()) {
        let text = serde_json::to_vec(&json).unwrap();
        prop_assert_eq!(&Json::parse(&text).unwrap(), &json);
        prop_assert_eq!(&Json::from_type(&json).unwrap(), &json);
    }

    #[test]
    fn read_from_itself_it_is_the_same(json in any_json()) {
        prop_assert_eq!(&json.read::<Json>().unwrap(), &json);
    }

    #[test]
    fn reading_any_json_as_a_type_never_panics(json in any_json()) {
        let _ = json.read::<Shelf>();
        let _ = json.read::<Item>();
        let _ = json.read::<Tagged>();
        let _ = json.read::<Vec<(u8, f32, Option<char>)>>();
        let _ = json.read::<serde_json::Value>();
    }
}
