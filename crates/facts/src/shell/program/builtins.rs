//! Commands of the shell itself, and programs whose words are only printed or compared.

use super::Value::{Code, Config, Flag, Pattern, Read, Text, Write};
use super::{Program, program};

pub(super) static TABLE: &[Program] = &[
    program(&["history"], Text)
        .options(&[(Write, "-wa"), (Read, "-rn"), (Text, "-ds"), (Flag, "-cp")])
        .builtin(),
    program(&["fc"], Text).options(&[(Code, "-e"), (Flag, "-lnrs")]).builtin(),
    program(
        &["echo", "printf", "true", "false", ":", "test", "[", "[[", "]]", "expr", "seq", "sleep", "yes"],
        Text,
    )
    .pure(),
    program(
        &["basename", "dirname", "tty", "factor", "numfmt", "return", "exit", "break", "continue", "shift"],
        Text,
    )
    .pure(),
    program(&["pwd", "whoami", "id", "groups", "users", "hostname", "uname", "arch", "nproc"], Text).pure(),
    program(
        &["logname", "tput", "clear", "reset", "printenv", "getconf", "uptime", "free", "cal", "locale"],
        Text,
    )
    .pure(),
    // What these do with names and values is the grammar's business.
    program(
        &[
            "read", "export", "declare", "typeset", "local", "readonly", "set", "unset", "shopt", "let",
            "getopts",
        ],
        Text,
    )
    .builtin(),
    program(&["mapfile", "readarray", "hash", "type", "compgen", "complete", "compopt", "bind"], Text)
        .builtin(),
    program(
        &[
            "alias", "unalias", "trap", "eval", "cd", "pushd", "popd", "chdir", "dirs", "wait", "jobs", "fg",
            "bg",
        ],
        Text,
    )
    .builtin(),
    program(&["source", "."], Text).first(&[Config], &[]).builtin(),
    program(
        &["umask", "ulimit", "times", "caller", "disown", "suspend", "logout", "help", "enable", "setopt"],
        Text,
    )
    .builtin(),
    program(
        &["unsetopt", "emulate", "autoload", "zmodload", "kill", "killall", "pkill", "pgrep", "pidof"],
        Text,
    )
    .builtin(),
    program(&["which", "whereis", "whatis", "apropos", "sync", "stty", "who", "w", "dmesg", "lsmod"], Text)
        .lenient(),
    program(
        &["ps", "top", "htop", "lscpu", "lsblk", "lsusb", "lspci", "lsmem", "vmstat", "iostat", "pstree"],
        Text,
    )
    .lenient(),
    program(&["tr"], Pattern)
        .options(&[(Flag, "-cCdst complement delete squeeze-repeats truncate-set1 help version")]),
];
