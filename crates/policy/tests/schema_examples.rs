//! The JSON Schema and the examples that are shipped agree, and so do schema and reader about what is wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use proctor_policy::document::{read_document, schema, yaml_to_json};

fn validator() -> jsonschema::Validator {
    let text = schema::SCHEMA;
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

fn as_json(yaml: &str) -> serde_json::Value {
    let json = yaml_to_json("p.yaml", yaml.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"));
    serde_json::from_str(&json.to_string()).unwrap()
}

#[test]
fn the_examples_fit_the_schema_and_load() {
    let validator = validator();
    for (name, text) in [
        ("strict", include_str!("../../../schemas/examples/strict.yaml")),
        ("balanced", include_str!("../../../schemas/examples/balanced.yaml")),
        ("audit-only", include_str!("../../../schemas/examples/audit-only.yaml")),
        ("conformance", include_str!("../../../schemas/examples/conformance.yaml")),
    ] {
        let problems: Vec<String> =
            validator.iter_errors(&as_json(text)).map(|problem| problem.to_string()).collect();
        assert!(problems.is_empty(), "{name}: {problems:?}");
        assert!(read_document(name, text.as_bytes()).is_ok(), "{name}");
    }
}

#[test]
fn both_refuse_the_same_mistakes() {
    let validator = validator();
    for text in [
        "defualt: deny\n",
        "default: maybe\n",
        "tools: { x: { alow: true } }\n",
        "observe: [3]\n",
        "anomalies: { loops: { count: 1 } }\n",
        "anomalies: { loops: { then: shout } }\n",
        "anomalies: { lops: off }\n",
        "budget: { action_on_exceed: explode }\n",
        "rules: [{ id: x }]\n",
    ] {
        assert!(!validator.is_valid(&as_json(text)), "the schema takes {text}");
        assert!(read_document("p.yaml", text.as_bytes()).is_err(), "the reader takes {text}");
    }
}
