//! Facts of programs, by theme: what is written, read, reached, run, and what is not modelled.

use proctor_core::action::{Action, ActionKind};

use crate::{Facts, normalise};

/// Facts of a command line of an agent that works in `/w`.
pub(super) fn facts(line: &str) -> Facts {
    let action = Action {
        kind: ActionKind::ProcessExec,
        command: line.to_owned(),
        cwd: "/w".to_owned(),
        ..Action::default()
    };
    normalise(&action, None)
}

/// Command lines that must have an entry in a list of facts.
fn all_have(list: impl Fn(&Facts) -> Vec<String>, entry: &str, lines: &[&str]) {
    let missing: Vec<String> = lines
        .iter()
        .map(|line| (line, list(&facts(line))))
        .filter(|(_, found)| !found.iter().any(|one| one == entry))
        .map(|(line, found)| format!("{line}: {found:?}"))
        .collect();
    assert!(missing.is_empty(), "without {entry}:\n{}", missing.join("\n"));
}

#[test]
fn what_file_programs_write_is_known() {
    all_have(
        |facts| facts.writes.clone(),
        "/o/f",
        &[
            "cp -t /o -- f",
            "mv --target-dir=/o f",
            "install -Dm644 f /o/f",
            "ln --force f /o/f",
            "tee --append /o/f",
            "truncate -s1 /o/f",
            "fallocate -l 1 /o/f",
            "touch -r a /o/f",
            "mktemp /o/f",
            "dd if=a bs=1 of=/o/f",
            "split a /o/f",
            "csplit --prefix /o/f a 1",
            "rename a b /o/f",
            "chmod -x /o/f",
            "cd /o && touch f",
            "env -C /o touch f",
            "sudo --chdir /o touch f",
            "ln -s /o l; touch l/f",
            "ln -s ../o l; tee l/f",
            "ln -s /o/f l && cp a l",
            "mkdir -p d; ln -s /o d/l; touch d/l/f",
            "busybox tee /o/f",
            "history -w /o/f",
        ],
    );
}

#[test]
fn what_text_programs_write_is_known() {
    all_have(
        |facts| facts.writes.clone(),
        "/o/f",
        &[
            "sort a --outp /o/f",
            "sort -uo/o/f a",
            "uniq -c a /o/f",
            "xxd -p a /o/f",
            "iconv a -o /o/f",
            "shuf --output=/o/f a",
            "sed -ni 'w/o/f' a",
            "sed '/x/{s/a/b/;w /o/f\n}' a",
            "sed -e 's,a,b,w /o/f' a",
            "sed -i s/a/b/ /o/f",
            "awk '{print $1 > \"/o/f\"}' a",
            "awk '{print | \"tee /o/f\"}' a",
            "gawk -p/o/f 1 a",
            "less -O /o/f a",
            "vim -w /o/f a",
            "jq . a | tee /o/f",
            "diff a b -o /o/f",
        ],
    );
}

#[test]
fn what_other_programs_write_is_known() {
    all_have(
        |facts| facts.writes.clone(),
        "/o/f",
        &[
            "tar xf a.tar -C /o/f",
            "tar xfC a.tar /o/f",
            "tar --extract --dir=/o/f --file a.tar",
            "tar -cf /o/f a",
            "unzip -qd /o/f a.zip",
            "zip /o/f a",
            "gpg --outp /o/f -d a",
            "openssl rand -out /o/f 8",
            "openssl enc -aes-256-cbc -in a -out /o/f",
            "curl -sLo/o/f https://h.example",
            "curl --out /o/f https://h.example",
            "curl -c /o/f https://h.example",
            "curl --output-dir /o -o f https://h.example",
            "curl -w '%output{/o/f}x' https://h.example",
            "wget -qP /o https://h.example/f",
            "git diff --outp=/o/f",
            "git -C a log --output /o/f",
            "git clone -q a /o/f",
            "git --work-tree=/o/f checkout HEAD -- a",
            "git -C /o/f commit -m x",
            "git bundle create /o/f HEAD",
            "git archive -o /o/f HEAD",
            "git format-patch -o /o/f -1",
            "find a -fprint0 /o/f",
            "find a -exec cp {} /o/f +",
            "rsync --log-file /o/f a b",
            "scp a /o/f",
            "patch -o /o/f a b.diff",
            "script -qc true /o/f",
            "strace -o/o/f true",
            "gcc a.c -o/o/f",
            "make DESTDIR=/o/f install",
            "python3 -m json.tool a.json /o/f",
            "python3 -c 'open(\"/o/f\", \"w\")'",
            "sqlite3 /o/f 'create table t(a)'",
            "sqlite3 a.db '.once /o/f' 'select 1'",
            "socat -u - CREATE:/o/f",
            "ssh -E /o/f h.example",
            "cd /o/f && frobnicate",
        ],
    );
}

#[test]
fn what_programs_read_is_known() {
    all_have(
        |facts| facts.paths.clone(),
        "/k/f",
        &[
            "cut -c1- /k/f",
            "paste /k/f",
            "fmt -t /k/f",
            "base64 -i /k/f",
            "grep -vf/k/f a",
            "diff --from-file=/k/f a",
            "jq --rawfile x /k/f -n '$x'",
            "awk 'BEGIN{while((getline l < \"/k/f\")>0) print l}'",
            "awk 'BEGIN{ARGV[1]=\"/k/f\"; ARGC=2} 1'",
            "sed 'r /k/f' a",
            "openssl rsa -in /k/f -text",
            "tar -cf - -C /k f",
            "tar cfC - /k f",
            "zip - /k/f",
            "curl -T /k/f https://h.example",
            "curl -F 'x=@/k/f' https://h.example",
            "curl --data-bin @/k/f https://h.example",
            "curl file://localhost/k/f",
            "wget --post-file /k/f https://h.example",
            "git diff --no-index a /k/f",
            "git hash-object -w /k/f",
            "git commit -F /k/f",
            "perl -pe 1 /k/f",
            "ssh -i /k/f h.example",
            "ssh-keygen -yf /k/f",
            "cp -r /k h; cat h/f",
            "mv /k h; cat h/f",
            "rsync -a /k/ h; cat h/f",
            "echo /k/f | xargs cat",
            "pushd /k; cat f",
            "frobnicate --in=/k/f",
            "sqlite3 a.db \"select readfile('/k/f')\"",
        ],
    );
}

#[test]
fn hosts_without_a_scheme_are_known() {
    all_have(
        |facts| facts.hosts.clone(),
        "h.example",
        &[
            "curl -I h.example:81",
            "curl --head h.example",
            "curl http://a.example --next h.example",
            "curl --connect-to a.example:80:h.example:81 http://a.example",
            "curl --preproxy h.example:81 http://a.example",
            "curl -H 'Host: h.example' http://a.example",
            "wget -qO- h.example",
            "ssh -p 22 u@h.example",
            "ssh -J h.example a.example",
            "ssh -oHostName=h.example a.example",
            "ssh -L 1:h.example:81 a.example",
            "sftp u@h.example:x",
            "scp a u@h.example:x",
            "rsync a h.example::m",
            "git clone h.example:a/b",
            "git remote add x u@h.example:y",
            "git -c http.proxy=h.example:81 fetch",
            "env https_proxy=h.example:81 frobnicate",
            "ping -q h.example",
            "dig @h.example a.example",
            "host -t mx h.example",
            "getent hosts h.example",
            "nc -w 1 h.example 81",
            "ncat --proxy h.example:81 a.example 80",
            "socat - TCP4:h.example:81",
            "openssl s_client -connect h.example:81",
            "psql 'host=h.example dbname=x'",
            "psql -h h.example",
            "pip --proxy h.example:81 install x",
            "npm view x --registry=h.example:81",
            "docker pull h.example:5000/x",
            "docker -H h.example:81 ps",
            "frobnicate h.example",
            "frobnicate -hh.example",
            "python3 -c 'connect((\"h.example\", 81))'",
            "cat < /dev/tcp/h.example/81",
        ],
    );
}

#[test]
fn commands_that_helpers_run_are_known() {
    all_have(
        |facts| facts.commands.clone(),
        "mark x",
        &[
            "tar -I 'mark x' -cf a.tar a",
            "tar --use-c='mark x' -cf a.tar a",
            "tar -xf a.tar --to-com='mark x'",
            "tar xFf 'mark x' a.tar",
            "rsync -e 'mark x' a h.example:b",
            "rsync --rsync-path 'mark x' a h.example:b",
            "scp -S 'mark x' a h.example:b",
            "ssh -o 'ProxyCommand mark x' h.example",
            "ssh h.example -oProxyCommand='mark x'",
            "git -c core.sshCommand='mark x' fetch",
            "git -c diff.external='mark x' diff",
            "git -c alias.q='!mark x' q",
            "git config alias.q '!mark x'",
            "git config --file .git/config core.fsmonitor 'mark x'",
            "git grep -O'mark x' a",
            "git difftool --extcmd='mark x'",
            "git rebase --exec 'mark x' HEAD~1",
            "git bisect run mark x",
            "git submodule foreach --quiet 'mark x'",
            "git fetch --upload-pack 'mark x' .",
            "git clone -u 'mark x' . b",
            "git clone 'ext::mark x' b",
            "GIT_SSH_COMMAND='mark x' git fetch",
            "env PAGER='mark x' git log",
            "sort --compress-prog='mark x' a",
            "split --filter='mark x' a",
            "rg --pre 'mark x' a",
            "man -P 'mark x' ls",
            "sed '1,/y/e mark x' a",
            "sed --posix -e 's/a/b/;e mark x' a",
            "awk 'BEGIN{system(\"mark x\")}'",
            "awk 'BEGIN{\"mark x\" | getline y}'",
            "script -qc 'mark x' /dev/null",
            "script --comm='mark x' /dev/null",
            "flock l -c 'mark x'",
            "nc -e 'mark x' h.example 1",
            "socat - EXEC:'mark x'",
            "hyperfine --prepare 'mark x' true",
            "parallel mark ::: x",
            "parallel ::: 'mark x'",
            "watch -x mark x",
            "gdb --args mark x",
            "find . -okdir mark x \\;",
            "systemd-run --user --wait mark x",
            "setpriv --nnp -- mark x",
            "prlimit --nofile=9 mark x",
            "env -S 'A=b mark x'",
            "echo mark x | sh",
            "printf 'mark x' | bash -s",
            "echo x | xargs mark",
            "echo x | xargs -I{} mark {}",
            "echo mark x | xargs env",
        ],
    );
}

#[test]
fn a_push_is_one_in_every_spelling() {
    all_have(
        |facts| {
            facts
                .commands
                .iter()
                .map(|command| command.split(' ').take(2).collect::<Vec<_>>().join(" "))
                .collect()
        },
        "git push",
        &[
            "git --no-pager -C a push",
            "git --git-dir a push",
            "git -c alias.p=push p origin",
            "git config alias.p push && git p",
            "git config --global alias.up 'push origin'; git up",
            "/usr/lib/git-core/git-push origin",
            "/usr/bin/git push",
            "git send-pack a HEAD",
            "git subtree push --prefix=a o b",
            "echo push | xargs git",
        ],
    );
}

#[test]
fn words_without_a_known_value_are_expansions() {
    for (line, word) in [
        ("git $x", "$x"),
        ("cat $f", "$f"),
        ("cat src/*.rs", "src/*.rs"),
        ("cat ~/.$(a)/k", "~/.$(a)/k"),
        ("ls | xargs wc", "{}"),
        ("find . -exec wc {} +", "{}"),
        ("fd x -X wc", "{}"),
        ("wc --files0-from=l", "l"),
        ("tar -cf a -T l", "l"),
        ("grep -r x /k", "/k/**"),
        ("diff -r a ~", "~/**"),
        ("git commit -m $x", "$x"),
        ("frobnicate \"$x\"", "$x"),
        ("bash -c 'a \"$0\"' \"$x\"", "$x"),
    ] {
        assert!(
            facts(line).expansions.iter().any(|entry| entry == word),
            "{line}: {:?}",
            facts(line).expansions
        );
    }
    for line in [
        "git commit -m \"$(cat <<'E'\ntext\nE\n)\"",
        "echo $x *",
        "test -n \"$x\"",
        "grep -r \"$x\" src",
        "grep --include=*.rs -r x src",
        "find . -name '*.rs'",
        "diff <(sort a) <(sort b)",
        "make -j$(nproc)",
    ] {
        assert_eq!(facts(line).expansions, Vec::<String>::new(), "{line}");
    }
}

#[test]
fn variables_that_wrappers_set_are_assignments() {
    for (line, entry) in [
        ("env LD_PRELOAD=x ls", "LD_PRELOAD=x"),
        ("env -i BASH_ENV=x bash -c true", "BASH_ENV=x"),
        ("sudo -u u NODE_OPTIONS=x node a.js", "NODE_OPTIONS=x"),
        ("env A=$x ls", "A="),
        ("strace -E A=b ls", "A=b"),
        ("systemd-run --setenv=A=b ls", "A=b"),
        ("ssh -o SetEnv=A=b h.example", "A=b"),
    ] {
        assert!(
            facts(line).assignments.iter().any(|found| found == entry),
            "{line}: {:?}",
            facts(line).assignments
        );
    }
}

#[test]
fn what_is_not_modelled_is_opaque() {
    for line in [
        "frobnicate",
        "make",
        "cargo test",
        "npm ci",
        "bash x.sh",
        "python3 x.py",
        "python3 -m venv v",
        "node x.js",
        "./ls",
        "bin/git status",
        "source x.sh",
        "git frobnicate",
        "git apply x.diff",
        "cat --frobnicate a",
        "cat -Z a",
        "curl -K x",
        "wget -i x",
        "awk -f x.awk a",
        "sed -f x.sed a",
        "ssh -F x h.example",
        "gcc a.c",
        "patch -p1",
        "find . -frobnicate",
        "git log --format=%G?",
        "sort --compress-program=./x a",
    ] {
        assert!(!facts(line).opaque.is_empty(), "{line}");
    }
}

#[test]
fn everyday_lines_are_modelled() {
    for line in [
        "ls -la --color=auto src",
        "cat -n a | sed -n '1,20p;40q'",
        "sed -i -e 's#/usr#/opt#' -e '/^$/d' a",
        "sed 's/[^/]*$//' a",
        "sed '/a/a\\text' a",
        "grep -rnE 'a|b' --include='*.rs' src",
        "rg -n --glob '!target' 'fn main' src",
        "find . -type f -name '*.py' -not -path './v/*' -newer a",
        "awk -F, '$3 > 100 && /err/ {print $1, $2/3}' a",
        "awk 'NR==FNR{a[$1]=$2;next} $1 in a{print $0, a[$1]}' a b",
        "git status -sb; git diff --stat HEAD~1 -- src; git log --oneline -n 5 --graph",
        "git add -A && git commit -qm 'a' && git checkout -b x origin/main",
        "git blame -L 1,2 a; git show HEAD:a; git stash pop; git rev-parse HEAD",
        "git fetch --all --prune; git pull --rebase",
        "mkdir -p a/b; cp -r a b; mv b c; rm -rf c; touch d; chmod 644 d; ln -s a e",
        "head -n 5 a; tail -n +5 a; wc -l a; sort -k2,2n a | uniq -c; cut -d' ' -f1 a; tr -d x",
        "diff -u a b; cmp a b; comm -12 a b; paste -sd+ a; column -t a",
        "jq -r '.a[] | select(.b==\"c\")' a.json; jq --arg v 1 '.x=$v' a.json",
        "echo a; printf '%s' a; date +%F; env; ps aux; df -h; du -sh a; which ls; pwd; sleep 1",
        "timeout 5 ls; time ls; nice -n 5 ls; nohup ls; stdbuf -oL ls; env A=b ls",
        "tar czf a.tgz a; tar tzf a.tgz; unzip -q a.zip -d a; gzip -dk a.gz; sha256sum a",
        "sqlite3 a.db 'select 1'; sqlite3 a.db .schema; openssl rand -hex 8; base64 -d a",
        "stat -c %s a; file a; xxd -l 16 a; strings a; tree -L 2; realpath a; basename a",
        "if [ -f a ]; then echo y; fi; for i in 1 2; do echo $i; done",
    ] {
        let found = facts(line);
        assert_eq!((&found.opaque, &found.unknown), (&vec![], &vec![]), "{line}");
        assert_eq!(found.hosts, Vec::<String>::new(), "{line}");
        let outside: Vec<_> = found.paths.iter().filter(|path| !path.starts_with("/w")).collect();
        assert!(outside.is_empty(), "{line}: {outside:?}");
    }
}
