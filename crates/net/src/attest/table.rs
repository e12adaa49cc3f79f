//! Who waits for which answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::error::{EngineEnd, Stage};
use super::messages::{Answer, EngineError};

/// What becomes of a call.
#[derive(Debug)]
pub(super) enum Outcome {
    Result(Box<RawValue>),
    Refused(EngineError),
    Broken(&'static str),
    TooLong,
    Ended(EngineEnd),
}

/// The calls that are not settled.
#[derive(Debug, Default)]
pub(super) struct Table {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: HashMap<u64, Waiting>,
    end: Option<EngineEnd>,
}

#[derive(Debug)]
struct Waiting {
    /// What is to be written, until the writer takes it. It is here so that a call that is given up leaves nothing behind.
    line: Option<Vec<u8>>,
    stage: Stage,
    outcome: oneshot::Sender<Outcome>,
}

/// A call's place in the table; it is freed when this is dropped.
#[derive(Debug)]
pub(super) struct Registered<'a> {
    table: &'a Table,
    id: u64,
}

impl Registered<'_> {
    /// How far the call is.
    pub(super) fn stage(&self) -> Stage {
        self.table.state().calls.get(&self.id).map_or(Stage::Answer, |waiting| waiting.stage)
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.table.state().calls.remove(&self.id);
    }
}

impl Table {
    /// Takes a place for a request. Ids are never used twice.
    pub(super) fn register(
        &self,
        id: u64,
        line: Vec<u8>,
    ) -> Result<(Registered<'_>, oneshot::Receiver<Outcome>), EngineEnd> {
        let mut state = self.state();
        if let Some(end) = &state.end {
            return Err(end.clone());
        }
        let (outcome, receiver) = oneshot::channel();
        state.calls.insert(id, Waiting { line: Some(line), stage: Stage::Write, outcome });
        Ok((Registered { table: self, id }, receiver))
    }

    /// What to write for a call; none if nobody waits for it any more.
    pub(super) fn begin(&self, id: u64) -> Option<Vec<u8>> {
        self.state().calls.get_mut(&id)?.line.take()
    }

    /// The engine has the whole request.
    pub(super) fn written(&self, id: u64) {
        if let Some(waiting) = self.state().calls.get_mut(&id) {
            waiting.stage = Stage::Answer;
        }
    }

    /// An answer came; false if nobody waits for it. An answer to what was not sent yet is none.
    pub(super) fn answer(&self, id: u64, answer: Answer<'_>) -> bool {
        let waiting = {
            let mut state = self.state();
            match state.calls.get(&id) {
                Some(waiting) if waiting.line.is_none() => state.calls.remove(&id),
                _ => None,
            }
        };
        let Some(waiting) = waiting else { return false };
        let outcome = match answer {
            Answer::Result(result) => Outcome::Result(result.to_owned()),
            Answer::Error(error) => Outcome::Refused(error),
            Answer::Broken(problem) => Outcome::Broken(problem),
        };
        waiting.outcome.send(outcome).is_ok()
    }

    /// An answer over the limit came. It cannot be told whose it is, unless only one call waits for an answer: the others keep
    /// waiting.
    pub(super) fn too_long(&self) {
        let mut state = self.state();
        let mut begun = state.calls.iter().filter(|(_, waiting)| waiting.line.is_none()).map(|(id, _)| *id);
        if let (Some(id), None) = (begun.next(), begun.next()) {
            drop(begun);
            if let Some(waiting) = state.calls.remove(&id) {
                let _ = waiting.outcome.send(Outcome::TooLong);
            }
        }
    }

    /// The engine is gone: tells everybody who waits, and everybody who comes.
    pub(super) fn close(&self, end: &EngineEnd) {
        let calls = {
            let mut state = self.state();
            state.end = Some(end.clone());
            std::mem::take(&mut state.calls)
        };
        for waiting in calls.into_values() {
            let _ = waiting.outcome.send(Outcome::Ended(end.clone()));
        }
    }

    /// How the engine ended, if it did.
    pub(super) fn end(&self) -> Option<EngineEnd> {
        self.state().end.clone()
    }

    /// How many calls wait.
    pub(super) fn waiting(&self) -> usize {
        self.state().calls.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    proptest! {
        /// In whatever order answers come, each goes to its call, once.
        #[test]
        fn answers_find_their_calls(
            order in Just((1..=20_u64).collect::<Vec<_>>()).prop_shuffle(),
            given_up in proptest::collection::hash_set(1..=20_u64, 0..10),
        ) {
            let table = Table::default();
            let mut calls = HashMap::new();
            for id in 1..=20 {
                calls.insert(id, table.register(id, vec![b'x']).unwrap());
            }
            for id in 1..=20 {
                prop_assert_eq!(table.begin(id), Some(vec![b'x']));
            }
            for id in &given_up {
                calls.remove(id);
            }
            for id in order {
                let answer = raw(&id.to_string());
                prop_assert_eq!(table.answer(id, Answer::Result(&answer)), !given_up.contains(&id));
                prop_assert!(!table.answer(id, Answer::Result(&answer)));
            }
            for (id, (_registered, mut receiver)) in calls {
                let Ok(Outcome::Result(result)) = receiver.try_recv() else { panic!("{id} has no result") };
                prop_assert_eq!(result.get(), id.to_string());
            }
            prop_assert_eq!(table.waiting(), 0);
        }
    }

    #[test]
    fn an_answer_to_what_was_not_sent_is_none() {
        let table = Table::default();
        let (registered, mut receiver) = table.register(1, vec![b'x']).unwrap();
        assert!(!table.answer(1, Answer::Result(&raw("1"))));
        assert!(receiver.try_recv().is_err());
        assert_eq!(registered.stage(), Stage::Write);
        table.begin(1);
        assert_eq!(registered.stage(), Stage::Write);
        table.written(1);
        assert_eq!(registered.stage(), Stage::Answer);
        assert!(table.answer(1, Answer::Result(&raw("1"))));
    }

    #[test]
    fn a_call_that_is_given_up_is_not_sent() {
        let table = Table::default();
        drop(table.register(1, vec![b'x']).unwrap());
        assert_eq!(table.begin(1), None);
    }

    #[test]
    fn a_long_answer_ends_the_only_call_and_none_of_several() {
        let table = Table::default();
        let (_first, mut of_first) = table.register(1, vec![]).unwrap();
        let (second, mut of_second) = table.register(2, vec![]).unwrap();
        let (_queued, mut of_queued) = table.register(3, vec![]).unwrap();
        table.begin(1);
        table.begin(2);
        table.too_long();
        assert!(of_first.try_recv().is_err() && of_second.try_recv().is_err());
        drop(second);
        table.too_long();
        assert!(matches!(of_first.try_recv(), Ok(Outcome::TooLong)));
        assert!(of_queued.try_recv().is_err());
    }

    #[test]
    fn the_end_reaches_who_waits_and_who_comes() {
        let table = Table::default();
        let (_call, mut receiver) = table.register(1, vec![]).unwrap();
        let end = EngineEnd { status: None, stderr: "help".into() };
        table.close(&end);
        assert!(matches!(receiver.try_recv(), Ok(Outcome::Ended(told)) if told == end));
        assert_eq!(table.register(2, vec![]).unwrap_err(), end);
        assert_eq!(table.end(), Some(end));
        assert_eq!(table.waiting(), 0);
    }
}
