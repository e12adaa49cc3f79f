use crate::check::{Assertion, evaluate};
use crate::tools::Tools;
use crate::trace::Trace;
use crate::verdict::{Status, Verdict};

const TRACE: &str = r#"{"trace_id":"t",
    "output":{"message":"Hello World, hello ΟΔΟΣΑ\nsecond line","none":null,"number":1.50,
              "list":[1, 2],"object":{ "city" : "K\u00f6ln" },"blank":""},
    "steps":[{"type":"tool_call","name":"x","args":{"q":"Find Me"}},{"type":"tool_call","name":"x","args":{"q":"later"}}]}"#;

fn judge(spec: &str) -> Verdict {
    let trace = Trace::parse(TRACE).unwrap();
    evaluate(&trace, &Assertion::new("a", "content", spec).unwrap(), &Tools::default())
}

fn status(spec: &str) -> Status {
    let verdict = judge(spec);
    assert!(!verdict.explanation.is_empty(), "{spec}");
    if matches!(verdict.status, Status::SoftFail | Status::HardFail) {
        assert!(
            !verdict.path.is_empty()
                && !verdict.expected.is_empty()
                && !verdict.actual.is_empty()
                && !verdict.suggestion.is_empty(),
            "a failure says where, what and what to do: {spec}"
        );
    }
    verdict.status
}

/// Checks the members that follow `"check"`.
fn expect(status_wanted: Status, cases: &[&str]) {
    for case in cases {
        let spec = format!(r#"{{"check":{case}}}"#);
        assert_eq!(status(&spec), status_wanted, "{spec}");
    }
}

#[test]
fn contains() {
    expect(
        Status::Pass,
        &[
            r#""contains","value":"hello world""#,
            r#""contains","value":"World","case_sensitive":true"#,
            r#""contains","value":"""#,
            r#""contains","values":["hello","LINE"]"#,
            r#""contains","values":[]"#,
            r#""contains","value":"hello","values":["absent"]"#,
        ],
    );
    expect(
        Status::HardFail,
        &[
            r#""contains","value":"bye""#,
            r#""contains","value":"world","case_sensitive":true"#,
            r#""contains","values":["hello","absent"]"#,
        ],
    );
}

#[test]
fn not_contains() {
    expect(
        Status::Pass,
        &[
            r#""not_contains","value":"bye""#,
            r#""not_contains","value":"world","case_sensitive":true"#,
            r#""not_contains","values":["bye","absent"]"#,
        ],
    );
    expect(
        Status::HardFail,
        &[
            r#""not_contains","value":"WORLD""#,
            r#""not_contains","value":"""#,
            r#""not_contains","values":[]"#,
            r#""not_contains","values":["bye","hello"]"#,
        ],
    );
}

#[test]
fn patterns() {
    expect(
        Status::Pass,
        &[
            r#""regex_match","value":"W[a-z]+d""#,
            r#""matches","pattern":"W[a-z]+d""#,
            r#""regex_match","value":"(?i)hELLO""#,
            r#""regex_match","value":"""#,
            r#""regex_match","value":"Hello","pattern":"absent""#,
            r#""regex_match","value":"^Hello(?s).*line$""#,
            r#""regex_match","value":"(?m)^second""#,
            r#""not_regex_match","value":"^second""#,
            r#""not_matches","pattern":"absent""#,
            r#""not_regex_match","value":"Hello.*second""#,
        ],
    );
    expect(
        Status::HardFail,
        &[
            r#""regex_match","value":"hELLO""#,
            r#""regex_match","value":"hELLO","case_sensitive":false"#,
            r#""regex_match","value":"World$""#,
            r#""not_regex_match","value":"Hello""#,
        ],
    );
    let long = format!(r#"{{"check":"regex_match","value":"{}"}}"#, "a".repeat(10_001));
    assert_eq!(status(&long), Status::Error);
    let long = format!(r#"{{"check":"regex_match","value":"{}"}}"#, "a".repeat(10_000));
    assert_eq!(status(&long), Status::HardFail);
    expect(
        Status::Error,
        &[
            r#""regex_match","value":"(""#,
            r#""regex_match","value":"(?=a)""#,
            r#""regex_match","value":"(a)\\1""#,
            r#""regex_match","value":"a{1001}""#,
            r#""regex_match","value":"a{1,1001}""#,
            r#""regex_match","value":"((a{1000}){1000}){1000}""#,
        ],
    );
    expect(
        Status::HardFail,
        &[
            r#""regex_match","value":"a{1000}""#,
            r#""regex_match","value":"\\x{10FFFF}""#,
            r#""regex_match","value":"[{2000}]z""#,
        ],
    );
}

#[test]
fn keywords() {
    expect(
        Status::Pass,
        &[
            r#""keyword_all","values":["HELLO","world"]"#,
            r#""keyword_all","values":[]"#,
            r#""keyword_all","value":"hello""#,
            r#""keyword_any","values":["absent","world"]"#,
            r#""keyword_any","value":"world""#,
            r#""forbidden","values":["absent"]"#,
            r#""forbidden","values":[]"#,
        ],
    );
    expect(
        Status::HardFail,
        &[
            r#""keyword_all","values":["hello","absent"]"#,
            r#""keyword_any","values":["absent"]"#,
            r#""keyword_any","values":[]"#,
            r#""forbidden","values":["absent","WORLD"]"#,
            r#""forbidden","value":"WORLD""#,
        ],
    );
    let verdict = judge(r#"{"check":"keyword_all","values":["hello","absent","world","line"]}"#);
    assert!((verdict.score - 0.75).abs() < 1e-12);
}

#[test]
fn edges_and_counts() {
    expect(
        Status::Pass,
        &[
            r#""starts_with","value":"hello w""#,
            r#""starts_with","value":"""#,
            r#""ends_with","value":"LINE""#,
            r#""equals","target":"output.number","value":"1.50""#,
            r#""equals","target":"output.none","value":"""#,
            r#""word_count","min":6,"max":6"#,
            r#""word_count","min":1"#,
            r#""word_count","max":6"#,
            r#""word_count","operator":"eq","value":6"#,
            r#""word_count","op":"<","value":6.5"#,
            r#""word_count","operator":"between","min":6,"max":7"#,
            r#""word_count","target":"output.blank","max":0"#,
        ],
    );
    expect(
        Status::HardFail,
        &[
            r#""starts_with","value":"world""#,
            r#""starts_with","value":"hello","case_sensitive":true"#,
            r#""ends_with","value":"hello""#,
            r#""equals","value":"hello""#,
            r#""word_count","min":7"#,
            r#""word_count","max":5"#,
            r#""word_count","operator":"neq","value":6"#,
        ],
    );
}

#[test]
fn what_makes_no_sense_is_an_error() {
    expect(
        Status::Error,
        &[
            r#""contains","value":5"#,
            r#""contains","values":"hello""#,
            r#""contains","values":[5]"#,
            r#""contains","value":"a","case_sensitive":"no""#,
            r#""contains","value":"a","soft":1"#,
            r#""contains","value":"a","target":"""#,
            r#""contains","value":"a","target":"input""#,
            r#""contains","value":"a","target":7"#,
            r#""similar","value":"a""#,
            r#""contains""#,
            r#""contains","vlaue":"a""#,
            r#""contains","value":null"#,
            r#""not_contains""#,
            r#""regex_match""#,
            r#""matches""#,
            r#""not_matches""#,
            r#""keyword_all""#,
            r#""keyword_any""#,
            r#""forbidden""#,
            r#""starts_with""#,
            r#""ends_with""#,
            r#""equals""#,
            r#""word_count""#,
            r#""word_count","value":5"#,
            r#""word_count","operator":"eq","value":"5""#,
            r#""word_count","operator":"eq""#,
            r#""word_count","operator":"about","value":5"#,
            r#""word_count","min":3,"max":2"#,
            "5",
            "null",
        ],
    );
    assert_eq!(status("null"), Status::Error);
    assert_eq!(status("[]"), Status::Error);
}

#[test]
fn soft_softens_all_but_the_forbidden_and_the_absent() {
    expect(
        Status::SoftFail,
        &[
            r#""contains","value":"bye","soft":true"#,
            r#""not_contains","value":"hello","soft":true"#,
            r#""regex_match","value":"bye","soft":true"#,
            r#""keyword_any","values":["bye"],"soft":true"#,
            r#""word_count","min":99,"soft":true"#,
        ],
    );
    expect(
        Status::HardFail,
        &[
            r#""forbidden","values":["hello"],"soft":true"#,
            r#""contains","value":"a","target":"output.nothing","soft":true"#,
            r#""not_contains","value":"a","target":"output.nothing","soft":true"#,
            r#""forbidden","values":["a"],"target":"steps[?name=='nobody'].args","soft":true"#,
        ],
    );
}

#[test]
fn what_is_said_in_json_does_not_depend_on_its_writer() {
    expect(
        Status::Pass,
        &[
            r#""contains","target":"output.list","value":"[1, 2]""#,
            r#""contains","target":"output.list","value":"[1,2]""#,
            r#""equals","target":"output.list","value":"[1,2]""#,
            r#""contains","target":"output.object","value":"köln""#,
            r#""contains","target":"output.object","value":"{\"city\":\"KÖLN\"}""#,
            r#""keyword_all","target":"output.object","values":["{ \"city\"","Köln"]"#,
            r#""regex_match","target":"output.object","value":"K.ln\"""#,
            r#""contains","target":"steps[?name=='x'].args.q","value":"find me""#,
        ],
    );
    expect(
        Status::HardFail,
        &[
            r#""not_contains","target":"output.object","value":"Köln""#,
            r#""not_contains","target":"output.object","value":"K\\u00f6ln""#,
            r#""forbidden","target":"output.object","values":["köln"]"#,
            r#""not_regex_match","target":"output.object","value":"ö""#,
            r#""contains","target":"steps[?name=='x'].args.q","value":"later""#,
        ],
    );
}

#[test]
fn a_step_without_the_member_is_an_empty_text() {
    expect(
        Status::Pass,
        &[
            r#""equals","target":"steps[?name=='x'].result","value":"""#,
            r#""not_contains","target":"steps[?name=='x'].result","value":"a""#,
        ],
    );
    expect(Status::HardFail, &[r#""contains","target":"steps[?name=='x'].result","value":"a""#]);
}

#[test]
fn lower_case_is_that_of_each_character() {
    // A final sigma has another small form; where the word ends must not decide what is found.
    expect(Status::Pass, &[r#""contains","value":"ΟΔΟΣ""#, r#""contains","value":"οδοσ""#]);
    assert_eq!(super::lowered("İSTANBUL"), "istanbul");
    assert_eq!(super::lowered("ÄÖ ß"), "äö ß");
}

#[test]
fn evidence_shows_the_place_and_is_short() {
    let text = format!("{} SECRET {}", "ä".repeat(5000), "b".repeat(5000));
    let output = serde_json::to_string(&text).unwrap();
    let document = format!(r#"{{"output":{{"message":{output}}}}}"#);
    let trace = Trace::parse(&document).unwrap();
    let spec = r#"{"check":"forbidden","values":["secret"]}"#;
    let verdict = evaluate(&trace, &Assertion::new("a", "content", spec).unwrap(), &Tools::default());
    assert!(verdict.actual.contains("SECRET"), "{}", verdict.actual);
    assert!(verdict.actual.len() < 420);
    assert!(verdict.explanation.contains("`secret`"));
}
