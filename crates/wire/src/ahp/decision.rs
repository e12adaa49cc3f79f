//! Decisions: the harness's replies to events, tagged by the member `decision`.
//!
//! Members that the protocol does not know (`approval_id`, `expires_at`, and `reason`, `retry_after_ms` or `metadata` where it has none)
//! are ignored by readers that do not know them, and let a reader of generic decisions understand specialised ones.

use proctor_core::json::Json;
use serde::{Deserialize, Serialize};

use super::context::object;
use super::{Fact, MessageError, PerceptionIntent, PerceptionTarget, PlanningStrategy};

/// Free-form metadata object.
pub type Metadata = Json;

/// The decision on ordinary actions and prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum Decision {
    /// The action may run.
    Allow {
        /// Payload to use instead of the sent one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modified_payload: Option<Json>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// The action must not run.
    Block {
        /// Reason.
        reason: String,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// The action may run with another payload.
    Modify {
        /// The payload to use instead.
        #[serde(deserialize_with = "Json::deserialize")]
        modified_payload: Json,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// The agent retries later.
    Defer {
        /// Retry delay, in milliseconds.
        retry_after_ms: u64,
        /// Reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The approval that the action waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_id: Option<String>,
        /// Expiry of the approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<String>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// A person decides.
    Escalate {
        /// Reason.
        reason: String,
        /// The approver.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        escalation_target: Option<String>,
        /// The approval that the action waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_id: Option<String>,
        /// Retry delay, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        /// Expiry of the approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<String>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
}

/// The decision on idle work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum IdleDecision {
    /// Idle work is allowed.
    Allow {
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// Idle work is not allowed now.
    Defer {
        /// Reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Retry delay, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
}

/// The decision on a request for context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum ContextPerceptionDecision {
    /// Context is injected.
    Allow {
        /// The context.
        injected_context: InjectedContext,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// Context is refused.
    Block {
        /// Reason.
        reason: String,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// The request must be narrower.
    Refine {
        /// A better intent.
        #[serde(default)]
        refined_intent: Option<PerceptionIntent>,
        /// A better target.
        #[serde(default)]
        refined_target: Option<PerceptionTarget>,
        /// Hints for narrowing the request.
        scope_hints: Vec<String>,
        /// Reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
}

/// The decision on a request for memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum MemoryRecallDecision {
    /// Memories are recalled.
    Allow {
        /// The recalled facts.
        injected_facts: Vec<Fact>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// Recall is refused.
    Block {
        /// Reason.
        reason: String,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
}

/// The decision on planning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum PlanningDecision {
    /// Planning is allowed, with this strategy.
    Allow {
        /// Strategy.
        selected_strategy: PlanningStrategy,
        /// A plan to start from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        planning_template: Option<Json>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// Planning is not allowed.
    Block {
        /// Reason.
        reason: String,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// Another task is to be planned.
    Modify {
        /// The task.
        modified_task: String,
        /// Hints for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hints: Option<Vec<String>>,
        /// The modified task as a payload, for readers of generic decisions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modified_payload: Option<Json>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
}

/// The decision on reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum ReasoningDecision {
    /// Reasoning is allowed.
    Allow {
        /// Hints for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hints: Option<Vec<String>>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// Reasoning is not allowed.
    Block {
        /// Reason.
        reason: String,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
}

/// The decision after a limit was hit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum RateLimitDecision {
    /// The agent retries later.
    Retry {
        /// Retry delay, in milliseconds.
        retry_after_ms: u64,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// The agent queues the call.
    Queue {
        /// Reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// The agent skips the call.
    Skip {
        /// Reason.
        reason: String,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
}

/// The decision on a confirmation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum ConfirmationDecision {
    /// Confirmed.
    Approve {
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// Rejected.
    Reject {
        /// Reason.
        reason: String,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// A person decides.
    Escalate {
        /// Reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The approval that the confirmation waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval_id: Option<String>,
        /// Retry delay, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
        /// Expiry of the approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<String>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
}

/// The decision on the intent of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "lowercase")]
pub enum IntentDetectionDecision {
    /// The intent was detected.
    Allow {
        /// The intent.
        detected_intent: String,
        /// Confidence, from 0 to 1.
        confidence: f32,
        /// The detected target.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target_hints: Option<TargetHints>,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
    /// Detection is refused.
    Block {
        /// Reason.
        reason: String,
        /// Free-form metadata object.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object")]
        metadata: Option<Metadata>,
    },
}

/// Context for the agent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InjectedContext {
    /// Facts about the target.
    pub facts: Vec<Fact>,
    /// Parts of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_contents: Option<Vec<FileContentSnippet>>,
    /// The project summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_summary: Option<ProjectSummary>,
    /// General knowledge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge: Option<Vec<String>>,
    /// Suggested actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Vec<String>>,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileContentSnippet {
    /// The file.
    pub path: String,
    /// The part.
    pub snippet: String,
    /// 0 to 1.
    pub relevance_score: f32,
}

/// The summary of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectSummary {
    /// The name.
    pub project_name: String,
    /// The programming language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Key files, to look at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_files: Option<Vec<String>>,
    /// Description of the layout.
    pub structure_description: String,
}

/// The target that a prompt refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TargetHints {
    /// The kind of target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_type: Option<String>,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name: Option<String>,
    /// The field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

impl Decision {
    /// An allow without a changed payload.
    pub fn allow() -> Decision {
        Decision::Allow { modified_payload: None, metadata: None }
    }

    /// A block with its reason.
    pub fn block(reason: impl Into<String>) -> Decision {
        Decision::Block { reason: reason.into(), metadata: None }
    }

    /// Reads a decision. A payload that the agent is to use keeps every digit.
    pub fn from_json(value: &Json) -> Result<Decision, MessageError> {
        let Json::Object(members) = value else {
            return Err(MessageError::not_an_object("a decision", value));
        };
        // What tells decisions apart is found by reading all members first, which rounds numbers: the payload stays out.
        let payload = value.get("modified_payload").filter(|payload| !payload.is_null());
        let rest = members.iter().map(|(name, member)| match name.as_str() {
            "modified_payload" => (name.clone(), Json::Null),
            _ => (name.clone(), member.clone()),
        });
        let mut decision: Decision = Json::Object(rest.collect()).read()?;
        match &mut decision {
            Decision::Modify { modified_payload, .. } => {
                *modified_payload = payload.cloned().unwrap_or(Json::Null);
            }
            Decision::Allow { modified_payload, .. } => *modified_payload = payload.cloned(),
            _ => {}
        }
        Ok(decision)
    }
}
