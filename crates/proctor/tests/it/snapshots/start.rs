//! First steps: `init`, `demo`, `serve`, `names`.

use std::io::{BufRead, BufReader, Read};

use super::{POLICY, Transcript};

#[test]
fn init_in_an_empty_folder() {
    let mut transcript = Transcript::empty();
    transcript.run("init");
    transcript.show("proctor.toml");
    transcript.run_all(&["init", "init --json"]);
    transcript.check("init");
}

#[test]
fn init_refuses_a_credential_where_agents_work() {
    let mut transcript = Transcript::empty();
    transcript.run_all(&["init --credential approver.key", "init --approver 'ann b'"]);
    transcript.check("init_mistakes");
}

#[test]
fn the_demonstration() {
    let mut transcript = Transcript::empty();
    transcript.run_all(&["demo", "demo --json"]);
    transcript.check("demo");
}

#[test]
fn a_server_says_where_it_listens() {
    let mut transcript = Transcript::with_policy(POLICY);
    let line = "serve --http 127.0.0.1:0 --grpc 127.0.0.1:0";
    let mut child = transcript.command(line).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    // The last line of the announcement: everything is open.
    while !printed.contains("\nstate ") {
        assert!(stdout.read_line(&mut printed).unwrap() > 0, "{printed}");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    stdout.read_to_string(&mut printed).unwrap();
    let mut output = child.wait_with_output().unwrap();
    output.stdout = printed.into_bytes();
    transcript.append(line, "", &output);
    transcript.check("serve");
}

#[test]
fn names() {
    let mut transcript = Transcript::with_policy(POLICY);
    transcript.run_all(&["names links", "names links --json", "names --attest"]);
    std::fs::remove_file(transcript.folder.path("links/proctor")).unwrap();
    transcript.write("links/proctor", "mine");
    transcript.run_all(&["names links", "names --attest=../x", "names"]);
    transcript.check("names");
}
