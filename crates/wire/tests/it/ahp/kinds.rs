//! The 22 kinds of events.

use proctor_core::json::Json;
use proctor_wire::ahp::EventType;

/// Name, blocking, specialised, batchable, durable.
const KINDS: [(&str, bool, bool, bool, bool); 22] = [
    ("handshake", true, false, false, false),
    ("pre_action", true, false, true, false),
    ("post_action", false, false, true, false),
    ("pre_prompt", true, false, true, false),
    ("post_response", false, false, true, false),
    ("session_start", false, false, true, false),
    ("session_end", false, false, true, false),
    ("error", false, false, true, false),
    ("query", true, false, false, false),
    ("heartbeat", false, false, true, false),
    ("idle", true, true, false, false),
    ("context_perception", true, true, false, false),
    ("success", false, false, true, false),
    ("memory_recall", true, true, false, false),
    ("planning", true, true, false, false),
    ("reasoning", true, true, false, false),
    ("rate_limit", true, true, false, false),
    ("confirmation", true, true, false, false),
    ("intent_detection", true, true, false, false),
    ("run_lifecycle", false, false, true, true),
    ("task_list", false, false, true, true),
    ("verification", false, false, true, true),
];

#[test]
fn each_kind_is_what_the_protocol_says() {
    for (kind, (name, blocking, specialised, batchable, durable)) in EventType::ALL.into_iter().zip(KINDS) {
        assert_eq!(kind.name(), name);
        assert_eq!(kind.to_string(), name);
        assert_eq!(Json::from(name).read::<EventType>().unwrap(), kind);
        assert_eq!(Json::from_type(&kind).unwrap(), Json::from(name));
        assert_eq!(kind.is_blocking(), blocking, "{name}");
        assert_eq!(kind.is_specialised(), specialised, "{name}");
        assert_eq!(kind.is_batchable(), batchable, "{name}");
        assert_eq!(kind.is_durable(), durable, "{name}");
    }
}

#[test]
fn names_are_case_sensitive_and_there_are_no_others() {
    for name in ["Pre_Action", "PRE_ACTION", "preAction", "pre_tool_use", "generate_start", "", " idle"] {
        assert!(Json::from(name).read::<EventType>().is_err(), "{name}");
    }
}
