//! Size limits of the stored run state: the number of items, and the length of texts.

use proctor_core::json::Json;

use super::problem::{Problems, quote};
use crate::ahp::{ArtifactRef, EvidenceRef, TaskItem, VerificationCheck, VerificationEvent};

/// At most this many tasks, checks, dependencies of a task and residual risks are kept.
pub const MAX_ITEMS: usize = 1000;
/// At most this many pieces of evidence and artifacts are kept for each task and check.
pub const MAX_REFERENCES: usize = 100;
/// At most this many bytes of a text are kept; longer metadata is left out.
pub const MAX_TEXT: usize = 4096;

/// The beginning of a text.
pub(super) fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or(text)
}

pub(super) fn tasks(tasks: &[TaskItem], problems: &mut Problems) -> Vec<TaskItem> {
    let tasks = first(tasks, MAX_ITEMS, || "tasks".to_owned(), problems);
    tasks.iter().map(|task| self::task(task, problems)).collect()
}

fn task(task: &TaskItem, problems: &mut Problems) -> TaskItem {
    let of = |what: &str| format!("{what} of task {}", quote(&task.id));
    let dependencies = first(&task.depends_on, MAX_ITEMS, || of("dependencies"), problems);
    TaskItem {
        id: owned(&task.id),
        title: owned(&task.title),
        status: task.status,
        depends_on: dependencies.iter().map(|id| owned(id)).collect(),
        evidence: evidence(first(&task.evidence, MAX_REFERENCES, || of("evidence"), problems)),
        artifacts: artifacts(first(&task.artifacts, MAX_REFERENCES, || of("artifacts"), problems)),
        error: optional(task.error.as_ref()),
        updated_at: optional(task.updated_at.as_ref()),
        metadata: metadata(task.metadata.as_ref()),
    }
}

pub(super) fn verification(event: &VerificationEvent, problems: &mut Problems) -> VerificationEvent {
    let checks = first(&event.checks, MAX_ITEMS, || "checks".to_owned(), problems);
    let risks = first(&event.residual_risks, MAX_ITEMS, || "residual risks".to_owned(), problems);
    VerificationEvent {
        run_id: owned(&event.run_id),
        session_id: owned(&event.session_id),
        status: event.status,
        checks: checks.iter().map(|check| self::check(check, problems)).collect(),
        residual_risks: risks.iter().map(|risk| owned(risk)).collect(),
        updated_at: owned(&event.updated_at),
        metadata: metadata(event.metadata.as_ref()),
    }
}

fn check(check: &VerificationCheck, problems: &mut Problems) -> VerificationCheck {
    let of = |what: &str| format!("{what} of check {}", quote(&check.id));
    VerificationCheck {
        id: owned(&check.id),
        subject: owned(&check.subject),
        status: check.status,
        command: optional(check.command.as_ref()),
        message: optional(check.message.as_ref()),
        evidence: evidence(first(&check.evidence, MAX_REFERENCES, || of("evidence"), problems)),
        artifacts: artifacts(first(&check.artifacts, MAX_REFERENCES, || of("artifacts"), problems)),
        metadata: metadata(check.metadata.as_ref()),
    }
}

fn evidence(items: &[EvidenceRef]) -> Vec<EvidenceRef> {
    let kept = items.iter().map(|item| EvidenceRef {
        kind: owned(&item.kind),
        summary: owned(&item.summary),
        artifact: item.artifact.as_ref().map(artifact),
        metadata: metadata(item.metadata.as_ref()),
    });
    kept.collect()
}

fn artifacts(items: &[ArtifactRef]) -> Vec<ArtifactRef> {
    items.iter().map(artifact).collect()
}

fn artifact(item: &ArtifactRef) -> ArtifactRef {
    ArtifactRef {
        id: owned(&item.id),
        kind: optional(item.kind.as_ref()),
        uri: optional(item.uri.as_ref()),
        path: optional(item.path.as_ref()),
        mime_type: optional(item.mime_type.as_ref()),
        sha256: optional(item.sha256.as_ref()),
        size_bytes: item.size_bytes,
        summary: optional(item.summary.as_ref()),
    }
}

fn first<'a, T>(
    items: &'a [T],
    limit: usize,
    what: impl FnOnce() -> String,
    problems: &mut Problems,
) -> &'a [T] {
    match items.get(..limit) {
        Some(kept) if kept.len() < items.len() => {
            problems.add("too_many", || format!("{} {}, of which {limit} are kept", items.len(), what()));
            kept
        }
        _ => items,
    }
}

fn owned(text: &str) -> String {
    cut(text).to_owned()
}

fn optional(text: Option<&String>) -> Option<String> {
    text.map(|text| owned(text))
}

fn metadata(value: Option<&Json>) -> Option<Json> {
    value.filter(|value| fits(value)).cloned()
}

/// Whether a value can be kept inside a state and read back: short, and flat enough to be nested some levels deeper.
fn fits(value: &Json) -> bool {
    let text = value.to_string();
    text.len() <= MAX_TEXT && Json::parse(format!("[[[[[[[[{text}]]]]]]]]").as_bytes()).is_ok()
}
