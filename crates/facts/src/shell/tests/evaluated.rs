//! Text that bash evaluates a second time: as code, as arithmetic, or as the name of a variable.

use super::super::parse;

fn runs(line: &str, command: &str) -> bool {
    parse(line).commands.iter().any(|found| found.text == command)
}

fn is_noted(line: &str) -> bool {
    !parse(line).unknown.is_empty()
}

#[test]
fn commands_in_evaluated_text_are_found_and_noted() {
    let lines = [
        "[[ -v 'a[$(rm x)]' ]]",
        "[[ ! -R \"a[\\$(rm x)]\" || b ]]",
        "[[ 'a[$(rm x)]' -eq 0 ]]",
        "[[ 0 -lt 'a[`rm x`]' ]]",
        "test -v 'a[$(rm x)]'",
        "[ -v 'a[$(rm x)]' ]",
        "let 'a[$(rm x)]'",
        "(( a[\\$(rm x)] ))",
        "echo $(( a['$(rm x)'] ))",
        "echo $[ a['$(rm x)'] ]",
        "for ((i = a['$(rm x)']; i; i--)); do :; done",
        "declare -i 'x=a[$(rm x)]'",
        "typeset -ai x='a[$(rm x)]'",
        "declare 'a[$(rm x)]=1'",
        "declare -n r='a[$(rm x)]'",
        "declare -a 'x=($(rm x))'",
        "printf -v 'a[$(rm x)]' y",
        "printf '-va[$(rm x)]' y",
        "read 'a[$(rm x)]' <<< 1",
        "read -ra 'a[$(rm x)]' <<< 1",
        "mapfile -C 'rm x' -c 1 a",
        "readarray 'a[$(rm x)]'",
        "unset 'a[$(rm x)]'",
        "getopts x 'a[$(rm x)]'",
        "wait -p 'a[$(rm x)]' -n",
        "echo ${x:'a[$(rm x)]'}",
        "echo \"${x:1:'a[$(rm x)]'}\"",
        "echo ${a['$(rm x)']}",
        "echo ${#a['b[$(rm x)]']}",
        "a['$(rm x)']=1",
        "a=(['$(rm x)']=1)",
        "a[ $(rm x) # ]=1",
        "BASH_ENV='$(rm x)' bash -c :",
        "hash -p rm y",
        "echo a >&'$(rm x)'",
        "exec {a['$(rm x)']}>f",
    ];
    for line in lines {
        let command = if line.starts_with("hash") { "rm" } else { "rm x" };
        assert!(runs(line, command), "{line}\n{:#?}", parse(line));
        assert!(is_noted(line), "{line}\n{:#?}", parse(line));
    }
    for line in [
        "compgen -C 'rm x' y",
        "compgen -F rm y",
        "jobs -x rm x",
        "time !(rm x)",
        "time -p !(rm x)",
        "trap -- 'rm x' EXIT",
        "PS4='$(rm x)'; set -x; :",
        "export PS4='`rm x`'",
        "for PS4 in '$(rm x)'; do :; done",
        "PROMPT_COMMAND='rm x'",
        "compgen -W '$(rm x)' y",
    ] {
        assert!(
            parse(line).commands.iter().any(|command| command.words.first().is_some_and(|word| word == "rm")),
            "{line}"
        );
    }
}

#[test]
fn values_that_are_evaluated_again_are_noted() {
    for line in [
        "((x))",
        "echo $((x + 1))",
        "echo $(( $x ))",
        "echo $(( $(a) ))",
        "[[ $x -eq 0 ]]",
        "let $x",
        "echo ${!x}",
        "echo ${x@P}",
        "echo ${a[x]}",
        "echo ${a[$x]}",
        "echo ${x:y}",
        "read \"$x\"",
        "unset $x",
        "[[ -v $x ]]",
        "export $x",
        "declare -i x; x=$y",
        "declare -n x=y; y=1; ((y))",
        "x=0; ((x)); read x",
        "x='-v a[$(b)]'; [ $x ]",
        "RANDOM='a[$(b)]'",
        "BASH_ALIASES[x]=b",
        "set -o history",
        "set -ek; command A=1 b",
        "enable -f x y",
    ] {
        assert!(is_noted(line), "{line}");
    }
}

#[test]
fn values_that_are_numbers_are_not_noted() {
    for line in [
        "i=0; while [ \"$i\" -lt 3 ]; do i=$((i + 1)); done",
        "for ((i = 0; i < 3; i++)); do echo ${a[i]} ${a[$i]}; done",
        "for i in 1 2 3; do ((i > 1)) && echo $((i * 2)); done",
        "for i in {1..9}; do let i+=1; done",
        "n=${#x}; echo $((n - 1)) $(( ${#x} + $# ))",
        "[[ $# -eq 0 || $? -ne 1 ]]",
        "echo ${x:0:3} ${x: -1} ${x:-a} ${a[@]} ${a[0]} ${!a[@]} ${!a*}",
        "declare -A m; m[key]=1; echo ${m[key]} ${m[\"key\"]}",
        "declare -i n=3; ((n++))",
        "[ \"$x\" = y ] && test -n \"$z\"",
    ] {
        assert!(!is_noted(line), "{line}\n{:?}", parse(line).unknown);
    }
}

#[test]
fn variables_that_are_set_are_facts() {
    let facts =
        parse("A=1 b; C=$(d); export E=f; declare -x G='h i'; readonly J=k; for l in m; do :; done; read n");
    assert_eq!(facts.assignments, ["A=1", "C=", "E=f", "G=h i", "J=k", "l=m", "n="]);
    assert_eq!(parse("a > $f; b > c*; d > e").expansions, ["$f", "c*"]);
}
