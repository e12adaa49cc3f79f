//! Every decision in every variant.

use proctor_core::json::Json;
use proctor_wire::ahp::{
    ConfirmationDecision, ContextPerceptionDecision, Decision, FileContentSnippet, IdleDecision,
    InjectedContext, IntentDetectionDecision, MemoryRecallDecision, PlanningDecision, ProjectSummary,
    RateLimitDecision, ReasoningDecision, TargetHints,
};

use super::shape::{Shape, check, check_with, json};

const METADATA: (&str, &str) = ("metadata", r#"{"rule":"default"}"#);
const ALLOW: (&str, &str) = ("decision", "\"allow\"");
const BLOCK: (&str, &str) = ("decision", "\"block\"");
const DEFER: (&str, &str) = ("decision", "\"defer\"");
const MODIFY: (&str, &str) = ("decision", "\"modify\"");
const ESCALATE: (&str, &str) = ("decision", "\"escalate\"");
const REASON: (&str, &str) = ("reason", "\"protected\"");
const LATER: (&str, &str) = ("retry_after_ms", "1500");
const APPROVAL: (&str, &str) = ("approval_id", "\"ap-1\"");
const EXPIRES: (&str, &str) = ("expires_at", "\"2026-06-02T09:15:00Z\"");

const GENERIC: [Shape<'_>; 5] = [
    Shape {
        required: &[ALLOW],
        optional: &[("modified_payload", r#"{"n":[1,null]}"#), METADATA],
        nullable: &[],
        defaulted: &[],
        anything: &["modified_payload"],
    },
    Shape { required: &[BLOCK, REASON], optional: &[METADATA], nullable: &[], defaulted: &[], anything: &[] },
    Shape {
        required: &[MODIFY, ("modified_payload", r#"{"n":[1,null]}"#)],
        optional: &[METADATA],
        nullable: &[],
        defaulted: &[],
        anything: &["modified_payload"],
    },
    Shape {
        required: &[DEFER, LATER],
        optional: &[REASON, APPROVAL, EXPIRES, METADATA],
        nullable: &[],
        defaulted: &[],
        anything: &[],
    },
    Shape {
        required: &[ESCALATE, REASON],
        optional: &[("escalation_target", "\"finance\""), APPROVAL, LATER, EXPIRES, METADATA],
        nullable: &[],
        defaulted: &[],
        anything: &[],
    },
];

#[test]
fn generic() {
    for shape in &GENERIC {
        check_with(shape, Decision::from_json, |decision| Json::from_type(decision).unwrap());
    }
}

#[test]
fn a_payload_keeps_every_digit() {
    let payload = r#"{"amount":12345678901234567890.10,"never":1e400,"deep":[-0,1.0]}"#;
    for decision in ["modify", "allow"] {
        let text = format!(r#"{{"decision":"{decision}","modified_payload":{payload}}}"#);
        let read = Decision::from_json(&json(&text)).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
    let null = Decision::from_json(&json(r#"{"decision":"modify","modified_payload":null}"#)).unwrap();
    assert_eq!(null, Decision::Modify { modified_payload: Json::Null, metadata: None });
}

#[test]
fn idle() {
    check_tagged::<IdleDecision>(&[
        Shape { required: &[ALLOW], optional: &[METADATA], ..Shape::default() },
        Shape { required: &[DEFER], optional: &[REASON, LATER, METADATA], ..Shape::default() },
    ]);
}

#[test]
fn context_perception() {
    check_tagged::<ContextPerceptionDecision>(&[
        Shape {
            required: &[ALLOW, ("injected_context", r#"{"facts":[]}"#)],
            optional: &[METADATA],
            ..Shape::default()
        },
        Shape { required: &[BLOCK, REASON], optional: &[METADATA], ..Shape::default() },
        Shape {
            required: &[("decision", "\"refine\""), ("scope_hints", "[\"src only\"]")],
            nullable: &[
                ("refined_intent", "\"explore\""),
                ("refined_target", r#"{"entity":{"name":"n","entity_type":"t","identifier":null}}"#),
            ],
            optional: &[REASON, METADATA],
            ..Shape::default()
        },
    ]);
    check::<InjectedContext>(&Shape {
        required: &[("facts", r#"[{"content":"c","source":"s","confidence":0.9}]"#)],
        optional: &[
            ("file_contents", r#"[{"path":"p","snippet":"s","relevance_score":0.8}]"#),
            ("project_summary", r#"{"project_name":"n","structure_description":"d"}"#),
            ("knowledge", "[\"k\"]"),
            ("suggestions", "[\"s\"]"),
        ],
        ..Shape::default()
    });
    check::<FileContentSnippet>(&Shape {
        required: &[("path", "\"p\""), ("snippet", "\"s\""), ("relevance_score", "0.8")],
        ..Shape::default()
    });
    check::<ProjectSummary>(&Shape {
        required: &[("project_name", "\"loom\""), ("structure_description", "\"two crates\"")],
        optional: &[("language", "\"Rust\""), ("key_files", "[\"lib.rs\"]")],
        ..Shape::default()
    });
}

#[test]
fn memory_recall() {
    check_tagged::<MemoryRecallDecision>(&[
        Shape {
            required: &[ALLOW, ("injected_facts", r#"[{"content":"c","source":"s","confidence":0.9}]"#)],
            optional: &[METADATA],
            ..Shape::default()
        },
        Shape { required: &[BLOCK, REASON], optional: &[METADATA], ..Shape::default() },
    ]);
}

#[test]
fn planning() {
    check_tagged::<PlanningDecision>(&[
        Shape {
            required: &[ALLOW, ("selected_strategy", r#"{"custom":"beam"}"#)],
            optional: &[("planning_template", "[1]"), METADATA],
            anything: &["planning_template"],
            ..Shape::default()
        },
        Shape { required: &[BLOCK, REASON], optional: &[METADATA], ..Shape::default() },
        Shape {
            required: &[MODIFY, ("modified_task", "\"keep the API\"")],
            optional: &[("hints", "[\"semver\"]"), ("modified_payload", "[1]"), METADATA],
            anything: &["modified_payload"],
            ..Shape::default()
        },
    ]);
}

#[test]
fn reasoning() {
    check_tagged::<ReasoningDecision>(&[
        Shape {
            required: &[ALLOW],
            optional: &[("hints", "[\"lock order\"]"), METADATA],
            ..Shape::default()
        },
        Shape { required: &[BLOCK, REASON], optional: &[METADATA], ..Shape::default() },
    ]);
}

#[test]
fn rate_limit() {
    check_tagged::<RateLimitDecision>(&[
        Shape { required: &[("decision", "\"retry\""), LATER], optional: &[METADATA], ..Shape::default() },
        Shape { required: &[("decision", "\"queue\"")], optional: &[REASON, METADATA], ..Shape::default() },
        Shape { required: &[("decision", "\"skip\""), REASON], optional: &[METADATA], ..Shape::default() },
    ]);
}

#[test]
fn confirmation() {
    check_tagged::<ConfirmationDecision>(&[
        Shape { required: &[("decision", "\"approve\"")], optional: &[METADATA], ..Shape::default() },
        Shape { required: &[("decision", "\"reject\""), REASON], optional: &[METADATA], ..Shape::default() },
        Shape {
            required: &[ESCALATE],
            optional: &[REASON, APPROVAL, LATER, EXPIRES, METADATA],
            ..Shape::default()
        },
    ]);
}

#[test]
fn intent_detection() {
    check_tagged::<IntentDetectionDecision>(&[
        Shape {
            required: &[ALLOW, ("detected_intent", "\"locate\""), ("confidence", "0.8")],
            optional: &[("target_hints", r#"{"target_type":"function"}"#), METADATA],
            // The derived reader of tagged values takes an empty array for an object without members.
            anything: &["target_hints"],
            ..Shape::default()
        },
        Shape { required: &[BLOCK, REASON], optional: &[METADATA], ..Shape::default() },
    ]);
    let hints = r#"{"decision":"allow","detected_intent":"locate","confidence":1,"target_hints":7}"#;
    assert!(json(hints).read::<IntentDetectionDecision>().is_err());
    check::<TargetHints>(&Shape {
        optional: &[("target_type", "\"t\""), ("target_name", "\"n\""), ("domain", "\"d\"")],
        ..Shape::default()
    });
}

#[test]
fn decisions_are_lower_case_and_known() {
    for bad in ["Allow", "ALLOW", "approve", "retry", "refine", "queue", "skip", "reject", ""] {
        let text = format!(r#"{{"decision":"{bad}","reason":"r","modified_payload":1,"retry_after_ms":1}}"#);
        assert!(Decision::from_json(&json(&text)).is_err(), "{bad}");
    }
}

/// An agent may read specialised decisions as generic ones: those that can say it in both ways do.
#[test]
fn a_generic_reader_understands_what_it_can() {
    let as_generic = |written: Json| Decision::from_json(&written);
    let deferred =
        IdleDecision::Defer { reason: Some("backup".into()), retry_after_ms: Some(30_000), metadata: None };
    assert_eq!(
        as_generic(Json::from_type(&deferred).unwrap()),
        Ok(Decision::Defer {
            retry_after_ms: 30_000,
            reason: Some("backup".into()),
            approval_id: None,
            expires_at: None,
            metadata: None
        })
    );
    let escalated = ConfirmationDecision::Escalate {
        reason: Some("a person decides".into()),
        approval_id: Some("ap-1".into()),
        retry_after_ms: Some(2000),
        expires_at: None,
        metadata: None,
    };
    assert_eq!(
        as_generic(Json::from_type(&escalated).unwrap()),
        Ok(Decision::Escalate {
            reason: "a person decides".into(),
            escalation_target: None,
            approval_id: Some("ap-1".into()),
            retry_after_ms: Some(2000),
            expires_at: None,
            metadata: None
        })
    );
    let modified = PlanningDecision::Modify {
        modified_task: "less".into(),
        hints: None,
        modified_payload: Some(json(r#"{"task_description":"less"}"#)),
        metadata: None,
    };
    assert!(matches!(as_generic(Json::from_type(&modified).unwrap()), Ok(Decision::Modify { .. })));
    for plain in [r#"{"decision":"defer"}"#, r#"{"decision":"escalate"}"#, r#"{"decision":"approve"}"#] {
        assert!(as_generic(json(plain)).is_err(), "{plain}");
    }
}

/// Tests every variant of a decision.
fn check_tagged<T>(shapes: &[Shape<'_>])
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    for shape in shapes {
        check::<T>(shape);
    }
}
