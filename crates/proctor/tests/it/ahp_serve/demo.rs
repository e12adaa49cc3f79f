//! The first command that anybody runs.

use proctor_core::json::Json;

use crate::ahp_serve::server::POLICY;
use crate::support::{Folder, lines, text};

/// In a scratch folder that goes away with the test.
fn demo(folder: &Folder, more: &[&str]) -> std::process::Output {
    let mut args = vec!["demo"];
    args.extend(more);
    let mut command = folder.command(&args);
    command.env("TMPDIR", folder.dir.path()).stdin(std::process::Stdio::null());
    command.output().unwrap()
}

const STEPS: [(&str, &str); 7] = [
    ("list the files", "allow"),
    ("delete the build folder", "block"),
    ("send a note with a key in it", "modify"),
    ("search with 5000 results", "modify"),
    ("publish the branch", "escalate"),
    ("publish it, now approved", "allow"),
    ("fetch a page without asking", "alarm"),
];

#[test]
fn the_demonstration_shows_seven_steps_and_where_to_look() {
    let folder = Folder::with_policy(POLICY);
    let output = demo(&folder, &[]);
    let (said, shown) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{said}");
    for (wanted, answer) in STEPS {
        let line = shown.lines().find(|line| line.trim_start().starts_with(wanted));
        let line = line.unwrap_or_else(|| panic!("no line for `{wanted}`: {shown}"));
        assert!(line.contains(answer), "{line}");
    }
    assert!(!shown.contains("QX7Z2M4RT9WLK3VD"), "the key is shown: {shown}");
    // Every command that it names works.
    let commands: Vec<&str> = shown.lines().filter_map(|line| line.trim().strip_prefix("proctor ")).collect();
    assert_eq!(commands.len(), 2, "{shown}");
    for command in commands {
        let args: Vec<&str> = command.split(' ').collect();
        let output = folder.run(&args);
        assert!(output.status.success(), "`{command}`: {}", String::from_utf8_lossy(&output.stderr));
        assert!(!output.stdout.is_empty(), "`{command}` shows nothing");
    }
    let policy = shown.lines().find_map(|line| line.strip_prefix("The policy that decided: ")).unwrap();
    assert!(std::path::Path::new(policy).is_file(), "{policy}");
}

#[test]
fn the_demonstration_can_be_read_by_programs() {
    let folder = Folder::with_policy(POLICY);
    let output = demo(&folder, &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let mut shown = lines(&output);
    let end = shown.pop().unwrap();
    let steps: Vec<(&str, &str)> =
        shown.iter().map(|step| (text(step, "wanted"), text(step, "answer"))).collect();
    assert_eq!(steps, STEPS);
    assert_eq!(end.get("as_expected"), Some(&Json::Bool(true)), "{end}");
    let session = folder.run(&["session", "show", text(&end, "session_id"), "--state", text(&end, "state")]);
    assert!(session.status.success(), "{}", String::from_utf8_lossy(&session.stderr));
    let session = String::from_utf8(session.stdout).unwrap();
    assert!(session.contains("unasked"), "{session}");
}

#[test]
fn two_demonstrations_at_once_do_not_meet_and_the_users_own_settings_do_not_matter() {
    let folder = Folder::with_policy("this is no policy");
    folder.write("proctor.toml", "state = \"mine\"\npolicy = \"policy.yaml\"\n");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..2).map(|_| scope.spawn(|| demo(&folder, &["--json"]))).collect();
        for run in runs {
            let output = run.join().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        }
    });
    assert!(!folder.path("mine").exists());
}
