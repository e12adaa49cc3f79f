//! Programs that run the command given by their operands.

use super::Value::{Assign, Code, Directory, Flag, Host, List, Opaque, Read, Text, Write};
use super::{Program, program, wrapper};

pub(super) static TABLE: &[Program] = &[
    wrapper(&["env"], 0).assignments().options(&[
        (Text, "-uSPa unset split-string argv0"),
        (Directory, "-C chdir"),
        (Flag, "-i0v ignore-environment null debug block-signal default-signal ignore-signal list-signal-handling"),
        (Flag, "help version"),
    ]),
    wrapper(&["sudo"], 0).assignments().options(&[
        (Text, "-CcgprtTUu close-from login-class group prompt role type command-timeout other-user user"),
        (Host, "-h host"),
        (Directory, "-DR chdir chroot"),
        (Flag, "-AbBEeHiKklNnPSsVv askpass background bell preserve-env edit set-home login remove-timestamp reset-timestamp list"),
        (Flag, "no-update non-interactive preserve-groups stdin shell version validate help"),
    ]),
    wrapper(&["doas"], 0).options(&[(Text, "-ua"), (Read, "-C"), (Flag, "-nsL")]),
    wrapper(&["pkexec"], 0).options(&[(Text, "user"), (Flag, "disable-internal-agent keep-cwd version help")]),
    wrapper(&["gosu", "su-exec", "setuidgid", "chpst"], 1),
    wrapper(&["nohup", "builtin", "noglob", "nocorrect", "catchsegv", "winpty", "fakeroot"], 0)
        .options(&[(Flag, "help version")]),
    wrapper(&["command"], 0).options(&[(Flag, "-pvV")]),
    wrapper(&["exec"], 0).options(&[(Text, "-a"), (Flag, "-cl")]),
    wrapper(&["nice"], 0).options(&[(Text, "-n adjustment"), (Flag, "-0123456789- help version")]),
    wrapper(&["ionice"], 0)
        .options(&[(Text, "-cnpPu class classdata pid pgid uid"), (Flag, "-tVh ignore help version")]),
    wrapper(&["time"], 0).options(&[
        (Text, "-f format"),
        (Write, "-o output"),
        (Flag, "-apvVql append portability verbose quiet help version"),
    ]),
    wrapper(&["timeout"], 1).options(&[
        (Text, "-sk signal kill-after"),
        (Flag, "-vfp preserve-status foreground verbose help version"),
    ]),
    wrapper(&["stdbuf"], 0).options(&[(Text, "-ioe input output error"), (Flag, "help version")]),
    wrapper(&["setsid"], 0).options(&[(Flag, "-cfwVh ctty fork wait help version")]),
    wrapper(&["setpriv"], 0).options(&[
        (Text, "ambient-caps inh-caps bounding-set ruid euid rgid egid reuid regid groups securebits pdeathsig ptracer"),
        (Text, "selinux-label apparmor-profile landlock-access landlock-rule seccomp-filter"),
        (Flag, "-dhV dump clear-groups keep-groups init-groups list-caps no-new-privs nnp reset-env help version"),
    ]),
    wrapper(&["xargs"], 0).options(&[
        (Text, "-IJRnPLsdES replace? max-args max-procs max-lines? max-chars delimiter process-slot-var eof?"),
        (List, "-a arg-file"),
        (Text, "-iel?"),
        (Flag, "-0rtpxo null no-run-if-empty verbose interactive exit open-tty show-limits help version"),
    ]),
    wrapper(&["unshare"], 0).options(&[
        (Text, "-SG map-user map-group map-users map-groups setuid setgid propagation setgroups monotonic boottime"),
        (Directory, "-Rw root wd"),
        (Text, "load-interp"),
        (Flag, "-muinpUCTfrchV mount? uts? ipc? net? pid? user? cgroup? time? fork map-root-user map-current-user map-auto"),
        (Flag, "mount-proc? mount-binfmt? kill-child? keep-caps help version"),
    ]),
    wrapper(&["chroot"], 1).options(&[(Text, "-ugG userspec groups"), (Flag, "-n skip-chdir help version")]),
    wrapper(&["strace"], 0).options(&[
        (Text, "-abeIOpPsSuUX attach trace user detach-on summary-sort-by string-limit columns"),
        (Assign, "-E env"),
        (Write, "-o output"),
        (Flag, "-cCdDfFhiknqrtTvVwxyYzZ follow-forks output-separately summary summary-only help version"),
    ]),
    wrapper(&["ltrace"], 0).options(&[
        (Text, "-aADelnpsuwxX"),
        (Read, "-F"),
        (Write, "-o output"),
        (Flag, "-bcCfhiLrStTV demangle indent? help version"),
    ]),
    wrapper(&["valgrind"], 0).options(&[
        (Write, "log-file xml-file massif-out-file callgrind-out-file cachegrind-out-file"),
        (Host, "log-socket"),
        (Opaque, "suppressions"),
        (Flag, "-vqhd tool? leak-check? quiet verbose trace-children? error-exitcode? show-leak-kinds? track-origins? num-callers?"),
        (Flag, "track-fds? time-stamp? xml? gen-suppressions? read-var-info? vgdb? help version"),
    ]),
    wrapper(&["taskset"], 1).options(&[(Flag, "-apcVh all-tasks pid cpu-list help version")]),
    wrapper(&["chrt"], 1)
        .options(&[(Text, "-TPD"), (Flag, "-abfiordRmphV batch fifo idle other rr reset-on-fork all-tasks max pid help version")]),
    wrapper(&["flock"], 1).options(&[
        (Text, "-wE timeout wait conflict-exit-code"),
        (Code, "-c command"),
        (Flag, "-sxeonuFvhV shared exclusive nonblock nb unlock close no-fork verbose help version"),
    ]),
    wrapper(&["prlimit"], 0).options(&[
        (Text, "-po pid output"),
        (Text, "-cdefilmnqrstuvxy?"),
        (Flag, "-hV core? data? nice? fsize? sigpending? memlock? rss? nofile? msgqueue? rtprio? stack? cpu? nproc?"),
        (Flag, "as? locks? rttime? noheadings raw verbose help version"),
    ]),
    wrapper(&["setarch"], 1).options(&[(Flag, "-BFILRSTXZv3 addr-no-randomize")]),
    wrapper(&["linux32", "linux64", "i386", "x86_64"], 0).options(&[(Flag, "-BFILRSTXZv3 addr-no-randomize")]),
    wrapper(&["caffeinate"], 0).options(&[(Text, "-tw"), (Flag, "-disum")]),
    wrapper(&["busybox", "toybox"], 0).options(&[(Flag, "list list-full help version"), (Write, "install")]),
    wrapper(&["proxychains", "proxychains4", "torsocks", "torify"], 0)
        .options(&[(Read, "-f"), (Flag, "-qd"), (Text, "-uaP"), (Flag, "-i shell")]),
    wrapper(&["nsenter"], 0).options(&[
        (Text, "-tSG target setuid setgid"),
        (Flag, "-amuinpUCTFZrwW? all mount? uts? ipc? net? pid? user? cgroup? time? root? wd? wdns? no-fork preserve-credentials"),
    ]),
    wrapper(&["systemd-run"], 0).options(&[
        (Text, "-uHM unit description slice uid gid nice host machine service-type on-active on-calendar"),
        (Opaque, "-p property"),
        (Assign, "-E setenv"),
        (Directory, "working-directory"),
        (Flag, "-dGPqrSt scope user system remain-after-exit pty pipe quiet collect wait shell same-dir no-block no-ask-password"),
    ]),
    wrapper(&["systemd-inhibit"], 0)
        .options(&[(Text, "what who why mode"), (Flag, "list no-pager no-legend help version")]),
    wrapper(&["dbus-run-session"], 0).options(&[(Opaque, "config-file dbus-daemon"), (Flag, "help version")]),
    wrapper(&["xvfb-run"], 0)
        .options(&[(Text, "-nspw server-num server-args xauth-protocol wait"), (Write, "-ef error-file auth-file"), (Flag, "-ahl auto-servernum help listen-tcp auto-display")]),
    wrapper(&["ssh-agent"], 0)
        .options(&[(Text, "-tOEP"), (Write, "-a"), (Flag, "-cDdks")]),
    wrapper(&["faketime"], 1).options(&[(Text, "-p exclude-monotonic"), (Flag, "-fm help version")]),
    wrapper(&["chronic", "eatmydata"], 0).options(&[(Flag, "-ev help")]),
    program(&["hyperfine"], Code).options(&[
        (Text, "-wmrMLDPNS warmup min-runs runs max-runs parameter-list parameter-scan style sort time-unit shell command-name"),
        (Code, "-sp setup prepare cleanup conclude"),
        (Write, "export-json export-csv export-markdown export-asciidoc export-orgmode output"),
        (Flag, "-ih ignore-failure show-output help version"),
    ]),
];
