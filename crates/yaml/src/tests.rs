use proctor_core::json::Json;
use proptest::prelude::*;

use super::*;

const LIMITS: Limits =
    Limits { source_bytes: 1 << 20, depth: 64, nodes: 100_000, text_bytes: 1 << 20, errors: 500 };

fn tree(source: &str) -> Rc<Node> {
    parse(source.as_bytes(), &LIMITS).expect("a tree")
}

fn kinds(source: &str, limits: &Limits) -> Vec<ErrorKind> {
    parse(source.as_bytes(), limits).expect_err("errors").into_iter().map(|error| error.kind).collect()
}

#[test]
fn an_alias_is_the_value_again() {
    let root = tree("a: &x {k: v}\nb: *x\n");
    let (_, repeated) = root.entry("b").unwrap();
    let Value::Text(text) = &repeated.entry("k").unwrap().1.value else { panic!("text") };
    assert_eq!(text, "v");
    assert_eq!(repeated.at, Position { line: 1, column: 7 });
    assert_eq!(repeated.alias, Some(Position { line: 2, column: 4 }));
    assert_eq!(root.entry("a").unwrap().1.alias, None);
}

#[test]
fn content_begins_behind_quotes_and_indentation() {
    let place = |source: &str| {
        let content = tree(source).entry("k").unwrap().1.content;
        (content.line, content.column)
    };
    assert_eq!(place("k: text\n"), (1, 4));
    assert_eq!(place("k:\n  text\n"), (2, 3));
    assert_eq!(place("k: 'text'\n"), (1, 5));
    assert_eq!(place("{\"k\": \"text\"}"), (1, 8));
    assert_eq!(place("k: |\n  text\n  more\n"), (2, 3));
    assert_eq!(place("k: |-  # why\n     text\n"), (2, 6));
    assert_eq!(place("k: >\n  text\n"), (2, 3));
    assert_eq!(place("k: |2\n    text\n  more\n"), (2, 3));
    assert_eq!(place("k: |\n\n    text\n"), (2, 5));
    assert_eq!(place("a: ä\r\nk: |\r\n  text\r\n"), (3, 3));
}

#[test]
fn every_limit_is_the_callers() {
    let deep = |limit| kinds("[[[1]]]", &Limits { depth: limit, ..LIMITS });
    assert_eq!(deep(2), [ErrorKind::TooDeep(2)]);
    assert!(parse(b"[[[1]]]", &Limits { depth: 3, ..LIMITS }).is_ok());
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n";
    assert!(parse(bomb.as_bytes(), &Limits { nodes: 26, ..LIMITS }).is_ok());
    assert_eq!(kinds(bomb, &Limits { nodes: 25, ..LIMITS }), [ErrorKind::TooManyNodes(25)]);
    assert!(parse(bomb.as_bytes(), &Limits { text_bytes: 17, ..LIMITS }).is_ok());
    assert_eq!(kinds(bomb, &Limits { text_bytes: 16, ..LIMITS }), [ErrorKind::TooMuchText(16)]);
    assert_eq!(
        kinds("a: 1\n", &Limits { source_bytes: 4, ..LIMITS }),
        [ErrorKind::TooLarge { bytes: 5, limit: 4 }]
    );
    assert_eq!(
        kinds("1: a\n2: b\n3: c\n", &Limits { errors: 2, ..LIMITS }),
        [
            ErrorKind::KeyNotString("1".to_owned()),
            ErrorKind::KeyNotString("2".to_owned()),
            ErrorKind::TooManyErrors(2)
        ]
    );
}

#[test]
fn recovering_leaves_out_only_what_is_wrong() {
    let parsed = parse_recovering(b"a: 1\n2: b\na: [3]\nc: !t d\n", &LIMITS);
    assert_eq!(parsed.root.unwrap().to_json().to_string(), r#"{"a":1,"c":"d"}"#);
    let shown: Vec<String> = parsed.errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "2:1: keys must be strings: put `2` in quotes",
            "3:1: duplicate key `a`, first given at line 1",
            "4:7: tags are not supported: remove `!t` (a quoted scalar is a string)",
        ]
    );
}

#[test]
fn numbers_that_json_cannot_write_stay_text() {
    assert_eq!(tree("[1.50, 0x10, .inf, 007]").to_json().to_string(), r#"[1.50,"0x10",".inf","007"]"#);
}

proptest! {
    #[test]
    fn any_text_gives_a_tree_or_errors(source in "[a-c:\\-\\[\\]{}&*!#|>'\", \n\t0-9~?<]{0,60}|\\PC{0,40}") {
        let parsed = parse_recovering(source.as_bytes(), &LIMITS);
        prop_assert!(parsed.root.is_some() || !parsed.errors.is_empty());
        prop_assert_eq!(parse(source.as_bytes(), &LIMITS).is_ok(), parsed.errors.is_empty());
    }
}

/// The tree of a source, put together from its parts.
fn tree_of_parts(source: &str) -> Json {
    let (parsed, count) = parse_without_items(source.as_bytes(), &LIMITS, "tests");
    let mut root = parsed.root.expect("a root").to_json();
    let found: Vec<Json> = items(source.as_bytes(), &LIMITS, "tests").map(|item| item.to_json()).collect();
    assert_eq!(found.len(), count, "{source}");
    if let Json::Object(members) = &mut root
        && let Some((_, Json::Array(left))) = members.iter_mut().find(|(name, _)| name == "tests")
    {
        assert!(left.is_empty() || found.is_empty(), "{source}");
        left.extend(found);
    }
    root
}

#[test]
fn items_of_a_streamed_list_are_those_of_the_tree() {
    for source in [
        "name: a\ntests:\n  - {id: 1}\n  - [x, y]\n  - text\nlast: [1, 2]\n",
        "tests: [{tests: [1, 2]}, 3]\n",
        "{\"tests\": []}",
        "a: {tests: [1, 2]}\n",
        "a: &a [1]\ntests: [*a, &b {k: *a}, *b]\nc: *b\n",
        // An anchored list may be repeated and stays whole; so does one that an alias stands for.
        "tests: &t [1, 2]\nb: *t\n",
        "a: &t [1, 2]\ntests: *t\n",
        "tests: 5\n",
    ] {
        assert_eq!(tree_of_parts(source), tree(source).to_json(), "{source}");
    }
}

#[test]
fn items_keep_their_positions() {
    let source = b"tests:\n  - id: a\n  - id: b\n";
    let found: Vec<Position> = items(source, &LIMITS, "tests").map(|item| item.at).collect();
    assert_eq!(found, [Position { line: 2, column: 5 }, Position { line: 3, column: 5 }]);
}

#[test]
fn errors_and_limits_are_the_same_without_items() {
    for source in [
        "tests: [{a: 1, a: 2}, !t x]\nb: 1\nb: 2\n",
        "tests: [1, 2\n",
        "tests: [1]\ntests: [2]\n",
        "",
        "tests: [*a]\n",
    ] {
        let whole = parse_recovering(source.as_bytes(), &LIMITS).errors;
        let (parts, _) = parse_without_items(source.as_bytes(), &LIMITS, "tests");
        assert!(!whole.is_empty(), "{source}");
        assert_eq!(parts.errors, whole, "{source}");
    }
    let few = Limits { nodes: 3, ..LIMITS };
    let (parts, _) = parse_without_items(b"tests: [1, 2, 3]", &few, "tests");
    assert_eq!(parts.errors[0].kind, ErrorKind::TooManyNodes(3));
    assert!(parts.root.is_none());
}
