//! `AuditService`: reports of agents. Every event is recorded in full, once per identifier.

use std::collections::VecDeque;

use proctor_clients::assembly::services::audit::audit_service_server::AuditService;
use proctor_policy::prices::actual_cost;
use proctor_policy::state::AgentInfo;
use proctor_wire::assembly::proto::audit::v1::audit_event::Detail;
use proctor_wire::assembly::proto::audit::v1::{
    AuditEvent, ReportEventsRequest, ReportEventsResponse, StreamEventsResponse,
};
use tonic::{Request, Response, Status, Streaming};

use super::check::Span;
use super::event_json::event_json;
use super::identity::{caller_of, is_claimed};
use super::{AssemblyDoor, DOOR, unavailable};
use proctor_engine::{Ending, Event, QueueReservation, QueuedRecords, Spent, Wait};

/// Events per report.
pub(crate) const MAX_EVENTS: usize = 10_000;

/// Uncommitted events per stream.
const IN_FLIGHT: usize = 256;

#[tonic::async_trait]
impl AuditService for AssemblyDoor {
    async fn report_events(
        &self,
        request: Request<ReportEventsRequest>,
    ) -> Result<Response<ReportEventsResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let agent = self.agent_holder(&metadata)?;
        self.record_heartbeat(&agent).await;
        if request.events.len() > MAX_EVENTS {
            let text = format!("{} events in a report, at most {MAX_EVENTS} allowed", request.events.len());
            return Err(Status::invalid_argument(text));
        }
        // All or nothing: a report that speaks for another is not taken in part.
        for event in &request.events {
            check_owner(&agent, event)?;
        }
        let mut event_ids = Vec::with_capacity(request.events.len());
        let mut waiting = VecDeque::new();
        for event in request.events {
            let (id, queued) = self.take_event(&agent, event).await?;
            event_ids.push(id);
            waiting.extend(queued);
            if waiting.len() >= IN_FLIGHT {
                self.wait_for(waiting.pop_front()).await?;
            }
        }
        for queued in waiting {
            self.wait_for(Some(queued)).await?;
        }
        Ok(Response::new(ReportEventsResponse { event_ids }))
    }

    async fn stream_events(
        &self,
        request: Request<Streaming<AuditEvent>>,
    ) -> Result<Response<StreamEventsResponse>, Status> {
        let (metadata, _, mut events) = request.into_parts();
        let agent = self.agent_holder(&metadata)?;
        self.record_heartbeat(&agent).await;
        let mut waiting = VecDeque::new();
        let mut events_received = 0;
        loop {
            let next = tokio::select! {
                next = events.message() => next?,
                () = self.inner.stop.cancelled() => return Err(Status::unavailable("the gateway stops")),
            };
            let Some(event) = next else { break };
            check_owner(&agent, &event)?;
            waiting.extend(self.take_event(&agent, event).await?.1);
            events_received += 1;
            if waiting.len() >= IN_FLIGHT {
                self.wait_for(waiting.pop_front()).await?;
            }
        }
        for queued in waiting {
            self.wait_for(Some(queued)).await?;
        }
        Ok(Response::new(StreamEventsResponse { events_received }))
    }
}

fn check_owner(agent: &AgentInfo, event: &AuditEvent) -> Result<(), Status> {
    match &event.agent_id {
        Some(id) if is_claimed(self.engine(), agent, id) => Ok(()),
        _ => Err(Status::permission_denied(
            "an event is about another agent than the one that the token was given to",
        )),
    }
}

impl AssemblyDoor {
    async fn take_event(
        &self,
        agent: &AgentInfo,
        event: AuditEvent,
    ) -> Result<(String, Option<QueuedRecords>), Status> {
        let reservation = self.reserve().await?;
        let home = format!("registration {}", agent.registered_seq);
        self.enqueue_event(reservation, &caller_of(agent), &agent.agent, &home, event)
    }

    /// Queues the record of an event. Returns its identifier.
    fn enqueue_event(
        &self,
        reservation: QueueReservation,
        caller: &proctor_core::session::Caller,
        agent: &str,
        home: &str,
        mut event: AuditEvent,
    ) -> Result<(String, Option<QueuedRecords>), Status> {
        if event.event_id.is_empty() {
            // An event without an identifier is a new one every time.
            event.event_id =
                proctor_core::id::RecordId::new(self.engine().now(), self.engine().randomness()).to_string();
        }
        let span = Span {
            principal: caller.principal.clone(),
            trace: event.trace_id.clone(),
            id: self.engine().identifier(&event.span_id),
        };
        let mut shown = event.clone();
        for id in [&mut shown.event_id, &mut shown.trace_id, &mut shown.span_id] {
            *id = self.engine().identifier(id);
        }
        let reported = Event {
            id: event.event_id.clone(),
            data: event_json(&shown),
            decision: is_outcome(&event).then(|| self.bound(caller, agent, &span)).flatten(),
            ending: ending(&event),
            spent: spent(&event),
        };
        let session = if event.trace_id.is_empty() { home } else { &event.trace_id };
        let queued = self
            .engine()
            .enqueue_event(reservation, caller, agent, session, DOOR, &reported)
            .map_err(unavailable)?;
        Ok((event.event_id, queued))
    }

    async fn wait_for(&self, queued: Option<QueuedRecords>) -> Result<(), Status> {
        let Some(queued) = queued else { return Ok(()) };
        match self.engine().all_recorded(queued, Wait::Task).await {
            // The same event twice at once: one of them is on record.
            Ok(_) | Err(proctor_ledger::NotRecorded::Once { .. }) => Ok(()),
            Err(problem) => Err(unavailable(problem)),
        }
    }
}

/// Reports whether an event is the outcome of an action, unlike violations and approvals.
fn is_outcome(event: &AuditEvent) -> bool {
    !matches!(event.detail, None | Some(Detail::Violation(_) | Detail::Approval(_)))
}

fn ending(event: &AuditEvent) -> Ending {
    let succeeded = match &event.detail {
        Some(Detail::ToolCall(call)) => call.succeeded,
        Some(Detail::Network(call)) => call.succeeded,
        Some(Detail::Process(process)) => process.succeeded,
        Some(Detail::LlmCall(_)) => true,
        _ => return Ending::Unknown,
    };
    if succeeded { Ending::Ok } else { Ending::Failed }
}

/// Usage of a model call.
fn spent(event: &AuditEvent) -> Spent {
    let Some(Detail::LlmCall(call)) = &event.detail else { return Spent::default() };
    let count = |tokens: i32| u64::try_from(tokens).unwrap_or(0);
    let (prompt, completion) = (count(call.prompt_tokens), count(call.completion_tokens));
    if prompt == 0 && completion == 0 {
        // It does not say: the estimate stands.
        return Spent::default();
    }
    Spent { tokens: Some(prompt + completion), cost_usd: Some(actual_cost(&call.model, prompt, completion)) }
}
