//! What a decision may ask about the past. Every question and its answer go into the read-set, so that the decision can be
//! derived again from them alone.

use rust_decimal::Decimal;

use proctor_core::id::ApprovalId;
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

/// Whose past is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// This session.
    Session,
    /// The principal's last 24 hours.
    Agent,
}

/// Who pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Account {
    /// The principal, for itself and for the agents that it has started.
    Agent,
    /// Its team.
    Team,
    /// Its organisation.
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

/// What is counted.
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
    /// How many actions whose tool (either name) matches the glob were let through. Answer: `Count`.
    Called(Scope, String),
    /// How long ago the last such action was. Answer: `Micros`, `None` if never.
    Since(Scope, String),
    /// How many such actions were denied, asked about or deferred. Answer: `Count`.
    Denied(Scope, String),
    /// Whether the mark was set. Answer: `Truth`.
    Tainted(Scope, String),
    /// Whether the memory overflowed, so that the answers above cannot be trusted. Answer: `Truth`.
    Overflowed(Scope),
    /// What the account has spent since that moment. Answer: `Amount`.
    Spent(Account, Unit, Timestamp),
    /// What the account of that principal, one above the caller, has spent since that moment. Answer: `Amount`.
    SpentAbove(String, Unit, Timestamp),
    /// How full the bucket of this tool and this hourly limit is, in millionths of a call. Answer: `Level`.
    Rate(String, u32),
    /// The approval that this principal has open for this very action. Answer: `Approval`.
    Approval,
    /// What the registry knows of the principal, and whether it or the named operation (`trace:span`, or empty) is stopped. Answer:
    /// `Standing`.
    Standing(String),
    /// How often the principal has proposed this very action in about so many seconds before now. Answer: `Count`.
    Repeats(u32),
    /// How many actions the principal has proposed a minute in the last hour. Answer: `Pace`.
    Pace,
}

/// What the registry knows of a principal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// Why nothing may be done now, if that is so.
    pub stop: Option<Stop>,
    /// Risk tier: `low`, `medium`, `high`, `critical`, or empty.
    pub risk: String,
    /// The principal that started it; empty if none.
    pub parent: String,
    /// That one's risk tier.
    pub parent_risk: String,
    /// How many agents stand above it.
    pub depth: u32,
    /// How many it has started that are registered.
    pub children: u64,
    /// When it registered; `None`: it is not registered.
    pub registered_at: Option<Timestamp>,
    /// Whether it asked to be only observed.
    pub observe: bool,
    /// How many registered agents its team has.
    pub team_agents: u64,
    /// The name that it registered with, of one that asked to be only observed; empty if none.
    pub name: String,
    /// Those whose budgets it spends from: the one that started it, and so on up.
    pub above: Vec<Caller>,
}

/// Why an agent or an operation is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The rule that answers name: `agent.suspended`, `agent.killed`, `agent.parent_stopped`, `operation.paused`,
    /// `operation.terminated`.
    pub rule: String,
    /// Why, for people.
    pub reason: String,
}

/// Actions a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// In the present minute, this action not counted.
    pub current: u64,
    /// How many whole minutes before it are known, at most 60.
    pub minutes: u64,
    /// Actions in those, together.
    pub sum: u64,
    /// The sum of the squares of their counts.
    pub squares: u64,
}

/// What became of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// Nobody has decided yet.
    Waiting,
    /// Granted, and not used yet.
    Granted {
        /// Who granted it.
        by: String,
    },
    /// Refused, and the asker has not been told yet.
    Refused {
        /// Who refused it.
        by: String,
        /// Why.
        reason: String,
    },
}

/// An approval as a decision sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalView {
    /// Its identifier.
    pub id: ApprovalId,
    /// When it expires to deny; for a granted one, when the grant does.
    pub expires: Timestamp,
    /// Its state.
    pub state: ApprovalState,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A number of actions.
    Count(u64),
    /// A span of time; `None`: never.
    Micros(Option<u64>),
    /// Yes or no.
    Truth(bool),
    /// An amount.
    Amount(Decimal),
    /// Millionths of a call.
    Level(u64),
    /// The approval, if there is one.
    Approval(Option<ApprovalView>),
    /// What the registry knows; `None`: nothing.
    Standing(Option<Box<Standing>>),
    /// Actions a minute.
    Pace(Pace),
}

/// Where answers come from: the live state, or a read-set. `None` means that the answer is not to be had, which denies a
/// live action and makes a recorded one undecidable.
pub trait Memory {
    /// Answers a question.
    fn answer(&self, question: &Question) -> Option<Answer>;
}
