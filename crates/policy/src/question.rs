//! Questions of a decision about the past. Every question and its answer go into the read-set, so that the decision can be
//! derived again from them alone.

use rust_decimal::Decimal;

use proctor_core::id::ApprovalId;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

/// Scope of a question: one session, or all sessions of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// The session of the action.
    Session,
    /// The principal's last 24 hours.
    Agent,
}

/// Account that is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Account {
    /// The principal, for itself and for the agents that it has started.
    Agent,
    /// Team.
    Team,
    /// Organisation.
    Org,
}

impl Account {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Account::Agent => "agent",
            Account::Team => "team",
            Account::Org => "org",
        }
    }
}

/// Unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Money, in US dollars.
    Usd,
    /// Tokens.
    Tokens,
    /// Actions let through.
    Calls,
}

impl Unit {
    /// The word for it in records.
    pub const fn word(self) -> &'static str {
        match self {
            Unit::Usd => "usd",
            Unit::Tokens => "tokens",
            Unit::Calls => "calls",
        }
    }
}

/// A question about the past, as seen by one action of one caller in one session at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Question {
    /// Number of actions whose tool (either name) matches the glob and that were let through. Answer: `Count`.
    Called(Scope, String),
    /// Time since the last such action. Answer: `Micros`, `None` if never.
    Since(Scope, String),
    /// Number of such actions that were denied, asked about or deferred. Answer: `Count`.
    Denied(Scope, String),
    /// Whether the taint was set. Answer: `Truth`.
    Tainted(Scope, String),
    /// Whether the history overflowed its bounds, so that the answers above cannot be trusted. Answer: `Truth`.
    Overflowed(Scope),
    /// Spending of the account since that moment. Answer: `Amount`.
    Spent(Account, Unit, Timestamp),
    /// Spending of that principal's account, one above the caller, since that moment. Answer: `Amount`.
    SpentAbove(String, Unit, Timestamp),
    /// Level of the token bucket for this tool and this hourly limit, in millionths of a call. Answer: `Level`.
    Rate(String, u32),
    /// The approval that this principal has open for this very action. Answer: `Approval`.
    Approval,
    /// Status of the principal in the registry, and whether it or the named operation (`trace:span`, or empty) is stopped. Answer:
    /// `AgentStatus`.
    AgentStatus(String),
    /// Number of times that the principal proposed this very action in about so many seconds before now. Answer: `Count`.
    Repeats(u32),
    /// Actions per minute that the principal proposed in the last hour. Answer: `ActionsPerMinute`.
    ActionsPerMinute,
}

/// Status of a principal in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentStatus {
    /// Suspension, kill or stop in force, if any.
    pub stop: Option<Stop>,
    /// Risk tier: `low`, `medium`, `high`, `critical`, or empty.
    pub risk: String,
    /// The principal that started it; empty if none.
    pub parent: String,
    /// Risk tier of the parent.
    pub parent_risk: String,
    /// Number of agents above it.
    pub depth: u32,
    /// Number of registered children.
    pub children: u64,
    /// Time of registration; `None` if the agent is not registered.
    pub registered_at: Option<Timestamp>,
    /// Whether it asked to be only observed.
    pub observe: bool,
    /// Number of registered agents in its team.
    pub team_agents: u64,
    /// The name that it registered with, of one that asked to be only observed; empty if none.
    pub name: String,
    /// Ancestors whose budgets it spends from, the parent first.
    pub above: Vec<Caller>,
}

/// Stop of an agent or an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The rule that answers name: `agent.suspended`, `agent.killed`, `agent.parent_stopped`, `operation.paused`,
    /// `operation.terminated`.
    pub rule: String,
    /// Reason, for people.
    pub reason: String,
}

/// Statistics of the actions per minute that a principal proposed in the last hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ActionsPerMinute {
    /// Count of the present minute, without this action.
    pub current: u64,
    /// Number of whole minutes before it that are known, at most 60.
    pub minutes: u64,
    /// Actions in those, together.
    pub sum: u64,
    /// The sum of the squares of their counts.
    pub squares: u64,
}

/// State of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// No approver has decided yet.
    Waiting,
    /// Granted, and not used yet.
    Granted {
        /// Approver.
        by: String,
    },
    /// Refused, and the asker has not been told yet.
    Refused {
        /// Approver.
        by: String,
        /// Reason.
        reason: String,
    },
}

/// Expected cost of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// US dollars.
    pub usd: Decimal,
    /// Tokens.
    pub tokens: Decimal,
}

impl Estimate {
    /// Whether an action of that estimate costs no more than this in either unit.
    pub fn covers(&self, other: &Estimate) -> bool {
        other.usd <= self.usd && other.tokens <= self.tokens
    }
}

/// An approval as a decision sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalView {
    /// Identifier.
    pub id: ApprovalId,
    /// Expiry: to deny, or of the grant.
    pub expires: Timestamp,
    /// State.
    pub state: ApprovalState,
    /// Expected cost of the action that was asked about; a grant is for no more.
    pub estimate: Estimate,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A number of actions.
    Count(u64),
    /// A span of time; `None`: never.
    Micros(Option<u64>),
    /// A boolean.
    Truth(bool),
    /// An amount.
    Amount(Decimal),
    /// Millionths of a call.
    Level(u64),
    /// The approval, if there is one.
    Approval(Option<ApprovalView>),
    /// Status in the registry; `None`: unknown to it.
    AgentStatus(Option<Box<AgentStatus>>),
    /// Actions a minute.
    ActionsPerMinute(ActionsPerMinute),
}

/// Source of answers: the live state, or a read-set. `None` means that there is no answer, which denies a
/// live action and makes a recorded one undecidable.
pub trait AnswerSource {
    /// Answers a question.
    fn answer(&self, question: &Question) -> Option<Answer>;
}
