//! Reports in files.

use std::os::unix::fs::MetadataExt;

use quick_junit::Report;

use super::*;

const LIST: &str = "junit=r.xml,sarif=r.sarif,json=r.json,html=r.html";

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path(name)).unwrap()
}

#[test]
fn every_kind_is_written_and_can_be_read() {
    let folder = folder();
    let output = check(&folder, &[HOLDS, FAILS_SOFTLY, FAILS, NEEDS_A_JUDGE], &["--report", LIST]);
    ends(&output, 10);

    let junit = Report::deserialize_from_str(&read(&folder, "r.xml")).unwrap();
    let suite = &junit.test_suites[0];
    assert_eq!(suite.name.as_str(), "proctor assert refund-1");
    assert_eq!((suite.tests, suite.failures, suite.errors), (4, 1, 0));
    assert!(read(&folder, "r.xml").contains("<system-out>soft_fail: "), "{}", read(&folder, "r.xml"));
    let classes: Vec<&str> = suite
        .test_cases
        .iter()
        .filter_map(|case| case.classname.as_ref())
        .map(quick_junit::XmlString::as_str)
        .collect();
    assert_eq!(classes, ["assert.content", "assert.constraint", "assert.constraint", "assert.llm_judge"]);

    let sarif = Json::parse(read(&folder, "r.sarif").as_bytes()).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif.pointer("/runs/0/results").unwrap().as_array().unwrap();
    let found: Vec<(&str, &str)> = results
        .iter()
        .map(|result| {
            (
                result.pointer("/properties/assertion_id").unwrap().as_str().unwrap(),
                result["level"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(found, [("brief", "warning"), ("cheap", "error")]);
    assert_eq!(
        results[1].pointer("/locations/0/physicalLocation/artifactLocation/uri").unwrap(),
        &Json::from("trace.json")
    );

    assert_eq!(
        sarif.pointer("/runs/0/invocations/0/toolExecutionNotifications/0/message/text").unwrap(),
        &Json::from("`kind` was not run: `cheap` (constraint) failed hard")
    );

    let json = Json::parse(read(&folder, "r.json").as_bytes()).unwrap();
    assert_eq!(json["version"], "1.0");
    assert!(proctor_core::time::Timestamp::parse(json["timestamp"].as_str().unwrap()).is_some());
    assert_eq!(json.pointer("/summary/not_run").unwrap().as_u64(), Some(1));

    let html = read(&folder, "r.html");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("class=\"banner failed\""), "{html}");
    assert!(!html.contains("<script") && !html.contains("src="), "{html}");
    assert_eq!(html.matches("href=").count(), html.matches("href=\"#").count(), "{html}");
}

#[test]
fn reports_agree_with_the_exit_code() {
    let folder = folder();
    for (more, code, failures, banner, conclusion) in
        [(&[][..], 0, 0, "banner soft", "passed"), (&["--strict"][..], 10, 1, "banner failed", "failed")]
    {
        let mut args = vec!["--report", LIST];
        args.extend(more);
        ends(&check(&folder, &[HOLDS, FAILS_SOFTLY], &args), code);
        let junit = Report::deserialize_from_str(&read(&folder, "r.xml")).unwrap();
        assert_eq!(junit.test_suites[0].failures, failures);
        assert!(read(&folder, "r.html").contains(banner), "{}", read(&folder, "r.html"));
        let json = Json::parse(read(&folder, "r.json").as_bytes()).unwrap();
        assert_eq!(json["conclusion"], conclusion);
        let sarif = Json::parse(read(&folder, "r.sarif").as_bytes()).unwrap();
        assert_eq!(sarif.pointer("/runs/0/properties/conclusion").unwrap(), &Json::from(conclusion));
    }
}

#[test]
fn no_report_speaks_of_this_machine_or_obeys_what_it_is_told() {
    let folder = folder();
    folder.write("trace.json", &TRACE.replace("on its way", "<script>alert(1)</script> \\u0000 ]]>"));
    folder.write(
        "assertions.yaml",
        "- { assertion_id: \"<b>&\", type: content, spec: { check: contains, value: money } }\n",
    );
    let trace = folder.path("trace.json").display().to_string();
    let output =
        command(&folder, &["assert", "--trace", &trace, "--assertions", "assertions.yaml", "--report", LIST])
            .output()
            .unwrap();
    ends(&output, 10);
    let home = folder.dir.path().display().to_string();
    for name in ["r.xml", "r.sarif", "r.json", "r.html"] {
        let text = read(&folder, name);
        assert!(!text.contains(&home), "{name}: {text}");
        assert!(!text.chars().any(|character| character.is_control() && character != '\n'), "{name}: {text}");
    }
    let html = read(&folder, "r.html");
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;"), "{html}");
    assert!(html.contains("&lt;b&gt;&amp;"), "{html}");
    Report::deserialize_from_str(&read(&folder, "r.xml")).unwrap();
}

#[test]
fn secrets_of_a_trace_reach_neither_reports_nor_logs() {
    let folder = folder();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    // Once whole, and once where an excerpt tears it.
    for padding in ["the token is", &"word ".repeat(73)] {
        folder.write(
            "trace.json",
            &TRACE.replace("Your refund is on its way.", &format!("{padding} {secret} ok")),
        );
        let output = check(
            &folder,
            &[
                "{ type: content, spec: { check: contains, value: money } }",
                "{ type: content, spec: { check: not_contains, value: word } }",
            ],
            &["--report", LIST],
        );
        ends(&output, 10);
        let json = printed(&check(
            &folder,
            &["{ type: content, spec: { check: contains, value: money } }"],
            &["--json"],
        ));
        let mut texts: Vec<String> =
            ["r.xml", "r.sarif", "r.json", "r.html"].iter().map(|name| read(&folder, name)).collect();
        texts.extend([json, printed(&output), said(&output)]);
        for text in texts {
            assert!(!text.contains("ghp_012"), "{text}");
        }
    }
}

#[test]
fn a_report_is_replaced_in_one_step() {
    let folder = folder();
    folder.write("r.json", "old");
    let before = std::fs::metadata(folder.path("r.json")).unwrap().ino();
    ends(&check(&folder, &[HOLDS], &["--report", "json=r.json"]), 0);
    assert_ne!(std::fs::metadata(folder.path("r.json")).unwrap().ino(), before);
    assert!(read(&folder, "r.json").starts_with("{\"version\""));
    let left: Vec<String> = std::fs::read_dir(folder.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".part"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_report_that_cannot_be_written_is_exit_one_and_the_old_one_stays() {
    let folder = folder();
    folder.write("there/r.json", "old");
    // A file that may not grow is the same for every user, also for one who may write everywhere.
    let script = "ulimit -f 0; exec \"$0\" \"$@\"";
    folder.write("assertions.yaml", &format!("- {HOLDS}\n"));
    let mut run = Command::new("sh");
    run.arg("-c").arg(script).arg(crate::support::binary()).args([
        "assert",
        "--trace",
        "trace.json",
        "--assertions",
        "assertions.yaml",
        "--report",
        "json=there/r.json",
    ]);
    // No history either: it could not be written.
    run.current_dir(folder.path("")).env("ATTEST_CACHE_DIR", "/dev/null/x").env("NO_COLOR", "1");
    let output = run.output().unwrap();
    ends(&output, 1);
    assert!(said(&output).contains("there/r.json: the report is not written"), "{}", said(&output));
    assert!(printed(&output).contains("1 passed"), "{}", printed(&output));
    assert_eq!(read(&folder, "there/r.json"), "old");
    assert_eq!(std::fs::read_dir(folder.path("there")).unwrap().count(), 1);
}
