//! `ApprovalService`: pending approvals and their decisions. An agent cannot approve requests from its own agent tree.

use proctor_clients::assembly::services::approval::approval_service_server::ApprovalService;
use proctor_core::id::ApprovalId;
use proctor_core::json::Json;
use proctor_policy::state::{AgentInfo, ApprovalInfo, Registry};
use proctor_wire::assembly::proto::approval::v1::{
    ApprovalDecisionType, ApprovalEvent, DecideRequest, DecideResponse, ListPendingRequest,
    ListPendingResponse, PendingApproval, WatchApprovalsRequest,
};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

use super::identity::{Holder, void_token};
use super::{AssemblyDoor, Replies, replies, unavailable};
use proctor_engine::{ApprovalRefusal, Notice};

/// Approvals per list.
const MAX_LISTED: usize = 10_000;

/// Bound of the channel to the transport, in approvals.
const UNSENT: usize = 256;

#[tonic::async_trait]
impl ApprovalService for AssemblyDoor {
    async fn list_pending(
        &self,
        request: Request<ListPendingRequest>,
    ) -> Result<Response<ListPendingResponse>, Status> {
        let holder = self.holder(request.metadata())?;
        let requests = self.waiting(&holder)?;
        Ok(Response::new(ListPendingResponse { requests }))
    }

    async fn decide(&self, request: Request<DecideRequest>) -> Result<Response<DecideResponse>, Status> {
        let holder = self.holder(request.metadata())?;
        let request = request.into_inner();
        let id: ApprovalId =
            request.request_id.parse().map_err(|_| Status::invalid_argument("`request_id` is not a UUID"))?;
        let allowed = match ApprovalDecisionType::try_from(request.decision) {
            Ok(ApprovalDecisionType::Approved) => true,
            Ok(ApprovalDecisionType::Rejected) => false,
            _ => return Err(Status::invalid_argument("`decision` is neither APPROVED nor REJECTED")),
        };
        if !allowed && request.reason.trim().is_empty() {
            return Err(Status::invalid_argument("a rejection needs a `reason`"));
        }
        let approver = self.approver(&holder, id)?;
        let said_by = self.engine().without_secrets(&request.decided_by);
        let body = Json::object().with("approver", approver.as_str()).with("said_by", said_by);
        let (door, reason) = (self.clone(), request.reason);
        // It waits for the disk, so it does not belong on a thread that answers others.
        let decided = tokio::task::spawn_blocking(move || {
            door.engine().decide_as(&approver, id, allowed, &reason, &body)
        });
        let response = match decided
            .await
            .map_err(|ended| Status::internal(format!("the decision ended early: {ended}")))?
        {
            Ok(_) => DecideResponse { success: true, error_message: String::new() },
            Err(ApprovalRefusal::NotRecorded(problem)) => return Err(unavailable(problem)),
            Err(refusal @ (ApprovalRefusal::OwnRequest(_) | ApprovalRefusal::NotNamed(_))) => {
                return Err(Status::permission_denied(refusal.to_string()));
            }
            Err(refusal) => DecideResponse { success: false, error_message: refusal.to_string() },
        };
        Ok(Response::new(response))
    }

    type WatchApprovalsStream = Replies<ApprovalEvent>;

    async fn watch_approvals(
        &self,
        request: Request<WatchApprovalsRequest>,
    ) -> Result<Response<Replies<ApprovalEvent>>, Status> {
        let holder = self.holder(request.metadata())?;
        let slot = match &holder {
            Holder::Agent(agent) => self.slot("approvals", &agent.principal),
            Holder::Approver(name) => self.slot("approvals", &format!("approver:{name}")),
        }?;
        let mut notices = self.engine().notices();
        let (sender, receiver) = mpsc::channel(UNSENT);
        let door = self.clone();
        tokio::spawn(async move {
            let _slot = slot;
            loop {
                let notice = tokio::select! {
                    notice = notices.recv() => notice,
                    () = door.inner.stop.cancelled() => return,
                    () = sender.closed() => return,
                };
                let asked = match notice {
                    Ok(Notice::Asked(id)) => door.asked(&holder, id),
                    // The receiver lagged: send every pending approval again.
                    Err(RecvError::Lagged(_)) => door.waiting(&holder),
                    Err(RecvError::Closed) => return,
                    Ok(_) => continue,
                };
                if let Holder::Agent(agent) = &holder
                    && !door.is_still_held(agent)
                {
                    let _ = sender.send(Err(void_token())).await;
                    return;
                }
                for approval in asked.unwrap_or_default() {
                    if sender.send(Ok(event(approval))).await.is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Response::new(replies(receiver)))
    }
}

fn event(approval: PendingApproval) -> ApprovalEvent {
    ApprovalEvent {
        request_id: approval.request_id,
        agent_id: approval.agent_id,
        action: approval.action,
        condition_triggered: approval.condition_triggered,
        submitted_at: approval.submitted_at,
        timeout_secs: approval.timeout_secs,
    }
}

impl AssemblyDoor {
    /// Lists pending approvals that the caller may see: agents see those of their team.
    fn waiting(&self, holder: &Holder) -> Result<Vec<PendingApproval>, Status> {
        let now = self.engine().now();
        let listed = self.engine().look_at_approvals(|approvals, registry| {
            let shown =
                |approval: &&ApprovalInfo| approval.is_waiting(now) && may_see(registry, holder, approval);
            approvals.filter(shown).take(MAX_LISTED).map(|approval| pending(registry, approval)).collect()
        });
        listed.map_err(unavailable)
    }

    /// Returns a new approval if it is pending and visible to the caller.
    fn asked(&self, holder: &Holder, id: ApprovalId) -> Result<Vec<PendingApproval>, Status> {
        let now = self.engine().now();
        let asked = self.engine().approval(id).map_err(unavailable)?;
        let Some(asked) = asked.filter(|asked| asked.is_waiting(now)) else { return Ok(Vec::new()) };
        let shown = self.engine().look_up(|registry| {
            may_see(registry, holder, &asked).then(|| pending(registry, &asked)).into_iter().collect()
        });
        shown.map_err(unavailable)
    }

    /// Authorizes an approver: a person, or, if the settings allow it, an unrelated agent of the same team.
    fn approver(&self, holder: &Holder, id: ApprovalId) -> Result<String, Status> {
        let agent = match holder {
            Holder::Approver(name) => return Ok(format!("approver:{name}")),
            Holder::Agent(agent) => agent,
        };
        if !self.settings().agents_approve {
            return Err(Status::permission_denied(
                "agents do not decide here: use an approver's token, or `proctor approve`",
            ));
        }
        let asked = self.engine().approval(id).map_err(unavailable)?;
        let Some(asked) = asked else { return Ok(agent.principal.clone()) };
        let allowed = self
            .engine()
            .look_up(|registry| {
                is_of_team(registry, &asked.principal, agent)
                    && !are_related(registry, agent, &asked.principal)
                    && registry.stop(&agent.principal).is_none()
            })
            .map_err(unavailable)?;
        if !allowed {
            return Err(Status::permission_denied(
                "whoever asked cannot decide, nor can its parents, its children, other teams or suspended agents",
            ));
        }
        Ok(agent.principal.clone())
    }
}

fn team_of(registry: &Registry, principal: &str) -> Option<String> {
    registry.get(principal).map(|agent| agent.team.clone())
}

fn may_see(registry: &Registry, holder: &Holder, approval: &ApprovalInfo) -> bool {
    match holder {
        Holder::Approver(_) => true,
        Holder::Agent(agent) => {
            *agent.principal == *approval.principal || is_of_team(registry, &approval.principal, agent)
        }
    }
}

/// Reports whether a principal is in the agent's team; false for an agent without a team.
pub(super) fn is_of_team(registry: &Registry, principal: &str, agent: &AgentInfo) -> bool {
    let same = |other: &AgentInfo| other.team == agent.team && other.org == agent.org;
    !agent.team.is_empty() && registry.get(principal).is_some_and(same)
}

/// Reports whether two agents have a common root.
fn are_related(registry: &Registry, agent: &AgentInfo, other: &str) -> bool {
    let root = |principal: &str| registry.lineage(principal).last().map(|root| root.principal.clone());
    root(&agent.principal) == root(other)
}

fn pending(registry: &Registry, approval: &ApprovalInfo) -> PendingApproval {
    let seconds = |micros: i64| u64::try_from(micros.div_euclid(1_000_000)).unwrap_or(0);
    let wait = approval.expires.micros_since(approval.asked_at);
    PendingApproval {
        request_id: approval.id.to_string(),
        agent_id: approval.agent.clone(),
        action: if approval.name.is_empty() { approval.tool.clone() } else { approval.name.clone() },
        condition_triggered: approval.rule.clone(),
        submitted_at: seconds(approval.asked_at.micros()),
        timeout_secs: wait.div_ceil(1_000_000),
        team_id: team_of(registry, &approval.principal).unwrap_or_default(),
        routing_status: String::new(),
    }
}
