//! Context for an agent: the part of its workspace that policy lets it read.

use proctor_core::action::{Action, ActionKind};
use proctor_core::decision::Effect;
use proctor_core::json::Json;
use proctor_core::session::Caller;
use proctor_engine::Proposal;
use proctor_policy::advice::ContextAdvice;
use proctor_policy::prepare::redact_text;
use proctor_wire::ahp::{ContextPerceptionDecision, ContextPerceptionEvent};
use proctor_workspace::{Folder, Permissions, block, perceive};

use crate::AhpDoor;
use crate::action::DOOR;

impl AhpDoor {
    /// Answers a context request from the workspace.
    pub(super) fn perceive(
        &self,
        caller: &Caller,
        agent: &str,
        session: &str,
        asked: &ContextPerceptionEvent,
    ) -> ContextPerceptionDecision {
        let advice = self.advice(caller);
        let scope = match advice.context() {
            ContextAdvice::Allow(scope) => scope,
            ContextAdvice::Block { reason } => return block(reason),
        };
        let policy = self.engine().policy();
        let permissions = Permissions {
            may_read: &|folder, file| self.may_read(caller, agent, session, folder, file),
            cut: &|text| redact_text(&policy, text),
        };
        perceive(&self.shared.settings.workspace, &scope, &permissions, asked)
    }

    /// Reports whether policy allows a read of this file unconditionally. A read that taints the session or rests on an approval does not
    /// count: showing the file here would leave no taint, and use no approval up.
    fn may_read(&self, caller: &Caller, agent: &str, session: &str, folder: &Folder, file: &str) -> bool {
        let path = folder.path_of(file);
        let action = Action {
            kind: ActionKind::FileOperation,
            name: "file_read".to_owned(),
            operation: "read".to_owned(),
            args: Json::object().with("path", path.as_str()),
            path,
            cwd: folder.path(),
            door: DOOR.to_owned(),
            ..Action::default()
        };
        let proposal =
            Proposal { action, caller: caller.clone(), agent: agent.to_owned(), session: session.to_owned() };
        self.engine().consider(&proposal).is_ok_and(|decision| {
            matches!(decision.effect, Effect::Allow | Effect::Redact)
                && decision.taints.is_empty()
                && decision.approval.is_none()
        })
    }
}

#[cfg(test)]
pub(super) mod fixture;
#[cfg(test)]
mod tests;
