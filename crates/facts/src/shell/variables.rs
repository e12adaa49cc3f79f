//! What a command line says about its variables: which hold numbers, and which are evaluated again.

use std::collections::HashSet;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// A number, so that evaluating it again does nothing.
    Number,
    /// Anything else, or a value that is not in the command line.
    Other,
}

/// Variables whose values bash itself keeps, as numbers.
const NUMBERS: &[&str] = &[
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "UID",
    "EUID",
    "PPID",
    "BASHPID",
    "EPOCHSECONDS",
    "OPTIND",
    "SHLVL",
    "BASH_SUBSHELL",
    "HISTCMD",
];

/// The variables of a command line.
#[derive(Debug, Default)]
pub(super) struct Variables {
    numbers: HashSet<String>,
    others: HashSet<String>,
    integers: HashSet<String>,
    associative: HashSet<String>,
    /// A name may stand for another variable.
    pub(super) references: bool,
    /// Quoted text holds what could be an expansion, which some later reading may carry out.
    pub(super) quoted_expansions: bool,
    evaluated: HashSet<(String, Option<String>)>,
    evaluated_numbers: HashSet<String>,
    operands: Vec<String>,
}

impl Variables {
    /// Records an assignment.
    pub(super) fn assign(&mut self, name: &str, value: Value) {
        let names = match value {
            Value::Number => &mut self.numbers,
            Value::Other => &mut self.others,
        };
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
    }

    /// Records that each value given to the variable is an expression.
    pub(super) fn integer(&mut self, name: &str) {
        self.integers.insert(name.to_owned());
    }

    /// Records an array whose indexes are keys.
    pub(super) fn keyed(&mut self, name: &str) {
        self.associative.insert(name.to_owned());
    }

    /// Records that the value of a variable is evaluated as arithmetic, in the index of an array if one is given.
    pub(super) fn evaluate(&mut self, name: &str, array: Option<&str>) {
        if self.numbers.contains(name) || NUMBERS.contains(&name) {
            self.evaluated_numbers.insert(name.to_owned());
        } else {
            self.evaluated.insert((name.to_owned(), array.map(str::to_owned)));
        }
    }

    /// Records a builtin with operands that are not known, which may turn out to be options that evaluate.
    pub(super) fn operands(&mut self, text: String) {
        self.operands.push(text);
    }

    /// Notes, once the whole command line was read: a later assignment may come first when it runs.
    pub(super) fn notes(&mut self) -> Vec<(&'static str, String)> {
        let mut notes = Vec::new();
        for (name, array) in std::mem::take(&mut self.evaluated) {
            let is_key = array.is_some_and(|array| self.associative.contains(&array));
            if !is_key || self.others.contains(&name) || self.references {
                notes.push(("value in arithmetic", name));
            }
        }
        for name in std::mem::take(&mut self.evaluated_numbers) {
            if self.others.contains(&name) || self.references {
                notes.push(("value in arithmetic", name));
            }
        }
        let is_integer = |name: &str| self.integers.contains(name) || NUMBERS.contains(&name);
        notes.extend(
            self.others
                .iter()
                .filter(|name| is_integer(name))
                .map(|name| ("value in arithmetic", name.clone())),
        );
        if self.references {
            notes.extend(self.integers.iter().map(|name| ("value in arithmetic", name.clone())));
        }
        notes.sort();
        notes.dedup();
        if self.quoted_expansions {
            notes.extend(
                std::mem::take(&mut self.operands).into_iter().map(|text| ("operands from expansion", text)),
            );
        }
        notes
    }
}
