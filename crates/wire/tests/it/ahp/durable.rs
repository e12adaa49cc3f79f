//! The durable contracts.

use proctor_core::json::Json;
use proctor_wire::ahp::{
    ArtifactRef, EvidenceRef, RunLifecycleEvent, RunStatus, TaskItem, TaskListEvent, TaskStatus,
    VerificationCheck, VerificationEvent, VerificationStatus,
};

use super::shape::{Shape, check};

const RUN: (&str, &str) = ("run_id", "\"run-9\"");
const SESSION: (&str, &str) = ("session_id", "\"ses-71\"");
const UPDATED: (&str, &str) = ("updated_at", "\"whenever\"");
const METADATA: (&str, &str) = ("metadata", r#"{"n":12345678901234567890.10}"#);
const EVIDENCE: (&str, &str, &str) = ("evidence", r#"[{"kind":"diff","summary":"s"}]"#, "");
const ARTIFACTS: (&str, &str, &str) = ("artifacts", r#"[{"id":"a1"}]"#, "");

#[test]
fn run_lifecycle() {
    check::<RunLifecycleEvent>(&Shape {
        required: &[RUN, SESSION, ("status", "\"verifying\""), UPDATED],
        optional: &[
            ("prompt", "\"p\""),
            ("result_summary", "\"r\""),
            ("error", "\"e\""),
            ("started_at", "\"t\""),
            METADATA,
        ],
        ..Shape::default()
    });
}

#[test]
fn task_list() {
    check::<TaskListEvent>(&Shape {
        required: &[RUN, SESSION, ("tasks", r#"[{"id":"t1","title":"t","status":"failed"}]"#), UPDATED],
        optional: &[METADATA],
        ..Shape::default()
    });
    check::<TaskItem>(&Shape {
        required: &[("id", "\"t1\""), ("title", "\"write\""), ("status", "\"in_progress\"")],
        optional: &[("error", "\"e\""), ("updated_at", "\"t\""), METADATA],
        defaulted: &[("depends_on", "[\"t0\"]", ""), EVIDENCE, ARTIFACTS],
        ..Shape::default()
    });
}

#[test]
fn verification() {
    check::<VerificationEvent>(&Shape {
        required: &[RUN, SESSION, ("status", "\"needs_review\""), UPDATED],
        optional: &[METADATA],
        defaulted: &[
            ("checks", r#"[{"id":"c1","subject":"s","status":"passed"}]"#, ""),
            ("residual_risks", "[\"r\"]", ""),
        ],
        ..Shape::default()
    });
    check::<VerificationCheck>(&Shape {
        required: &[("id", "\"c1\""), ("subject", "\"tests\""), ("status", "\"passed\"")],
        optional: &[("command", "\"make\""), ("message", "\"ok\""), METADATA],
        defaulted: &[EVIDENCE, ARTIFACTS],
        ..Shape::default()
    });
}

#[test]
fn evidence() {
    check::<EvidenceRef>(&Shape {
        required: &[("kind", "\"diff\""), ("summary", "\"s\"")],
        optional: &[("artifact", r#"{"id":"a1","size_bytes":5120}"#), METADATA],
        ..Shape::default()
    });
    check::<ArtifactRef>(&Shape {
        required: &[("id", "\"a1\"")],
        optional: &[
            ("kind", "\"patch\""),
            ("uri", "\"u\""),
            ("path", "\"p\""),
            ("mime_type", "\"m\""),
            ("sha256", "\"not checked here\""),
            ("size_bytes", "5120"),
            ("summary", "\"s\""),
        ],
        ..Shape::default()
    });
}

#[test]
fn names_of_states() {
    let written = |value: Json| value.as_str().unwrap().to_owned();
    let runs = ["created", "planning", "executing", "verifying", "completed", "failed", "cancelled"];
    for (status, name) in RunStatus::ALL.into_iter().zip(runs) {
        assert_eq!((status.name(), written(Json::from_type(&status).unwrap())), (name, name.to_owned()));
    }
    let tasks = ["pending", "in_progress", "completed", "failed", "skipped", "cancelled"];
    for (status, name) in TaskStatus::ALL.into_iter().zip(tasks) {
        assert_eq!((status.name(), written(Json::from_type(&status).unwrap())), (name, name.to_owned()));
    }
    let checks = ["pending", "running", "passed", "failed", "skipped", "needs_review"];
    for (status, name) in VerificationStatus::ALL.into_iter().zip(checks) {
        assert_eq!((status.name(), written(Json::from_type(&status).unwrap())), (name, name.to_owned()));
    }
}
