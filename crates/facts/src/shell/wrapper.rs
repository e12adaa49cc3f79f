//! The programs that run another program given as their arguments.

use super::arguments::Options;

/// Argument layout of a wrapper.
#[derive(Debug)]
pub(super) struct Wrapper {
    /// The names of the programs.
    pub(super) names: &'static [&'static str],
    /// The options before the operands.
    pub(super) options: Options,
    /// Operands between the options and the inner command.
    pub(super) operands: usize,
    /// Whether `name=value` words come before the inner command.
    pub(super) assignments: bool,
}

/// Finds a wrapper by its name.
pub(super) fn find(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name))
}

const fn wrapper(
    names: &'static [&'static str],
    values: &'static str,
    flags: &'static str,
    long_values: &'static str,
    long_flags: &'static str,
) -> Wrapper {
    Wrapper {
        names,
        options: Options { values, flags, long_values, long_flags },
        operands: 0,
        assignments: false,
    }
}

const fn after_operands(wrapper: &Wrapper, operands: usize) -> Wrapper {
    Wrapper { operands, ..*wrapper }
}

const fn with_assignments(wrapper: &Wrapper) -> Wrapper {
    Wrapper { assignments: true, ..*wrapper }
}

static WRAPPERS: &[Wrapper] = &[
    with_assignments(&wrapper(
        &["env", "genv"],
        "uCSPa",
        "i0v",
        "unset chdir split-string argv0",
        "ignore-environment null debug block-signal default-signal ignore-signal list-signal-handling",
    )),
    with_assignments(&wrapper(
        &["sudo"],
        "CcDgpRrtTUu",
        "AbBEeHiKklNnPSsVv",
        "close-from login-class chdir group host prompt chroot role type command-timeout other-user user",
        "askpass background bell preserve-env edit set-home login remove-timestamp reset-timestamp list \
         no-update non-interactive preserve-groups stdin shell version validate",
    )),
    wrapper(&["doas"], "uCa", "nsL", "", ""),
    wrapper(&["pkexec"], "", "", "user", "disable-internal-agent keep-cwd"),
    after_operands(&wrapper(&["gosu", "su-exec", "setuidgid", "chpst"], "", "", "", ""), 1),
    wrapper(&["nohup", "builtin", "noglob", "nocorrect", "catchsegv", "winpty", "fakeroot"], "", "", "", ""),
    wrapper(&["command"], "", "pvV", "", ""),
    wrapper(&["exec"], "a", "cl", "", ""),
    wrapper(&["nice", "gnice"], "n", "0123456789-", "adjustment", ""),
    wrapper(&["ionice"], "cnpPu", "t", "class classdata pid pgid uid", "ignore"),
    wrapper(&["time", "gtime"], "fo", "apvVql", "format output", "append portability verbose quiet"),
    after_operands(
        &wrapper(
            &["timeout", "gtimeout"],
            "sk",
            "vfp",
            "signal kill-after",
            "preserve-status foreground verbose",
        ),
        1,
    ),
    wrapper(&["stdbuf", "gstdbuf"], "ioe", "", "input output error", ""),
    wrapper(&["setsid"], "", "cfw", "", "ctty fork wait"),
    wrapper(
        &["xargs", "gxargs"],
        "IJRnPLsdEaS",
        "0rtpxoile",
        "replace-str max-args max-procs max-lines max-chars delimiter arg-file process-slot-var",
        "null no-run-if-empty verbose interactive exit open-tty show-limits replace eof",
    ),
    wrapper(
        &["unshare"],
        "SGRwE",
        "muinpUCTfrc",
        "map-user map-group map-users map-groups setuid setgid root wd propagation setgroups monotonic boottime",
        "mount uts ipc net pid user cgroup time fork map-root-user map-current-user map-auto mount-proc \
         kill-child keep-caps",
    ),
    after_operands(&wrapper(&["chroot", "gchroot"], "ugG", "n", "userspec groups", "skip-chdir"), 1),
    wrapper(
        &["strace"],
        "abeEIoOpPsSuUX",
        "cCdDfFhiknqrtTvVwxyYzZ",
        "output attach trace env user detach-on summary-sort-by string-limit columns",
        "follow-forks output-separately summary summary-only",
    ),
    wrapper(&["ltrace"], "aADeFlnopsuwxX", "bcCfhiLrStTV", "output", "demangle indent"),
    after_operands(&wrapper(&["taskset"], "", "ap", "", "all-tasks"), 1),
    after_operands(
        &wrapper(&["chrt"], "TPD", "abfiordRm", "", "batch fifo idle other rr reset-on-fork all-tasks"),
        1,
    ),
    after_operands(
        &wrapper(
            &["flock"],
            "wEc",
            "sxeonuFv",
            "timeout wait conflict-exit-code command",
            "shared exclusive nonblock nb unlock close no-fork verbose",
        ),
        1,
    ),
    wrapper(&["prlimit"], "pco", "", "", "noheadings raw verbose"),
    after_operands(&wrapper(&["setarch"], "", "BFILRSTXZv3", "", "addr-no-randomize"), 1),
    wrapper(&["linux32", "linux64", "i386", "x86_64"], "", "BFILRSTXZv3", "", "addr-no-randomize"),
    wrapper(&["caffeinate"], "tw", "disum", "", ""),
    wrapper(&["busybox", "toybox"], "", "", "", ""),
    wrapper(&["proxychains", "proxychains4", "torsocks", "torify"], "f", "q", "", ""),
    wrapper(&["nsenter"], "tSG", "amuinpUCTFZ", "target setuid setgid", "all no-fork preserve-credentials"),
    wrapper(
        &["systemd-run"],
        "pEutHM",
        "dGPqrS",
        "unit property setenv description slice uid gid nice working-directory host machine service-type",
        "scope user system remain-after-exit pty pipe quiet collect wait shell same-dir no-block no-ask-password",
    ),
];

#[cfg(test)]
mod tests {
    use super::WRAPPERS;

    #[test]
    fn names_are_unique_and_options_have_one_meaning() {
        let mut names: Vec<&str> = WRAPPERS.iter().flat_map(|wrapper| wrapper.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for wrapper in WRAPPERS {
            for option in wrapper.options.values.chars() {
                assert!(!wrapper.options.flags.contains(option), "{:?} -{option}", wrapper.names);
            }
        }
    }
}
