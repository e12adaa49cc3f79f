//! The payloads whose shape the protocol defines, durable contracts apart.

use std::fmt::Debug;

use proctor_core::json::Json;
use proctor_wire::ahp::{
    ConfirmationEvent, ConfirmationType, ContextPerceptionEvent, HeartbeatEvent, HistoryItem, IdleEvent,
    IntentDetectionEvent, MemoryRecallEvent, PerceptionConstraints, PerceptionContext, PerceptionDomain,
    PerceptionFreshness, PerceptionIntent, PerceptionModality, PerceptionTarget, PerceptionUrgency,
    PlanningEvent, PlanningStrategy, RateLimitEvent, RateLimitType, ReasoningEvent, ReasoningType,
    SuccessEvent, TimeRange,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::shape::{Shape, check, check_with, json};

#[test]
fn quiet_payloads() {
    check::<HeartbeatEvent>(&Shape {
        required: &[
            ("uptime_ms", "90000"),
            ("total_events_processed", "41"),
            ("current_state", "\"active\""),
        ],
        optional: &[
            ("cpu_percent", "12.5"),
            ("memory_bytes", "1048576"),
            ("active_tools", "1"),
            ("pending_actions", "2"),
            ("queue_depth", "3"),
            ("tokens_used", "-512"),
        ],
        ..Shape::default()
    });
    check::<SuccessEvent>(&Shape {
        required: &[
            ("session_id", "\"s\""),
            ("action_type", "\"edit\""),
            ("action_summary", "\"renamed\""),
            ("duration_ms", "830"),
        ],
        ..Shape::default()
    });
}

#[test]
fn specialised_payloads() {
    check::<IdleEvent>(&Shape {
        required: &[("idle_duration_ms", "45000"), ("idle_reason", "\"awaiting_user\"")],
        optional: &[("last_event_type", "\"post_action\""), ("suggested_action", "\"index\"")],
        ..Shape::default()
    });
    check::<MemoryRecallEvent>(&Shape {
        required: &[
            ("session_id", "\"s\""),
            ("query", "\"flaky\""),
            ("memory_type", "\"episodic\""),
            ("max_results", "3"),
            ("working_directory", "\"/srv\""),
        ],
        ..Shape::default()
    });
    check::<PlanningEvent>(&Shape {
        required: &[
            ("session_id", "\"s\""),
            ("task_description", "\"split\""),
            ("available_strategies", r#"["none",{"custom":"beam"}]"#),
        ],
        optional: &[("constraints", r#"{"cost":1.10}"#)],
        anything: &["constraints"],
        ..Shape::default()
    });
    check::<ReasoningEvent>(&Shape {
        required: &[
            ("session_id", "\"s\""),
            ("reasoning_type", "\"re_act\""),
            ("problem_statement", "\"why\""),
        ],
        optional: &[("hints", "[\"lock order\"]")],
        ..Shape::default()
    });
    check::<RateLimitEvent>(&Shape {
        required: &[
            ("session_id", "\"s\""),
            ("limit_type", "\"llm_request_limit\""),
            ("retry_after_ms", "2000"),
            ("current_usage", "\"60/60\""),
        ],
        ..Shape::default()
    });
    check::<ConfirmationEvent>(&Shape {
        required: &[
            ("session_id", "\"s\""),
            ("confirmation_type", "\"cost_confirm\""),
            ("message", "\"spend?\""),
        ],
        optional: &[("options", "[\"yes\",\"no\"]")],
        ..Shape::default()
    });
    check::<IntentDetectionEvent>(&Shape {
        required: &[("session_id", "\"s\""), ("prompt", "\"where\""), ("workspace", "\"/srv\"")],
        optional: &[("language_hint", "\"en\"")],
        ..Shape::default()
    });
}

#[test]
fn context_perception() {
    check::<ContextPerceptionEvent>(&Shape {
        required: &[
            ("session_id", "\"s\""),
            ("intent", "\"locate\""),
            ("target", r#"{"pattern":{"pattern":"p","pattern_type":"text"}}"#),
            ("context", r#"{"workspace":"/srv"}"#),
        ],
        optional: &[("metadata", r#"{"n":1.10}"#)],
        defaulted: &[
            ("domain", "\"coding\"", "\"general\""),
            ("preferred_modality", "\"code\"", "\"any\""),
            ("urgency", "\"high\"", "\"normal\""),
            ("freshness", "\"recent\"", "\"static\""),
            (
                "constraints",
                r#"{"max_results":5,"max_context_length":null,"include_sources":false}"#,
                r#"{"max_results":null,"max_context_length":null,"include_sources":true}"#,
            ),
        ],
        ..Shape::default()
    });
    check::<PerceptionContext>(&Shape {
        required: &[("workspace", "\"/srv\"")],
        optional: &[
            ("current_task", "\"ship\""),
            ("query", "\"who calls it\""),
            ("relevant_history", r#"[{"item_type":"edit","content":"c","timestamp":-1}]"#),
        ],
        ..Shape::default()
    });
    check::<HistoryItem>(&Shape {
        required: &[("item_type", "\"edit\""), ("content", "\"c\""), ("timestamp", "-1")],
        ..Shape::default()
    });
    check::<PerceptionConstraints>(&Shape {
        nullable: &[("max_results", "5"), ("max_context_length", "6")],
        defaulted: &[("include_sources", "false", "true")],
        ..Shape::default()
    });
    check::<TimeRange>(&Shape {
        nullable: &[("from", "-1"), ("to", "-2")],
        optional: &[("relative", "\"last week\"")],
        ..Shape::default()
    });
}

#[test]
fn targets_are_named_by_their_only_member() {
    let target = |variant: &'static str, shape: &Shape<'_>| {
        check_with(
            shape,
            |value| {
                Json::object()
                    .with(variant, value.clone())
                    .read::<PerceptionTarget>()
                    .map_err(|e| e.to_string())
            },
            |target| {
                let written = Json::from_type(target).unwrap();
                assert_eq!(written.as_object().unwrap().len(), 1);
                written[variant].clone()
            },
        );
    };
    target(
        "entity",
        &Shape {
            required: &[("name", "\"parse\""), ("entity_type", "\"function\"")],
            nullable: &[("identifier", "\"i\"")],
            ..Shape::default()
        },
    );
    target(
        "location",
        &Shape { required: &[("path", "\"/srv\""), ("location_type", "\"file\"")], ..Shape::default() },
    );
    target(
        "event",
        &Shape {
            required: &[("description", "\"d\""), ("event_type", "\"anything\"")],
            nullable: &[("time_range", r#"{"from":1,"to":null}"#)],
            ..Shape::default()
        },
    );
    target(
        "relation",
        &Shape {
            required: &[("entities", "[\"a\",\"b\"]"), ("relation_type", "\"calls\"")],
            ..Shape::default()
        },
    );
    target(
        "rule",
        &Shape {
            required: &[("name", "\"n\""), ("rule_type", "\"lint\"")],
            nullable: &[("scope", "\"all\"")],
            ..Shape::default()
        },
    );
    target(
        "state",
        &Shape {
            required: &[("target", "\"t\""), ("aspect", "\"a\""), ("include_history", "true")],
            ..Shape::default()
        },
    );
    target(
        "resource",
        &Shape {
            required: &[("name", "\"n\""), ("resource_type", "\"db\"")],
            nullable: &[("constraints", "[1.10]")],
            anything: &["constraints"],
            ..Shape::default()
        },
    );
    target(
        "pattern",
        &Shape { required: &[("pattern", "\"p\""), ("pattern_type", "\"text\"")], ..Shape::default() },
    );
    for bad in [
        "{}",
        "\"location\"",
        r#"{"type":"location","path":"p","location_type":"t"}"#,
        r#"{"pattern":{"pattern":"p","pattern_type":"t"},"location":{"path":"p","location_type":"t"}}"#,
        r#"{"place":{"path":"p"}}"#,
    ] {
        assert!(json(bad).read::<PerceptionTarget>().is_err(), "{bad}");
    }
}

fn names<T: Serialize + DeserializeOwned + PartialEq + Debug>(names: &[&str]) {
    for name in names {
        let value: T = Json::from(*name).read().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(Json::from_type(&value).unwrap(), Json::from(*name));
    }
    for bad in ["\"\"", "\"nonsense\"", "null", "7", "[]", "{}", r#"{"nonsense":"x"}"#] {
        assert!(json(bad).read::<T>().is_err(), "{bad}");
    }
}

#[test]
fn names_of_enumerations() {
    names::<PerceptionIntent>(&[
        "recognize",
        "understand",
        "locate",
        "retrieve",
        "explore",
        "reason",
        "validate",
        "compare",
        "track",
    ]);
    names::<PerceptionDomain>(&[
        "coding",
        "writing",
        "data_analysis",
        "research",
        "project_management",
        "conversation",
        "operations",
        "security",
        "general",
    ]);
    names::<PerceptionModality>(&[
        "text",
        "code",
        "structured_data",
        "table",
        "chart",
        "image",
        "audio",
        "video",
        "any",
    ]);
    names::<PerceptionUrgency>(&["critical", "high", "normal", "low"]);
    names::<PerceptionFreshness>(&["realtime", "recent", "static"]);
    names::<PlanningStrategy>(&["none", "step_by_step", "tree_of_thoughts", "graph_planning"]);
    names::<ReasoningType>(&["chain_of_thought", "tree_of_thoughts", "re_act", "reflexion"]);
    names::<RateLimitType>(&[
        "llm_token_limit",
        "llm_request_limit",
        "api_request_limit",
        "tool_execution_limit",
    ]);
    names::<ConfirmationType>(&["safety_confirm", "user_confirm", "cost_confirm"]);
}

#[test]
fn names_of_the_agents_own() {
    fn own<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, member: &str) {
        let text = format!(r#"{{"{member}":"mine"}}"#);
        assert_eq!(&json(&text).read::<T>().unwrap(), value);
        assert_eq!(serde_json::to_string(value).unwrap(), text);
        for bad in
            [format!("\"{member}\""), format!(r#"{{"{member}":7}}"#), format!(r#"{{"{member}":"a","b":1}}"#)]
        {
            assert!(json(&bad).read::<T>().is_err(), "{bad}");
        }
    }
    own(&PlanningStrategy::Custom("mine".into()), "custom");
    own(&ReasoningType::Other("mine".into()), "other");
    own(&RateLimitType::Custom("mine".into()), "custom");
    own(&ConfirmationType::Custom("mine".into()), "custom");
}
