use super::*;
use proctor_core::json::Json;
use quick_junit::Report;

fn entry(id: &str, ending: Ending) -> Entry {
    Entry {
        id: id.to_owned(),
        request_id: String::new(),
        kind: "content".to_owned(),
        layer: Some(4),
        ending,
        score: (ending != Ending::NotRun).then_some(0.5),
        explanation: "<script>alert(1)</script> & \u{1b}[31m \"x\" ]]>".to_owned(),
        path: "output.message".to_owned(),
        expected: "a\nb".to_owned(),
        actual: "\u{0}\u{ffff}<b>".to_owned(),
        suggestion: String::new(),
        threshold_source: None,
        cost_usd: 0.25,
        took: Duration::from_millis(1500),
        judge: None,
    }
}

fn findings(endings: &[Ending]) -> Findings {
    let entry = |id: &str, ending: Ending| match ending {
        Ending::NotRun => {
            Entry { explanation: "not run: `a4` (schema) failed hard".to_owned(), ..entry(id, ending) }
        }
        _ => entry(id, ending),
    };
    Findings {
        trace_id: "t<1>".to_owned(),
        source: "trace.json".to_owned(),
        made: Timestamp::from_micros(1_763_239_507_123_456),
        simulated: false,
        gate: false,
        soft_failures_count: None,
        entries: endings
            .iter()
            .enumerate()
            .map(|(index, ending)| entry(&format!("id&{index}"), *ending))
            .collect(),
    }
}

const ALL: [Ending; 5] = [Ending::Pass, Ending::SoftFail, Ending::HardFail, Ending::Error, Ending::NotRun];

#[test]
fn junit_is_read_back_with_every_ending_in_its_place() {
    let text = junit::write(&findings(&ALL)).unwrap();
    let report = Report::deserialize_from_str(&text).unwrap();
    let suite = &report.test_suites[0];
    assert_eq!(suite.name.as_str(), "proctor assert t<1>");
    assert_eq!((suite.tests, suite.failures, suite.errors), (5, 1, 1));
    for element in [
        r#"classname="assert.content""#,
        r#"<failure message="&lt;script&gt;"#,
        "<system-out>soft_fail: &lt;script&gt;",
        r#"type="hard_fail""#,
        "<error ",
        "<skipped ",
        r#"time="1.500""#,
    ] {
        assert!(text.contains(element), "{element}: {text}");
    }
    assert!(text.contains("\\u{1b}") && text.contains("\\u{0}"), "{text}");
    assert!(!text.chars().any(|character| character.is_control() && character != '\n'));
}

#[test]
fn no_test_of_a_simulated_run_counts() {
    let text = junit::write(&Findings { simulated: true, ..findings(&ALL) }).unwrap();
    let suite = &Report::deserialize_from_str(&text).unwrap().test_suites[0];
    assert_eq!((suite.tests, suite.failures, suite.errors), (5, 0, 0));
    assert_eq!(text.matches("<skipped message=\"simulated: this says nothing about an agent\"").count(), 5);
    assert!(text.contains("<system-out>hard_fail: "), "{text}");
}

/// Findings whose soft failures count.
fn strict(endings: &[Ending]) -> Findings {
    Findings { soft_failures_count: Some("--strict"), ..findings(endings) }
}

#[test]
fn every_report_says_that_soft_failures_count() {
    let findings = strict(&[Ending::Pass, Ending::SoftFail]);
    assert_eq!(findings.conclusion(), Conclusion::Failed);
    let says = "failed: soft failures count (`--strict`)";
    let json = to_json(&findings);
    assert_eq!((json["conclusion"].as_str(), json["reason"].as_str()), (Some("failed"), Some(says)));
    assert_eq!(json.get("strict"), Some(&Json::Bool(true)));
    let sarif = sarif::to_json(&findings);
    assert_eq!(sarif.pointer("/runs/0/results/0/level").unwrap(), &Json::from("error"));
    assert_eq!(sarif.pointer("/runs/0/properties/reason").unwrap(), &Json::from(says));
    assert_eq!(sarif.pointer("/runs/0/properties/conclusion").unwrap(), &Json::from("failed"));
    let junit = junit::write(&findings).unwrap();
    let suite = &Report::deserialize_from_str(&junit).unwrap().test_suites[0];
    assert_eq!((suite.tests, suite.failures), (2, 1));
    assert!(junit.contains(r#"type="soft_fail""#) && junit.contains(says), "{junit}");
    let page = html::page(&findings);
    assert!(page.contains("<title>Failed · ") && page.contains("class=\"banner failed\""), "{page}");
    assert!(page.contains("failed: soft failures count (<code>--strict</code>)"), "{page}");
    // Without soft failures, or with hard ones, there is nothing to explain.
    assert_eq!(strict(&[Ending::Pass]).conclusion(), Conclusion::Passed);
    for endings in [&ALL[..], &[Ending::Pass]] {
        assert_eq!(strict(endings).strict_failure(), None);
        assert_eq!(to_json(&strict(endings)).get("reason"), None);
    }
}

#[test]
fn what_is_not_known_passes_no_gate() {
    let concluded = |endings: &[Ending], simulated: bool, gate: bool| {
        Findings { simulated, gate, ..findings(endings) }.conclusion()
    };
    let (pass, hard, error, not_run) = (Ending::Pass, Ending::HardFail, Ending::Error, Ending::NotRun);
    for (endings, without, with) in [
        (vec![pass], Conclusion::Passed, Conclusion::Passed),
        (vec![pass, Ending::SoftFail], Conclusion::Passed, Conclusion::Passed),
        (vec![pass, error], Conclusion::Failed, Conclusion::Undecided),
        (vec![error, not_run], Conclusion::Failed, Conclusion::Undecided),
        (vec![hard, not_run, error], Conclusion::Failed, Conclusion::Failed),
    ] {
        assert_eq!(concluded(&endings, false, false), without, "{endings:?}");
        assert_eq!(concluded(&endings, false, true), with, "{endings:?}");
        assert_eq!(concluded(&endings, true, false), without, "{endings:?}");
        assert_eq!(concluded(&endings, true, true), Conclusion::Undecided, "{endings:?}");
    }
}

#[test]
fn sarif_has_the_members_that_hosts_need_and_only_failures() {
    let sarif = Json::parse(sarif::to_json(&findings(&ALL)).to_string().as_bytes()).unwrap();
    assert_eq!(sarif.get("version").unwrap(), &Json::from("2.1.0"));
    let run = sarif.pointer("/runs/0").unwrap();
    assert_eq!(run.pointer("/tool/driver/name").unwrap(), &Json::from("proctor"));
    assert_eq!(run.pointer("/tool/driver/rules").unwrap().as_array().unwrap().len(), 1);
    let results = run.get("results").unwrap().as_array().unwrap();
    let levels: Vec<&str> = results.iter().map(|result| result["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["warning", "error", "error"]);
    for result in results {
        assert_eq!(result.get("ruleId").unwrap(), &Json::from("content"));
        assert_eq!(result.get("ruleIndex").unwrap().as_u64(), Some(0));
        assert!(result.pointer("/message/text").is_some());
        let location = result.pointer("/locations/0").unwrap();
        assert_eq!(
            location.pointer("/physicalLocation/artifactLocation/uri").unwrap(),
            &Json::from("trace.json")
        );
        assert_eq!(
            location.pointer("/logicalLocations/0/fullyQualifiedName").unwrap(),
            &Json::from("output.message")
        );
    }
    assert_eq!(run.pointer("/invocations/0/executionSuccessful"), Some(&Json::Bool(false)));
    let notices = run.pointer("/invocations/0/toolExecutionNotifications").unwrap().as_array().unwrap();
    assert_eq!(notices.len(), 1);
    assert_eq!(
        notices[0].pointer("/message/text").unwrap(),
        &Json::from("`id&4` was not run: `a4` (schema) failed hard")
    );
}

#[test]
fn json_counts_and_separates_what_was_not_run() {
    let json = to_json(&findings(&ALL));
    assert_eq!(
        json.get("summary").unwrap().to_string(),
        r#"{"total":5,"passed":1,"soft_fail":1,"hard_fail":1,"error":1,"not_run":1}"#
    );
    assert_eq!(json["version"], "1.0");
    assert_eq!(json["timestamp"], "2025-11-15T20:45:07.123456Z");
    assert_eq!(json.get("results").unwrap().as_array().unwrap().len(), 4);
    assert_eq!(json.pointer("/not_run/0/assertion_id").unwrap(), &Json::from("id&4"));
    assert_eq!(json.get("total_cost").unwrap().to_string(), "1.25");
    assert_eq!(json.get("total_duration_ms").unwrap().as_u64(), Some(7500));
    assert_eq!(to_json(&findings(&[])).get("total_cost").unwrap().to_string(), "0");
}

#[test]
fn the_page_escapes_everything_and_loads_nothing() {
    let page = html::page(&findings(&ALL));
    assert!(!page.contains("<script") && !page.contains("<b>") && !page.contains("http://"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp;"), "{page}");
    assert!(page.contains("t&lt;1&gt;") && page.contains("id&amp;0"), "{page}");
    assert!(!page.chars().any(|character| character.is_control() && character != '\n'));
}

#[test]
fn the_page_shows_failures_first_with_links_to_their_details() {
    let mut findings = findings(&ALL);
    for entry in &mut findings.entries {
        entry.cost_usd = 0.0;
    }
    let page = html::page(&findings);
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    let rows = ["id&amp;2", "id&amp;3", "id&amp;1", "id&amp;4", "id&amp;0"];
    assert!(rows.is_sorted_by_key(|id| at(&format!("<code>{id}</code>"))), "{page}");
    for number in [2, 3, 4] {
        assert!(at(&format!("href=\"#assertion-{number}\"")) < at(&format!("id=\"assertion-{number}\"")));
    }
    assert!(!page.contains("#assertion-1\"") && !page.contains("#assertion-5\""), "{page}");
    // What was not run says why, beside the word for it.
    assert!(page.contains("<code>a4</code> (schema) failed hard"), "{page}");
    assert!(page.contains(">2025-11-15 20:45:07 UTC</time>") && page.contains("· 7.5 s"), "{page}");
    assert!(!page.contains('$'), "{page}");
    findings.entries[0].cost_usd = 0.5;
    assert!(html::page(&findings).contains(" · $0.5000"));
}

#[test]
fn backticks_are_code_and_escaped_like_everything() {
    let mut findings = findings(&[Ending::HardFail]);
    findings.entries[0].explanation = "`<i>` is not `b` but ` c".to_owned();
    let page = html::page(&findings);
    let says = "<code>&lt;i&gt;</code> is not <code>b</code> but ` c";
    assert_eq!(page.matches(says).count(), 2, "{page}");
}

#[test]
fn the_banner_is_green_only_if_everything_passed() {
    let class = |endings: &[Ending], simulated: bool| {
        let page = html::page(&Findings { simulated, ..findings(endings) });
        let banner = page.split_once("class=\"banner ").unwrap().1;
        banner.split_once('"').unwrap().0.to_owned()
    };
    assert_eq!(class(&[Ending::Pass], false), "passed");
    assert_eq!(class(&[Ending::Pass, Ending::SoftFail], false), "soft");
    for ending in [Ending::HardFail, Ending::Error, Ending::NotRun] {
        assert_eq!(class(&[Ending::Pass, ending], false), "failed");
    }
    assert_eq!(class(&[Ending::Pass], true), "simulated");
    assert_eq!(class(&[Ending::HardFail], true), "simulated");
    let gated = html::page(&Findings { gate: true, ..findings(&[Ending::Error]) });
    assert!(
        gated.contains("class=\"banner undecided\"") && gated.contains("Not enough to decide"),
        "{gated}"
    );
    // The counts are told of a simulation too.
    let page = html::page(&Findings { simulated: true, ..findings(&ALL) });
    assert!(
        page.contains("simulation. 5 assertions: 1 passed,") && page.contains("class=\"simulation\""),
        "{page}"
    );
}

#[test]
fn counts_in_words() {
    assert_eq!(
        findings(&ALL).counts().sentence(),
        "5 assertions: 1 passed, 1 soft fail, 1 hard fail, 1 error, 1 not run"
    );
    assert_eq!(findings(&[Ending::Pass]).counts().sentence(), "1 assertion: 1 passed");
}
