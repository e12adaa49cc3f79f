//! The calls of a run, in order of arrival.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_core::decision::Effect;
use proctor_core::id::RecordId;
use proctor_core::json::Json;
use proctor_core::time::Timestamp;
use proctor_wire::atp::ErrorCode;
use proctor_wire::atp::tool::{Call, Outcome, Record, RecordFilter, Reply};

/// Memory of all inputs and outputs that are kept: as much as two dozen messages of the longest kind. What is over it is dropped from
/// the list, and stays on record.
const MAX_KEPT: usize = 256 * 1024 * 1024;

/// Memory of one JSON value besides its text.
const VALUE_SIZE: usize = 48;

/// A call of a tool, as the endpoint saw it.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// Time of arrival.
    pub received: Timestamp,
    /// Tool, input, task and shape as sent. Secrets are not cut.
    pub call: Call,
    /// Arguments that the tool was called with, where the policy changed them.
    pub changed_input: Option<Json>,
    /// The reply; none while the call is running.
    pub reply: Option<Reply>,
    /// How the call ended.
    pub status: CallStatus,
    /// Time from arrival to reply.
    pub duration: Duration,
    /// The decision, where the policy was asked.
    pub decision: Option<DecisionRecord>,
    /// Sequence of the outcome, or of the observation of a call that was refused before the policy was asked.
    pub outcome: Option<u64>,
    /// Whether input and output were dropped, because the run's calls take too much memory.
    pub is_shortened: bool,
}

/// The decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRecord {
    /// Identifier and sequence of the record; none for a deny that could not be recorded.
    pub record: Option<(RecordId, u64)>,
    /// Effect of the decision.
    pub effect: Effect,
    /// The rule that decided.
    pub rule: String,
    /// Reason of the decision.
    pub reason: String,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallStatus {
    /// The call is running, or was still running when the run ended.
    Unfinished,
    /// The tool succeeded.
    Success,
    /// The tool failed.
    Failed,
    /// The tool took longer than the time limit.
    TimedOut,
    /// The tool was stopped because the run ended.
    Stopped,
    /// The policy denied the call, or asked to repeat it later.
    Denied,
    /// The policy asked, and nobody approved.
    NotApproved,
    /// The run may not call this tool.
    NotAllowed,
    /// The backend has no such tool.
    UnknownTool,
    /// The call names the task of another run.
    ForeignTask,
    /// The run has made as many calls as it may.
    TooManyCalls,
    /// The body of the call could not be read.
    Malformed,
}

impl RecordedCall {
    /// The tool's result, if it succeeded.
    pub fn output(&self) -> Option<&Json> {
        match &self.reply.as_ref()?.outcome {
            Outcome::Success { output } => Some(output),
            Outcome::Error { .. } => None,
        }
    }

    /// Message and code of the failure, if it failed or was refused.
    pub fn error(&self) -> Option<(&str, Option<&ErrorCode>)> {
        match &self.reply.as_ref()?.outcome {
            Outcome::Success { .. } => None,
            Outcome::Error { error, code, .. } => Some((error, code.as_ref())),
        }
    }
}

/// The list of calls.
#[derive(Debug, Default)]
pub(crate) struct Calls(Mutex<List>);

#[derive(Debug, Default)]
struct List {
    calls: Vec<RecordedCall>,
    /// Memory of what is kept.
    kept: usize,
    /// Calls before this one are not listed any more: an agent can clear what it is shown, not what is kept of it.
    listed_from: usize,
    /// Calls that came after the last one that the run may make.
    over_limit: u64,
}

/// Place of a call in the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallIndex(usize);

impl Calls {
    /// Adds a call that begins; an error if the run has made as many calls as it may.
    pub(crate) fn begin(
        &self,
        received: Timestamp,
        call: Call,
        max_calls: usize,
    ) -> Result<CallIndex, OverLimit> {
        let mut list = self.lock();
        if list.calls.len() >= max_calls {
            list.over_limit = list.over_limit.saturating_add(1);
            return Err(OverLimit { is_first: list.over_limit == 1 });
        }
        let size = call.input.as_ref().map_or(0, memory);
        let mut call = RecordedCall {
            received,
            call,
            changed_input: None,
            reply: None,
            status: CallStatus::Unfinished,
            duration: Duration::ZERO,
            decision: None,
            outcome: None,
            is_shortened: false,
        };
        if !list.keep(size) {
            call.call.input = None;
            call.is_shortened = true;
        }
        list.calls.push(call);
        Ok(CallIndex(list.calls.len() - 1))
    }

    /// Ends a call. Returns it as it is kept.
    pub(crate) fn end(&self, index: CallIndex, ended: EndedCall) -> Option<RecordedCall> {
        let mut list = self.lock();
        let size = ended.changed_input.as_ref().map_or(0, memory) + reply_memory(&ended.reply);
        let is_kept = list.keep(size);
        let call = list.calls.get_mut(index.0)?;
        call.status = ended.status;
        call.duration = ended.duration;
        call.decision = ended.decision;
        call.outcome = ended.outcome;
        if is_kept {
            call.changed_input = ended.changed_input;
            call.reply = Some(ended.reply);
        } else {
            call.is_shortened = true;
            call.reply = Some(without_output(ended.reply));
        }
        Some(call.clone())
    }

    /// The ended calls that a filter selects, and that were not cleared.
    pub(crate) fn listed(&self, filter: &RecordFilter) -> Vec<Record> {
        let list = self.lock();
        let listed = list.calls.get(list.listed_from..).unwrap_or_default();
        let is_selected = |call: &&RecordedCall| {
            filter.tool.as_ref().is_none_or(|tool| *tool == call.call.tool)
                && filter.task_id.as_ref().is_none_or(|task| call.call.task_id.as_ref() == Some(task))
        };
        let record = |call: &RecordedCall| {
            Some(Record { timestamp: call.received, call: call.call.clone(), reply: call.reply.clone()? })
        };
        let limit = filter.limit.unwrap_or(usize::MAX);
        let mut records: Vec<Record> =
            listed.iter().rev().filter(is_selected).filter_map(record).take(limit).collect();
        records.reverse();
        records
    }

    /// Clears the listing. Returns the number of calls that were in it.
    pub(crate) fn clear(&self) -> usize {
        let mut list = self.lock();
        let listed = list.calls.get(list.listed_from..).unwrap_or_default();
        let cleared = listed.iter().filter(|call| call.reply.is_some()).count();
        list.listed_from = list.calls.len();
        cleared
    }

    /// Takes all calls, and the number of those that were over the limit.
    pub(crate) fn take(&self) -> (Vec<RecordedCall>, u64) {
        let mut list = self.lock();
        list.listed_from = 0;
        (std::mem::take(&mut list.calls), list.over_limit)
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    /// Counts memory, unless it would be too much.
    fn keep(&mut self, size: usize) -> bool {
        let fits = self.kept.saturating_add(size) <= MAX_KEPT;
        if fits {
            self.kept += size;
        }
        fits
    }
}

/// A call beyond the limit of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverLimit {
    /// Whether it is the first one: only that one is recorded, so that refused calls cannot fill the ledger.
    pub(crate) is_first: bool,
}

/// What the end of a call adds to it.
#[derive(Debug)]
pub(crate) struct EndedCall {
    pub(crate) reply: Reply,
    pub(crate) status: CallStatus,
    pub(crate) duration: Duration,
    pub(crate) decision: Option<DecisionRecord>,
    pub(crate) outcome: Option<u64>,
    pub(crate) changed_input: Option<Json>,
}

fn without_output(mut reply: Reply) -> Reply {
    match &mut reply.outcome {
        Outcome::Success { output } => *output = Json::Null,
        Outcome::Error { details, output, .. } => (*details, *output) = (None, None),
    }
    reply
}

fn reply_memory(reply: &Reply) -> usize {
    match &reply.outcome {
        Outcome::Success { output } => memory(output),
        Outcome::Error { error, details, output, .. } => {
            error.len() + details.as_ref().map_or(0, memory) + output.as_ref().map_or(0, memory)
        }
    }
}

/// Memory that a value takes, about.
fn memory(value: &Json) -> usize {
    let inner = match value {
        Json::Null | Json::Bool(_) => 0,
        Json::Number(text) => text.len(),
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(memory).sum(),
        Json::Object(members) => {
            members.iter().map(|(name, member)| VALUE_SIZE + name.len() + memory(member)).sum()
        }
    };
    VALUE_SIZE + inner
}

#[cfg(test)]
mod tests;
