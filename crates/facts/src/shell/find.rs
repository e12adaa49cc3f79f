//! `find`: its start paths, tests and actions.

use super::collect::{Collector, Effect};
use super::opaque;
use super::unwrap::{Context, analyse, inner_context};
use super::word::Word;

/// Records what `find` reads, writes, deletes and runs.
pub(super) fn run(collector: &mut Collector, name: &str, words: &[Word], rest: &[Word], context: &Context) {
    let is_expression = |text: &str| text.starts_with('-') || matches!(text, "(" | ")" | "!" | ",");
    let mut starts: Vec<Word> = Vec::new();
    let mut index = 0;
    while let Some(word) = rest.get(index) {
        let text = word.text();
        match text.as_str() {
            "-H" | "-L" | "-P" => {}
            "-D" => index += 1,
            _ if text.starts_with("-O") => {}
            _ if is_expression(&text) => break,
            _ => starts.push(word.clone()),
        }
        index += 1;
    }
    if starts.is_empty() {
        starts.push(Word::literal("."));
    }
    for start in &starts {
        collector.file(Effect::Read, start);
    }
    let mut unknown = false;
    let mut names: Vec<String> = Vec::new();
    while let Some(word) = rest.get(index) {
        index += 1;
        match word.text().as_str() {
            "-delete" => {
                for start in &starts {
                    collector.file(Effect::Delete, start);
                    for name in &names {
                        // Any file of this name below the start, at its top as well.
                        collector.path(Effect::Delete, &super::collect::join(&start.text(), name));
                    }
                }
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = rest.get(index) {
                    collector.file(Effect::Write, file);
                }
                index += 1;
            }
            "-files0-from" => {
                if let Some(file) = rest.get(index) {
                    collector.file(Effect::Read, file);
                    collector.unknown_word(&file.text());
                    collector.takes_list();
                }
                index += 1;
            }
            "-newer" | "-anewer" | "-cnewer" | "-samefile" => {
                if let Some(file) = rest.get(index) {
                    collector.file(Effect::Read, file);
                }
                index += 1;
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch" => {
                let from = index;
                while let Some(word) = rest.get(index) {
                    let text = word.text();
                    let ends = text == ";" || (text == "+" && index > from);
                    if ends {
                        break;
                    }
                    index += 1;
                }
                let mut inner = inner_context(context, name);
                inner.starts.clone_from(&starts);
                analyse(collector, rest.get(from..index).unwrap_or_default(), &inner);
                collector.directory_change = None;
                // The word that ends the command.
                index += 1;
            }
            "-name" | "-iname" => {
                if let Some(pattern) = rest.get(index).filter(|_| names.len() < 8) {
                    names.push(pattern.text());
                }
                index += 1;
            }
            test if TESTS_WITH_VALUES.contains(&test) || test.starts_with("-newer") => index += 1,
            test if !TESTS.contains(&test) && !is_number(test) => unknown = true,
            _ => {}
        }
    }
    if unknown {
        opaque::record(collector, words);
    }
}

fn is_number(text: &str) -> bool {
    text.strip_prefix(['+', '-'])
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Tests and actions of find with one value that has no effect.
const TESTS_WITH_VALUES: &[&str] = &[
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-atime",
    "-ctime",
    "-mmin",
    "-amin",
    "-cmin",
    "-maxdepth",
    "-mindepth",
    "-perm",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-links",
    "-inum",
    "-lname",
    "-ilname",
    "-fstype",
    "-used",
    "-printf",
    "-regextype",
    "-context",
    "-D",
];

/// Tests and actions of find without a value that has an effect.
const TESTS: &[&str] = &[
    "(",
    ")",
    "!",
    ",",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    "-print",
    "-print0",
    "-ls",
    "-prune",
    "-quit",
    "-empty",
    "-executable",
    "-readable",
    "-writable",
    "-daystart",
    "-depth",
    "-d",
    "-follow",
    "-mount",
    "-xdev",
    "-noleaf",
    "-ignore_readdir_race",
    "-noignore_readdir_race",
    "-true",
    "-false",
    "-nouser",
    "-nogroup",
    "-warn",
    "-nowarn",
    "-help",
    "--help",
    "-version",
    "--version",
    "-delete",
    "-H",
    "-L",
    "-P",
];
