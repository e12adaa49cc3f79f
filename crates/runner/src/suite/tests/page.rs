//! `docs/suite.md` has the keys and types that the loader knows, and its examples load.

use std::collections::BTreeMap;

use super::super::keys;
use super::*;

const PAGE: &str = include_str!("../../../../../docs/suite.md");

/// The first column of each table that stands below a marker `<!-- WHAT: NAME -->`, by name.
fn tables(what: &str) -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut found = BTreeMap::new();
    for part in PAGE.split(&format!("<!-- {what}: ")).skip(1) {
        let (name, rest) = part.split_once(" -->\n").unwrap();
        let rows = rest.lines().take_while(|line| line.starts_with('|')).skip(2);
        let first = |row: &'static str| row.split('`').nth(1).unwrap();
        assert!(found.insert(name, rows.map(first).collect()).is_none(), "two tables of {name}");
    }
    found
}

#[test]
fn the_page_has_the_keys_that_the_loader_knows() {
    let mut known: BTreeMap<&str, Vec<&str>> =
        keys::ALL.iter().map(|(name, keys)| (*name, keys.names.to_vec())).collect();
    for (name, names) in [
        ("agent_common", keys::AGENT_COMMON),
        ("agent_process", keys::AGENT_PROCESS),
        ("agent_http", keys::AGENT_HTTP),
        ("agent_remote", keys::AGENT_REMOTE),
    ] {
        known.insert(name, names.to_vec());
    }
    let page = tables("keys");
    for (name, names) in &known {
        assert_eq!(page.get(name), Some(names), "the table of {name} in docs/suite.md");
    }
    assert_eq!(page.len(), known.len(), "docs/suite.md has a table of something that is not there");
    assert_eq!(tables("words").get("agent_types").map(Vec::as_slice), Some(keys::AGENT_TYPES));
}

#[test]
fn the_page_has_an_example_of_every_type_of_assertion_and_it_loads() {
    let mut shown = Vec::new();
    for part in PAGE.split("\n### `").skip(1) {
        let (name, rest) = part.split_once("`\n").unwrap();
        let example = rest.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let lines: Vec<String> = example.lines().map(|line| format!("  {line}\n")).collect();
        let suite = with_test(&format!("assertions:\n-\n{}", lines.concat()));
        let loaded = loaded(&suite);
        assert_eq!(loaded.suite.tests[0].assertions[0].name, name);
        assert_eq!(loaded.warnings, [], "{name}");
        shown.push(name);
    }
    let mut known = keys::ASSERTION_TYPES.to_vec();
    shown.sort_unstable();
    known.sort_unstable();
    assert_eq!(shown, known);
}
