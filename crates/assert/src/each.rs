//! The verdict of a check on a target that leads to several values: it holds for each of them.

use crate::target::Target;
use crate::trace::Step;
use crate::tree::walk;
use crate::verdict::Verdict;

/// Fold over the values of a target. Only one verdict is kept, however many values there are.
#[derive(Debug, Default)]
pub(crate) struct EachValue {
    steps: usize,
    values: usize,
    /// The finding on the first value, if it holds there.
    held: Option<String>,
    /// The first failure; one that is not soft outweighs an earlier one that is.
    failed: Option<Verdict>,
}

/// Judges the value in a step, with the path to it: what holds, or the failure. `None`: there is no value in this step.
pub(crate) type JudgeStep<'j> = dyn FnMut(&Step<'_>, &str) -> Option<Result<String, Verdict>> + 'j;

impl EachValue {
    /// The fold for a check on this target, if the check is about each value there.
    pub(crate) fn of(target: &Target, is_negative: bool) -> Option<EachValue> {
        (target.is_every_step() || (is_negative && target.is_in_steps())).then(EachValue::default)
    }

    /// Folds the next step of the outermost trace.
    pub(crate) fn step(&mut self, target: &Target, step: &Step<'_>, judge: &mut JudgeStep<'_>) {
        let index = self.steps;
        self.steps = self.steps.saturating_add(1);
        if !target.matches(step) {
            return;
        }
        if target.is_every_step() {
            walk::steps(index, step, &mut |step, _, place| self.value(target, step, place, judge));
        } else {
            self.value(target, step, &walk::StepPath::outermost(index), judge);
        }
    }

    fn value(
        &mut self,
        target: &Target,
        step: &Step<'_>,
        place: &walk::StepPath<'_>,
        judge: &mut JudgeStep<'_>,
    ) {
        // Nothing outweighs a hard failure.
        if self.failed.as_ref().is_some_and(|verdict| verdict.status.is_hard()) {
            return;
        }
        // The first step of a name is known by the path as it was written.
        let as_written = self.values == 0 && !target.is_every_step();
        let path = if as_written { target.path().to_owned() } else { target.path_in(place) };
        let Some(judged) = judge(step, &path) else { return };
        self.values = self.values.saturating_add(1);
        match judged {
            Ok(held) => {
                self.held.get_or_insert(held);
            }
            Err(verdict) if self.failed.is_none() || verdict.status.is_hard() => self.failed = Some(verdict),
            Err(_) => {}
        }
    }

    /// The verdict on the steps so far. Without any value nothing was checked.
    pub(crate) fn verdict(&self, target: &Target) -> Verdict {
        match (&self.failed, &self.held) {
            (Some(failed), _) => failed.clone(),
            (None, None) => target.absent_everywhere(),
            (None, Some(held)) if self.values == 1 => Verdict::pass(format!("`{}` {held}", target.path())),
            (None, Some(held)) => {
                let checked = format!("checked in each of {} steps", self.values);
                Verdict::pass(format!("`{}` {held} ({checked})", target.path()))
            }
        }
    }
}
