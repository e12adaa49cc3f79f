//! Simulated comparisons: how often equal agents alarm, and how often a loss is found.
//!
//! `PROCTOR_FULL=1` runs the whole counts instead of a twentieth; `PROCTOR_SEED` repeats a run.

use proctor_runner::statistics::{Comparison, Regression, Rule, TestRuns, Verdict};

const TESTS: usize = 50;

fn is_full() -> bool {
    std::env::var("PROCTOR_FULL").is_ok_and(|value| value == "1")
}

fn count(full: usize) -> usize {
    if is_full() { full } else { full / 20 }
}

fn seed() -> u64 {
    let seed = std::env::var("PROCTOR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_115);
    println!("seed {seed} (PROCTOR_SEED)");
    seed
}

/// The alarms that may be seen if the true rate is 6 %: exactly that share of the whole count, and of a twentieth three deviations more,
/// so that another seed does not fail by chance.
fn allowed(comparisons: usize) -> f64 {
    let expected = comparisons as f64 * 0.06;
    if is_full() { expected } else { expected + 3.0 * (expected * 0.94).sqrt() }
}

/// xorshift64*, independent of the generator that the permutation test draws from.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Uniform in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// How the score of a run follows from its success.
#[derive(Clone, Copy)]
enum Scores {
    /// 100 or 0.
    Binary,
    /// Two clusters with little spread: samples of few runs look constant and far apart.
    Clusters,
    /// Continuous, nearly independent of success.
    Continuous,
    /// Always the same.
    Constant,
}

/// Behaviour of an agent in a test.
#[derive(Clone, Copy)]
struct Behaviour {
    success: f64,
    scores: Scores,
    /// Deviation of the logarithms of cost and latency.
    spread: f64,
}

impl Behaviour {
    /// Behaviours of every kind, by turns.
    fn mixed(index: usize) -> Behaviour {
        let success = [1.0, 0.98, 0.9, 0.75, 0.5, 0.3, 0.05][index % 7];
        let scores =
            [Scores::Binary, Scores::Clusters, Scores::Continuous, Scores::Clusters, Scores::Constant]
                [index % 5];
        Behaviour { success, scores, spread: [0.02, 0.3, 1.0][index % 3] }
    }

    fn run(self, name: &str, runs: usize, random: &mut Random) -> TestRuns {
        let mut test = TestRuns { name: name.to_owned(), ..TestRuns::default() };
        for _ in 0..runs {
            let success = random.unit() <= self.success;
            if success {
                test.successes += 1;
            } else {
                test.failures += 1;
            }
            let score = match self.scores {
                Scores::Binary => f64::from(u8::from(success)) * 100.0,
                Scores::Clusters => (if success { 95.0 } else { 30.0 }) + random.normal(),
                Scores::Continuous => 70.0 + 15.0 * random.normal(),
                Scores::Constant => 80.0,
            };
            test.scores.push(score.clamp(0.0, 100.0));
            test.costs.push(0.01 * (self.spread * random.normal()).exp());
            test.latencies.push(3.0 * (self.spread * random.normal()).exp());
        }
        test
    }
}

/// A result of a suite whose tests behave so.
fn suite(behaviours: &[Behaviour], runs: usize, random: &mut Random) -> Vec<TestRuns> {
    behaviours
        .iter()
        .enumerate()
        .map(|(index, test)| test.run(&format!("test-{index}"), runs, random))
        .collect()
}

/// Whether a comparison says worse anywhere: of a test, the suite, cost or latency.
fn says_worse(comparison: &Comparison) -> bool {
    matches!(comparison.regression, Regression::Shown { .. })
        || comparison.verdict == Verdict::Worse
        || comparison.suite.iter().any(|effect| effect.verdict == Verdict::Worse)
        || comparison.tests.iter().any(|test| {
            test.verdict == Verdict::Worse
                || test.effects.iter().any(|effect| effect.verdict == Verdict::Worse)
        })
}

/// Comparisons of equal agents that say worse.
fn false_alarms(behaviours: &[Behaviour], runs: usize, comparisons: usize, seed: u64) -> usize {
    let mut random = Random::new(seed);
    (0..comparisons)
        .filter(|_| {
            let before = suite(behaviours, runs, &mut random);
            let after = suite(behaviours, runs, &mut random);
            says_worse(&Comparison::new(&before, &after, &Rule::default().with_seed(random.next())))
        })
        .count()
}

#[test]
fn equal_agents_rarely_alarm() {
    let (seed, comparisons) = (seed(), count(1_000));
    let mixed: Vec<Behaviour> = (0..TESTS).map(Behaviour::mixed).collect();
    // The hardest kind alone: half of the runs fail, and scores of few runs are constant or nearly so.
    let clusters = [Behaviour { success: 0.5, scores: Scores::Clusters, spread: 1.0 }; TESTS];
    for (name, behaviours) in [("mixed", &mixed[..]), ("clusters", &clusters[..])] {
        for runs in [5, 10] {
            let alarms = false_alarms(behaviours, runs, comparisons, seed ^ runs as u64);
            println!("{name}, {runs} runs: {alarms} of {comparisons} comparisons of equal agents alarm");
            assert!(alarms as f64 <= allowed(comparisons), "{name}, {runs} runs: {alarms} of {comparisons}");
        }
    }
}

#[test]
fn a_test_that_falls_is_found() {
    let mut random = Random::new(seed());
    let comparisons = count(1_000);
    for scores in [Scores::Binary, Scores::Clusters] {
        let mut found = 0;
        for _ in 0..comparisons {
            let before = [Behaviour { success: 0.9, scores, spread: 0.3 }; 10];
            let mut after = before;
            after[3].success = 0.3;
            let before = suite(&before, 30, &mut random);
            let after = suite(&after, 30, &mut random);
            let comparison = Comparison::new(&before, &after, &Rule::default());
            let is_named = matches!(&comparison.regression, Regression::Shown { tests, .. } if tests.contains(&"test-3".to_owned()));
            found += usize::from(is_named && comparison.tests[3].verdict == Verdict::Worse);
        }
        println!("{found} of {comparisons} losses are found");
        assert!(found * 100 >= comparisons * 90, "{found} of {comparisons}");
    }
}

#[test]
fn a_small_loss_of_every_test_is_found_by_the_suite() {
    let mut random = Random::new(seed());
    let comparisons = count(200);
    let mut found = 0;
    for _ in 0..comparisons {
        let before = [Behaviour { success: 0.9, scores: Scores::Clusters, spread: 0.3 }; 40];
        let after = [Behaviour { success: 0.65, ..before[0] }; 40];
        let comparison = Comparison::new(
            &suite(&before, 5, &mut random),
            &suite(&after, 5, &mut random),
            &Rule::default(),
        );
        found += usize::from(matches!(comparison.regression, Regression::Shown { suite: true, .. }));
    }
    println!("{found} of {comparisons} losses are found");
    assert!(found * 100 >= comparisons * 90, "{found} of {comparisons}");
}

#[test]
fn the_proposed_number_of_runs_decides() {
    let mut random = Random::new(seed());
    let behaviours = [Behaviour { success: 0.7, scores: Scores::Clusters, spread: 0.3 }; 12];
    let (mut undecided, mut decided) = (0_u32, 0_u32);
    for _ in 0..count(400) {
        let mut compare = |runs: usize| {
            let before = suite(&behaviours, runs, &mut random);
            Comparison::new(&before, &suite(&behaviours, runs, &mut random), &Rule::default()).regression
        };
        let Regression::Undecided { runs, .. } = compare(4) else { continue };
        undecided += 1;
        let runs = runs.expect("equal agents can be decided") as usize;
        assert!(runs > 4);
        decided += u32::from(!matches!(compare(runs), Regression::Undecided { .. }));
    }
    println!("{decided} of {undecided} are decided by the proposed number of runs");
    // Four of five are promised. So few decisions are in doubt only if they are fewer than chance explains: four deviations of a binomial
    // distribution, so that no seed of many fails by chance.
    let promised = 0.8 * f64::from(undecided);
    let least = promised - 4.0 * (0.2 * promised).sqrt();
    assert!(undecided > 0 && f64::from(decided) >= least, "{decided} of {undecided}, at least {least:.1}");
}
