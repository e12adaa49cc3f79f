//! The read-set of a decision: its input, and every question about the past with the answer it got. With the policy's
//! sources it is all that is needed to derive the decision again.

mod json;

use std::cell::RefCell;
use std::collections::HashMap;

use proctor_core::digest::Digest;
use proctor_core::json::Json;

use crate::input::Input;
use crate::question::{Answer, AnswerSource, Question};

pub use json::ReadSetError;

/// The most different questions that one decision may ask. Further ones get no answer, which denies.
pub const MAX_QUESTIONS: usize = 1024;

/// Inputs and answers that a decision read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSet {
    /// Input of the decision.
    pub input: Input,
    /// Questions about the past and their answers, in order of first asking.
    pub asked: Vec<(Question, Answer)>,
    /// The evaluator's semantic version.
    pub semantics: String,
    /// Digests of all policy sources in force.
    pub sources: Vec<Digest>,
}

impl ReadSet {
    /// The JSON form, without the members that are empty.
    pub fn to_json(&self) -> Json {
        json::write(self)
    }

    /// Reads the JSON form; unknown members are refused.
    pub fn from_json(value: &Json) -> Result<ReadSet, ReadSetError> {
        json::read(value)
    }
}

/// An answer source that records each question with its answer, once.
pub struct RecordingSource<'a> {
    answers: &'a dyn AnswerSource,
    asked: RefCell<Asked>,
}

#[derive(Default)]
struct Asked {
    pairs: Vec<(Question, Answer)>,
    /// Index of each question in `pairs`; only kept once there are many.
    places: HashMap<Question, usize>,
}

/// Up to so many questions are looked for one by one.
const FEW: usize = 16;

impl Asked {
    fn find(&self, question: &Question) -> Option<Answer> {
        if self.pairs.len() <= FEW {
            return self.pairs.iter().find(|(asked, _)| asked == question).map(|(_, answer)| answer.clone());
        }
        let place = self.places.get(question)?;
        self.pairs.get(*place).map(|(_, answer)| answer.clone())
    }

    fn push(&mut self, question: &Question, answer: &Answer) {
        self.pairs.push((question.clone(), answer.clone()));
        if self.pairs.len() > FEW {
            let from = self.places.len();
            let unplaced = self.pairs.iter().enumerate().skip(from);
            self.places.extend(unplaced.map(|(place, (question, _))| (question.clone(), place)));
        }
    }
}

impl<'a> RecordingSource<'a> {
    /// Wraps another source.
    pub fn new(answers: &'a dyn AnswerSource) -> RecordingSource<'a> {
        RecordingSource { answers, asked: RefCell::default() }
    }

    /// Questions and answers, in order of first asking.
    pub fn into_asked(self) -> Vec<(Question, Answer)> {
        self.asked.into_inner().pairs
    }
}

impl AnswerSource for RecordingSource<'_> {
    /// A question that was asked before gets the same answer. One that the source cannot answer is not kept: it has no
    /// answer in the read-set either.
    fn answer(&self, question: &Question) -> Option<Answer> {
        let mut asked = self.asked.borrow_mut();
        if let Some(answer) = asked.find(question) {
            return Some(answer);
        }
        if asked.pairs.len() >= MAX_QUESTIONS {
            return None;
        }
        let answer = self.answers.answer(question)?;
        asked.push(question, &answer);
        Some(answer)
    }
}

/// An answer source that replays a read-set, and knows nothing else.
pub struct ReplaySource<'a> {
    asked: &'a [(Question, Answer)],
}

impl<'a> ReplaySource<'a> {
    /// Creates a source from the recorded answers.
    pub fn new(asked: &'a [(Question, Answer)]) -> ReplaySource<'a> {
        ReplaySource { asked }
    }
}

impl AnswerSource for ReplaySource<'_> {
    fn answer(&self, question: &Question) -> Option<Answer> {
        self.asked.iter().find(|(asked, _)| asked == question).map(|(_, answer)| answer.clone())
    }
}

#[cfg(test)]
mod tests;
