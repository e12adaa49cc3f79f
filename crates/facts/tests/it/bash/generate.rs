//! Generates command lines of harmless words: builtins that only compute, canaries, and files without a folder in their name.

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
            "shopt -s expand_aliases\n",
            "set -x\n",
            "set -B -f\n",
            "shopt -s lastpipe\n",
        ]));
    }
    line.push_str(&generator.list());
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
        match self.below(16) {
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

    /// Commands in a substitution.
    fn substitution(&mut self) -> String {
        let name = self.name();
        match self.below(12) {
            0 if self.depth < 4 => format!("$({})", self.list()),
            1 => format!("`{name}`"),
            2 => format!("$({name} 2>&1)"),
            3 => format!("$( ({name}) )"),
            4 => format!("$(({name}) )"),
            5 => format!("${{x:-$({name})}}"),
            6 => format!("\"$({name})\""),
            _ => format!("$({name})"),
        }
    }

    /// Text that runs a canary if it is evaluated as arithmetic or as a name.
    fn sleeping(&mut self) -> String {
        if self.is_calm {
            return self.pick(&["1", "12", "i"]).to_owned();
        }
        let name = self.name();
        match self.below(8) {
            0 => format!("a[`{name}`]"),
            1 => format!("a[b[$({name})]]"),
            2 => format!("x=a[$({name})]"),
            3 => format!("a[$({name})0]"),
            4 => format!("$({name})"),
            _ => format!("a[$({name})]"),
        }
    }

    /// The text in quotes.
    fn quoted(&mut self, text: &str) -> String {
        match self.below(6) {
            0 => format!(
                "\"{}\"",
                text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('`', "\\`")
            ),
            1 => format!("$'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('$', "\\x24")),
            2 => text
                .chars()
                .flat_map(|c| if c == '\n' { vec!['\'', c, '\''] } else { vec!['\\', c] })
                .collect(),
            _ => format!("'{}'", text.replace('\'', "'\\''")),
        }
    }

    /// Text that some builtin evaluates.
    fn evaluated(&mut self) -> String {
        if self.is_calm {
            return self.pick(&["1", "'12'", "\"3\"", "i"]).to_owned();
        }
        let text = self.sleeping();
        match self.below(8) {
            0 => text,
            1 => format!("\"{text}\""),
            2 => format!("${}", self.variable()),
            3 => format!("\"${}\"", self.variable()),
            _ => self.quoted(&text),
        }
    }

    fn arithmetic(&mut self) -> String {
        if self.is_calm {
            return self
                .pick(&[
                    "1",
                    "2 + 3",
                    "i = 4",
                    "(1 << 2) > 3",
                    "1 ? 2 : 3",
                    "$# + 1",
                    "16#ff",
                    "1 && 2",
                    "i=1,2",
                ])
                .to_owned();
        }
        self.depth += 1;
        let text = match self.below(18) {
            0 | 1 => self.variable().to_owned(),
            2 => format!("${}", self.variable()),
            3 => self.sleeping(),
            4 => self.evaluated(),
            5 => format!("{}++", self.variable()),
            6 => format!("{} = {}", self.variable(), self.below(9)),
            7 if self.depth < 4 => format!("({}) + {}", self.arithmetic(), self.arithmetic()),
            8 if self.depth < 4 => format!("{} ? {} : 1", self.variable(), self.arithmetic()),
            9 => format!("{}[{}]", self.variable(), self.index()),
            10 => self.substitution(),
            11 => "16#ff + 010".to_owned(),
            12 => "${#x} + $# - $?".to_owned(),
            13 if self.depth < 4 => format!("$(( {} ))", self.arithmetic()),
            14 => format!("a[\\$({})]", self.name()),
            15 => "1 # 2".to_owned(),
            16 => format!("{} += {}", self.variable(), self.variable()),
            _ => self.below(100).to_string(),
        };
        self.depth -= 1;
        text
    }

    fn index(&mut self) -> String {
        if self.is_calm {
            return self.pick(&["0", "@", "*", "1", "1+1"]).to_owned();
        }
        self.depth += 1;
        let text = match self.below(16) {
            0 => "@".to_owned(),
            1 => "*".to_owned(),
            2 => self.variable().to_owned(),
            3 => format!("${}", self.variable()),
            4 => format!("\"${}\"", self.variable()),
            5 => self.substitution(),
            6 => self.evaluated(),
            7 => " #".to_owned(),
            8 => format!(" {} ", self.name()),
            9 => format!("'$({})'", self.name()),
            10 => format!("\\$({})", self.name()),
            11 if self.depth < 4 => self.arithmetic(),
            12 => format!("; {} #", self.name()),
            _ => self.below(3).to_string(),
        };
        self.depth -= 1;
        text
    }

    /// `${ … }` in its forms.
    fn parameter(&mut self) -> String {
        let name = self.variable();
        let first = if self.is_calm { 2 } else { 0 };
        match first + self.below(22 - first) {
            0 => format!("${{!{name}}}"),
            1 => format!("${{{name}@{}}}", self.pick(&["P", "Q", "E", "A", "a", "U"])),
            2 => format!("${{{name}:{}}}", self.arithmetic()),
            3 => format!("${{{name}: {} : {}}}", self.arithmetic(), self.arithmetic()),
            4 => format!("${{{name}[{}]}}", self.index()),
            5 => format!("${{#{name}[{}]}}", self.index()),
            6 => format!("${{{name}:={}}}", self.word()),
            7 => format!("${{{name}:-{}}}", self.word()),
            8 => format!("${{{name}/{}/{}}}", self.word(), self.word()),
            9 => format!("${{{name}#{}}}", self.word()),
            10 => format!("${{{name}%%{}}}", self.word()),
            11 => format!("${{!{name}@}}"),
            12 => format!("${{!{name}[@]}}"),
            13 => format!("${{{name}^^{}}}", self.word()),
            14 => format!("${{@:{}}}", self.arithmetic()),
            15 => format!("${{{name}[{}]:={}}}", self.index(), self.word()),
            16 => format!("${{{name}[@]:{}}}", self.arithmetic()),
            17 => format!("${{{name}+{}}}", self.word()),
            18 if !self.is_calm => format!("${{!{name}:-{}}}", self.word()),
            19 if !self.is_calm => format!("${{{name}[{}]@P}}", self.index()),
            20 => format!("${{{name}:?{}}}", self.word()),
            _ => format!("${{#{name}}}"),
        }
    }

    fn word(&mut self) -> String {
        self.depth += 1;
        let deep = self.depth > 3;
        let text = match self.below(if deep { 9 } else { 26 }) {
            0..=3 => self.pick(&["a", "b", "1", "-x", "x=1", "if", "}", "0", "--", "-v", "-eq"]).to_owned(),
            4 => format!("${}", self.variable()),
            5 => format!(
                "'{}'",
                self.pick(&["a b", "}", "\"", ";", "#", "$(canary7)", "`canary7`", ")", "\\", "{a,b}", ""])
            ),
            6 => format!(
                "\"{}\"",
                self.pick(&["a b", "}", "'", ";", "#", ")", "\\\\", "\\\"", "${x}", "!", ""])
            ),
            7 => format!("\\{}", self.pick(&["$", "'", "\"", ";", "#", "(", ")", "`", "{", "\\"])),
            8 => self
                .pick(&[
                    "{a,b}", "{1..3}", "*", "$'\\n'", "$'\\''", "a#b", "?", "[a-z]", "!", "$#", "$@",
                    "\"$@\"",
                ])
                .to_owned(),
            9..=12 => self.substitution(),
            13 => format!("\"{}\"", self.substitution()),
            14 => format!("\"{}\"", self.parameter()),
            15..=17 => self.parameter(),
            18 => format!("$(( {} ))", self.arithmetic()),
            19 => format!("\"$(({}))\"", self.arithmetic()),
            20 => format!("$[ {} ]", self.arithmetic()),
            21 => format!("<({})", self.list()),
            22 => format!("{}({}|{})", self.pick(&["@", "?", "+", "*", "!"]), self.word(), self.word()),
            23 => format!("{{{},{}}}", self.word(), self.word()),
            24 => self.evaluated(),
            _ => format!("{}{}", self.word(), self.word()),
        };
        self.depth -= 1;
        text
    }

    fn words(&mut self) -> String {
        (0..self.below(3)).map(|_| format!(" {}", self.word())).collect()
    }

    fn redirection(&mut self) -> String {
        let file = self.file();
        match self.below(24) {
            0 => format!(" >>{file}"),
            1 => format!(" 2>{file}"),
            2 => format!(" &>{file}"),
            3 => format!(" >|{file}"),
            4 => format!(" <>{file}"),
            5 => format!(" >&{file}"),
            6 => format!(" >&{}", self.evaluated()),
            7 => format!(" {{{}}}>{file}", self.variable()),
            8 => format!(" {{{}[{}]}}>{file}", self.variable(), self.index()),
            9 if !self.is_calm => format!(" >{}", self.word()),
            10 => format!(" >{{{file},{}}}", self.file()),
            11 if !self.is_calm => format!(" >\"{file}{}\"", self.parameter()),
            12 => format!(" <<<{}", self.word()),
            13 => format!(" < {file}"),
            14 => " 2>&1".to_owned(),
            15 => format!(" > >({})", self.list()),
            16 => format!(" < <({})", self.list()),
            17 => format!(" &>>{file}"),
            18..=20 => self.here_document(),
            21 => format!(" >'{file}'"),
            _ => format!(" > {file}"),
        }
    }

    fn here_document(&mut self) -> String {
        let delimiter = self.pick(&["E", "'E'", "\\E", "\"E\"", "E1", "$'E'", "E\"\"", "'E F'"]);
        let strips = self.one_in(4);
        let plain = delimiter.trim_start_matches('$').replace(['\'', '\\', '"'], "");
        let text = match self.below(8) {
            0 => self.word(),
            1 => format!("\\$({})", self.name()),
            2 => format!("${{x:-{}}}", self.word()),
            3 => "E ".to_owned(),
            4 => "a\\\nE".to_owned(),
            5 => self.sleeping(),
            6 => format!("$({}", self.name()),
            _ => self.substitution(),
        };
        let tab = if strips { "\t" } else { "" };
        self.bodies.push(format!("{tab}{text}\n{tab}{plain}\n"));
        format!(" <<{}{delimiter}", if strips { "-" } else { "" })
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

    /// A builtin that evaluates what it is given.
    fn builtin(&mut self) -> String {
        let evaluated = self.evaluated();
        let name = self.name();
        let mut form = self.below(38);
        if self.is_calm && matches!(form, 4..=12 | 14..=23 | 25 | 29 | 31 | 32) {
            form = [24, 26, 27, 28, 30, 33, 34, 35, 36, 2, 13][self.below(11)];
        }
        match form {
            0 => format!("let {evaluated}"),
            1 => format!("[[ -v {evaluated} ]]"),
            2 => {
                format!("[[ {evaluated} {} {} ]]", self.pick(&["-eq", "-lt", "-ge", "==", "<"]), self.word())
            }
            3 => format!("[[ {} -ne {evaluated} && {} ]]", self.word(), self.word()),
            4 => format!("test -v {evaluated}"),
            5 => format!("[ -v {evaluated} ]"),
            6 => format!("[ {evaluated} -eq 0 ]"),
            7 => format!("test {} {}", self.word(), self.word()),
            8 => format!("printf -v {evaluated} x"),
            9 => format!("read {evaluated} <<<1"),
            10 => format!("read -r x <<< {evaluated}"),
            11 => format!("unset {evaluated}"),
            12 => format!("declare {evaluated}=1"),
            13 => format!("declare -i x={evaluated}"),
            14 => format!(
                "declare -{} {}={evaluated}",
                self.pick(&["a", "A", "n", "x", "ai", "r", "i", "l"]),
                self.variable()
            ),
            15 => format!("declare -a {}", self.quoted(&format!("x=($({name}))"))),
            16 => format!("export {}={evaluated}", self.variable()),
            17 => format!("mapfile -C {} -c 1 x <<< 1", self.quoted(&name)),
            18 => format!("compgen -C {} x", self.quoted(&name)),
            19 => format!("compgen -W {} x", self.quoted(&format!("$({name})"))),
            20 => format!("compgen -F {name} x"),
            21 => format!("hash -p $PATH/{name} q; q"),
            22 => format!("getopts x {evaluated} -x"),
            23 => format!("wait -p {evaluated} -n"),
            24 => format!("jobs -x {name}"),
            25 => format!("eval {}", self.word()),
            26 | 27 => {
                let list = self.inner_list();
                format!("eval {}", self.quoted(&list))
            }
            28 => {
                let list = self.inner_list();
                format!("trap {} EXIT", self.quoted(&list))
            }
            29 => format!("alias q={}\nq", self.quoted(&name)),
            30 => format!("(( {} ))", self.arithmetic()),
            31 => format!("declare -i {}; {}", self.variable(), self.assignment()),
            32 => format!("declare -n {}={}; {}", self.variable(), self.variable(), self.assignment()),
            33 => format!("command {}", self.simple()),
            34 => format!("builtin {}", if self.depth < 4 { self.builtin() } else { ":".to_owned() }),
            35 => format!("exec {}", self.simple()),
            36 => format!("[[ {} =~ {} ]]", self.word(), self.word()),
            _ => format!("[[ -R {evaluated} || ! ( {} ) ]]", self.word()),
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
        let text = match self.below(if deep { 7 } else { 34 }) {
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
            "'", "\"", "\\", "$", "(", ")", "{", "}", "[", "]", "<", ">", "|", "&", ";", "`", "#", "!", "=",
            "*", "?", " ", "\n", ",", ":", "@", "+", "-", "^", "%", "x", "1", "$(", "${", "((", "))", "]]",
            "[[", "<<E", "$'", "<(",
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
