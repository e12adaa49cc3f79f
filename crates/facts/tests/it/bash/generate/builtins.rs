//! Builtins that evaluate what they are given.

use super::Generator;

impl Generator {
    /// A builtin that evaluates what it is given.
    pub(super) fn builtin(&mut self) -> String {
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
}
