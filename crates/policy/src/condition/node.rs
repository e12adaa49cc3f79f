//! A condition after loading: every name resolved, every fixed text, pattern and question built.

use proctor_facts::Fact;
use regex::Regex;

use crate::question::{Question, Scope};

/// Static type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Unknown type.
    Any,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Timestamp,
    /// A list of texts.
    Texts,
    List,
    Map,
}

impl Kind {
    /// The words for it in messages.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Kind::Any => "any value",
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Int => "an int",
            Kind::Uint => "a uint",
            Kind::Double => "a double",
            Kind::Text => "a string",
            Kind::Bytes => "bytes",
            Kind::Duration => "a duration",
            Kind::Timestamp => "a timestamp",
            Kind::Texts | Kind::List => "a list",
            Kind::Map => "a map",
        }
    }

    pub(super) const fn is_number(self) -> bool {
        matches!(self, Kind::Int | Kind::Uint | Kind::Double)
    }

    pub(super) const fn is_list(self) -> bool {
        matches!(self, Kind::Texts | Kind::List)
    }
}

/// A value that is the same in every decision.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Constant {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    /// Microseconds.
    Duration(i64),
    /// Microseconds since 1970.
    Timestamp(i64),
}

/// A member of `action`, `agent`, `session` or `time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Member {
    Fact(Fact),
    Findings,
    AgentName,
    Principal,
    Team,
    Org,
    RiskTier,
    AgentDepth,
    Parent,
    ParentRiskTier,
    Children,
    IsRegistered,
    Age,
    TeamAgents,
    SessionId,
    Now,
    Hour,
    Minute,
    Weekday,
    Date,
}

impl Member {
    /// Whether the registry has to be asked for it.
    pub(super) const fn asks(self) -> bool {
        matches!(
            self,
            Member::RiskTier
                | Member::AgentDepth
                | Member::Parent
                | Member::ParentRiskTier
                | Member::Children
                | Member::IsRegistered
                | Member::Age
                | Member::TeamAgents
        )
    }
}

/// Function about the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PastFunction {
    Called,
    Count,
    Since,
    Denied,
    DeniedCount,
    Tainted,
}

impl PastFunction {
    /// The question that it asks.
    pub(super) fn question(self, scope: Scope, text: String) -> Question {
        match self {
            PastFunction::Called | PastFunction::Count => Question::Called(scope, text),
            PastFunction::Since => Question::Since(scope, text),
            PastFunction::Denied | PastFunction::DeniedCount => Question::Denied(scope, text),
            PastFunction::Tainted => Question::Tainted(scope, text),
        }
    }
}

/// Function about the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Containment {
    Within,
    WritesWithin,
}

/// The argument of a function about the past.
#[derive(Debug)]
pub(super) enum Asked {
    /// Known at load.
    Fixed(Question),
    /// Computed from the action.
    Computed(Box<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    In,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    Size,
    LowerAscii,
    UpperAscii,
    Trim,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Bool,
    Dyn,
    Duration,
    Timestamp,
    Year,
    Month,
    DayOfMonth,
    Date,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

/// The macros over lists and maps.
#[derive(Debug)]
pub(super) enum Comprehension {
    All(Node),
    Exists(Node),
    ExistsOne(Node),
    Filter(Node),
    Map(Option<Node>, Node),
}

/// A step of a condition.
#[derive(Debug)]
pub(super) enum Node {
    Constant(Constant),
    /// A variable of a macro, counted from the outermost.
    Local(usize),
    Member(Member),
    Select(Box<Node>, Box<str>),
    Has(Box<Node>, Box<str>),
    Index(Box<(Node, Node)>),
    Past(PastFunction, Scope, Asked),
    /// Whether the action's paths, or those that it writes, lie in this folder of the workspace.
    Within(Containment, Box<str>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Box<(Node, Node)>),
    Or(Box<(Node, Node)>),
    Choice(Box<(Node, Node, Node)>),
    Binary(Operator, Box<(Node, Node)>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Call(Function, Vec<Node>),
    Matches(Box<Node>, Box<Regex>),
    Comprehension(Box<(Node, Comprehension)>),
}
