//! Verdicts on allowed signers and certificates, compared with those of ssh-keygen.

use std::path::PathBuf;

use proctor_proof::ssh::{SignerError, SshSignatureError};

use super::{Folder, MESSAGE, Question, judge, keygen};

/// Compares both verdicts with the expected one.
fn agree(folder: &Folder, signers: &str, question: &Question<'_>, signature: &str, expected: bool) {
    let context = format!("{question:?}\n{signers}");
    assert_eq!(folder.accepts(signers, question, signature), expected, "ssh-keygen: {context}");
    let ours = judge(signers, question, MESSAGE, signature);
    assert_eq!(ours.is_ok(), expected, "{ours:?}: {context}");
}

#[test]
fn principals_and_options_mean_what_ssh_keygen_says() {
    let folder = Folder::new();
    let key = folder.make_key("key", &["ed25519"]);
    folder.make_key("other", &["ed25519"]);
    let signature = folder.signature(&key, "agentcli", MESSAGE);
    let (own, other) = (folder.public("key"), folder.public("other"));
    for (line, expected) in [
        ("ci@example.org KEY", true),
        ("ci@example.org OTHER", false),
        ("someone KEY", false),
        ("*@example.org KEY", true),
        ("c?@example.org KEY", true),
        ("*@example.net KEY", false),
        ("a,*@example.org,b KEY", true),
        ("*,!ci@example.org KEY", false),
        ("!ci@example.org,* KEY", false),
        ("!other,* KEY", true),
        ("!other KEY", false),
        ("CI@EXAMPLE.ORG KEY", false),
        ("\"ci@example.org\" KEY", true),
        ("\"a b,ci@example.org\" KEY", true),
        ("\"ci@example.org KEY", false),
        ("  \tci@example.org\t KEY  comment with words", true),
        ("# ci@example.org KEY", false),
        ("", false),
        ("KEY", false),
        ("garbage\n\nci@example.org KEY", true),
        ("ci@example.org ssh-ed25519 AAAA\nci@example.org KEY", true),
        ("ci@example.org OTHER\nci@example.org KEY", true),
        ("ci@example.org namespaces=\"agentcli\" KEY", true),
        ("ci@example.org namespaces=\"file,git\" KEY", false),
        ("ci@example.org namespaces=\"agent*\" KEY", true),
        ("ci@example.org namespaces=\"*,!agentcli\" KEY", false),
        ("ci@example.org namespaces=\"file\" KEY\nci@example.org KEY", true),
        ("ci@example.org namespaces=agentcli KEY", false),
        ("ci@example.org NAMESPACES=\"agentcli\" KEY", true),
        ("ci@example.org namespaces=\"agentcli\",namespaces=\"agentcli\" KEY", false),
        ("ci@example.org namespaces=\"agentcli KEY", false),
        ("ci@example.org unknown KEY", false),
        ("ci@example.org cert-authority KEY", false),
        ("ci@example.org valid-after=\"20260601\" KEY", true),
        ("ci@example.org valid-after=\"202605312359\" KEY", true),
        ("ci@example.org valid-after=\"20260601000001\" KEY", false),
        ("ci@example.org valid-before=\"20260601\" KEY", true),
        ("ci@example.org valid-before=\"20260531235959\" KEY", false),
        ("ci@example.org valid-after=\"20260101\",valid-before=\"20270101\" KEY", true),
        ("ci@example.org valid-after=\"20270101\",valid-before=\"20260101\" KEY", false),
        ("ci@example.org valid-before=\"tomorrow\" KEY", false),
        ("ci@example.org valid-before=\"20270101Z\" KEY", true),
        ("ci@example.org valid-before=\"20260531Z\" KEY", false),
        ("ci@example.org namespaces=\"agentcli\",valid-after=\"20260101\" KEY", true),
        ("ci@example.org namespaces=\"agentcli\", KEY", false),
    ] {
        let signers = line.replace("KEY", &own).replace("OTHER", &other) + "\n";
        agree(&folder, &signers, &Question::plain(), &signature, expected);
    }
    // Several spaces between options and key, and a carriage return at the end.
    let crlf = format!("ci@example.org namespaces=\"agentcli\"   {own}\r\n");
    assert!(judge(&crlf, &Question::plain(), MESSAGE, &signature).is_ok());
}

#[test]
fn times_without_z_are_in_the_zone_of_the_machine() {
    let folder = Folder::new();
    let key = folder.make_key("key", &["ed25519"]);
    let signature = folder.signature(&key, "agentcli", MESSAGE);
    let own = folder.public("key");
    for (zone, time, expected) in [
        ("UTC0", "202606010000", true),
        // Two hours east: the local time comes two hours earlier.
        ("AAA-2", "202606010200", true),
        ("AAA-2", "202606010201", false),
        ("AAA+3", "202605312100", true),
        ("AAA+3", "202605312101", false),
        // A `Z` makes the zone irrelevant.
        ("AAA-2", "202606010000Z", true),
        ("AAA-2", "202606010001Z", false),
    ] {
        let signers = format!("* valid-after=\"{time}\" {own}\n");
        agree(&folder, &signers, &Question { zone, ..Question::plain() }, &signature, expected);
    }
}

/// ssh-keygen leaves summer time out (its `mktime` is told that there is none); `ssh-keygen(1)` speaks of local time, and so do we.
#[test]
fn summer_time_counts() {
    let folder = Folder::new();
    let key = folder.make_key("key", &["ed25519"]);
    let signature = folder.signature(&key, "agentcli", MESSAGE);
    let own = folder.public("key");
    let zone = "CET-1CEST,M3.5.0,M10.5.0/3";
    for (time, expected) in [("202606010200", true), ("202606010201", false)] {
        let signers = format!("* valid-after=\"{time}\" {own}\n");
        let question = Question { zone, ..Question::plain() };
        assert_eq!(judge(&signers, &question, MESSAGE, &signature).is_ok(), expected, "{time}");
    }
}

#[test]
fn expired_and_future_signers_are_told_apart() {
    let folder = Folder::new();
    let key = folder.make_key("key", &["ed25519"]);
    let signature = folder.signature(&key, "agentcli", MESSAGE);
    let own = folder.public("key");
    let verdict =
        |options: &str| judge(&format!("* {options} {own}"), &Question::plain(), MESSAGE, &signature);
    assert_eq!(verdict("valid-before=\"20260101\""), Err(SignerError::Expired(1)));
    assert_eq!(verdict("valid-after=\"20270101\""), Err(SignerError::NotYetValid(1)));
    assert_eq!(verdict("namespaces=\"git\""), Err(SignerError::NamespaceNotAllowed(1)));
    let unread = verdict("whatever");
    assert!(
        matches!(&unread, Err(SignerError::NotAllowed { bad_lines, .. }) if *bad_lines == [1]),
        "{unread:?}"
    );
}

/// Certificate for a key of that kind, and the signature that it makes.
fn certified(folder: &Folder, kind: &[&str], options: &[&str]) -> String {
    let name = format!("user{}{}", kind.concat(), options.concat().len());
    let key: PathBuf = folder.path(&name);
    if !key.exists() {
        folder.make_key(&name, kind);
    }
    let public = folder.path(&format!("{name}.pub"));
    let authority = folder.path("ca");
    let start = ["-q", "-s", authority.to_str().unwrap(), "-I", "test"];
    keygen(&[&start[..], options, &[public.to_str().unwrap()]].concat(), b"");
    folder.signature(&folder.path(&format!("{name}-cert.pub")), "agentcli", MESSAGE)
}

const VALID: [&str; 2] = ["-V", "20260101000000Z:20270101000000Z"];

#[test]
fn certificates_of_an_authority_mean_what_ssh_keygen_says() {
    for authority in [&["ed25519"][..], &["ecdsa", "-b", "384"], &["rsa", "-b", "2048"]] {
        let folder = Folder::new();
        folder.make_key("ca", authority);
        folder.make_key("other", &["ed25519"]);
        let (ca, other) = (folder.public("ca"), folder.public("other"));
        let good = certified(&folder, &["ed25519"], &[&["-n", "x,ci@example.org"][..], &VALID].concat());
        for (signers, expected) in [
            (format!("ci@example.org cert-authority {ca}\n"), true),
            (format!("*@example.org cert-authority,namespaces=\"agentcli\" {ca}\n"), true),
            (format!("* cert-authority,namespaces=\"git\" {ca}\n"), false),
            (format!("* cert-authority,valid-before=\"20260101\" {ca}\n"), false),
            (format!("x cert-authority {ca}\n"), false),
            (format!("* cert-authority {other}\n"), false),
            (format!("* {ca}\n"), false),
        ] {
            agree(&folder, &signers, &Question::plain(), &good, expected);
        }
        let any = format!("* cert-authority {ca}\n");
        for principal in ["x", "ci@example.org"] {
            agree(&folder, &any, &Question { principal, ..Question::plain() }, &good, true);
        }
        agree(&folder, &any, &Question { principal: "y", ..Question::plain() }, &good, false);
        for (time, expected) in [
            ("20251231235959Z", false),
            ("20260101000000Z", true),
            ("20261231235959Z", true),
            ("20270101000000Z", false),
        ] {
            agree(&folder, &any, &Question { time, ..Question::plain() }, &good, expected);
        }
        // Certificates for nobody in particular, and for hosts.
        let nobody = certified(&folder, &["ed25519"], &VALID);
        agree(&folder, &any, &Question::plain(), &nobody, false);
        let host = certified(&folder, &["ed25519"], &[&["-h", "-n", "ci@example.org"][..], &VALID].concat());
        agree(&folder, &any, &Question::plain(), &host, false);
    }
}

#[test]
fn keys_of_every_kind_can_have_a_certificate() {
    let folder = Folder::new();
    folder.make_key("ca", &["ed25519"]);
    let any = format!("* cert-authority {}\n", folder.public("ca"));
    for kind in super::KINDS {
        let signature = certified(&folder, kind, &[&["-n", "ci@example.org"][..], &VALID].concat());
        agree(&folder, &any, &Question::plain(), &signature, true);
    }
}

#[test]
fn restrictions_that_a_signature_cannot_satisfy_are_refused() {
    let folder = Folder::new();
    folder.make_key("ca", &["ed25519"]);
    let any = format!("* cert-authority {}\n", folder.public("ca"));
    let options = [&["-n", "ci@example.org", "-O", "force-command=/bin/true"][..], &VALID].concat();
    let signature = certified(&folder, &["ed25519"], &options);
    // ssh-keygen does not look at them; we do.
    assert!(folder.accepts(&any, &Question::plain(), &signature));
    let verdict = judge(&any, &Question::plain(), MESSAGE, &signature);
    assert!(matches!(verdict, Err(SignerError::Certificate(_))), "{verdict:?}");
}

#[test]
fn a_forged_certificate_is_refused() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let folder = Folder::new();
    folder.make_key("ca", &["ed25519"]);
    let any = format!("* cert-authority {}\n", folder.public("ca"));
    let signature = certified(&folder, &["ed25519"], &[&["-n", "ci@example.net"][..], &VALID].concat());
    let body: String = signature.lines().filter(|line| !line.starts_with('-')).collect();
    let mut blob = STANDARD.decode(body).unwrap();
    let at = blob.windows(14).position(|part| part == b"ci@example.net").unwrap();
    blob[at..at + 14].copy_from_slice(b"ci@example.org");
    let forged =
        format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", STANDARD.encode(blob));
    let verdict = judge(&any, &Question::plain(), MESSAGE, &forged);
    assert_eq!(verdict, Err(SignerError::Signature(SshSignatureError::Malformed)));
}
