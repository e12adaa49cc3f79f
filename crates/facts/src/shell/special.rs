//! Commands of the shell that change the directory or run a file; the rest of its builtins and programs that run others.

use super::builtin;
use super::collect::{Collector, Effect};
use super::external;
use super::interpret::run_script;
use super::interpreter::{self, Reader};
use super::unwrap::{Context, inner_context, shell_reader};
use super::word::{Kind, Word};

/// Spelling of a directory on the stack of a running shell.
const UNKNOWN_DIRECTORY: &str = "$DIRSTACK";

/// Extracts commands from programs that run others in ways of their own.
pub(super) fn run(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> Option<Reader> {
    if builtin::run(collector, name, rest, context) {
        return None;
    }
    match name {
        "cd" | "pushd" | "chdir" | "popd" => {
            let target = rest.iter().find(|word| word.text() == "-" || !word.text().starts_with('-'));
            let target = match (name, target) {
                ("popd", _) | ("pushd", None) => unknown_directory(),
                ("pushd", Some(word)) if word.text().starts_with('+') => unknown_directory(),
                (_, Some(word)) => word.clone(),
                (_, None) => Word::literal("~"),
            };
            if target.text() == "-" || target.text() == UNKNOWN_DIRECTORY {
                collector.note("directory unknown", name);
            } else {
                // A program without an operand, such as `ls`, reads the directory itself.
                collector.file(Effect::Mention, &target);
            }
            collector.directory_change = Some(target);
        }
        "source" | "." => {
            let script = rest.iter().find(|word| word.text() != "--")?;
            if interpreter::is_standard_input(&script.text()) {
                return Some(shell_reader(name, &inner_context(context, name)));
            }
            run_script(collector, name, script);
        }
        _ => return external::run(collector, name, rest, context),
    }
    None
}

/// A directory that only a running shell knows.
fn unknown_directory() -> Word {
    let mut word = Word::default();
    word.push_all(Kind::Expansion, &UNKNOWN_DIRECTORY.chars().collect::<Vec<_>>());
    word
}
