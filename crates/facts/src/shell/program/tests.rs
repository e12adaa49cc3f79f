//! Tests of the table.

use std::collections::HashSet;

use super::{TABLES, Value, find};

#[test]
fn names_are_unique_and_options_have_one_meaning() {
    let programs: Vec<_> = TABLES.iter().copied().flatten().collect();
    let mut names = HashSet::new();
    for program in &programs {
        for name in program.names {
            assert!(names.insert(*name), "{name} has two entries");
        }
        let mut meanings: Vec<(char, Value)> = Vec::new();
        for (kind, tokens) in program.options.iter().chain(program.shared) {
            for token in tokens.split(' ').filter(|token| token.starts_with('-')) {
                for letter in token.trim_end_matches('?').chars().skip(1) {
                    let other = meanings.iter().find(|(known, _)| *known == letter);
                    let is_same = other.is_none_or(|(_, known)| known == kind);
                    assert!(is_same, "{:?} -{letter} is {kind:?} and {other:?}", program.names);
                    meanings.push((letter, *kind));
                }
            }
        }
    }
}

#[test]
fn a_long_option_may_be_abbreviated_unless_that_is_ambiguous() {
    let curl = find("curl").unwrap();
    assert_eq!(curl.long("head").map(|(name, kind, _)| (name, kind)), Some(("head", Value::Flag)));
    assert_eq!(curl.long("heade").map(|(name, ..)| name), Some("header"));
    assert_eq!(curl.long("outpu").map(|(_, kind, _)| kind), Some(Value::Write));
    assert_eq!(curl.long("no-such"), None);
    let sort = find("sort").unwrap();
    assert_eq!(sort.long("compress-p").map(|(_, kind, _)| kind), Some(Value::Code));
    assert_eq!(sort.long("r"), None, "`random-sort` and `random-source` differ in meaning");
    assert_eq!(find("gsort").map(|program| program.names), Some(sort.names));
}
