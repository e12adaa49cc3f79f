//! Splits the arguments of a known program into options and operands.

use super::word::Word;

/// The options of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Short options that take a value.
    pub(super) values: &'static str,
    /// Short options that take none, or only one that is attached.
    pub(super) flags: &'static str,
    /// Long options that take a value, separated by spaces.
    pub(super) long_values: &'static str,
    /// Long options that take none, or only one after `=`, separated by spaces.
    pub(super) long_flags: &'static str,
}

/// Arguments taken apart.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// Option names without dashes, and their values.
    pub(super) values: Vec<(String, Word)>,
    /// Option names without dashes that have no value.
    pub(super) flags: Vec<String>,
    /// The operands.
    pub(super) operands: Vec<Word>,
    /// Options that are not in the tables: they may take a value, so what follows is uncertain.
    pub(super) unknown: Vec<String>,
}

impl Arguments {
    /// The last value of one of these options.
    pub(super) fn value(&self, names: &[&str]) -> Option<&Word> {
        self.values.iter().rev().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value)
    }

    /// Whether one of these flags is set.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|flag| names.contains(&flag.as_str()))
    }
}

/// Parses arguments. Wrappers stop at the first operand; other programs (`permute`) take options anywhere.
pub(super) fn read(words: &[Word], options: &Options, permute: bool) -> Arguments {
    let mut found = Arguments::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let text = word.text();
        if text == "--" {
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            read_long(&mut found, word, long, options, &mut rest);
        } else if text.len() > 1 && text.starts_with('-') {
            read_cluster(&mut found, word, &text, options, &mut rest);
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
    options: &Options,
    rest: &mut impl Iterator<Item = &'a Word>,
) {
    if let Some((name, _)) = long.split_once('=') {
        let full = full_name(name, options.long_values).unwrap_or(name);
        found.values.push((full.to_owned(), word.skip(name.chars().count() + 3)));
        return;
    }
    // Programs accept any unambiguous beginning of a long option.
    if options.long_flags.split(' ').any(|flag| flag == long) {
        found.flags.push(long.to_owned());
    } else if let Some(full) = full_name(long, options.long_values) {
        if let Some(value) = rest.next() {
            found.values.push((full.to_owned(), value.clone()));
        }
    } else if let Some(full) = full_name(long, options.long_flags) {
        found.flags.push(full.to_owned());
    } else {
        found.flags.push(long.to_owned());
        found.unknown.push(format!("--{long}"));
    }
}

fn full_name<'a>(start: &str, names: &'a str) -> Option<&'a str> {
    names.split(' ').find(|name| !start.is_empty() && name.starts_with(start))
}

fn read_cluster<'a>(
    found: &mut Arguments,
    word: &Word,
    text: &str,
    options: &Options,
    rest: &mut impl Iterator<Item = &'a Word>,
) {
    for (index, option) in text.chars().enumerate().skip(1) {
        if options.values.contains(option) {
            let attached = word.skip(index + 1);
            let value = if attached.text().is_empty() { rest.next().cloned() } else { Some(attached) };
            if let Some(value) = value {
                found.values.push((option.to_string(), value));
            }
            return;
        }
        found.flags.push(option.to_string());
        if !options.flags.contains(option) {
            // What follows may be the value of an option that is not known here.
            found.unknown.push(format!("-{option}"));
            return;
        }
    }
}
