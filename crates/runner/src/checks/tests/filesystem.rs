use super::*;

#[test]
fn the_workspace_is_checked() {
    use Status::{Failed, Passed};
    let files = Memory::of(&[
        ("a.txt", "alpha beta"),
        ("src/b.py", "x = 1"),
        ("src/c.py", ""),
        ("src/deep/d.py", ""),
    ]);
    for (kind, config, expected) in [
        ("file_exists", "{path: a.txt}", Passed),
        ("file_exists", "{path: ./src/b.py}", Passed),
        ("file_exists", "{path: b.py, workspace_path: src}", Passed),
        ("file_exists", "{path: src}", Failed),
        ("file_exists", "{path: x}", Failed),
        ("dir_exists", "{path: src}", Passed),
        ("dir_exists", "{path: .}", Passed),
        ("dir_exists", "{path: a.txt}", Failed),
        ("file_not_exists", "{path: x}", Passed),
        ("file_not_exists", "{path: a.txt}", Failed),
        ("file_not_exists", "{path: src}", Failed),
        ("file_contains", "{path: a.txt, pattern: beta}", Passed),
        ("file_contains", "{path: a.txt, pattern: Beta}", Failed),
        ("file_contains", "{path: a.txt, pattern: '^a.*a$', regex: true}", Passed),
        ("file_contains", "{path: src, pattern: x}", Failed),
        ("file_contains", "{path: x, pattern: x}", Failed),
        ("file_count", "{path: src, count: 2}", Passed),
        ("file_count", "{path: src, count: 3}", Failed),
        ("file_count", "{count: 1}", Passed),
        ("file_count", "{path: src, count: 1, operator: gt}", Passed),
        ("file_count", "{path: src, count: 2, operator: gte}", Passed),
        ("file_count", "{path: src, count: 2, operator: lt}", Failed),
        ("file_count", "{path: src, count: 2, operator: lte}", Passed),
        ("file_count", "{path: x}", Failed),
    ] {
        assert_eq!(judged(&loaded(kind, config), "{}", &files).0, expected, "{kind} {config}");
        assert_eq!(
            judged(&loaded(kind, config), "{}", &Memory::broken()).0,
            Status::Error,
            "{kind} {config}"
        );
    }
    let content = "x".repeat((16 << 20) + 1);
    let large = Memory::of(&[("a", content.as_str())]);
    assert_eq!(judged(&loaded("file_contains", "{path: a, pattern: y}"), "{}", &large).0, Status::Error);
}

#[test]
fn paths_stay_in_the_workspace() {
    for (written, expected) in [
        ("a", Some("a")),
        ("./a//b/.", Some("a/b")),
        (".", Some(".")),
        ("a/..b", Some("a/..b")),
        ("..", None),
        ("a/../b", None),
        ("a\\..\\b", None),
        ("/a", None),
        ("~/a", None),
        ("C:\\a", None),
        ("\\\\host\\a", None),
        ("", None),
        ("a\0b", None),
    ] {
        assert_eq!(
            WorkspacePath::parse(written).ok().as_ref().map(WorkspacePath::as_str),
            expected,
            "{written:?}"
        );
    }
    assert!(WorkspacePath::parse(&"a".repeat(4097)).is_err());
}
