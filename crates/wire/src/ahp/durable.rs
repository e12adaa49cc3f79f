//! The durable contracts: run lifecycle, task list, verification, and the evidence that they refer to.

use proctor_core::json::Json;
use serde::{Deserialize, Serialize};

use super::context::object;

/// A run entered a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLifecycleEvent {
    /// The run.
    pub run_id: String,
    /// The session that it belongs to.
    pub session_id: String,
    /// The state.
    pub status: RunStatus,
    /// The prompt of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_summary: Option<String>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Start time; any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Time of the update; any text.
    pub updated_at: String,
    /// Free-form metadata object.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub metadata: Option<Json>,
}

/// The states of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum RunStatus {
    Created,
    Planning,
    Executing,
    Verifying,
    Completed,
    Failed,
    Cancelled,
}

impl RunStatus {
    /// All statuses.
    pub const ALL: [RunStatus; 7] = [
        RunStatus::Created,
        RunStatus::Planning,
        RunStatus::Executing,
        RunStatus::Verifying,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Created => "created",
            RunStatus::Planning => "planning",
            RunStatus::Executing => "executing",
            RunStatus::Verifying => "verifying",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        }
    }

    /// Whether the run is over.
    pub fn is_final(self) -> bool {
        matches!(self, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled)
    }

    /// Whether a run may go from this state to the next one. The protocol has no such rule; this is ours.
    pub fn may_become(self, next: RunStatus) -> bool {
        use RunStatus::{Cancelled, Completed, Created, Executing, Failed, Planning, Verifying};
        self == next
            || match self {
                Created => matches!(next, Planning | Executing | Failed | Cancelled),
                // A run may be asked for a plan and nothing else.
                Planning => matches!(next, Executing | Completed | Failed | Cancelled),
                Executing => matches!(next, Planning | Verifying | Completed | Failed | Cancelled),
                Verifying => matches!(next, Executing | Completed | Failed | Cancelled),
                Completed | Failed | Cancelled => false,
            }
    }
}

/// All tasks of a run, as they are now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskListEvent {
    /// The run.
    pub run_id: String,
    /// The session that it belongs to.
    pub session_id: String,
    /// The tasks.
    pub tasks: Vec<TaskItem>,
    /// Time of the update; any text.
    pub updated_at: String,
    /// Free-form metadata object.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub metadata: Option<Json>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskItem {
    /// The identifier within the list.
    pub id: String,
    /// The description.
    pub title: String,
    /// The status.
    pub status: TaskStatus,
    /// The tasks that come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Evidence of completion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRef>,
    /// The artifacts it produced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Time of the update; any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Free-form metadata object.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub metadata: Option<Json>,
}

/// The states of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum TaskStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

impl TaskStatus {
    /// All statuses.
    pub const ALL: [TaskStatus; 6] = [
        TaskStatus::Pending,
        TaskStatus::InProgress,
        TaskStatus::Completed,
        TaskStatus::Failed,
        TaskStatus::Skipped,
        TaskStatus::Cancelled,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            TaskStatus::Pending => "pending",
            TaskStatus::InProgress => "in_progress",
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Skipped => "skipped",
            TaskStatus::Cancelled => "cancelled",
        }
    }

    /// Whether nothing more is to happen to it. A failed task may be tried again.
    pub fn is_final(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Skipped | TaskStatus::Cancelled)
    }

    /// Whether it is still to be done.
    pub fn is_open(self) -> bool {
        matches!(self, TaskStatus::Pending | TaskStatus::InProgress)
    }

    /// Whether tasks that come after it may begin.
    pub fn satisfies(self) -> bool {
        matches!(self, TaskStatus::Completed | TaskStatus::Skipped)
    }

    /// Whether a task may go from this state to the next one. The protocol has no such rule; this is ours.
    pub fn may_become(self, next: TaskStatus) -> bool {
        !(self.is_final() && next.is_open())
    }
}

/// Status of the verification of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationEvent {
    /// The run.
    pub run_id: String,
    /// The session that it belongs to.
    pub session_id: String,
    /// The verdict on the whole.
    pub status: VerificationStatus,
    /// The checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<VerificationCheck>,
    /// The remaining risks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub residual_risks: Vec<String>,
    /// Time of the update; any text.
    pub updated_at: String,
    /// Free-form metadata object.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub metadata: Option<Json>,
}

/// The states of a verification and of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum VerificationStatus {
    Pending,
    Running,
    Passed,
    Failed,
    Skipped,
    NeedsReview,
}

impl VerificationStatus {
    /// All statuses.
    pub const ALL: [VerificationStatus; 6] = [
        VerificationStatus::Pending,
        VerificationStatus::Running,
        VerificationStatus::Passed,
        VerificationStatus::Failed,
        VerificationStatus::Skipped,
        VerificationStatus::NeedsReview,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            VerificationStatus::Pending => "pending",
            VerificationStatus::Running => "running",
            VerificationStatus::Passed => "passed",
            VerificationStatus::Failed => "failed",
            VerificationStatus::Skipped => "skipped",
            VerificationStatus::NeedsReview => "needs_review",
        }
    }

    /// Whether a whole with such a part cannot have passed.
    pub fn contradicts_passed(self) -> bool {
        matches!(self, VerificationStatus::Pending | VerificationStatus::Running | VerificationStatus::Failed)
    }
}

/// A check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationCheck {
    /// The identifier within the verification.
    pub id: String,
    /// The subject of the check.
    pub subject: String,
    /// Status.
    pub status: VerificationStatus,
    /// Command that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The check's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceRef>,
    /// The artifacts it produced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
    /// Free-form metadata object.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub metadata: Option<Json>,
}

/// Reference to evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRef {
    /// The kind.
    pub kind: String,
    /// The summary.
    pub summary: String,
    /// Reference to the stored artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactRef>,
    /// Free-form metadata object.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
    pub metadata: Option<Json>,
}

/// Reference to an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArtifactRef {
    /// The identifier.
    pub id: String,
    /// The kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Location as a URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Location as a file path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}
