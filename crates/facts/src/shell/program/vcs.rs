//! Git, by subcommand.

use super::Value::{Code, Config, Directory, Flag, Git, Opaque, Pattern, Read, RemoteTarget, Text, Write};
use super::{Program, Value, program};

/// Options of commands that show differences and commits.
const SHOW: &[(Value, &str)] = &[
    (Write, "output"),
    (
        Pattern,
        "-SGUlnO format pretty? grep author committer since until after before max-count skip unified inter-hunk-context",
    ),
    (
        Pattern,
        "diff-filter word-diff-regex date decorate-refs decorate-refs-exclude branches? tags? remotes? glob exclude max-parents",
    ),
    (
        Pattern,
        "min-parents src-prefix dst-prefix line-prefix anchored ws-error-highlight find-object diff-algorithm encoding color-moved-ws",
    ),
    (Pattern, "-L ignore-matching-lines since-as-filter exclude-hidden skip-to rotate-to inter-hunk"),
    (Opaque, "-I"),
    (
        Flag,
        "-abBcCDEFhiMmpqrRstuvVwWxzg0123456789 patch no-patch raw stat? numstat shortstat dirstat? summary name-only name-status color? no-color",
    ),
    (
        Flag,
        "cached staged merge-base oneline graph all reverse follow decorate? no-decorate abbrev? no-abbrev abbrev-commit no-abbrev-commit",
    ),
    (
        Flag,
        "word-diff? color-words? color-moved? no-renames find-renames? find-copies? find-copies-harder check full-index binary minimal",
    ),
    (
        Flag,
        "patience histogram indent-heuristic no-indent-heuristic text no-ext-diff no-textconv ignore-space-at-eol ignore-cr-at-eol",
    ),
    (
        Flag,
        "ignore-space-change ignore-all-space ignore-blank-lines function-context exit-code quiet submodule? ignore-submodules?",
    ),
    (
        Flag,
        "relative? no-relative compact-summary merges no-merges first-parent topo-order date-order author-date-order walk-reflogs",
    ),
    (
        Flag,
        "full-history simplify-merges simplify-by-decoration ancestry-path? show-pulls cherry cherry-pick left-right left-only right-only",
    ),
    (
        Flag,
        "boundary not no-prefix default-prefix no-notes notes? show-notes? pickaxe-all pickaxe-regex regexp-ignore-case extended-regexp",
    ),
    (
        Flag,
        "fixed-strings perl-regexp invert-grep all-match base ours theirs union cc dd combined-all-paths diff-merges? no-diff-merges",
    ),
    (
        Flag,
        "remerge-diff relative-date no-mailmap mailmap use-mailmap source full-diff log-size ita-invisible-in-index expand-tabs? no-expand-tabs",
    ),
    (
        Flag,
        "patch-with-stat patch-with-raw root no-walk? do-walk sparse dense remove-empty bisect stdin parents children count timestamp null help",
    ),
];

/// Options of commands that change the work tree or the history.
const CHANGE: &[(Value, &str)] = &[
    (
        Pattern,
        "-mCctbBX message reuse-message reedit-message fixup squash author date cleanup trailer onto strategy strategy-option orphan",
    ),
    (
        Text,
        "conflict track? format sort contains? no-contains? merged? no-merged? points-at? set-upstream-to column? color? abbrev? mainline",
    ),
    (Read, "-F file pathspec-from-file template"),
    (Code, "-x exec"),
    (
        Flag,
        "-adefghHiklnNOopPqrRsSuUvVwyz0123456789AD all patch amend no-edit edit no-verify verify allow-empty allow-empty-message dry-run",
    ),
    (
        Flag,
        "short branch porcelain? long null verbose quiet signoff no-signoff interactive include only untracked-files? no-status status",
    ),
    (
        Flag,
        "reset-author gpg-sign? no-gpg-sign force ignore-removal no-all update renormalize intent-to-add refresh ignore-errors",
    ),
    (
        Flag,
        "ignore-missing chmod? sparse pathspec-file-nul detach guess no-guess no-track ours theirs merge overlay no-overlay",
    ),
    (
        Flag,
        "ignore-skip-worktree-bits overwrite-ignore no-overwrite-ignore progress no-progress discard-changes create force-create",
    ),
    (
        Flag,
        "staged worktree source? soft mixed hard keep cached delete move copy list show-current unset-upstream edit-description",
    ),
    (
        Flag,
        "remotes create-reflog ignore-case annotate sign local-user? continue abort skip quit ff no-ff ff-only squash-merge commit",
    ),
    (
        Flag,
        "no-commit stat no-stat log? no-log rebase? no-rebase autostash no-autostash autosquash no-autosquash root rebase-merges?",
    ),
    (
        Flag,
        "keep-empty no-keep-empty keep-base fork-point no-fork-point reapply-cherry-picks update-refs no-update-refs edit-todo",
    ),
    (
        Flag,
        "show-current-patch? keep-index no-keep-index include-untracked no-include-untracked index all-tags ahead-behind no-ahead-behind",
    ),
    (
        Flag,
        "ignored? ignore-submodules? renames no-renames find-renames? show-stash recurse-submodules? no-recurse-submodules help",
    ),
    (
        Flag,
        "dissociate d-x directories empty? allow-unrelated-histories rerere-autoupdate no-rerere-autoupdate signed no-signed stdin",
    ),
];

/// Options of commands that talk to other repositories.
const REMOTE: &[(Value, &str)] = &[
    (Code, "upload-pack receive-pack exec"),
    (
        Text,
        "-jobo depth shallow-since shallow-exclude branch origin jobs filter push-option refmap negotiation-tip server-option reference",
    ),
    (
        Text,
        "deepen sort recurse-submodules? signed? force-with-lease? repo strategy strategy-option bundle-uri revision ref-format object-format",
    ),
    (Config, "template config-file"),
    (Git, "-c config"),
    (Write, "separate-git-dir"),
    (
        Flag,
        "-4adfghklmnpqrtvPFN46sSX all append atomic prefetch dry-run write-fetch-head no-write-fetch-head force keep multiple auto-maintenance prune",
    ),
    (
        Flag,
        "no-auto-maintenance auto-gc no-auto-gc prune-tags no-tags tags refetch no-recurse-submodules update-head-ok quiet verbose progress",
    ),
    (
        Flag,
        "ipv4 ipv6 unshallow update-shallow set-upstream mirror delete follow-tags thin no-thin force-if-includes porcelain no-verify verify",
    ),
    (
        Flag,
        "heads branches refs get-url exit-code symref bare no-checkout local no-local hardlinks no-hardlinks shared dissociate sparse",
    ),
    (
        Flag,
        "single-branch no-single-branch shallow-submodules no-shallow-submodules remote-submodules reject-shallow also-filter-submodules",
    ),
    (
        Flag,
        "rebase? no-rebase ff ff-only no-ff autostash no-autostash squash no-squash commit no-commit edit no-edit stat no-stat atomic no-atomic",
    ),
    (Flag, "add push fetch delete all cached init recursive remote merge checkout help"),
];

pub(super) static TABLE: &[Program] = &[
    program(&["git"], Text).subcommands().options(&[
        (Git, "-c config-env"),
        (Directory, "-C"),
        (Write, "git-dir work-tree"),
        (Opaque, "exec-path?"),
        (Text, "namespace super-prefix list-cmds attr-source"),
        (Flag, "-hvpP version help html-path man-path info-path paginate no-pager no-replace-objects no-lazy-fetch no-optional-locks"),
        (Flag, "no-advice bare literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs"),
    ]),
    program(&["git diff", "git log", "git show", "git whatchanged", "git diff-tree", "git diff-index", "git diff-files", "git rev-list", "git range-diff", "git shortlog", "git reflog"], Read)
        .options(SHOW),
    program(&["git blame", "git annotate"], Read).options(&[
        (Pattern, "-LS since date ignore-rev"),
        (Read, "contents ignore-revs-file"),
        (Flag, "-bcCefhklMnpstw0123456789 root show-stats progress score-debug show-name show-number porcelain line-porcelain incremental"),
        (Flag, "minimal color-lines color-by-age abbrev? show-email first-parent reverse"),
    ]),
    program(&["git status", "git add", "git commit", "git checkout", "git switch", "git branch", "git restore", "git reset", "git stash", "git rm", "git mv", "git merge", "git rebase", "git cherry-pick", "git revert", "git tag", "git clean", "git apply", "git am", "git notes"], Read)
        .options(CHANGE),
    program(&["git push", "git fetch", "git pull", "git ls-remote", "git remote", "git send-pack", "git fetch-pack"], RemoteTarget).options(&[(Flag, "-u")]).shared(REMOTE),
    program(&["git clone"], RemoteTarget).options(&[(Code, "-u")]).shared(REMOTE),
    program(&["git init"], Write).options(&[
        (Config, "template"),
        (Write, "separate-git-dir"),
        (Text, "-b initial-branch object-format ref-format shared?"),
        (Flag, "-q quiet bare"),
    ]),
    program(&["git rev-parse", "git describe", "git name-rev", "git merge-base", "git symbolic-ref", "git show-ref", "git for-each-ref", "git cherry", "git count-objects", "git var", "git help", "git version", "git check-ref-format"], Text)
        .lenient(),
    program(&["git ls-files", "git ls-tree", "git cat-file", "git check-ignore", "git check-attr", "git fsck", "git verify-commit", "git verify-tag", "git show-branch", "git get-tar-commit-id"], Read)
        .options(&[
            (Pattern, "-x exclude format sort path batch? batch-check? batch-command? filter"),
            (Read, "-X exclude-from exclude-per-directory"),
            (Flag, "-cdmoiukstvzrtlepfhnaq cached deleted modified others ignored stage unmerged killed exclude-standard error-unmatch with-tree?"),
            (Flag, "full-name recurse-submodules abbrev? debug eol deduplicate sparse name-only name-status long object-only full-tree textconv-none"),
            (Flag, "allow-unknown-type buffer unordered use-mailmap verbose non-matching no-index stdin all directory no-empty-directory"),
        ]),
    program(&["git grep"], Read).first(&[Pattern], &["e", "f"]).options(&[
        (Pattern, "-eABCm after-context before-context context max-count max-depth threads"),
        (Read, "-f"),
        (Code, "-O? open-files-in-pager?"),
        (Flag, "-aIivwWpEGFPnlLzcohHqr0123456789 cached no-index untracked no-exclude-standard exclude-standard recurse-submodules text textconv-none"),
        (Flag, "ignore-case word-regexp invert-match full-name extended-regexp basic-regexp perl-regexp fixed-strings line-number column"),
        (Flag, "files-with-matches name-only files-without-match null only-matching count color? no-color break heading show-function"),
        (Flag, "function-context and or not all-match quiet recursive no-recursive"),
    ]),
    program(&["git archive"], Text).options(&[
        (Write, "-o output"),
        (Text, "format prefix mtime add-virtual-file"),
        (Read, "add-file"),
        (RemoteTarget, "remote"),
        (Code, "exec"),
        (Flag, "-lv0123456789 list verbose worktree-attributes"),
    ]),
    program(&["git hash-object"], Read)
        .options(&[(Text, "-t path"), (Flag, "-w stdin stdin-paths no-filters literally")]),
    program(&["git format-patch"], Text).options(&[
        (Write, "-o output-directory output"),
        (Text, "-v subject-prefix start-number reroll-count signature base suffix to cc in-reply-to from? add-header"),
        (Read, "signature-file description-file"),
        (Flag, "-pnNksqz0123456789 stdout numbered no-numbered keep-subject signoff cover-letter thread? attach? inline? quiet stat? root no-stat"),
    ]),
    program(&["git worktree"], Write).options(&[
        (Text, "-bB reason expire"),
        (Flag, "-fdqvnz force detach checkout no-checkout guess-remote track lock orphan quiet porcelain verbose dry-run"),
    ]),
    program(&["git config"], Text).options(&[
        (Write, "-f file"),
        (Text, "type default comment value url fixed-value blob"),
        (Flag, "-lez global system local worktree get get-all get-regexp get-urlmatch get-color get-colorbool add unset unset-all replace-all"),
        (Flag, "rename-section remove-section list edit bool int bool-or-int path expiry-date null name-only show-origin show-scope includes no-includes all append"),
    ]),
];
