//! Results of two suites, joined by the names of their tests.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::effect::Quantity;

/// Evaluated runs of one test. Runs that could not be evaluated are not among them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestRuns {
    /// Name of the test.
    pub name: String,
    /// Score of each run, in points from 0 to 100.
    pub scores: Vec<f64>,
    /// Cost of each run that has one.
    pub costs: Vec<f64>,
    /// Duration of each run.
    pub latencies: Vec<f64>,
    /// Successful runs.
    pub successes: u32,
    /// Failed runs.
    pub failures: u32,
}

impl TestRuns {
    /// The sample of a quantity; success has counts instead.
    pub(super) fn sample(&self, quantity: Quantity) -> Option<&[f64]> {
        match quantity {
            Quantity::Score => Some(&self.scores),
            Quantity::Cost => Some(&self.costs),
            Quantity::Latency => Some(&self.latencies),
            Quantity::Success => None,
        }
    }
}

/// Tests of two results by name.
pub(super) struct Joined<'a> {
    before: Pooled<'a>,
    after: Pooled<'a>,
}

/// A test's name and its runs in the earlier and the later result.
type Row<'a> = (&'a str, (Option<&'a TestRuns>, Option<&'a TestRuns>));

impl<'a> Joined<'a> {
    pub(super) fn new(before: &'a [TestRuns], after: &'a [TestRuns]) -> Joined<'a> {
        Joined { before: Pooled::new(before), after: Pooled::new(after) }
    }

    /// All tests, in the order of the later result, then those that only the earlier one has.
    pub(super) fn tests(&self) -> impl Iterator<Item = Row<'_>> {
        let later = self
            .after
            .tests
            .iter()
            .map(|test| (test.name.as_str(), (self.before.get(&test.name), Some(&**test))));
        let removed = self.before.tests.iter().filter(|test| self.after.get(&test.name).is_none());
        later.chain(removed.map(|test| (test.name.as_str(), (Some(&**test), None))))
    }

    /// Tests that both results have, as (before, after).
    pub(super) fn common(&self) -> impl Iterator<Item = (&TestRuns, &TestRuns)> {
        self.tests().filter_map(|(_, (before, after))| Some((before?, after?)))
    }
}

/// Tests of one result, entries of the same name put together.
struct Pooled<'a> {
    tests: Vec<Cow<'a, TestRuns>>,
    positions: BTreeMap<&'a str, usize>,
}

impl<'a> Pooled<'a> {
    fn new(entries: &'a [TestRuns]) -> Pooled<'a> {
        let mut pooled = Pooled { tests: Vec::with_capacity(entries.len()), positions: BTreeMap::new() };
        for entry in entries {
            let next = pooled.tests.len();
            let position = *pooled.positions.entry(&entry.name).or_insert(next);
            match pooled.tests.get_mut(position) {
                Some(test) => {
                    let test = test.to_mut();
                    test.scores.extend(&entry.scores);
                    test.costs.extend(&entry.costs);
                    test.latencies.extend(&entry.latencies);
                    test.successes = test.successes.saturating_add(entry.successes);
                    test.failures = test.failures.saturating_add(entry.failures);
                }
                None => pooled.tests.push(Cow::Borrowed(entry)),
            }
        }
        pooled
    }

    fn get(&self, name: &str) -> Option<&TestRuns> {
        self.positions.get(name).and_then(|position| self.tests.get(*position)).map(|test| &**test)
    }
}
