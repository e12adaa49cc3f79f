use std::collections::BTreeSet;

use serde_json::json;

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
            r#""word_count","operator":"eq","value":5,"min":1"#,
            r#""word_count","operator":"between","min":1,"max":9,"value":5"#,
            r#""word_count","min":1,"value":5"#,
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

/// Checks that these are errors whose words have a part.
fn refused(cases: &[(&str, &str)]) {
    for (case, words) in cases {
        let verdict = judge(&format!(r#"{{"check":{case}}}"#));
        assert_eq!(verdict.status, Status::Error, "{case}: {}", verdict.explanation);
        assert!(verdict.explanation.contains(words), "{case}: {}", verdict.explanation);
    }
}

#[test]
fn the_member_that_a_check_reads_must_be_there() {
    refused(&[
        (r#""contains","value":null"#, "has no `value`"),
        (r#""contains","values":null"#, "has no `value`"),
        (r#""not_contains","value":null,"values":null"#, "has no `value`"),
        (r#""starts_with","value":null"#, "has no `value`"),
        (r#""equals","value":null"#, "has no `value`"),
        (r#""regex_match","value":null,"pattern":null"#, "has no `value`"),
        (r#""forbidden","values":null"#, "has no `values`"),
        (r#""keyword_all","values":null,"value":null"#, "has no `values`"),
        (r#""forbidden","value":"""#, "`value` of `forbidden` is empty"),
        (r#""keyword_any","values":["a",null]"#, "values[1] is null"),
        (r#""forbidden","values":[null]"#, "values[0] is null"),
        (r#""contains","values":[null]"#, "values[0] is null"),
    ]);
}

#[test]
fn a_member_that_a_check_does_not_read_is_an_error() {
    refused(&[
        (r#""forbidden","pattern":"hello""#, "does not read `pattern`: give `values`"),
        (r#""keyword_all","pattern":"absent","values":[]"#, "does not read `pattern`: give `values`"),
        (r#""not_contains","pattern":"hello","value":"absent""#, "does not read `pattern`: give `value`"),
        (r#""not_regex_match","values":["hello"]"#, "does not read `values`: give the pattern as `value`"),
        (r#""matches","pattern":"hello","values":[]"#, "does not read `values`"),
        (r#""starts_with","values":["x"]"#, "does not read `values`: give `value`"),
        (r#""equals","value":"a","pattern":"b""#, "does not read `pattern`: give `value`"),
        (r#""contains","value":"hello","min":3"#, "does not read `min`"),
        (r#""contains","value":"hello","op":"lt""#, "does not read `operator`"),
        (r#""word_count","min":1,"values":["a"]"#, "does not read `values`: give `min`, `max`"),
        (r#""contains","value":"hello","values":["absent"]"#, "give one of them"),
        (r#""not_contains","value":"absent","values":["hello"]"#, "give one of them"),
        (r#""forbidden","value":"absent","values":[]"#, "give one of them"),
    ]);
}

/// Result of a check on an output of this JSON.
fn in_output(output: &str, check: &str) -> Verdict {
    let document = format!(r#"{{"trace_id":"t","output":{output}}}"#);
    let trace = Trace::parse(&document).unwrap();
    let spec = format!(r#"{{"target":"output","check":{check}}}"#);
    evaluate(&trace, &Assertion::new("a", "content", &spec).unwrap(), &Tools::default())
}

#[test]
fn what_the_strings_in_an_object_say_is_found_whatever_they_are_escaped_with() {
    let output = json!({"list": [
        {"path": r"see C:\Secrets\key", "quote": r#"say "password""#, "lines": "two\nlines\ttab"},
        {r#"a "name""#: 1, "half": "HALF"},
    ]});
    let output = output.to_string().replace("HALF", r#"\u0070in \"code\" \ud800"#);
    for word in
        [r"c:\secrets", r#"say "PASSWORD""#, "two\nlines", "lines\ttab", r#"a "name""#, r#"pin "code""#]
    {
        let word = json!(word);
        for (check, wanted) in [
            (format!(r#""forbidden","values":[{word}]"#), Status::HardFail),
            (format!(r#""not_contains","value":{word}"#), Status::HardFail),
            (format!(r#""contains","value":{word}"#), Status::Pass),
            (format!(r#""keyword_any","values":["absent",{word}]"#), Status::Pass),
        ] {
            assert_eq!(in_output(&output, &check).status, wanted, "{check}");
        }
    }
    for pattern in [r"C:\\Secrets\\k", r#"^say "password"$"#, r"(?m)^lines\s"] {
        let pattern = json!(pattern);
        for (check, wanted) in [("not_regex_match", Status::HardFail), ("regex_match", Status::Pass)] {
            let verdict = in_output(&output, &format!(r#""{check}","value":{pattern}"#));
            assert_eq!(verdict.status, wanted, "{check} {pattern}");
        }
    }
    // A backslash and an `n` are no new line.
    assert_eq!(in_output(r#"{"a":"x\\ny"}"#, r#""contains","value":"x\ny""#).status, Status::HardFail);
    // The edges are those of the whole.
    assert_eq!(in_output(&output, r#""starts_with","value":"see""#).status, Status::HardFail);
}

#[test]
fn half_a_character_does_not_hide_what_stands_beside_it() {
    let trace = Trace::parse(r#"{"output":{"message":"\u0070assword \ud800"}}"#).unwrap();
    let spec = r#"{"check":"forbidden","values":["password"]}"#;
    let verdict = evaluate(&trace, &Assertion::new("a", "content", spec).unwrap(), &Tools::default());
    assert_eq!(verdict.status, Status::HardFail);
}

#[test]
fn members_that_stand_twice_cannot_be_judged() {
    let verdict = in_output(r#"{"a":{"b":"password","b":"nothing"}}"#, r#""contains","value":"nothing""#);
    assert_eq!(verdict.status, Status::Error);
    assert!(verdict.explanation.contains("has the member `b` twice"), "{}", verdict.explanation);
    refused(&[(r#""forbidden","values":["hello"],"values":[]"#, "the spec has the member `values` twice")]);
}

#[test]
fn one_is_one_word_and_texts_equal() {
    let verdict = in_output(r#""alone""#, r#""word_count","max":0"#);
    assert_eq!((verdict.actual.as_str(), verdict.expected.as_str()), ("1 word", "at most 0 words"));
    assert!(verdict.explanation.contains("has 1 word, but should have at most 0"), "{}", verdict.explanation);
    assert_eq!(in_output(r#""a b""#, r#""word_count","max":1"#).expected, "at most 1 word");
    assert_eq!(in_output(r#""a""#, r#""equals","value":"b""#).expected, "a text that equals b");
    assert_eq!(in_output(r#""a""#, r#""ends_with","value":"b""#).expected, "a text that ends with b");
    assert_eq!(in_output(r#""a""#, r#""starts_with","value":"a""#).explanation, "`output` starts with `a`");
}

#[test]
fn many_words_are_found_as_few_are_and_too_many_are_refused() {
    let list = |count: usize, last: &str| {
        let mut words: Vec<String> = (0..count).map(|number| format!("\"absent{number}x\"")).collect();
        words.push(format!("\"{last}\""));
        words.join(",")
    };
    for count in [10, 60, 9_999] {
        let case = |check: &str, last: &str| format!(r#""{check}","values":[{}]"#, list(count, last));
        expect(Status::HardFail, &[&case("forbidden", "WORLD"), &case("keyword_any", "nowhere")]);
        expect(Status::Pass, &[&case("forbidden", "nowhere"), &case("keyword_any", "second LINE")]);
        let verdict = judge(&format!(r#"{{"check":{}}}"#, case("keyword_all", "hello")));
        assert!((verdict.score - 1.0 / (count as f64 + 1.0)).abs() < 1e-12, "{}", verdict.score);
        assert!(verdict.explanation.contains("`absent0x`"), "{}", verdict.explanation);
    }
    let all = vec!["\"hello\",\"world\",\"lo\",\"\""; 20].join(",");
    expect(Status::Pass, &[&format!(r#""keyword_all","values":[{all}]"#)]);
    refused(&[(&format!(r#""forbidden","values":[{}]"#, list(10_000, "a")), "more than 10000")]);
}

#[test]
fn words_within_each_other_do_not_take_for_ever() {
    let text = "a".repeat(1_000_000);
    let mut words: Vec<String> = (1..1_000).map(|length| format!("\"{}\"", "a".repeat(length))).collect();
    words.push("\"b\"".to_owned());
    let began = std::time::Instant::now();
    let verdict =
        in_output(&format!("\"{text}\""), &format!(r#""keyword_all","values":[{}]"#, words.join(",")));
    assert!((verdict.score - 0.999).abs() < 1e-12);
    assert!(began.elapsed() < std::time::Duration::from_secs(10));
}

#[test]
fn a_pattern_that_is_cut_is_marked() {
    let verdict = judge(&format!(r#"{{"check":"regex_match","value":"({}"}}"#, "x".repeat(200)));
    assert!(verdict.explanation.contains("xxx…` cannot be used"), "{}", verdict.explanation);
}

#[test]
fn the_page_lists_every_check_and_member() {
    let page = include_str!("../../../../docs/attest.md");
    let row = page.lines().find(|line| line.starts_with("| `content` |")).unwrap();
    let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
    let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2).collect::<BTreeSet<&str>>();
    let (members, checks) = (quoted(cells[1]), quoted(cells[2]));
    for check in super::rule::CHECKS.split(", ") {
        assert!(checks.contains(check), "`{check}` is not in docs/attest.md");
    }
    for check in &checks {
        let verdict = judge(&format!(r#"{{"check":"{check}"}}"#));
        assert!(!verdict.explanation.contains("is not a check"), "{}", verdict.explanation);
    }
    // `threshold` belongs to every type, and has a paragraph of its own.
    let known = super::MEMBERS.iter().copied().filter(|member| *member != "threshold");
    assert_eq!(members, known.collect());
}

const STEPS: &str = r#"{"trace_id":"t","output":{"message":"m"},"steps":[
    {"type":"tool_call","name":"x","args":{"q":"clean"},"result":"fine"},
    {"type":"tool_call","name":"y","args":{"q":7}},
    {"type":"agent_call","name":"z","sub_trace":{"trace_id":"u","steps":[{"type":"tool_call","name":"deep","args":{"q":"hidden secret"}}]}},
    {"type":"tool_call","name":"x","args":{"q":"a secret","r":1},"result":"leak"}]}"#;

fn judge_steps(rest: &str) -> Verdict {
    let trace = Trace::parse(STEPS).unwrap();
    let spec = format!(r"{{{rest}}}");
    evaluate(&trace, &Assertion::new("a", "content", &spec).unwrap(), &Tools::default())
}

#[test]
fn what_is_excluded_is_in_none_of_the_steps() {
    for check in [
        r#""not_contains","value":"secret""#,
        r#""forbidden","values":["secret"]"#,
        r#""not_matches","pattern":"s.cret""#,
    ] {
        let found = judge_steps(&format!(r#""target":"steps[?name=='x'].args.q","check":{check}"#));
        assert_eq!((found.status, found.path.as_str()), (Status::HardFail, "steps[3].args.q"), "{check}");
        let found = judge_steps(&format!(r#""target":"steps[*].args","check":{check}"#));
        assert_eq!(
            (found.status, found.path.as_str()),
            (Status::HardFail, "steps[2].sub_trace.steps[0].args"),
            "{check}"
        );
        let clean = judge_steps(&format!(r#""target":"steps[*].result","check":{check}"#));
        assert_eq!(clean.status, Status::Pass, "{check}");
        assert!(clean.explanation.contains("each of 2 steps"), "{}", clean.explanation);
    }
    // A check that asks for something is about the first step of that name, as released.
    assert_eq!(
        judge_steps(r#""target":"steps[?name=='x'].args.q","check":"contains","value":"clean""#).status,
        Status::Pass
    );
    assert_eq!(
        judge_steps(r#""target":"steps[*].args.q","check":"contains","value":"clean""#).status,
        Status::HardFail
    );
    assert_eq!(
        judge_steps(r#""target":"steps[*].args.q","check":"matches","pattern":".""#).status,
        Status::Pass
    );
}

#[test]
fn a_whole_step_is_its_names_arguments_and_result() {
    for (word, there) in
        [("deep", true), ("LEAK", true), ("secret", true), ("args", false), ("tool_call", false)]
    {
        let found = judge_steps(&format!(r#""target":"steps[*]","check":"not_contains","value":"{word}""#));
        assert_eq!(found.status == Status::HardFail, there, "{word}: {found:?}");
    }
}

#[test]
fn a_target_that_is_missing_or_cannot_be_decided_is_never_soft() {
    for (target, status) in [
        ("steps[?name=='none'].args", Status::HardFail),
        ("steps[?name=='x'].args.r", Status::HardFail),
        ("steps[*].args.absent", Status::HardFail),
        ("steps[*].result.r", Status::Error),
        ("output.structured", Status::HardFail),
    ] {
        for check in [
            r#""not_contains","value":"zzz""#,
            r#""forbidden","values":["zzz"]"#,
            r#""not_matches","pattern":"zzz""#,
        ] {
            let found = judge_steps(&format!(r#""soft":true,"target":"{target}","check":{check}"#));
            assert_eq!(found.status, status, "{target} {check}: {found:?}");
        }
    }
    // A soft failure in one step does not hide that another one lacks the value.
    let soft = judge_steps(
        r#""soft":true,"target":"steps[?name=='x'].args.q","check":"not_contains","value":"secret""#,
    );
    assert_eq!(soft.status, Status::SoftFail);
    let both = judge_steps(
        r#""soft":true,"target":"steps[?name=='x'].result.q","check":"not_contains","value":"f""#,
    );
    assert_eq!(both.status, Status::HardFail);
}

#[test]
fn patterns_have_ascii_classes_as_in_re2() {
    for (pattern, text, matches) in [
        (r"^\\d+$", "12", true),
        (r"^\\d+$", "١٢", false),
        (r"^\\w+$", "grün", false),
        (r"gr\\b", "grün", true),
        (r"^\\s$", "\u{a0}", false),
        (r"(?i)^GRÜN\\d$", "grün1", true),
    ] {
        let trace = format!(r#"{{"trace_id":"t","output":{{"message":"{text}"}}}}"#);
        let spec = format!(r#"{{"check":"matches","pattern":"{pattern}"}}"#);
        let verdict = evaluate(
            &Trace::parse(&trace).unwrap(),
            &Assertion::new("a", "content", &spec).unwrap(),
            &Tools::default(),
        );
        assert_eq!(verdict.status.passed(), matches, "{pattern} on {text}: {verdict:?}");
        assert!(!verdict.explanation.contains("[0-9]"), "{}", verdict.explanation);
    }
}
