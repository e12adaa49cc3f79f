//! Private keys as ssh-keygen writes them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use proctor_proof::key::KeyError;
use proctor_proof::ssh::{PrivateKey, PrivateKeyError, SignerError, SshSignatureError};

use super::{Folder, MESSAGE, Question, judge, keygen};

#[test]
fn an_encrypted_key_is_an_error_and_no_prompt() {
    let folder = Folder::new();
    for (name, format) in [("openssh", &[][..]), ("pkcs8", &["-m", "PKCS8"]), ("traditional", &["-m", "PEM"])]
    {
        let path = folder.path(name);
        let start = ["-q", "-t", "ecdsa", "-N", "passphrase", "-f", path.to_str().unwrap()];
        keygen(&[&start[..], format].concat(), b"");
        let began = Instant::now();
        let verdict = PrivateKey::load(&path);
        assert!(matches!(verdict, Err(PrivateKeyError::Encrypted)), "{name}: {verdict:?}");
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_key_of_another_format_is_named() {
    let folder = Folder::new();
    let path = folder.path("key");
    keygen(&["-q", "-t", "ecdsa", "-N", "", "-m", "PEM", "-f", path.to_str().unwrap()], b"");
    assert!(matches!(PrivateKey::load(&path), Err(PrivateKeyError::OtherFormat)));
    let text = PrivateKey::parse("hunter2").unwrap_err().to_string();
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_key_that_others_can_read_is_refused_as_ssh_does() {
    let folder = Folder::new();
    let path = folder.make_key("key", &["ed25519"]);
    for (mode, is_refused) in [(0o644, true), (0o640, true), (0o620, true), (0o600, false), (0o400, false)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let verdict = PrivateKey::load(&path);
        assert_eq!(matches!(verdict, Err(PrivateKeyError::File(_))), is_refused, "{mode:o}: {verdict:?}");
        assert_eq!(verdict.is_err(), is_refused);
    }
}

#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let folder = Folder::new();
    assert!(matches!(PrivateKey::load(&folder.path("absent")), Err(PrivateKeyError::File(_))));
    assert!(matches!(PrivateKey::load(&folder.path("")), Err(PrivateKeyError::NotAFile(_))));
    let long = folder.write("long", &vec![b'a'; 100_000]);
    fs::set_permissions(&long, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(matches!(PrivateKey::load(&long), Err(PrivateKeyError::Pem(_))));
}

#[test]
fn debug_output_shows_no_secret() {
    let folder = Folder::new();
    let path = folder.make_key("key", &["ed25519"]);
    let shown = format!("{:?}", PrivateKey::load(&path).unwrap());
    assert!(shown.contains("SHA256:") && shown.len() < 120, "{shown}");
}

#[test]
fn small_rsa_keys_are_refused_on_both_sides() {
    let folder = Folder::new();
    let path = folder.make_key("key", &["rsa", "-b", "1024"]);
    assert!(matches!(PrivateKey::load(&path), Err(PrivateKeyError::Key(KeyError::RsaSize(1024)))));
    let signature = folder.signature(&path, "agentcli", MESSAGE);
    let signers = format!("* {}", folder.public("key"));
    let refused = SshSignatureError::Key(KeyError::RsaSize(1024));
    assert_eq!(
        judge(&signers, &Question::plain(), MESSAGE, &signature),
        Err(SignerError::Signature(refused))
    );
}
