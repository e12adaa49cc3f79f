//! Dependencies point down only: manifests and `use` lines of every crate are compared with the order of the crates.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The crates, bottom first. A crate may know those of the rows above it, and none of its own row.
const ORDER: &[&[&str]] = &[
    &["core"],
    &["facts", "scan", "wire", "yaml", "net", "ledger", "providers", "assert", "sandbox", "mask"],
    &["policy", "system", "clients"],
    &["proof"],
    &["identity"],
    &["engine", "workspace"],
    &[
        "flow",
        "door-gate",
        "door-ahp",
        "door-assembly",
        "door-atp",
        "door-attest",
        "follow",
        "aa-runtime",
        "runner",
    ],
    &["report", "runs", "door-agentcli"],
    &["proctor"],
];

/// Crates that only tests may know.
const ONLY_FOR_TESTS: &[&str] = &["test-forges", "test-support"];

/// Exceptions that are narrower than the order: transports know no protocol, and no words but their own.
const ALONE: &[&str] = &["net"];

fn level(crate_name: &str) -> Option<usize> {
    ORDER.iter().position(|row| row.contains(&crate_name))
}

/// Violations of the layers by the crates that a crate names.
fn violations(crate_name: &str, named: &BTreeSet<String>) -> Vec<String> {
    let own = level(crate_name);
    let is_wrong = |other: &&String| {
        ALONE.contains(&crate_name)
            || match (level(other), own) {
                (Some(other), Some(own)) => other >= own,
                _ => true,
            }
    };
    // A crate's own name stands in texts of its own.
    named
        .iter()
        .filter(|other| *other != crate_name)
        .filter(is_wrong)
        .map(|other| format!("{crate_name} names {other}"))
        .collect()
}

/// The crates that a manifest's ordinary and build dependencies name.
fn in_manifest(text: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let mut counts = false;
    for line in text.lines() {
        if let Some(section) = line.strip_prefix('[') {
            counts = section.starts_with("dependencies") || section.starts_with("build-dependencies");
        } else if counts && let Some(rest) = line.strip_prefix("proctor-") {
            let end = rest.find(|c: char| c != '-' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            named.insert(rest[..end].to_owned());
        }
    }
    named
}

/// The crates that the code of a source file names; its tests may name what they like.
fn in_source(text: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices("proctor_") {
            let is_word = line[..at].chars().next_back().is_none_or(|c| c != '_' && !c.is_alphanumeric());
            let rest = &line[at + "proctor_".len()..];
            let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            if is_word && rest[end..].starts_with("::") {
                named.insert(rest[..end].replace('_', "-"));
            }
        }
    }
    named
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "fixture")
        || path.ends_with("tests.rs")
        || path.ends_with("fixture.rs")
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn all_crates() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for (folder, prefix) in [(crates(), ""), (crates().join("doors"), "door-")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.join("Cargo.toml").exists() {
                let name = path.file_name().unwrap().to_str().unwrap();
                found.push((format!("{prefix}{name}"), path.clone()));
            }
        }
    }
    found
}

fn sources(folder: &Path, each: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, each);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            each(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn crates_know_only_those_below_them() {
    let mut problems = Vec::new();
    let mut seen = 0;
    for (crate_name, path) in all_crates() {
        if ONLY_FOR_TESTS.contains(&crate_name.as_str()) {
            continue;
        }
        seen += 1;
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
        problems.extend(violations(&crate_name, &in_manifest(&manifest)));
        sources(&path.join("src"), &mut |file, text| {
            if !is_test(file) {
                let found = violations(&crate_name, &in_source(text)).into_iter();
                problems.extend(found.map(|problem| format!("{}: {problem}", file.display())));
            }
        });
    }
    assert_eq!(seen, ORDER.iter().map(|row| row.len()).sum::<usize>(), "a crate is missing in the order");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn planted_violations_are_found() {
    let manifest = |line: &str| in_manifest(&format!("[package]\nname = \"x\"\n[dependencies]\n{line}\n"));
    for (crate_name, named) in [
        ("policy", manifest("proctor-engine.workspace = true")),
        ("ledger", manifest("proctor-test-forges = { workspace = true }")),
        ("core", in_source("use proctor_policy::judge::judge;")),
        ("door-ahp", in_source("fn f() { proctor_door_gate::serve() }")),
        ("net", in_source("use proctor_wire::ahp::AhpEvent;")),
        ("engine", in_source("pub use proctor_door_ahp::AhpDoor;")),
    ] {
        assert_eq!(named.len(), 1, "{crate_name}");
        assert_eq!(violations(crate_name, &named).len(), 1, "{crate_name} names {named:?}");
    }
    assert!(violations("engine", &manifest("proctor-ledger.workspace = true")).is_empty());
    assert!(in_manifest("[dev-dependencies]\nproctor-engine.workspace = true\n").is_empty());
    assert!(
        in_source("// use proctor_engine::Engine;\n#[cfg(test)]\nuse proctor_engine::Engine;").is_empty()
    );
}
