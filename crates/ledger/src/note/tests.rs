use super::*;
use proptest::prelude::*;

const TEXT: &str = "first line\n\nsecond paragraph, ä\n";

fn key(name: &str, seed: u8) -> SecretKey {
    SecretKey::from_seed(name, Algorithm::Ed25519, &[seed; 32]).unwrap()
}

fn witness_key(name: &str, seed: u8) -> SecretKey {
    SecretKey::from_seed(name, Algorithm::CosignatureV1, &[seed; 32]).unwrap()
}

fn signed(keys: &[&SecretKey]) -> Note {
    let mut note = Note::new(TEXT.to_owned()).unwrap();
    for key in keys {
        note.sign(key).unwrap();
    }
    note
}

#[test]
fn the_example_of_the_specification_verifies() {
    let key = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k".parse().unwrap();
    let text = "This is an example message.\n\n— example.com/foo \
                Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";
    let note = Note::parse(text.as_bytes()).unwrap();
    assert_eq!(note.text(), "This is an example message.\n");
    assert_eq!(note.verify(&key), Ok(()));
    assert_eq!(note.to_string(), text);
}

#[test]
fn a_fixed_seed_gives_a_fixed_note() {
    let note = signed(&[&key("example.com/log", 1)]);
    assert_eq!(note.to_string(), FIXED_NOTE);
    assert_eq!(Note::parse(FIXED_NOTE.as_bytes()), Ok(note));
}

const FIXED_NOTE: &str = "first line

second paragraph, ä

— example.com/log m+XTxjZEoG7ZPgz0ivNbVYBBzcvopLwU0Jp7Q8YGdTNpr+dOQDr3naaKs+Iarknul/GwXXE93TjtBUarSSuNcGNXUgs=
";

#[test]
fn each_flipped_bit_is_refused_when_the_signer_is_required() {
    let signer = key("example.com/log", 1);
    let bytes = signed(&[&signer]).to_string().into_bytes();
    assert!(Note::parse(&bytes).unwrap().verify(signer.verifier_key()).is_ok());
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << bit;
            let refused = Note::parse(&changed).and_then(|note| note.verify(signer.verifier_key())).is_err();
            assert!(refused, "bit {bit} of byte {position}");
        }
    }
}

#[test]
fn each_flipped_bit_of_a_cosigned_note_is_refused_when_the_witness_is_required() {
    let witness = witness_key("example.com/w", 2);
    let mut note = signed(&[]);
    note.add(note.cosign(&witness, 1_700_000_000).unwrap()).unwrap();
    let bytes = note.to_string().into_bytes();
    assert_eq!(note.verify_cosignature(witness.verifier_key()), Ok(1_700_000_000));
    for position in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << bit;
            let refused = Note::parse(&changed)
                .and_then(|note| note.verify_cosignature(witness.verifier_key()))
                .is_err();
            assert!(refused, "bit {bit} of byte {position}");
        }
    }
}

#[test]
fn each_removed_or_doubled_byte_is_refused_when_the_signer_is_required() {
    let signer = key("example.com/log", 1);
    let bytes = signed(&[&signer]).to_string().into_bytes();
    for position in 0..bytes.len() {
        let mut removed = bytes.clone();
        removed.remove(position);
        let mut doubled = bytes.clone();
        doubled.insert(position, bytes[position]);
        for changed in [removed, doubled, bytes[..position].to_vec()] {
            assert!(Note::parse(&changed).and_then(|note| note.verify(signer.verifier_key())).is_err());
        }
    }
}

#[test]
fn other_signatures_are_ignored_and_wrong_ones_refuse_the_note() {
    let (first, second, stranger) = (key("a", 1), key("b", 2), key("c", 3));
    let note = signed(&[&first, &second]);
    assert_eq!(note.verify(first.verifier_key()), Ok(()));
    assert_eq!(note.verify(second.verifier_key()), Ok(()));
    assert_eq!(
        note.verify(stranger.verifier_key()).unwrap_err().to_string(),
        format!("the note has no signature by `c` (key identifier `{}`)", stranger.verifier_key().id())
    );
    let same_name = key("a", 9);
    assert!(matches!(note.verify(same_name.verifier_key()), Err(NoteError::NotSigned { .. })));

    // A right signature does not outweigh a wrong one by the same key.
    let other_text = {
        let mut note = Note::new("other\n".to_owned()).unwrap();
        note.sign(&first).unwrap();
        note.signatures()[0].to_string()
    };
    let both = Note::parse(format!("{note}{other_text}").as_bytes()).unwrap();
    assert!(matches!(both.verify(first.verifier_key()), Err(NoteError::BadSignature { .. })));
    assert_eq!(both.verify(second.verifier_key()), Ok(()));
}

#[test]
fn signing_and_cosigning_keys_are_kept_apart() {
    let (signer, witness) = (key("a", 1), witness_key("a", 1));
    let mut note = signed(&[&signer]);
    assert!(matches!(note.sign(&witness), Err(NoteError::WrongAlgorithm { .. })));
    assert!(matches!(note.cosign(&signer, 1), Err(NoteError::WrongAlgorithm { .. })));
    assert!(matches!(note.verify(witness.verifier_key()), Err(NoteError::WrongAlgorithm { .. })));
    assert!(matches!(note.verify_cosignature(signer.verifier_key()), Err(NoteError::WrongAlgorithm { .. })));
    assert!(matches!(note.verify_cosignature(witness.verifier_key()), Err(NoteError::NotSigned { .. })));
}

#[test]
fn a_cosignature_is_laid_out_as_specified() {
    let witness = witness_key("example.com/w", 2);
    let note = signed(&[]);
    let line = note.cosign(&witness, 0x0102_0304).unwrap();
    assert_eq!(line.key_id(), witness.verifier_key().id());
    let (time, signature) = line.signature().split_at(8);
    assert_eq!(time, [0, 0, 0, 0, 1, 2, 3, 4]);
    let message = format!("cosignature/v1\ntime 16909060\n{TEXT}");
    assert!(witness.verifier_key().accepts(message.as_bytes(), signature.try_into().unwrap()));
    assert_eq!(NoteSignature::parse(&line.to_string()), Ok(line));

    assert!(note.cosign(&witness, MAX_TIME).is_ok());
    let mut beyond = (MAX_TIME + 1).to_be_bytes().to_vec();
    beyond.extend_from_slice(&witness.sign(cosigned_message(MAX_TIME + 1, TEXT).as_bytes()));
    let mut carrying = signed(&[]);
    carrying.add(NoteSignature::by(&witness, beyond)).unwrap();
    assert!(matches!(
        carrying.verify_cosignature(witness.verifier_key()),
        Err(NoteError::BadSignature { .. })
    ));
    assert_eq!(note.cosign(&witness, MAX_TIME + 1), Err(NoteError::TimeTooLarge { time: MAX_TIME + 1 }));
}

#[test]
fn the_latest_of_several_cosignatures_counts_and_adding_replaces() {
    let witness = witness_key("w", 2);
    let mut note = signed(&[]);
    let (early, late) = (note.cosign(&witness, 5).unwrap(), note.cosign(&witness, 9).unwrap());
    let both = Note::parse(format!("{note}{late}{early}").as_bytes()).unwrap();
    assert_eq!(both.verify_cosignature(witness.verifier_key()), Ok(9));
    note.add(late).unwrap();
    note.add(early).unwrap();
    assert_eq!(note.signatures().len(), 1);
    assert_eq!(note.verify_cosignature(witness.verifier_key()), Ok(5));
}

#[test]
fn malformed_notes_are_refused() {
    let good = signed(&[&key("a", 1)]).to_string();
    let line = good.rsplit_once("\n\n").unwrap().1;
    let encoded = line.trim_end().rsplit_once(' ').unwrap().1;
    let stray_bits = format!("{}5=", &encoded[..encoded.len() - 2]);
    for (note, expected) in [
        (String::new(), "no empty line"),
        ("\n".to_owned(), "no empty line"),
        ("text\n".to_owned(), "no empty line"),
        ("text\n\n".to_owned(), "no empty line"),
        (format!("text\n{line}"), "no empty line"),
        (format!("text\n\n{}", line.trim_end()), "line 1 of the note"),
        (format!("{good}x"), "line 2 of the note"),
        (format!("{good}\n"), "no empty line"),
        (format!("{good}\ntrailing"), "line 1 of the note"),
        (good.replace("— a", "- a"), "em dash"),
        (good.replace("— a", "—  a"), "the key name is empty"),
        (good.replace("— a", "— a+"), "plus signs"),
        (good.replace("— a", "— a\u{a0}b"), "spaces"),
        (good.replace(encoded, &format!("{encoded} ")), "canonical base64"),
        (good.replace(encoded, encoded.trim_end_matches('=')), "canonical base64"),
        (good.replace(encoded, &stray_bits), "canonical base64"),
        (good.replace(encoded, "AAAAAA=="), "no bytes after the key identifier"),
        (good.replace(encoded, "AAAA"), "no bytes after the key identifier"),
        (good.replace(encoded, ""), "no bytes after the key identifier"),
        (good.replace("first", "first\r"), "control character"),
        (good.replace("first", "fir\u{9b}st"), "control character"),
        (good.replace('\n', "\r\n"), "control character"),
        (format!("text\n\n{}", line.repeat(33)), "more than 32 signatures"),
        (format!("{}\n\n{line}", "x".repeat(MAX_NOTE_BYTES)), "at most 65536"),
    ] {
        let error = Note::parse(note.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{note:.80?} gave {error:?}");
    }
    assert_eq!(Note::parse(b"\xff\n\n"), Err(NoteError::NotText));
    assert!(Note::parse(format!("text\n\n{}", line.repeat(32)).as_bytes()).is_ok());
    assert_eq!(Note::new("no newline".to_owned()), Err(NoteError::TextEnd));
    assert!(Note::new("bell\u{7}\n".to_owned()).is_err());
}

#[test]
fn a_note_that_could_not_be_read_back_is_not_made() {
    let mut note = Note::new(format!("{}\n", "x".repeat(MAX_NOTE_BYTES - 200))).unwrap();
    note.sign(&key("a", 1)).unwrap();
    assert!(matches!(note.sign(&key(&"b".repeat(200), 2)), Err(NoteError::TooLarge { .. })));
    assert_eq!(Note::parse(note.to_string().as_bytes()), Ok(note));

    let mut note = signed(&[]);
    for seed in 0..32 {
        note.sign(&key("a", seed)).unwrap();
    }
    assert_eq!(note.sign(&key("a", 32)), Err(NoteError::TooManySignatures));
    assert_eq!(Note::parse(note.to_string().as_bytes()), Ok(note));
}

/// A note that is parsed prints back byte for byte, and parses again to the same note.
fn assert_prints_back(data: &[u8]) {
    let Ok(note) = Note::parse(data) else { return };
    let printed = note.to_string();
    assert_eq!(printed.as_bytes(), data);
    assert_eq!(Note::parse(printed.as_bytes()), Ok(note));
}

proptest! {
    #[test]
    fn random_bytes_keep_the_law(data in prop::collection::vec(any::<u8>(), 0..400)) {
        assert_prints_back(&data);
    }

    #[test]
    fn almost_notes_keep_the_law(
        text in "[a-z\n ]{0,30}",
        lines in prop::collection::vec("(— |-)?[a-zä+ ]{0,6} [A-Za-z0-9+/]{0,14}={0,2}\n{0,2}", 0..5),
    ) {
        assert_prints_back(format!("{text}\n\n{}", lines.concat()).as_bytes());
    }

    #[test]
    fn changed_notes_keep_the_law(at in any::<prop::sample::Index>(), byte in any::<u8>(), removed in 0usize..3) {
        let mut bytes = signed(&[&key("example.com/log", 1), &key("b", 2)]).to_string().into_bytes();
        let start = at.index(bytes.len());
        let end = (start + removed).min(bytes.len());
        bytes.splice(start..end, [byte]);
        assert_prints_back(&bytes);
    }

    #[test]
    fn any_text_can_be_signed_and_read_back(text in "[ -~\n“ä]{0,200}") {
        let signer = key("a", 1);
        let mut note = Note::new(format!("{text}\n")).unwrap();
        note.sign(&signer).unwrap();
        let read = Note::parse(note.to_string().as_bytes()).unwrap();
        prop_assert_eq!(read.verify(signer.verifier_key()), Ok(()));
        prop_assert_eq!(read, note);
    }
}
