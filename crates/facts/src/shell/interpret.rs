//! Interpreters: their code is parsed if it is shell code, scanned otherwise; script files make a command opaque.

use super::collect::{Collector, Effect};
use super::external;
use super::interpreter::{self, Program, Reader};
use super::opaque;
use super::unwrap::{Context, inner_context, run_code, shell_reader};
use super::word::Word;

/// Records a shell and the code that it is given.
pub(super) fn shell(
    collector: &mut Collector,
    name: &str,
    words: &[Word],
    context: &Context,
) -> Option<Reader> {
    let name = name.trim_start_matches('-');
    let rest = words.get(1..).unwrap_or_default();
    let start_files = rest.windows(2).filter(
        |pair| matches!(pair, [option, _] if matches!(option.text().as_str(), "--rcfile" | "--init-file")),
    );
    for file in start_files.filter_map(<[Word]>::last) {
        collector.file(Effect::Read, file);
        opaque::record(collector, words);
    }
    match interpreter::shell_program(rest) {
        Program::Code(code) => {
            // The words after the code are its parameters.
            for word in rest.iter().filter(|word| word.has_glob() || word.expands()) {
                collector.unknown_word(&word.text());
            }
            run_code(collector, name, &[code], context);
            None
        }
        Program::Script(script) => {
            run_script(collector, name, &script);
            opaque_script(collector, words, &script);
            None
        }
        Program::Input => Some(shell_reader(name, &inner_context(context, name))),
        Program::Nothing => None,
    }
}

/// A script file that is run: nothing is known of its effects. The file itself is read.
fn opaque_script(collector: &mut Collector, words: &[Word], script: &Word) {
    collector.opaque(words);
    collector.writes_here();
    let script = script.text();
    for word in words.iter().skip(1).filter(|word| word.text() != script) {
        opaque::scan_word(collector, word);
        if word.expands() || word.has_glob() {
            collector.unknown_word(&word.text());
        }
    }
}

/// Records an interpreter of another language and the code that it is given.
pub(super) fn language(
    collector: &mut Collector,
    name: &str,
    language: &str,
    words: &[Word],
    context: &Context,
) -> Option<Reader> {
    let rest = words.get(1..).unwrap_or_default();
    match interpreter::language_program(name, rest) {
        Program::Code(code) => {
            collector.note("code", language);
            opaque::scan_code(collector, &code.text());
            for word in rest.iter().filter(|word| word.has_glob() || word.expands()) {
                collector.unknown_word(&word.text());
            }
            operands_of_code(collector, language, rest, &code);
        }
        Program::Script(script) => {
            run_script(collector, language, &script);
            opaque_script(collector, words, &script);
        }
        Program::Input => {
            return Some(Reader { name: language.to_owned(), is_shell: false, wrappers: Vec::new() });
        }
        Program::Nothing if matches!(language, "python" | "pypy") => {
            return external::python_module(collector, words, context);
        }
        Program::Nothing => {
            let only_tells =
                rest.iter().all(|word| matches!(word.text().as_str(), "--version" | "--help" | "-V" | "-h"));
            if !only_tells {
                opaque::record(collector, words);
            }
        }
    }
    None
}

/// The files after code on the command line: perl and ruby edit them with `-i`, others may read them.
fn operands_of_code(collector: &mut Collector, language: &str, rest: &[Word], code: &Word) {
    let edits = matches!(language, "perl" | "ruby")
        && rest.iter().any(|word| {
            let text = word.text();
            let before = text.split('i').next().unwrap_or_default();
            text.starts_with('-') && text.contains('i') && !before.contains(['e', 'E', 'M', 'I', 'm'])
        });
    let effect = if edits { Effect::Write } else { Effect::Mention };
    let code = code.text();
    for word in rest.iter().filter(|word| word.text() != code && !word.text().starts_with('-')) {
        collector.file(effect, word);
    }
}

/// Records a script file that is run.
pub(super) fn run_script(collector: &mut Collector, name: &str, script: &Word) {
    if script.is_process() {
        collector.note("script from pipe", name);
    } else if script.expands() {
        collector.note("script from expansion", &script.text());
        collector.unknown_word(&script.text());
    }
    collector.file(Effect::Read, script);
}
