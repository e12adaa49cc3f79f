//! Tests of patches.

use proptest::prelude::*;

use super::files;

fn check(patch: &str, writes: &[&str], deletes: &[&str]) {
    let found = files(patch);
    assert_eq!(found.writes, writes, "{patch}");
    assert_eq!(found.deletes, deletes, "{patch}");
    assert!(found.unknown.is_empty(), "{patch}: {:?}", found.unknown);
}

#[test]
fn unified_diffs() {
    check("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", &["x"], &[]);
    check("--- x.orig\t2020-01-01\n+++ x\t2020-01-02\n", &["x"], &[]);
    check("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+a\n", &["new"], &[]);
    check("--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", &[], &["gone"]);
    check("--- a/x\n+++ a/x\n", &["a/x"], &[]);
    check("--- i/x\n+++ w/x\n", &["x"], &[]);
    check("--- a/x\n+++ b/y\n", &["y", "x"], &[]);
    check("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n", &["x", "y"], &[]);
    check("--- \"a/\\303\\244.txt\"\n+++ \"b/\\303\\244.txt\"\n", &["ä.txt"], &[]);
    check("--- ../../etc/passwd\n+++ ../../etc/passwd\n", &["../etc/passwd", "../../etc/passwd"], &[]);
}

#[test]
fn git_headers() {
    check("diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n", &["x"], &[]);
    check("diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n", &["n"], &["o"]);
    check("diff --git a/x b/x\ndeleted file mode 100644\nindex 1..0\n", &[], &["x"]);
    check("diff --git a/x b/x\nnew file mode 100755\nindex 0..0\n", &["x"], &[]);
    check("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", &["x"], &[]);
    check("diff --git a/a b.txt b/a b.txt\nnew file mode 100644\n", &["a b.txt"], &[]);
    check("diff --git \"a/\\303\\244\" \"b/\\303\\244\"\ndeleted file mode 100644\n", &[], &["ä"]);
    check("diff --git a/x b/x\nGIT binary patch\nliteral 0\n", &["x"], &[]);
    check("diff --git a/x b/y\ncopy from x\ncopy to y\n", &["y"], &[]);
}

#[test]
fn content_is_not_a_header() {
    check("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/no\n+++ b/no\n c\n", &["x"], &[]);
    let hidden = "--- a/x\n+++ b/x\n@@ -1,999 +1,999 @@\n c\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n";
    check(hidden, &["x", "y"], &[]);
}

#[test]
fn begin_patch_format() {
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n@@\n-x\n+y\n\
                 *** Delete File: d\n*** Update File: e\n@@\n-1\n+2\n*** End Patch\n";
    check(patch, &["a", "b", "c", "e"], &["b", "d"]);
}

#[test]
fn other_text_is_unknown() {
    for text in ["", "hello", "*** Begin Patch\n*** End Patch", "--- a/x\n", "+++ b/x"] {
        let found = files(text);
        assert!(found.writes.is_empty() && found.deletes.is_empty(), "{text}");
        assert!(!found.unknown.is_empty(), "{text}");
    }
    assert_eq!(files("*** Add File:\n").unknown.len(), 2);
}

proptest! {
    #[test]
    fn never_panics(text in "\\PC*|(--- |\\+\\+\\+ |diff --git |@@ -|\"|a/x| |\\n|\\\\3|\\*\\*\\* Add File: ){0,20}") {
        let found = files(&text);
        prop_assert!(!found.writes.is_empty() || !found.deletes.is_empty() || !found.unknown.is_empty());
    }

    #[test]
    fn every_changed_file_is_found(names in prop::collection::vec("[a-z]{1,8}(/[a-z]{1,8}){0,3}", 1..8)) {
        let section = |name: &String| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n");
        let patch = names.iter().map(section).collect::<Vec<_>>().concat();
        let found = files(&patch);
        for name in &names {
            prop_assert!(found.writes.contains(name), "{}", patch);
        }
    }
}

#[test]
fn wrong_counts_and_other_formats_hide_no_file() {
    let names = |patch: &str| files(patch).writes;
    let counted =
        "--- a/x\n+++ b/x\n@@ -1,100 +1,100 @@\n-x\n+y\n--- /dev/null\n+++ /etc/y\n@@ -0,0 +1 @@\n+x\n";
    let without_hunk = "--- a/x\n+++ b/x\n@@ -1,100 +1,100 @@\n-x\n--- /dev/null\n+++ /etc/y\n+x\n";
    let context = "*** /etc/y\tdate\n--- /etc/y\n***************\n*** 1 ****\n! x\n--- 1 ----\n! y\n";
    let loose = "*** Begin Patch\n***  add file:  /etc/y\n+x\n*** End Patch";
    let renamed = "diff --git a/x b/x\nrename old x\nrename new /etc/y\n";
    for patch in [counted, without_hunk, context, loose, renamed] {
        assert!(names(patch).contains(&"/etc/y".to_owned()), "{patch} {:?}", files(patch));
    }
    assert!(names("--- a/src/a\n+++ b/../../etc/y\n").contains(&"../../etc/y".to_owned()));
    assert!(
        names("--- src/../../etc/y\n+++ src/../../etc/y\n").contains(&"../../etc/y".to_owned()),
        "stripped"
    );
}

proptest! {
    #[test]
    fn what_stands_around_a_patch_hides_no_file(
        before in "[a-z `*]{0,20}\n",
        indent in " {0,3}",
        ending in prop_oneof!["\n", "\r\n", "\r"],
        name in "[a-z]{1,8}(/[a-z]{1,8}){0,3}",
    ) {
        for patch in [
            format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n"),
            format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n"),
            format!("diff --git a/{name} b/{name}\nnew file mode 100644\n"),
        ] {
            let lines: Vec<String> = patch.lines().map(|line| format!("{indent}{line}")).collect();
            let text = format!("{before}{}", lines.join(&ending));
            prop_assert!(super::looks_like(&text), "{:?}", text);
            prop_assert!(files(&text).writes.contains(&name), "{:?} {:?}", text, files(&text));
        }
    }
}
