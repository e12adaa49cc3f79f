//! Command lines and everything that must be found in them.

use std::fmt::Write as _;

use super::super::{ShellFacts, parse};

/// A command line and its facts: `c` command text, `w` write, `r` read, `d` delete, `u` unknown.
type Case = (&'static str, &'static [&'static str]);

fn flat(facts: &ShellFacts) -> Vec<String> {
    let commands = facts.commands.iter().map(|command| format!("c {}", command.text));
    let writes = facts.writes.iter().map(|path| format!("w {path}"));
    let reads = facts.reads.iter().map(|path| format!("r {path}"));
    let deletes = facts.deletes.iter().map(|path| format!("d {path}"));
    let unknown = facts.unknown.iter().map(|entry| format!("u {entry}"));
    commands.chain(writes).chain(reads).chain(deletes).chain(unknown).collect()
}

fn check(cases: &[Case]) {
    let mut failures = String::new();
    for (command, expected) in cases {
        let found = flat(&parse(command));
        if found != *expected {
            let _ = write!(failures, "{command:?}\n  expected {expected:?}\n  found    {found:?}\n");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn lists_pipelines_and_groups() {
    check(&[
        ("", &[]),
        ("   \t\n", &[]),
        ("ls", &["c ls"]),
        ("a; b", &["c a", "c b"]),
        ("a & b &", &["c a", "c b"]),
        ("a && b || c", &["c a", "c b", "c c"]),
        ("a | b |& c", &["c a", "c b", "c c"]),
        ("a\nb\n\nc", &["c a", "c b", "c c"]),
        ("a \\\n b", &["c a b"]),
        ("r\\\nm x", &["c rm x", "d x"]),
        ("! a", &["c a"]),
        ("!(rm x)", &["c rm x", "d x"]),
        ("(a; b)", &["c a", "c b"]),
        ("((rm x); b)", &["c rm x", "c b", "d x"]),
        ("((i++))", &["u value in arithmetic: i"]),
        ("i=0; ((i++))", &[]),
        (
            "((a & rm x >y))",
            &[
                "c a",
                "c rm x",
                "w y",
                "d x",
                "u value in arithmetic: a",
                "u value in arithmetic: rm",
                "u value in arithmetic: x",
                "u value in arithmetic: y",
            ],
        ),
        ("((i = j + 1)); (( i += 2 ))", &["u value in arithmetic: j"]),
        ("((rm x))", &["c rm x", "d x", "u value in arithmetic: rm", "u value in arithmetic: x"]),
        ("{ a; b; }", &["c a", "c b"]),
        ("a # b; rm x", &["c a"]),
        ("a#b c", &["c a#b c"]),
        ("a;#x\nb", &["c a", "c b"]),
        ("time (rm x)", &["c rm x", "d x"]),
        ("time A=1 rm x", &["c time rm x", "c rm x", "d x"]),
        ("time time -p A=1 rm x", &["c time time -p rm x", "c time -p rm x", "c rm x", "d x"]),
        ("time -p { rm x; }", &["c rm x", "d x"]),
    ]);
}

#[test]
fn compound_commands() {
    check(&[
        ("if a; then b; elif c; then d; else e; fi", &["c a", "c b", "c c", "c d", "c e"]),
        ("while a; do b; done", &["c a", "c b"]),
        ("until a\ndo\nb\ndone > out", &["c a", "c b", "w out"]),
        ("for x in 1 2 $(a); do b $x; done", &["c a", "c b $x"]),
        ("for x do b; done", &["c b"]),
        ("for ((i=0; i<$(n); i++)); do b; done", &["c n", "c b", "u arithmetic: i=0; i<$(n); i++"]),
        ("select x in a b; do c; done", &["c c"]),
        ("case $x in a|b) c;; (d) e ;& *) f ;;& esac; g", &["c c", "c e", "c f", "c g"]),
        ("case x in esac; rm y", &["c rm y", "d y"]),
        ("case x in\n # note\n a)\n b\n ;;\n esac", &["c b"]),
        ("echo $(case x in a) rm y;; esac)", &["c rm y", "c echo $(case x in a) rm y;; esac)", "d y"]),
        ("f() { rm x; }; f", &["c rm x", "c f", "d x"]),
        ("f () (rm x)", &["c rm x", "d x"]),
        ("f+() { rm x; }; f+", &["c rm x", "c f+", "d x"]),
        ("function f { rm x; }", &["c rm x", "d x"]),
        ("function f() {\nrm x\n}", &["c rm x", "d x"]),
        ("coproc N { rm x; }", &["c rm x", "d x"]),
        ("coproc rm x", &["c rm x", "d x"]),
        ("[[ a < b && -f $(c) ]] && d", &["c c", "c d"]),
        ("[[ $x =~ ^(a|b)$ ]]; d", &["c d"]),
        ("[[ a || rm -rf y ]]", &["u command in condition: rm -rf y"]),
        ("if (a) then b; fi", &["c a", "c b"]),
        ("{ { a; } }", &["c a"]),
        ("echo if then rm", &["c echo if then rm"]),
        ("'if' a", &["c if a"]),
    ]);
}

#[test]
fn substitutions() {
    check(&[
        ("echo $(a)", &["c a", "c echo $(a)"]),
        ("echo \"x $(a \"$(b)\") y\"", &["c b", "c a $(b)", "c echo x $(a \"$(b)\") y"]),
        ("echo `a`", &["c a", "c echo `a`"]),
        ("echo \"`a`\"", &["c a", "c echo `a`"]),
        ("echo `a \\`b\\``", &["c b", "c a `b`", "c echo `a \\`b\\``"]),
        ("echo '$(a)' '`a`'", &["c echo $(a) `a`"]),
        ("echo \\$(a)", &["c echo $", "c a", "u unexpected: `(` after a command"]),
        ("diff <(a) <(b)", &["c a", "c b", "c diff <(a) <(b)"]),
        ("a > >(tee x)", &["c tee x", "c a", "w x"]),
        ("echo $((1 + $(a)))", &["c a", "c echo $((1 + $(a)))", "u arithmetic: 1 + $(a)"]),
        ("echo $((a); (b))", &["c a", "c b", "c echo $((a); (b))"]),
        ("echo ${x:-$(a)}", &["c a", "c echo ${x:-$(a)}"]),
        ("echo \"${x:-`a`}\"", &["c a", "c echo ${x:-`a`}"]),
        ("echo ${x:-'}'}; rm y", &["c echo ${x:-'}'}", "c rm y", "d y"]),
        ("echo ${#x} ${x#y}; a", &["c echo ${#x} ${x#y}", "c a"]),
        ("echo $[ 1 + $(a) ]", &["c a", "c echo $[ 1 + $(a) ]", "u arithmetic:  1 + $(a) "]),
        ("X=$(a) b", &["c a", "c b"]),
        ("X=$(rm y)", &["c rm y", "d y"]),
        ("X=(a $(b) c); d", &["c b", "c d"]),
        ("echo ${ rm x; }", &["c rm x", "c echo ${ rm x; }", "d x"]),
        ("echo @(a|$(b))", &["c b", "c echo @(a|$(b))"]),
    ]);
}

#[test]
fn quoting_does_not_hide_a_command() {
    check(&[
        ("r''m x", &["c rm x", "d x"]),
        ("r\\m x", &["c rm x", "d x"]),
        ("\"r\"m 'x y'", &["c rm x y", "d x y"]),
        ("$'\\x72m' x", &["c rm x", "d x"]),
        ("$'\\162\\155' x", &["c rm x", "d x"]),
        ("$\"rm\" x", &["c rm x", "d x"]),
        ("\\rm x", &["c rm x", "d x"]),
        ("/bin/rm x", &["c /bin/rm x", "c rm x", "d x"]),
        ("{rm,-rf,x}", &["c rm -rf x", "d x"]),
        ("rm {a,b}{1,2}", &["c rm a1 a2 b1 b2", "d a1", "d a2", "d b1", "d b2"]),
        ("{,rm} x", &["c rm x", "d x"]),
        ("rm '{a,b}'", &["c rm {a,b}", "d {a,b}"]),
        ("{r..r}m x", &["c {r..r}m x", "u command from expansion: {r..r}m"]),
        ("$CMD x", &["c $CMD x", "u command from expansion: $CMD"]),
        ("\"$(x)\" y", &["c x", "c $(x) y", "u command from expansion: $(x)"]),
        ("cat${IFS}x", &["c cat${IFS}x", "u command from expansion: cat${IFS}x"]),
        ("/bin/r? x", &["c /bin/r? x", "u command from glob: /bin/r?"]),
        ("a=rm; $a x", &["c $a x", "u command from expansion: $a"]),
        ("\"a\\\"; rm x\"", &["c a\"; rm x"]),
        ("echo 'a'\\''b'; rm x", &["c echo a'b", "c rm x", "d x"]),
        (
            "echo $'\\'; rm x; echo '",
            &["c echo '; rm x; echo ", "u quoting that shells read differently: \\'; rm x; echo "],
        ),
        (
            "echo \"${x:-'}\"; rm y; echo \"'}\"",
            &[
                "c echo ${x:-'}",
                "c rm y",
                "c echo '}",
                "d y",
                "u quoting that shells read differently: '}\"; rm y; echo \"",
            ],
        ),
        (
            "echo $[ 1 #]; rm x",
            &["c echo $[ 1 #]", "c rm x", "d x", "u quoting that shells read differently: $[ 1 #"],
        ),
    ]);
}

#[test]
fn redirections() {
    check(&[
        ("a > out", &["c a", "w out"]),
        ("a>out", &["c a", "w out"]),
        (">out a", &["c a", "w out"]),
        ("a >> x >| y 2> z", &["c a", "w x", "w y", "w z"]),
        ("a &> x; b &>> y", &["c a", "c b", "w x", "w y"]),
        ("a &> x rm y", &["c a rm y", "c rm y", "c a", "c rm y", "w x", "d y"]),
        ("a >& x", &["c a", "w x"]),
        ("a 2>&1 >&2 2>&- <&3", &["c a"]),
        ("a {fd}>x", &["c a", "w x"]),
        ("a < x", &["c a", "r x"]),
        ("a <> x", &["c a", "w x", "r x"]),
        ("a > /dev/null 2>/dev/stderr", &["c a"]),
        ("> x", &["w x"]),
        ("a > \"x y\"z", &["c a", "w x yz"]),
        ("a > $OUT", &["c a", "w $OUT", "u write to expansion: $OUT"]),
        ("a > \"$(b)\"", &["c b", "c a", "w $(b)", "u write to expansion: $(b)"]),
        ("a > {x,y}", &["c a", "w x", "w y", "w {x,y}"]),
        ("a > ~/x", &["c a", "w ~/x"]),
        ("a > x*", &["c a", "w x*", "u write to glob: x*"]),
        ("echo 2 > x", &["c echo 2", "w x"]),
        ("echo a2>x", &["c echo a2", "w x"]),
        ("{ a; } > x", &["c a", "w x"]),
        ("(a) 2> x", &["c a", "w x"]),
        ("echo x > /dev/tcp/host/80", &["c echo x", "w /dev/tcp/host/80"]),
        ("$(< x)", &["c $(< x)", "r x", "u command from expansion: $(< x)"]),
        ("a >", &["c a", "u unbalanced: `>` without a target"]),
    ]);
}

#[test]
fn here_documents() {
    check(&[
        (
            "((cat <<'E'\nrm x\nE\n); b)",
            &["c cat", "c b", "u quoting that shells read differently: <<'E'\nrm x\nE\n); b)"],
        ),
        (
            "cat <<E | ((b\nrm x\nE\n); c)",
            &[
                "c cat",
                "c b",
                "c c",
                "u quoting that shells read differently: ((b\nrm x\nE\n); c)",
                "u code from input: b",
            ],
        ),
        ("cat <<EOF\nrm x\nEOF\nls", &["c cat", "c ls"]),
        ("cat <<EOF\n$(rm x)\nEOF", &["c cat", "c rm x", "d x"]),
        ("cat <<'EOF'\n$(rm x)\nEOF", &["c cat"]),
        ("cat <<\\EOF\n`rm x`\nEOF", &["c cat"]),
        ("cat <<-EOF\n\tx\n\tEOF\nrm y", &["c cat", "c rm y", "d y"]),
        ("cat <<A <<B\na\nA\nb\nB\nc", &["c cat", "c c"]),
        ("cat <<EOF && rm x\nbody\nEOF", &["c cat", "c rm x", "d x"]),
        ("cat <<EOF > out\nbody\nEOF", &["c cat", "w out"]),
        ("cat <<EOF\nEO\\\nF\nrm x", &["c cat", "c rm x", "d x"]),
        ("cat <<EOF\nx", &["c cat", "u unbalanced: here-document `EOF` is not closed"]),
        ("cat <<EOF", &["c cat", "u unbalanced: here-document `EOF` has no body"]),
        ("bash <<EOF\nrm x\nEOF", &["c bash", "c rm x", "d x"]),
        ("sudo sh -s <<'EOF'\nrm x\nEOF", &["c sudo sh -s", "c sh -s", "c rm x", "d x"]),
        (
            "sh <<EOF\n$X\nEOF",
            &["c sh", "c $X", "u code from expansion: $X\n", "u command from expansion: $X"],
        ),
        ("python3 <<EOF\nx\nEOF", &["c python3", "u code: python"]),
        ("cat <<< \"$(rm x)\"", &["c rm x", "c cat", "d x"]),
        ("bash <<< 'rm x'", &["c bash", "c rm x", "d x"]),
        ("{ sh; } <<EOF\nrm x\nEOF", &["c sh", "u script from pipe: sh"]),
        ("x=$(cat <<EOF\nbody\nEOF\n); rm y", &["c cat", "c rm y", "d y"]),
    ]);
}

#[test]
fn wrappers() {
    check(&[
        ("sudo rm x", &["c sudo rm x", "c rm x", "d x"]),
        ("sudo -u root -n -- rm x", &["c sudo -u root -n -- rm x", "c rm x", "d x"]),
        ("sudo --user root A=b rm x", &["c sudo --user root A=b rm x", "c rm x", "d x"]),
        ("sudo -Z rm x", &["c sudo -Z rm x", "c rm x", "d x", "u unknown option: sudo -Z"]),
        ("doas -u root rm x", &["c doas -u root rm x", "c rm x", "d x"]),
        ("env -i -u X A=b rm x", &["c env -i -u X A=b rm x", "c rm x", "d x"]),
        ("env -C /d rm x", &["c env -C /d rm x", "c rm x", "d /d/x"]),
        ("env -S 'A=b rm \"x y\"'", &["c env -S A=b rm \"x y\"", "c rm x y", "d x y"]),
        ("env - rm x", &["c env - rm x", "c rm x", "d x"]),
        (
            "nohup nice -n 5 ionice -c2 rm x",
            &[
                "c nohup nice -n 5 ionice -c2 rm x",
                "c nice -n 5 ionice -c2 rm x",
                "c ionice -c2 rm x",
                "c rm x",
                "d x",
            ],
        ),
        ("time rm x", &["c time rm x", "c rm x", "d x"]),
        ("timeout -k 5 10s rm x", &["c timeout -k 5 10s rm x", "c rm x", "d x"]),
        ("stdbuf -oL rm x", &["c stdbuf -oL rm x", "c rm x", "d x"]),
        ("exec -a n rm x", &["c exec -a n rm x", "c rm x", "d x"]),
        ("command -p rm x", &["c command -p rm x", "c rm x", "d x"]),
        ("command -v rm", &["c command -v rm"]),
        ("ls | xargs -0 -n1 rm", &["c ls", "c xargs -0 -n1 rm", "c rm", "u operands from input: rm"]),
        (
            "xargs -I{} sh -c 'rm {}'",
            &[
                "c xargs -I{} sh -c rm {}",
                "c sh -c rm {}",
                "c rm {}",
                "d {}",
                "u operands from input: sh",
                "u code from input: rm {}",
            ],
        ),
        ("watch -n 1 'rm x; ls'", &["c watch -n 1 rm x; ls", "c rm x", "c ls", "d x"]),
        ("unshare -r rm x", &["c unshare -r rm x", "c rm x", "d x"]),
        ("chroot /m rm x", &["c chroot /m rm x", "c rm x", "d x", "u files under another root: chroot"]),
        ("strace -o log -f rm x", &["c strace -o log -f rm x", "c rm x", "w log", "d x"]),
        ("busybox rm x", &["c busybox rm x", "c rm x", "d x"]),
        ("setsid -f rm x", &["c setsid -f rm x", "c rm x", "d x"]),
        ("/usr/bin/env rm x", &["c /usr/bin/env rm x", "c env rm x", "c rm x", "d x"]),
        ("flock l -c 'rm x'", &["c flock l -c rm x", "c rm x", "d x"]),
    ]);
}

#[test]
fn code_strings() {
    check(&[
        ("sh -c 'rm x'", &["c sh -c rm x", "c rm x", "d x"]),
        ("bash -lc 'rm x; ls'", &["c bash -lc rm x; ls", "c rm x", "c ls", "d x"]),
        ("bash -eo pipefail -c 'rm x'", &["c bash -eo pipefail -c rm x", "c rm x", "d x"]),
        ("bash -c -- 'rm x'", &["c bash -c -- rm x", "c rm x", "d x"]),
        ("zsh -c \"sh -c 'rm x'\"", &["c zsh -c sh -c 'rm x'", "c sh -c rm x", "c rm x", "d x"]),
        (
            "bash -c \"$X\"",
            &["c bash -c $X", "c $X", "u code from expansion: $X", "u command from expansion: $X"],
        ),
        ("sh -c \"ls $D\"", &["c sh -c ls $D", "c ls $D", "r $D", "u code from expansion: ls $D"]),
        ("sh -c 'ls $D'", &["c sh -c ls $D", "c ls $D", "r $D"]),
        ("eval rm x", &["c eval rm x", "c rm x", "d x"]),
        ("eval 'rm' '-rf; ls' x", &["c eval rm -rf; ls x", "c rm -rf", "c ls x", "r x"]),
        ("eval \"r\"'m x'", &["c eval rm x", "c rm x", "d x"]),
        ("su -c 'rm x' root", &["c su -c rm x root", "c rm x", "d x"]),
        ("su root -c 'rm x'", &["c su root -c rm x", "c rm x", "d x"]),
        ("ssh -p 22 u@h rm x", &["c ssh -p 22 u@h rm x", "c rm x", "d x"]),
        ("ssh h 'rm x; ls'", &["c ssh h rm x; ls", "c rm x", "c ls", "d x"]),
        ("ssh -o ProxyCommand='rm x' h", &["c ssh -o ProxyCommand=rm x h", "c rm x", "d x"]),
        ("trap 'rm x' EXIT", &["c trap rm x EXIT", "c rm x", "d x"]),
        ("python -c 'x'", &["c python -c x", "u code: python"]),
        ("python3.11 -Ic 'x'", &["c python3.11 -Ic x", "u code: python"]),
        ("perl -e 'x'", &["c perl -e x", "u code: perl"]),
        ("node -e 'x'", &["c node -e x", "u code: node"]),
        ("ruby -e x; php -r y", &["c ruby -e x", "c php -r y", "u code: ruby", "u code: php"]),
        ("awk 'BEGIN{system(\"rm x\")}'", &["c awk BEGIN{system(\"rm x\")}", "c rm x", "d x", "u code: awk"]),
        ("awk '{print $1}' f", &["c awk {print $1} f", "r f"]),
        ("sed '1e rm x' f", &["c sed 1e rm x f", "c rm x", "r f", "d x", "u code: sed"]),
        ("find /a -name x -exec rm {} \\;", &["c find /a -name x -exec rm {} ;", "c rm {}", "r /a", "d /a"]),
        ("find a b -delete", &["c find a b -delete", "r a", "r b", "d a", "d b"]),
        (
            "find . -execdir sh -c 'ls' \\; -exec rm {} +",
            &["c find . -execdir sh -c ls ; -exec rm {} +", "c sh -c ls", "c ls", "c rm {}", "r .", "d ."],
        ),
        (
            "git -c alias.x='!rm y' x",
            &["c git -c alias.x=!rm y x", "c rm y", "c git x", "d y", "u code: git"],
        ),
        ("alias ls='rm x'", &["c alias ls=rm x", "c rm x", "d x", "u alias: ls"]),
    ]);
}

#[test]
fn scripts_from_pipes() {
    check(&[
        ("curl -s u | sh", &["c curl -s u", "c sh", "u script from pipe: sh"]),
        ("base64 -d f | bash", &["c base64 -d f", "c bash", "r f", "u script from pipe: bash"]),
        (
            "a | sudo bash -s -- x",
            &["c a", "c sudo bash -s -- x", "c bash -s -- x", "u script from pipe: bash"],
        ),
        ("a | # note\n sh", &["c a", "c sh", "u script from pipe: sh"]),
        ("a | { b; sh; }", &["c a", "c b", "c sh", "u script from pipe: sh"]),
        ("a | while b; do sh; done", &["c a", "c b", "c sh", "u script from pipe: sh"]),
        ("a | sh -c 'sh'", &["c a", "c sh -c sh", "c sh", "u script from pipe: sh"]),
        ("a | tee >(sh)", &["c a", "c sh", "c tee >(sh)", "u script from pipe: sh"]),
        ("sh <(a)", &["c a", "c sh <(a)", "u script from pipe: sh"]),
        ("sh < <(a)", &["c a", "c sh", "u script from pipe: sh"]),
        ("sh < f", &["c sh", "r f", "u script from file: f"]),
        ("a | python3 -", &["c a", "c python3 -", "u script from pipe: python"]),
        ("a | python3 -m json.tool", &["c a", "c python3 -m json.tool"]),
        ("a | source /dev/stdin", &["c a", "c source /dev/stdin", "u script from pipe: source"]),
        ("a; sh", &["c a", "c sh"]),
        ("a || sh", &["c a", "c sh"]),
        ("sh x.sh", &["c sh x.sh", "r x.sh"]),
    ]);
}

#[test]
fn files_of_programs() {
    check(&[
        ("a | tee -a x y", &["c a", "c tee -a x y", "w x", "w y"]),
        ("dd if=a of=b bs=1", &["c dd if=a of=b bs=1", "w b", "r a"]),
        ("cp -r a b", &["c cp -r a b", "w b", "r a"]),
        ("cp a b d/", &["c cp a b d/", "w d/", "w d/a", "w d/b", "r a", "r b"]),
        ("cp -t d a", &["c cp -t d a", "w d", "w d/a", "r a"]),
        ("mv a b", &["c mv a b", "w b", "d a"]),
        ("install -m 755 a b", &["c install -m 755 a b", "w b", "r a"]),
        ("ln -s a b", &["c ln -s a b", "w b"]),
        ("sed -i s/a/b/ f g", &["c sed -i s/a/b/ f g", "w f", "w g"]),
        ("sed -i.bak -e s/a/b/ f", &["c sed -i.bak -e s/a/b/ f", "w f"]),
        ("sed -Ei '' s/a/b/ f", &["c sed -Ei  s/a/b/ f", "w f"]),
        ("sed --in-place s/a/b/ f", &["c sed --in-place s/a/b/ f", "w f"]),
        ("perl -pi -e s/a/b/ f", &["c perl -pi -e s/a/b/ f", "w f", "u code: perl"]),
        ("truncate -s 0 f", &["c truncate -s 0 f", "w f"]),
        ("touch f g", &["c touch f g", "w f", "w g"]),
        ("rm -rf -- -x", &["c rm -rf -- -x", "d -x"]),
        ("rm $X", &["c rm $X", "d $X", "u delete of expansion: $X"]),
        ("rm *.o", &["c rm *.o", "d *.o", "u delete of glob: *.o"]),
        ("rmdir a; unlink b", &["c rmdir a", "c unlink b", "d a", "d b"]),
        ("curl -o f https://h/x", &["c curl -o f https://h/x", "w f"]),
        ("curl -O https://h/x?y", &["c curl -O https://h/x?y", "w x"]),
        ("wget -qO f h", &["c wget -qO f h", "w f"]),
        ("chmod 777 f", &["c chmod 777 f", "w f"]),
        ("sort -o f g", &["c sort -o f g", "w f", "r g"]),
    ]);
}

#[test]
fn directory_changes_move_relative_paths() {
    check(&[
        ("cd /etc && rm x", &["c cd /etc", "c rm x", "d /etc/x"]),
        ("cd /etc && cd y && rm x /z", &["c cd /etc", "c cd y", "c rm x /z", "d /etc/y/x", "d /z"]),
        ("cd /etc; rm x", &["c cd /etc", "c rm x", "d x", "d /etc/x"]),
        ("cd a && b; rm x", &["c cd a", "c b", "c rm x", "w a", "d x", "d a/x"]),
        ("(cd /etc && a); rm x", &["c cd /etc", "c a", "c rm x", "w /etc", "d x"]),
        ("a || cd /etc && rm x", &["c a", "c cd /etc", "c rm x", "d x", "d /etc/x"]),
        ("! cd /etc && rm x", &["c cd /etc", "c rm x", "d x", "d /etc/x"]),
        ("cd /etc && { a; rm x; }", &["c cd /etc", "c a", "c rm x", "w /etc", "d /etc/x"]),
        ("cd $D && a > x", &["c cd $D", "c a", "w $D/x", "w $D", "u write to expansion: $D/x"]),
        ("cd && rm x", &["c cd", "c rm x", "d ~/x"]),
        (
            "sh -c 'cd /etc && a' && rm x",
            &["c sh -c cd /etc && a", "c cd /etc", "c a", "c rm x", "w /etc", "d x"],
        ),
        ("eval 'cd /etc'; rm x", &["c eval cd /etc", "c cd /etc", "c rm x", "d x", "d /etc/x"]),
        (
            "f() { rm x; }; cd /etc && f",
            &[
                "c rm x",
                "c cd /etc",
                "c f",
                "w /etc",
                "d x",
                "u directory unknown: a function and a change of directory",
            ],
        ),
    ]);
}

#[test]
fn broken_input_is_parsed_as_far_as_possible() {
    check(&[
        ("rm x; echo 'a", &["c rm x", "c echo a", "d x", "u unclosed quote: `'` is not closed"]),
        ("rm x; echo \"a", &["c rm x", "c echo a", "d x", "u unclosed quote: `\"` is not closed"]),
        ("echo $(rm x", &["c rm x", "c echo $(rm x", "d x", "u unbalanced: `(` is not closed"]),
        ("(rm x", &["c rm x", "d x", "u unbalanced: `(` is not closed"]),
        ("rm x)", &["c rm x", "d x", "u unbalanced: `)` closes nothing"]),
        ("{ rm x", &["c rm x", "d x", "u unbalanced: `{` is not closed"]),
        ("fi; rm x", &["c rm x", "d x", "u unbalanced: `fi` without `if`"]),
        ("if rm x", &["c rm x", "d x", "u unbalanced: `if` is not closed"]),
        ("echo `rm x", &["c rm x", "c echo `rm x", "d x", "u unbalanced: a backquote is not closed"]),
        ("echo ${x", &["c echo ${x", "u unbalanced: `${` is not closed"]),
        (";; rm x", &["c rm x", "d x", "u unbalanced: `;;` outside of `case`"]),
        ("rm\0x", &["c rm\0x", "u control character: the command contains a NUL byte"]),
    ]);
}

#[test]
fn wrappers_and_assignments_are_kept() {
    let facts = parse("LD_PRELOAD=x sudo -u a env B=c sh -c 'rm y'");
    let last = facts.commands.last().unwrap();
    assert_eq!(last.words, ["rm", "y"]);
    assert_eq!(last.wrappers, ["sudo", "env", "sh"]);
    assert_eq!(facts.commands[0].assignments, ["LD_PRELOAD=x"]);
    assert!(!last.has_expansion);
    assert!(parse("rm $x").commands[0].has_expansion);
}
