//! YAML that documents must not use, with messages and positions.

use crate::document::read_document;

/// The messages for a source that must be refused.
fn refused(source: &[u8]) -> Vec<String> {
    let problems = read_document("p", source).expect_err("must be refused");
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_source_that_is_too_large_is_refused_unread() {
    let source = vec![0xFF; 100_000_000];
    let messages = refused(&source);
    assert_eq!(
        messages,
        ["p:1:1: the source has 100000000 bytes; at most 1048576 are allowed, split it into several"]
    );
}

#[test]
fn nesting_is_bounded() {
    for depth in [65, 10_000, 100_000] {
        for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("[", ""), ("{a: ", "")] {
            let source = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let messages = refused(source.as_bytes());
            assert_eq!(messages.len(), 1, "{open}{depth}: {messages:?}");
            let expected = ["nested more than 64 deep", "recursion limit exceeded", "the source has"];
            assert!(expected.iter().any(|text| messages[0].contains(text)), "{messages:?}");
        }
    }
    let mut indented = String::new();
    for level in 0..1200 {
        indented.push_str(&" ".repeat(level));
        indented.push_str("a:\n");
    }
    assert_eq!(refused(indented.as_bytes()), ["p:65:65: nested more than 64 deep"]);
    let deepest = format!("{}1{}", "[".repeat(64), "]".repeat(64));
    assert_eq!(refused(deepest.as_bytes()), ["p:1:1: a policy document is a mapping, found a list"]);
}

#[test]
fn an_alias_bomb_is_counted_not_built() {
    let mut source = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let alias = format!("*a{}", level - 1);
        source.extend([format!("a{level}: &a{level} [{}]\n", [alias.as_str(); 10].join(", "))]);
    }
    let messages = refused(source.as_bytes());
    assert_eq!(messages, ["p:5:45: more than 100000 values, aliases counted as what they stand for"]);
}

#[test]
fn aliases_of_long_text_are_counted_by_their_text() {
    let aliases = ["*t"; 50].join(", ");
    let source = format!("a: &t {}\nb: [{aliases}]\n", "x".repeat(100_000));
    let messages = refused(source.as_bytes());
    assert_eq!(messages, ["p:2:41: more than 1048576 bytes of text, aliases counted as what they stand for"]);
}

#[test]
fn aliases_count_into_the_depth() {
    let half = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    let source = format!("a: &a {half}\nb: {}*a{}\n", "[".repeat(40), "]".repeat(40));
    assert_eq!(refused(source.as_bytes()), ["p:2:44: nested more than 64 deep"]);
}

#[test]
fn an_alias_inside_its_own_value_is_refused() {
    assert_eq!(refused(b"a: &a [*a]"), ["p:1:8: this alias stands inside the value that it repeats"]);
}

#[test]
fn many_values_are_refused() {
    let source = format!("a: [{}]", "1,".repeat(200_000));
    assert_eq!(refused(source.as_bytes()).len(), 1);
    let source = "k: v\n".repeat(100_000);
    let messages = refused(source.as_bytes());
    assert_eq!(messages.len(), 501, "the number of problems is bounded");
}

#[test]
fn text_that_is_not_utf8_is_refused_where_it_goes_wrong() {
    assert_eq!(
        refused(b"version: \"1\"\nname: \xC3\xA4\xFF\n"),
        ["p:2:8: the source is not valid UTF-8 from here on; save it as UTF-8"]
    );
    assert_eq!(refused(b"\xFF\xFEv\0"), ["p:1:1: the source looks like UTF-16; save it as UTF-8"]);
}

#[test]
fn control_characters_are_refused() {
    assert_eq!(refused(b"a: 1\nb: \0c: 2\n"), ["p:2:4: control character U+0000 in the source; remove it"]);
    assert_eq!(refused(b"a: \x1b[0m\n"), ["p:1:4: control character U+001B in the source; remove it"]);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert!(read_document("p", "\u{FEFF}version: \"1\"\n".as_bytes()).is_ok());
    assert_eq!(
        refused("\u{FEFF}verion: \"1\"\n".as_bytes()),
        ["p:1:1: unknown key `verion`; did you mean `version`?"]
    );
}

#[test]
fn what_yaml_has_beyond_json_is_refused() {
    let cases: [(&str, &[&str]); 9] = [
        ("version: \"1\"\nversion: \"2\"\n", &["p:2:1: duplicate key `version`, first given at line 1"]),
        ("tools:\n  1: {allow: true}\n", &["p:2:3: keys must be strings: put `1` in quotes"]),
        ("tools:\n  true: {allow: true}\n", &["p:2:3: keys must be strings: put `true` in quotes"]),
        (
            "tools:\n  ~: {allow: true}\n",
            &["p:2:3: keys must be strings, and this one is null; put it in quotes"],
        ),
        (
            "tools:\n  ? [a]\n  : {allow: true}\n",
            &["p:2:5: keys must be strings written in place, not lists, mappings or aliases"],
        ),
        (
            "version: !!str 1\n",
            &[
                "p:1:16: `version`: expected a string, found a number; put it in quotes",
                "p:1:16: tags are not supported: remove `!!str` (a quoted scalar is a string)",
            ],
        ),
        (
            "tools:\n  a: &a {allow: true}\n  b:\n    <<: *a\n",
            &[
                "p:4:5: merge keys (`<<`) are not supported; write the keys out (an alias can stand for a whole value)",
            ],
        ),
        (
            "version: \"1\"\n---\nversion: \"2\"\n",
            &["p:2:1: a second document begins here; put each document in a file of its own"],
        ),
        ("version: \"1\"\n: x\n", &["p:2:1: keys must be strings, and this one is null; put it in quotes"]),
    ];
    for (source, expected) in cases {
        assert_eq!(refused(source.as_bytes()), expected, "{source}");
    }
}

#[test]
fn nothing_is_not_a_document() {
    for source in ["", " \n\n", "# only a comment\n"] {
        assert_eq!(refused(source.as_bytes()), ["p:1:1: the document is empty"], "{source:?}");
    }
    assert_eq!(refused(b"---\n"), ["p:2:1: a policy document is a mapping, found nothing"]);
    assert_eq!(refused(b"- a\n"), ["p:1:1: a policy document is a mapping, found a list"]);
}

#[test]
fn broken_yaml_is_refused_where_it_breaks() {
    let messages = refused(b"version: \"1\"\ntools: [a, b\n");
    assert_eq!(messages.len(), 1);
    assert!(messages[0].contains("is not valid YAML"), "{messages:?}");
}

#[test]
fn columns_count_characters() {
    let problems = read_document("p", "{\"äöü\": 1, \"x\": 2}".as_bytes()).expect_err("unknown keys");
    let places: Vec<usize> = problems.iter().map(|problem| problem.at.column).collect();
    assert_eq!(places, [2, 12]);
}
