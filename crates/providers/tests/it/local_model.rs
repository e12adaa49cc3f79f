//! A real model, all-MiniLM-L6-v2, with its own tokenizer and an independent forward pass as judges.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use proctor_providers::local::LocalModel;

const TEXTS: usize = 3000;
const VECTORS: usize = 200;
const VECTORS_IN_A_FULL_RUN: usize = 1000;

#[test]
fn tokens_and_vectors_are_those_of_the_reference() {
    let seed = std::env::var("PROCTOR_SEED")
        .map_or(20_240_611, |seed| seed.parse().expect("PROCTOR_SEED is a number"));
    let mut random = Random(seed);
    let mut texts: Vec<String> = FIXED.iter().map(|text| (*text).to_owned()).collect();
    texts.resize_with(TEXTS, || random.text());
    let full = std::env::var("PROCTOR_FULL").is_ok_and(|full| full == "1");
    let vectors = if full { VECTORS_IN_A_FULL_RUN } else { VECTORS };

    let model = model();
    let answers = reference(&texts, vectors);
    assert_eq!(answers.len(), texts.len());
    let mut largest = 0.0f64;
    for (text, answer) in texts.iter().zip(&answers) {
        assert_eq!(model.token_ids(text), answer.ids, "tokens of {text:?} with seed {seed}");
        let Some(expected) = &answer.vector else { continue };
        let vector: Vec<f64> = model.embed(text).into_iter().map(f64::from).collect();
        assert_eq!(vector.len(), expected.len());
        let difference = vector.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(difference < 1e-4, "vector of {text:?} with seed {seed} is off by {difference}");
        assert!(cosine(&vector, expected) > 0.9999, "direction of {text:?} with seed {seed}");
        largest = largest.max(difference);
    }
    println!("{} token lists, {vectors} vectors, largest difference {largest:e}", texts.len());
}

/// Every character that there is, inside a word: nothing but its own class can make the difference.
#[test]
fn every_character_is_taken_for_what_the_reference_takes_it_for() {
    let characters: Vec<char> = ('\0'..=char::MAX).collect();
    let texts: Vec<String> = characters
        .chunks(40)
        .map(|group| group.iter().map(|character| format!("a{character}b ")).collect())
        .collect();
    let model = model();
    for (text, answer) in texts.iter().zip(reference(&texts, 0)) {
        assert_eq!(model.token_ids(text), answer.ids, "tokens of {text:?}");
    }
}

#[test]
fn a_published_vector_comes_out() {
    let vector = model().embed("This is an example sentence");
    let published = [0.067_656_92, 0.063_495_97, 0.048_713_12, 0.079_304_99, 0.037_448_07, 0.002_652_75];
    for (ours, theirs) in vector.iter().zip(published) {
        assert!((ours - theirs).abs() < 1e-5, "{ours} is not {theirs}");
    }
}

#[test]
fn the_same_said_otherwise_is_nearer_than_something_else() {
    let model = model();
    let similarity = |a: &str, b: &str| {
        let vector = |text| model.embed(text).into_iter().map(f64::from).collect::<Vec<_>>();
        cosine(&vector(a), &vector(b))
    };
    let pairs = [
        ("The cat is sleeping on the sofa.", "A cat naps on the couch."),
        ("How do I reset my password?", "I forgot my password, how can I change it?"),
        ("The payment was refunded to the customer.", "The client got their money back."),
        ("It will rain heavily tomorrow.", "Strong rainfall is expected the next day."),
    ];
    for (index, (text, paraphrase)) in pairs.iter().enumerate() {
        let near = similarity(text, paraphrase);
        assert!(near > 0.5, "{text:?} and {paraphrase:?}: {near}");
        for (other, unrelated) in
            pairs.iter().map(|pair| pair.1).enumerate().filter(|(other, _)| *other != index)
        {
            let far = similarity(text, unrelated);
            assert!(
                near > far + 0.2,
                "{text:?} is as near to {unrelated:?} ({far}) as to pair {other} ({near})"
            );
        }
    }
}

#[test]
fn the_model_says_what_it_is() {
    let model = model();
    assert_eq!(model.dimensions(), 384);
    let (folder, digits) = model.name().split_once(':').unwrap();
    assert_eq!(folder, "model");
    assert!(digits.len() == 12 && digits.chars().all(|digit| digit.is_ascii_hexdigit()));
    assert_eq!(model.token_ids("Hello, world!"), [101, 7592, 1010, 2088, 999, 102]);
    assert_eq!(model.token_ids(""), [101, 102]);
    let long = model.token_ids(&"word ".repeat(100_000));
    assert_eq!((long.len(), long.last()), (256, Some(&102)));
    let length: f32 = model.embed("anything").iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-5);
}

/// Texts that have been wrong somewhere, or could be.
const FIXED: &[&str] = &[
    "",
    " ",
    "\n\t\r",
    "\0",
    "[CLS]",
    "[SEP] [SEP]",
    "a[MASK]b",
    "[mask] [Mask] [MASK",
    "[UNK][PAD][UNUSED0][unused0]",
    "##ing ing##",
    "don't stop-believing...",
    "ΑΣ ΑΣΑ ς",
    "İstanbul ſtraße ẞ",
    "e\u{301}e\u{327}\u{301} \u{344} \u{1e9b}\u{323}",
    "\u{37e}\u{1fef}\u{2126}\u{212b}",
    "가나다 한국어 ㄱ",
    "中文和日本語テスト",
    "\u{f900}\u{2b820}\u{2b91f}\u{2b920}\u{2f800}",
    "\u{200b}zero\u{200d}width\u{ad}",
    "\u{fffd}x\u{fffe}y\u{10ffff}",
    "👩‍👩‍👧‍👦 🇩🇪 ❤️",
    "\u{302e}a\u{302f}\u{1d165}\u{16d}",
];

const WORDS: &[&str] = &[
    "the",
    "agent",
    "must",
    "not",
    "send",
    "money",
    "without",
    "Approval",
    "budget",
    "Policy",
    "unbelievable",
    "internationalisation",
    "Tokenizer",
    "HTTP",
    "42",
    "3.14",
    "2026-11-16",
    "naïve",
    "café",
    "Ångström",
    "straße",
    "Übermut",
    "señor",
    "fiancée",
    "Привет",
    "мир",
    "ελληνικά",
    "שלום",
    "مرحبا",
    "नमस्ते",
    "สวัสดี",
    "tiếng",
    "Việt",
    "e-mail",
    "isn't",
    "C++",
    "user@example.org",
    "x_y_z",
    "antidisestablishmentarianism",
    "qzxwvk",
];

const SPECIAL: &[&str] =
    &["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "[sep]", "[ SEP ]", "##a", "<s>", "[unused7]"];

const SPACES: &[&str] =
    &[" ", " ", " ", " ", " ", "  ", "\t", "\n", "\r\n", "\u{a0}", "\u{3000}", "\u{2009}", ""];

/// The code points from which a random character is drawn, one range at a time.
const BLOCKS: &[(u32, u32)] = &[
    (0x00, 0x20),
    (0x21, 0x7f),
    (0x7f, 0xa0),
    (0xa0, 0x250),
    (0x300, 0x370),
    (0x370, 0x600),
    (0x600, 0xe00),
    (0x1e00, 0x2000),
    (0x2000, 0x2070),
    (0x20a0, 0x2c00),
    (0x3000, 0x3100),
    (0x4e00, 0x9fff),
    (0xac00, 0xd7a4),
    (0xe000, 0xe100),
    (0xf900, 0x10000),
    (0x1f300, 0x1f700),
    (0x20000, 0x2ffff),
    (0x0, 0x11_0000),
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn character(&mut self) -> char {
        let (first, end) = BLOCKS[self.below(BLOCKS.len())];
        let offset = u32::try_from(self.below((end - first) as usize)).unwrap();
        char::from_u32(first + offset).unwrap_or('\u{fffd}')
    }

    /// Mostly short; one in fifty is longer than the model reads.
    fn text(&mut self) -> String {
        let parts = match self.below(50) {
            0 => 300,
            1..=10 => self.below(60),
            _ => self.below(15),
        };
        let mut text = String::new();
        for _ in 0..parts {
            match self.below(20) {
                0..=11 => text.push_str(self.of(WORDS)),
                12..=15 => (0..=self.below(6)).for_each(|_| text.push(self.character())),
                16 => text.push_str(self.of(SPECIAL)),
                17 => text.push(self.character()),
                18 => text.push_str(&self.of(WORDS).to_uppercase()),
                _ => {
                    let letter = self.of(&["a", "é", "ing", "字", "e\u{301}"]);
                    text.push_str(&letter.repeat([3, 33, 98, 99, 100, 101, 102, 150][self.below(8)]));
                }
            }
            text.push_str(self.of(SPACES));
        }
        text
    }
}

#[derive(serde::Deserialize)]
struct Answer {
    ids: Vec<u32>,
    vector: Option<Vec<f64>>,
}

/// Reference values of each text; of the first `vectors` also the vector.
fn reference(texts: &[String], vectors: usize) -> Vec<Answer> {
    let questions: String = texts
        .iter()
        .enumerate()
        .map(|(index, text)| format!("{}\n", serde_json::json!({ "text": text, "vector": index < vectors })))
        .collect();
    let environment = environment();
    let mut program = Command::new(&environment.python)
        .arg(crate_folder().join("tests/it/local_model_reference.py"))
        .arg(&environment.model)
        .env("HF_HUB_OFFLINE", "1")
        // Its threads spin while they wait for each other, which on a busy machine takes ten times as long.
        .env("OPENBLAS_NUM_THREADS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the reference starts");
    // It reads everything before its first answer, so neither side waits for the other.
    program.stdin.take().unwrap().write_all(questions.as_bytes()).expect("the reference reads");
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success(), "the reference failed: {}", output.status);
    let answers = String::from_utf8(output.stdout).unwrap();
    answers.lines().map(|line| serde_json::from_str(line).expect("an answer of the reference")).collect()
}

struct Environment {
    python: PathBuf,
    model: PathBuf,
}

fn environment() -> &'static Environment {
    static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let script = crate_folder().join("../../scripts/python-model");
        let output =
            Command::new(&script).stderr(Stdio::inherit()).output().expect("scripts/python-model starts");
        assert!(output.status.success(), "scripts/python-model failed: {}", output.status);
        let printed = String::from_utf8(output.stdout).unwrap();
        let (python, model) =
            printed.trim_end().rsplit_once('\n').expect("two lines from scripts/python-model");
        Environment { python: PathBuf::from(python), model: PathBuf::from(model) }
    })
}

fn model() -> &'static LocalModel {
    static MODEL: OnceLock<LocalModel> = OnceLock::new();
    MODEL.get_or_init(|| LocalModel::open(&environment().model).unwrap_or_else(|problem| panic!("{problem}")))
}

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
