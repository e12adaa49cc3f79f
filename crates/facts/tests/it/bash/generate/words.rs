//! Words: quoting, expansions, and text that is evaluated.

use super::Generator;

impl Generator {
    /// Commands in a substitution.
    pub(super) fn substitution(&mut self) -> String {
        let name = self.name();
        match self.below(30) {
            0 if self.depth < 4 => format!("$({})", self.list()),
            1 => format!("`{name}`"),
            12 => format!("$( # c )\n{name})"),
            13 => format!("`: \\`{name}\\``"),
            14 => format!("`{name} # c`"),
            15 => format!("$(case x in x) {name};; esac)"),
            16 => format!("$(case x in (x) {name};; esac )"),
            17 => format!("\"${{x:-\"$({name})\"}}\""),
            18 => format!("\"${{x:-'}}$({name})'}}\""),
            19 => format!("${{x:-'}}'$({name})}}"),
            20 => format!("\"${{x#'$({name})'}}\""),
            21 => format!("$(\n{name}\n)"),
            22 => format!("$(: <<E\n$({name})\nE\n)"),
            23 => format!("\"`: \\\"{name}\\\"; {name}`\""),
            2 => format!("$({name} 2>&1)"),
            3 => format!("$( ({name}) )"),
            4 => format!("$(({name}) )"),
            5 => format!("${{x:-$({name})}}"),
            6 => format!("\"$({name})\""),
            _ => format!("$({name})"),
        }
    }

    /// Text that runs a canary if it is evaluated as arithmetic or as a name.
    pub(super) fn sleeping(&mut self) -> String {
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
    pub(super) fn quoted(&mut self, text: &str) -> String {
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
    pub(super) fn evaluated(&mut self) -> String {
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

    pub(super) fn arithmetic(&mut self) -> String {
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

    pub(super) fn index(&mut self) -> String {
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
    pub(super) fn parameter(&mut self) -> String {
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

    pub(super) fn word(&mut self) -> String {
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

    pub(super) fn words(&mut self) -> String {
        (0..self.below(3)).map(|_| format!(" {}", self.word())).collect()
    }
}
