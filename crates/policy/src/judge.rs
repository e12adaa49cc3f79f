//! A decision from beginning to end: prepare, evaluate, and make the record that will hold it.

use proctor_core::action::Action;
use proctor_core::decision::Decision;
use proctor_core::digest::Digest;
use proctor_core::id::{ApprovalId, RecordId, SessionId};
use proctor_core::json::Json;
use proctor_core::record::{Envelope, RecordKind, claimed};
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;
use proctor_facts::SEMANTICS;

use crate::body::{cut_all, decision_body};
use crate::budgets::Crossing;
use crate::evaluate::{Opinion, evaluate};
use crate::input::Input;
use crate::policy::Policy;
use crate::prepare::Prepared;
use crate::question::AnswerSource;
use crate::readset::{ReadSet, RecordingSource};

/// An action that waits for its decision, prepared.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The action as sent.
    pub action: &'a Action,
    /// The action without its secrets.
    pub prepared: Prepared,
    /// Caller.
    pub caller: &'a Caller,
    /// The agent, as claimed.
    pub agent: &'a str,
    /// The session.
    pub session: SessionId,
    /// The keyed digest of the action.
    pub digest: Digest,
    /// The moment.
    pub now: Timestamp,
    /// The identifier that the record will get.
    pub record: RecordId,
    /// The identifier that a new approval would get.
    pub fresh_approval: ApprovalId,
}

impl Request<'_> {
    /// What the decision is computed from, apart from the past.
    pub fn into_input(self) -> Input {
        Input {
            facts: self.prepared.facts,
            findings: self.prepared.findings,
            caller: self.caller.clone(),
            agent: self.agent.to_owned(),
            session: self.session,
            digest: self.digest,
            now: self.now,
            fresh_approval: self.fresh_approval,
        }
    }
}

/// A decision with its record, not written yet.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The decision.
    pub decision: Decision,
    /// The envelope of its record.
    pub envelope: Envelope,
    /// The body of its record.
    pub body: Vec<u8>,
    /// Alarms to raise, by code.
    pub alarms: Vec<&'static str>,
    /// Opinions of all rules, sections and modules.
    pub opinions: Vec<Opinion>,
    /// The agent has to be suspended: the cause and the reason.
    pub suspend: Option<(&'static str, String)>,
    /// Budgets of which the action takes a share that people want to hear about.
    pub crossings: Vec<Crossing>,
}

/// Judges an action.
pub fn judge(policy: &Policy, request: Request<'_>, answers: &dyn AnswerSource) -> Judgement {
    let name = request.prepared.facts.name.clone();
    let (record, now) = (request.record, request.now);
    let input = request.into_input();
    let recording = RecordingSource::new(answers);
    let evaluation = evaluate(policy, &input, &recording);
    let decision = evaluation.decision;
    let mut envelope = Envelope::new(record, now, RecordKind::Decision);
    envelope.session = Some(input.session);
    envelope.principal = claimed(&input.caller.principal);
    envelope.team = claimed(&input.caller.team);
    envelope.org = claimed(&input.caller.org);
    envelope.agent = claimed(&input.agent);
    envelope.door = claimed(&input.facts.door);
    envelope.tool = claimed(&input.facts.tool);
    if name != input.facts.tool {
        envelope.name = claimed(&name);
    }
    envelope.decision = Some(decision.effect);
    envelope.rule = claimed(&decision.rule);
    envelope.taints = cut_all(&decision.taints);
    envelope.amounts = evaluation.amounts;
    envelope.action = Some(input.digest);
    envelope.policy = Some(decision.policy);
    if let Some(approval) = decision.approval {
        envelope.approval = Some(approval.id);
        envelope.expires = Some(approval.expires);
    }
    let read_set = ReadSet {
        input,
        asked: recording.into_asked(),
        semantics: SEMANTICS.to_owned(),
        sources: policy.source_digests().to_vec(),
    };
    let body = decision_body(&read_set, &decision);
    Judgement {
        decision,
        envelope,
        body,
        alarms: evaluation.alarms,
        opinions: evaluation.opinions,
        suspend: evaluation.suspend,
        crossings: evaluation.crossings,
    }
}

/// The arguments with a decision's changes applied; `None` if it changes none of them.
pub fn changed_args(action: &Action, decision: &Decision) -> Option<Json> {
    let mut holder = Json::object().with("args", action.args.clone());
    let mut changed = false;
    for change in decision.changes.iter().filter(|change| change.path.starts_with("$.args")) {
        changed |= crate::json_path::put(&change.path, &mut holder, change.replacement.clone());
    }
    if changed { holder.get("args").cloned() } else { None }
}
