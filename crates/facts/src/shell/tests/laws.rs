//! Laws of programs that are not modelled.

use proptest::prelude::*;

use super::programs::facts;

/// A path with a slash in it, as an agent writes it.
fn path() -> impl Strategy<Value = String> {
    "(/|~/|\\.\\./|\\./)?[a-z]{2,6}(/[a-z.]{2,6}){1,3}"
}

proptest! {
    #[test]
    fn paths_of_an_unknown_program_are_always_written(
        path in path(),
        place in prop::sample::select(vec!["", "--out ", "--out=", "-o ", "-o", "x y ", "NAME=", "-- "]),
    ) {
        let found = facts(&format!("frobnicate {place}{path} z"));
        let expected = crate::path::absolute(&path, "/w");
        // An attached value starts where a path can start.
        let attached = place == "-o" && !path.starts_with(['/', '~', '.']);
        prop_assert!(attached || found.writes.contains(&expected), "{}: {:?}", expected, found.writes);
        prop_assert!(!found.opaque.is_empty());
    }

    #[test]
    fn an_unknown_option_removes_no_fact(
        line in prop::sample::select(vec![
            "cp a /o/f", "sort a -o /o/f", "curl h.example -o /o/f", "git -C /o push h.example:x", "tar xf a -C /o", "grep -r x /k",
            "env A=b touch /o/f", "nice -n 5 touch /o/f", "ssh u@h.example touch /o/f", "find /k -exec touch {} +", "sed -i s/a/b/ /o/f",
            "wget -O /o/f h.example", "rsync -a /k h.example:x", "dd if=/k of=/o/f", "xargs -a /k touch", "frobnicate /o/f h.example",
        ]),
        option in prop::sample::select(vec!["--frobnicate", "--frobnicate=1", "--zz-top"]),
    ) {
        let (program, rest) = line.split_once(' ').unwrap();
        let before = facts(line);
        let after = facts(&format!("{program} {option} {rest}"));
        for (name, old, new) in [
            ("paths", &before.paths, &after.paths),
            ("writes", &before.writes, &after.writes),
            ("hosts", &before.hosts, &after.hosts),
            ("unknown", &before.unknown, &after.unknown),
            ("expansions", &before.expansions, &after.expansions),
            ("assignments", &before.assignments, &after.assignments),
        ] {
            for entry in old {
                prop_assert!(new.contains(entry), "{} {} {}: {} lost {}, has {:?}", program, option, rest, name, entry, new);
            }
        }
        prop_assert!(!after.opaque.is_empty() || !after.unknown.is_empty());
    }
}
