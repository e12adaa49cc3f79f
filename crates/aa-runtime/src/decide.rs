//! Decision of a query: stopped operations first, then the gateway, or the local rules.

use std::sync::Arc;
use std::time::Duration;

use proctor_clients::assembly::client::{Client, ClientError, Token};
use proctor_clients::assembly::runtime::{Push, RuntimeHandler, deny};
use proctor_wire::assembly::proto::audit::v1::AuditEvent;
use proctor_wire::assembly::proto::common::v1::{AgentId, Decision};
use proctor_wire::assembly::proto::policy::v1::{CheckActionRequest, CheckActionResponse};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::approvals::Approvals;
use super::metrics::{EventCount, Metrics};
use super::operations::{Operation, Operations};
use super::outage_log::OutageLog;
use super::reports::Reports;
use super::rules::{RuleDecision, Rules, Types};
use super::settings::Settings;
use super::token_owner::TokenOwner;

/// `policy_rule` of local answers that no rule of the file gave.
const LOCAL: &str = "runtime.local_rules";

/// Two clients of the gateway, for queries and for reports: their tokens may differ, and many reports must not delay a query.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    /// Client for queries.
    pub checks: Client,
    /// Client for reports and for the gateway's streams.
    pub reports: Client,
}

/// Handler of the socket: answers queries and queues reports of one agent.
pub(crate) struct Decider {
    settings: Settings,
    gateway: Option<Gateway>,
    parts: Parts,
    gateway_outage: OutageLog,
    reports_unused: OutageLog,
}

/// Parts that a [`Decider`] shares with background tasks, and its rules.
pub(crate) struct Parts {
    /// Rules without a gateway.
    pub rules: Rules,
    /// Operations that were stopped.
    pub operations: Arc<Operations>,
    /// Approvals that are waited for.
    pub approvals: Arc<Approvals>,
    /// Queue of events.
    pub reports: Arc<Reports>,
    /// Owner of the token.
    pub owner: Arc<TokenOwner>,
    /// Counters.
    pub metrics: Arc<Metrics>,
}

impl Decider {
    pub(crate) fn new(settings: Settings, gateway: Option<Gateway>, parts: Parts) -> Decider {
        Decider {
            settings,
            gateway,
            parts,
            gateway_outage: OutageLog::default(),
            reports_unused: OutageLog::default(),
        }
    }

    /// Logs at start-up which source decides.
    pub(crate) fn log_decision_source(&self) {
        let line = match (&self.gateway, &self.parts.rules) {
            (Some(gateway), _) if self.settings.fail_closed => {
                format!(
                    "the gateway at {} decides; without it everything is denied",
                    gateway.checks.endpoint()
                )
            }
            (Some(gateway), Rules::Loaded(rules)) => {
                format!(
                    "the gateway at {} decides; without it {} local rules do",
                    gateway.checks.endpoint(),
                    rules.len()
                )
            }
            (Some(gateway), Rules::Absent(why)) => {
                format!(
                    "the gateway at {} decides; without it everything is denied: {why}",
                    gateway.checks.endpoint()
                )
            }
            (None, Rules::Loaded(rules)) => {
                format!("{} local rules decide: there is no gateway", rules.len())
            }
            (None, Rules::Absent(why)) => format!("everything is denied: {why}; {WHAT_TO_SET}"),
            (_, Rules::Disabled) => {
                return log::warn!(
                    "EVERY ACTION IS ALLOWED: AA_POLICY_PATH is empty and there is no gateway, as in the released runtime; {WHAT_TO_SET}"
                );
            }
        };
        log::info!("{line}");
    }

    async fn decide(&self, mut request: CheckActionRequest) -> CheckActionResponse {
        let operation = Operation::of(&request);
        if let Some(denial) = self.parts.operations.denial(&operation) {
            return denial;
        }
        let types = Types::of(&request);
        let answer = match &self.gateway {
            None => self.judge(types, None),
            Some(gateway) => {
                if request.agent_id.is_none() {
                    request.agent_id = Some(self.settings.agent());
                }
                let token = Token::new(request.credential_token.as_str());
                let holder = request.agent_id.clone();
                match gateway.checks.check(request).await {
                    Ok(answer) => {
                        self.gateway_outage.recovered("the gateway answers again");
                        self.remember_token(gateway, token, holder, answer.decision());
                        if answer.decision() == Decision::Pending {
                            self.expect_outcome(&answer.approval_id).await;
                        }
                        answer
                    }
                    Err(error) => self.without_gateway(types, &error),
                }
            }
        };
        // Checked again: the operation may have been stopped during the call.
        self.parts.operations.denial(&operation).unwrap_or(answer)
    }

    /// Registers an approval before its query is answered, so that an immediate decision is not missed.
    async fn expect_outcome(&self, approval_id: &str) {
        self.parts.approvals.remember(approval_id);
        if self.parts.owner.now().is_some() {
            self.parts.approvals.wait_for_stream().await;
        }
    }

    /// Adopts the token of a query for reports and streams, if none is configured and the gateway did not deny the query. Queries without a
    /// token never use it.
    fn remember_token(
        &self,
        gateway: &Gateway,
        token: Option<Token>,
        holder: Option<AgentId>,
        decision: Decision,
    ) {
        if self.settings.token.is_none() && token.is_some() && decision != Decision::Deny {
            gateway.reports.set_token(token);
            if let Some(holder) = holder {
                self.parts.owner.learn(&holder);
            }
        }
    }

    fn without_gateway(&self, types: Types, error: &ClientError) -> CheckActionResponse {
        // A refusal is an answer: falling back to local rules would bypass the gateway.
        if !error.may_pass() {
            log::info!("a query was denied: {error}");
            return deny("runtime.refused", "the gateway refused the query");
        }
        self.parts.metrics.gateway_failed();
        self.gateway_outage.failed(|| format!("the gateway does not answer: {error}"));
        let (rule, reason) = match error {
            ClientError::Timeout { .. } => ("runtime.timeout", "gateway did not answer in time"),
            _ => ("runtime.gateway", "gateway is not available"),
        };
        if self.settings.fail_closed { deny(rule, reason) } else { self.judge(types, Some((rule, reason))) }
    }

    /// Answers by the local rules; `instead_of` is the rule and reason of the gateway's failure.
    fn judge(&self, types: Types, instead_of: Option<(&str, &str)>) -> CheckActionResponse {
        match self.parts.rules.judge(types) {
            RuleDecision::Allow => CheckActionResponse {
                decision: Decision::Allow.into(),
                reason: "no local rule is against it".to_owned(),
                policy_rule: LOCAL.to_owned(),
                ..Default::default()
            },
            RuleDecision::Block(rule) => deny(rule, "action is blocked by a local rule"),
            RuleDecision::Ask(rule, time) => self.ask(rule, time),
            RuleDecision::Unknown(why) => match instead_of {
                Some((rule, reason)) => deny(rule, format!("{reason}, and {why}")),
                None => deny(LOCAL, format!("{why}; {WHAT_TO_SET}")),
            },
        }
    }

    fn ask(&self, rule: &str, time: Duration) -> CheckActionResponse {
        match self.parts.approvals.open(time) {
            Some(approval_id) => CheckActionResponse {
                decision: Decision::Pending.into(),
                reason: "a local rule requires approval".to_owned(),
                policy_rule: rule.to_owned(),
                approval_id,
                ..Default::default()
            },
            None => deny(rule, "too many actions wait for approval"),
        }
    }
}

const WHAT_TO_SET: &str = "set AA_GATEWAY_ENDPOINT, or AA_POLICY_PATH to a file of rules";

impl RuntimeHandler for Decider {
    async fn check(&self, request: CheckActionRequest) -> CheckActionResponse {
        let began = Instant::now();
        let mut answer = self.decide(request).await;
        if answer.decision_latency_us <= 0 {
            answer.decision_latency_us =
                i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX).max(1);
        }
        self.parts.metrics.answered(answer.decision(), began.elapsed());
        answer
    }

    async fn report(&self, mut event: AuditEvent) {
        self.parts.metrics.events(EventCount::Received, 1);
        if self.gateway.is_none() {
            self.reports_unused.failed(|| "reported events go nowhere: there is no gateway".to_owned());
            return;
        }
        if event.agent_id.is_none() {
            event.agent_id = Some(self.settings.agent());
        }
        self.parts.reports.push(event);
    }

    fn subscribe_pushes(&self) -> Option<broadcast::Receiver<Push>> {
        Some(self.parts.approvals.subscribe())
    }

    fn closed(&self, why: &str) {
        log::info!("a connection was closed: {why}");
    }
}
