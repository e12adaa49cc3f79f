//! Programs that read files and print what is in them.

use super::Value::{Code, Config, Flag, Foreign, List, Pattern, Read, Text, Write};
use super::{Program, program};

pub(super) static TABLE: &[Program] = &[
    program(&["cat"], Read).options(&[
        (Flag, "-AbeEnstTuv show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version"),
    ]),
    program(&["tac"], Read)
        .options(&[(Pattern, "-s separator"), (Flag, "-br before regex help version")]),
    program(&["rev", "zcat", "bzcat", "xzcat", "zstdcat", "gzcat", "lz4cat", "vis", "unvis", "colrm", "asa", "zmore", "zless"], Read).lenient(),
    program(&["head", "tail"], Read).options(&[
        (Text, "-ncs lines bytes sleep-interval max-unchanged-stats pid"),
        (Flag, "-qvzfFr0123456789 quiet silent verbose zero-terminated follow? retry help version"),
    ]),
    program(&["less"], Read).options(&[
        (Pattern, "-pPtDbhjxyz pattern prompt tag color buffers max-back-scroll jump-target tabs max-forw-scroll window"),
        (Write, "-oO log-file LOG-FILE"),
        (Config, "-kT lesskey-file lesskey-src lesskey-content tag-file"),
        (
            Flag,
            "-aABcCdeEfFgGiIJKLmMnNqQrRsSuUVwWX+~ RAW-CONTROL-CHARS quit-if-one-screen no-init chop-long-lines help version",
        ),
    ]),
    program(&["more", "most", "pg"], Read)
        .options(&[(Text, "-n lines"), (Flag, "-dlefpcsuhV+0123456789 silent logical exit-on-eof no-pause print-over clean-print squeeze plain help version")]),
    program(&["bat", "batcat"], Read).options(&[
        (Pattern, "-lrHm language theme style line-range highlight-line map-syntax tabs wrap terminal-width file-name diff-context"),
        (Pattern, "color paging decorations italic-text strip-ansi squeeze-limit nonprintable-notation ignored-suffix"),
        (Code, "pager"),
        (Flag, "-pPAnufdLShVs plain? number show-all list-languages list-themes diff force-colorization no-paging help version"),
    ]),
    program(&["nl"], Read).options(&[
        (Pattern, "-bdfhilnsvw body-numbering section-delimiter footer-numbering header-numbering line-increment join-blank-lines"),
        (Pattern, "number-format number-separator starting-line-number number-width"),
        (Flag, "-p no-renumber help version"),
    ]),
    program(&["od"], Read).options(&[
        (Text, "-AjNt -Sw? address-radix skip-bytes read-bytes strings? format width? endian"),
        (Flag, "-abcdfhiloxvs output-duplicates traditional help version"),
    ]),
    program(&["xxd"], Text).first(&[Read, Write], &[]).options(&[
        (Text, "-clsognR cols len seek off groupsize name"),
        (Flag, "-abeECdhiprtuv ps postscript plain revert autoskip bits capitalize decimal include uppercase upper version help"),
    ]).single_dash(),
    program(&["hexdump", "hd"], Read).options(&[
        (Pattern, "-ensL length skip format color?"),
        (List, "-f format-file"),
        (Flag, "-bcCdovxXVh one-byte-octal canonical one-byte-char two-bytes-decimal two-bytes-octal two-bytes-hex no-squeezing help version"),
    ]),
    program(&["strings"], Read).options(&[
        (Text, "-netTsU bytes encoding radix target output-separator unicode"),
        (Flag, "-afowv0123456789 all data print-file-name include-all-whitespace help version"),
    ]),
    program(&["base64", "base32", "basenc"], Read).options(&[
        (Text, "-wb wrap break"),
        (Read, "input"),
        (Write, "output"),
        (Flag, "-diD decode ignore-garbage base64 base64url base32 base32hex base16 base2msbf base2lsbf z85 help version"),
    ]),
    program(&["wc"], Read).options(&[
        (List, "files0-from"),
        (Flag, "-clmLw bytes chars lines max-line-length words total? help version"),
    ]),
    program(&["uniq"], Text).first(&[Read, Write], &[]).options(&[
        (Text, "-fsw skip-fields skip-chars check-chars"),
        (Flag, "-cdDiuz count repeated all-repeated? group? ignore-case unique zero-terminated help version"),
    ]),
    program(&["sort"], Read).options(&[
        (Text, "-ktS key field-separator buffer-size batch-size parallel sort"),
        (Write, "-oT output temporary-directory"),
        (Read, "random-source"),
        (Code, "compress-program"),
        (List, "files0-from"),
        (Flag, "-bcCdfghiMmnRrsuVz ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort"),
        (Flag, "ignore-nonprinting month-sort numeric-sort random-sort reverse version-sort check? debug merge stable unique"),
        (Flag, "zero-terminated help version"),
    ]),
    program(&["shuf"], Read).options(&[
        (Text, "-in input-range head-count"),
        (Write, "-o output"),
        (Read, "random-source"),
        (Flag, "-erz echo repeat zero-terminated help version"),
    ]),
    program(&["cut"], Read).options(&[
        (Pattern, "-bcdf bytes characters delimiter fields output-delimiter"),
        (Flag, "-nsz complement only-delimited zero-terminated help version"),
    ]),
    program(&["paste"], Read)
        .options(&[(Pattern, "-d delimiters"), (Flag, "-sz serial zero-terminated help version")]),
    program(&["join"], Read).options(&[
        (Text, "-aejotv12"),
        (Flag, "-iz ignore-case check-order nocheck-order header zero-terminated help version"),
    ]),
    program(&["comm"], Read)
        .options(&[(Text, "output-delimiter"), (Flag, "-123z check-order nocheck-order total zero-terminated help version")]),
    program(&["column"], Read).lenient(),
    program(&["look"], Text).lenient(),
    program(&["fold"], Read)
        .options(&[(Text, "-w width"), (Flag, "-bsc0123456789 bytes spaces characters help version")]),
    program(&["fmt"], Read).options(&[
        (Text, "-wpg width prefix goal"),
        (Flag, "-cstu0123456789 crown-margin tagged-paragraph split-only uniform-spacing help version"),
    ]),
    program(&["expand", "unexpand"], Read)
        .options(&[(Text, "-t tabs"), (Flag, "-ia0123456789 initial all first-only help version")]),
    program(&["pr"], Read).options(&[
        (Text, "-DhlNoWw date-format header length first-line-number indent page-width width columns pages"),
        (Flag, "-acdeFfiJmnrsStTv0123456789 across show-control-chars double-space form-feed join-lines merge no-file-warnings help version"),
    ]),
    program(&["iconv"], Read).options(&[
        (Text, "-ft from-code to-code"),
        (Write, "-o output"),
        (Flag, "-cls list silent verbose help version usage"),
    ]),
    program(&["dos2unix", "unix2dos"], Write).lenient(),
    program(&["diff3"], Read).options(&[(Text, "-L label"), (Code, "diff-program"), (Flag, "-AeEim3xXaT ed merge text easy-only help version")]),
    program(&["diff", "sdiff", "colordiff"], Read).options(&[
        (Pattern, "-UCLFIxW unified? context? label show-function-line ignore-matching-lines exclude width line-format"),
        (Pattern, "old-line-format new-line-format unchanged-line-format old-group-format new-group-format changed-group-format"),
        (Pattern, "unchanged-group-format tabsize horizon-lines GTYPE-group-format LTYPE-line-format"),
        (Read, "-XS exclude-from starting-file from-file to-file"),
        (Write, "-o output"),
        (Code, "diff-program"),
        (Flag, "-abBcdeEHiklmnNpPqrstTuvwyZzA30123456789 brief report-identical-files normal ed rcs side-by-side left-column"),
        (Flag, "suppress-common-lines show-c-function expand-tabs initial-tab suppress-blank-empty paginate recursive"),
        (Flag, "no-dereference new-file unidirectional-new-file ignore-file-name-case no-ignore-file-name-case ignore-case"),
        (Flag, "ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines text"),
        (Flag, "strip-trailing-cr minimal speed-large-files color? palette? help version"),
    ]),
    program(&["grep", "egrep", "fgrep", "zgrep", "bzgrep", "xzgrep"], Read).first(&[Pattern], &["e", "f", "regexp", "file"]).options(&[
        (Pattern, "-e regexp include exclude exclude-dir label"),
        (Read, "-f file exclude-from"),
        (Text, "-ABCmdD after-context before-context context max-count directories devices binary-files group-separator"),
        (Flag, "-EFGPivywxcLlqosbHhnTUuZzraRI0123456789 extended-regexp fixed-strings basic-regexp perl-regexp ignore-case"),
        (Flag, "no-ignore-case invert-match word-regexp line-regexp count color? colour? files-without-match files-with-matches"),
        (Flag, "quiet silent only-matching no-messages byte-offset with-filename no-filename line-number initial-tab unix-byte-offsets"),
        (Flag, "null null-data text recursive dereference-recursive line-buffered binary no-group-separator help version"),
    ]),
    program(&["rg"], Read).first(&[Pattern], &["e", "f", "regexp", "file", "files", "type-list"]).options(&[
        (Pattern, "-egtTrME regexp glob iglob type type-not type-add type-clear replace max-columns encoding colors sort sortr engine"),
        (Read, "-f file ignore-file"),
        (Code, "pre hostname-bin"),
        (Pattern, "pre-glob context-separator field-context-separator field-match-separator path-separator hyperlink-format generate"),
        (Text, "-ABCmjd after-context before-context context max-count threads max-depth maxdepth max-filesize color dfa-size-limit regex-size-limit"),
        (Flag, "-.aFivsSwxcLlqobHhInNpPUu0z hidden text fixed-strings ignore-case invert-match case-sensitive smart-case word-regexp"),
        (Flag, "line-regexp count count-matches follow files-with-matches files-without-match quiet only-matching byte-offset"),
        (Flag, "with-filename no-filename line-number no-line-number pretty pcre2 multiline multiline-dotall unrestricted null null-data"),
        (Flag, "search-zip no-ignore no-ignore-vcs no-ignore-parent no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global"),
        (Flag, "no-ignore-messages no-messages no-config files type-list json heading no-heading column no-column stats trim vimgrep"),
        (Flag, "passthru passthrough line-buffered block-buffered crlf mmap no-mmap one-file-system debug trace binary no-hidden"),
        (Flag, "auto-hybrid-regex no-unicode no-pcre2-unicode max-columns-preview glob-case-insensitive ignore-file-case-insensitive"),
        (Flag, "include-zero stop-on-nonmatch no-require-git help version pcre2-version"),
    ]),
    program(&["ag", "ack"], Read).first(&[Pattern], &["g", "f"]).options(&[
        (Pattern, "-ABCGgm after before context depth ignore ignore-dir file-search-regex max-count"),
        (Code, "pager"),
        (Flag, "-acDfHilLnoqQrRsStuUvVwzU0 all-types hidden literal nocolor color nogroup group numbers vimgrep stats files-with-matches help version"),
    ]),
    program(&["jq", "gojq", "jaq"], Read).first(&[Pattern], &["f", "from-file"]).options(&[
        (Config, "-fL from-file library-path"),
        (Text, "indent"),
        (super::Value::NamedText, "arg argjson"),
        (super::Value::NamedRead, "rawfile slurpfile argfile"),
        (Flag, "args jsonargs ascii binary"),
        (Flag, "-acCehjMnrRsSV0 ascii-output compact-output color-output exit-status join-output monochrome-output null-input"),
        (Flag, "raw-output raw-output0 raw-input slurp sort-keys stream stream-errors seq tab unbuffered help version"),
    ]),
    program(&["yq"], Read).first(&[Pattern], &["f", "from-file", "expression"]).options(&[
        (Pattern, "-poI input-format output-format indent expression"),
        (Config, "from-file split-exp-file"),
        (Flag, "-CMPeNnrSvVyYsj colors no-colors prettyPrint exit-status no-doc null-input unwrapScalar raw-output help version"),
    ]),
    program(&["awk", "gawk", "mawk", "nawk"], Read).first(&[Foreign], &["f", "file", "e", "source", "i", "include", "E", "exec"]).options(&[
        (Text, "-vF assign field-separator"),
        (Foreign, "-e source"),
        (Config, "-fiElW file include exec load"),
        (Write, "-dpo dump-variables? profile? pretty-print?"),
        (Flag, "-bcgChLMnNOrsStVDIk characters-as-bytes traditional copyright gen-pot help lint? bignum use-lc-numeric non-decimal-data"),
        (Flag, "optimize posix re-interval no-optimize sandbox lint-old version csv"),
    ]),
    program(&["sed"], Read).first(&[Foreign], &["e", "f", "expression", "file"]).options(&[
        (Foreign, "-e expression"),
        (Config, "-f file"),
        (Text, "-l line-length"),
        (Text, "-i? in-place?"),
        (Flag, "-nErsuz quiet silent debug posix regexp-extended separate unbuffered null-data follow-symlinks sandbox help version"),
    ]),
    program(&["vi", "vim", "nvim", "ex", "view", "gvim", "rvim", "vimdiff", "nvimdiff"], Write).reads_code().options(&[
        (Foreign, "-c cmd remote-send remote-expr"),
        (Config, "-uUSt"),
        (Write, "-wWi startuptime log"),
        (Text, "-TL servername"),
        (Flag, "-bdDeEFghHlmMnNoOpqrRsvVxXyZA clean noplugin not-a-term ttyfail literal headless embed help version"),
    ]),
    program(&["ed", "red"], Write).reads_code().options(&[(Text, "-p prompt"), (Flag, "-EGhlrsv help version extended-regexp quiet silent")]),
    program(&["emacs", "emacsclient"], Write).options(&[
        (Foreign, "-f eval execute funcall"),
        (Config, "-l load script"),
        (Flag, "-qQ batch no-init-file quick no-window-system nw help version"),
    ]).single_dash(),
    program(&["bc"], Read).options(&[
        (Text, "-Se expression scale"),
        (Read, "-f file"),
        (Flag, "-hVlqswicPRg help version mathlib quiet warn standard interactive"),
    ]),
    program(&["dc", "m4"], Read).reads_code().options(&[
        (Foreign, "-eD expression define"),
        (Config, "-fF file reload-state"),
        (Flag, "-hVlqswiPEQ help version mathlib quiet warn standard interactive prefix-builtins"),
    ]),
    program(&["pygmentize", "highlight", "glow", "mdcat", "hexyl", "delta", "difft"], Read).lenient(),
    program(&["tsort", "ptx", "envsubst", "strip-ansi", "ansi2txt"], Read).lenient(),
];
