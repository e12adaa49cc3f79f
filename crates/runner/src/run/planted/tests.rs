use super::*;
use crate::checks::WorkspacePath;

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn programs_are_known_by_what_is_run_and_not_by_the_first_word() {
    for (line, tool) in [
        (&["pytest", "tests"][..], Tool::Pytest),
        (&["/usr/bin/pytest"], Tool::Pytest),
        (&["python3", "-m", "pytest", "-q"], Tool::Pytest),
        (&["sh", "-c", "cd x && pytest -q; echo"], Tool::Pytest),
        (&["env", "A=1", "npm", "test"], Tool::Node),
        (&["bash", "-c", "$(make check)"], Tool::Make),
    ] {
        assert_eq!(tools(&words(line)), [tool], "{line:?}");
    }
    assert_eq!(tools(&words(&["python3", "check.py", "pytest-like", "makefile"])), []);
}

#[test]
fn only_settings_that_the_agent_made_are_found() {
    let base = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = base.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("fixture/pyproject.toml", "same");
    put("fixture/setup.cfg", "before");
    put("fixture/node_modules/.bin/sh", "same");
    put("checks/conftest.py", "ours");
    for (path, text) in [
        ("copy/pyproject.toml", "same"),
        ("copy/setup.cfg", "after"),
        ("copy/tests/conftest.py", "ours"),
        ("copy/tests/deep/conftest.py", "theirs"),
        ("copy/tests/__pycache__/test_a.pyc", "theirs"),
        ("copy/conftest.py", "theirs"),
        ("copy/pytest.ini", "inline"),
        ("copy/.npmrc", "theirs"),
        ("copy/node_modules/.bin/node", "theirs"),
        ("copy/node_modules/.bin/sh", "same"),
        ("copy/node_modules/.bin/other", "theirs"),
        ("copy/solution.py", ""),
    ] {
        put(path, text);
    }
    let at = |path: &str| WorkspacePath::parse(path).unwrap();
    let files = [
        ResolvedFile { target: at("tests"), source: ResolvedSource::Path(base.path().join("checks")) },
        ResolvedFile { target: at("pytest.ini"), source: ResolvedSource::Inline("inline".to_owned()) },
    ];
    let fixture = base.path().join("fixture");
    let given = Given { files: &files, fixture: Some(&fixture), reference: &[], expected_artifacts: &[] };
    let copy = base.path().join("copy");
    let is_program = |name: &str| ["node", "sh"].contains(&name);
    let found = |tools: &[Tool]| -> Vec<String> {
        find(&copy, &given, tools, &is_program).into_iter().map(|(path, _)| path).collect()
    };
    assert_eq!(
        found(&[Tool::Pytest]),
        ["conftest.py", "setup.cfg", "tests/__pycache__", "tests/deep/conftest.py"]
    );
    assert_eq!(found(&[Tool::Node]), [".npmrc", "node_modules/.bin/node", "tests/__pycache__"]);
    assert_eq!(found(&[]), ["tests/__pycache__"]);
    let warnings = clear(&copy, &given, &[Tool::Node], &is_program).unwrap();
    assert_eq!(warnings.first().unwrap(), "not used by npm, because the agent wrote it: `.npmrc`");
    assert_eq!(warnings.len(), 2);
    assert!(!copy.join(".npmrc").exists() && !copy.join("tests/__pycache__").exists());
}
