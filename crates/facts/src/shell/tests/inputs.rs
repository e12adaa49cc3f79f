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
