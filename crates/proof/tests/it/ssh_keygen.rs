//! SSH signatures, with OpenSSH's own `ssh-keygen` on the other side.

mod agreement;
mod keys;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use jiff::tz::TimeZone;
use proctor_proof::ssh::{
    AllowedSigners, PrivateKey, Request, Signer, SignerError, SshSignatureError, sign, verify,
};
use tempfile::TempDir;

use crate::support::{NOW, at};

pub(crate) const MESSAGE: &[u8] = br#"{"version":"0.2","workflows":[]}"#;

/// Folder with keys and files of one test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Makes a key pair without a passphrase.
    pub(crate) fn make_key(&self, name: &str, kind: &[&str]) -> PathBuf {
        let path = self.path(name);
        keygen(&[&["-q", "-N", "", "-C", "test", "-f", path.to_str().unwrap(), "-t"], kind].concat(), b"");
        path
    }

    /// Type and base64 of a public key.
    pub(crate) fn public(&self, name: &str) -> String {
        self.read(&format!("{name}.pub")).trim().to_owned()
    }

    /// Signature by ssh-keygen of the message, with the key (or certificate) in that file.
    pub(crate) fn signature(&self, key: &Path, namespace: &str, message: &[u8]) -> String {
        let file = self.write("message", message);
        let _ = fs::remove_file(self.path("message.sig"));
        let (key, file) = (key.to_str().unwrap(), file.to_str().unwrap());
        keygen(&["-q", "-Y", "sign", "-f", key, "-n", namespace, file], b"");
        self.read("message.sig")
    }

    /// Whether ssh-keygen accepts a signature.
    pub(crate) fn accepts(&self, signers: &str, question: &Question<'_>, signature: &str) -> bool {
        let signers = self.write("signers", signers.as_bytes());
        let signature = self.write("signature", signature.as_bytes());
        let verify_time = format!("-Overify-time={}", question.time);
        let arguments = [
            "-Y",
            "verify",
            &verify_time,
            "-f",
            signers.to_str().unwrap(),
            "-I",
            question.principal,
            "-n",
            question.namespace,
            "-s",
            signature.to_str().unwrap(),
        ];
        start(&arguments, MESSAGE, question.zone).status.success()
    }
}

/// Question to ssh-keygen and to us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) principal: &'a str,
    pub(crate) namespace: &'a str,
    /// Present moment, `YYYYMMDDHHMMSSZ`.
    pub(crate) time: &'a str,
    /// Value of `TZ`, in POSIX form.
    pub(crate) zone: &'a str,
}

impl Question<'_> {
    pub(crate) fn plain() -> Question<'static> {
        Question { principal: "ci@example.org", namespace: "agentcli", time: "20260601000000Z", zone: "UTC0" }
    }
}

/// Runs ssh-keygen, which must succeed.
pub(crate) fn keygen(arguments: &[&str], input: &[u8]) -> Output {
    let output = start(arguments, input, "UTC0");
    assert!(output.status.success(), "ssh-keygen {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn start(arguments: &[&str], input: &[u8], zone: &str) -> Output {
    let mut command = Command::new("ssh-keygen");
    // No agent, and no program that could ask for a passphrase.
    command.args(arguments).env("TZ", zone).env_remove("SSH_AUTH_SOCK").env_remove("DISPLAY");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| {
        panic!("this test needs ssh-keygen on PATH (Debian: openssh-client): {error}")
    });
    // A refusal may come before the message was read.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Our verdict.
pub(crate) fn judge(
    signers: &str,
    question: &Question<'_>,
    message: &[u8],
    signature: &str,
) -> Result<Signer, SignerError> {
    let zone = TimeZone::posix(question.zone).unwrap();
    let moment = jiff::fmt::strtime::parse("%Y%m%d%H%M%SZ", question.time).unwrap().to_datetime().unwrap();
    let seconds = moment.to_zoned(TimeZone::UTC).unwrap().timestamp().as_second();
    let request = Request { principal: question.principal, namespace: question.namespace, now: at(seconds) };
    verify(&AllowedSigners::parse(signers, &zone)?, &request, message, signature)
}

const KINDS: [&[&str]; 5] = [
    &["ed25519"],
    &["ecdsa", "-b", "256"],
    &["ecdsa", "-b", "384"],
    &["ecdsa", "-b", "521"],
    &["rsa", "-b", "2048"],
];

#[test]
fn signatures_are_exchanged_with_ssh_keygen_in_both_directions() {
    let folder = Folder::new();
    for (index, kind) in KINDS.into_iter().enumerate() {
        let name = format!("key{index}");
        let path = folder.make_key(&name, kind);
        let signers = format!("ci@example.org {}\n", folder.public(&name));
        let key = PrivateKey::load(&path).unwrap();
        let listed = keygen(&["-l", "-f", path.to_str().unwrap()], b"").stdout;
        assert!(String::from_utf8(listed).unwrap().contains(&key.public().fingerprint()));

        let ours = sign("agentcli", MESSAGE, &key).unwrap();
        let theirs = folder.signature(&path, "agentcli", MESSAGE);
        let wrong_namespace = folder.signature(&path, "file", MESSAGE);
        let plain = Question::plain();
        for signature in [&ours, &theirs] {
            assert!(folder.accepts(&signers, &plain, signature), "{kind:?}");
            let signer = judge(&signers, &plain, MESSAGE, signature).unwrap();
            assert_eq!(signer.key(), key.public(), "{kind:?}");
            let bad = SignerError::Signature(SshSignatureError::BadSignature);
            assert_eq!(judge(&signers, &plain, b"{}", signature), Err(bad));
        }
        assert!(!folder.accepts(&signers, &plain, &wrong_namespace));
        let problem = SshSignatureError::WrongNamespace("agentcli".to_owned());
        assert_eq!(judge(&signers, &plain, MESSAGE, &wrong_namespace), Err(SignerError::Signature(problem)));
        if kind == ["ed25519"] {
            assert_eq!(ours, theirs, "Ed25519 is deterministic: both write the same bytes");
        }
    }
}

#[test]
fn sha256_signatures_are_accepted() {
    let folder = Folder::new();
    let key = folder.make_key("key", &["ed25519"]);
    let file = folder.write("message", MESSAGE);
    let (key, file) = (key.to_str().unwrap(), file.to_str().unwrap());
    keygen(&["-q", "-Y", "sign", "-O", "hashalg=sha256", "-f", key, "-n", "agentcli", file], b"");
    let signers = format!("* {}", folder.public("key"));
    assert!(judge(&signers, &Question::plain(), MESSAGE, &folder.read("message.sig")).is_ok());
}

#[test]
fn an_empty_namespace_signs_nothing() {
    let folder = Folder::new();
    let key = PrivateKey::load(&folder.make_key("key", &["ed25519"])).unwrap();
    assert!(sign("", MESSAGE, &key).is_err());
    let signers = AllowedSigners::parse(&format!("* {}", folder.public("key")), &TimeZone::UTC).unwrap();
    let request = Request { principal: "a", namespace: "", now: at(NOW) };
    let signature = sign("agentcli", MESSAGE, &key).unwrap();
    assert!(verify(&signers, &request, MESSAGE, &signature).is_err());
}
