use super::*;

#[test]
fn a_pipe_in_a_policy_folder_is_a_mistake_and_nobody_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), "default: deny\n").unwrap();
    assert!(read_sources(folder.path()).is_ok());
    let pipe = folder.path().join("z.yaml");
    let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    let problems = read_sources(folder.path()).unwrap_err();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].message.contains("not a regular file"), "{problems:?}");
}

#[test]
fn a_policy_that_other_users_can_change_is_refused_wherever_it_is_found() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let policies = folder.path().join("policies");
    let (document, module) = (policies.join("a.yaml"), folder.path().join("m.rego"));
    fs::create_dir(&policies).unwrap();
    fs::write(&document, "default: deny\nmodules:\n  - { rego: ../m.rego }\n").unwrap();
    fs::write(&module, "package proctor\n").unwrap();
    for path in [&policies, &document, &module] {
        let usual = fs::metadata(path).unwrap().permissions();
        assert!(read_sources(&policies).is_ok());
        set(path, 0o777);
        let problems = read_sources(&policies).unwrap_err();
        let told = problems.iter().any(|problem| problem.message.contains("other users can write to"));
        assert!(told && problems[0].message.contains("chmod go-w"), "{problems:?}");
        fs::set_permissions(path, usual).unwrap();
    }
}
