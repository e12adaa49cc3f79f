//! Selection of tests, and paths.

use std::path::{Path, PathBuf};

use super::*;

#[test]
fn tags_include_and_exclude() {
    let tags = |written: &str| written.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    for (filter, of_test, expected) in [
        ("", "", true),
        ("", "a", true),
        ("a", "a b", true),
        ("a,b", "b", true),
        ("a", "", false),
        ("!a", "a", false),
        ("!a", "b", true),
        ("a,!b", "a", true),
        ("a,!b", "a b", false),
        (" a , ! b ", "a b", false),
        (",,", "x", true),
        ("A", "a", false),
    ] {
        assert_eq!(TagFilter::parse(filter).selects(&tags(of_test)), expected, "{filter} on {of_test}");
    }
}

#[test]
fn each_test_belongs_to_one_partition() {
    for count in [1, 2, 3, 7] {
        let parts: Vec<Partition> =
            (1..=count).map(|number| format!("hash:{number}/{count}").parse().unwrap()).collect();
        let mut sizes = vec![0; parts.len()];
        for id in 0..1000 {
            let hit: Vec<usize> =
                (0..parts.len()).filter(|index| parts[*index].selects(&format!("test-{id}"))).collect();
            assert_eq!(hit.len(), 1);
            sizes[hit[0]] += 1;
        }
        assert!(sizes.iter().all(|size| *size > 1000 / count / 2), "{sizes:?}");
    }
    for written in
        ["", "1/2", "hash:0/2", "hash:3/2", "hash:1/0", "hash:1", "hash:+1/2", "hash:1/10001", "count:1/2"]
    {
        assert!(written.parse::<Partition>().is_err(), "{written}");
    }
    let error = "hash:3/2".parse::<Partition>().unwrap_err().to_string();
    assert_eq!(
        error,
        "`hash:3/2` is not a partition; write `hash:M/N` with M from 1 to N, and N at most 10000"
    );
}

#[test]
fn relative_paths_start_from_the_suite_then_from_the_working_directory() {
    let there = |paths: &'static [&'static str]| {
        move |path: &Path| paths.iter().any(|known| path == Path::new(known))
    };
    let at = |written: &str, exists: &dyn Fn(&Path) -> bool| {
        locate(written, Path::new("/s"), Path::new("/w"), exists)
    };
    assert_eq!(at("f", &there(&["/s/f", "/w/f"])), PathBuf::from("/s/f"));
    assert_eq!(at("f", &there(&["/w/f"])), PathBuf::from("/w/f"));
    assert_eq!(at("f", &there(&[])), PathBuf::from("/s/f"));
    assert_eq!(at("/f", &there(&["/w/f"])), PathBuf::from("/f"));
}

#[test]
fn command_lines_are_split_as_a_shell_does() {
    for (line, words) in [
        ("a b", vec!["a", "b"]),
        ("  a\t'b c'  \"d e\"f ", vec!["a", "b c", "d ef"]),
        (r#"a "\"x\\ \n" \  ''"#, vec!["a", "\"x\\ \\n", " ", ""]),
        ("a $HOME *.py; rm", vec!["a", "$HOME", "*.py;", "rm"]),
    ] {
        assert_eq!(split_words(line).unwrap(), words, "{line}");
    }
    for (line, error) in [
        ("", WordsError::Empty),
        ("  ", WordsError::Empty),
        ("''", WordsError::Empty),
        ("a 'b", WordsError::OpenQuote),
        ("a \"b\\", WordsError::OpenQuote),
        ("a \\", WordsError::OpenEscape),
        ("a\0", WordsError::Nul),
    ] {
        assert_eq!(split_words(line), Err(error), "{line:?}");
    }
    assert_eq!(split_words(&"a ".repeat(2_000)), Err(WordsError::TooMany));
}
