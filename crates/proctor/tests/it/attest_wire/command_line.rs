//! Arguments and environment of the program, and its exit codes.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::attest::{Engine, Place, assertion, contains, request, trace};

#[test]
fn words_behind_the_name_and_the_exit_code() {
    let place = Place::new();
    // Arguments, exit code, what stands on stdout, what stands on stderr.
    let rows: &[(&[&str], i32, &str, &str)] = &[
        (&["version"], 0, "attest-engine 0.9.0", ""),
        (&["version", "--nonsense"], 0, "attest-engine 0.9.0", ""),
        (&["cache"], 1, "", "cache stats"),
        (&["cache", "empty"], 1, "", "`empty`"),
        (&["cache", "stats"], 0, "does not exist", ""),
        (&["cache", "clear"], 0, "0", ""),
        (&["--log-level=loud"], 1, "", "`loud`"),
        (&["--log-level", "loud"], 1, "", "`loud`"),
        (&["-log-level=WARN"], 1, "", "`WARN`"),
        (&["--nonsense"], 2, "", "usage"),
        (&["-x"], 2, "", "usage"),
        (&["--config=x"], 2, "", "usage"),
        (&["--help"], 0, "", "usage"),
        (&["-h"], 0, "", "usage"),
        (&["calibrate"], 1, "", "--labels"),
        (&["calibrate", "--labels", "absent.csv"], 1, "", "absent.csv"),
    ];
    for (args, code, out, said) in rows {
        let output = place.run(args);
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {stdout}{stderr}");
        assert!(if out.is_empty() { stdout.is_empty() } else { stdout.contains(out) }, "{args:?}: {stdout}");
        assert!(
            if said.is_empty() { stderr.is_empty() } else { stderr.contains(said) },
            "{args:?}: {stderr}"
        );
    }
}

#[test]
fn flags_with_which_it_serves() {
    let place = Place::new();
    for args in [
        &[][..],
        &["--log-level=warn"],
        &["--log-level", "error"],
        &["-log-level=debug"],
        &["-log-level", "info"],
        &["--debug"],
        &["-debug"],
        &["--log-level=warn", "--debug"],
        &["serve", "please"],
    ] {
        let mut engine = Engine::spawn(place.command(args));
        assert_eq!(engine.initialize()["protocol_version"], 1, "{args:?}");
        let (code, said) = engine.close();
        assert_eq!(code, 0, "{args:?}: {said}");
    }
}

#[test]
fn the_log_is_json_and_keeps_to_its_level() {
    let place = Place::new();
    for (level, at_least) in [("debug", 1), ("info", 1), ("error", 0)] {
        let mut engine = Engine::spawn(place.command(&[&format!("--log-level={level}")]));
        engine.initialize();
        let (_, said) = engine.close();
        let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.len() >= at_least, "{level}: {said}");
        assert!(at_least > 0 || lines.is_empty(), "{level}: {said}");
        for line in lines {
            assert!(line["time"].is_string() && line["msg"].is_string(), "{line}");
            assert!(["DEBUG", "INFO", "WARN", "ERROR"].contains(&line["level"].as_str().unwrap()), "{line}");
        }
    }
}

#[test]
fn the_cache_is_counted_and_emptied() {
    let place = Place::new();
    let mut engine = place.ready(&[]);
    engine.evaluate(&trace("t"), &json!([contains("a", "hello")]));
    assert_eq!(engine.close().0, 0);
    std::fs::create_dir(place.cache().join("below")).unwrap();
    std::fs::write(place.cache().join("below/kept"), "x").unwrap();
    std::fs::write(place.cache().join("extra"), "12345").unwrap();
    let files = std::fs::read_dir(place.cache()).unwrap().map(Result::unwrap);
    let sizes: Vec<u64> = files
        .filter_map(|file| file.metadata().unwrap().is_file().then(|| file.metadata().unwrap().len()))
        .collect();
    let stats = place.run(&["cache", "stats"]);
    let text = String::from_utf8(stats.stdout).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    for part in [
        place.cache().to_str().unwrap().to_owned(),
        "exists: true".to_owned(),
        "is_dir: true".to_owned(),
        format!("files: {}", sizes.len()),
        format!("size_bytes: {}", sizes.iter().sum::<u64>()),
    ] {
        assert!(text.contains(&part), "{part} is missing: {text}");
    }
    let clear = place.run(&["cache", "clear"]);
    let text = String::from_utf8(clear.stdout).unwrap();
    assert!(clear.status.success() && text.contains(&sizes.len().to_string()), "{text}");
    assert!(!place.database().exists() && place.cache().join("below/kept").exists());
}

#[test]
fn labels_are_compared() {
    let place = Place::new();
    let labels = place.path("labels.csv");
    std::fs::write(&labels, "input,human_label,judge_score\na,1,0.9\nb,0,0.2\nc,1,0.3\nd,1,\n").unwrap();
    let output = place.run(&["calibrate", "--labels", labels.to_str().unwrap(), "--rubric=accuracy"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        found,
        json!({"agreement": 0.667, "cohen_kappa": 0.4, "label_count": 3, "missing_judge": 1, "roc_auc": 1.0,
               "rubric_name": "accuracy", "rubric_version": "v1", "threshold": 0.5})
    );
    let names: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("  \"")?.split('"').next()).collect();
    assert!(names.is_sorted() && names.len() == 8, "{text}");
    std::fs::write(&labels, "a,1\nb,0\n").unwrap();
    let unscored = place.run(&["calibrate", "--labels", labels.to_str().unwrap()]);
    assert_eq!(unscored.status.code(), Some(1));
}

#[test]
fn how_the_process_ends() {
    let place = Place::new();
    // Nothing said at all, and the end of input in the middle of a session.
    assert_eq!(place.start(&[]).close().0, 0);
    assert_eq!(place.ready(&[]).close().0, 0);
    // After `shutdown` it ends although its input goes on, and reads nothing more.
    let mut engine = place.ready(&[]);
    engine.send(format!(
        "{}\n{}",
        request(7, "shutdown", &json!({})),
        request(8, "evaluate_batch", &json!({"trace": trace("t")}))
    ));
    assert_eq!(engine.receive()["id"], 7);
    assert_eq!(engine.wait().0, 0);
    for signal in [Signal::TERM, Signal::INT] {
        let engine = place.ready(&[]);
        engine.signal(signal);
        assert_eq!(engine.wait().0, 1, "{signal:?}");
    }
    // The last line needs no end.
    let mut engine = place.ready(&[]);
    engine.write(request(9, "shutdown", &json!({})).as_bytes());
    drop(engine.stdin.take());
    assert_eq!(engine.receive()["id"], 9);
    assert_eq!(engine.wait().0, 0);
}

#[test]
fn a_model_that_cannot_be_used_stops_only_the_assertions_that_need_it() {
    let place = Place::new();
    let judge = assertion("model", "llm_judge", &json!({"criteria": "kind"}));
    let embedding = assertion("model", "embedding", &json!({"reference": "hello"}));
    for (variables, needs, says) in [
        (&[("ATTEST_JUDGE_PROVIDER", "acme")][..], &judge, "`acme`"),
        (&[("ATTEST_JUDGE_PROVIDER", "openai")], &judge, "ATTEST_OPENAI_API_KEY"),
        (
            &[("ATTEST_OPENAI_API_KEY", "k-secret"), ("ATTEST_BUDGET_USD", "much")],
            &judge,
            "ATTEST_BUDGET_USD",
        ),
        (&[("ATTEST_JUDGE_BASE_URL", "not a url")], &judge, "ATTEST_JUDGE_BASE_URL"),
        (&[("ATTEST_EMBEDDING_BASE_URL", "not a url")], &embedding, "ATTEST_EMBEDDING_BASE_URL"),
        (&[("ATTEST_EMBEDDING_PROVIDER", "word2vec")], &embedding, "`word2vec`"),
        (&[("ATTEST_EMBEDDING_PROVIDER", "local")], &embedding, "ATTEST_EMBEDDING_MODEL_DIR"),
        (&[("ATTEST_EMBEDDING_MODEL_DIR", "/no/such/model")], &embedding, "/no/such/model"),
    ] {
        let mut engine = place.start(variables);
        let able = engine.initialize()["capabilities"].to_string();
        let capability = if std::ptr::eq(needs, &raw const judge) { "llm_judge" } else { "embedding" };
        assert!(able.contains("layers_1_4") && !able.contains(capability), "{variables:?}: {able}");
        let results = engine.evaluate(&trace("t"), &json!([needs, contains("text", "hello")]));
        let explanation = results[0]["explanation"].as_str().unwrap();
        assert_eq!(results[0]["status"], "hard_fail");
        assert!(explanation.starts_with("error: ") && explanation.contains(says), "{explanation}");
        assert_eq!(results[1]["status"], "pass", "{results:?}");
        let (code, said) = engine.close();
        assert_eq!(code, 0, "{said}");
        assert!(said.contains(says) && !said.contains("k-secret"), "{said}");
    }
}

/// Without a word about where, the cache lies below the home.
#[test]
fn the_usual_place_of_the_cache() {
    let place = Place::new();
    let mut command = place.command(&[]);
    command.env_remove("ATTEST_CACHE_DIR");
    let mut engine = Engine::spawn(command);
    engine.initialize();
    engine.evaluate(&trace("t"), &json!([contains("a", "hello")]));
    assert_eq!(engine.close().0, 0);
    assert_eq!(crate::support::attest::rows(&place.path("home/.attest/cache/attest.db")).len(), 1);
}
