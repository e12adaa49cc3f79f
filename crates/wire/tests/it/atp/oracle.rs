//! Strict mode gives the verdict of the document's schemas, as an independent validator computes it.

use std::sync::LazyLock;

use jsonschema::Validator;
use proctor_core::json::Json;
use proctor_wire::atp::{
    Event, Findings, ReadError, Request, Response, Strictness, Version, WarningKind, schema,
};
use proptest::prelude::*;
use serde_json::Value;

use super::mutation::{Kind, any_message};

/// The validator of a shipped schema. Draft 7 knows no `uuid`, so that the draft is replaced by the next one, in which all keywords of
/// the schemas mean the same.
fn validator(text: &str) -> Validator {
    let mut schema: Value = serde_json::from_str(text).unwrap();
    schema["$schema"] = "https://json-schema.org/draft/2019-09/schema".into();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

static REQUEST: LazyLock<Validator> = LazyLock::new(|| validator(schema::REQUEST));
static RESPONSE: LazyLock<Validator> = LazyLock::new(|| validator(schema::RESPONSE));
static EVENT: LazyLock<Validator> = LazyLock::new(|| validator(schema::EVENT));

/// The verdict of the schema and of the document's version rule.
fn expected(kind: Kind, json: &Json) -> bool {
    let value: Value = serde_json::from_str(&json.to_string()).unwrap();
    let by_schema = match kind {
        Kind::Request => REQUEST.is_valid(&value),
        Kind::Response => RESPONSE.is_valid(&value),
        Kind::Event => EVENT.is_valid(&value),
    };
    by_schema && value["version"].as_str().is_some_and(|version| Version::parse(version).is_some())
}

fn findings(kind: Kind, json: &Json, strictness: Strictness) -> Findings {
    let result = match kind {
        Kind::Request => Request::read(json.clone(), strictness).map(|read| read.warnings),
        Kind::Response => Response::read(json.clone(), strictness).map(|read| read.warnings),
        Kind::Event => Event::read(json.clone(), strictness).map(|read| read.warnings),
    };
    match result {
        Ok(warnings) => Findings { warnings, ..Findings::default() },
        Err(ReadError::Invalid(findings)) => *findings,
        Err(other) => panic!("{other}"),
    }
}

/// Warnings that are no deviation from the document's schemas.
const NO_DEVIATION: [WarningKind; 7] = [
    WarningKind::PlanAsText,
    WarningKind::LegacyArgs,
    WarningKind::SizeMismatch,
    WarningKind::HashMismatch,
    WarningKind::HashNotChecked,
    WarningKind::NullForAbsent,
    WarningKind::RefusedInRuns,
];

#[test]
fn the_oracle_asserts_formats() {
    let text = super::examples::REQUEST;
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let json = |text: &str| Json::parse(text.as_bytes()).unwrap();
    assert!(expected(Kind::Request, &json(text)));
    assert!(!expected(Kind::Request, &json(&text.replace(id, "task"))));
    assert!(!expected(Kind::Request, &json(&text.replace("http://test-harness:8080/tools", "tools"))));
    let event = &super::examples::events()[0];
    assert!(!expected(Kind::Event, &json(&event.replace("45.123Z", "45.123"))));
}

proptest! {
    #[test]
    fn strict_mode_agrees_with_the_schemas((kind, json) in any_message()) {
        let found = findings(kind, &json, Strictness::Strict);
        prop_assert_eq!(found.is_valid(), expected(kind, &json), "{:?} {}: {:?}", kind, json, found);
    }

    #[test]
    fn endpoints_agree_with_the_format(endpoint in "[a-z0-9+.-]{0,5}:?(//)?([a-z%0-9]{0,4}@)?(\\[[0-9a-fv:.]{0,12}\\])?[a-z0-9%:/?#@\\[\\]!$&'()*+,;=~_. -]{0,12}") {
        let json = Json::parse(super::examples::REQUEST.as_bytes()).unwrap();
        let text = json.to_string().replace("\"http://test-harness:8080/tools\"", &Json::from(endpoint).to_string());
        let json = Json::parse(text.as_bytes()).unwrap();
        let found = findings(Kind::Request, &json, Strictness::Strict);
        prop_assert_eq!(found.is_valid(), expected(Kind::Request, &json), "{}", json);
    }

    #[test]
    fn times_agree_with_the_format(time in "(19|20|00)[0-9]{2}-(0[0-9]|1[0-3])-(0[0-9]|[12][0-9]|3[01])[Tt ](0[0-9]|1[0-9]|2[0-4]):[0-6][0-9]:(59|60|61|[0-5][0-9])(\\.[0-9]{0,4})?(Z|z|[+-][0-2][0-9]:?[0-6][0-9]|)") {
        let json = Json::parse(super::examples::events()[0].as_bytes()).unwrap();
        let text = json.to_string().replace("2025-01-21T10:30:45.123Z", &time);
        let json = Json::parse(text.as_bytes()).unwrap();
        let found = findings(Kind::Event, &json, Strictness::Strict);
        prop_assert_eq!(found.is_valid(), expected(Kind::Event, &json), "{}", json);
    }

    /// The modes differ only by what they say: what is tolerated is a warning, and what runs refuse is announced.
    #[test]
    fn modes_differ_only_where_they_say_so((kind, json) in any_message()) {
        let strict = findings(kind, &json, Strictness::Strict);
        let lenient = findings(kind, &json, Strictness::Lenient);
        if strict.is_valid() {
            let refused = strict.warnings.count(WarningKind::RefusedInRuns) > 0;
            prop_assert_eq!(lenient.is_valid(), !refused, "{:?} {}: {:?}", kind, json, lenient);
        }
        let tolerated = lenient.warnings.counts().any(|(kind, _)| !NO_DEVIATION.contains(&kind))
            || lenient.warnings.count(WarningKind::NullForAbsent) > 0;
        if lenient.is_valid() && !tolerated {
            prop_assert!(strict.is_valid(), "{:?} {}: {:?}", kind, json, strict);
        }
    }
}
