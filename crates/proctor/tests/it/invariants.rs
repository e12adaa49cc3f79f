//! Invariants of the architecture page about the crates.

use std::process::Command;

fn dependencies(package: &str) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args([
            "tree",
            "--offline",
            "--locked",
            "-p",
            package,
            "-e",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn core_and_policy_know_neither_tokio_nor_a_database() {
    for package in
        ["proctor-core", "proctor-facts", "proctor-yaml", "proctor-policy", "proctor-wire", "proctor-assert"]
    {
        let tree = dependencies(package);
        assert!(tree.lines().count() > 5, "{tree}");
        for forbidden in ["tokio ", "rusqlite ", "reqwest ", "hyper ", "mio ", "async-std "] {
            assert!(
                !tree.lines().any(|line| line.starts_with(forbidden)),
                "{package} depends on {forbidden}"
            );
        }
    }
}

/// The sources of these crates use neither files, network, environment, processes, threads' clocks nor standard streams.
#[test]
fn core_and_policy_do_no_io() {
    let forbidden = [
        "std::fs",
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "UnixStream",
        "std::env::var",
        "std::process",
        "SystemTime",
        "Instant::now",
        "stdin()",
        "stdout()",
        "stderr()",
        "println!",
        "eprintln!",
        "std::io::",
    ];
    for package in ["core", "facts", "scan", "yaml", "policy", "wire", "assert"] {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src");
        let mut seen = 0;
        visit(&root, &mut |path, text| {
            seen += 1;
            // Tests beside the code may do what they like.
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            if path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs") {
                return;
            }
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                for word in forbidden {
                    assert!(!line.contains(word), "{}: {line}", path.display());
                }
            }
        });
        assert!(seen > 2);
    }
}

fn visit(folder: &std::path::Path, each: &mut impl FnMut(&std::path::Path, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, each);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            each(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// The newest version of the C library that Debian 12 has.
const NEWEST_LIBC: (u32, u32) = (2, 36);

#[test]
fn the_program_starts_where_the_c_library_is_that_of_debian_12() {
    let program = std::env::var_os("PROCTOR_RELEASE_BINARY")
        .map_or_else(|| env!("CARGO_BIN_EXE_proctor").into(), std::path::PathBuf::from);
    let bytes = std::fs::read(&program).unwrap();
    let mark = b"GLIBC_";
    let mut newest = (0, 0);
    for place in bytes.windows(mark.len()).enumerate().filter(|(_, part)| part == mark).map(|(at, _)| at) {
        let text: String = bytes[place + mark.len()..]
            .iter()
            .map(|byte| char::from(*byte))
            .take_while(|letter| letter.is_ascii_digit() || *letter == '.')
            .collect();
        let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
        newest = newest.max((parts.next().unwrap_or(0), parts.next().unwrap_or(0)));
    }
    // Nothing is found where the program is linked with no C library, or with another one.
    assert!(newest <= NEWEST_LIBC, "{} needs glibc {newest:?}", program.display());
}
