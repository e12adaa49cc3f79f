//! The decision. A pure function of policy, input and the answers about the past: the live gate, tests, explanations and
//! re-derivation all come here.

mod anomalies;
mod approval;
mod claims;
mod limits;
pub(crate) use anomalies::strength as response_strength;
pub(crate) use limits::{Payer, window_start};
mod changes;
mod requested;
mod sections;
mod stops;

use proctor_core::action::ActionKind;
use proctor_core::decision::{Decision, Effect};
use proctor_core::record::Amount;
use rust_decimal::Decimal;

use crate::budgets::{self, Crossing};
use crate::condition::{Activation, Truth};
use crate::document::{CredentialAction, Document, Position, Rule};
use crate::input::Input;
use crate::policy::{Policy, applies, strictest_credential_action};
use crate::question::AnswerSource;
use crate::scan::FindingKind;

/// Opinion of one rule, section or module about an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opinion {
    /// Allow, deny, ask or defer.
    pub effect: Effect,
    /// The rule that says it.
    pub rule: String,
    /// Reason.
    pub reason: String,
    /// The source it stands in.
    pub file: String,
    /// Position in it; line 0 for the section as a whole.
    pub at: Position,
    /// Expiry of an ask, in microseconds.
    pub expires_micros: Option<u64>,
    /// Permitted approvers of an ask.
    pub approvers: Vec<String>,
    /// Retry delay of a defer.
    pub retry_after_ms: Option<u64>,
}

/// A decision and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// The decision.
    pub decision: Decision,
    /// Amounts to record: reservations of actions that are let through, and the counts that anomalies are detected by.
    pub amounts: Vec<Amount>,
    /// Alarms to raise, by code.
    pub alarms: Vec<&'static str>,
    /// Opinions of all rules, sections and modules, in the order of evaluation.
    pub opinions: Vec<Opinion>,
    /// The agent has to be suspended: the cause (`budget`, `anomaly`) and the reason.
    pub suspend: Option<(&'static str, String)>,
    /// Budgets of which this action takes a share that people want to hear about; only for actions that are let through.
    pub crossings: Vec<Crossing>,
}

/// Default timeout of an approval: 300 seconds.
pub(crate) const APPROVAL_SECONDS: u32 = 300;

/// The rule that an alarm about an anomaly belongs to; none for other alarms.
///
/// ```
/// use proctor_policy::evaluate::anomaly_rule;
/// assert_eq!(anomaly_rule("loop"), Some("anomaly.loops"));
/// assert_eq!(anomaly_rule("malformed"), None);
/// ```
pub fn anomaly_rule(alarm: &str) -> Option<&'static str> {
    anomalies::rule_of(alarm)
}

/// Decides. There is no error: what cannot be decided is denied.
///
/// What callers only claim permits nothing and takes away no denial: with claims, the action is judged with and without
/// them, and the stricter decision counts.
pub fn evaluate(policy: &Policy, input: &Input, answers: &dyn AnswerSource) -> Evaluation {
    let claimed = evaluate_once(policy, input, answers);
    if claimed.decision.effect == Effect::Deny || !claims::has_claims(input, answers) {
        return claimed;
    }
    let bare = evaluate_once(policy, &claims::without(input), &claims::WithoutClaims(answers));
    claims::stricter(claimed, bare)
}

fn evaluate_once(policy: &Policy, input: &Input, answers: &dyn AnswerSource) -> Evaluation {
    let documents: Vec<&Document> =
        policy.documents().iter().filter(|document| applies(&document.scope, input)).collect();
    if documents.is_empty() {
        let reason = if policy.documents().is_empty() {
            "no policy is in force"
        } else {
            "no policy document speaks about this caller"
        };
        return denied(policy, "no-policy", reason);
    }
    let mut gathered = Gathered::default();
    let status = stops::judge(&documents, input, answers, &mut gathered);
    for document in &documents {
        sections::judge(document, input, answers, &mut gathered);
    }
    judge_rules(policy, input, answers, &mut gathered);
    judge_modules(policy, input, answers, &mut gathered);
    changes::judge_findings(&documents, input, &mut gathered);
    // What an agent tries while it is stopped says nothing about what it does.
    let is_stopped = status.as_ref().is_some_and(|status| status.stop.is_some());
    let watched =
        if is_stopped { Vec::new() } else { anomalies::judge(&documents, input, answers, &mut gathered) };
    let mut rate = None;
    // Limits only matter for what would otherwise run or be asked about; not asking them keeps the read-set small.
    if !gathered.denies() {
        let above = status.as_ref().map_or(&[][..], |status| &status.above);
        rate = limits::judge(policy, &documents, above, input, answers, &mut gathered);
    }
    let taints = std::mem::take(&mut gathered.taints);
    let mut evaluation = conclude(policy, &documents, input, answers, gathered);
    stops::observe(&mut evaluation.decision, &documents, input, status.as_deref());
    // What is only observed runs and costs, so this comes last.
    if evaluation.decision.effect.lets_through() {
        evaluation.decision.taints = taints;
        evaluation.decision.taints.sort();
        evaluation.decision.taints.dedup();
        evaluation.amounts = reserve(input, rate);
        evaluation.amounts.extend(least(&documents, input));
        evaluation.crossings = budgets::crossings(policy, input, answers, &evaluation.amounts);
        evaluation.suspend = None;
    } else if evaluation.decision.effect == Effect::Ask {
        evaluation.amounts = asked(input);
        evaluation.amounts.extend(rate_amount(rate));
    }
    evaluation.amounts.extend(watched);
    evaluation
}

fn denied(policy: &Policy, rule: &str, reason: &str) -> Evaluation {
    Evaluation {
        decision: Decision::deny(rule, reason, policy.digest()),
        amounts: Vec::new(),
        alarms: Vec::new(),
        opinions: Vec::new(),
        suspend: None,
        crossings: Vec::new(),
    }
}

/// Opinions and side effects collected so far.
#[derive(Default)]
struct Gathered<'a> {
    opinions: Vec<Opinion>,
    /// `redact` and `modify` rules that matched, in document order.
    changing_rules: Vec<&'a Rule>,
    taints: Vec<String>,
    /// The scanner's findings change the answer to redact.
    redact_findings: bool,
    alarms: Vec<&'static str>,
    suspend: Option<(&'static str, String)>,
}

impl Gathered<'_> {
    fn push(
        &mut self,
        effect: Effect,
        rule: impl Into<String>,
        reason: impl Into<String>,
        document: &Document,
        at: Position,
    ) {
        self.opinions.push(Opinion {
            effect,
            rule: rule.into(),
            reason: reason.into(),
            file: document.file.clone(),
            at,
            expires_micros: document.approval_timeout_secs.map(|seconds| u64::from(seconds) * 1_000_000),
            approvers: document.escalation_role.clone().into_iter().collect(),
            retry_after_ms: None,
        });
    }

    fn denies(&self) -> bool {
        self.opinions.iter().any(|opinion| opinion.effect == Effect::Deny)
    }

    /// The first opinion of that effect.
    fn first(&self, effect: Effect) -> Option<&Opinion> {
        self.opinions.iter().find(|opinion| opinion.effect == effect)
    }
}

fn judge_rules<'a>(
    policy: &'a Policy,
    input: &Input,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'a>,
) {
    let activation = Activation::new(input, answers);
    for compiled in policy.candidate_rules(input) {
        let Some(document) = policy.documents().get(compiled.document) else { continue };
        if !applies(&document.scope, input) {
            continue;
        }
        let rule = &compiled.rule;
        let truth =
            compiled.condition.as_ref().map_or(Truth::True, |condition| condition.evaluate(&activation));
        match truth {
            Truth::False | Truth::Missing => {}
            Truth::Error(problem) => {
                let reason = format!("condition of rule `{}` failed: {problem}", rule.id);
                gathered.push(Effect::Deny, rule.id.as_str(), reason, document, rule.at);
            }
            Truth::True => apply_rule(rule, document, gathered),
        }
    }
}

fn apply_rule<'a>(rule: &'a Rule, document: &Document, gathered: &mut Gathered<'a>) {
    gathered.taints.extend(rule.taints.iter().cloned());
    if matches!(rule.then, Effect::Redact | Effect::Modify) {
        gathered.changing_rules.push(rule);
        return;
    }
    let reason = if rule.reason.is_empty() { format!("rule `{}`", rule.id) } else { rule.reason.clone() };
    gathered.push(rule.then, rule.id.as_str(), reason, document, rule.at);
    if let Some(opinion) = gathered.opinions.last_mut() {
        opinion.expires_micros = rule.expires_micros.or(opinion.expires_micros);
        if !rule.approvers.is_empty() {
            opinion.approvers.clone_from(&rule.approvers);
        }
        opinion.retry_after_ms = rule.retry_after_ms;
    }
}

fn judge_modules(policy: &Policy, input: &Input, answers: &dyn AnswerSource, gathered: &mut Gathered<'_>) {
    for module in policy.modules() {
        let Some(document) = policy.documents().get(module.document) else { continue };
        if !applies(&document.scope, input) {
            continue;
        }
        for opinion in module.engine.evaluate(input, answers) {
            let reason =
                if opinion.reason.is_empty() { format!("rule `{}`", opinion.rule) } else { opinion.reason };
            gathered.push(opinion.effect, opinion.rule, reason, document, Position::default());
        }
    }
}

fn conclude(
    policy: &Policy,
    documents: &[&Document],
    input: &Input,
    answers: &dyn AnswerSource,
    mut gathered: Gathered<'_>,
) -> Evaluation {
    let default = default_effect(documents);
    let mut decision = Decision::deny("default", "nothing in the policy allows this action", policy.digest());
    if let Some(opinion) = gathered.first(Effect::Deny) {
        settle(&mut decision, opinion);
    } else if let Some(opinion) = gathered.first(Effect::Ask) {
        settle(&mut decision, opinion);
    } else if let Some(opinion) = gathered.first(Effect::Defer) {
        settle(&mut decision, opinion);
    } else if let Some(opinion) = gathered.first(Effect::Allow) {
        settle(&mut decision, opinion);
    } else {
        decision.effect = default;
        if default == Effect::Allow {
            "nothing in the policy restricts this action".clone_into(&mut decision.reason);
        } else if default == Effect::Ask {
            "nothing in the policy mentions this action: a person decides".clone_into(&mut decision.reason);
        }
    }
    // Last of the opinions, because it must not turn the default's deny into a question.
    if matches!(decision.effect, Effect::Allow | Effect::Ask)
        && let Some(required) = requested::opinion(input)
    {
        if decision.effect == Effect::Allow {
            settle(&mut decision, &required);
        }
        gathered.opinions.push(required);
    }
    if decision.effect == Effect::Ask {
        let asks = gathered.opinions.iter().filter(|opinion| opinion.effect == Effect::Ask);
        let shortest = asks.clone().filter_map(|ask| ask.expires_micros).min();
        match common_approvers(asks) {
            Some(approvers) => {
                decision.approvers = approvers;
                let wait = shortest.unwrap_or_else(|| approval_micros(documents));
                approval::settle(&mut decision, input, answers, wait);
            }
            None => {
                let reason = "several rules ask, and nobody may approve for all of them";
                decision = Decision::deny(&decision.rule, reason, policy.digest());
            }
        }
    }
    if decision.effect == Effect::Allow {
        changes::apply(&mut decision, input, &gathered);
    }
    Evaluation {
        decision,
        amounts: Vec::new(),
        alarms: gathered.alarms,
        opinions: gathered.opinions,
        suspend: gathered.suspend,
        crossings: Vec::new(),
    }
}

fn settle(decision: &mut Decision, opinion: &Opinion) {
    decision.effect = opinion.effect;
    decision.rule.clone_from(&opinion.rule);
    decision.reason.clone_from(&opinion.reason);
    if opinion.effect == Effect::Defer {
        decision.retry_after_ms = Some(opinion.retry_after_ms.unwrap_or(30_000));
    }
}

/// Approvers that every ask names; empty: anybody. `None`: nobody can approve.
fn common_approvers<'a>(asks: impl Iterator<Item = &'a Opinion>) -> Option<Vec<String>> {
    let mut common: Option<Vec<String>> = None;
    for ask in asks.filter(|ask| !ask.approvers.is_empty()) {
        common = Some(match common {
            None => ask.approvers.clone(),
            Some(common) => common.into_iter().filter(|name| ask.approvers.contains(name)).collect(),
        });
    }
    match common {
        Some(common) if common.is_empty() => None,
        common => Some(common.unwrap_or_default()),
    }
}

/// The strictest default of the documents that have `default` or `rules`; allow if none has.
fn default_effect(documents: &[&Document]) -> Effect {
    let mut strictest = Effect::Allow;
    for document in documents {
        let own = match (&document.default, &document.rules) {
            (Some(default), _) => default.value,
            (None, Some(_)) => Effect::Deny,
            (None, None) => continue,
        };
        strictest = match (strictest, own) {
            (Effect::Deny, _) | (_, Effect::Deny) => Effect::Deny,
            (Effect::Ask, _) | (_, Effect::Ask) => Effect::Ask,
            _ => Effect::Allow,
        };
    }
    strictest
}

/// The shortest approval time that a document names.
fn approval_micros(documents: &[&Document]) -> u64 {
    let seconds = documents
        .iter()
        .filter_map(|document| document.approval_timeout_secs)
        .min()
        .unwrap_or(APPROVAL_SECONDS);
    u64::from(seconds) * 1_000_000
}

/// Amounts that an action which is let through takes from its accounts.
fn reserve(input: &Input, rate: Option<u32>) -> Vec<Amount> {
    let amount = |unit: &str, value: Decimal| Amount { unit: unit.to_owned(), value, limit: None };
    let mut amounts = Vec::new();
    if input.facts.kind != ActionKind::ToolResult {
        amounts.push(amount("calls", Decimal::ONE));
    }
    if input.facts.tokens > 0 {
        amounts.push(amount("tokens", Decimal::from(input.facts.tokens)));
    }
    let cost = crate::prices::expected_cost(&input.facts);
    if !cost.is_zero() {
        amounts.push(amount("usd", cost));
    }
    amounts.extend(rate_amount(rate));
    amounts
}

/// Expected costs of an action that a person is asked about, which a grant is bound to. No account is charged with these units.
fn asked(input: &Input) -> Vec<Amount> {
    let estimate = approval::estimate(&input.facts);
    let units = [(ASKED_USD, estimate.usd), (ASKED_TOKENS, estimate.tokens)];
    let written = units.into_iter().filter(|(_, value)| !value.is_zero());
    written.map(|(unit, value)| Amount { unit: unit.to_owned(), value, limit: None }).collect()
}

/// Amounts below which a report of the actual cost gives nothing back; a unit without one gives back nothing. Reports count in full where every
/// budget trusts them; otherwise a call to a model may turn out to cost what the price table says.
fn least(documents: &[&Document], input: &Input) -> Vec<Amount> {
    let mut budgets = documents.iter().filter_map(|document| document.budget.as_ref()).peekable();
    let is_trusted = budgets.peek().is_some() && budgets.all(|budget| budget.trust_reports);
    let amount = |unit: &str, value: Decimal| Amount { unit: unit.to_owned(), value, limit: None };
    let expected = crate::prices::expected_cost(&input.facts);
    let mut least = Vec::new();
    if is_trusted && input.facts.tokens > 0 {
        least.push(amount(LEAST_TOKENS, Decimal::ZERO));
    }
    if is_trusted && !expected.is_zero() {
        least.push(amount(LEAST_USD, Decimal::ZERO));
    } else if let Some(listed) = crate::prices::listed_cost(&input.facts)
        && listed < expected
    {
        least.push(amount(LEAST_USD, listed));
    }
    least
}

/// Unit of the least cost in US dollars that a report of the actual cost can lower a reservation to.
pub const LEAST_USD: &str = "least_usd";
/// The same for tokens.
pub const LEAST_TOKENS: &str = "least_tokens";
/// Unit of the expected cost in US dollars of an action that a person is asked about.
pub(crate) const ASKED_USD: &str = "asked_usd";
/// The same for tokens.
pub(crate) const ASKED_TOKENS: &str = "asked_tokens";

/// Whether a unit is of those that only questions have.
fn is_of_asks(unit: &str) -> bool {
    [ASKED_USD, ASKED_TOKENS].contains(&unit)
}

/// The charge of a rate limit. An ask is charged too: asking again and again is what the limit is for, and the grant is free.
fn rate_amount(rate: Option<u32>) -> Option<Amount> {
    rate.map(|limit| Amount { unit: "rate".to_owned(), value: Decimal::ONE, limit: Some(limit) })
}

/// Whether findings of only these kinds leave the answer alone, because the documents do not say what to do about secrets.
fn is_soft_kind(kind: &str) -> bool {
    matches!(kind, "EmailAddress" | "GenericHighEntropy") || is_additional_kind(kind)
}

/// Whether a kind is no part of the published algorithm: under the released gateway's documents it changes no answer.
fn is_additional_kind(kind: &str) -> bool {
    FindingKind::from_name(kind).is_some_and(FindingKind::is_additional)
}

/// Strictest `credential_action` of the documents, and whether any document has one.
fn credential_action(documents: &[&Document]) -> (CredentialAction, bool) {
    let written = strictest_credential_action(documents.iter().copied());
    (written.unwrap_or_default(), written.is_some())
}
