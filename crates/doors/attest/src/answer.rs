//! Conversion of verdicts to protocol replies.

use proctor_assert::{Assertion, JudgeMetadata, Status};
use proctor_providers::store::Store;
use proctor_wire::attest::reply::{
    AssertionResult, BatchAnswer, CalibrationAnswer, JudgeAnswer, ProbeAnswer,
};

use super::evaluate::{Batch, Found};

/// Builds the reply to a batch.
pub(crate) fn answer(
    batch: &Batch,
    assertions: &[Assertion<'_>],
    simulated: bool,
    store: Option<&Store>,
) -> BatchAnswer {
    let mut results: Vec<AssertionResult> = batch
        .found
        .iter()
        .filter_map(|found| Some(result(found, assertions.get(found.index)?, store)))
        .collect();
    // The first hard failure says what it kept from being run.
    let first = results.iter_mut().find(|result| result.status == Status::HardFail.word());
    if let Some(first) = first.filter(|_| !batch.not_run.is_empty()) {
        let count = batch.not_run.len();
        let were =
            if count == 1 { "assertion of layers 5 and 6 was" } else { "assertions of layers 5 and 6 were" };
        first.note = format!(" ({count} {were} not run)");
    }
    BatchAnswer {
        // The sum of nothing is a negative zero.
        total_cost: batch.found.iter().map(|found| found.verdict.cost_usd).sum::<f64>() + 0.0,
        total_duration_ms: results.iter().filter_map(|result| result.duration_ms).sum(),
        results,
        simulated,
    }
}

fn result(found: &Found, assertion: &Assertion<'_>, store: Option<&Store>) -> AssertionResult {
    let verdict = &found.verdict;
    let explanation = match verdict.status {
        Status::Error => format!("error: {}", verdict.explanation),
        _ => verdict.explanation.clone(),
    };
    let passed = verdict.status.passed();
    // What helps to understand a failure is not needed on a pass.
    let unless_passed = |text: &str| if passed { String::new() } else { text.to_owned() };
    AssertionResult {
        assertion_id: assertion.assertion_id.to_string(),
        status: verdict.status.word(),
        score: verdict.score,
        explanation,
        note: String::new(),
        cost: Some(verdict.cost_usd),
        duration_ms: Some(u64::try_from(found.took.as_millis()).unwrap_or(u64::MAX)),
        request_id: assertion.request_id.to_string(),
        layer: found.layer.map(proctor_assert::Layer::number),
        kind: assertion.kind.to_string(),
        trace_node_path: unless_passed(&verdict.path),
        expected: unless_passed(&verdict.expected),
        actual: unless_passed(&verdict.actual),
        suggested_action: unless_passed(&verdict.suggestion),
        threshold_source: verdict.threshold_source.map(proctor_assert::ThresholdSource::word),
        judge_metadata: verdict.judge.as_ref().map(|judge| Box::new(judge_answer(judge, store))),
    }
}

fn judge_answer(judge: &JudgeMetadata, store: Option<&Store>) -> JudgeAnswer {
    let calibration = store
        .and_then(|store| store.calibration(&judge.rubric_name, &judge.rubric_version))
        .map(|known| CalibrationAnswer {
            label_count: known.label_count,
            agreement: known.agreement,
            cohen_kappa: known.cohen_kappa,
            roc_auc: Some(known.roc_auc),
        });
    JudgeAnswer {
        model: judge.model.clone(),
        rubric_name: judge.rubric_name.clone(),
        rubric_version: judge.rubric_version.clone(),
        prompt_hash: judge.prompt_hash.clone(),
        sample_scores: judge.sample_scores.clone(),
        score_mean: judge.score_mean,
        score_stddev: judge.score_stddev,
        high_variance: judge.high_variance,
        bias_probes: judge
            .bias_probes
            .iter()
            .map(|probe| ProbeAnswer { name: probe.name.clone(), score: probe.score, delta: probe.delta })
            .collect(),
        calibration,
    }
}
