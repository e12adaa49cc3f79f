use std::fmt::Write as _;

use super::*;

/// A stored result; each test has so many runs that passed with 100 points, failed with 0 points, or could not be evaluated.
fn result(tests: &[(&str, usize, usize, usize)]) -> SuiteResult {
    let mut text = String::new();
    for (id, passed, failed, errors) in tests {
        let mut runs = Vec::new();
        for (verdict, count) in [("passed", passed), ("failed", failed), ("error", errors)] {
            let points = if verdict == "passed" { 100 } else { 0 };
            for _ in 0..*count {
                let part = r#"{"normalized": 1, "weight": 0.25}"#;
                runs.push(format!(
                    r#"{{"run": {}, "verdict": "{verdict}", "ending": "completed", "duration_seconds": {}, "score": {{"final_score": {points},
                        "components": {{"quality": {part}, "completeness": {part}, "efficiency": {part}, "cost": {part}}}}}}}"#,
                    runs.len() + 1,
                    1.0 + runs.len() as f64 / 100.0
                ));
            }
        }
        let comma = if text.is_empty() { "" } else { "," };
        write!(
            text,
            r#"{comma}{{"id": "{id}", "name": "{id}", "verdict": "failed", "runs": [{}]}}"#,
            runs.join(",")
        )
        .unwrap();
    }
    let document = format!(
        r#"{{"format": "proctor test", "version": "1.0", "suite": "s", "agent": "old", "tests": [{text}]}}"#
    );
    SuiteResult::read(document.as_bytes()).unwrap()
}

fn compare(before: &SuiteResult, after: &SuiteResult) -> BaselineComparison {
    BaselineComparison::new("old.json", before, after, &Rule::default())
}

#[test]
fn a_loss_that_is_shown_is_named() {
    let before = result(&[("falls", 27, 3, 0), ("stays", 30, 0, 0)]);
    let after = result(&[("falls", 9, 21, 0), ("stays", 30, 0, 0)]);
    let comparison = compare(&before, &after);
    assert_eq!(comparison.conclusion(), Conclusion::Regression);
    assert_eq!(comparison.tests(Verdict::Worse).collect::<Vec<_>>(), ["falls"]);
    let says = comparison.sentences();
    assert_eq!(says[0], "compared with old.json: worse in 1 test");
    assert!(says.contains(&"worse: falls".to_owned()), "{says:?}");
    assert_eq!(says.last().unwrap(), "a regression is shown, of falls");
    assert_eq!(comparison.means[0].score_before, Some(90.0));
    assert_eq!(comparison.means[0].success_after, Some(0.3));
    let json = comparison.to_json();
    assert_eq!(json["conclusion"], "regression");
    assert_eq!(json.pointer("/statistics/tests/0/verdict").unwrap(), &Json::from("worse"));
    assert!(json.pointer("/statistics/tests/0/effects/0/hedges_g").is_some());
}

#[test]
fn equal_results_exclude_a_loss() {
    let same = result(&[("a", 30, 0, 0), ("b", 0, 30, 0), ("c", 30, 0, 0)]);
    let comparison = compare(&same, &same);
    assert_eq!(comparison.conclusion(), Conclusion::NoRegression, "{:?}", comparison.sentences());
    assert_eq!(comparison.sentences().last().unwrap(), "no regression: a loss of 5 points is excluded");
}

#[test]
fn few_runs_do_not_decide_and_say_how_many_would() {
    let before = result(&[("a", 4, 1, 0), ("b", 3, 2, 0), ("c", 4, 1, 0)]);
    let after = result(&[("a", 3, 2, 0), ("b", 3, 2, 0), ("c", 4, 1, 0)]);
    let comparison = compare(&before, &after);
    assert_eq!(comparison.conclusion(), Conclusion::Undecided);
    let decision = comparison.decision();
    assert!(decision.starts_with("not enough runs to decide: the mean score changed by −"), "{decision}");
    assert!(decision.contains(" runs of each test, for both, would decide"), "{decision}");
    let one = compare(&result(&[("a", 1, 0, 0)]), &result(&[("a", 1, 0, 0)]));
    assert_eq!(one.conclusion(), Conclusion::Undecided);
    assert!(one.sentences()[0].ends_with("not enough runs to tell"), "{:?}", one.sentences());
}

#[test]
fn a_suite_of_few_tests_is_not_asked_for_more_runs() {
    // The tests differ among themselves: no number of runs would narrow the interval of three of them.
    let before = result(&[("a", 20, 20, 0), ("b", 20, 20, 0), ("c", 20, 20, 0)]);
    let after = result(&[("a", 24, 16, 0), ("b", 20, 20, 0), ("c", 17, 23, 0)]);
    let comparison = compare(&before, &after);
    let says = comparison.sentences();
    let scores = says.iter().find(|said| said.starts_with("score: ")).unwrap();
    assert!(scores.ends_with(": not enough tests (3) for a verdict on the suite"), "{says:?}");
    assert!(!says.iter().any(|said| said.ends_with(": not enough runs")), "{says:?}");
}

#[test]
fn the_headline_agrees_with_the_decision() {
    let same = result(&[("a", 30, 0, 0), ("b", 0, 30, 0), ("c", 30, 0, 0)]);
    let says = compare(&same, &same).sentences();
    assert_eq!(says[0], "compared with old.json: no difference shown");
    assert_eq!(says.last().unwrap(), "no regression: a loss of 5 points is excluded");
    let before = result(&[("a", 8, 2, 0), ("b", 7, 3, 0), ("c", 8, 2, 0)]);
    let after = result(&[("a", 7, 3, 0), ("b", 7, 3, 0), ("c", 8, 2, 0)]);
    let says = compare(&before, &after).sentences();
    assert_eq!(
        says[0],
        "compared with old.json: no difference shown, but a loss of 5 points is not excluded"
    );
    assert!(says.last().unwrap().starts_with("not enough "), "{says:?}");
}

#[test]
fn tests_that_turned_are_named() {
    let mut before = result(&[("a", 1, 0, 0), ("b", 0, 1, 0), ("c", 1, 0, 0)]);
    let mut after = before.clone();
    for (result, verdicts) in [(&mut before, "pfp"), (&mut after, "fpp")] {
        for (test, verdict) in result.tests.iter_mut().zip(verdicts.chars()) {
            test.verdict = Some(if verdict == 'p' { RunVerdict::Passed } else { RunVerdict::Failed });
        }
    }
    let says = compare(&before, &after).sentences();
    assert!(says.contains(&"passed before, fails now: a".to_owned()), "{says:?}");
    assert!(says.contains(&"failed before, passes now: b".to_owned()), "{says:?}");
}

#[test]
fn new_removed_and_undecided_tests_are_named_and_errors_left_out() {
    let before = result(&[("both", 10, 0, 0), ("old", 10, 0, 0), ("broken", 10, 0, 0)]);
    let after = result(&[("both", 10, 0, 0), ("new", 10, 0, 0), ("broken", 0, 0, 10)]);
    let comparison = compare(&before, &after);
    let says = comparison.sentences();
    for sentence in [
        "new: new",
        "removed: old",
        "undecided, not enough runs: broken",
        "left out: 10 runs of this result that could not be evaluated",
    ] {
        assert!(says.iter().any(|said| said == sentence), "{sentence}: {says:?}");
    }
    // A judge that is out of reach must not look like a worse agent.
    assert_ne!(comparison.conclusion(), Conclusion::Regression);
}

#[test]
fn long_lists_are_counted() {
    let ids: Vec<String> = (0..25).map(|index| format!("t{index}")).collect();
    let tests: Vec<(&str, usize, usize, usize)> = ids.iter().map(|id| (id.as_str(), 1, 0, 0)).collect();
    let says = compare(&result(&[]), &result(&tests)).sentences();
    assert!(says.iter().any(|said| said.ends_with("t19 and 5 more")), "{says:?}");
}

#[test]
fn tests_that_are_not_selected_are_not_removed_ones() {
    let mut baseline = result(&[("a", 1, 0, 0), ("b", 1, 0, 0), ("gone", 1, 0, 0)]);
    restrict(&mut baseline, &|id| id == "a", &|id| id == "b").unwrap();
    let kept: Vec<&str> = baseline.tests.iter().map(|test| test.id.as_str()).collect();
    assert_eq!(kept, ["a", "gone"]);
    assert_eq!(restrict(&mut baseline, &|_| false, &|_| false), Err(NothingInCommon));
}
