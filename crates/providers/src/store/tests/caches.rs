//! Tests of the caches: judge answers, vectors, calibrations.

use proptest::prelude::*;

use super::*;

fn answer(score: f64, explanation: &str) -> JudgedAnswer {
    JudgedAnswer { score, explanation: explanation.to_owned(), input_tokens: 12, output_tokens: 3 }
}

#[test]
fn a_judgement_is_found_under_its_prompt_model_and_sample_only() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    store.keep_judged("prompt", "model", 0, answer(0.9, "good"));
    store.keep_judged("prompt", "model", 1, answer(0.7, "fair"));
    assert_eq!(store.judged("prompt", "model", 0), Some(answer(0.9, "good")));
    assert_eq!(store.judged("prompt", "model", 1), Some(answer(0.7, "fair")));
    assert_eq!(store.judged("prompt", "model", 2), None);
    assert_eq!(store.judged("prompt", "other", 0), None);
    assert_eq!(store.judged("another question", "model", 0), None);
    store.keep_judged("prompt", "model", 0, answer(0.1, "no"));
    drop(store);
    assert_eq!(bench.open(StoreOptions::default()).judged("prompt", "model", 0), Some(answer(0.1, "no")));
}

#[test]
fn what_the_released_engine_judged_is_not_believed() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    bench
        .file()
        .execute("INSERT INTO judge_cache VALUES ('hash', 'default', 'model', 1.0, 'good', 1, 1)", ())
        .unwrap();
    assert_eq!(store.judged("hash", "model", 0), None);
}

#[test]
fn a_vector_is_stored_as_little_endian_floats() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    store.keep_vector("hash", "model", vec![1.0, -0.5]);
    store.keep_vector("empty", "model", Vec::new());
    assert_eq!(store.vector("hash", "model"), Some(vec![1.0, -0.5]));
    assert_eq!(store.vector("hash", "other"), None);
    assert_eq!(store.vector("empty", "model"), None);
    let blob: Vec<u8> =
        bench.file().query_row("SELECT vector FROM embeddings", (), |row| row.get(0)).unwrap();
    assert_eq!(blob, [0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf]);
}

#[test]
fn a_vector_that_cannot_be_one_is_not_found() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    bench
        .file()
        .execute(
            "INSERT INTO embeddings VALUES ('odd', 'm', x'000000', 1, 1), ('text', 'm', 'abcd', 1, 1)",
            (),
        )
        .unwrap();
    assert_eq!(store.vector("odd", "m"), None);
    assert_eq!(store.vector("text", "m"), None);
}

#[test]
fn the_newest_calibration_counts() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions::default());
    let calibration = |prompt: &str, agreement| Calibration {
        prompt_hash: prompt.to_owned(),
        label_count: 20,
        agreement,
        cohen_kappa: 0.4,
        roc_auc: 0.8,
    };
    assert_eq!(store.calibration("rubric", "v1"), None);
    store.keep_calibration("rubric", "v1", calibration("first", 0.6));
    store.keep_calibration("rubric", "v1", calibration("second", 0.7));
    store.keep_calibration("rubric", "v2", calibration("other", 0.1));
    assert_eq!(store.calibration("rubric", "v1"), Some(calibration("second", 0.7)));
    store.keep_calibration("rubric", "v1", calibration("first", 0.8));
    assert_eq!(store.calibration("rubric", "v1"), Some(calibration("first", 0.8)));
    assert_eq!(number(&bench.file(), "SELECT count(*) FROM calibration"), 3);
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    let bench = Bench::new();
    // Ten vectors of two floats.
    let store = bench.open(StoreOptions { embedding_cache_bytes: 80, ..StoreOptions::default() });
    for name in 0..10 {
        bench.clock.advance(1);
        store.keep_vector(&name.to_string(), "m", vec![1.0, 2.0]);
    }
    bench.clock.advance(1);
    assert!(store.vector("0", "m").is_some());
    store.keep_vector("10", "m", vec![1.0, 2.0]);
    assert!(store.vector("10", "m").is_some());
    // Room is made down to nine tenths. Use and new entry went in together; the use counts for the next time.
    assert_eq!(number(&bench.file(), "SELECT count(*) FROM embeddings"), 9);
    assert_eq!(number(&bench.file(), "SELECT bytes FROM cache_sizes WHERE cache = 'embeddings'"), 72);
}

#[test]
fn a_use_protects_an_entry() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions { judge_cache_bytes: 1_000, ..StoreOptions::default() });
    for name in 0..10 {
        bench.clock.advance(1);
        store.keep_judged(&name.to_string(), "m", 0, answer(0.5, ""));
    }
    store.flush();
    bench.clock.advance(1);
    assert!(store.judged("0", "m", 0).is_some());
    // Closing writes the uses that wait.
    drop(store);
    let store = bench.open(StoreOptions { judge_cache_bytes: 1_000, ..StoreOptions::default() });
    bench.clock.advance(1);
    store.keep_judged("new", "m", 0, answer(0.5, ""));
    assert!(store.judged("new", "m", 0).is_some());
    assert!(store.judged("0", "m", 0).is_some());
    assert_eq!(store.judged("1", "m", 0), None);
}

#[test]
fn what_is_larger_than_the_cache_is_not_kept_and_drives_nothing_out() {
    let bench = Bench::new();
    let store = bench.open(StoreOptions { judge_cache_bytes: 300, ..StoreOptions::default() });
    store.keep_judged("small", "m", 0, answer(0.5, "because"));
    store.keep_judged("large", "m", 0, answer(0.5, &"x".repeat(201)));
    assert_eq!(store.judged("large", "m", 0), None);
    assert!(store.judged("small", "m", 0).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn the_size_in_the_file_is_the_size_of_the_content(
        entries in prop::collection::vec((0..12_u8, 0..200_usize), 1..60),
    ) {
        let bench = Bench::new();
        let options = StoreOptions { judge_cache_bytes: 1_500, embedding_cache_bytes: 2_000, ..StoreOptions::default() };
        let store = bench.open(options);
        for (name, size) in entries {
            store.keep_judged(&name.to_string(), "m", 0, answer(0.5, &"x".repeat(size)));
            store.keep_vector(&name.to_string(), "m", vec![0.5; size]);
        }
        store.flush();
        let file = bench.file();
        let judged = number(&file, "SELECT total(size) = (SELECT bytes FROM cache_sizes WHERE cache = 'judge_answers') \
            AND total(size) <= 1500 AND total(size) = total(length(explanation) + 100) FROM judge_answers");
        let vectors = number(&file, "SELECT total(length(vector)) = (SELECT total(bytes) FROM cache_sizes \
            WHERE cache = 'embeddings') AND total(length(vector)) <= 2000 FROM embeddings");
        prop_assert_eq!((judged, vectors), (1, 1));
        prop_assert_eq!(store.dropped(), 0);
    }
}
