//! `proctor agent` and `proctor op` from the outside: orders, and the ledger that they go to.

use crate::support::Folder;

#[test]
fn orders_to_a_ledger_that_is_not_there_are_refused_and_make_none() {
    let folder = Folder::with_policy("default: deny\n");
    for args in [
        &["op", "pause", "*", "--reason", "stop"][..],
        &["agent", "suspend", "uid:0", "--reason", "stop"],
        &["agent", "kill", "nobody"],
        &["approve", "deny", "01a1e3c7-2352-7669-b3c8-ce9e6edaccda"],
    ] {
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(!folder.state().join("ledger.db").exists(), "{args:?}");
    }
}

#[test]
fn after_init_there_is_an_empty_ledger_to_look_at() {
    let folder = Folder::with_approver("default: deny\n");
    for args in [
        &["agent", "list"][..],
        &["op", "list"],
        &["approve", "list"],
        &["audit", "tail"],
        &["audit", "fsck"],
        &["op", "pause", "*", "--reason", "stop"],
    ] {
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    for (operation, word) in [("a:b", "is not paused"), ("c:d", "was terminated")] {
        if word == "was terminated" {
            assert!(folder.run(&["op", "terminate", operation, "--reason", "end"]).status.success());
        }
        let refused = folder.run(&["op", "resume", operation]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&refused.stderr).contains(word), "{operation}");
    }
}
