//! Features taken away one by one: the report stays true, and `Require` refuses.

use crate::support::Bench;
use crate::world::{Results, World};
use proctor_sandbox::{
    Error, Feature, Features, Limits, Missing, Mode, Network, Protection, Sandbox, Standing,
};

/// Attempts of the helper that break a protection.
fn attempts(protection: Protection) -> &'static [&'static str] {
    match protection {
        Protection::Writes => &[
            "write",
            "append",
            "truncate",
            "pipe",
            "create",
            "folder",
            "link-outside",
            "rename",
            "fetch",
            "remove",
            "symlink",
            "hardlink",
            "own-file-by-proc",
            "sysctl",
            "cgroup",
            "disk",
            "kernel-log",
            "terminal",
            "terminal-input",
            "chmod",
            "chown",
            "lchown",
            "fchmod",
            "fchown",
            "utime",
            "xattr",
            "fxattr",
            "remove-xattr",
            "file-flags",
            "segment",
            "device-node",
            "mount",
        ],
        Protection::HiddenPaths => &[
            "hidden-read",
            "hidden-list",
            "hidden-socket",
            "hidden-datagram",
            "hidden-symlink",
            "hidden-hardlink",
            "hidden-rename",
            "hidden-root-victim",
            "hidden-root-self",
            "hidden-root-first",
            "hidden-cwd",
            "hidden-descriptor",
            "hidden-disk",
        ],
        Protection::OtherProcesses => &[
            "victim-environ",
            "victim-memory",
            "victim-memory-write",
            "victim-maps",
            "victim-trace",
            "supervisor-environ",
            "supervisor-memory",
            "supervisor-memory-write",
            "supervisor-maps",
            "supervisor-trace",
            "signal",
            "keyring",
        ],
        Protection::Network => {
            &["tcp", "udp", "unix", "unix-elsewhere", "unix-datagram", "abstract", "vsock"]
        }
        Protection::Memory => &["map", "unmapped-memory"],
        Protection::FileSize => &["file-size"],
        Protection::Descriptors => &["descriptors"],
        // Attacked in `claims.rs`.
        Protection::Processes | Protection::EndWithRun | Protection::EndWithCaller => &[],
    }
}

/// Compares a report with what really worked.
fn compare(what: &str, bench: &Bench, results: &Results) {
    for (protection, standing) in bench.sandbox.protections().iter() {
        let worked: Vec<&str> = attempts(protection)
            .iter()
            .copied()
            .filter(|name| results.worked.iter().any(|own| own == name))
            .collect();
        match standing {
            Standing::Held { by } => {
                assert!(!by.is_empty(), "{what}: {protection} held by nothing");
                assert!(
                    worked.is_empty(),
                    "{what}: {protection} is reported as held by {standing}, but {worked:?} worked"
                );
            }
            Standing::Missing { reason } => {
                assert!(!reason.is_empty(), "{what}: {protection}");
                let is_tried = !attempts(protection).is_empty() && reason.contains("was possible");
                assert!(
                    !worked.is_empty() || !is_tried,
                    "{what}: {protection} is reported as missing ({reason}), but nothing worked"
                );
            }
            Standing::Waived => panic!("{what}: {protection} waived"),
        }
    }
    assert!(results.worked.iter().any(|name| name == "inside"), "{what}");
}

fn check(what: &str, features: Features) {
    let bench = Bench::with(Mode::Auto, features);
    let world = World::new();
    compare(what, &bench, &world.attack(&bench));
    let required = Sandbox::new(Mode::Require, features, bench.base.path());
    match bench.sandbox.protections().missing().next() {
        None => drop(required.unwrap()),
        Some((protection, _)) => match required {
            Err(Error::Missing(Missing(refused))) => {
                let named: Vec<Protection> = refused.iter().map(|(protection, _)| *protection).collect();
                let missing: Vec<Protection> =
                    bench.sandbox.protections().missing().map(|(protection, _)| protection).collect();
                assert_eq!(named, missing, "{what}");
            }
            other => panic!("{what}: {protection} is missing, but {other:?}"),
        },
    }
    for (protection, standing) in bench.sandbox.protections().iter() {
        println!("without {what}: {protection}: {standing}");
    }
}

#[test]
fn the_report_is_true_with_each_feature_taken_away() {
    for feature in Feature::ALL {
        check(&feature.to_string(), Features::all().without(feature));
    }
}

#[test]
fn the_report_is_true_where_namespaces_are_refused() {
    let none = [
        Feature::UserNamespace,
        Feature::MountNamespace,
        Feature::PidNamespace,
        Feature::IpcNamespace,
        Feature::NetworkNamespace,
    ]
    .into_iter()
    .fold(Features::all(), Features::without);
    check("namespaces", none);
    check("namespaces and Landlock", none.without(Feature::Landlock));
    check("namespaces and seccomp", none.without(Feature::Seccomp));
    check("everything", Features::none());
}

#[test]
fn supervision_alone_missing_is_named() {
    let base = tempfile::tempdir().unwrap();
    let features = Features::all().without(Feature::Supervisor);
    let sandbox = Sandbox::new(Mode::Auto, features, base.path()).unwrap();
    let Standing::Missing { reason } = sandbox.protections().get(Protection::Memory) else {
        panic!("memory is held by nothing here");
    };
    assert_eq!(reason, "nothing adds up the memory of several processes: no supervisor (switched off)");
}

#[test]
fn a_sandbox_that_is_off_says_so() {
    let bench = Bench::with(Mode::Off, Features::all());
    assert_eq!(bench.sandbox.protections().missing().count(), Protection::ALL.len());
    let results = World::new().attack(&bench);
    for name in ["write", "chmod", "hidden-read", "tcp", "udp", "unix", "file-size"] {
        assert!(results.worked.iter().any(|own| own == name), "{name}");
    }
}

#[test]
fn what_the_caller_does_not_know_is_missing() {
    let base = tempfile::tempdir().unwrap();
    let lacking = |mode| {
        let sandbox = Sandbox::deferred(mode, Features::all(), base.path());
        sandbox.lacking(Protection::HiddenPaths, "the home directory is not known")
    };
    let report = lacking(Mode::Auto).try_out().unwrap().clone();
    let reason = "the home directory is not known".to_owned();
    assert_eq!(report.get(Protection::HiddenPaths), &Standing::Missing { reason });
    assert!(matches!(lacking(Mode::Require).try_out(), Err(Error::Missing(_))));
}

#[test]
fn homes_are_those_of_the_environment_and_of_the_account() {
    let account = proctor_sandbox::homes(None, std::path::Path::new("/srv"));
    assert_eq!(account.len(), 1, "the tests run as a user with an account");
    let named = proctor_sandbox::homes(Some("elsewhere".as_ref()), std::path::Path::new("/srv"));
    assert_eq!(named, [std::path::PathBuf::from("/srv/elsewhere"), account[0].clone()]);
    let same = proctor_sandbox::homes(Some(account[0].as_os_str()), std::path::Path::new("/srv"));
    assert_eq!(same, account);
}

#[test]
fn an_open_network_is_no_missing_protection() {
    let base = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::new(Mode::Auto, Features::all(), base.path()).unwrap();
    let report = sandbox.protections_with(&Network::Host);
    assert_eq!(report.get(Protection::Network), &Standing::Waived);
}

#[test]
fn one_listener_without_a_network_namespace_is_reported_and_refused() {
    let bench = Bench::with(Mode::Auto, Features::all().without(Feature::NetworkNamespace));
    let network = Network::Only(bench.sandbox.loopback().unwrap());
    let report = bench.sandbox.protections_with(&network);
    assert!(matches!(report.get(Protection::Network), Standing::Missing { .. }), "{report:?}");
    let features = Features::all().without(Feature::NetworkNamespace);
    match Sandbox::new(Mode::Require, features, bench.base.path()) {
        Ok(strict) => {
            let error = strict.spawn(bench.script("true").network(network)).unwrap_err();
            assert!(error.to_string().contains("network closed (Landlock restricts ports"), "{error}");
        }
        Err(error) => println!("not run: {error}"),
    }
}

#[test]
fn processes_are_counted_without_a_namespace() {
    let bench = Bench::with(
        Mode::Auto,
        Features::all()
            .without(Feature::PidNamespace)
            .without(Feature::PidMax)
            .without(Feature::ResourceLimits),
    );
    let script = "i=0; while [ $i -lt 120 ]; do sleep 300 & i=$((i+1)); done; wait";
    let limits = Limits { processes: 50, wall_time: crate::support::PATIENCE, ..Limits::default() };
    let mut process = bench.sandbox.spawn(bench.script(script).limits(limits)).unwrap();
    let exit = process.wait(crate::support::PATIENCE).unwrap().unwrap();
    assert_eq!(exit.limit, Some(proctor_sandbox::Limit::Processes), "{exit:?}");
    drop(process);
    assert_eq!(bench.survivors(), Vec::<String>::new());
}
