use super::*;

const RESPONSE: &str = r##"{"artifacts": [
    {"type": "file", "path": "a.md", "content": "# Intro\nHello\n## The End"},
    {"type": "structured", "name": "sum", "data": {"total": 7, "items": [3, 4]}},
    {"type": "file", "path": "on-disk.txt"},
    {"type": "reference", "path": "/elsewhere/big.csv"}
]}"##;

#[test]
fn artifacts_exist_in_the_response_or_in_the_workspace() {
    let files = Memory::of(&[("b.txt", "x"), ("dir/c.txt", "")]);
    for (path, expected) in [
        ("a.md", Status::Passed),
        ("sum", Status::Passed),
        ("b.txt", Status::Passed),
        ("./dir//c.txt", Status::Passed),
        ("dir", Status::Failed),
        ("missing", Status::Failed),
        ("../b.txt", Status::Failed),
        ("/elsewhere/big.csv", Status::Passed),
    ] {
        let check = Check::ArtifactExists { path: path.to_owned() };
        assert_eq!(judged(&check, RESPONSE, &files).0, expected, "{path}");
    }
    let (_, message) = judged(&Check::ArtifactExists { path: "x".to_owned() }, RESPONSE, &files);
    assert_eq!(
        message,
        "neither the response nor the workspace has `x`; artifacts: `a.md`, `sum`, `on-disk.txt`, `/elsewhere/big.csv`"
    );
    let (status, _) = judged(&Check::ArtifactExists { path: "x".to_owned() }, RESPONSE, &Memory::broken());
    assert_eq!(status, Status::Error);
    let (status, _) = judged(&Check::ArtifactExists { path: "x".to_owned() }, "null", &Memory::default());
    assert_eq!(status, Status::Failed);
}

#[test]
fn contents_are_searched() {
    let files = Memory::of(&[("on-disk.txt", "written by the agent"), ("other.txt", "found")]);
    for (config, expected) in [
        ("{pattern: Hello}", Status::Passed),
        ("{pattern: hello}", Status::Failed),
        ("{pattern: '(?i)hello', regex: true}", Status::Passed),
        ("{pattern: '\"total\": 7'}", Status::Passed),
        ("{pattern: '\\[3, 4\\]', regex: true, path: sum}", Status::Passed),
        ("{pattern: Hello, path: sum}", Status::Failed),
        ("{pattern: written, path: on-disk.txt}", Status::Passed),
        ("{pattern: found, path: other.txt}", Status::Passed),
        ("{pattern: found}", Status::Failed),
        ("{pattern: x, path: missing}", Status::Failed),
    ] {
        assert_eq!(judged(&loaded("contains", config), RESPONSE, &files).0, expected, "{config}");
    }
    let unusable = Check::Contains { pattern: TextPattern { text: "(".to_owned(), regex: true }, path: None };
    let (status, message) = judged(&unusable, RESPONSE, &files);
    assert_eq!(
        (status, message.as_str()),
        (Status::Error, "`(` is not a regular expression: unclosed group")
    );
}

#[test]
fn data_is_validated() {
    let files = Memory::default();
    for (config, expected) in [
        ("{schema: {type: object, required: [total]}}", Status::Passed),
        ("{schema: {type: object, required: [sum]}}", Status::Failed),
        ("{schema: {properties: {total: {type: string}}}, path: sum}", Status::Failed),
        ("{schema: {type: object}, path: a.md}", Status::Failed),
    ] {
        assert_eq!(judged(&loaded("schema", config), RESPONSE, &files).0, expected, "{config}");
    }
    // A file of the workspace that the response does not name is data too.
    let files = Memory::of(&[("data.json", "{\"total\": 7}\n"), ("broken.json", "{")]);
    for (config, expected) in [
        ("{schema: {type: object, required: [total]}, path: data.json}", Status::Passed),
        ("{schema: {type: object, required: [sum]}, path: data.json}", Status::Failed),
        ("{schema: {type: object}, path: broken.json}", Status::Failed),
        ("{schema: {type: object}, path: absent.json}", Status::Failed),
    ] {
        assert_eq!(judged(&loaded("schema", config), "{}", &files).0, expected, "{config}");
    }
    let unusable = Check::Schema { schema: json(r#"{"type": 5}"#), path: None };
    assert_eq!(judged(&unusable, RESPONSE, &files).0, Status::Error);
}

#[test]
fn sections_are_headings_or_phrases() {
    let files = Memory::default();
    for (config, expected) in [
        ("{sections: [intro, the end]}", Status::Passed),
        ("{sections: [Intro, Method], path: a.md}", Status::Failed),
        ("{sections: [Intro], path: missing}", Status::Failed),
    ] {
        assert_eq!(judged(&loaded("sections", config), RESPONSE, &files).0, expected, "{config}");
    }
    let (_, message) = judged(&loaded("sections", "{sections: [Intro, Method]}"), RESPONSE, &files);
    assert_eq!(
        message,
        "1 of 2 sections are missing: `Method`; the text begins `# Intro\\nHello\\n## The End`"
    );
}

#[test]
fn a_text_that_was_not_found_is_shown_with_what_was_there() {
    let files = Memory::of(&[("out.txt", "Goodbye\n"), ("empty.txt", " \n")]);
    for (kind, config, expected) in [
        (
            "contains",
            "{pattern: absent, path: out.txt}",
            "`absent` was not found in `out.txt`, which begins `Goodbye`",
        ),
        (
            "file_contains",
            "{path: out.txt, pattern: hello}",
            "`out.txt` does not contain `hello`, but begins `Goodbye`",
        ),
        (
            "file_contains",
            "{path: empty.txt, pattern: hello}",
            "`empty.txt` does not contain `hello`, but is empty",
        ),
    ] {
        assert_eq!(
            judged(&loaded(kind, config), "{}", &files),
            (Status::Failed, expected.to_owned()),
            "{config}"
        );
    }
    let long = format!(
        "{{\"artifacts\": [{{\"type\": \"file\", \"path\": \"a\", \"content\": \"{}\"}}]}}",
        "x".repeat(500)
    );
    let (_, message) = judged(&loaded("contains", "{pattern: y}"), &long, &files);
    assert!(message.ends_with("x…`") && message.len() < 300, "{message}");
}
