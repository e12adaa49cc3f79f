//! Depth-first traversal of sub-traces, with the path of each step.

use std::fmt;

use crate::trace::{Head, Step, Trace};

/// The path of a step: its index, and the path of the agent call above it.
#[derive(Clone, Copy)]
pub(crate) struct StepPath<'p> {
    above: Option<&'p StepPath<'p>>,
    index: usize,
}

impl StepPath<'_> {
    /// The path of a step of the outermost trace.
    pub(crate) fn outermost(index: usize) -> StepPath<'static> {
        StepPath { above: None, index }
    }

    /// Number of agent calls above; none above a step of the outermost trace.
    pub(super) fn depth(&self) -> usize {
        self.above.map_or(0, |above| above.depth() + 1)
    }
}

impl fmt::Display for StepPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            write!(formatter, "{above}.sub_trace.")?;
        }
        write!(formatter, "steps[{}]", self.index)
    }
}

/// An owned path. Overwriting it reuses its memory.
#[derive(Clone, Default)]
pub(super) struct StepPathBuf(Vec<usize>);

impl StepPathBuf {
    pub(super) fn set(&mut self, place: &StepPath<'_>) {
        self.0.clear();
        let mut here = Some(place);
        while let Some(place) = here {
            self.0.push(place.index);
            here = place.above;
        }
    }
}

impl fmt::Display for StepPathBuf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, index) in self.0.iter().rev().enumerate() {
            let above = if number == 0 { "" } else { ".sub_trace." };
            write!(formatter, "{above}steps[{index}]")?;
        }
        Ok(())
    }
}

/// Visitor of a trace, with the head of its parent (none if that is the outermost) and the step that it belongs to.
pub(super) type VisitTrace<'v> = dyn FnMut(&Trace<'_>, Option<&Head<'_>>, &StepPath<'_>) + 'v;

/// All traces below a step of the outermost trace, depth first.
pub(super) fn traces(index: usize, step: &Step<'_>, visit: &mut VisitTrace<'_>) {
    fn descend(step: &Step<'_>, above: Option<&Head<'_>>, place: &StepPath<'_>, visit: &mut VisitTrace<'_>) {
        let Some(below) = step.child() else { return };
        visit(below, above, place);
        for (index, step) in below.steps.iter().enumerate() {
            descend(step, Some(&below.head), &StepPath { above: Some(place), index }, visit);
        }
    }
    descend(step, None, &StepPath { above: None, index }, visit);
}

/// Visitor of a step, with the head of its trace (none if that is the outermost) and its path.
pub(crate) type VisitStep<'v> = dyn FnMut(&Step<'_>, Option<&Head<'_>>, &StepPath<'_>) + 'v;

/// A step of the outermost trace and all steps below it, depth first.
pub(crate) fn steps(index: usize, step: &Step<'_>, visit: &mut VisitStep<'_>) {
    fn descend(step: &Step<'_>, within: Option<&Head<'_>>, place: &StepPath<'_>, visit: &mut VisitStep<'_>) {
        visit(step, within, place);
        let Some(below) = step.child() else { return };
        for (index, step) in below.steps.iter().enumerate() {
            descend(step, Some(&below.head), &StepPath { above: Some(place), index }, visit);
        }
    }
    descend(step, None, &StepPath { above: None, index }, visit);
}
