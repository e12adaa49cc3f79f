//! The reply to `evaluate_batch`, shortened until it fits the line limit of all clients.

use serde::Serialize;

use super::rpc::{cut, respond, written_length};
use super::{MAX_ASSERTIONS, MAX_LONG_REPLY, MAX_REPLY};

/// The answer to `evaluate_batch`.
#[derive(Debug, Clone, Serialize)]
pub struct BatchAnswer {
    /// Results, one for each assertion that ran.
    pub results: Vec<AssertionResult>,
    /// The cost in dollars.
    pub total_cost: f64,
    /// The sum of the results' times.
    pub total_duration_ms: u64,
    /// Whether the engine was told that this is a simulation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// The result of one assertion.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AssertionResult {
    /// The assertion.
    pub assertion_id: String,
    /// `pass`, `soft_fail` or `hard_fail`.
    pub status: &'static str,
    /// Score, from 0 to 1.
    pub score: f64,
    /// Explanation.
    pub explanation: String,
    /// A suffix of the explanation that is never shortened.
    #[serde(skip)]
    pub note: String,
    /// The cost in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The caller's request id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// Diagnostics of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<u8>,
    /// The assertion's type.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Path in the trace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trace_node_path: String,
    /// The expected value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub expected: String,
    /// The actual value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub actual: String,
    /// The suggested remedy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub suggested_action: String,
    /// Origin of the threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_source: Option<&'static str>,
    /// Details of the judge's score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_metadata: Option<Box<JudgeAnswer>>,
}

/// Details of a judge's score.
#[derive(Debug, Clone, Serialize)]
pub struct JudgeAnswer {
    /// The model.
    pub model: String,
    /// The rubric.
    pub rubric_name: String,
    /// The rubric's version.
    pub rubric_version: String,
    /// Name of the question.
    pub prompt_hash: String,
    /// Scores of the samples.
    pub sample_scores: Vec<f64>,
    /// Mean of the scores.
    pub score_mean: f64,
    /// Standard deviation of the scores.
    pub score_stddev: f64,
    /// Whether the scores lie far apart.
    pub high_variance: bool,
    /// The scores of changed texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bias_probes: Vec<ProbeAnswer>,
    /// Agreement of the rubric with people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationAnswer>,
}

/// The score of a changed text.
#[derive(Debug, Clone, Serialize)]
pub struct ProbeAnswer {
    /// Name of the change.
    pub name: String,
    /// The score.
    pub score: f64,
    /// The difference from the score without the change.
    pub delta: f64,
}

/// Agreement of a rubric with people.
#[derive(Debug, Clone, Serialize)]
pub struct CalibrationAnswer {
    /// Number of labels.
    pub label_count: u64,
    /// Share of equal verdicts.
    pub agreement: f64,
    /// Cohen's kappa.
    pub cohen_kappa: f64,
    /// Area under the curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roc_auc: Option<f64>,
}

/// Detail levels of a result, from everything to what no client can do without.
struct TextBudget {
    explanation: usize,
    passed: usize,
    evidence: usize,
    diagnostics: bool,
    costs: bool,
}

const TEXT_BUDGETS: [TextBudget; 6] = [
    TextBudget { explanation: 2_000, passed: 2_000, evidence: 600, diagnostics: true, costs: true },
    TextBudget { explanation: 600, passed: 80, evidence: 300, diagnostics: true, costs: true },
    TextBudget { explanation: 300, passed: 20, evidence: 80, diagnostics: true, costs: true },
    TextBudget { explanation: 160, passed: 0, evidence: 0, diagnostics: false, costs: true },
    TextBudget { explanation: 60, passed: 0, evidence: 0, diagnostics: false, costs: false },
    TextBudget { explanation: 0, passed: 0, evidence: 0, diagnostics: false, costs: false },
];

/// Lengths of reply lines that a client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Replies are shortened to this length where that is possible.
    pub usual: usize,
    /// No reply is longer than this.
    pub most: usize,
}

impl Default for ReplyLimits {
    fn default() -> ReplyLimits {
        ReplyLimits { usual: MAX_REPLY, most: MAX_LONG_REPLY }
    }
}

impl ReplyLimits {
    /// The limits of a client, from its name and from what it says it reads. The official Python client reads no line of 64 KiB, so that
    /// a longer one would break its session; the one for TypeScript reads lines of any length. Of others nothing is known: they get a long
    /// line only where the results fit into no short one, as from the released engine.
    pub fn of(client: Option<&str>, reads: Option<u64>) -> ReplyLimits {
        if let Some(bytes) = reads {
            let most = usize::try_from(bytes).unwrap_or(usize::MAX).clamp(MAX_REPLY, MAX_LONG_REPLY);
            return ReplyLimits { usual: most, most };
        }
        match client.map(str::to_ascii_lowercase).as_deref() {
            Some(name) if name.starts_with("attest-python") => {
                ReplyLimits { usual: MAX_REPLY, most: MAX_REPLY }
            }
            Some(name) if name.starts_with("attest-typescript") => {
                ReplyLimits { usual: MAX_LONG_REPLY, most: MAX_LONG_REPLY }
            }
            _ => ReplyLimits::default(),
        }
    }
}

/// The line that answers a batch, within the client's limits: what is optional goes first, then explanations get shorter, those of passes
/// before those of failures. `None` if there are too many results for any line (see [`fits`]).
pub fn batch_line(id: i64, answer: &BatchAnswer, limits: ReplyLimits) -> Option<Vec<u8>> {
    let line = |most: usize| {
        TEXT_BUDGETS.iter().map(|budget| respond(id, &within(answer, budget))).find(|line| line.len() <= most)
    };
    line(limits.usual).or_else(|| if limits.most > limits.usual { line(limits.most) } else { None })
}

/// Whether the results of assertions with these names fit into one answer at all.
pub fn fits<'a>(names: impl Iterator<Item = (&'a str, &'a str)>, limits: ReplyLimits) -> bool {
    // What remains of a result in the smallest budget, and of the answer around them.
    const RESULT: usize =
        r#"{"assertion_id":"","status":"hard_fail","score":1.2345678901234567e-300,"explanation":""},"#.len();
    const AROUND: usize = 320;
    let (mut length, mut count) = (AROUND, 0);
    for (assertion, request) in names {
        count += 1;
        length += RESULT + written_length(assertion);
        if !request.is_empty() {
            length += r#","request_id":"""#.len() + written_length(request);
        }
        if length > limits.most || (count > MAX_ASSERTIONS && length > MAX_REPLY) {
            return false;
        }
    }
    true
}

fn within(answer: &BatchAnswer, budget: &TextBudget) -> BatchAnswer {
    let shorten = |text: &str, longest: usize| {
        let kept = cut(text, longest);
        if kept.len() < text.len() && longest > 3 {
            return format!("{}…", cut(kept, longest - 3));
        }
        kept.to_owned()
    };
    let results = answer.results.iter().map(|result| {
        let passed = result.status == "pass";
        let evidence = if passed { budget.evidence.min(budget.passed) } else { budget.evidence };
        AssertionResult {
            assertion_id: result.assertion_id.clone(),
            status: result.status,
            score: result.score,
            explanation: format!(
                "{}{}",
                shorten(&result.explanation, if passed { budget.passed } else { budget.explanation }),
                result.note
            ),
            note: String::new(),
            // In the smallest budget only their sum is told.
            cost: result.cost.filter(|cost| budget.costs || (*cost != 0.0 && budget.explanation > 0)),
            duration_ms: result.duration_ms.filter(|_| budget.costs),
            request_id: result.request_id.clone(),
            layer: result.layer.filter(|_| budget.diagnostics),
            kind: if budget.diagnostics { shorten(&result.kind, 64) } else { String::new() },
            trace_node_path: if budget.diagnostics {
                shorten(&result.trace_node_path, 300)
            } else {
                String::new()
            },
            expected: shorten(&result.expected, evidence),
            actual: shorten(&result.actual, evidence),
            suggested_action: shorten(&result.suggested_action, evidence),
            threshold_source: result.threshold_source.filter(|_| budget.diagnostics),
            judge_metadata: result.judge_metadata.clone().filter(|_| budget.diagnostics),
        }
    });
    BatchAnswer {
        results: results.collect(),
        total_cost: answer.total_cost,
        total_duration_ms: answer.total_duration_ms,
        simulated: answer.simulated,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHORT: ReplyLimits = ReplyLimits { usual: MAX_REPLY, most: MAX_REPLY };

    fn answer(count: usize, explanation: &str, status: &'static str) -> BatchAnswer {
        let result = |index: usize| AssertionResult {
            assertion_id: format!("assert_{index:08x}"),
            status,
            explanation: explanation.to_owned(),
            cost: Some(0.0),
            duration_ms: Some(0),
            layer: Some(4),
            kind: "content".to_owned(),
            expected: explanation.to_owned(),
            ..AssertionResult::default()
        };
        BatchAnswer {
            results: (0..count).map(result).collect(),
            total_cost: 0.0,
            total_duration_ms: 0,
            simulated: false,
        }
    }

    #[test]
    fn small_answers_are_whole() {
        let line = batch_line(1, &answer(3, "because", "hard_fail"), SHORT).unwrap();
        let text = String::from_utf8(line).unwrap();
        assert_eq!(text.matches("because").count(), 6);
        assert!(text.ends_with('\n'));
        assert!(!text.contains("simulated"));
    }

    #[test]
    fn six_hundred_results_fit() {
        for status in ["pass", "hard_fail"] {
            let line = batch_line(1, &answer(600, &"long ".repeat(300), status), SHORT).unwrap();
            assert!(line.len() <= MAX_REPLY);
            let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(value["result"]["results"].as_array().unwrap().len(), 600);
        }
    }

    #[test]
    fn a_thousand_results_are_sent_whole_to_clients_that_read_long_lines() {
        let names: Vec<String> = (0..1000).map(|index| format!("assert_{index:08x}")).collect();
        let names = || names.iter().map(|name| (name.as_str(), ""));
        let whole = answer(1000, "because", "hard_fail");
        for (client, reads, long) in [
            (Some("attest-python"), None, false),
            (Some("attest-python"), Some(1 << 20), true),
            (Some("attest-typescript"), None, true),
            (Some("other"), None, true),
            (None, None, true),
            (None, Some(0), false),
        ] {
            let limits = ReplyLimits::of(client, reads);
            let line = batch_line(1, &whole, limits);
            assert_eq!((fits(names(), limits), line.is_some()), (long, long), "{client:?} {reads:?}");
            if let Some(line) = line {
                assert_eq!(String::from_utf8(line).unwrap().matches("because").count(), 2000);
            }
        }
        // Of a client that says nothing, a short line is expected where one can be.
        let line = batch_line(1, &answer(400, &"word ".repeat(60), "hard_fail"), ReplyLimits::default());
        assert!(line.unwrap().len() <= MAX_REPLY);
        let many = || std::iter::repeat_n(("a", ""), MAX_ASSERTIONS + 1);
        assert!(fits(many().skip(1), ReplyLimits::default()) && !fits(many(), ReplyLimits::default()));
        assert_eq!(ReplyLimits::of(None, Some(u64::MAX)).most, MAX_LONG_REPLY);
    }

    #[test]
    fn failures_keep_their_words_longer_than_passes() {
        let mut mixed = answer(300, &"word ".repeat(60), "pass");
        mixed.results[7].status = "hard_fail";
        let line = batch_line(1, &mixed, SHORT).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        let length = |index: usize| value["result"]["results"][index]["explanation"].as_str().unwrap().len();
        assert!(length(7) > length(8), "{} {}", length(7), length(8));
        assert!(length(7) > 200);
    }

    #[test]
    fn a_note_is_told_however_little_room_there_is() {
        let mut many = answer(500, &"word ".repeat(60), "hard_fail");
        many.results[0].note = " (20 were not run)".to_owned();
        let line = batch_line(1, &many, SHORT).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert!(
            value["result"]["results"][0]["explanation"].as_str().unwrap().ends_with(" (20 were not run)")
        );
    }

    proptest! {
        #[test]
        fn what_fits_has_a_line(names in prop::collection::vec(("\\PC{0,40}", "\\PC{0,10}"), 0..900), explanation in "\\PC{0,200}") {
            let mut whole = answer(names.len(), &explanation, "hard_fail");
            for (result, (name, request)) in whole.results.iter_mut().zip(&names) {
                result.assertion_id.clone_from(name);
                result.request_id.clone_from(request);
                result.score = 1.234_567_890_123_456_7e-300;
                result.cost = Some(0.001_234_567_890_123_4);
            }
            if fits(names.iter().map(|(name, request)| (name.as_str(), request.as_str())), SHORT) {
                let line = batch_line(-9_000_000_000_000_000_000, &whole, SHORT);
                prop_assert!(line.is_some_and(|line| line.len() <= MAX_REPLY));
            }
        }
    }
}
