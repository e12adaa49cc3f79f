//! Facts of what reaches a command by other ways than its words: the directory, files that it includes, its input.

use super::programs::facts;

/// Command lines with something unknown.
fn all_are_unknown(lines: &[&str]) {
    let known: Vec<_> = lines.iter().filter(|line| facts(line).unknown.is_empty()).collect();
    assert!(known.is_empty(), "{known:#?}");
}

/// Command lines with nothing unknown.
fn all_are_known(lines: &[&str]) {
    let unknown: Vec<_> = lines
        .iter()
        .map(|line| (line, facts(line).unknown))
        .filter(|(_, unknown)| !unknown.is_empty())
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn the_directory_that_a_command_runs_in_is_a_path() {
    for (line, path) in [
        ("cd; grep -rh ''", "~"),
        ("cd -P; ls", "~"),
        ("cd && rg -uuu x", "~"),
        ("cd ..; ls", "/"),
        ("command cd /k; du", "/k"),
        ("pushd /k; git log", "/k"),
    ] {
        assert!(facts(line).paths.iter().any(|found| found == path), "{line}: {:?}", facts(line).paths);
    }
    for line in ["cd; git init", "cd; git clean -fdx", "cd && git add -A"] {
        assert!(facts(line).writes.iter().any(|found| found == "~"), "{line}: {:?}", facts(line).writes);
    }
    all_are_unknown(&["cd -; ls", "pushd; grep -rh ''", "popd; rg x", "pushd +1 && ls"]);
    all_are_known(&["cd src && ls", "(cd src; git status)"]);
}

#[test]
fn filters_that_reach_more_than_their_input_are_code() {
    all_are_unknown(&[
        "jq -n 'import \"config\" as $d {search:\"~/.docker\"}; $d'",
        "jq 'include \"a\"; .' a",
        "jq -n '\"a\" | modulemeta'",
        "jq -n env",
        "jq -n '$ENV.HOME'",
        "jq -n '\"\\(env)\"'",
        "yq -n 'load(\"/k\")'",
        "yq eval '.a = load_str(\"/k\")' a.yaml",
        "yq -n 'strenv(HOME)'",
    ]);
    all_are_known(&[
        "jq .env a.json",
        "jq '.a[\"env\"]' a",
        "jq '{env: .a}' env.json",
        "yq '.load' load.yaml",
    ]);
}

#[test]
fn code_from_an_input_is_unknown() {
    all_are_unknown(&[
        "python3 -i src/a.py <<< 'print(1)'",
        "python3 -m asyncio <<< 'print(1)'",
        "echo 'q' | perl -d x",
        "deno run -A - <<< x",
        "deno repl <<< x",
        "bun run - <<< x",
        "uv run - <<< x",
        "ruby -S irb <<< x",
        "pytest --pdb <<< x",
        "vim src/a <<< ':w! ../out/x'",
        "echo ':q' | vim src/a",
        "docker build - <<< 'FROM x'",
        "gcc -E -x c - <<< '#include \"/k\"'",
        "rustc - <<E\nfn main() {}\nE",
        "echo x | cat | ./run",
        "base64 -d a | frobnicate",
        "frobnicate < <(echo x)",
    ]);
    all_are_known(&[
        "cat a | python3 a.py",
        "git diff | delta",
        "cargo test 2>&1 | tail -n 5",
        "git commit -F - <<E\ntext\nE",
        "apply_patch <<'E'\n*** Begin Patch\n*** End Patch\nE",
        "ls | sort | npx wrap",
        "gh pr create --body-file - <<E\ntext\nE",
    ]);
}

#[test]
fn words_from_an_input_are_known_or_unknown() {
    for line in [
        "xargs cat <<< /k/f",
        "xargs cat <<E\n/k/f\nE",
        "tar cf x.tar --files-from=- <<< /k/f",
        "tar cf x.tar -T - <<< /k/f",
        "zip x.zip -@ <<< /k/f",
        "git hash-object -w --stdin-paths <<< /k/f",
        "find -files0-from - <<< /k/f",
        "echo /k/f | rsync --files-from=- . b",
    ] {
        assert!(facts(line).paths.iter().any(|found| found == "/k/f"), "{line}: {:?}", facts(line).paths);
    }
    all_are_unknown(&[
        "base64 -d a | xargs cat",
        "jq -nr '\"a\"' | xargs cat",
        "cat src/a | xargs wget",
        "xargs cat < src/a",
        "find . -printf /k | xargs cat",
        "ls | sed 's,.*,/k,' | xargs cat",
    ]);
    all_are_known(&[
        "find . -name '*.rs' | xargs wc -l",
        "git ls-files | grep rs | xargs cat",
        "git diff --name-only | xargs grep x",
        "rg -l x | xargs head",
        "grep -rl x src | sort | xargs cat",
        "ls | xargs -n1 basename",
    ]);
    assert!(facts("ls | xargs wget").hosts.iter().any(|host| host == "{}"));
}

#[test]
fn words_that_programs_run_are_code() {
    all_are_unknown(&[
        "make 'X!=git push'",
        "make 'X:=$(shell touch a)'",
        "make CFLAGS=\"-wrapper sh,-c,'x'\"",
        "gcc -wrapper sh,-c,x a.c",
        "clang -fplugin=x.so a.c",
        "gcc @args",
        "rustc -C linker=src/x a.rs",
        "rename 's,.*,../out/x,' src/a",
        "rename 's/a/b/e' src/a",
    ]);
    all_are_known(&[
        "make CFLAGS='-O2 -g' all",
        "make X=1",
        "rename 's/a/b/g' c",
        "rename a b c",
        "gcc -O2 a.c -o a",
    ]);
    for (line, command) in [
        ("npx -c 'cd ..; cat x'", "cat x"),
        ("yarn exec 'git push -f'", "git push -f"),
        ("cmake -E env git push", "git push"),
        ("tox -x testenv.commands='git push x'", "git push x"),
        ("sbt '!git push'", "git push"),
        ("rake --execute 'curl a.example'", "curl a.example"),
    ] {
        let found = facts(line).commands;
        assert!(found.iter().any(|found| found == command), "{line}: {found:?}");
    }
    for (line, path) in [
        ("file -C -m src/a", "/w/src/a"),
        ("HISTFILE=/k/f; history -w", "/k/f"),
        ("HISTFILE=/k/f history -a", "/k/f"),
        ("find . -name 'pol*' -delete", "/w/pol*"),
        ("find src /k -iname f -delete", "/k/f"),
        ("go env -w GOFLAGS=-x", "~"),
        ("git config --global user.name x", "~"),
        ("npm i -g x", "~"),
        ("pip install --user x", "~"),
        ("git clean -fdx", "/w"),
        ("git reset --hard", "/w"),
        ("git checkout .", "/w"),
        ("git restore .", "/w"),
        ("python3 -c 'open(\"../x\")'", "/x"),
    ] {
        let found = facts(line).writes;
        assert!(found.iter().any(|found| found == path), "{line}: {found:?}");
    }
}
