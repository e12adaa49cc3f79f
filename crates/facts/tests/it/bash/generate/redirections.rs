//! Redirections and here-documents.

use super::Generator;

impl Generator {
    pub(super) fn redirection(&mut self) -> String {
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

    pub(super) fn here_document(&mut self) -> String {
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
}
