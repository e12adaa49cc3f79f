//! Schema, constraint and content against slow, obvious references, and a growing trace against the whole one.

use proctor_assert::{Assertion, Live, Status, Tools, Trace, Verdict, evaluate};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// A trace as JSON: steps have few names, so that paths often lead somewhere.
fn trace() -> impl Strategy<Value = Value> {
    let step = (
        select(vec!["tool_call", "llm_call", "retrieval"]),
        select(vec!["x", "y"]),
        prop::option::of(value()),
        prop::option::of(value()),
    )
        .prop_map(|(kind, name, args, result)| {
            let mut step = json!({"type": kind, "name": name});
            if let Some(args) = args {
                step["args"] = args;
            }
            if let Some(result) = result {
                step["result"] = result;
            }
            step
        });
    let metadata = prop::collection::btree_map(
        select(vec!["cost_usd", "total_tokens", "latency_ms", "other"]),
        number(),
        0..4,
    );
    (prop::option::of(value()), prop::collection::vec(step, 0..5), metadata).prop_map(
        |(output, steps, metadata)| {
            let mut trace = json!({"trace_id": "t", "steps": steps, "metadata": metadata});
            if let Some(output) = output {
                trace["output"] = output;
            }
            trace
        },
    )
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![(-3..6_i64).prop_map(Value::from), select(vec![0.5, 1.5, 2.0]).prop_map(Value::from)]
}

fn text() -> impl Strategy<Value = String> {
    select(vec!["", "a", "B", "ab", "aB c", "Ö ö", "b a\nab", "ΑΣ", "{\"a\":1}", "\"", "1"])
        .prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(select(vec!["a", "b", "message"]), inner, 0..3)
                .prop_map(|members| json!(members)),
        ]
    })
}

fn target() -> impl Strategy<Value = String> {
    select(vec![
        "output",
        "output.message",
        "output.a",
        "output.a.b",
        "steps[?name=='x'].args",
        "steps[?name=='x'].result",
        "steps[?name=='y'].args.a",
        "steps[*]",
        "steps[*].args",
        "steps[*].result.a",
    ])
    .prop_map(str::to_owned)
}

/// The values that a check is about one by one, each as a trace and the path in it; an error where a value cannot be looked up, and
/// nothing if the check is about one value of the whole trace. `excludes`: a named step means every step of that name.
fn each_value(trace: &Value, path: &str, excludes: bool) -> Option<Vec<Result<(Value, String), Status>>> {
    let steps = trace["steps"].as_array().unwrap();
    if let Some(rest) = path.strip_prefix("steps[*]") {
        let alone = |value: Value| {
            Ok((json!({"output": {"v": value}, "steps": [], "metadata": {}}), "output.v".to_owned()))
        };
        let below = |step: &Value| {
            let mut names = rest.split('.').skip(1);
            let Some(first) = names.next() else {
                let parts = [step.get("name"), step.get("args"), step.get("result")];
                let parts: Vec<&Value> = parts.into_iter().flatten().filter(|part| !part.is_null()).collect();
                return Some(alone(json!(parts)));
            };
            let mut here = step.get(first).filter(|value| !value.is_null())?;
            for name in names {
                here = match here {
                    Value::Object(members) => members.get(name)?,
                    Value::Null => return None,
                    _ => return Some(Err(Status::Error)),
                };
            }
            Some(alone(here.clone()))
        };
        return Some(steps.iter().filter_map(below).collect());
    }
    let (name, _) = path.strip_prefix("steps[?name=='")?.split_once("']")?;
    let one = |step: &Value| {
        let mut only = trace.clone();
        only["steps"] = json!([step]);
        Ok((only, path.to_owned()))
    };
    excludes.then(|| steps.iter().filter(|step| step["name"] == name).map(one).collect())
}

/// The status of all values: the first hard one, else the first soft one.
fn together(statuses: impl Iterator<Item = (Status, Option<f64>)>) -> (Status, Option<f64>) {
    let statuses: Vec<_> = statuses.collect();
    let find = |wanted: fn(&Status) -> bool| statuses.iter().find(|(status, _)| wanted(status)).copied();
    let first = find(|status| status.is_hard()).or_else(|| find(|status| *status == Status::SoftFail));
    first.or_else(|| statuses.first().copied()).unwrap_or((Status::HardFail, None))
}

/// Value at a path: `Err` if nowhere, `Ok(None)` if at a step that says nothing.
fn look(trace: &Value, path: &str) -> Result<Option<Value>, ()> {
    let (start, rest) = if let Some(rest) = path.strip_prefix("output") {
        (trace.get("output"), rest)
    } else {
        let (name, rest) = path.strip_prefix("steps[?name=='").unwrap().split_once("'].").unwrap();
        let step = trace["steps"].as_array().unwrap().iter().find(|step| step["name"] == name).ok_or(())?;
        let member = if rest.starts_with("args") { "args" } else { "result" };
        let rest = rest.strip_prefix(member).unwrap();
        if step.get(member).is_none_or(Value::is_null) && rest.is_empty() {
            return Ok(None);
        }
        (step.get(member), rest)
    };
    let mut here = start.filter(|value| !value.is_null()).ok_or(())?;
    for name in rest.split('.').skip(1) {
        here = here.as_object().and_then(|members| members.get(name)).ok_or(())?;
    }
    Ok(Some(here.clone()))
}

fn run(kind: &str, trace: &Value, spec: &Value) -> Verdict {
    let (trace, spec) = (trace.to_string(), spec.to_string());
    evaluate(&Trace::parse(&trace).unwrap(), &Assertion::new("a", kind, &spec).unwrap(), &Tools::default())
}

/// The verdicts on a trace that grows are those on what there is of it.
fn growing_is_the_same(kind: &str, trace: &Value, spec: &Value) {
    let (whole, spec_text) = (trace.to_string(), spec.to_string());
    let whole = Trace::parse(&whole).unwrap();
    let mut live = Live::new(&[Assertion::new("a", kind, &spec_text).unwrap()], &Tools::default());
    for count in 0..=whole.steps.len() {
        let mut cut = trace.clone();
        cut["steps"].as_array_mut().unwrap().truncate(count);
        assert_eq!(
            live.verdicts(&whole.head)[0].as_ref().unwrap(),
            &run(kind, &cut, spec),
            "{kind} {spec} after {count} steps of {trace}"
        );
        if let Some(step) = whole.steps.get(count) {
            live.step(step);
        }
    }
}

fn outcome(holds: bool, soft: bool) -> Status {
    match (holds, soft) {
        (true, _) => Status::Pass,
        (false, true) => Status::SoftFail,
        (false, false) => Status::HardFail,
    }
}

// ---- constraint ----

fn constraint_reference(trace: &Value, spec: &Value) -> Status {
    let nothing = json!({"output": {"v": 1}, "steps": [], "metadata": {}});
    let moved = |path: &str| {
        let mut spec = spec.clone();
        spec["field"] = path.into();
        spec
    };
    if one_constraint(&nothing, &moved("output.v")) == Status::Error {
        return Status::Error;
    }
    let field = spec["field"].as_str().unwrap();
    let counts = field.ends_with("'].length");
    match each_value(trace, field, true).filter(|_| !counts) {
        None => one_constraint(trace, spec),
        Some(values) => {
            let judge = |value| match value {
                Ok((trace, path)) => (one_constraint(&trace, &moved(String::as_str(&path))), None),
                Err(status) => (status, None),
            };
            together(values.into_iter().map(judge)).0
        }
    }
}

fn one_constraint(trace: &Value, spec: &Value) -> Status {
    let field = spec["field"].as_str().unwrap();
    let steps = trace["steps"].as_array().unwrap();
    let count = |member: &str, word: &str| steps.iter().filter(|step| step[member] == word).count() as f64;
    let number = match field {
        "steps.length" => Some(steps.len() as f64),
        "steps[?type=='tool_call'].length" => Some(count("type", "tool_call")),
        "steps[?name=='x'].length" => Some(count("name", "x")),
        _ => match field.strip_prefix("metadata.") {
            Some(name) => trace["metadata"].get(name).and_then(Value::as_f64),
            None => {
                look(trace, field).ok().flatten().map_or_else(|| length(trace, field), |value| value.as_f64())
            }
        },
    };
    let operand = |name: &str| spec.get(name).and_then(Value::as_f64);
    let test: Box<dyn Fn(f64) -> bool> =
        match (spec["operator"].as_str().unwrap(), operand("value"), operand("min"), operand("max")) {
            // An operand that the operator does not use would bound nothing.
            ("between", Some(_), ..) => return Status::Error,
            (other, _, min, max) if other != "between" && (min.is_some() || max.is_some()) => {
                return Status::Error;
            }
            ("lt", Some(value), ..) => Box::new(move |number| number < value),
            ("lte", Some(value), ..) => Box::new(move |number| number <= value),
            ("gt", Some(value), ..) => Box::new(move |number| number > value),
            ("gte", Some(value), ..) => Box::new(move |number| number >= value),
            ("eq", Some(value), ..) => {
                Box::new(move |number| number.to_bits() == value.to_bits() || number == 0.0 && value == 0.0)
            }
            ("neq", Some(value), ..) => Box::new(move |number| (number - value).abs() > 0.0),
            ("between", _, Some(min), Some(max)) if min <= max => {
                Box::new(move |number| (min..=max).contains(&number))
            }
            _ => return Status::Error,
        };
    number.map_or(Status::HardFail, |number| outcome(test(number), spec["soft"] == true))
}

/// The number of parts of what stands before `.length`.
fn length(trace: &Value, field: &str) -> Option<f64> {
    match look(trace, field.strip_suffix(".length")?).ok().flatten()? {
        Value::Array(items) => Some(items.len() as f64),
        Value::Object(members) => Some(members.len() as f64),
        _ => None,
    }
}

fn constraint_spec() -> impl Strategy<Value = Value> {
    let field = select(vec![
        "metadata.cost_usd",
        "metadata.total_tokens",
        "metadata.latency_ms",
        "metadata.other",
        "steps.length",
        "steps[?type=='tool_call'].length",
        "steps[?name=='x'].length",
        "output",
        "output.a",
        "output.a.length",
        "steps[?name=='x'].args",
        "steps[?name=='y'].result.a",
        "steps[?name=='x'].args.a.length",
        "steps[*].args.a",
    ]);
    let operator = select(vec!["lt", "lte", "gt", "gte", "eq", "neq", "between", "near"]);
    (
        field,
        operator,
        prop::option::weighted(0.9, number()),
        prop::option::of(number()),
        prop::option::of(number()),
        any::<bool>(),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(field, operator, value, min, max, soft, tidy)| {
            let mut spec = json!({"field": field, "operator": operator, "soft": soft});
            let (value, min, max) = match operator {
                _ if !tidy => (value, min, max),
                "between" => (None, min, max),
                _ => (value, None, None),
            };
            for (name, operand) in [("value", value), ("min", min), ("max", max)] {
                if let Some(operand) = operand {
                    spec[name] = operand;
                }
            }
            spec
        })
}

// ---- content ----

/// The texts that are looked at. The traces here are written compactly and without needless escapes, so both views are one.
fn content_reference(trace: &Value, spec: &Value) -> (Status, Option<f64>) {
    // Nothing to look for, or what the check does not read: that is a mistake, not something that every text has.
    let (one, list) = (spec.get("value"), spec.get("values"));
    let mistaken = match spec["check"].as_str().unwrap() {
        "contains" | "not_contains" => one.is_some() == list.is_some(),
        "keyword_all" | "keyword_any" | "forbidden" => {
            one.is_some() == list.is_some() || one.is_some_and(|word| word == "")
        }
        "regex_match" | "not_regex_match" | "starts_with" | "ends_with" | "equals" => {
            one.is_none() || list.is_some()
        }
        "word_count" => one.is_some() || list.is_some() || count_range(spec).is_none(),
        other => panic!("no reference for {other}"),
    };
    if mistaken {
        return (Status::Error, None);
    }
    let excludes = matches!(spec["check"].as_str(), Some("not_contains" | "not_regex_match" | "forbidden"));
    match each_value(trace, spec["target"].as_str().unwrap(), excludes) {
        None => one_content(trace, spec),
        Some(values) => together(values.into_iter().map(|value| match value {
            Ok((trace, path)) => {
                let mut spec = spec.clone();
                spec["target"] = path.into();
                one_content(&trace, &spec)
            }
            Err(status) => (status, None),
        })),
    }
}

fn one_content(trace: &Value, spec: &Value) -> (Status, Option<f64>) {
    let Ok(found) = look(trace, spec["target"].as_str().unwrap()) else { return (Status::HardFail, None) };
    let inside = found.as_ref().map(said).unwrap_or_default();
    let text = match found {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    let fold = |text: &str| -> String {
        if spec["case_sensitive"] == true {
            text.to_owned()
        } else {
            text.chars().flat_map(char::to_lowercase).collect()
        }
    };
    let within = |text: &str, word: &str| {
        (0..=fold(text).len()).any(|at| fold(text).as_bytes()[at..].starts_with(fold(word).as_bytes()))
    };
    let has = |word: &str| within(&text, word) || inside.iter().any(|text| within(text, word));
    let matches = |word: &str| text.contains(word) || inside.iter().any(|text| text.contains(word));
    let value = spec["value"].as_str();
    let values: Vec<&str> =
        spec["values"].as_array().into_iter().flatten().map(|word| word.as_str().unwrap()).collect();
    let soft = spec["soft"] == true;
    let single = || {
        value.map_or_else(|| if values.is_empty() { vec![""] } else { values.clone() }, |value| vec![value])
    };
    let list = || match value {
        Some(value) if spec.get("values").is_none() && !value.is_empty() => vec![value],
        _ => values.clone(),
    };
    let status = match spec["check"].as_str().unwrap() {
        "contains" => outcome(single().iter().all(|word| has(word)), soft),
        "not_contains" => outcome(!single().iter().any(|word| has(word)), soft),
        "keyword_all" => {
            let words = list();
            let there = words.iter().filter(|word| has(word)).count();
            let score = if there == words.len() { 1.0 } else { there as f64 / words.len() as f64 };
            return (outcome(there == words.len(), soft), Some(score));
        }
        "keyword_any" => outcome(list().iter().any(|word| has(word)), soft),
        "forbidden" => outcome(!list().iter().any(|word| has(word)), false),
        // The words here are no patterns, or match themselves.
        "regex_match" => outcome(matches(value.unwrap_or("")), soft),
        "not_regex_match" => outcome(!matches(value.unwrap_or("")), soft),
        "starts_with" => outcome(fold(&text).starts_with(&fold(value.unwrap())), soft),
        "ends_with" => outcome(fold(&text).ends_with(&fold(value.unwrap())), soft),
        "equals" => outcome(fold(&text) == fold(value.unwrap()), soft),
        "word_count" => {
            let words = text.split_whitespace().count() as u64;
            outcome(count_range(spec).unwrap().contains(&words), soft)
        }
        other => panic!("no reference for {other}"),
    };
    (status, None)
}

/// Range of `min` and `max`; `None` if both are missing, or if `min` is above `max`.
fn count_range(spec: &Value) -> Option<std::ops::RangeInclusive<u64>> {
    let bound = |name: &str| spec.get(name).and_then(Value::as_u64);
    let (min, max) = (bound("min"), bound("max"));
    let range = min.unwrap_or(0)..=max.unwrap_or(u64::MAX);
    ((min.is_some() || max.is_some()) && !range.is_empty()).then_some(range)
}

/// Text of the strings in a value that has parts.
fn said(value: &Value) -> Vec<String> {
    fn leaves(value: &Value) -> Vec<String> {
        value.as_str().map_or_else(|| said(value), |text| vec![text.to_owned()])
    }
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(members) => {
            members.iter().flat_map(|(name, below)| [vec![name.clone()], leaves(below)].concat()).collect()
        }
        _ => Vec::new(),
    }
}

fn content_spec() -> impl Strategy<Value = Value> {
    let check = select(vec![
        "contains",
        "not_contains",
        "keyword_all",
        "keyword_any",
        "forbidden",
        "regex_match",
        "not_regex_match",
        "starts_with",
        "ends_with",
        "equals",
        "word_count",
    ]);
    let word =
        || select(vec!["", "a", "b", "A b", "ö", "c", "α", "σ", "\"", "1", "[", "true", "a\na", "{\"a"]);
    let escaped = |check: &str, word: &str| {
        if check.contains("regex") { word.replace(['[', '{'], "1") } else { word.to_owned() }
    };
    (
        check,
        target(),
        prop::option::of(word()),
        prop::option::of(prop::collection::vec(word(), 0..4)),
        prop::option::of(0..3_u64),
        prop::option::of(0..3_u64),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(move |(check, target, value, values, min, max, case_sensitive, soft)| {
            let mut spec =
                json!({"check": check, "target": target, "case_sensitive": case_sensitive, "soft": soft});
            // Words make a count an error; half of the counts have none, so that their bounds are compared too.
            let bare = check == "word_count" && case_sensitive;
            if let Some(value) = value.filter(|_| !bare) {
                spec["value"] = escaped(check, value).into();
            }
            if let Some(values) = values.filter(|_| !bare) {
                spec["values"] = values.into();
            }
            for (name, bound) in [("min", min), ("max", max)] {
                if let Some(bound) = bound.filter(|_| check == "word_count") {
                    spec[name] = bound.into();
                }
            }
            spec
        })
}

// ---- schema ----

/// Validates by a few keywords.
fn satisfies(value: &Value, schema: &Value) -> bool {
    let Some(rules) = schema.as_object() else { return schema == true };
    rules.iter().all(|(keyword, rule)| match keyword.as_str() {
        "type" => match rule.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "number" => value.is_number(),
            _ => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        },
        "const" => same(value, rule),
        "enum" => rule.as_array().unwrap().iter().any(|one| same(value, one)),
        "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
        "minLength" => {
            value.as_str().is_none_or(|text| text.chars().count() as u64 >= rule.as_u64().unwrap())
        }
        "maxLength" => {
            value.as_str().is_none_or(|text| text.chars().count() as u64 <= rule.as_u64().unwrap())
        }
        "required" => value.as_object().is_none_or(|members| {
            rule.as_array().unwrap().iter().all(|name| members.contains_key(name.as_str().unwrap()))
        }),
        "properties" => value.as_object().is_none_or(|members| {
            rule.as_object()
                .unwrap()
                .iter()
                .all(|(name, below)| members.get(name).is_none_or(|one| satisfies(one, below)))
        }),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| satisfies(item, rule))),
        _ => true,
    })
}

/// Equal as JSON: 1 is 1.0.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

fn schema() -> impl Strategy<Value = Value> {
    let rules = || {
        prop::collection::vec(
            prop_oneof![
                select(vec!["null", "boolean", "string", "array", "object", "number", "integer"])
                    .prop_map(|kind| ("type", json!(kind))),
                value().prop_map(|one| ("const", one)),
                prop::collection::vec(value(), 1..4).prop_map(|some| ("enum", json!(some))),
                number().prop_map(|one| ("minimum", one)),
                number().prop_map(|one| ("maximum", one)),
                (0..4_u64).prop_map(|one| ("minLength", json!(one))),
                (0..4_u64).prop_map(|one| ("maxLength", json!(one))),
                prop::collection::btree_set(select(vec!["a", "b"]), 0..3)
                    .prop_map(|names| ("required", json!(names))),
            ],
            0..2,
        )
    };
    let object = |rules: Vec<(&str, Value)>| {
        Value::Object(rules.into_iter().map(|(name, rule)| (name.to_owned(), rule)).collect::<Map<_, _>>())
    };
    let leaf = prop_oneof![8 => rules().prop_map(object), 1 => any::<bool>().prop_map(Value::from)];
    leaf.prop_recursive(3, 10, 3, move |inner| {
        (
            rules(),
            prop::collection::btree_map(select(vec!["a", "b", "message"]), inner.clone(), 0..3),
            prop::option::of(inner),
        )
            .prop_map(move |(rules, properties, items)| {
                let mut schema = object(rules);
                schema["properties"] = json!(properties);
                if let Some(items) = items {
                    schema["items"] = items;
                }
                schema
            })
    })
}

proptest! {
    #[test]
    fn constraints_are_as_the_reference_says(trace in trace(), spec in constraint_spec()) {
        prop_assert_eq!(run("constraint", &trace, &spec).status, constraint_reference(&trace, &spec), "{} {}", spec, trace);
        growing_is_the_same("constraint", &trace, &spec);
    }

    #[test]
    fn content_is_as_the_reference_says(trace in trace(), spec in content_spec()) {
        let verdict = run("content", &trace, &spec);
        let (status, score) = content_reference(&trace, &spec);
        prop_assert_eq!(verdict.status, status, "{} {}", spec, trace);
        let score = score.unwrap_or(if status == Status::Pass { 1.0 } else { 0.0 });
        prop_assert!((verdict.score - score).abs() < 1e-12, "{} is not {score}", verdict.score);
        growing_is_the_same("content", &trace, &spec);
    }

    #[test]
    fn schemas_are_as_the_reference_says(trace in trace(), target in target(), schema in schema(), referred in any::<bool>()) {
        let one = |trace: &Value, path: &str| match look(trace, path) {
            Ok(Some(value)) => outcome(satisfies(&value, &schema), false),
            Ok(None) | Err(()) => Status::HardFail,
        };
        let wanted = match each_value(&trace, &target, false) {
            None => one(&trace, &target),
            Some(values) => together(values.into_iter().map(|value| match value {
                Ok((trace, path)) => (one(&trace, &path), None),
                Err(status) => (status, None),
            })).0,
        };
        // A schema behind a reference says the same.
        let schema = if referred { json!({"$defs": {"it": schema}, "$ref": "#/$defs/it"}) } else { schema };
        let spec = json!({"target": target, "schema": schema, "soft": true});
        prop_assert_eq!(run("schema", &trace, &spec).status, wanted, "{} {}", spec, trace);
        growing_is_the_same("schema", &trace, &spec);
    }

    #[test]
    fn no_spec_and_no_value_breaks_anything(schema in value(), spec in value(), trace in trace()) {
        for kind in ["schema", "constraint", "content"] {
            run(kind, &trace, &spec);
        }
        run("schema", &trace, &json!({"target": "output", "schema": schema}));
        run("schema", &trace, &json!({"target": "output", "schema": {"$ref": schema, "$defs": schema, "allOf": [schema]}}));
    }
}
