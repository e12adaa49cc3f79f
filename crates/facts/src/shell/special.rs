//! Commands of the shell that run code: `eval`, `trap`, `alias`, `source`, and those that change the directory.

use super::arguments;
use super::collect::Collector;
use super::external;
use super::interpret::run_script;
use super::interpreter::{self, Reader};
use super::program::Program;
use super::reader::parse_code;
use super::unwrap::{Context, inner_context, join, note_code, run_code, run_text, shell_reader};
use super::word::{Kind, Word};

const NO_OPTIONS: Program = Program::NOTHING;

/// Extracts commands from programs that run others in ways of their own.
pub(super) fn run(collector: &mut Collector, name: &str, rest: &[Word], context: &Context) -> Option<Reader> {
    match name {
        "eval" => {
            let found = arguments::read(rest, &NO_OPTIONS, false);
            note_code(collector, &found.operands, context);
            let inner = inner_context(context, name).wrappers;
            let outer = std::mem::replace(&mut collector.wrappers, inner);
            parse_code(collector, &join(&found.operands), context.piped);
            collector.wrappers = outer;
            // Changes of directory were handled inside.
            collector.directory_change = None;
        }
        "trap" => {
            if let Some(code) = rest.iter().find(|word| !word.text().starts_with('-')) {
                run_code(collector, name, std::slice::from_ref(code), context);
            }
        }
        "alias" => {
            for word in rest {
                if let Some((name, code)) = word.text().split_once('=') {
                    collector.note("alias", name);
                    run_text(collector, "alias", code, context);
                }
            }
        }
        "cd" | "pushd" | "chdir" | "popd" => {
            let target = rest.iter().find(|word| word.text() == "-" || !word.text().starts_with('-'));
            let target = match (name, target) {
                ("popd", _) | ("pushd", None) => unknown_directory(),
                ("pushd", Some(word)) if word.text().starts_with('+') => unknown_directory(),
                (_, Some(word)) => word.clone(),
                (_, None) => Word::literal("~"),
            };
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
    word.push_all(Kind::Expansion, &"$DIRSTACK".chars().collect::<Vec<_>>());
    word
}
