//! Tests of functions about the workspace.

use super::{Past, input};
use crate::condition::{Condition, Truth};

#[test]
fn a_rule_sees_the_workspace_and_what_stays_in_it() {
    let mut inside = input();
    inside.facts.workspace = "/var/data".to_owned();
    inside.facts.cwd = "/var/data".to_owned();
    inside.facts.paths = vec!["/var/data/src/a".to_owned()];
    inside.facts.writes.clone_from(&inside.facts.paths);
    let evaluate = |text: &str| Condition::compile(text).unwrap().evaluate_alone(&inside, &Past::default());
    for text in [
        "action.workspace == \"/var/data\"",
        "action.within(\"src\") && action.within(\".\") && action.writes_within('src')",
        "!action.within(\"src/a/b\")",
    ] {
        assert_eq!(evaluate(text), Truth::True, "{text}");
    }
    let outside = Condition::compile("action.within(\".\")").unwrap();
    assert_eq!(outside.evaluate_alone(&input(), &Past::default()), Truth::False);
}

#[test]
fn the_folder_is_written_and_stays_in_the_workspace() {
    for text in
        ["action.within(action.cwd)", "action.within(\"..\")", "action.within(\"/etc\")", "action.within()"]
    {
        let problems = Condition::compile(text).unwrap_err();
        assert!(problems[0].message.contains("takes a folder of the workspace"), "{text}: {problems:?}");
    }
    let problems = Condition::compile("action.writes_witin(\"src\")").unwrap_err();
    assert!(problems[0].message.contains("did you mean `action.writes_within`?"), "{problems:?}");
}
