use proctor_core::json::Json;

use super::*;
use crate::checks::{Checker, Comparator, CountOperator, Language, Linter, Severity};
use crate::suite::tests::{EVERYTHING, WORKED_EXAMPLE, mistakes};
use crate::suite::{keys, load};

fn schema() -> Json {
    Json::parse(SCHEMA.as_bytes()).unwrap()
}

fn names(object: &Json) -> Vec<String> {
    let mut names: Vec<String> = object.as_object().unwrap().iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

#[test]
fn the_schema_and_the_loader_have_the_same_keys() {
    let schema = schema();
    let definitions = schema.get("definitions").unwrap();
    let mut defined: Vec<String> = keys::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    defined.sort();
    assert_eq!(names(definitions), defined);
    for (name, table) in keys::ALL {
        let definition = definitions.get(name).unwrap();
        let properties = definition.get("properties").unwrap();
        let mut known: Vec<String> = table.names.iter().map(|key| (*key).to_owned()).collect();
        known.sort();
        assert_eq!(names(properties), known, "{name}");
        assert_eq!(definition.get("additionalProperties"), Some(&Json::Bool(false)), "{name} must be closed");
        assert!(definition.get("description").is_some(), "{name} needs a description");
        for (key, property) in properties.as_object().unwrap() {
            let described = property.get("description").is_some() || property.get("$ref").is_some();
            assert!(described, "{name}.{key} needs a description");
        }
    }
    let config = definitions.pointer("/agent/properties/config/properties").unwrap();
    let tables = [keys::AGENT_COMMON, keys::AGENT_PROCESS, keys::AGENT_HTTP, keys::AGENT_REMOTE];
    let mut known: Vec<String> = tables.concat().iter().map(|key| (*key).to_owned()).collect();
    known.sort();
    known.dedup();
    assert_eq!(names(config), known);
}

#[test]
fn the_schema_and_the_loader_have_the_same_words() {
    let schema = schema();
    let criteria: Vec<&str> = crate::checks::CRITERIA.iter().map(|(name, _)| *name).collect();
    let checks: Vec<&str> = Checker::ALL
        .into_iter()
        .flat_map(|checker| std::iter::once(checker.word()).chain(checker.subtypes().iter().copied()))
        .collect();
    let mut tables: Vec<(String, &[&str])> = vec![
        ("assertion/properties/type/enum".to_owned(), keys::ASSERTION_TYPES),
        ("condition/properties/type/enum".to_owned(), keys::ASSERTION_TYPES),
        ("agent/properties/type/enum".to_owned(), keys::AGENT_TYPES),
        ("approval/properties/decision/enum".to_owned(), keys::DECISIONS),
        ("mock_then/properties/status/enum".to_owned(), keys::MOCK_STATUSES),
        ("mock_when/properties/type/enum".to_owned(), keys::MATCH_KINDS),
        ("behavior/properties/tool_call_order/enum".to_owned(), keys::ORDERS),
        ("composite/properties/operator/enum".to_owned(), keys::OPERATORS),
        ("composite/properties/comparator/enum".to_owned(), &Comparator::SIGNS),
        ("file_count/properties/operator/enum".to_owned(), &CountOperator::WORDS),
        ("lint/properties/linter/enum".to_owned(), &Linter::WORDS),
        ("llm_eval/properties/criteria/enum".to_owned(), &criteria),
        ("security/properties/sensitivity/enum".to_owned(), &Severity::WORDS),
        ("security/properties/code_languages/items/enum".to_owned(), &Language::WORDS),
        ("security/properties/checks/items/enum".to_owned(), &checks),
        ("attest_assertion/properties/type/enum".to_owned(), &proctor_assert::Layer::KINDS),
    ];
    for checker in Checker::ALL {
        let place = format!("security/properties/{}/items/enum", checker.subtypes_key());
        tables.push((place, checker.subtypes()));
    }
    for (place, words) in tables {
        let listed = schema.pointer(&format!("/definitions/{place}")).and_then(Json::as_array).expect(&place);
        let listed: Vec<&str> = listed.iter().filter_map(Json::as_str).collect();
        assert_eq!(listed, words, "{place}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let schema = schema();
    let mut waiting = vec![&schema];
    let mut count = 0;
    while let Some(value) = waiting.pop() {
        if let Some(target) = value.get("$ref").and_then(Json::as_str) {
            let pointer = target.strip_prefix('#').unwrap();
            assert!(schema.pointer(pointer).is_some(), "{target}");
            count += 1;
        }
        waiting.extend(value.as_array().unwrap_or_default());
        waiting.extend(value.as_object().unwrap_or_default().iter().map(|(_, member)| member));
    }
    assert!(count > 30);
}

fn validator() -> jsonschema::Validator {
    let schema = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::options().with_draft(jsonschema::Draft::Draft7).build(&schema).unwrap()
}

fn as_value(yaml: &str) -> serde_json::Value {
    let root = proctor_yaml::parse(yaml.as_bytes(), &crate::suite::SUITE_LIMITS).unwrap();
    serde_json::from_str(&root.to_json().to_string()).unwrap()
}

#[test]
fn the_schema_accepts_what_the_loader_accepts() {
    let validator = validator();
    for yaml in [WORKED_EXAMPLE, EVERYTHING] {
        let errors: Vec<String> = validator
            .iter_errors(&as_value(yaml))
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, Vec::<String>::new());
        let options = crate::suite::LoadOptions::new(&|_| None, &|_| None);
        assert!(load(yaml.as_bytes(), &options).is_ok());
    }
}

#[test]
fn the_schema_and_the_loader_refuse_the_same() {
    let validator = validator();
    let test = |rest: &str| {
        format!("test_suite: s\ntests:\n  - id: a\n    name: A\n    task: {{description: d}}\n    {rest}\n")
    };
    let assertion = |rest: &str| test(&format!("assertions: [{{{rest}}}]"));
    for yaml in [
        "test_suite: s\ntests: []\n".to_owned(),
        "tests: [{id: a, name: A, task: {description: d}}]\n".to_owned(),
        "test_suite: s\nchaos: {}\ntests: [{id: a, name: A, task: {description: d}}]\n".to_owned(),
        "test_suite: s\ntests: [{id: a, task: {description: d}}]\n".to_owned(),
        test("runs: 0"),
        test("pass_rate: 0"),
        test("mode: comparison"),
        test("skip: true"),
        test("environment: {A: 5}"),
        test("constraints: {timeout_seconds: 86401}"),
        test("scoring: {quality_weight: 1.5}"),
        test("files: [{path: a}]"),
        test("approvals: [{tool: a, decision: maybe}]"),
        test("mock_tools: [{name: a, responses: [{when: {call: 0}, then: {}}]}]"),
        test("attest: [{type: contnt, spec: {}}]"),
        test("expected_artifacts: []"),
        assertion("type: contians"),
        assertion("type: contains"),
        assertion("type: contains, config: {patern: x}"),
        assertion("type: style"),
        assertion("type: behavior, config: {}"),
        assertion("type: behavior, config: {check: errors}"),
        assertion("type: no_errors, config: {x: 1}"),
        assertion("type: pytest, config: {container: true}"),
        assertion("type: lint, config: {linter: flake8}"),
        assertion("type: security, config: {checks: [pii]}"),
        assertion("type: llm_eval, config: {threshold: 0.5}"),
        assertion("type: file_count, config: {operator: ne}"),
        assertion("type: composite, config: {operator: not}"),
        assertion("type: composite, config: {conditions: [{type: no_errors, operator: and}]}"),
        assertion(
            "type: composite, config: {operator: threshold, value: 2, comparator: '>', condition: {type: no_errors}}",
        ),
    ] {
        assert!(!validator.is_valid(&as_value(&yaml)), "the schema accepts {yaml}");
        assert!(!mistakes(&yaml).is_empty(), "the loader accepts {yaml}");
    }
}
