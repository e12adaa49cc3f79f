//! Tiny hand-made models, valid and broken.

use std::fs;

use safetensors::{Dtype, serialize, tensor::TensorView};
use serde_json::json;
use tempfile::TempDir;

use super::*;

const VOCABULARY: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nyes\nno\n";
const HIDDEN: usize = 4;
const INTERMEDIATE: usize = 6;

fn config() -> serde_json::Value {
    json!({
        "model_type": "bert", "hidden_act": "gelu", "vocab_size": 7, "hidden_size": HIDDEN,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": 16, "type_vocab_size": 2, "layer_norm_eps": 1e-12
    })
}

/// The names and shapes of everything that the configuration above asks for.
fn shapes() -> Vec<(String, Vec<usize>)> {
    let mut shapes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![7, HIDDEN]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![16, HIDDEN]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN]),
    ];
    let layer = "encoder.layer.0";
    for (name, outputs, inputs) in [
        ("attention.self.query", HIDDEN, HIDDEN),
        ("attention.self.key", HIDDEN, HIDDEN),
        ("attention.self.value", HIDDEN, HIDDEN),
        ("attention.output.dense", HIDDEN, HIDDEN),
        ("intermediate.dense", INTERMEDIATE, HIDDEN),
        ("output.dense", HIDDEN, INTERMEDIATE),
    ] {
        shapes.push((format!("{layer}.{name}.weight"), vec![outputs, inputs]));
        shapes.push((format!("{layer}.{name}.bias"), vec![outputs]));
    }
    for name in ["embeddings".to_owned(), format!("{layer}.attention.output"), format!("{layer}.output")] {
        shapes.push((format!("{name}.LayerNorm.weight"), vec![HIDDEN]));
        shapes.push((format!("{name}.LayerNorm.bias"), vec![HIDDEN]));
    }
    shapes
}

/// A weights file with numbers that follow from nothing but their place.
fn weights(shapes: &[(String, Vec<usize>)], dtype: Dtype) -> Vec<u8> {
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = shapes
        .iter()
        .map(|(name, shape)| {
            let number = |index: usize| ((index * 37 + name.len() * 11) % 64) as f32 / 32.0 - 1.0;
            let numbers = (0..shape.iter().product()).map(number);
            let bytes = match dtype {
                // The numbers above have few digits: in this format, too, they are exact.
                Dtype::BF16 => numbers.flat_map(|number| number.to_le_bytes().into_iter().skip(2)).collect(),
                _ => numbers.flat_map(f32::to_le_bytes).collect(),
            };
            (name.clone(), shape.clone(), bytes)
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, bytes)| {
        (name.as_str(), TensorView::new(dtype, shape.clone(), bytes).expect("shape and bytes agree"))
    });
    serialize(views, None).expect("the tensors can be written")
}

fn write(dir: &Path, file: &str, content: impl AsRef<[u8]>) {
    let path = dir.join(file);
    fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the folder can be made");
    fs::write(path, content).expect("the file can be written");
}

fn whole() -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    write(dir.path(), "config.json", config().to_string());
    write(dir.path(), "vocab.txt", VOCABULARY);
    write(dir.path(), "model.safetensors", weights(&shapes(), Dtype::F32));
    dir
}

/// Error of opening the folder after one of its files was replaced.
fn problem_with(file: &str, content: impl AsRef<[u8]>) -> String {
    let dir = whole();
    write(dir.path(), file, content);
    let problem = LocalModel::open(dir.path()).expect_err("the model is broken").to_string();
    assert!(problem.contains(file), "`{problem}` does not name {file}");
    problem
}

#[test]
fn a_whole_model_opens() {
    let dir = whole();
    let model = LocalModel::open(dir.path()).expect("the model is whole");
    assert_eq!(model.dimensions(), HIDDEN);
    assert_eq!(model.token_ids("Yes, no"), [2, 5, 1, 6, 3]);
    let vector = model.embed("yes no");
    assert_eq!(vector.len(), HIDDEN);
    assert!((vector.iter().map(|value| value * value).sum::<f32>() - 1.0).abs() < 1e-5);
    assert_eq!(vector, model.embed(" YES  no\n"));
    assert_ne!(vector, model.embed("no yes"));
    let folder = dir.path().file_name().expect("it has a name").to_string_lossy().into_owned();
    assert!(model.name().strip_prefix(&folder).is_some_and(|rest| rest.starts_with(':') && rest.len() == 13));
}

#[test]
fn the_name_follows_the_weights() {
    let dir = whole();
    let before = LocalModel::open(dir.path()).expect("the model is whole").name().to_owned();
    assert_eq!(before, LocalModel::open(dir.path()).expect("the model is whole").name());
    write(dir.path(), "model.safetensors", weights(&shapes(), Dtype::BF16));
    assert_ne!(before, LocalModel::open(dir.path()).expect("the model is whole").name());
}

#[test]
fn other_places_and_other_number_formats_give_the_same_vectors() {
    let plain = whole();
    let expected = LocalModel::open(plain.path()).expect("the model is whole").embed("yes");

    let nested = tempfile::tempdir().expect("a temporary folder");
    write(nested.path(), "config.json", r#"{"__version__": "0.3"}"#);
    write(nested.path(), "0_Transformer/config.json", config().to_string());
    write(nested.path(), "0_Transformer/vocab.txt", VOCABULARY.replace('\n', "\r\n"));
    let named: Vec<_> = shapes().into_iter().map(|(name, shape)| (format!("bert.{name}"), shape)).collect();
    write(nested.path(), "0_Transformer/model.safetensors", weights(&named, Dtype::F32));
    LocalModel::open(nested.path()).expect("tensors under `bert.` are found");
    write(nested.path(), "0_Transformer/model.safetensors", weights(&shapes(), Dtype::BF16));
    let model = LocalModel::open(nested.path()).expect("the usual place is found");
    assert_eq!(model.embed("yes"), expected);
}

#[test]
fn the_longest_sequence_is_the_smallest_that_is_said() {
    let longest = |files: &[(&str, &str)]| {
        let dir = whole();
        for (file, content) in files {
            write(dir.path(), file, content);
        }
        let model = LocalModel::open(dir.path()).expect("the model is whole");
        assert!(model.embed(&"yes ".repeat(100)).iter().all(|value| value.is_finite()));
        model.token_ids(&"yes ".repeat(100)).len()
    };
    let sentence = "sentence_bert_config.json";
    let tokenizer = "tokenizer_config.json";
    assert_eq!(longest(&[]), 16);
    assert_eq!(
        longest(&[(sentence, r#"{"max_seq_length": 8}"#), (tokenizer, r#"{"model_max_length": 5}"#)]),
        8
    );
    assert_eq!(longest(&[(tokenizer, r#"{"model_max_length": 5}"#)]), 5);
    assert_eq!(
        longest(&[(sentence, r#"{"max_seq_length": null}"#), (tokenizer, r#"{"model_max_length": 1e30}"#)]),
        16
    );
    assert_eq!(longest(&[(sentence, r#"{"max_seq_length": -3}"#)]), 2);
    assert_eq!(longest(&[(sentence, r#"{"max_seq_length": 512}"#)]), 16);
}

#[test]
fn a_missing_file_is_named() {
    for file in ["config.json", "vocab.txt", "model.safetensors"] {
        let dir = whole();
        fs::remove_file(dir.path().join(file)).expect("the file was there");
        let problem = LocalModel::open(dir.path()).expect_err("a file is missing");
        assert!(
            matches!(problem, LocalModelError::Missing { file: missing, .. } if missing == file),
            "{problem}"
        );
    }
    let nowhere = Path::new("no/such/folder");
    let problem = LocalModel::open(nowhere).expect_err("there is no such folder").to_string();
    assert!(problem.starts_with("no `config.json` in `no/such/folder`: a model's folder holds"), "{problem}");
}

#[test]
fn a_tensor_of_the_wrong_shape_is_named() {
    for index in 0..shapes().len() {
        let mut wrong = shapes();
        wrong[index].1[0] += 1;
        let problem = problem_with("model.safetensors", weights(&wrong, Dtype::F32));
        let name = &wrong[index].0;
        assert!(
            problem.contains(&format!("tensor `{name}` has the shape {:?}", wrong[index].1)),
            "{problem}"
        );

        wrong.remove(index);
        let problem = problem_with("model.safetensors", weights(&wrong, Dtype::F32));
        assert!(problem.contains("it has no tensor `"), "{problem}");
    }
}

#[test]
fn weights_cut_anywhere_are_refused() {
    let bytes = weights(&shapes(), Dtype::F32);
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        let problem = problem_with("model.safetensors", &bytes[..length]);
        assert!(problem.contains("is not a whole safetensors file"), "{problem}");
    }
}

#[test]
fn weights_that_are_no_numbers_are_refused() {
    let problem = problem_with("model.safetensors", weights(&shapes(), Dtype::I32));
    assert!(problem.contains("is of type I32, only F32, F16 and BF16 are supported"), "{problem}");
    let mut bytes = weights(&shapes(), Dtype::F32);
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(problem_with("model.safetensors", bytes).contains("not finite"));
}

#[test]
fn settings_that_are_not_supported_are_refused() {
    let cases = [
        ("model_type", json!("roberta"), "`model_type` is `roberta`, only `bert` is supported"),
        ("hidden_act", json!("relu"), "`hidden_act` is `relu`, only `gelu` is supported"),
        ("position_embedding_type", json!("relative_key"), "only `absolute` is supported"),
        ("num_attention_heads", json!(3), "`hidden_size` 4 is not a multiple of `num_attention_heads` 3"),
        ("num_attention_heads", json!(0), "`num_attention_heads` is 0"),
        ("num_hidden_layers", json!(1_000_000), "`num_hidden_layers` is 1000000, at most 128 is supported"),
        ("intermediate_size", json!(u64::MAX), "`intermediate_size` is 18446744073709551615, at most 32768"),
        ("hidden_size", json!(-4), "is not a model's settings file"),
        ("layer_norm_eps", json!(-1.0), "`layer_norm_eps` is not between 0 and 1"),
    ];
    for (key, value, expected) in cases {
        let mut settings = config();
        settings[key] = value;
        let problem = problem_with("config.json", settings.to_string());
        assert!(problem.contains(expected), "{problem}");
    }
    assert!(problem_with("config.json", "{").contains("is not a model's settings file"));
    assert!(problem_with("tokenizer.json", "[]").contains("is not a model's settings file"));
    let pooling = json!({ "pooling_mode_mean_tokens": false, "pooling_mode_cls_token": true }).to_string();
    assert!(problem_with("1_Pooling/config.json", pooling).contains("only `pooling_mode_mean_tokens`"));
    let modules = json!([{ "type": "sentence_transformers.models.Dense" }]).to_string();
    assert!(problem_with("modules.json", modules).contains("a module of type `Dense`"));
    let added = json!({ "added_tokens": [{ "content": "new", "normalized": true }] }).to_string();
    assert!(problem_with("tokenizer.json", added).contains("added token `new`"));
}

#[test]
fn a_vocabulary_that_does_not_fit_is_refused() {
    let problem = problem_with("vocab.txt", format!("{VOCABULARY}one more\n"));
    assert!(problem.contains("it has 8 lines, but config.json says `vocab_size` 7"), "{problem}");
    assert!(problem_with("vocab.txt", "yes\nno\n").contains("there is no line `[UNK]` in it"));
    assert!(problem_with("vocab.txt", [0xff, 0xfe]).contains("it is not UTF-8"));
    assert!(problem_with("vocab.txt", "\n".repeat(1_000_001)).contains("more than 1000000 lines"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_weights_never_panic(place in 0usize..2000, byte: u8) {
        let mut bytes = weights(&shapes(), Dtype::F32);
        let place = place % bytes.len();
        bytes[place] = byte;
        let dir = whole();
        write(dir.path(), "model.safetensors", bytes);
        if let Ok(model) = LocalModel::open(dir.path()) {
            model.embed("yes no maybe");
        }
    }
}
