use std::fmt::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::check::{Assertion, evaluate};
use crate::tools::Tools;
use crate::trace::Trace;
use crate::verdict::{Status, Verdict};

fn judge_text(schema: &str, value: &str) -> Verdict {
    let document = format!(
        r#"{{"trace_id":"t","output":{{"v":{value}}},"steps":[{{"type":"tool_call","name":"silent"}}]}}"#
    );
    let trace = Trace::parse(&document).unwrap();
    let spec = format!(r#"{{"target":"output.v","schema":{schema},"soft":true}}"#);
    evaluate(&trace, &Assertion::new("a", "schema", &spec).unwrap(), &Tools::default())
}

fn judge(schema: &Value, value: &Value) -> Verdict {
    judge_text(&schema.to_string(), &value.to_string())
}

fn status(schema: &Value, value: &Value) -> Status {
    let verdict = judge(schema, value);
    assert!(!verdict.explanation.is_empty());
    if verdict.status == Status::HardFail {
        assert!(
            !verdict.path.is_empty()
                && !verdict.expected.is_empty()
                && !verdict.actual.is_empty()
                && !verdict.suggestion.is_empty(),
            "a failure says where, what and what to do: {schema}"
        );
    }
    verdict.status
}

#[test]
fn shapes() {
    for (schema, value, wanted) in [
        (json!({"type": "object", "required": ["a"]}), json!({"a": 1}), Status::Pass),
        (json!({"type": "object", "required": ["a"]}), json!({}), Status::HardFail),
        (json!(true), json!(5), Status::Pass),
        // A member that is `null` is there, and is looked at as any other.
        (json!({}), json!(null), Status::Pass),
        (json!({}), json!([null]), Status::Pass),
        (json!(false), json!(5), Status::HardFail),
        (json!({"type": "integer"}), json!(1.0), Status::Pass),
        (json!({"type": "integer"}), json!(1.5), Status::HardFail),
        (json!({"maxLength": 2}), json!("äö"), Status::Pass),
        (json!({"maxLength": 1}), json!("äö"), Status::HardFail),
        (json!({"maxLength": 1}), json!("😀"), Status::Pass),
        (json!({"pattern": "b+"}), json!("abc"), Status::Pass),
        (json!({"pattern": "^b+"}), json!("abc"), Status::HardFail),
        (json!({"contentMediaType": "application/json"}), json!("{"), Status::Pass),
    ] {
        assert_eq!(status(&schema, &value), wanted, "{schema} {value}");
    }
}

#[test]
fn drafts() {
    let format = |draft: &str| json!({"$schema": draft, "format": "ipv4"});
    for (draft, asserted) in [
        ("http://json-schema.org/draft-04/schema#", true),
        ("http://json-schema.org/draft-06/schema#", true),
        ("http://json-schema.org/draft-07/schema#", true),
        ("https://json-schema.org/draft-07/schema", true),
        ("http://json-schema.org/draft-07#", true),
        ("https://json-schema.org/draft/2019-09/schema", false),
        ("https://json-schema.org/draft/2020-12/schema", false),
        ("https://json-schema.org/draft/2020-12/schema#", false),
        ("https://json-schema.org/draft/2020-12", false),
        ("https://json-schema.org/draft/2020-12/", false),
        ("http://json-schema.org/draft/2019-09#", false),
        ("http://json-schema.org/schema#", false),
    ] {
        let wanted = if asserted { Status::HardFail } else { Status::Pass };
        assert_eq!(status(&format(draft), &json!("nonsense")), wanted, "{draft}");
        assert_eq!(status(&format(draft), &json!("127.0.0.1")), Status::Pass, "{draft}");
    }
    assert_eq!(status(&json!({"format": "ipv4"}), &json!("nonsense")), Status::Pass);
    // Each draft has its own words.
    let tuple = json!([{"type": "string"}]);
    assert_eq!(status(&json!({"prefixItems": tuple}), &json!([1])), Status::HardFail);
    assert_eq!(
        status(&json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": tuple}), &json!([1])),
        Status::HardFail
    );
    assert_eq!(
        status(
            &json!({"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 3, "exclusiveMaximum": true}),
            &json!(3)
        ),
        Status::HardFail
    );
    for unknown in [
        json!("https://example.com/mine"),
        json!("draft-07"),
        json!(""),
        json!(5),
        json!(null),
        json!("http://json-schema.org/draft-03/schema#"),
    ] {
        assert_eq!(status(&json!({"$schema": unknown}), &json!(1)), Status::Error, "{unknown}");
    }
}

#[test]
fn what_is_not_a_schema_is_an_error() {
    for schema in [
        json!(null),
        json!(5),
        json!("text"),
        json!([]),
        json!([{"type": "string"}]),
        json!({"type": "strange"}),
        json!({"minLength": -1}),
        json!({"required": "a"}),
        json!({"properties": {"a": 5}}),
        json!({"pattern": "("}),
        json!({"pattern": "(?=a)"}),
        json!({"pattern": "(a)\\1"}),
        json!({"patternProperties": {"(?!a)": true}}),
        json!({"pattern": "((a{1000}){1000}){1000}"}),
        json!({"$ref": 5}),
        json!({"$ref": "#/$defs/nothing"}),
        json!({"$ref": "#nothing"}),
        json!({"$id": "http://[", "type": "string"}),
        json!({"$ref": "http://["}),
        json!({"properties": {"a": {"$schema": "https://example.com/mine", "$id": "x", "$ref": "#"}}}),
    ] {
        let status = status(&schema, &json!("a"));
        assert_eq!(status, Status::Error, "{schema}");
    }
    for spec in [
        "null",
        "[]",
        "{}",
        r#"{"schema":{}}"#,
        r#"{"target":"output"}"#,
        r#"{"target":5,"schema":{}}"#,
        r#"{"target":"","schema":{}}"#,
        r#"{"target":"input","schema":{}}"#,
    ] {
        let trace = Trace::parse(r#"{"output":{}}"#).unwrap();
        let verdict = evaluate(&trace, &Assertion::new("a", "schema", spec).unwrap(), &Tools::default());
        assert_eq!(verdict.status, Status::Error, "{spec}");
    }
}

#[test]
fn references_stay_inside() {
    for reference in [
        "file:///etc/passwd",
        "/etc/passwd",
        "other.json",
        "../other.json",
        "http://127.0.0.1:9/schema",
        "https://example.com/schema.json#/a",
        "urn:nothing",
    ] {
        let verdict = judge(&json!({"properties": {"a": {"$ref": reference}}}), &json!({"a": 1}));
        assert_eq!(verdict.status, Status::Error, "{reference}");
        let here = std::env::current_dir().unwrap();
        assert!(!verdict.explanation.contains(here.to_str().unwrap()), "{}", verdict.explanation);
        assert!(
            verdict.explanation.contains(reference.trim_start_matches("../").split('#').next().unwrap()),
            "{}",
            verdict.explanation
        );
    }
    let inside = json!({"$defs": {"n": {"$anchor": "number", "type": "number"}}, "items": {"$ref": "#/$defs/n"}, "contains": {"$ref": "#number"}});
    assert_eq!(status(&inside, &json!([1])), Status::Pass);
    assert_eq!(status(&inside, &json!(["x"])), Status::HardFail);
    let named = json!({"$id": "https://example.com/root", "$defs": {"n": {"$id": "number", "type": "number"}}, "$ref": "number"});
    assert_eq!(status(&named, &json!(1)), Status::Pass);
    assert_eq!(status(&named, &json!("x")), Status::HardFail);
    let built_in = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    assert_eq!(status(&built_in, &json!({"type": "string"})), Status::Pass);
    assert_eq!(status(&built_in, &json!({"properties": {"a": {"type": 5}}})), Status::HardFail);
}

#[test]
fn references_that_only_go_in_circles_are_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, true]}}}),
        json!({"if": {"not": {"$ref": "#"}}}),
        json!({"$dynamicAnchor": "a", "$dynamicRef": "#a"}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true, "$recursiveRef": "#"}),
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"$ref": "#/definitions/a"}}, "$ref": "#/definitions/a"}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
    ] {
        let verdict = judge(&schema, &json!({"a": 1}));
        assert_eq!(verdict.status, Status::Error, "{schema}");
        assert!(verdict.explanation.contains("circle"), "{}", verdict.explanation);
    }
    // Written with an escape it is the same reference.
    assert_eq!(judge_text(r##"{"\u0024ref":"#"}"##, "1").status, Status::Error);
}

/// `{"x":{"x":…}}`.
fn nested(levels: usize, end: &Value) -> Value {
    (0..levels).fold(end.clone(), |inner, _| json!({"x": inner}))
}

#[test]
fn recursive_shapes_work() {
    let list = json!({"type": ["object", "string"], "properties": {"x": {"$ref": "#"}}});
    assert_eq!(status(&list, &nested(100, &json!("end"))), Status::Pass);
    let verdict = judge(&list, &nested(100, &json!(5)));
    assert_eq!(verdict.status, Status::HardFail);
    assert!(verdict.path.starts_with("output.v.x.x.x"), "{}", verdict.path);
    let tree =
        json!({"$dynamicAnchor": "node", "properties": {"x": {"$dynamicRef": "#node"}}, "maxProperties": 1});
    assert_eq!(status(&tree, &nested(50, &json!({}))), Status::Pass);
    assert_eq!(status(&tree, &nested(50, &json!({"a": 1, "b": 2}))), Status::HardFail);
}

/// A schema whose parts `a0`, `a1`… are made by `part` from the reference to the next; the last is `{"type": "string"}`.
fn chained(count: usize, part: impl Fn(Value) -> Value) -> Value {
    let mut parts: serde_json::Map<String, Value> = (0..count)
        .map(|at| (format!("a{at}"), part(json!({"$ref": format!("#/$defs/a{}", at + 1)}))))
        .collect();
    parts.insert(format!("a{count}"), json!({"type": "string"}));
    json!({"$ref": "#/$defs/a0", "$defs": parts})
}

/// A hostile schema gets an answer quickly, on a stack as small as threads usually have.
fn survives(schema: &Value, value: &Value) -> Verdict {
    let (schema, value) = (schema.clone(), value.clone());
    let began = Instant::now();
    let thread = std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(move || judge(&schema, &value))
        .unwrap();
    let verdict = thread.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(20), "too slow: {}", verdict.explanation);
    verdict
}

#[test]
fn long_chains_of_references_do_not_exhaust_the_stack() {
    assert_eq!(survives(&chained(1000, |next| next), &json!("x")).status, Status::Pass);
    assert_eq!(survives(&chained(1000, |next| next), &json!(5)).status, Status::HardFail);
    assert_eq!(survives(&chained(5000, |next| next), &json!(5)).status, Status::Error);
    assert_eq!(survives(&chained(20_000, |next| next), &json!(5)).status, Status::Error);
    assert_eq!(
        survives(&chained(3000, |next| json!({"properties": {"x": next}})), &nested(100, &json!(5))).status,
        Status::Pass
    );
    // Many references on each level of a deep value.
    let mut ring = chained(100, |next| json!({"allOf": [next]}));
    *ring.pointer_mut("/$defs/a100").unwrap() = json!({"properties": {"x": {"$ref": "#/$defs/a0"}}});
    assert_eq!(survives(&ring, &nested(5, &json!(5))).status, Status::Pass);
    let verdict = survives(&ring, &nested(100, &json!(5)));
    assert_eq!(verdict.status, Status::Error);
    assert!(verdict.explanation.contains("levels"), "{}", verdict.explanation);
}

#[test]
fn doubling_references_do_not_take_for_ever() {
    let doubled = |next: Value| json!({"anyOf": [next.clone(), next]});
    assert_eq!(survives(&chained(8, doubled), &json!(5)).status, Status::HardFail);
    assert_eq!(survives(&chained(60, doubled), &json!(5)).status, Status::Error);
    let inside = |next: Value| json!({"properties": {"x": {"allOf": [next.clone(), next]}}});
    assert_eq!(survives(&chained(60, inside), &nested(60, &json!(5))).status, Status::Error);
    // A recursive one is decided, but what is wrong is not collected.
    let recursive =
        json!({"type": ["object", "string"], "properties": {"x": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    let verdict = survives(&recursive, &nested(100, &json!(5)));
    assert_eq!(verdict.status, Status::HardFail);
    assert_eq!(verdict.path, "output.v");
    assert_eq!(survives(&recursive, &nested(100, &json!("end"))).status, Status::Pass);
    assert_eq!(survives(&recursive, &nested(3, &json!(5))).path, "output.v.x");
}

#[test]
fn references_under_rules_for_the_rest_stay_quick() {
    let rest = |next: Value| json!({"unevaluatedProperties": false, "allOf": [next]});
    survives(&chained(180, rest), &json!({"x": 1}));
    assert_eq!(survives(&chained(1000, rest), &json!({"x": 1})).status, Status::Error);
    assert_eq!(survives(&chained(5000, rest), &json!({"x": 1})).status, Status::Error);
    let recursive = json!({
        "unevaluatedProperties": false, "type": ["object", "string"],
        "allOf": [{"properties": {"x": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}]
    });
    assert_eq!(survives(&recursive, &nested(60, &json!("end"))).status, Status::Pass);
    assert_eq!(survives(&recursive, &nested(60, &json!({"y": 1}))).status, Status::HardFail);
    let dynamic = json!({
        "$dynamicAnchor": "n", "unevaluatedProperties": {"$dynamicRef": "#n"}, "type": ["object", "string"],
        "anyOf": [{"unevaluatedProperties": {"$dynamicRef": "#n"}}, {"patternProperties": {"": {"$dynamicRef": "#n"}}}]
    });
    assert_eq!(survives(&dynamic, &nested(60, &json!(5))).status, Status::HardFail);
    assert_eq!(survives(&dynamic, &nested(60, &json!("end"))).status, Status::Pass);
}

#[test]
fn deep_schemas_and_values_are_bounded() {
    let mut deep = json!({"type": "string"});
    for at in 0..58 {
        deep = if at % 2 == 0 { json!({"allOf": [deep]}) } else { json!({"properties": {"x": deep}}) };
    }
    assert_eq!(survives(&deep, &nested(29, &json!("x"))).status, Status::Pass);
    assert_eq!(survives(&deep, &nested(60, &json!("x"))).status, Status::HardFail);
    let brackets = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
    let verdict = judge_text("{}", &brackets(100_000));
    assert_eq!(verdict.status, Status::Error);
    assert!(verdict.explanation.contains("levels deep"), "{}", verdict.explanation);
    let verdict = judge_text(&format!(r#"{{"enum":{}}}"#, brackets(100_000)), "1");
    assert_eq!(verdict.status, Status::Error);
    assert!(verdict.explanation.contains("levels deep"), "{}", verdict.explanation);
}

#[test]
fn nested_rules_for_the_rest_stay_quick() {
    for (keyword, part, value) in [
        ("unevaluatedProperties", "allOf", json!({"x": 1})),
        ("unevaluatedItems", "allOf", json!([1])),
        ("unevaluatedProperties", "anyOf", json!({"x": 1})),
        ("unevaluatedProperties", "oneOf", json!({"x": 1})),
        ("title", "oneOf", json!(1)),
        ("title", "not", json!(1)),
        ("title", "if", json!(1)),
    ] {
        let mut schema = json!({"type": "string"});
        for _ in 0..57 {
            let below = if matches!(part, "not" | "if") { schema } else { json!([schema]) };
            schema =
                if keyword == "title" { json!({part: below}) } else { json!({keyword: false, part: below}) };
        }
        assert_ne!(survives(&schema, &value).status, Status::Error, "{keyword} {part}");
    }
}

#[test]
fn a_failure_is_hard_and_says_where() {
    let schema = json!({"properties": {"list": {"items": {"properties": {"n": {"type": "number"}}}}, "a": {"type": "string"}}});
    let value = json!({"list": [{"n": 1}, {"n": "x"}, {"n": "y"}, {"n": "z"}], "a": 1});
    let verdict = judge(&schema, &value);
    assert_eq!(verdict.status, Status::HardFail);
    assert_eq!(verdict.path, "output.v.a");
    assert!(verdict.explanation.contains("output.v.list[1].n"), "{}", verdict.explanation);
    assert!(!verdict.explanation.contains("list[3]"), "only a few are named");
    let long = judge(&json!({"type": "number"}), &json!("x".repeat(100_000)));
    assert!(long.explanation.len() < 1000 && long.actual.len() < 500);
    let mut many = String::from("[0");
    for _ in 0..50_000 {
        many.write_str(",\"x\"").unwrap();
    }
    many.push(']');
    let verdict = judge_text(r#"{"items":{"type":"number"}}"#, &many);
    assert_eq!((verdict.status, verdict.path.as_str()), (Status::HardFail, "output.v[1]"));
}

#[test]
fn a_step_that_says_nothing_fails_hard() {
    let trace = Trace::parse(r#"{"steps":[{"type":"tool_call","name":"silent"}]}"#).unwrap();
    for (target, wanted) in [
        ("steps[?name=='silent'].result", Status::HardFail),
        ("steps[?name=='other'].result", Status::HardFail),
        ("output", Status::HardFail),
    ] {
        let spec = format!(r#"{{"target":"{target}","schema":true,"soft":true}}"#);
        let verdict = evaluate(&trace, &Assertion::new("a", "schema", &spec).unwrap(), &Tools::default());
        assert_eq!(verdict.status, wanted, "{target}");
    }
}

#[test]
fn the_reason_comes_before_a_long_value() {
    let long = "x".repeat(5_000);
    for (schema, value, reason) in [
        (json!({"type": "number"}), json!(long), "it is not of type \"number\""),
        (json!({"maxLength": 3}), json!(long), "it is longer than 3 characters"),
        (json!({"pattern": "^y"}), json!(long), "it does not match \"^y\""),
        (
            json!({"propertyNames": {"maxLength": 3}}),
            json!({&long: 1}),
            "a member's name: it is longer than 3",
        ),
        (json!({"const": long}), json!(1), "it is not \"xxx"),
        (json!({"not": {"title": long}}), json!(1), "it is what `not` excludes"),
    ] {
        let verdict = judge(&schema, &value);
        assert_eq!(verdict.status, Status::HardFail, "{schema}");
        assert!(verdict.explanation.contains(reason), "{}", verdict.explanation);
    }
    let verdict = judge(&json!({"type": "number"}), &json!(long));
    assert!(verdict.actual.starts_with("\"xxx") && verdict.actual.ends_with("x…"), "{}", verdict.actual);
    let verdict = judge(&json!({"type": long}), &json!(1));
    assert_eq!(verdict.status, Status::Error);
    assert!(verdict.explanation.contains("it is not "), "{}", verdict.explanation);
}

#[test]
fn members_that_stand_twice_cannot_be_judged() {
    for (schema, value, said) in [
        (
            r#"{"properties":{"a":{"type":"number"}}}"#,
            r#"{"a":"x","a":1}"#,
            "`output.v` has the member `a` twice",
        ),
        ("{}", r#"[{"b":{"a":1,"\u0061":1}}]"#, "`output.v` has the member `a` twice"),
        (r#"{"type":"string","type":"number"}"#, "1", "the spec has the member `type` twice"),
        (r#"{"properties":{"a":{"const":{"k":1,"k":2}}}}"#, "1", "the spec has the member `k` twice"),
    ] {
        let verdict = judge_text(schema, value);
        assert_eq!(verdict.status, Status::Error, "{schema} {value}");
        assert!(verdict.explanation.contains(said), "{}", verdict.explanation);
    }
    assert_eq!(judge_text("{}", r#""{\"a\":1,\"a\":2}""#).status, Status::Pass, "a string is a string");
}

#[test]
fn the_whole_output_stands_in_only_for_a_schema_that_demands_members() {
    let trace = r#"{"trace_id":"t","output":{"message":"m"},"steps":[
        {"type":"tool_call","name":"x","args":{"a":1}},{"type":"tool_call","name":"x","args":{"a":"no"}}]}"#;
    let judge = |target: &str, schema: Value| {
        let spec = json!({"target": target, "schema": schema}).to_string();
        let trace = Trace::parse(trace).unwrap();
        evaluate(&trace, &Assertion::new("a", "schema", &spec).unwrap(), &Tools::default()).status
    };
    assert_eq!(judge("output.structured", json!({"required": ["message"]})), Status::Pass);
    for schema in [
        json!({"required": ["other"]}),
        json!({"type": "object"}),
        json!({}),
        json!(true),
        json!({"required": []}),
    ] {
        assert_eq!(judge("output.structured", schema.clone()), Status::HardFail, "{schema}");
    }
    assert_eq!(judge("output.structured.message", json!({"required": ["message"]})), Status::HardFail);
    // Of several steps the first is meant, as released, unless every one is.
    let number = json!({"properties": {"a": {"type": "integer"}}});
    assert_eq!(judge("steps[?name=='x'].args", number.clone()), Status::Pass);
    assert_eq!(judge("steps[*].args", number), Status::HardFail);
}

#[test]
fn patterns_of_schemas_have_ascii_classes() {
    for (pattern, value, matches) in [
        (r"^\d$", "7", true),
        (r"^\d$", "٣", false),
        (r"^\w$", "ö", false),
        (r"^ö$", "ö", true),
        (r"^grün\B", "grün1", true),
        (r"^\s$", "\u{a0}", false),
        (r"^[^\s]$", "\u{a0}", true),
        (r"^[\s-]$", "-", true),
        (r"gr\b", "grün", true),
    ] {
        let found = status(&json!({"pattern": pattern}), &json!(value));
        assert_eq!(found.passed(), matches, "{pattern} on {value}");
        let within = json!({"properties": {"pattern": {"anyOf": [{"pattern": pattern}]}}});
        assert_eq!(status(&within, &json!({"pattern": value})).passed(), matches, "{pattern} below another");
        let named = json!({"patternProperties": {pattern: false}});
        assert_eq!(status(&named, &json!({value: 1})).passed(), !matches, "{pattern} on a name");
        assert_eq!(
            status(&json!({"const": {"pattern": pattern}}), &json!({"pattern": pattern})),
            Status::Pass
        );
    }
}
