//! System administration, databases and processes.

use super::Value::{Code, Config, Directory, Flag, Foreign, Pattern, Read, Text, Write};
use super::{Program, program};

pub(super) static TABLE: &[Program] = &[
    program(&["date"], Text).options(&[
        (Pattern, "-dsv date set"),
        (Read, "-rf file reference"),
        (Flag, "-IRunj iso-8601? rfc-2822 rfc-email rfc-3339? utc universal debug resolution help version"),
    ]),
    program(&["sqlite3", "sqlite"], Foreign).first(&[Write], &[]).reads_code().single_dash().options(&[
        (Foreign, "cmd"),
        (Config, "init"),
        (Text, "separator nullvalue newline mmap maxsize lookaside pagecache vfs"),
        (Flag, "-h"),
        (Flag, "header noheader csv json line list column html tabs table box markdown quote ascii bail batch echo readonly safe stats"),
        (Flag, "version help interactive append deserialize memtrace nofollow unsafe-testing A"),
    ]),
    program(&["find", "bfs"], Text).lenient(),
    program(&["fd", "fdfind"], Read).first(&[Pattern], &[]).options(&[
        (Pattern, "-etEdSojc extension type exclude max-depth min-depth exact-depth size changed-within changed-before owner threads"),
        (Pattern, "color and format path-separator max-results batch-size strip-cwd-prefix? gen-completions? hyperlink?"),
        (Directory, "-C base-directory"),
        (Read, "search-path ignore-file"),
        (Flag, "-HIuUsigFaLp01lqhVxX exec exec-batch hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings"),
        (Flag, "absolute-path list-details follow full-path print0 prune one-file-system quiet show-errors help version no-require-git"),
    ]),
    program(&["parallel"], Text).stops().lenient().opaque(),
    program(&["watch"], Text).stops().options(&[
        (Text, "-nqs interval equexit"),
        (Write, "shotsdir"),
        (Flag, "-bcCdegprtwxvfh beep color no-color differences? errexit chgexit precise no-rerun no-title no-wrap exec follow help version"),
    ]),
    program(&["script"], Write).options(&[
        (Code, "-c command"),
        (Write, "-BIOTt? log-out log-in log-io log-timing timing?"),
        (Text, "-moE output-limit logging-format echo"),
        (Flag, "-aefqhVk append return flush force quiet help version"),
    ]),
    program(&["entr"], Text).lenient().opaque(),
    program(&["su", "runuser", "sg"], Text).lenient(),
    program(&["at", "batch"], Text).reads_code().options(&[(Config, "-f"), (Text, "-qt"), (Flag, "-mMlbrdvVc")]),
    program(&["crontab"], Config).options(&[(Text, "-u"), (Flag, "-lrieVns")]),
    program(&["patch"], Write).options(&[
        (Directory, "-d directory"),
        (Write, "-orB output reject-file prefix"),
        (Read, "-i input"),
        (Text, "-DFgpVYz ifdef fuzz get strip version-control basename-prefix suffix quoting-style read-only reject-format"),
        (Flag, "-bcEeflNnRstTuvZ backup context remove-empty-files ed force forward normal reverse silent quiet batch unified dry-run"),
        (Flag, "verbose binary posix merge? no-backup-if-mismatch backup-if-mismatch help version ignore-whitespace follow-symlinks set-time set-utc"),
    ]),
    program(&["gdb", "lldb"], Read).reads_code().single_dash().options(&[
        (Foreign, "ex eval-command iex init-eval-command"),
        (Config, "-x command init-command ix source source-directory"),
        (Foreign, "-o one-line one-line-before-file"),
        (Text, "p pid tty b l interpreter"),
        (Flag, "batch batch-silent nx nh n q quiet silent args nw tui readnow help version return-child-result"),
    ]),
    program(&["mount", "umount", "losetup", "mkfs", "fdisk", "parted", "swapon", "blkid"], Write).opaque().lenient(),
    program(&["journalctl", "last", "lastlog"], Text).lenient(),
    program(&["tmux", "screen", "dtach", "expect-run", "cron", "systemctl", "service", "launchctl", "supervisorctl"], Text)
        .opaque().lenient(),
    program(&["man", "info", "tldr"], Read).options(&[
        (Code, "-PHp pager html? preprocessor"),
        (Config, "-C config-file"),
        (Read, "-M manpath"),
        (Text, "-LmsSeERr locale systems sections extension encoding recode prompt"),
        (Flag, "-adDfhiIklKtTwWuVXZ7c all apropos whatis local-file where path where-cat match-case ignore-case regex wildcard no-pager? help version"),
    ]),
];
