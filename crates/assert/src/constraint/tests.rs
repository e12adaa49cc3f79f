use crate::check::{Assertion, evaluate};
use crate::tools::Tools;
use crate::trace::Trace;
use crate::verdict::{Status, Verdict};

const TRACE: &str = r#"{"trace_id":"t",
    "metadata":{"cost_usd":0.25,"total_tokens":150,"custom":{"depth":3},"label":"x","unset":null,
                "denied":[1,{"a":1}],"nested":{"list":[]},"box":{"length":40,"width":2},"twice":{"a":1,"a":2},
                "large":9007199254740993,"huge":170141183460469231731687303715884105727,"exponent":1.50e1},
    "output":{"message":"hi","score":0.5,"big":[1]},
    "steps":[{"type":"tool_call","name":"x","args":{"n":5},"result":7},
             {"type":"llm_call","name":"m","alias":"mm"},{"type":"tool_call","name":"y","args":{"n":6}}]}"#;

fn judge(spec: &str) -> Verdict {
    let trace = Trace::parse(TRACE).unwrap();
    evaluate(&trace, &Assertion::new("a", "constraint", spec).unwrap(), &Tools::default())
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

#[test]
fn every_field_that_is_a_number_can_be_compared() {
    for (field, number) in [
        ("metadata.cost_usd", "0.25"),
        ("metadata.total_tokens", "150"),
        ("metadata.custom.depth", "3"),
        ("steps.length", "3"),
        ("steps[?type=='tool_call'].length", "2"),
        ("steps[?type=='retrieval'].length", "0"),
        ("metadata.denied.length", "2"),
        ("metadata.custom.length", "1"),
        ("metadata.nested.list.length", "0"),
        ("metadata.box.length", "40"),
        ("output.big.length", "1"),
        ("output.length", "3"),
        ("steps[?name=='x'].args.length", "1"),
        ("steps[?name=='x'].length", "1"),
        ("steps[?name=='mm'].length", "1"),
        ("steps[?name=='y'].length", "1"),
        ("output.score", "0.5"),
        ("steps[?name=='x'].args.n", "5"),
        ("steps[?name=='x'].result", "7"),
    ] {
        assert_eq!(
            status(&format!(r#"{{"field":"{field}","operator":"eq","value":{number}}}"#)),
            Status::Pass,
            "{field}"
        );
        assert_eq!(
            status(&format!(r#"{{"field":"{field}","operator":"neq","value":{number}}}"#)),
            Status::HardFail,
            "{field}"
        );
    }
}

#[test]
fn operators() {
    for (operator, symbol, below, same, above) in [
        ("lt", "<", true, false, false),
        ("lte", "<=", true, true, false),
        ("gt", ">", false, false, true),
        ("gte", ">=", false, true, true),
        ("eq", "==", false, true, false),
        ("neq", "!=", true, false, true),
    ] {
        for word in [operator, symbol] {
            for (value, passes) in [("3.5", below), ("3", same), ("2.5", above)] {
                let spec = format!(r#"{{"field":"steps.length","operator":"{word}","value":{value}}}"#);
                assert_eq!(status(&spec) == Status::Pass, passes, "{spec}");
            }
        }
    }
    for (min, max, passes) in [(3, 3, true), (1, 3, true), (3, 9, true), (4, 9, false), (1, 2, false)] {
        let spec = format!(r#"{{"field":"steps.length","operator":"between","min":{min},"max":{max}}}"#);
        assert_eq!(status(&spec) == Status::Pass, passes, "{spec}");
    }
}

#[test]
fn a_number_that_is_not_there_fails_hard_even_when_soft() {
    for field in [
        "metadata.latency_ms",
        "metadata.unset",
        "metadata.label",
        "metadata.custom",
        "metadata.custom.nothing",
        "metadata.label.length",
        "metadata.nothing.length",
        "metadata.unset.length",
        "metadata.length",
        "output.message",
        "output.message.length",
        "output.nothing.length",
        "steps[?name=='m'].args.length",
        "output.big",
        "output.nothing",
        "steps[?name=='m'].args",
        "steps[?name=='nobody'].args.n",
    ] {
        let spec = format!(r#"{{"field":"{field}","operator":"lt","value":1,"soft":true}}"#);
        assert_eq!(status(&spec), Status::HardFail, "{field}");
    }
}

#[test]
fn what_makes_no_sense_is_an_error() {
    for spec in [
        r#"{"operator":"lt","value":1}"#,
        r#"{"field":"steps.length","value":1}"#,
        r#"{"field":"steps.length","operator":"lt"}"#,
        r#"{"field":"steps.length","operator":"lt","min":1,"max":2}"#,
        r#"{"field":"steps.length","operator":"between","min":1}"#,
        r#"{"field":"steps.length","operator":"between","max":1}"#,
        r#"{"field":"steps.length","operator":"between","value":1}"#,
        r#"{"field":"steps.length","operator":"between","min":2,"max":1}"#,
        r#"{"field":"steps.length","operator":"about","value":1}"#,
        r#"{"field":"steps.length","operator":"lt","value":"1"}"#,
        r#"{"field":5,"operator":"lt","value":1}"#,
        r#"{"field":"steps.length","operator":"lt","value":1,"soft":"yes"}"#,
        r#"{"field":"metadata","operator":"lt","value":1}"#,
        r#"{"field":"metadata.","operator":"lt","value":1}"#,
        r#"{"field":"steps[?type=='a'b'].length","operator":"lt","value":1}"#,
        r#"{"field":"steps[?type=='toolcall'].length","operator":"lt","value":1}"#,
        r#"{"field":"steps[?type==''].length","operator":"lt","value":1}"#,
        r#"{"field":"steps[?name==''].length","operator":"lt","value":1}"#,
        r#"{"field":"steps[?name==''].args.n","operator":"lt","value":1}"#,
        r#"{"field":"steps.length","operator":"gte","value":1,"max":2}"#,
        r#"{"field":"steps.length","operator":"<","value":9,"min":5}"#,
        r#"{"field":"steps.length","operator":"between","min":1,"max":9,"value":1}"#,
        r#"{"field":"metadata.twice.a","operator":"lt","value":9}"#,
        r#"{"field":"metadata.twice.length","operator":"lt","value":9}"#,
        r#"{"field":"steps[0]","operator":"lt","value":1}"#,
        r#"{"field":"","operator":"lt","value":1}"#,
        "null",
        "[]",
    ] {
        assert_eq!(status(spec), Status::Error, "{spec}");
    }
}

#[test]
fn other_names_work_and_the_usual_ones_win() {
    assert_eq!(status(r#"{"target":"steps.length","op":"<=","value":3}"#), Status::Pass);
    assert_eq!(
        status(
            r#"{"field":"steps.length","target":"metadata.nothing","operator":"eq","op":"neq","value":3}"#
        ),
        Status::Pass
    );
}

#[test]
fn soft_softens_only_a_failed_comparison() {
    assert_eq!(status(r#"{"field":"steps.length","operator":"gt","value":3,"soft":true}"#), Status::SoftFail);
    assert_eq!(status(r#"{"field":"steps.length","operator":"gte","value":3,"soft":true}"#), Status::Pass);
    assert_eq!(
        status(r#"{"field":"steps.length","operator":"gte","value":3,"threshold":"dynamic","other":[]}"#),
        Status::Pass
    );
}

#[test]
fn whole_numbers_are_compared_exactly_and_shown_as_they_came() {
    let says = |field: &str, operator: &str, value: &str| {
        judge(&format!(r#"{{"field":"{field}","operator":"{operator}","value":{value}}}"#))
    };
    for (field, operator, value, wanted) in [
        ("metadata.large", "lte", "9007199254740992", Status::HardFail),
        ("metadata.large", "eq", "9007199254740992", Status::HardFail),
        ("metadata.large", "neq", "9007199254740992", Status::Pass),
        ("metadata.large", "eq", "9007199254740993", Status::Pass),
        ("metadata.huge", "lt", "170141183460469231731687303715884105727", Status::HardFail),
        ("metadata.huge", "gt", "170141183460469231731687303715884105726", Status::Pass),
        ("metadata.exponent", "eq", "15", Status::Pass),
        ("metadata.nested.list.length", "eq", "-0", Status::Pass),
        ("metadata.nested.list.length", "eq", "-0.0", Status::Pass),
    ] {
        assert_eq!(says(field, operator, value).status, wanted, "{field} {operator} {value}");
    }
    let verdict = says("metadata.large", "lte", "9007199254740992");
    assert_eq!(verdict.actual, "9007199254740993");
    assert_eq!(verdict.expected, "at most 9007199254740992");
    assert!(
        says("metadata.exponent", "lt", "1.0").explanation.contains("is 1.50e1, but should be less than 1.0")
    );
}

#[test]
fn an_unused_operand_is_named_with_what_to_give() {
    let verdict = judge(r#"{"field":"steps.length","operator":"gte","value":1,"max":2}"#);
    assert!(
        verdict.explanation.contains("`gte` does not read `max`: give `value`"),
        "{}",
        verdict.explanation
    );
    let verdict = judge(r#"{"field":"steps[?type=='toolcall'].length","operator":"eq","value":0}"#);
    assert!(verdict.suggestion.contains("tool_call"), "{}", verdict.suggestion);
}

#[test]
fn a_value_that_is_cut_is_marked() {
    let document = format!(r#"{{"output":{{"v":"{}"}}}}"#, "s".repeat(300));
    let trace = Trace::parse(&document).unwrap();
    let spec = r#"{"field":"output.v","operator":"lt","value":1}"#;
    let verdict = evaluate(&trace, &Assertion::new("a", "constraint", spec).unwrap(), &Tools::default());
    assert!(verdict.explanation.contains("sss…"), "{}", verdict.explanation);
    let digits = format!(r#"{{"field":"steps.length","operator":"eq","value":0.{}}}"#, "1".repeat(300));
    assert!(judge(&digits).explanation.contains("111…"));
}

#[test]
fn a_bound_holds_for_each_step_and_a_step_without_the_number_fails() {
    let trace = r#"{"trace_id":"t","output":{"m":1},"steps":[
        {"type":"tool_call","name":"pay","args":{"amount":10,"to":["a"]}},
        {"type":"agent_call","name":"z","sub_trace":{"trace_id":"u","steps":[{"type":"tool_call","name":"pay","args":{"amount":70}}]}},
        {"type":"tool_call","name":"pay","args":{"amount":5000,"to":["a","b"]}},
        {"type":"tool_call","name":"log","args":{"text":"x"}}]}"#;
    let judge = |field: &str, most: u32| {
        let spec = format!(r#"{{"field":"{field}","operator":"lte","value":{most},"soft":true}}"#);
        evaluate(
            &Trace::parse(trace).unwrap(),
            &Assertion::new("a", "constraint", &spec).unwrap(),
            &Tools::default(),
        )
    };
    for (field, most, status, path) in [
        ("steps[?name=='pay'].args.amount", 100, Status::SoftFail, "steps[2].args.amount"),
        ("steps[?name=='pay'].args.amount", 5000, Status::Pass, ""),
        ("steps[?name=='pay'].args.to.length", 1, Status::SoftFail, "steps[2].args.to.length"),
        ("steps[*].args.amount", 60, Status::SoftFail, "steps[1].sub_trace.steps[0].args.amount"),
        ("steps[*].args.amount", 5000, Status::Pass, ""),
        ("steps[?name=='log'].args.amount", 100, Status::HardFail, "steps[?name=='log'].args.amount"),
        ("steps[*].args.text", 100, Status::HardFail, "steps[3].args.text"),
        ("steps[*].args.absent", 100, Status::HardFail, "steps[*].args.absent"),
    ] {
        let verdict = judge(field, most);
        assert_eq!((verdict.status, verdict.path.as_str()), (status, path), "{verdict:?}");
    }
}
