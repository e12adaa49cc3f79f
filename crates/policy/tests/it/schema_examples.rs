//! The JSON Schema and the examples that are shipped agree, and so do schema and reader about what is wrong.

use proctor_policy::document::{YAML_LIMITS, read_document, schema};

fn validator() -> jsonschema::Validator {
    let text = schema::SCHEMA;
    jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap()
}

fn as_json(yaml: &str) -> serde_json::Value {
    let json = proctor_yaml::parse(yaml.as_bytes(), &YAML_LIMITS)
        .unwrap_or_else(|errors| panic!("{errors:?}"))
        .to_json();
    serde_json::from_str(&json.to_string()).unwrap()
}

#[test]
fn the_examples_fit_the_schema_and_load() {
    let validator = validator();
    for (name, text) in [
        ("strict", include_str!("../../../../schemas/examples/strict.yaml")),
        ("balanced", include_str!("../../../../schemas/examples/balanced.yaml")),
        ("audit-only", include_str!("../../../../schemas/examples/audit-only.yaml")),
        ("conformance", include_str!("../../../../schemas/examples/conformance.yaml")),
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

/// Documents of the first version of Agent Assembly's format: the sections that it had, and nothing else.
const FIRST_OPEN: &str = r#"
version: "1"
network: { allowlist: ["*"] }
tools:
  web_search: { allow: true }
  code_interpreter: { allow: true }
  file_read: { allow: true }
  file_write: { allow: true }
  shell: { allow: true }
data: { sensitive_patterns: [] }
budget: { daily_limit_usd: 500.0 }
schedule: { active_hours: { start: "00:00", end: "23:59", timezone: UTC } }
"#;

const FIRST_CLOSED: &str = r#"
version: "1"
network:
  allowlist: [api.openai.com, api.anthropic.com]
tools:
  web_search: { allow: false }
  code_interpreter: { allow: false }
  file_write: { allow: false }
  shell: { allow: false }
  file_read: { allow: true, limit_per_hour: 10 }
data:
  sensitive_patterns: ['\b\d{3}-\d{2}-\d{4}\b', '(?i)password\s*=\s*\S+', 'tok_[0-9a-f]{16}']
budget: { daily_limit_usd: 1.0 }
schedule:
  active_hours: { start: "09:00", end: "17:00", timezone: Asia/Taipei }
"#;

const FIRST_BETWEEN: &str = r#"
version: "1"
tools:
  code_interpreter: { allow: true, limit_per_hour: 10, requires_approval_if: estimated_cost_usd > 0.10 }
  file_write: { allow: true, requires_approval_if: path starts_with /etc OR path starts_with /usr }
budget: { daily_limit_usd: 25.0 }
"#;

#[test]
fn documents_of_the_first_version_load() {
    let validator = validator();
    for text in [FIRST_OPEN, FIRST_CLOSED, FIRST_BETWEEN] {
        let problems: Vec<String> =
            validator.iter_errors(&as_json(text)).map(|problem| problem.to_string()).collect();
        assert!(problems.is_empty(), "{problems:?}");
        let source = proctor_policy::policy::Source::document("p.yaml", text);
        let policy = proctor_policy::policy::Policy::compile(vec![source]);
        assert!(policy.is_ok(), "{text}: {policy:?}");
    }
}

#[test]
fn documents_of_the_first_version_mean_what_they_say() {
    let document = read_document("open.yaml", FIRST_OPEN.as_bytes()).unwrap();
    let hosts: Vec<&str> =
        document.network_allowlist.as_ref().unwrap().iter().map(|host| host.value.as_str()).collect();
    assert_eq!(hosts, ["*"]);
    assert_eq!(document.tools.iter().filter(|tool| tool.allow).count(), 5);
    // The last minute of the day is active too.
    assert_eq!(document.active_hours.as_ref().unwrap().end, 24 * 60);
    let document = read_document("closed.yaml", FIRST_CLOSED.as_bytes()).unwrap();
    let hours = document.active_hours.as_ref().unwrap();
    assert_eq!(hours.timezone, "Asia/Taipei");
    let limits: Vec<_> =
        document.tools.iter().filter(|tool| tool.allow).map(|tool| tool.limit_per_hour).collect();
    assert_eq!(limits, [Some(10)]);
}
