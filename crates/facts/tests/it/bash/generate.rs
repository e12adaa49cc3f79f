//! Generates command lines of harmless words: builtins that only compute, canaries, and files without a folder in their name.

mod builtins;
mod redirections;
mod words;

use super::runner::CANARIES;

/// The line of a number, always the same for a seed.
pub(super) fn line(seed: u64, number: u64) -> String {
    let mut generator = Generator {
        state: seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        depth: 0,
        canary: 0,
        is_calm: false,
        bodies: Vec::new(),
    };
    generator.next();
    generator.is_calm = !generator.one_in(3);
    let mut line = String::new();
    if generator.one_in(12) {
        line.push_str(generator.pick(&[
            "shopt -s extglob\n",
            "shopt -s extglob nullglob\n",
            "shopt -s expand_aliases\n",
            "set -x\n",
            "set -f +B\n",
            "set -o posix\n",
            "set -k\n",
            "shopt -s lastpipe\n",
            "shopt -u sourcepath; shopt -s compat44\n",
        ]));
    }
    line.push_str(&generator.list());
    if generator.one_in(12) {
        // The beginning of one line and the end of another.
        let other = generator.list();
        let (before, after) = (generator.below(line.len() + 1), generator.below(other.len() + 1));
        line = line.chars().take(before).chain(other.chars().skip(after)).collect();
    }
    if generator.one_in(4) {
        let edits = 1 + generator.below(3);
        line = generator.edited(&line, edits);
    }
    line
}

struct Generator {
    state: u64,
    depth: usize,
    canary: usize,
    /// Whether the line has only forms that can be followed, so that nothing is to be noted and everything to be found.
    is_calm: bool,
    /// Bodies of here-documents that follow the next newline.
    bodies: Vec<String>,
}

impl Generator {
    fn next(&mut self) -> u64 {
        // splitmix64
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// The name of a canary, another one each time.
    fn name(&mut self) -> String {
        self.canary += 1;
        format!("canary{}", (self.canary - 1) % CANARIES)
    }

    fn variable(&mut self) -> &'static str {
        self.pick(&["x", "y", "a", "b", "i"])
    }

    fn file(&mut self) -> &'static str {
        self.pick(&["f", "g", "h", "f1", "g-h"])
    }

    /// The name, written in one of the ways that leave it the same.
    fn disguised(&mut self) -> String {
        let name = self.name();
        let rest = &name[1..];
        match self.below(24) {
            16 => format!("{{x,{{{name}}}"),
            17 => format!("{{x}},{name}}}"),
            18 => format!("{{{name},{{a,b}}}}"),
            19 => format!("c{{a..a}}{}", &name[2..]),
            20 => format!("{{c{rest},\"a\"}}"),
            0 => format!("c\"\"{rest}"),
            1 => format!("\\c{rest}"),
            2 => format!("$'\\x63'{rest}"),
            3 => format!("'{name}'"),
            4 => format!("\"{name}\""),
            5 => format!("{{{name},}}"),
            6 => format!("{{,c}}{rest}"),
            7 => format!("c\\\n{rest}"),
            8 if !self.is_calm => format!("${{x:-{name}}}"),
            9 => format!("$'\\143{rest}'"),
            10 => format!("$\"{name}\""),
            _ => name,
        }
    }

    fn assignment(&mut self) -> String {
        let name = self.variable();
        match self.below(14) {
            5 | 11 if self.is_calm => format!("{name}={}", self.word()),
            0 => format!("{name}[{}]={}", self.index(), self.word()),
            1 => format!("{name}=({})", self.words()),
            2 => format!("{name}=([{}]={} {})", self.index(), self.word(), self.word()),
            3 => format!("{name}+={}", self.evaluated()),
            4 => format!("{name}={}", self.below(9)),
            5 => format!("PS4={}", self.evaluated()),
            6 => format!("{name}=$(({}))", self.arithmetic()),
            7 => format!("{name}={}", self.disguised()),
            8..=10 => format!("{name}={}", self.evaluated()),
            11 => format!(
                "{}={}",
                self.pick(&["RANDOM", "SECONDS", "OPTIND", "BASH_CMDS[q]", "BASH_ALIASES[q]", "IFS"]),
                self.evaluated()
            ),
            _ => format!("{name}={}", self.word()),
        }
    }

    fn simple(&mut self) -> String {
        let mut text = String::new();
        if self.one_in(6) {
            text = format!("{} ", self.assignment());
        }
        match if self.is_calm { 2 * self.below(3) } else { self.below(6) } {
            0 => text.push_str(self.pick(&[":", "echo", "true", "set --", "echo -n"])),
            1 => {
                let word = self.word();
                text.push_str(&word);
            }
            _ => {
                let name = self.disguised();
                text.push_str(&name);
            }
        }
        text.push_str(&self.words());
        if self.one_in(4) {
            text.push_str(&self.redirection());
        }
        text
    }

    /// A list in a text of its own, for code that is quoted.
    fn inner_list(&mut self) -> String {
        let bodies = std::mem::take(&mut self.bodies);
        let list = self.list();
        self.bodies = bodies;
        list
    }

    fn command(&mut self) -> String {
        self.depth += 1;
        let deep = self.depth > 3;
        let text = match self.below(if deep { 7 } else { 50 }) {
            0..=3 => self.simple(),
            4..=6 => self.assignment(),
            7..=11 => self.builtin(),
            12 | 13 => format!("( {} ){}", self.list(), self.compound_redirection()),
            14 => format!("{{ {}; }}{}", self.list(), self.compound_redirection()),
            15 => format!("if {}; then {}; fi", self.list(), self.list()),
            16 => format!(
                "while {}; do {}; break; break; done{}",
                self.list(),
                self.list(),
                self.compound_redirection()
            ),
            17 => format!("for {} in{}; do {}; done", self.variable(), self.words(), self.list()),
            18 => format!(
                "for (({}; {}; {})); do {}; break; break; done",
                self.arithmetic(),
                self.arithmetic(),
                self.arithmetic(),
                self.list()
            ),
            19 => format!(
                "case {} in {}) {};; {}|*) {};; esac",
                self.word(),
                self.word(),
                self.list(),
                self.word(),
                self.list()
            ),
            20 => format!("case x in ({}) {} ;;& x) {} ;& esac", self.word(), self.list(), self.list()),
            21 => {
                format!("{}() {{ {}; }}; {0}{}", self.pick(&["p", "shift", "q"]), self.list(), self.words())
            }
            22 => format!("function p {{ {}; }}; p", self.list()),
            23 => format!("coproc {}", self.command()),
            24 => format!("coproc N {{ {}; }}", self.list()),
            25 => format!("time {}", self.command()),
            26 => format!("time !({})", self.list()),
            27 => format!("! {}", self.command()),
            28 => format!("!({})", self.list()),
            29 => format!("select x in a{}; do {}; break; break; done <<< 1", self.words(), self.list()),
            30 => format!("(({}) ; {})", self.list(), self.list()),
            31 => self.redirection(),
            33 => format!("p() if {}; then {}; fi; p", self.list(), self.list()),
            34 => format!("function p\n((1)); p() [[ {} ]]; {}", self.word(), self.command()),
            35 => format!("for {}; do {}; done", self.variable(), self.list()),
            36 => format!("for {} do {}; done", self.variable(), self.list()),
            37 => format!("for ((1; i<1; i++)) {{ {}; break; }}", self.list()),
            38 => format!("for {} in a; {{ {}; }}", self.variable(), self.list()),
            39 => format!("case {} in\n# c )\n{}) {}\n;;\nesac", self.word(), self.word(), self.list()),
            40 => format!("case esac in esac) {} ;; (esac) {};; esac", self.list(), self.list()),
            41 => format!(
                "[[ ( {} {} {} ) || {} ]] && {}",
                self.word(),
                self.pick(&["<", ">", "=", "!=", "-nt"]),
                self.word(),
                self.word(),
                self.command()
            ),
            42 => format!("[[ -n {}\n&& ! -z {} ]]; {}", self.word(), self.word(), self.command()),
            43 => format!("coproc {} {}", self.variable(), self.command()),
            44 => format!("time -p {}", self.command()),
            45 => format!("{} {}", self.redirection(), self.simple()),
            46 => format!(
                "if {}; then :; elif {}\nthen {}; else {}; fi{}",
                self.list(),
                self.list(),
                self.list(),
                self.list(),
                self.compound_redirection()
            ),
            47 => format!("{}=(\n{} # c )\n{})", self.variable(), self.word(), self.word()),
            48 => format!("declare -a {}=({} {})", self.variable(), self.word(), self.word()),
            49 => format!("{{ {}\n}} | {{ {}; }} 2>&1", self.list(), self.list()),
            32 => format!("until {}; do {}; break; break; done", self.list(), self.list()),
            _ => format!("p() ( {} ); p", self.list()),
        };
        self.depth -= 1;
        text
    }

    fn compound_redirection(&mut self) -> String {
        if self.one_in(4) { self.redirection() } else { String::new() }
    }

    fn list(&mut self) -> String {
        self.depth += 1;
        let mut text = self.command();
        let more = if self.depth > 2 { self.below(5) / 4 } else { self.below(3) };
        for _ in 0..more {
            let separator =
                self.pick(&["; ", "\n", " && ", " || ", " | ", " & ", " |& ", ";", "&", "|", " # c\n"]);
            text.push_str(separator);
            if separator.ends_with('\n') {
                self.flush(&mut text);
            }
            let command = self.command();
            text.push_str(&command);
        }
        if !self.bodies.is_empty() {
            text.push('\n');
            self.flush(&mut text);
            text.push(':');
        }
        self.depth -= 1;
        text
    }

    fn flush(&mut self, text: &mut String) {
        for body in std::mem::take(&mut self.bodies) {
            text.push_str(&body);
        }
    }

    /// The line with some characters changed.
    fn edited(&mut self, line: &str, edits: usize) -> String {
        const INSERTED: &[&str] = &[
            "'",
            "\"",
            "\\",
            "$",
            "(",
            ")",
            "{",
            "}",
            "[",
            "]",
            "<",
            ">",
            "|",
            "&",
            ";",
            "`",
            "#",
            "!",
            "=",
            "*",
            "?",
            " ",
            "\n",
            ",",
            ":",
            "@",
            "+",
            "-",
            "^",
            "%",
            "x",
            "1",
            "$(",
            "${",
            "((",
            "))",
            "]]",
            "[[",
            "<<E",
            "$'",
            "<(",
            "\t",
            "\r",
            "\u{e9}",
            "\u{a0}",
            "\\\n",
            ">&",
            "<<-'E'\n",
            "{canary0,",
            "esac",
            " in ",
            "do ",
            ";;",
        ];
        let mut characters: Vec<String> = line.chars().map(String::from).collect();
        for _ in 0..edits {
            let at = self.below(characters.len().max(1));
            match self.below(4) {
                0 if at < characters.len() => {
                    characters.remove(at);
                }
                1 if at + 1 < characters.len() => characters.swap(at, at + 1),
                2 if at < characters.len() => {
                    let copied = characters[at].clone();
                    characters.insert(at, copied);
                }
                _ => {
                    let inserted = self.pick(INSERTED).to_owned();
                    characters.insert(at.min(characters.len()), inserted);
                }
            }
        }
        characters.concat()
    }
}
