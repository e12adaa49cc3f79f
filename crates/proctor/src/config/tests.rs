use super::*;

#[test]
fn flags_beat_the_file_and_paths_start_where_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(
        folder.path().join("proctor.toml"),
        "state = \"st\"\nagent = \"x\"\n[gate]\nanswer_ms = 5\n",
    )
    .unwrap();
    let config = Config::load(
        &inner,
        &Overrides { agent: Some("y".into()), policy: Some("p.yaml".into()), ..Overrides::default() },
    )
    .unwrap();
    assert_eq!(config.engine.state, folder.path().join("st"));
    assert_eq!(config.engine.policy, Some(inner.join("p.yaml")));
    assert_eq!(config.engine.agent, "y");
    assert_eq!(config.engine.answer, Duration::from_millis(5));
}

#[test]
fn a_workspace_is_pinned_for_all_and_for_a_token_and_an_empty_variable_pins_none() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let file = folder.path().join("proctor.toml");
    std::fs::write(
        &file,
        "workspace = \"app\"\n[[token]]\nname = \"ci\"\nenv = \"X\"\nworkspace = \"/builds\"\n",
    )
    .unwrap();
    let of = |workspace: Option<&str>, principal: &str| {
        let overrides = Overrides { workspace: workspace.map(PathBuf::from), ..Overrides::default() };
        let config = Config::load(&real, &overrides).unwrap();
        config.engine.workspaces.of(principal).to_owned()
    };
    assert_eq!(of(None, "uid:1000"), real.join("app").to_str().unwrap());
    assert_eq!(of(None, "agent:ci"), "/builds");
    assert_eq!(of(Some("other"), "uid:1000"), real.join("other").to_str().unwrap());
    assert_eq!(of(Some(""), "uid:1000"), real.join("app").to_str().unwrap());
    std::fs::write(&file, "").unwrap();
    assert_eq!(of(Some(""), "uid:1000"), "");
}

#[test]
fn settings_that_cannot_be_read_or_meant_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let load = || Config::load(folder.path(), &Overrides::default()).map_err(|error| error.to_string());
    let file = folder.path().join("proctor.toml");
    std::fs::create_dir(&file).unwrap();
    assert!(load().unwrap_err().contains("proctor.toml"));
    std::fs::remove_dir(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    assert!(load().unwrap_err().contains("proctor.toml"));
    std::fs::remove_file(&file).unwrap();
    for door in ["gate", "ahp"] {
        std::fs::write(&file, format!("[{door}]\nanswer_ms = 0\n")).unwrap();
        assert!(load().unwrap_err().contains(&format!("`{door}.answer_ms` is 0")));
    }
}

#[test]
fn settings_that_other_users_can_change_are_refused_wherever_they_are_found() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    let file = folder.path().join("proctor.toml");
    std::fs::write(&file, "").unwrap();
    Config::load(&inner, &Overrides::default()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = Config::load(&inner, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("proctor.toml") && error.contains("chmod go-w"), "{error}");
}

#[test]
fn mistakes_have_a_place() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("proctor.toml"), "agent = 1\npolcy = \"p\"\n").unwrap();
    let error = Config::load(folder.path(), &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("proctor.toml:1:9: `agent`: expected a string"), "{error}");
    assert!(error.contains("proctor.toml:2:1: unknown key `polcy`; did you mean `policy`?"), "{error}");
}
