use super::*;

const RESPONSE: &str = r#"{"artifacts": [{"path": "a.md", "content": "All is well."}]}"#;

fn reply(text: &str) -> JudgeReply {
    JudgeReply::Text(text.to_owned())
}

fn run(config: &str, replies: Vec<JudgeReply>) -> AssertionResult {
    let response = json(RESPONSE);
    let evidence = Evidence { response: &response, events: &[], files: &NoFiles, has_tools: false };
    let answers = [Answer { leaf: 0, reply: Reply::Judge(replies) }];
    evaluate(&assertion(loaded("llm_eval", config)), &evidence, &answers)
}

#[test]
fn the_need_holds_question_and_text() {
    let response = json(RESPONSE);
    let evidence = Evidence { response: &response, events: &[], files: &NoFiles, has_tools: false };
    let needs = needs(
        &loaded("llm_eval", "{criteria: clarity, prompt: Is it short?, num_runs: 3}"),
        &evidence,
        "f00d",
    );
    let Request::Judge(judge) = &needs[0].request else { panic!("a judge") };
    assert_eq!(judge.samples, 3);
    assert!(judge.prompts.user.contains("All is well.") && judge.prompts.user.contains("Is it short?"));
    assert!(judge.prompts.user.contains("at the first reading") && judge.prompts.user.ends_with("END f00d"));
    let missing = loaded("llm_eval", "{prompt: x, path: b.md}");
    assert!(super::needs(&missing, &evidence, "f").is_empty());
    assert_eq!(judged(&missing, RESPONSE, &Memory::default()).0, Status::Failed);
    assert_eq!(judged(&loaded("llm_eval", "{prompt: x}"), RESPONSE, &Memory::default()).0, Status::Error);
}

#[test]
fn the_mean_of_the_scores_decides() {
    let good = run("{prompt: x}", vec![reply(r#"{"score": 0.7, "explanation": "fine"}"#)]);
    assert_eq!((good.status, good.score), (Status::Passed, 0.7));
    assert_eq!(good.checks[0].message, "the score 0.70 reaches 0.7: fine");
    let bad = run("{prompt: x}", vec![reply(r#"{"score": 0.69, "explanation": "thin"}"#)]);
    assert_eq!(bad.status, Status::Failed);
    let mean = run(
        "{prompt: x, num_runs: 2, threshold: 0.5}",
        vec![reply(r#"{"score": 0, "explanation": ""}"#), reply(r#"{"score": 1, "explanation": ""}"#)],
    );
    assert_eq!((mean.status, mean.score), (Status::Passed, 0.5));
}

#[test]
fn a_reply_without_a_score_is_an_error() {
    for text in [
        "",
        "good!",
        "{}",
        r#"{"explanation": "fine"}"#,
        r#"{"score": 2, "explanation": ""}"#,
        r#"I say {"score": 1, "explanation": ""}"#,
    ] {
        assert_eq!(run("{prompt: x}", vec![reply(text)]).status, Status::Error, "{text}");
    }
    let missing = run("{prompt: x}", vec![JudgeReply::Missing("no key is configured".to_owned())]);
    assert_eq!(missing.status, Status::Error);
    assert_eq!(missing.checks[0].message, "the judge gave 0 of 1 scores: no key is configured");
    assert_eq!(
        run("{prompt: x, num_runs: 3}", vec![reply(r#"{"score": 1, "explanation": ""}"#)]).status,
        Status::Error
    );
    let most = run(
        "{prompt: x, num_runs: 3}",
        vec![
            reply(r#"{"score": 1, "explanation": "a"}"#),
            reply("?"),
            reply(r#"{"score": 1, "explanation": "b"}"#),
        ],
    );
    assert_eq!(most.status, Status::Passed);
    assert!(most.checks[0].message.contains("1 of 3 replies had no score"), "{}", most.checks[0].message);
}

#[test]
fn attest_verdicts_become_results() {
    use proctor_assert::{Assertion as Attest, Tools, Trace, evaluate};
    let trace = Trace::parse(r#"{"trace_id": "t", "output": {"message": "done"}}"#).unwrap();
    let verdict =
        |spec: &str| evaluate(&trace, &Attest::new("a", "content", spec).unwrap(), &Tools::default());
    for (spec, status, passed) in [
        (r#"{"target": "output.message", "check": "contains", "value": "done"}"#, Status::Passed, true),
        (r#"{"target": "output.message", "check": "contains", "value": "x"}"#, Status::Failed, false),
        (
            r#"{"target": "output.message", "check": "contains", "value": "x", "soft": true}"#,
            Status::Passed,
            true,
        ),
        (r#"{"check": "unknown"}"#, Status::Error, false),
    ] {
        let result = AssertionResult::from_verdict("said", &verdict(spec));
        assert_eq!(
            (result.status, result.checks[0].passed, result.name.as_str()),
            (status, passed, "said"),
            "{spec}"
        );
    }
}
