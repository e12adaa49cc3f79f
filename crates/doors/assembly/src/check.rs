//! `PolicyService`: checks, one by one and in batches, and the stream of operation control.

use std::time::Instant;

use proctor_clients::assembly::services::policy::policy_service_server::PolicyService;
use proctor_core::hex;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_policy::state::AgentInfo;
use proctor_wire::assembly::proto::common::v1::{ActionType, AgentIdentityAssurance, Decision};
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, BatchCheckResponse, CheckActionRequest, CheckActionResponse, OpControlMessage,
    OpControlSubscribeRequest,
};
use tonic::{Request, Response, Status};

use super::action::{NoAction, action};
use super::answer::response;
use super::identity::{IDENTITY_RULE, half, shown_token};
use super::{AssemblyDoor, DOOR, Replies, anonymous, lock};
use proctor_engine::{Answer, Proposal, QueueReservation, QueuedRecords, Undelivered, Wait, to_its_end};

/// Checks per batch.
pub(crate) const MAX_BATCH: usize = 1000;

#[tonic::async_trait]
impl PolicyService for AssemblyDoor {
    async fn check_action(
        &self,
        request: Request<CheckActionRequest>,
    ) -> Result<Response<CheckActionResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let begun = Instant::now();
        let pending = self.begin_with_capacity(&request, shown_token(&metadata).unwrap_or_default()).await;
        let door = self.clone();
        to_its_end(async move { door.end(pending, &request, begun).await }).await.map(Response::new)
    }

    async fn batch_check(
        &self,
        request: Request<BatchCheckRequest>,
    ) -> Result<Response<BatchCheckResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        if request.requests.len() > MAX_BATCH {
            return Err(Status::invalid_argument(format!(
                "{} checks in a batch, at most {MAX_BATCH} allowed",
                request.requests.len()
            )));
        }
        let begun = Instant::now();
        let token = shown_token(&metadata).unwrap_or_default();
        // A batch with a malformed request is refused before any of it is decided.
        for (place, request) in request.requests.iter().enumerate() {
            if let Err(NoAction::Invalid(problem)) = action(request, 0, &str::to_owned) {
                return Err(Status::invalid_argument(format!("requests[{place}]: {problem}")));
            }
        }
        // All are decided in order of the batch; then all commits are awaited.
        let mut pending = Vec::with_capacity(request.requests.len());
        for request in &request.requests {
            pending.push(self.begin_with_capacity(request, token).await);
        }
        let door = self.clone();
        let ended = to_its_end(async move {
            let mut responses = Vec::with_capacity(pending.len());
            for (pending, request) in pending.into_iter().zip(&request.requests) {
                responses.push(door.end(pending, request, begun).await?);
            }
            Ok::<_, Status>(responses)
        });
        Ok(Response::new(BatchCheckResponse { responses: ended.await? }))
    }

    type OpControlStreamStream = Replies<OpControlMessage>;

    async fn op_control_stream(
        &self,
        request: Request<OpControlSubscribeRequest>,
    ) -> Result<Response<Replies<OpControlMessage>>, Status> {
        let (metadata, _, request) = request.into_parts();
        let agent = self.agent_holder(&metadata)?;
        if request.agent_id.as_ref().is_some_and(|id| !super::identity::is_claimed(self.engine(), &agent, id))
        {
            return Err(Status::permission_denied(
                "this stream is for the agent that the token was given to",
            ));
        }
        Ok(Response::new(self.operations(&agent)))
    }
}

/// Check whose record is queued.
pub(super) struct PendingCheck {
    state: State,
    assurance: AgentIdentityAssurance,
    returned: Option<Box<AgentInfo>>,
}

impl PendingCheck {
    fn unanswered(answer: Answer) -> PendingCheck {
        let assurance = AgentIdentityAssurance::Unspecified;
        PendingCheck { state: State::Unanswered(answer), assurance, returned: None }
    }
}

enum State {
    /// Decided by the policy.
    Decided(Box<Undelivered>, Box<Caller>, Span),
    /// Refused before policy evaluation.
    Refused(QueuedRecords, &'static str, String),
    /// Malformed request.
    Invalid(Status),
    /// An answer without evaluation: the queue was full, or the state unavailable.
    Unanswered(Answer),
}

/// Key under which reports are bound to decisions.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub principal: String,
    pub trace: String,
    pub id: String,
}

impl AssemblyDoor {
    /// Decides a check as soon as the ledger's queue has capacity.
    async fn begin_with_capacity(&self, request: &CheckActionRequest, shown: &str) -> PendingCheck {
        match self.engine().reserve(self.engine().due()).await {
            Some(reservation) => self.begin(reservation, request, shown),
            None => PendingCheck::unanswered(self.engine().overloaded()),
        }
    }

    /// Decides or refuses a check, and queues its record.
    fn begin(
        &self,
        reservation: QueueReservation,
        request: &CheckActionRequest,
        shown: &str,
    ) -> PendingCheck {
        let token = if request.credential_token.is_empty() { shown } else { &request.credential_token };
        let asker = match self.asker(request.agent_id.as_ref(), token) {
            Ok(Ok(asker)) => asker,
            Ok(Err(failure)) => {
                let about = about(request);
                let queued = self.engine().enqueue_refusal(
                    reservation,
                    &anonymous(),
                    DOOR,
                    "identity",
                    failure.reason,
                    &about,
                );
                let state = State::Refused(queued, IDENTITY_RULE, failure.reason.to_owned());
                return PendingCheck { state, assurance: failure.assurance, returned: None };
            }
            Err(problem) => return PendingCheck::unanswered(self.engine().unanswered(&problem)),
        };
        let (assurance, returned) = (asker.assurance, asker.returned);
        let mut action = match action(request, asker.depth, &|text| self.engine().identifier(text)) {
            Ok(action) => action,
            Err(NoAction::Invalid(problem)) => {
                return PendingCheck {
                    state: State::Invalid(Status::invalid_argument(problem)),
                    assurance,
                    returned,
                };
            }
            Err(NoAction::Denied(problem)) => {
                let queued = self.engine().enqueue_refusal(
                    reservation,
                    &asker.caller,
                    DOOR,
                    "malformed",
                    &problem,
                    &about(request),
                );
                return PendingCheck {
                    state: State::Refused(queued, "malformed", problem),
                    assurance,
                    returned,
                };
            }
        };
        action.metadata.push("assurance", assurance_word(assurance));
        if let Some(caller) = request
            .caller_agent_id
            .as_ref()
            .filter(|id| !id.agent_id.is_empty() && id.agent_id != asker.agent)
        {
            // A public key would look like a secret, so it is its digest that is kept.
            action.metadata.push("caller_agent_id", hex::encode(half(caller.agent_id.as_bytes())));
        }
        let span = Span {
            principal: asker.caller.principal.clone(),
            trace: request.trace_id.clone(),
            id: self.engine().identifier(&request.span_id),
        };
        let session =
            if request.trace_id.is_empty() { asker.default_session } else { request.trace_id.clone() };
        let caller = Box::new(asker.caller.clone());
        let proposal = Proposal { action, caller: asker.caller, agent: asker.agent, session };
        let undelivered = Box::new(self.engine().submit_until(reservation, proposal, self.engine().due()));
        PendingCheck { state: State::Decided(undelivered, caller, span), assurance, returned }
    }

    /// Waits for the commit of a check's record, and builds the response.
    async fn end(
        &self,
        pending: PendingCheck,
        request: &CheckActionRequest,
        begun: Instant,
    ) -> Result<CheckActionResponse, Status> {
        if let Some(agent) = &pending.returned {
            self.record_online(agent).await;
        }
        let answer = match pending.state {
            State::Invalid(status) => return Err(status),
            State::Unanswered(answer) => answer,
            State::Refused(queued, rule, reason) => {
                self.engine().refused(queued, rule, &reason, Wait::Task).await
            }
            State::Decided(undelivered, caller, span) => {
                let answer = self.engine().deliver_waiting(*undelivered, Wait::Task).await;
                let mut said = response(&answer, pending.assurance, begun.elapsed().as_micros());
                self.address_redactions(&caller, request, &mut said).await;
                if let Some(record) = answer.record() {
                    let let_through = matches!(said.decision(), Decision::Allow | Decision::Redact);
                    lock(&self.inner.bindings).open(&span, record, let_through);
                }
                return Ok(said);
            }
        };
        Ok(response(&answer, pending.assurance, begun.elapsed().as_micros()))
    }
}

/// Description of a refused check, without its arguments.
fn about(request: &CheckActionRequest) -> Json {
    let id = request.agent_id.clone().unwrap_or_default();
    let kind = ActionType::try_from(request.action_type).unwrap_or(ActionType::ActionUnspecified);
    Json::object()
        .with("agent", hex::encode(half(id.agent_id.as_bytes())))
        .with("team_id", id.team_id)
        .with("org_id", id.org_id)
        .with("trace_id", request.trace_id.as_str())
        .with("span_id", request.span_id.as_str())
        .with("action_type", kind.as_str_name())
}

fn assurance_word(assurance: AgentIdentityAssurance) -> &'static str {
    match assurance {
        AgentIdentityAssurance::Bound => "bound",
        AgentIdentityAssurance::Asserted => "asserted",
        AgentIdentityAssurance::Unattributed | AgentIdentityAssurance::Unspecified => "unattributed",
    }
}
