//! Reading of manifests.

use proctor_wire::agentcli::finding::Finding;

use super::{InputError, read};
use crate::home::Surroundings;

fn here(folder: &std::path::Path) -> Surroundings {
    Surroundings {
        working_dir: folder.to_owned(),
        home: folder.join("home"),
        user_home: Some(folder.to_owned()),
        ..Surroundings::default()
    }
}

#[test]
fn inputs_are_files_names_texts_and_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = here(folder.path());
    std::fs::create_dir_all(folder.path().join("home/manifests")).unwrap();
    std::fs::write(folder.path().join("a.json"), r#"{"version":"0.1"}"#).unwrap();
    std::fs::write(folder.path().join("home/manifests/nightly.json"), r#"{"version":"0.2"}"#).unwrap();
    let version = |word: &str| read(word, &surroundings, None).unwrap().manifest["version"].to_string();
    assert_eq!(version("a.json"), "\"0.1\"");
    assert_eq!(version("~/a.json"), "\"0.1\"");
    assert_eq!(version("nightly"), "\"0.2\"");
    assert_eq!(version("nightly.json"), "\"0.2\"");
    assert_eq!(version(r#"{"version":"x"}"#), "\"x\"");
    let mut piped: &[u8] = b"version: \"0.2\"\n";
    assert_eq!(
        read("-", &surroundings, Some(&mut piped)).unwrap().manifest["version"].to_string(),
        "\"0.2\""
    );
    assert!(matches!(read("-", &surroundings, None), Err(InputError::StandardInput(_))));
    assert!(matches!(read("absent", &surroundings, None), Err(InputError::NotFound(_))));
    assert!(matches!(read("../a", &surroundings, None), Err(InputError::NotFound(_))));
    assert!(matches!(read(".", &surroundings, None), Err(InputError::NotAFile(_))));
    assert!(matches!(read(r#"{"a":1,"a":2}"#, &surroundings, None), Err(InputError::Json { .. })));
}

#[test]
fn findings_of_yaml_have_positions() {
    let folder = tempfile::tempdir().unwrap();
    let text = "version: 0.2\nworkflows:\n  - id: w\n    tasks:\n      - id: a\n        shell:\n          args: [x, y]\n";
    std::fs::write(folder.path().join("m.yaml"), text).unwrap();
    let input = read("m.yaml", &here(folder.path()), None).unwrap();
    assert!(input.has_unquoted_version());
    let at = |path: &str| {
        let position = input.position(&Finding::new(path, "x", "x")).unwrap();
        (position.line, position.column)
    };
    assert_eq!(at("$.version"), (1, 1));
    assert_eq!(at("$.workflows[0].tasks[0].shell.args[1]"), (7, 21));
    // A path that does not exist gives the deepest node on the way.
    assert_eq!(at("$.workflows[0].tasks[0].name"), (5, 9));
    assert_eq!(at("$"), (1, 1));
}
