//! Reference model: predicts answers from the rules alone, as simply as possible.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proctor_wire::assembly::proto::common::v1::Decision;
use tonic::Code;

use super::OBSERVED;
use super::actions::{Ask, What};
use super::rules::Rules;

const MINUTE: i64 = 60_000_000;
/// Three heartbeats.
const SILENCE: i64 = 90_000_000;
/// A call is so many parts that a limit of one an hour gives back one in a microsecond.
const CALL: i64 = 3_600_000_000;

/// Expected registry entry of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub registered: bool,
    pub deregistered: bool,
    pub offline: bool,
    pub suspended: BTreeSet<&'static str>,
    pub killed: bool,
    pub adrift: bool,
    pub parent: Option<usize>,
    pub team: String,
    pub token: String,
    /// The policy that it has heard of.
    pub told: String,
    /// Value of `Model::moment` at registration.
    since: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    Granted,
    Refused,
}

#[derive(Debug, Clone)]
pub(super) struct Approval {
    /// Identifier; unknown before the first answer.
    pub id: String,
    pub who: usize,
    what: What,
    asked: i64,
    pub expires: i64,
    pub state: State,
    closed: bool,
}

/// A decision that reports can be about.
#[derive(Debug, Clone)]
struct Taken {
    let_through: bool,
    estimate: i64,
    minute: i64,
    team: String,
    reported: bool,
    /// Value of `Model::moment` at the decision.
    moment: u64,
}

/// Expected answer to a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected {
    pub decision: Decision,
    pub rule: String,
    /// Index among the approvals.
    pub approval: Option<usize>,
    /// Denied because an ancestor's budget is exhausted.
    pub is_paid_above: bool,
    /// Whether limits were looked at.
    is_limited: bool,
}

impl Expected {
    fn new(decision: Decision, rule: impl Into<String>) -> Expected {
        Expected { decision, rule: rule.into(), approval: None, is_paid_above: false, is_limited: false }
    }

    fn deny(rule: impl Into<String>) -> Expected {
        Expected::new(Decision::Deny, rule)
    }
}

/// A report of a call to a model: what it really cost, if it says so.
pub(super) struct Actual<'a> {
    pub who: usize,
    pub trace: &'a str,
    pub span: &'a str,
    pub cost: Option<i64>,
}

pub(super) struct Model {
    pub rules: Rules,
    pub parents: Vec<Option<usize>>,
    pub names: Vec<String>,
    pub agents: BTreeMap<usize, Known>,
    pub operations: BTreeMap<String, bool>,
    pub approvals: Vec<Approval>,
    pub agents_approve: bool,
    /// Spending per account and minute.
    spent: HashMap<String, BTreeMap<i64, i64>>,
    buckets: HashMap<(usize, u32), (i64, i64)>,
    taken: HashMap<(usize, String, String), Vec<Taken>>,
    /// Times of proposals, by length of the loop window.
    proposed: HashMap<(usize, What, i64), Vec<i64>>,
    seen: HashMap<usize, i64>,
    /// Number of checks and registrations.
    moment: u64,
}

impl Model {
    /// `parents` and `names` (the identifiers) are those of the agents by number.
    pub(super) fn new(
        rules: Rules,
        parents: Vec<Option<usize>>,
        names: Vec<String>,
        agents_approve: bool,
    ) -> Model {
        Model {
            rules,
            parents,
            names,
            agents: BTreeMap::new(),
            operations: BTreeMap::new(),
            approvals: Vec::new(),
            agents_approve,
            spent: HashMap::new(),
            buckets: HashMap::new(),
            taken: HashMap::new(),
            proposed: HashMap::new(),
            seen: HashMap::new(),
            moment: 0,
        }
    }

    pub(super) fn is_registered(&self, who: usize) -> bool {
        self.agents.get(&who).is_some_and(|agent| agent.registered && !agent.deregistered)
    }

    pub(super) fn holds(&self, who: usize, token: &str) -> bool {
        !token.is_empty() && self.is_registered(who) && self.agents[&who].token == token
    }

    pub(super) fn speaks(&mut self, who: usize, now: i64) {
        self.seen.insert(who, now);
        self.agents.get_mut(&who).unwrap().offline = false;
    }

    pub(super) fn registers(&mut self, who: usize, team: &str, now: i64) -> Result<(), Code> {
        let known = self.agents.get(&who).cloned().unwrap_or_default();
        if known.killed {
            return Err(Code::PermissionDenied);
        }
        if !known.registered {
            if let Some(parent) = self.parents[who] {
                if !self.is_registered(parent) {
                    return Err(Code::InvalidArgument);
                }
                if self.stop(parent).is_some() {
                    return Err(Code::FailedPrecondition);
                }
            }
            self.moment += 1;
            let (parent, since) = (self.parents[who], self.moment);
            self.agents.insert(who, Known { parent, since, team: team.to_owned(), ..known.clone() });
        }
        let told = self.rules.text();
        let agent = self.agents.get_mut(&who).unwrap();
        if !known.registered || known.deregistered {
            agent.told = told;
        }
        (agent.registered, agent.deregistered) = (true, false);
        self.speaks(who, now);
        Ok(())
    }

    pub(super) fn deregisters(&mut self, who: usize) {
        let agent = self.agents.get_mut(&who).unwrap();
        agent.deregistered = true;
        agent.token.clear();
    }

    pub(super) fn suspend(&mut self, who: usize, cause: &'static str) {
        self.agents.entry(who).or_default().suspended.insert(cause);
    }

    /// An operator's word; whether there is such an agent.
    pub(super) fn resume(&mut self, who: usize) -> bool {
        let parent = self.agents.get(&who).and_then(|agent| agent.parent);
        let is_orphan = parent.is_some_and(|parent| !self.is_registered(parent));
        let Some(agent) = self.agents.get_mut(&who) else { return false };
        self.proposed.retain(|(proposer, ..), _| *proposer != who);
        agent.suspended.clear();
        agent.killed = false;
        agent.adrift |= is_orphan;
        if !agent.registered {
            self.agents.remove(&who);
        }
        true
    }

    /// An operator's word; holds also for an agent that never registered.
    pub(super) fn kill(&mut self, who: usize) {
        self.agents.entry(who).or_default().killed = true;
    }

    pub(super) fn forget(&mut self, who: usize) -> bool {
        self.agents.remove(&who).is_some()
    }

    pub(super) fn expire(&mut self, now: i64) {
        let is_online = |agent: &Known| agent.registered && !agent.deregistered && !agent.offline;
        self.seen.retain(|who, _| self.agents.get(who).is_some_and(is_online));
        for (who, agent) in self.agents.iter_mut().filter(|(_, agent)| is_online(agent)) {
            if *self.seen.entry(*who).or_insert(now) < now - SILENCE {
                agent.offline = true;
            }
        }
    }

    /// Drops heartbeats, which are only in memory.
    pub(super) fn restart(&mut self) {
        self.seen.clear();
    }

    fn own_stop(agent: &Known) -> Option<&'static str> {
        if agent.killed {
            Some("agent.killed")
        } else if !agent.suspended.is_empty() {
            Some("agent.suspended")
        } else {
            agent.deregistered.then_some("agent.deregistered")
        }
    }

    pub(super) fn stop(&self, who: usize) -> Option<&'static str> {
        let agent = self.agents.get(&who)?;
        if let Some(stop) = Model::own_stop(agent) {
            return Some(stop);
        }
        let mut below = agent;
        while let Some(parent) = below.parent.filter(|_| !below.adrift) {
            match self.agents.get(&parent) {
                Some(above) if above.registered && Model::own_stop(above).is_none() => below = above,
                _ => return Some("agent.parent_stopped"),
            }
        }
        None
    }

    fn operation_stop(&self, ask: &Ask) -> Option<&'static str> {
        let own = format!("agent:{}", self.names[ask.who]);
        let names = ["*".to_owned(), own, format!("{}:{}", ask.trace, ask.span)];
        let stops: Vec<bool> = names.iter().filter_map(|name| self.operations.get(name).copied()).collect();
        let is_terminated = stops.iter().any(|is_terminated| *is_terminated);
        (!stops.is_empty()).then_some(if is_terminated { "operation.terminated" } else { "operation.paused" })
    }

    fn account(who: usize, team: &str, key: &str) -> String {
        match key {
            "daily_limit_usd" => format!("agent {who}"),
            "team_daily_limit_usd" => format!("team {team}"),
            _ => "org".to_owned(),
        }
    }

    pub(super) fn spent(&self, who: usize, key: &str, now: i64) -> i64 {
        let account = Model::account(who, &self.agents[&who].team, key);
        self.spent
            .get(&account)
            .map_or(0, |spent| spent.range(self.rules.day_start(now)..).map(|it| it.1).sum())
    }

    /// Ancestors whose budgets an agent spends from; of a moment, those that were its ancestors then.
    fn payers(&self, who: usize, then: Option<u64>) -> Vec<usize> {
        let is_there = |agent: &&Known| agent.registered && then.is_none_or(|then| agent.since < then);
        let mut payers = Vec::new();
        let mut next = self.agents.get(&who).filter(is_there);
        while let Some(parent) = next.filter(|below| !below.adrift).and_then(|below| below.parent) {
            next = self.agents.get(&parent).filter(is_there);
            payers.extend(next.is_some().then_some(parent));
        }
        payers
    }

    fn charge(&mut self, who: usize, team: &str, minute: i64, amount: i64, then: Option<u64>) {
        for above in self.payers(who, then) {
            let account = self.spent.entry(Model::account(above, team, "daily_limit_usd")).or_default();
            *account.entry(minute).or_default() += amount;
        }
        for key in ["daily_limit_usd", "team_daily_limit_usd", "org_daily_limit_usd"] {
            let account = self.spent.entry(Model::account(who, team, key)).or_default();
            *account.entry(minute).or_default() += amount;
        }
    }

    /// The keys of budgets that are used up, and who they belong to: its own, those of agents above it, then others.
    fn used_up(&self, who: usize, now: i64) -> Vec<(&'static str, usize)> {
        let payers = [vec![who], self.payers(who, None)].concat();
        let is_own = |key: &str| key == "daily_limit_usd";
        let own = payers.into_iter().flat_map(|payer| {
            self.rules.budgets.iter().filter(|(key, _)| is_own(key)).map(move |budget| (payer, budget))
        });
        let others = self.rules.budgets.iter().filter(|(key, _)| !is_own(key)).map(|budget| (who, budget));
        own.chain(others)
            .filter(|(payer, (key, limit))| self.spent(*payer, key, now) >= *limit)
            .map(|(payer, (key, _))| (*key, payer))
            .collect()
    }

    /// Reports whether the action repeats too often.
    fn is_loop(&self, ask: &Ask, now: i64) -> bool {
        let Some((count, seconds)) = self.rules.loops else { return false };
        let length = seconds * 1_000_000;
        let times = self.proposed.get(&(ask.who, ask.what, seconds)).map_or(&[][..], Vec::as_slice);
        let in_window = |back: i64| {
            let window = now.div_euclid(length) - back;
            i64::try_from(times.iter().filter(|time| time.div_euclid(length) == window).count()).unwrap()
        };
        // Of the window before, the share that is still within reach.
        let before = in_window(1) * (length - now.rem_euclid(length)) / length;
        before + in_window(0) + 1 >= count
    }

    /// A suspension that a budget caused ends when none is used up any more that suspends.
    pub(super) fn refresh(&mut self, who: usize, now: i64) {
        if !self.rules.suspends || self.used_up(who, now).is_empty() {
            self.agents.get_mut(&who).unwrap().suspended.remove("budget");
        }
    }

    fn is_full(&self, who: usize, limit: u32, now: i64) -> bool {
        self.level(who, limit, now) > (i64::from(limit) - 1) * CALL
    }

    fn level(&self, who: usize, limit: u32, now: i64) -> i64 {
        let (parts, at) = self.buckets.get(&(who, limit)).copied().unwrap_or((0, now));
        (parts - (now - at) * i64::from(limit)).max(0)
    }

    /// A check by an agent that has shown its token.
    pub(super) fn check(&mut self, ask: &Ask, now: i64) -> Expected {
        self.speaks(ask.who, now);
        self.refresh(ask.who, now);
        let is_stopped = self.stop(ask.who).or_else(|| self.operation_stop(ask)).is_some();
        let expected = self.judge(ask, now);
        if let Some((_, seconds)) = self.rules.loops.filter(|_| !is_stopped && ask.what.can_loop()) {
            self.proposed.entry((ask.who, ask.what, seconds)).or_default().push(now);
        }
        self.moment += 1;
        let let_through = matches!(expected.decision, Decision::Allow | Decision::Redact);
        let estimate = if let_through { ask.what.estimate() } else { 0 };
        let team = self.agents[&ask.who].team.clone();
        let minute = now.div_euclid(MINUTE);
        self.charge(ask.who, &team, minute, estimate, None);
        let is_limited = let_through && expected.is_limited;
        if let (true, What::Search, Some(limit)) = (is_limited, ask.what, self.rules.searches) {
            let level = self.level(ask.who, limit, now);
            self.buckets.insert((ask.who, limit), (level + CALL, now));
        }
        let taken = Taken { let_through, estimate, minute, team, reported: false, moment: self.moment };
        self.taken.entry((ask.who, ask.trace.clone(), ask.span.clone())).or_default().push(taken);
        expected
    }

    fn judge(&mut self, ask: &Ask, now: i64) -> Expected {
        let stop = self.stop(ask.who).or_else(|| self.operation_stop(ask));
        let is_observed = self.rules.observes && ask.who == OBSERVED && stop.is_none();
        let is_loop = stop.is_none() && ask.what.can_loop() && self.is_loop(ask, now);
        let used_up = self.used_up(ask.who, now);
        let (approvals, expected) = (self.approvals.clone(), self.rule(ask, stop, is_loop, &used_up, now));
        if is_observed && expected.decision != Decision::Allow {
            // It runs, and what would have been is not.
            self.approvals = approvals;
            return Expected { is_limited: expected.is_limited, ..Expected::new(Decision::Allow, "observe") };
        }
        if is_loop {
            self.suspend(ask.who, "anomaly");
        } else if expected.is_limited && !used_up.is_empty() && self.rules.suspends {
            self.suspend(ask.who, "budget");
        }
        expected
    }

    fn rule(
        &mut self,
        ask: &Ask,
        stop: Option<&'static str>,
        is_loop: bool,
        used_up: &[(&'static str, usize)],
        now: i64,
    ) -> Expected {
        if let Some(stop) = stop {
            return Expected::deny(stop);
        }
        if !self.rules.is_active(now) {
            return Expected::deny("schedule");
        }
        match ask.what {
            What::Forbidden => return Expected::deny("tool:forbidden"),
            What::Write { system: true } => return Expected::deny("no-system-files"),
            _ => {}
        }
        if is_loop {
            return Expected::deny("anomaly.loops");
        }
        let limited = |expected: Expected| Expected { is_limited: true, ..expected };
        let limit = self.rules.searches.filter(|_| ask.what == What::Search);
        if limit.is_some_and(|limit| self.is_full(ask.who, limit, now)) {
            return limited(Expected::deny("rate:search"));
        }
        if let Some((key, payer)) = used_up.first() {
            let is_paid_above = *payer != ask.who;
            return limited(Expected { is_paid_above, ..Expected::deny(format!("budget.{key}")) });
        }
        limited(match (ask.what, self.rules.asks) {
            (What::Deploy(_), Some(minutes)) => self.approve(ask, minutes, now),
            (What::Secret, _) => Expected::new(Decision::Redact, ""),
            (What::Search, _) if limit.is_some() => Expected::new(Decision::Allow, "tool:search"),
            _ => Expected::new(Decision::Allow, "default"),
        })
    }

    fn approve(&mut self, ask: &Ask, minutes: i64, now: i64) -> Expected {
        let is_it = |it: &Approval| it.who == ask.who && it.what == ask.what && !it.closed;
        let place = self.approvals.iter().position(is_it);
        let place = place.unwrap_or_else(|| {
            self.approvals.push(Approval {
                id: String::new(),
                who: ask.who,
                what: ask.what,
                asked: now,
                expires: now + minutes * MINUTE,
                state: State::Waiting,
                closed: false,
            });
            self.approvals.len() - 1
        });
        let approval = &mut self.approvals[place];
        let decision = match approval.state {
            State::Waiting if now < approval.expires => Decision::Pending,
            State::Granted if now < approval.expires => Decision::Allow,
            _ => Decision::Deny,
        };
        approval.closed = decision != Decision::Pending;
        let approval = (decision == Decision::Pending).then_some(place);
        Expected { approval, ..Expected::new(decision, "deploys") }
    }

    pub(super) fn is_waiting(&self, place: usize, now: i64) -> bool {
        let approval = &self.approvals[place];
        !approval.closed && approval.state == State::Waiting && now < approval.expires
    }

    /// Lists unused grants.
    pub(super) fn granted(&self) -> Vec<(usize, What)> {
        let is_granted = |it: &&Approval| it.state == State::Granted && !it.closed;
        self.approvals.iter().filter(is_granted).map(|it| (it.who, it.what)).collect()
    }

    /// A person's decision; whether it counts.
    pub(super) fn decides(&mut self, place: usize, allowed: bool, now: i64) -> bool {
        let counts = self.is_waiting(place, now);
        let approval = &mut self.approvals[place];
        if counts {
            approval.state = if allowed { State::Granted } else { State::Refused };
            approval.expires = now + (approval.expires - approval.asked);
        }
        counts
    }

    /// Reports whether an agent may decide another agent's approval.
    pub(super) fn may_decide(&self, who: usize, place: usize) -> bool {
        let asker = self.approvals[place].who;
        let Some(other) = self.agents.get(&asker) else { return false };
        self.agents_approve
            && other.team == self.agents[&who].team
            && !self.above(who).contains(&asker)
            && !self.above(asker).contains(&who)
            && self.stop(who).is_none()
    }

    /// An agent and those above it.
    fn above(&self, who: usize) -> Vec<usize> {
        let mut above = Vec::new();
        let mut next = Some(who);
        while let Some((who, agent)) = next.and_then(|who| Some((who, self.agents.get(&who)?))) {
            above.push(who);
            next = agent.parent;
        }
        above
    }

    /// A report counts for the last decision of its span that let something through, once; else it is billed in full.
    pub(super) fn reports(&mut self, actual: &Actual<'_>, now: i64) {
        let key = (actual.who, actual.trace.to_owned(), actual.span.to_owned());
        let minute = now.div_euclid(MINUTE);
        let own_team = self.agents[&actual.who].team.clone();
        let taken = self.taken.entry(key).or_default();
        let place = taken.iter().rposition(|taken| taken.let_through).or_else(|| taken.len().checked_sub(1));
        let about = place.map(|place| &mut taken[place]).filter(|taken| !taken.reported);
        let (team, estimate, estimated_at, then) = match about {
            None => (own_team, 0, minute, None),
            Some(about) => {
                about.reported = true;
                (about.team.clone(), about.estimate, about.minute, Some(about.moment))
            }
        };
        match actual.cost.map_or(0, |cost| cost - estimate) {
            less if less < 0 => self.charge(actual.who, &team, estimated_at, less, then),
            more => self.charge(actual.who, &team, minute, more, None),
        }
    }
}
