//! Read access to the state for one action.

use std::borrow::Cow;

use proctor_core::digest::Digest;
use proctor_core::id::SessionId;
use proctor_core::record::{MAX_CLAIMED, claimed};
use proctor_core::session::Caller;
use proctor_core::time::Timestamp;

use super::State;
use crate::question::{Account, Answer, AnswerSource, Question, Scope};

/// Answers about the past for one action of one caller in one session at one moment.
#[derive(Debug, Clone)]
pub struct StateView<'a> {
    state: &'a State,
    principal: Cow<'a, str>,
    team: Cow<'a, str>,
    org: Cow<'a, str>,
    session: SessionId,
    digest: Digest,
    now: Timestamp,
}

impl<'a> StateView<'a> {
    pub(super) fn new(
        state: &'a State,
        caller: &'a Caller,
        session: SessionId,
        digest: Digest,
        now: Timestamp,
    ) -> StateView<'a> {
        StateView {
            state,
            principal: recorded(&caller.principal),
            team: recorded(&caller.team),
            org: recorded(&caller.org),
            session,
            digest,
            now,
        }
    }

    fn counts(&self, scope: Scope, glob: &str) -> (u64, u64) {
        let glob = as_recorded(glob);
        match scope {
            Scope::Session => self.state.sessions.counts(self.session, &glob),
            Scope::Agent => self.state.agents.counts(&self.principal, &glob, self.now),
        }
    }

    fn last(&self, scope: Scope, glob: &str) -> Option<Timestamp> {
        let glob = as_recorded(glob);
        match scope {
            Scope::Session => self.state.sessions.last(self.session, &glob),
            Scope::Agent => self.state.agents.last(&self.principal, &glob, self.now),
        }
    }
}

impl AnswerSource for StateView<'_> {
    /// Answers all questions except for amounts spent before the retention time (33 days).
    fn answer(&self, question: &Question) -> Option<Answer> {
        let (state, now) = (self.state, self.now);
        Some(match question {
            Question::Called(scope, glob) => Answer::Count(self.counts(*scope, glob).0),
            Question::Denied(scope, glob) => Answer::Count(self.counts(*scope, glob).1),
            Question::Since(scope, glob) => {
                Answer::Micros(self.last(*scope, glob).map(|last| now.micros_since(last)))
            }
            Question::Tainted(scope, name) => Answer::Truth(match scope {
                Scope::Session => state.sessions.is_tainted(self.session, &recorded(name)),
                Scope::Agent => state.agents.is_tainted(&self.principal, &recorded(name), now),
            }),
            Question::Overflowed(scope) => Answer::Truth(match scope {
                Scope::Session => state.sessions.overflowed(self.session),
                Scope::Agent => state.agents.overflowed(&self.principal, now),
            }),
            Question::Spent(account, unit, from) => {
                let owner = match account {
                    Account::Agent => &self.principal,
                    Account::Team => &self.team,
                    Account::Org => &self.org,
                };
                Answer::Amount(state.meters.spent(*account, owner, *unit, *from, now)?)
            }
            Question::SpentAbove(principal, unit, from) => {
                Answer::Amount(state.meters.spent(Account::Agent, &recorded(principal), *unit, *from, now)?)
            }
            Question::Rate(tool, limit) => {
                Answer::Level(state.rates.level(&self.principal, &recorded(tool), *limit, now))
            }
            Question::Approval => Answer::Approval(state.approvals.view(&self.principal, self.digest)),
            Question::AgentStatus(operation) => Answer::AgentStatus(
                state.registry.status(&self.principal, &self.team, operation).map(Box::new),
            ),
            Question::Repeats(seconds) => {
                Answer::Count(state.anomaly_counts.repeats(&self.principal, self.digest, *seconds, now))
            }
            Question::ActionsPerMinute => {
                Answer::ActionsPerMinute(state.anomaly_counts.actions_per_minute(&self.principal, now))
            }
        })
    }
}

/// A text as envelopes hold it: long ones are cut.
fn recorded(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_CLAIMED { Cow::Borrowed(text) } else { Cow::Owned(claimed(text)) }
}

/// A glob as it is compared with texts that envelopes hold. A long glob with a star in its tail cannot be cut and still match, and
/// the names it is meant for are cut too, so cutting is left to literal ones.
fn as_recorded(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_CLAIMED || !crate::glob::is_literal(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(claimed(text))
    }
}
