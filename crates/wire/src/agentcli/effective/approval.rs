//! Normalised approval of a task.

use proctor_core::json::Json;

use super::members::{Amount, member, object, text};

/// Seconds until an approval expires, unless the task says otherwise.
pub(in crate::agentcli) const TIMEOUT_S: u32 = 3600;

/// Approval of a task after defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agentcli) struct Approval<'a> {
    /// Whether a run needs an approval.
    pub(in crate::agentcli) required: bool,
    /// Seconds until the approval expires; `None` without an approval block.
    pub(in crate::agentcli) timeout_s: Option<Amount<'a>>,
    /// Answer at expiry.
    pub(in crate::agentcli) auto: Option<&'a str>,
    /// `none`, `manual`, `auto-approve` or `auto-reject`.
    pub(in crate::agentcli) policy: &'a str,
    /// Risk level; `None` without an approval block.
    pub(in crate::agentcli) risk_level: Option<&'a str>,
    /// Scope that the approver must have.
    pub(in crate::agentcli) approver_scope: Option<&'a str>,
}

impl<'a> Approval<'a> {
    /// The approval that a task declares.
    pub(in crate::agentcli) fn of(task: &'a Json) -> Approval<'a> {
        let Some(block) = member(task, "approval") else {
            return Approval {
                required: false,
                timeout_s: None,
                auto: None,
                policy: "none",
                risk_level: None,
                approver_scope: None,
            };
        };
        let demanded = member(block, "required").and_then(Json::as_bool) == Some(true);
        let (required, policy, auto) = match text(block, "policy") {
            Some("auto-approve") => (demanded, "auto-approve", Some("approve")),
            Some("auto-reject") => (demanded, "auto-reject", Some("reject")),
            // `manual`: validation refuses every other word.
            Some(_) => (true, "manual", text(block, "auto").or(Some("reject"))),
            None if demanded => (true, "manual", text(block, "auto").or(Some("reject"))),
            None => (false, "none", text(block, "auto")),
        };
        Approval {
            required,
            timeout_s: Some(Amount::or(member(block, "timeout_s"), TIMEOUT_S)),
            auto,
            policy,
            risk_level: text(block, "risk_level").or(Some("medium")),
            approver_scope: text(block, "approver_scope"),
        }
    }

    /// `{required, timeout_s, auto, policy, risk_level, approver_scope}`, with `required` as 0 or 1.
    pub(in crate::agentcli) fn to_json(self) -> Json {
        object([
            ("required", u8::from(self.required).into()),
            ("timeout_s", self.timeout_s.into()),
            ("auto", self.auto.into()),
            ("policy", self.policy.into()),
            ("risk_level", self.risk_level.into()),
            ("approver_scope", self.approver_scope.into()),
        ])
    }
}
