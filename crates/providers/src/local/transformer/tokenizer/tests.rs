use super::*;

const VOCABULARY: &str =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\nA\na\ncafe\ncafé\n,\n中\n##b\nsep\n[\n]\n";
const AS_TRAINED: Preparation =
    Preparation { lowercase_first: false, lowercase: true, strip_accents: true, separate_ideographs: true };

fn tokenizer(preparation: Preparation, longest_sequence: usize) -> Tokenizer {
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(str::to_owned);
    Tokenizer::new(VOCABULARY, &special, preparation, longest_sequence).expect("the vocabulary is whole")
}

/// The tokens between the first and the last, as the vocabulary writes them.
fn tokens(preparation: Preparation, text: &str) -> Vec<&'static str> {
    let ids = tokenizer(preparation, 64).encode(text);
    let entries: Vec<&str> = VOCABULARY.lines().collect();
    let mut tokens: Vec<_> = ids.iter().map(|&id| entries[id as usize]).collect();
    assert_eq!((tokens.remove(0), tokens.pop()), ("[CLS]", Some("[SEP]")));
    tokens
}

#[test]
fn words_are_cut_into_the_longest_entries() {
    assert_eq!(tokens(AS_TRAINED, "Unaffable, a"), ["un", "##aff", "##able", ",", "a"]);
    assert_eq!(tokens(AS_TRAINED, "unaffordable a"), ["[UNK]", "a"]);
    assert_eq!(tokens(AS_TRAINED, "a中b a"), ["a", "中", "[UNK]", "a"]);
    assert_eq!(tokens(AS_TRAINED, ""), Vec::<&str>::new());
}

#[test]
fn what_is_done_to_a_text_is_what_the_settings_say() {
    let bare =
        Preparation { lowercase: false, strip_accents: false, separate_ideographs: false, ..AS_TRAINED };
    assert_eq!(tokens(AS_TRAINED, "A Café"), ["a", "cafe"]);
    assert_eq!(tokens(bare, "A café"), ["A", "café"]);
    assert_eq!(tokens(Preparation { strip_accents: true, ..bare }, "A café"), ["A", "cafe"]);
    assert_eq!(tokens(Preparation { lowercase: true, ..bare }, "A CAFÉ"), ["a", "café"]);
    assert_eq!(tokens(bare, "a中"), ["[UNK]"]);
    assert_eq!(tokens(AS_TRAINED, "[SEP]"), ["[SEP]"]);
    assert_eq!(tokens(Preparation { lowercase_first: true, ..AS_TRAINED }, "[SEP]"), ["[", "sep", "]"]);
}

#[test]
fn special_tokens_are_found_before_anything_else() {
    assert_eq!(tokens(AS_TRAINED, "a[MASK]b a"), ["a", "[MASK]", "[UNK]", "a"]);
    assert_eq!(tokens(AS_TRAINED, "[sep]"), ["[", "sep", "]"]);
    assert_eq!(tokens(AS_TRAINED, "[CLS][PAD]"), ["[CLS]", "[PAD]"]);
}

#[test]
fn a_word_of_a_hundred_characters_is_the_longest() {
    let word = |length: usize| format!("a{}", "b".repeat(length - 1));
    let ids = tokenizer(AS_TRAINED, 512).encode(&word(100));
    assert_eq!(ids.len(), 102);
    assert_eq!(tokens(AS_TRAINED, &word(101)), ["[UNK]"]);
    assert_eq!(tokens(AS_TRAINED, &"x".repeat(1_000_000)), ["[UNK]"]);
}

#[test]
fn a_sequence_is_cut_and_still_closed() {
    for longest in 2..20 {
        for text in ["a ".repeat(30), "unaffable".repeat(30), "[MASK]".repeat(30), "a中[SEP]".repeat(30)] {
            let ids = tokenizer(AS_TRAINED, longest).encode(&text);
            assert!(ids.len() <= longest);
            assert_eq!((ids.first(), ids.last()), (Some(&2), Some(&3)));
            let all = tokenizer(AS_TRAINED, 1000).encode(&text);
            assert_eq!(ids[..ids.len() - 1], all[..ids.len() - 1]);
        }
    }
}

#[test]
fn a_vocabulary_without_its_special_tokens_is_refused() {
    let problem = Tokenizer::new("[UNK]\n[CLS]\na\n", &[], AS_TRAINED, 8).expect_err("there is no [SEP]");
    assert_eq!(problem.to_string(), "there is no line `[SEP]` in it");
    let special = ["[NEW]".to_owned()];
    let problem =
        Tokenizer::new("[UNK]\n[CLS]\n[SEP]\n", &special, AS_TRAINED, 8).expect_err("there is no [NEW]");
    assert_eq!(problem.to_string(), "there is no line `[NEW]` in it");
}

proptest::proptest! {
    #[test]
    fn any_text_gives_a_closed_sequence_of_known_tokens(text in ".{0,80}", longest in 2usize..40) {
        let ids = tokenizer(AS_TRAINED, longest).encode(&text);
        let known = u32::try_from(VOCABULARY.lines().count()).expect("a short vocabulary");
        proptest::prop_assert!(ids.len() <= longest && ids.len() >= 2);
        proptest::prop_assert!(ids.iter().all(|&id| id < known));
    }
}
