//! Builtins of bash that evaluate their operands: as code, as arithmetic, or as names of variables.

use super::collect::Collector;
use super::evaluate::{self, Evaluation, evaluated};
use super::reader::parse_code;
use super::unwrap::{Context, analyse, inner_context, join, note_code, run_code, run_text};
use super::word::{Kind, Word};

/// Options as bash's builtins read them: clusters before the first operand, and the values of some.
#[derive(Debug, Default)]
struct Options<'a> {
    found: Vec<(char, Option<Word>)>,
    operands: &'a [Word],
}

impl Options<'_> {
    fn value(&self, option: char) -> Option<&Word> {
        self.found.iter().rev().find(|(found, _)| *found == option).and_then(|(_, value)| value.as_ref())
    }

    fn has(&self, option: char) -> bool {
        self.found.iter().any(|(found, _)| *found == option)
    }
}

fn options<'a>(words: &'a [Word], values: &str) -> Options<'a> {
    let mut result = Options { found: Vec::new(), operands: words };
    while let Some((word, rest)) = result.operands.split_first() {
        let text = word.text();
        if text.len() < 2 || !text.starts_with(['-', '+']) {
            break;
        }
        result.operands = rest;
        if text == "--" {
            break;
        }
        for (index, option) in text.chars().enumerate().skip(1) {
            if !values.contains(option) {
                result.found.push((option, None));
                continue;
            }
            let attached = word.skip(index.saturating_add(1));
            let value = if attached.text().is_empty() {
                let value = result.operands.first().cloned();
                result.operands = result.operands.get(1..).unwrap_or_default();
                value
            } else {
                Some(attached)
            };
            result.found.push((option, value));
            break;
        }
    }
    result
}

/// Reports what a builtin evaluates. Returns whether the name is one that is handled here.
pub(super) fn run(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> bool {
    match name {
        "eval" => {
            let found = options(rest, "");
            note_code(collector, found.operands, context);
            let inner = inner_context(context, name).wrappers;
            let outer = std::mem::replace(&mut collector.wrappers, inner);
            parse_code(collector, &join(found.operands), context.piped);
            collector.wrappers = outer;
            // Changes of directory were handled inside.
            collector.directory_change = None;
        }
        "trap" => {
            let code = rest.iter().find(|word| !word.text().starts_with('-'));
            let after_dashes = rest.iter().skip_while(|word| word.text() != "--").nth(1);
            for code in code.into_iter().chain(after_dashes) {
                run_code(collector, name, std::slice::from_ref(code), context);
            }
            if code.is_none_or(Word::expands) && !rest.is_empty() {
                unknown_operands(collector, name, rest);
            }
        }
        "alias" => {
            for word in rest {
                if let Some((name, code)) = word.text().split_once('=') {
                    collector.note("alias", name);
                    run_text(collector, "alias", code, context);
                } else if word.expands() {
                    collector.note("alias", &word.text());
                }
            }
        }
        "let" => {
            for word in rest {
                evaluated(collector, word, Evaluation::Arithmetic);
            }
        }
        "[" | "test" => {
            unknown_operands(collector, name, rest);
            for pair in rest.windows(2) {
                if let [option, operand] = pair
                    && matches!(option.text().as_str(), "-v" | "-R")
                {
                    evaluated(collector, operand, Evaluation::Name);
                }
            }
        }
        "declare" | "typeset" | "local" | "export" | "readonly" => declare(collector, name, rest),
        "read" | "mapfile" | "readarray" | "printf" | "getopts" | "unset" | "wait" => {
            store(collector, name, rest, context);
        }
        "compgen" | "complete" | "compopt" => {
            let found = options(rest, "oAGWFCXPS");
            for option in ['C', 'F'] {
                if let Some(code) = found.value(option) {
                    run_code(collector, name, std::slice::from_ref(code), context);
                }
            }
            for (option, value) in &found.found {
                if let Some(value) = value
                    && !matches!(option, 'C' | 'F')
                {
                    evaluated(collector, value, Evaluation::Text);
                }
            }
            unknown_operands(collector, name, rest);
        }
        "hash" => {
            if let Some(path) = options(rest, "p").value('p') {
                collector.note("alias", &path.text());
                analyse(collector, std::slice::from_ref(path), &inner_context(context, name));
            }
            unknown_operands(collector, name, rest);
        }
        "jobs" => {
            let found = options(rest, "");
            if found.has('x') {
                analyse(collector, found.operands, &inner_context(context, name));
            }
            unknown_operands(collector, name, rest);
        }
        "enable" if options(rest, "f").has('f') || rest.iter().any(Word::expands) => {
            collector.note("code", name);
        }
        "bind" if rest.iter().any(|word| word.text().starts_with('-')) => collector.note("code", name),
        "fc" => collector.note("code", name),
        "set" if rest.iter().any(changes_reading) => collector.note("option of the shell", &join(rest)),
        "set" => {
            unknown_operands(collector, name, rest);
        }
        _ => return false,
    }
    true
}

/// Whether an operand of `set` changes how later text is read: with history, `!` puts earlier text into a line; with `-k`, assignments
/// count wherever they are.
fn changes_reading(word: &Word) -> bool {
    let text = word.text();
    (text.starts_with('-') && !text.starts_with("--") && text.contains(['H', 'k']))
        || matches!(text.as_str(), "history" | "histexpand" | "keyword")
}

/// Operands that are not known may turn out to be options.
fn unknown_operands(collector: &mut Collector, name: &str, rest: &[Word]) {
    if rest.iter().any(|word| word.expands() || word.has_glob() || word.has_sequence()) {
        let text = format!("{name} {}", join(rest));
        collector.charge(text.len());
        collector.variables.operands(text);
    }
}

/// Builtins that store into variables which they are given the names of.
fn store(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) {
    let values = match name {
        "read" => "adinNptu",
        "printf" => "v",
        "wait" => "p",
        "getopts" | "unset" => "",
        _ => "dnOsuCc",
    };
    let found = options(rest, values);
    let mut names: Vec<&Word> = Vec::new();
    match name {
        "read" => {
            names.extend(found.value('a'));
            names.extend(found.operands);
        }
        "printf" => names.extend(found.value('v')),
        "wait" => names.extend(found.value('p')),
        "getopts" => names.extend(found.operands.get(1)),
        "unset" => {
            for word in found.operands {
                evaluated(collector, word, Evaluation::Name);
            }
        }
        _ => {
            names.extend(found.operands.first());
            if let Some(code) = found.value('C') {
                // It gets the line as a further operand.
                collector.note("operands from input", name);
                run_code(collector, name, std::slice::from_ref(code), context);
            }
        }
    }
    for name in names {
        evaluate::stored(collector, name);
    }
    unknown_operands(collector, name, rest);
}

/// Declarations: names with attributes and values.
fn declare(collector: &mut Collector, builtin: &str, rest: &[Word]) {
    let found = options(rest, "");
    let is_integer = found.has('i');
    let is_reference = found.has('n') && builtin != "export";
    collector.variables.references |= is_reference;
    if rest.iter().any(|word| word.expands() && word.text().starts_with(['$', '`'])) {
        // It may be any option, and set any variable.
        collector.note("name from expansion", &join(rest));
    }
    if found.has('f') || found.has('F') {
        return;
    }
    for word in found.operands {
        let (name, value) = split_assignment(word);
        evaluated(collector, &name, Evaluation::Name);
        let text = name.text();
        let base = text.split('[').next().unwrap_or_default().to_owned();
        if found.has('A') {
            collector.variables.keyed(&base);
        }
        if is_integer {
            collector.variables.integer(&base);
        }
        let Some(value) = value else { continue };
        if is_integer {
            evaluated(collector, &value, Evaluation::Arithmetic);
        }
        if is_reference {
            evaluated(collector, &value, Evaluation::Name);
        }
        compound(collector, &value);
        if evaluate::is_identifier(&base) {
            evaluate::assigned(collector, &base, Some(&value));
        }
    }
}

/// A quoted value in parentheses becomes the words of an array, if the variable is one, and so do its expansions.
fn compound(collector: &mut Collector, value: &Word) {
    if value.text().trim_start().starts_with('(') && value.is_quoted() {
        if value.hides_expansions() || value.expands() || value.text().contains('[') {
            collector.note("text that is expanded again", &value.text());
        }
        evaluated(collector, value, Evaluation::Text);
    }
}

/// Splits a word at the `=` of an assignment, which is not inside of an index.
pub(super) fn split_assignment(word: &Word) -> (Word, Option<Word>) {
    if let Some(split) = word.split_plain_assignment() {
        return split;
    }
    let marked = word.marked();
    let mut depth = 0_usize;
    for (index, (character, kind)) in marked.iter().enumerate() {
        match character {
            _ if matches!(kind, Kind::Expansion | Kind::Process) => {}
            '[' => depth = depth.saturating_add(1),
            ']' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => {
                let name = marked.get(..index).unwrap_or_default();
                let name = name
                    .strip_suffix(&[('+', Kind::Plain)])
                    .or_else(|| name.strip_suffix(&[('+', Kind::Quoted)]))
                    .unwrap_or(name);
                return (Word::from_marked(name, true), Some(word.skip(index.saturating_add(1))));
            }
            _ => {}
        }
    }
    (word.clone(), None)
}
