//! Programs that read, write, move and delete files as a whole.

use super::Value::{Delete, Flag, List, Pattern, Read, Text, Write};
use super::{Program, program};

const COPY: &[(super::Value, &str)] = &[
    (Write, "-t target-directory"),
    (Text, "-S suffix"),
    (
        Flag,
        "-abdfiHlLnPpRrsTuvxZ archive attributes-only backup? copy-contents force interactive link dereference no-dereference",
    ),
    (
        Flag,
        "no-clobber preserve? no-preserve? parents recursive reflink? remove-destination sparse? strip-trailing-slashes",
    ),
    (
        Flag,
        "symbolic-link no-target-directory update? verbose one-file-system context? debug keep-directory-symlink exchange help version",
    ),
];

pub(super) static TABLE: &[Program] = &[
    program(&["cp", "mv"], Read).options(COPY),
    program(&["ln"], Text).options(&[
        (Write, "-t target-directory"),
        (Text, "-S suffix"),
        (Flag, "-bdfFiLnPrsTv backup? directory force interactive logical no-dereference physical relative symbolic"),
        (Flag, "no-target-directory verbose help version"),
    ]),
    program(&["install"], Read).options(&[
        (Write, "-t target-directory"),
        (Text, "-Sgmo suffix group mode owner"),
        (Text, "strip-program"),
        (Flag, "-bcCdDpsTvZ backup? compare directory preserve-timestamps strip no-target-directory verbose preserve-context help version"),
    ]),
    program(&["tee"], Write)
        .options(&[(Flag, "-aip append ignore-interrupts output-error? help version")]),
    program(&["sponge"], Write).options(&[(Flag, "-ah")]),
    program(&["truncate"], Write)
        .options(&[(Text, "-s size"), (Read, "-r reference"), (Flag, "-co no-create io-blocks help version")]),
    program(&["fallocate"], Write).options(&[
        (Text, "-lo length offset"),
        (Flag, "-cdinpvxzw collapse-range dig-holes insert-range keep-size punch-hole verbose posix zero-range help version"),
    ]),
    program(&["touch"], Write).options(&[
        (Text, "-dt date time"),
        (Read, "-r reference"),
        (Flag, "-acfhm no-create no-dereference help version"),
    ]),
    program(&["mkdir"], Write).options(&[(Text, "-m mode"), (Flag, "-pvZ parents verbose context? help version")]),
    program(&["mkfifo"], Write).options(&[(Text, "-m mode"), (Flag, "-Z context? help version")]),
    program(&["mknod"], Text).first(&[Write], &[]).options(&[(Text, "-m mode"), (Flag, "-Z context? help version")]),
    program(&["mktemp"], Write).options(&[
        (Write, "-p tmpdir?"),
        (Text, "suffix"),
        (Flag, "-dqut directory quiet dry-run help version"),
    ]),
    program(&["chmod"], Write).first(&[Pattern], &["reference", "r", "w", "x", "X", "s", "t", "u", "g", "o", "a"]).options(&[
        (Read, "reference"),
        (Flag, "-cfvRrwxXstugoaHLP changes silent quiet verbose no-preserve-root preserve-root recursive help version"),
    ]),
    program(&["chown", "chgrp"], Write).first(&[Text], &["reference"]).options(&[
        (Read, "reference"),
        (Text, "from"),
        (Flag, "-cfvhRHLP changes silent quiet verbose dereference no-dereference no-preserve-root preserve-root recursive help version"),
    ]),
    program(&["chattr", "setfacl", "setfattr", "chcon", "setcap"], Write).lenient(),
    program(&["rm"], Delete).options(&[
        (Flag, "-fiIrRdv force interactive? one-file-system no-preserve-root preserve-root? recursive dir verbose help version"),
    ]),
    program(&["rmdir"], Delete)
        .options(&[(Flag, "-pv ignore-fail-on-non-empty parents verbose help version")]),
    program(&["unlink"], Delete).options(&[(Flag, "help version")]),
    program(&["shred"], Delete).options(&[
        (Text, "-ns iterations size"),
        (Read, "random-source"),
        (Flag, "-fuvxz force remove? verbose exact zero help version"),
    ]),
    program(&["srm", "trash", "trash-put", "rimraf", "del-cli"], Delete).lenient(),
    program(&["dd"], Text).options(&[(Flag, "help version")]),
    program(&["sudoedit", "visudo", "nano", "pico", "micro", "joe"], Write).lenient(),
    program(&["ls", "dir", "vdir"], Read).options(&[
        (Text, "-IwT ignore width tabsize hide time-style quoting-style block-size indicator-style"),
        (Flag, "-aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 all almost-all author escape ignore-backups color? directory dired"),
        (Flag, "classify? file-type format? full-time group-directories-first no-group human-readable si dereference"),
        (Flag, "dereference-command-line dereference-command-line-symlink-to-dir hyperlink? inode kibibytes literal numeric-uid-gid"),
        (Flag, "hide-control-chars show-control-chars quote-name reverse recursive size sort? time? zero context help version"),
    ]),
    program(&["exa", "eza", "lsd"], Read).lenient(),
    program(&["tree"], Read).options(&[
        (Text, "-LPIHT filelimit timefmt charset sort gitfile infofile"),
        (Write, "-o"),
        (Flag, "-adflxqNQpugshDFvtcUrniASCXJR dirsfirst prune noreport inodes device si du matchdirs ignore-case metafirst gitignore"),
        (Flag, "info help version nolinks fromfile"),
    ]),
    program(&["stat"], Read)
        .options(&[(Pattern, "-c format printf"), (Flag, "-Lfts file-system dereference terse cached? help version")]),
    program(&["file"], Read).options(&[
        (Pattern, "-FeP separator exclude parameter"),
        (Read, "-m magic-file"),
        (List, "-f files-from"),
        (Flag, "-bcdEhikLlnNprsSvzZ0 brief mime mime-type mime-encoding dereference no-dereference keep-going raw"),
        (Flag, "special-files uncompress print0 extension apple help version"),
    ]),
    program(&["readlink", "realpath"], Read).options(&[
        (Read, "relative-to relative-base"),
        (Flag, "-femnqsvzLP canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent strip no-symlinks verbose zero"),
        (Flag, "logical physical help version"),
    ]),
    program(&["namei", "pathchk", "lsattr", "getfacl", "getfattr", "getcap", "lsof", "fuser", "mountpoint"], Read).lenient(),
    program(&["du"], Read).options(&[
        (Text, "-BdtX block-size max-depth threshold time-style exclude"),
        (List, "files0-from exclude-from"),
        (Flag, "-0abcDhHklLmPsSx null all apparent-size bytes total dereference-args human-readable inodes dereference count-links"),
        (Flag, "no-dereference separate-dirs si summarize one-file-system time? help version"),
    ]),
    program(&["df"], Read).options(&[
        (Text, "-Btx block-size type exclude-type"),
        (Flag, "-ahHiklmPTv all total human-readable si inodes local no-sync portability sync print-type output? help version"),
    ]),
    program(&["split"], Text).first(&[Read, Write], &[]).options(&[
        (Text, "-abClnt suffix-length bytes line-bytes lines number separator additional-suffix"),
        (super::Value::Code, "filter"),
        (Flag, "-deuxv numeric-suffixes? hex-suffixes? elide-empty-files unbuffered verbose help version"),
    ]),
    program(&["csplit"], Pattern).first(&[Read], &[]).options(&[
        (Write, "-f prefix"),
        (Text, "-bn suffix-format digits"),
        (Flag, "-kszqm keep-files suppress-matched silent quiet elide-empty-files help version"),
    ]),
    program(&["rename", "prename", "perl-rename"], Write).first(&[Pattern], &[]).options(&[
        (super::Value::Foreign, "-e"),
        (Flag, "-vnfosialEd0 verbose no-act nono force symlink interactive all last no-overwrite help version"),
    ]),
    program(&["link"], Read).last(Write),
    program(&["cmp"], Text).first(&[Read, Read], &[]).options(&[
        (Text, "-in ignore-initial bytes"),
        (Flag, "-bls print-bytes verbose quiet silent help version"),
    ]),
    program(&["md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum", "sum", "shasum"], Read)
        .options(&[
            (Text, "-al algorithm length"),
            (Flag, "-bctwzqsrhUp0 binary check tag text zero ignore-missing quiet status strict warn untagged base64 raw debug help version"),
        ]),
];
