//! The starter policies: every guard of each one fires, ordinary work goes through, and the cases that show it would notice if a
//! guard were missing.

use std::path::PathBuf;

use crate::support::{Folder, lines, text};
use proctor_core::json::Json;

const STARTERS: [(&str, &str); 3] = [
    ("strict", include_str!("../../../../schemas/examples/strict.yaml")),
    ("balanced", include_str!("../../../../schemas/examples/balanced.yaml")),
    ("audit-only", include_str!("../../../../schemas/examples/audit-only.yaml")),
];

fn cases(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/policy").join(format!("{name}.yaml"))
}

/// A folder that holds the cases of a starter, to be run against the policy in that folder.
fn folder_for(name: &str) -> Folder {
    let folder = Folder::with_policy("");
    let text = std::fs::read_to_string(cases(name)).unwrap();
    let (before, after) = text.split_once("policy: ").expect("the file names its policy");
    let (_, rest) = after.split_once('\n').unwrap();
    folder.write("cases.yaml", &format!("{before}policy: policy.yaml\n{rest}"));
    folder
}

#[test]
fn every_case_holds() {
    for (name, _) in STARTERS {
        let folder = Folder::with_policy("");
        let output = folder.run(&["policy", "test", cases(name).to_str().unwrap(), "--json"]);
        let results = lines(&output);
        let failed: Vec<String> = results
            .iter()
            .filter(|result| result.get("ok") != Some(&Json::Bool(true)))
            .map(ToString::to_string)
            .collect();
        assert!(failed.is_empty(), "{name}:\n{}", failed.join("\n"));
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(results.len() > 50, "{name}: {} cases", results.len());
        println!("{name}: {} cases", results.len());
    }
}

#[test]
fn a_missing_guard_is_noticed() {
    for (name, policy) in STARTERS {
        let folder = folder_for(name);
        let parts = parts_of(policy);
        assert!(parts.len() > 1, "{name}: {parts:?}");
        for part in parts {
            folder.write("policy.yaml", &without(policy, &part));
            let output = folder.run(&["policy", "test", "cases.yaml", "--json"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(
                output.status.code(),
                Some(10),
                "{name} without `{}`: no case notices it {said}",
                part.name
            );
            let failed =
                lines(&output).iter().filter(|result| result.get("ok") == Some(&Json::Bool(false))).count();
            println!("{name} without {}: {failed} cases fail", part.name);
        }
    }
}

#[test]
fn init_writes_these_policies_and_they_load_without_problems() {
    for (name, policy) in STARTERS {
        let folder = Folder::with_policy("");
        std::fs::remove_file(folder.path("policy.yaml")).unwrap();
        let output = folder.run(&["init", "--starter", name]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(std::fs::read_to_string(folder.path("policy.yaml")).unwrap(), policy);
        let linted = folder.json(&["policy", "lint", "--json"]);
        assert_eq!(linted[0].get("ok"), Some(&Json::Bool(true)), "{name}");
        let warnings = linted[0].get("warnings").and_then(Json::as_array).unwrap();
        // Only the policy that stops nothing has weaknesses to warn about.
        assert_eq!(warnings.is_empty(), name != "audit-only", "{name}: {warnings:?}");
    }
}

#[test]
fn a_link_does_not_lead_past_a_guard() {
    let folder = Folder::with_policy(STARTERS[1].1);
    std::os::unix::fs::symlink("/etc", folder.path("harmless")).unwrap();
    std::os::unix::fs::symlink(folder.path(".proctor"), folder.path("notes")).unwrap();
    std::fs::create_dir_all(folder.state()).unwrap();
    std::fs::write(folder.state().join("x"), "").unwrap();
    let cwd = folder.path("").display().to_string();
    let decide = |command: &str| {
        let output = folder.run(&[
            "policy",
            "check",
            "--json",
            "--tool",
            "bash",
            "--cwd",
            &cwd,
            "--arg",
            &format!("command={command}"),
        ]);
        let decision = lines(&output).remove(0);
        (text(&decision, "decision").to_owned(), text(&decision, "rule").to_owned())
    };
    assert_eq!(decide("cat harmless/shadow"), ("deny".to_owned(), "secrets-stay-closed".to_owned()));
    assert_eq!(decide("cat notes/x"), ("deny".to_owned(), "proctor-is-off-limits".to_owned()));
    assert_eq!(decide("cat harmless/hostname").0, "allow");
}

/// A part of a document that can be taken out: a rule, a section, or an entry of `tools`.
#[derive(Debug)]
struct Part {
    name: String,
    first: usize,
    end: usize,
}

/// Finds the parts by indentation, which is all that these documents need.
fn parts_of(policy: &str) -> Vec<Part> {
    let all: Vec<&str> = policy.lines().collect();
    let ends = |first: usize, indentation: usize| {
        let deeper = |line: &&str| {
            line.is_empty() || line.starts_with(&" ".repeat(indentation + 1)) || line.starts_with('#')
        };
        first + 1 + all[first + 1..].iter().take_while(|line| deeper(line)).count()
    };
    let mut parts = Vec::new();
    let mut section = "";
    for (index, line) in all.iter().enumerate() {
        let indentation = line.len() - line.trim_start().len();
        let Some((key, _)) = line.trim_start().trim_start_matches("- ").split_once(':') else { continue };
        if line.trim_start().starts_with('#') {
            continue;
        }
        if indentation == 0 {
            section = key;
        }
        let name = match (indentation, section) {
            (0, "network" | "data" | "budget") => key.to_owned(),
            (2, "tools") => format!("tools.{key}"),
            (4, "tools") => format!("the {key} of a tool"),
            (2, "budget" | "data") => format!("{section}.{key}"),
            (2, "rules") => line.trim_start_matches("  - id: ").to_owned(),
            _ => continue,
        };
        parts.push(Part { name, first: index, end: ends(index, indentation) });
    }
    // Limits that take thousands of actions to reach are tested where limits are.
    parts.retain(|part| {
        !part.name.contains("limit_per_hour")
            && !part.name.contains("calls")
            && !part.name.ends_with("the allow of a tool")
    });
    parts
}

/// The document without a part. A section that is empty then goes as a whole; rules stay, as an empty list.
fn without(policy: &str, part: &Part) -> String {
    let kept: Vec<&str> = policy
        .lines()
        .enumerate()
        .filter(|(index, _)| *index < part.first || *index >= part.end)
        .map(|(_, line)| line)
        .collect();
    let mut text = String::new();
    for (index, line) in kept.iter().enumerate() {
        let holds_something =
            kept[index + 1..].iter().find(|next| !next.is_empty()).is_some_and(|next| next.starts_with(' '));
        let line = match *line {
            "rules:" if !holds_something => "rules: []",
            "data:" | "budget:" if !holds_something => "",
            line => line,
        };
        text.push_str(line);
        text.push('\n');
    }
    text
}
