//! Programs that run code: shells, whose code is parsed, and other languages, whose code is not.

use super::word::Word;

/// An interpreter that takes its program from standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reader {
    /// Name, as reported.
    pub(super) name: String,
    /// Whether the program is shell code.
    pub(super) is_shell: bool,
    /// The wrappers around its program, itself included.
    pub(super) wrappers: Vec<String>,
}

/// Source of an interpreter's program.
#[derive(Debug, Clone)]
pub(super) enum Program {
    /// An argument.
    Code(Word),
    /// A file.
    Script(Word),
    /// Standard input.
    Input,
    /// No code, or none that could be found.
    Nothing,
}

/// Whether the program is a shell that takes `-c`.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash"
            | "dash"
            | "zsh"
            | "ksh"
            | "ash"
            | "mksh"
            | "ksh93"
            | "pdksh"
            | "lksh"
            | "oksh"
            | "yash"
            | "rbash"
            | "rzsh"
            | "rksh"
            | "fish"
            | "csh"
            | "tcsh"
            | "posh"
            | "hush"
            | "osh"
            | "-bash"
            | "-sh"
    )
}

/// Source of a shell's program.
pub(super) fn shell_program(arguments: &[Word]) -> Program {
    let mut takes_code = false;
    let mut takes_input = false;
    let mut rest = arguments.iter();
    let operand = loop {
        let Some(word) = rest.next() else { break None };
        let text = word.text();
        match text.as_str() {
            "-" | "--" => break rest.next(),
            "--rcfile" | "--init-file" | "--emulate" => {
                if let Some(file) = rest.next()
                    && file.is_process()
                {
                    return Program::Script(file.clone());
                }
            }
            "--command" => takes_code = true,
            "--version" | "--help" => return Program::Nothing,
            _ if text.starts_with("--command=") => return Program::Code(word.skip("--command=".len())),
            _ if text.starts_with("--") => {}
            _ if text.len() > 1 && text.starts_with(['-', '+']) => {
                if text.starts_with('-') {
                    takes_code |= text.contains('c');
                    takes_input |= text.contains('s');
                }
                for _ in text.chars().filter(|c| matches!(c, 'o' | 'O')) {
                    rest.next();
                }
            }
            _ => break Some(word),
        }
    };
    match operand {
        Some(word) if takes_code => Program::Code(word.clone()),
        None if takes_code => Program::Nothing,
        _ if takes_input => Program::Input,
        Some(word) if is_standard_input(&word.text()) => Program::Input,
        Some(word) => Program::Script(word.clone()),
        None => Program::Input,
    }
}

/// Whether a file name means standard input.
pub(super) fn is_standard_input(text: &str) -> bool {
    matches!(text, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// Options of a language's interpreter: its name, the short options with code, the long ones, those that
/// name something else to run.
struct Language {
    name: &'static str,
    code: &'static str,
    long_code: &'static [&'static str],
    other: &'static str,
}

const LANGUAGES: &[Language] = &[
    Language { name: "python", code: "c", long_code: &[], other: "m" },
    Language { name: "pypy", code: "c", long_code: &[], other: "m" },
    Language { name: "perl", code: "eE", long_code: &[], other: "" },
    Language { name: "ruby", code: "e", long_code: &[], other: "" },
    Language { name: "node", code: "ep", long_code: &["eval", "print"], other: "" },
    Language { name: "nodejs", code: "ep", long_code: &["eval", "print"], other: "" },
    Language { name: "bun", code: "ep", long_code: &["eval", "print"], other: "" },
    Language { name: "deno", code: "", long_code: &["eval"], other: "" },
    Language { name: "php", code: "rBRE", long_code: &["run"], other: "f" },
    Language { name: "lua", code: "e", long_code: &[], other: "" },
    Language { name: "luajit", code: "e", long_code: &[], other: "" },
    Language { name: "julia", code: "eE", long_code: &["eval", "print"], other: "" },
    Language { name: "rscript", code: "e", long_code: &[], other: "" },
    Language { name: "osascript", code: "e", long_code: &[], other: "" },
    Language { name: "tclsh", code: "c", long_code: &[], other: "" },
    Language { name: "expect", code: "c", long_code: &[], other: "f" },
    Language { name: "elixir", code: "e", long_code: &["eval"], other: "" },
    Language { name: "groovy", code: "e", long_code: &[], other: "" },
    Language { name: "pwsh", code: "ceE", long_code: &["command", "encodedcommand"], other: "fF" },
    Language { name: "powershell", code: "ceE", long_code: &["command", "encodedcommand"], other: "fF" },
];

/// The language of an interpreter's name, with any version taken off.
pub(super) fn language(name: &str) -> Option<&'static str> {
    find_language(name).map(|language| language.name)
}

fn find_language(name: &str) -> Option<&'static Language> {
    let lower = name.to_ascii_lowercase();
    let bare = lower.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    LANGUAGES.iter().find(|language| language.name == bare)
}

/// Source of the program of another language's interpreter.
pub(super) fn language_program(name: &str, arguments: &[Word]) -> Program {
    let Some(language) = find_language(name) else { return Program::Nothing };
    for (index, word) in arguments.iter().enumerate() {
        let text = word.text();
        let code_follows = || arguments.get(index + 1).cloned().unwrap_or_default();
        if is_standard_input(&text) {
            return Program::Input;
        }
        if matches!(text.as_str(), "--version" | "--help" | "-V" | "-h") {
            return Program::Nothing;
        }
        let long = text.trim_start_matches('-').to_ascii_lowercase();
        let long = long.split('=').next().unwrap_or_default();
        if language.long_code.contains(&long) {
            return Program::Code(code_follows());
        }
        let Some(cluster) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
            if text.starts_with("--") {
                continue;
            }
            return if matches!(text.as_str(), "run" | "test" | "repl" | "install") {
                Program::Nothing
            } else {
                Program::Script(word.clone())
            };
        };
        if cluster.contains(|c| language.code.contains(c)) {
            return Program::Code(code_follows());
        }
        if cluster.contains(|c| language.other.contains(c)) {
            return Program::Nothing;
        }
    }
    Program::Input
}
