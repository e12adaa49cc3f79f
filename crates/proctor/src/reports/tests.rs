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
    Findings {
        trace_id: "t<1>".to_owned(),
        source: "trace.json".to_owned(),
        made: Timestamp::from_micros(1_763_239_507_123_456),
        simulated: false,
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
    assert_eq!(suite.name.as_str(), "attest");
    assert_eq!((suite.tests, suite.failures, suite.errors), (5, 2, 1));
    for element in [
        r#"classname="assertion""#,
        r#"<failure message="&lt;script&gt;"#,
        r#"type="soft_fail""#,
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
    assert_eq!(
        run.pointer("/invocations/0/toolExecutionNotifications").unwrap().as_array().unwrap().len(),
        1
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
}

#[test]
fn counts_in_words() {
    assert_eq!(
        findings(&ALL).counts().sentence(),
        "5 assertions: 1 passed, 1 soft fail, 1 hard fail, 1 error, 1 not run"
    );
    assert_eq!(findings(&[Ending::Pass]).counts().sentence(), "1 assertion: 1 passed");
}
