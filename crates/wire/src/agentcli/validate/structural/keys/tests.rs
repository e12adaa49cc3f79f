use super::*;

/// An RSA public key with a modulus of so many bits, made of ones.
fn rsa(bits: usize, label: &str) -> String {
    fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let mut out =
            vec![tag, 0x82, u8::try_from(length >> 8).unwrap(), u8::try_from(length & 0xff).unwrap()];
        out.extend_from_slice(content);
        out
    }
    let mut modulus = vec![0u8];
    modulus.extend(std::iter::repeat_n(0xffu8, bits / 8));
    let mut key = wrap(2, &modulus);
    key.extend(wrap(2, &[1, 0, 1]));
    let key = wrap(0x30, &key);
    let der = if label == "RSA PUBLIC KEY" {
        key
    } else {
        let mut bits = vec![0u8];
        bits.extend(key);
        let identifier = [0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
        let mut info = wrap(0x30, &identifier);
        info.extend(wrap(3, &bits));
        wrap(0x30, &info)
    };
    let body = STANDARD.encode(der);
    format!("comment\n-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
}

#[test]
fn size_of_rsa_keys_is_read() {
    for bits in [1024, 2048, 4096] {
        assert_eq!(rsa_bits(&rsa(bits, "PUBLIC KEY")), Some(bits));
        assert_eq!(rsa_bits(&rsa(bits, "RSA PUBLIC KEY")), Some(bits));
    }
    // Ed25519 key of RFC 8410.
    let edwards = concat!(
        "-----BEGIN PUBLIC KEY-----\n",
        "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n",
        "-----END PUBLIC KEY-----"
    );
    assert!(is_public_key(edwards));
    assert_eq!(rsa_bits(edwards), None);
}

#[test]
fn other_texts_are_no_public_keys() {
    let key = rsa(2048, "PUBLIC KEY");
    for text in [
        "",
        "a public key",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
        "-----BEGIN PUBLIC KEY-----\n!!!!\n-----END PUBLIC KEY-----",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        &key.replace("PUBLIC", "PRIVATE"),
        &key.replace("PUBLIC KEY", "CERTIFICATE"),
        key.get(..200).unwrap(),
    ] {
        assert!(!is_public_key(text), "{text}");
    }
    assert!(is_certificate(&key.replace("PUBLIC KEY", "CERTIFICATE")));
}

#[test]
fn sets_hold_public_keys_only() {
    let large = URL_SAFE_NO_PAD.encode(vec![0xffu8; 256]);
    let small = URL_SAFE_NO_PAD.encode(vec![0xffu8; 128]);
    let set = |key: &str| Json::parse(format!(r#"{{"keys":[{key}]}}"#).as_bytes()).unwrap();
    assert!(is_key_set(&set(&format!(r#"{{"kty":"RSA","n":"{large}","e":"AQAB"}}"#))));
    assert!(is_key_set(&set(r#"{"kty":"EC","crv":"P-256","x":"a","y":"b"}"#)));
    for bad in [
        format!(r#"{{"kty":"RSA","n":"{small}","e":"AQAB"}}"#),
        format!(r#"{{"kty":"RSA","n":"{large}","e":"AQAB","d":"x"}}"#),
        r#"{"kty":"oct","k":"x"}"#.to_owned(),
        r#"{"kty":"RSA"}"#.to_owned(),
        "1".to_owned(),
        String::new(),
    ] {
        assert!(!is_key_set(&set(&bad)), "{bad}");
    }
    assert!(!is_key_set(&Json::object()));
}
