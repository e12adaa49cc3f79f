//! SSH signatures with their allowed signers, and tokens with their key sets.

use proctor_core::time::Timestamp;

use crate::fuzz::{Material, drive};

/// Signature of the line `text`, made by ssh-keygen, and the signers that admit it.
const SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg7r0H4RxY9e3KCtnrQNp/DhN2bW
GNkl3NAlsq6CdFXwcAAAAIYWdlbnRjbGkAAAAAAAAABnNoYTUxMgAAAFMAAAALc3NoLWVk
MjU1MTkAAABA1lnsEjtvop5mxrtVRwhyR/vYLHgIrLhul3MNp0vixj3N5ymlHsbsRFPXM7
DkeMnBbHyzfF8pqQPpPxJwgWzGBg==
-----END SSH SIGNATURE-----
";
const SIGNERS: &str = "# comment\n\nann,*@example.com,!eve@example.com namespaces=\"agentcli,file\",valid-after=\"20200101Z\",valid-before=\"20990101Z\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO69B+EcWPXtygrZ60Dafw4Tdm1hjZJdzQJbKugnRV8H ann\n";
const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIO69B+EcWPXtygrZ60Dafw4Tdm1hjZJdzQJbKugnRV8H";
/// 2026-06-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_micros(1_780_272_000_000_000);

#[test]
fn agentcli_signatures_and_signers() {
    use proctor_proof::ssh::{AllowedSigners, Request, SshSignature, local_zone, verify};

    let words = &[
        "-----BEGIN SSH SIGNATURE-----",
        "-----END SSH SIGNATURE-----",
        "\n",
        " ",
        "AAAA",
        "====",
        "U1NIU0lH",
        "*",
        "?",
        "!",
        ",",
        "namespaces=\"agentcli\"",
        "valid-before=\"20300101\"",
        "valid-after=\"20200101Z\"",
        "cert-authority",
        "ssh-ed25519",
        "ecdsa-sha2-nistp256",
        "ssh-rsa",
        "\"",
        "#",
        "\t",
    ];
    let valid: &[&[u8]] = &[SIGNATURE.as_bytes(), SIGNERS.as_bytes()];
    let zone = local_zone();
    let signers = AllowedSigners::parse(SIGNERS, &zone).unwrap();
    let request = Request { principal: "ann", namespace: "agentcli", now: NOW };
    verify(&signers, &request, b"text\n", SIGNATURE).unwrap();
    drive("agentcli signature", &Material { words, valid }, |data| {
        let text = String::from_utf8_lossy(data);
        if verify(&signers, &request, b"another text\n", &text).is_ok() {
            return Err("a signature of another text is accepted".into());
        }
        let is_same = verify(&signers, &request, b"text\n", &text).is_ok();
        if is_same && SshSignature::from_armoured(&text) != SshSignature::from_armoured(SIGNATURE) {
            return Err("a changed signature is accepted".into());
        }
        if let Ok(signers) = AllowedSigners::parse(&text, &zone) {
            let other = Request { principal: "eve@example.com", ..request };
            if verify(&signers, &other, b"text\n", SIGNATURE).is_ok() && !text.contains(KEY) {
                return Err("a principal is admitted with a key that the list does not have".into());
            }
        }
        Ok(())
    });
}

#[test]
fn agentcli_tokens() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proctor_proof::jwt::{Expected, KeySet, verify};

    use crate::agentcli::scheduler::proofs;

    let key = proofs::key(7);
    let document = super::FLAT;
    let token = proofs::token(&key, document, r#""jti":"one","aud":["a","b"],"#);
    let keys = KeySet::from_pem(&proofs::pem(&key)).unwrap();
    let expected = Expected {
        issuer: Some("i"),
        audience: Some("a"),
        now: NOW,
        skew: std::time::Duration::from_secs(60),
    };
    let genuine = verify(&token, &keys, &expected).unwrap();
    let set = format!(
        r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{}","kid":"k","use":"sig","alg":"EdDSA"}},{{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}},{{"kty":"RSA","n":"AQAB","e":"AQAB"}}]}}"#,
        URL_SAFE_NO_PAD.encode(key.verifying_key().as_bytes())
    );
    let words = &[
        ".",
        "eyJhbGciOiJub25lIn0",
        "eyJhbGciOiJIUzI1NiJ9",
        "eyJhbGciOiJFZERTQSJ9",
        "e30",
        "=",
        "-",
        "_",
        "\"kty\":\"oct\"",
        "\"k\":\"AA\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\"kid\":\"k\"",
        "\"alg\":\"RS256\"",
        "AAAA",
    ];
    let valid: &[&[u8]] = &[token.as_bytes(), set.as_bytes()];
    drive("agentcli token", &Material { words, valid }, |data| {
        if let Ok(found) = KeySet::from_jwks(data) {
            // Whatever keys it has: no other key accepts the token.
            let _ = verify(&token, &found, &expected);
        }
        let text = String::from_utf8_lossy(data);
        match verify(&text, &keys, &expected) {
            Ok(accepted) if accepted.claims != genuine.claims => Err("a changed token is accepted".into()),
            _ => Ok(()),
        }
    });
}
