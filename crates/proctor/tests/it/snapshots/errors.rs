//! Typical errors.

use super::{POLICY, Transcript};
use crate::support::Gate;

#[test]
fn a_folder_without_settings() {
    let mut transcript = Transcript::empty();
    transcript.run_all(&[
        "session list",
        "session show s1",
        "audit tail",
        "audit fsck",
        "audit export -o x",
        "approve list",
        "agent list",
        "op pause '*'",
        "policy lint",
        "policy check --tool bash",
        "approve allow 01900000-0000-7000-8000-000000000000",
    ]);
    transcript.check("errors_no_ledger");
}

#[test]
fn a_policy_that_cannot_be_read() {
    let mut transcript = Transcript::with_policy("version: \"1\"\ndefault: d");
    std::fs::write(transcript.folder.path("bytes.yaml"), b"version: \"1\"\ndefault: d\xffeny\n").unwrap();
    std::fs::create_dir(transcript.folder.path("nothing")).unwrap();
    transcript.run_all(&[
        "gate",
        "policy check --tool bash",
        "gate --policy bytes.yaml",
        "gate --policy nothing",
        "gate --policy nowhere.yaml",
        "serve --policy nowhere.yaml",
    ]);
    transcript.check("errors_policy");
}

#[test]
fn wrong_arguments() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.run_all(&[
        "gate --no-such-flag",
        "audit tail --sesion s1",
        "polcy lint",
        "policy",
        "session show",
        "init --starter lax",
        "gate --answer-ms soon",
        "audit tail --durability none",
        "completion tcl",
        "",
    ]);
    transcript.check("errors_arguments");
}

#[test]
fn wrong_settings() {
    let mut transcript = Transcript::with_policy(POLICY);
    for text in [
        "agent = \"x\"\npolcy = \"policy.yaml\"\n",
        "[gate]\nanswer = 5\n",
        "durability = \"none\"\n",
        "[gate]\nanswer_ms = \"soon\"\n",
        "policy = \n",
        "polcy = \"p\"\nagent = 5\n[gate]\nanswer_ms = \"soon\"\n[tls]\nkey = \"k\"\n",
        "[ahp]\nanswer_ms = 1000\nhold_ms = 900\n",
        "[[token]]\nname = \"x\"\n",
    ] {
        transcript.write_shown("proctor.toml", text);
        transcript.run("gate");
    }
    transcript.check("errors_settings");
}

#[test]
fn a_second_process() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.prepare("init");
    transcript.write("other.yaml", "version: \"1\"\ndefault: allow\n");
    let mut owner = Gate::spawn(transcript.command("gate"));
    owner.ask("{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}");
    transcript.run_with("gate", "{\"tool\":\"bash\",\"args\":{\"command\":\"ls\"}}\n");
    transcript.run("gate --policy other.yaml");
    transcript.run("serve --http 127.0.0.1:0 --grpc 127.0.0.1:0");
    transcript.run("op pause '*'");
    let (code, _) = owner.end();
    assert_eq!(code, 0);
    transcript.check("errors_second_owner");
}

#[test]
fn a_state_directory_that_others_can_write() {
    use std::os::unix::fs::PermissionsExt;
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.prepare("init");
    std::fs::set_permissions(transcript.folder.state(), PermissionsExt::from_mode(0o777)).unwrap();
    transcript.run("gate");
    transcript.check("errors_shared_state");
}
