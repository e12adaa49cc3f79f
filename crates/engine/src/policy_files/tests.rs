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
