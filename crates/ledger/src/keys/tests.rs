use super::*;
use proptest::prelude::*;

fn key(name: &str, algorithm: Algorithm, seed: u8) -> SecretKey {
    SecretKey::from_seed(name, algorithm, &[seed; 32]).unwrap()
}

fn vkey(name: &str, algorithm: Algorithm, seed: u8) -> String {
    key(name, algorithm, seed).verifier_key().to_string()
}

#[test]
fn the_first_key_of_rfc_8032_signs_as_published() {
    let seed = hex::decode("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
    let key =
        SecretKey::from_seed("example", Algorithm::Ed25519, seed.as_slice().try_into().unwrap()).unwrap();
    assert_eq!(
        hex::encode(key.verifier_key().public_key()),
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    );
    let signature = key.sign(b"");
    assert_eq!(
        hex::encode(signature),
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd\
         25bf5f0595bbe24655141438e7a100b"
    );
    assert!(key.verifier_key().accepts(b"", &signature));
    assert!(!key.verifier_key().accepts(b"x", &signature));
}

#[test]
fn a_signature_with_a_shifted_scalar_is_refused() {
    let key = key("example", Algorithm::Ed25519, 1);
    let mut signature = key.sign(b"message");
    // Adding the group order to S gives a second signature that a lax verifier would take.
    let order = hex::decode("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010").unwrap();
    let mut carry = 0u16;
    for (byte, added) in signature[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(added) + carry;
        *byte = (sum & 0xff) as u8;
        carry = sum >> 8;
    }
    assert!(!key.verifier_key().accepts(b"message", &signature));
}

#[test]
fn published_verifier_keys_are_read_and_printed_back() {
    for text in [
        "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k",
        "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8",
    ] {
        let key: VerifierKey = text.parse().unwrap();
        assert_eq!(key.to_string(), text);
        assert_eq!(key.algorithm(), Algorithm::Ed25519);
    }
}

#[test]
fn the_same_key_has_another_identifier_under_another_name_or_algorithm() {
    let first = key("a", Algorithm::Ed25519, 1);
    let named = key("b", Algorithm::Ed25519, 1);
    let cosigning = key("a", Algorithm::CosignatureV1, 1);
    assert!(first.verifier_key().same_public_key(named.verifier_key()));
    assert_ne!(first.verifier_key().id(), named.verifier_key().id());
    assert_ne!(first.verifier_key().id(), cosigning.verifier_key().id());
    assert_ne!(first, named);
    assert_eq!(first, first.clone());
    assert_ne!(first, key("a", Algorithm::Ed25519, 2));
}

#[test]
fn every_changed_character_of_a_verifier_key_is_refused() {
    let text = vkey("example.com/log", Algorithm::Ed25519, 7);
    for position in 0..text.len() {
        for bit in 0..7 {
            let mut bytes = text.clone().into_bytes();
            bytes[position] ^= 1 << bit;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(changed.parse::<VerifierKey>().is_err(), "{changed}");
        }
        assert!(text[..position].parse::<VerifierKey>().is_err());
    }
    assert!(format!("{text}\n").parse::<VerifierKey>().is_err());
    assert!(format!(" {text}").parse::<VerifierKey>().is_err());
}

#[test]
fn keys_of_small_order_are_refused() {
    let mut neutral_point = [0; 32];
    neutral_point[0] = 1;
    for bytes in [[0; 32], neutral_point, [0xff; 32]] {
        assert_eq!(
            VerifierKey::new("a", Algorithm::Ed25519, &bytes),
            Err(VerifierKeyError::Point),
            "{bytes:?}"
        );
    }
}

#[test]
fn a_second_spelling_of_a_key_is_refused() {
    // The field's prime plus a small number stands for that number; some of these are points of full order.
    let mut otherwise_usable = 0;
    for low in 0xed..=0xff {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (low, 0x7f);
        otherwise_usable += usize::from(VerifyingKey::from_bytes(&bytes).is_ok_and(|key| !key.is_weak()));
        assert_eq!(VerifierKey::new("a", Algorithm::Ed25519, &bytes), Err(VerifierKeyError::Point), "{low}");
    }
    assert!(otherwise_usable > 0);
}

#[test]
fn names_that_would_be_ambiguous_are_refused() {
    assert_eq!(check_key_name("example.com/ledger/ä"), Ok(()));
    assert_eq!(check_key_name(""), Err(KeyNameError::Empty));
    assert_eq!(check_key_name(&"a".repeat(255)), Ok(()));
    assert_eq!(check_key_name(&"a".repeat(256)), Err(KeyNameError::TooLong { bytes: 256 }));
    for character in [' ', '+', '\n', '\t', '\0', '\u{7f}', '\u{85}', '\u{a0}', '\u{2003}', '\u{3000}'] {
        assert_eq!(check_key_name(&format!("a{character}b")), Err(KeyNameError::Character { character }));
    }
}

#[test]
fn a_secret_key_file_is_one_line_and_is_read_back() {
    let original = key("example.com/log", Algorithm::Ed25519, 9);
    let text = original.encode();
    assert_eq!(
        text.as_str(),
        "PROCTOR-SECRET-KEY-1 example.com/log ed25519 CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=\n"
    );
    assert_eq!(SecretKey::decode(&text).unwrap(), original);
    assert_eq!(SecretKey::decode(text.trim_end()).unwrap(), original);
    let witness = key("w", Algorithm::CosignatureV1, 9);
    assert_eq!(SecretKey::decode(&witness.encode()).unwrap(), witness);
}

#[test]
fn a_secret_key_file_that_differs_in_anything_is_refused() {
    let seed = "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=";
    let long = "a".repeat(100_000);
    for (text, expected) in [
        (String::new(), SecretKeyError::Form),
        (format!("PROCTOR-SECRET-KEY-2 a ed25519 {seed}"), SecretKeyError::Form),
        (format!("PROCTOR-SECRET-KEY-1  a ed25519 {seed}"), SecretKeyError::Form),
        (format!("PROCTOR-SECRET-KEY-1 a ed25519 {seed} x"), SecretKeyError::Form),
        (format!("PROCTOR-SECRET-KEY-1 a ed25519 {seed}\n\n"), SecretKeyError::Seed),
        (format!("PROCTOR-SECRET-KEY-1 a ed25519 {seed}\r\n"), SecretKeyError::Seed),
        (
            format!("PROCTOR-SECRET-KEY-1 a+b ed25519 {seed}"),
            KeyNameError::Character { character: '+' }.into(),
        ),
        (format!("PROCTOR-SECRET-KEY-1 a Ed25519 {seed}"), SecretKeyError::Algorithm),
        ("PROCTOR-SECRET-KEY-1 a ed25519 CQkJ".to_owned(), SecretKeyError::Seed),
        (format!("PROCTOR-SECRET-KEY-1 a ed25519 AAAA{seed}"), SecretKeyError::Seed),
        (format!("PROCTOR-SECRET-KEY-1 a ed25519 {}", seed.replace("k=", "l=")), SecretKeyError::Seed),
        (format!("PROCTOR-SECRET-KEY-1 a ed25519 {long}"), SecretKeyError::Form),
    ] {
        assert_eq!(SecretKey::decode(&text), Err(expected), "{text:.100}");
    }
}

#[test]
fn no_secret_is_shown_by_debug_or_in_errors() {
    let key = key("example.com/log", Algorithm::Ed25519, 9);
    let shown = format!("{key:?}");
    assert!(shown.contains("secret not shown"));
    assert!(!shown.contains("CQkJ") && !shown.contains("0909") && !shown.contains("9, 9"), "{shown}");
    let wrong = "PROCTOR-SECRET-KEY-1 a ed25519 SECRETSEED";
    assert!(!format!("{:?}", SecretKey::decode(wrong)).contains("SECRETSEED"));
}

#[test]
fn a_trust_file_is_read() {
    let text = format!(
        "# whom we trust\n\nlog {}\nwitness {}\nwitness {}\r\napprover {}  \n",
        vkey("log", Algorithm::Ed25519, 1),
        vkey("w1", Algorithm::CosignatureV1, 2),
        vkey("w2", Algorithm::CosignatureV1, 3),
        vkey("alice", Algorithm::Ed25519, 4),
    );
    let trust: Trust = text.parse().unwrap();
    let names = |keys: &[VerifierKey]| keys.iter().map(|key| key.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&trust.logs), ["log"]);
    assert_eq!(names(&trust.witnesses), ["w1", "w2"]);
    assert_eq!(names(&trust.approvers), ["alice"]);
    assert_eq!(trust.quorum, 2, "all witnesses, when the file does not say");
    assert_eq!(format!("{text}quorum 1\n").parse::<Trust>().unwrap().quorum, 1);
    assert_eq!(format!("quorum 1\n{text}").parse::<Trust>().unwrap().quorum, 1);
    assert_eq!(trust.to_string().parse::<Trust>().unwrap(), trust);
    assert_eq!("".parse::<Trust>().unwrap(), Trust::default());
}

#[test]
fn trust_file_errors_name_line_column_and_remedy() {
    let log = vkey("log", Algorithm::Ed25519, 1);
    let same_as_log = vkey("w", Algorithm::CosignatureV1, 1);
    let witness = vkey("w", Algorithm::CosignatureV1, 2);
    let cases = [
        ("\nlogs x", "2:1: unknown word `logs`"),
        (" log x", "1:1: unknown word ``"),
        ("log", "1:4: `log` must be followed by a verifier key"),
        ("quorum ", "1:7: `quorum` must be followed by a number"),
        ("log a b", "1:6: unexpected text after the value"),
        ("witness nonsense", "1:9: a verifier key has the form `name+id+key`"),
        (&format!("witness {log}"), "1:9: a witness needs a key of algorithm `cosignature/v1`"),
        (&format!("log {witness}"), "1:5: a log needs a key of algorithm `ed25519`"),
        (&format!("log {log}\n\nlog {log}"), "3:5: this public key is named already on line 1"),
        (&format!("log {log}\nwitness {same_as_log}"), "2:9: this public key is named already"),
        ("quorum 01", "1:8: the quorum is not a whole number"),
        ("quorum +1", "1:8: the quorum is not a whole number"),
        ("quorum -1", "1:8: the quorum is not a whole number"),
        ("quorum 0\nquorum 0", "2:8: the quorum is given already on line 1"),
        ("quorum 1", "1:8: a quorum of 1 can never be reached with 0 witnesses"),
    ];
    for (text, expected) in cases {
        let error = text.parse::<Trust>().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?} gave {error:?}");
    }
    assert!("#".repeat(MAX_TRUST_BYTES + 1).parse::<Trust>().is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic(
        text in "\\PC{0,200}",
        lines in prop::collection::vec("(log|witness|quorum|#)? ?[ -~]{0,80}", 0..6),
    ) {
        let _ = text.parse::<VerifierKey>();
        let _ = SecretKey::decode(&text);
        let _ = SecretKey::decode(&format!("PROCTOR-SECRET-KEY-1 {text}"));
        let _ = lines.join("\n").parse::<Trust>();
    }

    #[test]
    fn keys_come_back_from_their_texts(
        seed in any::<[u8; 32]>(), name in "[a-z0-9./é-]{1,40}", cosigning in any::<bool>(),
    ) {
        let algorithm = if cosigning { Algorithm::CosignatureV1 } else { Algorithm::Ed25519 };
        let key = SecretKey::from_seed(&name, algorithm, &seed).unwrap();
        prop_assert_eq!(&SecretKey::decode(&key.encode()).unwrap(), &key);
        prop_assert_eq!(&key.verifier_key().to_string().parse::<VerifierKey>().unwrap(), key.verifier_key());
    }
}
