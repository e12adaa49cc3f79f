//! Bodies of decision and policy records, and re-derivation of decisions from them.

use std::sync::Arc;

use proctor_core::decision::{ApprovalRef, Change, Decision, Effect, Shadow};
use proctor_core::digest::Digest;
use proctor_core::json::{Json, JsonError};
use proctor_core::record::{Envelope, claimed};
use proctor_core::time::Timestamp;
use proctor_facts::SEMANTICS;

use crate::document::Problem;
use crate::evaluate::{Evaluation, evaluate};
use crate::policy::{Policy, Source, SourceRole};
use crate::question::{AnswerSource, Question};
use crate::readset::{ReadSet, ReplaySource};
use crate::state::State;

/// The body of a decision's record: the read-set, and the decision.
pub fn decision_body(read_set: &ReadSet, decision: &Decision) -> Vec<u8> {
    Json::object()
        .with("decision", decision_json(decision))
        .with("read_set", read_set.to_json())
        .to_string()
        .into_bytes()
}

/// The body of a policy's record: every source, whole.
pub fn policy_body(policy: &Policy) -> Vec<u8> {
    policy_json(policy).to_string().into_bytes()
}

/// The members that every policy's record has.
pub fn policy_json(policy: &Policy) -> Json {
    let weakenings = policy.weakenings().into_iter().map(Json::from).collect::<Vec<_>>();
    Json::object().with("sources", sources_json(policy.sources())).with("weakenings", weakenings)
}

/// The JSON form of sources.
pub fn sources_json(sources: &[Source]) -> Json {
    let sources = sources.iter().map(|source| {
        Json::object()
            .with("role", source.role.word())
            .with("name", source.name.as_str())
            .with("text", String::from_utf8_lossy(&source.bytes).into_owned())
    });
    Json::from(sources.collect::<Vec<_>>())
}

/// A body from which no policy can be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyBodyError {
    /// The body is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// No member `sources`.
    #[error("the record holds no sources")]
    NoSources,
    /// A source without role, name or text.
    #[error("a source is malformed")]
    Source,
    /// Sources that do not compile.
    #[error("{}", .0.first().map_or_else(String::new, ToString::to_string))]
    Policy(Vec<Problem>),
}

/// Compiles the policy that a policy record's body holds.
pub fn policy_from_body(body: &[u8]) -> Result<Policy, PolicyBodyError> {
    Policy::compile(sources_of(&Json::parse(body)?)?).map_err(PolicyBodyError::Policy)
}

/// The sources in the member `sources` of an object.
pub fn sources_of(object: &Json) -> Result<Vec<Source>, PolicyBodyError> {
    let sources = object.get("sources").and_then(Json::as_array).ok_or(PolicyBodyError::NoSources)?;
    let sources: Option<Vec<Source>> = sources
        .iter()
        .map(|source| {
            let text = |name: &str| source.get(name).and_then(Json::as_str);
            Some(Source::module(SourceRole::from_word(text("role")?)?, text("name")?, text("text")?))
        })
        .collect();
    sources.ok_or(PolicyBodyError::Source)
}

/// The JSON form of a decision.
pub fn decision_json(decision: &Decision) -> Json {
    let mut out = Json::object()
        .with("effect", decision.effect.word())
        .with("rule", decision.rule.as_str())
        .with("reason", decision.reason.as_str())
        .with("policy", decision.policy.to_string());
    if !decision.changes.is_empty() {
        let changes = decision.changes.iter().map(|change| {
            Json::object().with("path", change.path.as_str()).with("replacement", change.replacement.clone())
        });
        out.push("changes", changes.collect::<Vec<_>>());
    }
    if let Some(approval) = decision.approval {
        out.push("approval", approval.id.to_string());
        out.push("expires", approval.expires.micros());
    }
    let texts = |texts: &[String]| texts.iter().map(|text| Json::from(text.as_str())).collect::<Vec<_>>();
    if !decision.approvers.is_empty() {
        out.push("approvers", texts(&decision.approvers));
    }
    if let Some(retry) = decision.retry_after_ms {
        out.push("retry_after_ms", retry);
    }
    if !decision.taints.is_empty() {
        out.push("taints", texts(&decision.taints));
    }
    if let Some(shadow) = &decision.shadow {
        let shadow = Json::object()
            .with("effect", shadow.effect.word())
            .with("rule", shadow.rule.as_str())
            .with("reason", shadow.reason.as_str());
        out.push("shadow", shadow);
    }
    out
}

/// Reads the JSON form of a decision.
pub fn decision_from_json(value: &Json) -> Option<Decision> {
    let text = |name: &str| value.get(name).and_then(Json::as_str);
    let texts = |name: &str| -> Option<Vec<String>> {
        match value.get(name) {
            None => Some(Vec::new()),
            Some(list) => list.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        }
    };
    let changes = match value.get("changes") {
        None => Vec::new(),
        Some(list) => list
            .as_array()?
            .iter()
            .map(|change| {
                Some(Change {
                    path: change.get("path")?.as_str()?.to_owned(),
                    replacement: change.get("replacement")?.clone(),
                })
            })
            .collect::<Option<Vec<Change>>>()?,
    };
    let approval = match text("approval") {
        None => None,
        Some(id) => Some(ApprovalRef {
            id: id.parse().ok()?,
            expires: Timestamp::from_micros(value.get("expires")?.as_i64()?),
        }),
    };
    Some(Decision {
        effect: text("effect")?.parse().ok()?,
        rule: text("rule")?.to_owned(),
        reason: text("reason")?.to_owned(),
        policy: text("policy")?.parse().ok()?,
        changes,
        approval,
        approvers: texts("approvers")?,
        retry_after_ms: value.get("retry_after_ms").and_then(Json::as_u64),
        taints: texts("taints")?,
        shadow: match value.get("shadow") {
            None => None,
            Some(shadow) => Some(Box::new(Shadow {
                effect: shadow.get("effect")?.as_str()?.parse().ok()?,
                rule: shadow.get("rule")?.as_str()?.to_owned(),
                reason: shadow.get("reason")?.as_str()?.to_owned(),
            })),
        },
    })
}

/// Result of re-deriving a recorded decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Derivation {
    /// The derived decision is the same.
    Same,
    /// The derived decision differs, with the difference.
    Different(String),
    /// Missing input of the re-derivation.
    Undecidable(String),
}

/// Derives a recorded decision again, from its read-set and the policy that was in force, and compares. Where all records before
/// it are known, `past` is their fold: then what the decision was told of the past must follow from it.
pub fn rederive(
    envelope: &Envelope,
    body: Option<&[u8]>,
    policies: &mut dyn FnMut(Digest) -> Option<Arc<Policy>>,
    past: Option<&State>,
) -> Derivation {
    let Some(body) = body else { return Derivation::Undecidable("the body is erased".to_owned()) };
    let Some((recorded, read_set)) = read_body(body) else {
        return Derivation::Different("the body is not a decision's".to_owned());
    };
    if read_set.semantics != SEMANTICS {
        return Derivation::Undecidable(format!("evaluator version {} is not this one", read_set.semantics));
    }
    let Some(policy) = policies(recorded.policy) else {
        return Derivation::Undecidable(format!("the sources of policy {} are missing", recorded.policy));
    };
    if let Some(difference) = envelope_difference(envelope, &recorded, &read_set) {
        return Derivation::Different(difference);
    }
    if let Some(question) = past.and_then(|past| first_untrue_answer(past, &read_set)) {
        return Derivation::Different(format!(
            "what it was told does not follow from the records before it: {question:?}"
        ));
    }
    let evaluation = evaluate(&policy, &read_set.input, &ReplaySource::new(&read_set.asked));
    compare(&evaluation, &recorded, envelope)
}

fn read_body(body: &[u8]) -> Option<(Decision, ReadSet)> {
    let value = Json::parse(body).ok()?;
    Some((decision_from_json(value.get("decision")?)?, ReadSet::from_json(value.get("read_set")?).ok()?))
}

/// The first question whose recorded answer is not what the past answers.
fn first_untrue_answer<'a>(past: &State, read_set: &'a ReadSet) -> Option<&'a Question> {
    let input = &read_set.input;
    let view = past.view(&input.caller, input.session, input.digest, input.now);
    let untrue =
        read_set.asked.iter().find(|(question, answer)| view.answer(question).as_ref() != Some(answer));
    untrue.map(|(question, _)| question)
}

fn compare(evaluation: &Evaluation, recorded: &Decision, envelope: &Envelope) -> Derivation {
    if evaluation.decision != *recorded {
        let derived = &evaluation.decision;
        return Derivation::Different(format!(
            "recorded {} by `{}`, derived {} by `{}`",
            recorded.effect, recorded.rule, derived.effect, derived.rule
        ));
    }
    if evaluation.amounts != envelope.amounts {
        return Derivation::Different("amounts differ".to_owned());
    }
    Derivation::Same
}

/// Checks that envelope and body agree where they repeat each other.
fn envelope_difference(envelope: &Envelope, decision: &Decision, read_set: &ReadSet) -> Option<String> {
    let input = &read_set.input;
    let same = [
        ("decision", envelope.decision == Some(decision.effect)),
        ("rule", envelope.rule == claimed(&decision.rule)),
        ("policy", envelope.policy == Some(decision.policy)),
        ("taints", envelope.taints == cut_all(&decision.taints)),
        ("principal", envelope.principal == claimed(&input.caller.principal)),
        ("team", envelope.team == claimed(&input.caller.team)),
        ("org", envelope.org == claimed(&input.caller.org)),
        ("agent", envelope.agent == claimed(&input.agent)),
        ("session", envelope.session == Some(input.session)),
        ("tool", envelope.tool == claimed(&input.facts.tool)),
        ("action", envelope.action == Some(input.digest)),
        ("time", envelope.time == input.now),
        ("approval", envelope.approval == decision.approval.map(|approval| approval.id)),
        ("expires", envelope.expires == decision.approval.map(|approval| approval.expires)),
        ("reason", decision.effect != Effect::Deny || !decision.reason.is_empty()),
    ];
    same.iter().find(|(_, same)| !same).map(|(name, _)| format!("envelope and body disagree about `{name}`"))
}

/// Taints as an envelope holds them.
pub fn cut_all(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| claimed(text)).collect()
}
