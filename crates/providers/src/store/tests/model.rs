//! The history against a slow, obvious model.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Record(Vec<(u8, u8, f64)>),
    Plugin { trace: u8, id: u8, score: f64 },
    Pass { hours: u8 },
    Reopen,
    Look { window: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let score = || (0..=10_u8).prop_map(|tenths| f64::from(tenths) / 10.0);
    prop_oneof![
        6 => prop::collection::vec((0..3_u8, 0..2_u8, score()), 0..6).prop_map(Step::Record),
        2 => (0..2_u8, 0..3_u8, score()).prop_map(|(trace, id, score)| Step::Plugin { trace, id, score }),
        2 => (0..40_u8).prop_map(|hours| Step::Pass { hours }),
        1 => Just(Step::Reopen),
        3 => (0..8_usize).prop_map(|window| Step::Look { window }),
    ]
}

/// Every row ever added, in order.
#[derive(Default)]
struct Model {
    rows: Vec<(Row, i64)>,
    now: i64,
    max_rows: usize,
    max_age: i64,
}

impl Model {
    /// Rows that are kept, newest first: young, and among the newest of their id.
    fn kept(&self) -> Vec<usize> {
        let mut kept = Vec::new();
        for (place, (row, at)) in self.rows.iter().enumerate().rev() {
            let newer =
                self.rows[place + 1..].iter().filter(|(other, _)| other.assertion_id == row.assertion_id);
            if newer.count() < self.max_rows && *at >= self.now - self.max_age {
                kept.push(place);
            }
        }
        kept
    }

    fn scores(&self, choose: impl Fn(&Row) -> bool, window: usize) -> Vec<f64> {
        let kept = self.kept().into_iter().map(|place| &self.rows[place].0);
        kept.filter(|row| choose(row)).map(|row| row.score).take(window).collect()
    }

    fn replace_plugin(&mut self, row: Row) {
        let same = |other: &Row| {
            other.kind == "plugin" && other.trace_id == row.trace_id && other.assertion_id == row.assertion_id
        };
        match self.kept().into_iter().find(|place| same(&self.rows[*place].0)) {
            Some(place) => self.rows[place].0.score = row.score,
            None => self.rows.push((row, self.now)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_history_is_that_of_the_model(
        max_rows in 1..12_u64,
        days in 1..4_u64,
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let bench = Bench::new();
        let options = StoreOptions { history_max_rows: max_rows, history_max_age_days: days, ..StoreOptions::default() };
        let mut store = bench.open(options);
        let mut model = Model {
            max_rows: usize::try_from(max_rows).unwrap(),
            max_age: i64::try_from(days).unwrap() * DAY,
            ..Model::default()
        };
        for step in steps.into_iter().chain([Step::Look { window: 5 }, Step::Look { window: 100 }]) {
            match step {
                Step::Record(batch) => {
                    let rows = batch.iter().map(|(id, key, score)| row("t", &format!("a{id}"), &format!("k{key}"), *score));
                    let rows: Vec<Row> = rows.collect();
                    model.rows.extend(rows.iter().map(|row| (row.clone(), model.now)));
                    store.record(rows);
                }
                Step::Plugin { trace, id, score } => {
                    let row = plugin(&format!("t{trace}"), &format!("a{id}"), score, "pass");
                    store.flush();
                    model.replace_plugin(row.clone());
                    store.replace_plugin(row);
                }
                Step::Pass { hours } => {
                    // Before, because the writer looks at the clock when it writes.
                    store.flush();
                    let micros = i64::from(hours) * DAY / 24;
                    bench.clock.advance(micros);
                    model.now += micros;
                }
                Step::Reopen => {
                    drop(store);
                    store = bench.open(options);
                }
                Step::Look { window } => look(&store, &model, window)?,
            }
        }
        prop_assert_eq!(store.dropped(), 0);
    }
}

fn look(store: &Store, model: &Model, window: usize) -> Result<(), TestCaseError> {
    for name in 0..3 {
        let (id, key) = (format!("a{name}"), format!("k{name}"));
        prop_assert_eq!(store.scores(&key, window).unwrap(), model.scores(|row| row.key == key, window));
        let expected = model.scores(|row| row.assertion_id == id, window);
        let drift = store.drift(&id, window).unwrap();
        prop_assert_eq!(drift.count, u64::try_from(expected.len()).unwrap());
        prop_assert_eq!(drift.latest.to_bits(), expected.first().copied().unwrap_or(0.0).to_bits());
        let count = expected.len().max(1) as f64;
        let mean = expected.iter().sum::<f64>() / count;
        let variance = expected.iter().map(|score| (score - mean) * (score - mean)).sum::<f64>() / count;
        prop_assert!((drift.mean - mean).abs() < 1e-9, "{} is not {mean}", drift.mean);
        prop_assert!(
            (drift.stddev - variance.sqrt()).abs() < 1e-7,
            "{} is not {}",
            drift.stddev,
            variance.sqrt()
        );
    }
    Ok(())
}
