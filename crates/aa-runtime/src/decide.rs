//! Who decides: what was stopped from outside, then the gateway, or the rules.

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
use super::holder::Holders;
use super::operations::{Operation, Operations};
use super::reports::Reports;
use super::rules::{Rules, Types, Verdict};
use super::settings::Settings;
use super::talk::{Trouble, say};

/// The rule that local answers name when no rule of the file does.
const LOCAL: &str = "runtime.local_rules";

/// The gateway, once for queries and once for reports: their tokens may differ, and many reports must not hold up a query.
#[derive(Debug, Clone)]
pub(crate) struct Gateway {
    /// For queries.
    pub checks: Client,
    /// For reports, and for what the gateway tells.
    pub reports: Client,
}

/// Answers the queries of one agent.
pub(crate) struct Decider {
    settings: Settings,
    gateway: Option<Gateway>,
    rules: Rules,
    operations: Arc<Operations>,
    approvals: Arc<Approvals>,
    reports: Arc<Reports>,
    holders: Arc<Holders>,
    trouble: Trouble,
    unheard: Trouble,
}

impl Decider {
    /// From its parts.
    pub(crate) fn new(
        settings: Settings,
        gateway: Option<Gateway>,
        rules: Rules,
        operations: Arc<Operations>,
        approvals: Arc<Approvals>,
        reports: Arc<Reports>,
        holders: Arc<Holders>,
    ) -> Decider {
        Decider {
            settings,
            gateway,
            rules,
            operations,
            approvals,
            reports,
            holders,
            trouble: Trouble::default(),
            unheard: Trouble::default(),
        }
    }

    /// Says who decides, so that nobody has to find out.
    pub(crate) fn say_who_decides(&self) {
        say(&match (&self.gateway, &self.rules) {
            (Some(gateway), _) if self.settings.fail_closed => {
                format!(
                    "the gateway at {} decides; without it everything is denied",
                    gateway.checks.endpoint()
                )
            }
            (Some(gateway), Rules::These(rules)) => {
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
            (None, Rules::These(rules)) => format!("{} local rules decide: there is no gateway", rules.len()),
            (None, Rules::Absent(why)) => format!("everything is denied: {why}; {WHAT_TO_SET}"),
        });
    }

    async fn decide(&self, mut request: CheckActionRequest) -> CheckActionResponse {
        let operation = Operation::of(&request);
        if let Some(denial) = self.operations.denial(&operation) {
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
                        self.trouble.ended("the gateway answers again");
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
        // It may have been stopped while the gateway thought.
        self.operations.denial(&operation).unwrap_or(answer)
    }

    /// Remembers an approval before its asker knows of it: whoever decides at once is heard, too.
    async fn expect_outcome(&self, approval_id: &str) {
        self.approvals.remember(approval_id);
        if self.holders.now().is_some() {
            self.approvals.opening().await;
        }
    }

    /// Reports and streams have no token of their own: without a configured one, that of a query that the gateway did not deny stands for it.
    /// It is never used for queries: one without a token stays without.
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
                self.holders.learn(&holder);
            }
        }
    }

    fn without_gateway(&self, types: Types, error: &ClientError) -> CheckActionResponse {
        // A refusal is an answer: another way around it would be a way around the gateway.
        if !error.may_pass() {
            say(&format!("a query was denied: {error}"));
            return deny("runtime.refused", "the gateway refused the query");
        }
        self.trouble.began(|| format!("the gateway does not answer: {error}"));
        let (rule, reason) = match error {
            ClientError::Timeout { .. } => ("runtime.timeout", "gateway did not answer in time"),
            _ => ("runtime.gateway", "gateway is not available"),
        };
        if self.settings.fail_closed { deny(rule, reason) } else { self.judge(types, Some((rule, reason))) }
    }

    /// What the local rules say; `instead_of` is what went wrong with the gateway.
    fn judge(&self, types: Types, instead_of: Option<(&str, &str)>) -> CheckActionResponse {
        match self.rules.judge(types) {
            Verdict::Allow => CheckActionResponse {
                decision: Decision::Allow.into(),
                policy_rule: LOCAL.to_owned(),
                ..Default::default()
            },
            Verdict::Block(rule) => deny(rule, "action is blocked by a local rule"),
            Verdict::Ask(rule, time) => self.ask(rule, time),
            Verdict::Unknown(why) => match instead_of {
                Some((rule, reason)) => deny(rule, format!("{reason}, and {why}")),
                None => deny(LOCAL, format!("{why}; {WHAT_TO_SET}")),
            },
        }
    }

    fn ask(&self, rule: &str, time: Duration) -> CheckActionResponse {
        match self.approvals.open(time) {
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
        answer
    }

    async fn report(&self, mut event: AuditEvent) {
        if self.gateway.is_none() {
            self.unheard.began(|| "reported events go nowhere: there is no gateway".to_owned());
            return;
        }
        if event.agent_id.is_none() {
            event.agent_id = Some(self.settings.agent());
        }
        self.reports.push(event);
    }

    fn subscribe_pushes(&self) -> Option<broadcast::Receiver<Push>> {
        Some(self.approvals.subscribe())
    }

    fn closed(&self, why: &str) {
        say(&format!("a connection was closed: {why}"));
    }
}
