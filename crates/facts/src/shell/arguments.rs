//! Splits the arguments of a program into options and operands, by the program's entry in the table.

use super::program::{Program, Value};
use super::word::Word;

/// Option with its value.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// Name without dashes.
    pub(super) name: String,
    /// Meaning of the value.
    pub(super) kind: Value,
    pub(super) value: Word,
}

/// Arguments taken apart.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// Options that have a value.
    pub(super) values: Vec<Given>,
    /// Option names without dashes that have no value.
    pub(super) flags: Vec<String>,
    /// The operands.
    pub(super) operands: Vec<Word>,
    /// Options that are not in the table: they may take a value, so what follows is uncertain.
    pub(super) unknown: Vec<String>,
}

impl Arguments {
    /// The last value of one of these options.
    pub(super) fn value(&self, names: &[&str]) -> Option<&Word> {
        self.values.iter().rev().find(|given| names.contains(&given.name.as_str())).map(|given| &given.value)
    }

    /// Whether one of these flags is set.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|flag| names.contains(&flag.as_str()))
    }

    /// Whether one of these options is there, with or without a value.
    pub(super) fn names(&self, names: &[&str]) -> bool {
        self.has(names) || self.value(names).is_some()
    }

    fn give(&mut self, name: &str, kind: Value, value: Word) {
        self.values.push(Given { name: name.to_owned(), kind, value });
    }
}

/// Parses arguments. Wrappers stop at the first operand; other programs (`permute`) take options anywhere.
pub(super) fn read(words: &[Word], program: &Program, permute: bool) -> Arguments {
    let mut found = Arguments::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.text();
        if text == "--" {
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            read_long(&mut found, word, long, 2, program, &mut rest);
        } else if text.len() > 1 && text.starts_with('-') {
            let long = text.get(1..).unwrap_or_default();
            let name = long.split('=').next().unwrap_or_default();
            if program.single_dash && program.exact(name).is_some() {
                read_long(&mut found, word, long, 1, program, &mut rest);
            } else {
                read_cluster(&mut found, word, &text, program, &mut rest);
            }
        } else {
            found.operands.push(word.clone());
            if !permute {
                break;
            }
        }
    }
    found.operands.extend(rest.cloned());
    found
}

fn read_long<'a>(
    found: &mut Arguments,
    word: &Word,
    long: &str,
    dashes: usize,
    program: &Program,
    rest: &mut impl Iterator<Item = &'a Word>,
) {
    let (name, attached) = match long.split_once('=') {
        Some((name, _)) => (name, Some(word.skip(name.chars().count() + dashes + 1))),
        None => (long, None),
    };
    let Some((full, kind, optional)) = program.long(name) else {
        // An abbreviation of several options, or an option that is not in the table.
        found.unknown.push(format!("--{name}"));
        match attached {
            Some(value) => found.give(name, Value::Text, value),
            None => found.flags.push(name.to_owned()),
        }
        return;
    };
    match attached {
        Some(value) if kind == Value::Flag => {
            found.flags.push(full.to_owned());
            found.give(full, Value::Text, value);
        }
        Some(value) => found.give(full, kind, value),
        None if kind == Value::Flag || optional => found.flags.push(full.to_owned()),
        None => {
            let (kind, skipped) = match kind {
                Value::NamedText => (Value::Text, 1),
                Value::NamedRead => (Value::Read, 1),
                kind => (kind, 0),
            };
            match rest.nth(skipped) {
                Some(value) => found.give(full, kind, value.clone()),
                None => found.flags.push(full.to_owned()),
            }
        }
    }
}

fn read_cluster<'a>(
    found: &mut Arguments,
    word: &Word,
    text: &str,
    program: &Program,
    rest: &mut impl Iterator<Item = &'a Word>,
) {
    for (index, option) in text.chars().enumerate().skip(1) {
        let name = option.to_string();
        let Some((kind, optional)) = program.short(option) else {
            found.flags.push(name);
            // What follows may be the value of an option that is not known here.
            found.unknown.push(format!("-{option}"));
            return;
        };
        if kind == Value::Flag {
            found.flags.push(name);
            continue;
        }
        let attached = word.skip(index + 1);
        let value = match (attached.text().is_empty(), optional) {
            (false, _) => Some(attached),
            (true, true) => None,
            (true, false) => rest.next().cloned(),
        };
        match value {
            Some(value) => found.give(&name, kind, value),
            None => found.flags.push(name),
        }
        return;
    }
}
