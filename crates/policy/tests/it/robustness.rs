//! Random inputs for conditions and approval expressions.

use crate::any_input;

#[test]
fn no_condition_makes_the_compiler_panic() {
    for data in [
        b"action.args.items.map(i, i.x)".as_slice(),
        b"\xff\xfe",
        b"",
        b"action.paths[0] == \"/etc/passwd\"",
        b"((((((((",
        b"'\\",
    ] {
        any_input::condition(data).unwrap();
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_makes_conditions_panic(text in "[ -~\\n]{0,60}") {
        any_input::condition(text.as_bytes()).unwrap();
    }

    #[test]
    fn no_sequence_of_words_makes_conditions_panic(words in proptest::collection::vec(proptest::sample::select(vec![
        "action", "session", ".", "args", "x", "(", ")", "[", "]", "{", "}", ":", "?", "&&", "||", "!", "-", "==", "\"a\"",
        "'", "\"", "1", "1u", "1.5", "has", "exists", "map", ",", "in", "matches", "size", "é", "r\"", "\\", "+", "%", "duration",
    ]), 0..14)) {
        any_input::condition(words.concat().as_bytes()).unwrap();
        any_input::condition(words.join(" ").as_bytes()).unwrap();
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_expressions_panic(text in "[a-z_.]{0,12} ?[=!<>]{0,2} ?(\"[ -~]{0,8}\"|\\[[ -~]{0,8}\\]|[ -~]{0,8})( AND| OR)?.{0,20}") {
        any_input::expression(text.as_bytes()).unwrap();
    }
}
