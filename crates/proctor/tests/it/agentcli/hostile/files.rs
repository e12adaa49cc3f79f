//! Manifests in YAML: aliases that multiply, deep and duplicate keys, and texts that are no YAML.

use super::super::place::Place;
use super::{assert_unharmed, command, file};

#[test]
fn hostile_yaml_is_refused_in_time_and_within_memory() {
    let place = Place::new();
    let mut laughs = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for pair in "abcdefghij".as_bytes().windows(2) {
        let (from, to) = (char::from(pair[0]), char::from(pair[1]));
        let aliases = vec![format!("*{from}"); 10].join(", ");
        laughs.push_str(&format!("{to}: &{to} [{aliases}]\n"));
    }
    let head = "version: \"0.2\"\nworkflows:\n  - id: w\n    name: W\n    tasks:\n";
    let task = "      - id: a\n        name: A\n        target: {session_target: shell}\n        shell: {program: x}\n        schedule: {cron: \"0 9 * * *\"}\n";
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("aliases that multiply", laughs.into_bytes()),
        ("a list that contains itself", b"a: &a\n  - *a\n".to_vec()),
        ("deep lists", "[".repeat(100_000).into_bytes()),
        (
            "deep blocks",
            (0..5000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>().into_bytes(),
        ),
        ("duplicate keys", format!("{head}{task}version: \"0.1\"\n").into_bytes()),
        ("a second document", format!("{head}{task}---\n{head}{task}").into_bytes()),
        ("a tag", format!("!!python/object/apply:os.system [touch PWNED]\n{head}").into_bytes()),
        ("bytes that are no text", vec![0xff; 100_000]),
        ("null characters", vec![0; 100_000]),
        ("many lines", "- a\n".repeat(1_000_000).into_bytes()),
        ("a huge file", "#".repeat(20 << 20).into_bytes()),
        ("an anchor without end", format!("a: &{} 1\n", "x".repeat(4 << 20)).into_bytes()),
        ("a quote without end", format!("a: \"{}", "x\\n".repeat(1 << 20)).into_bytes()),
    ];
    for (what, content) in cases {
        for name in ["m.yaml", "m"] {
            file(&place, name, &content);
            for command_name in ["validate", "compile"] {
                let (text, code) = command(&place, what, &[command_name, name]);
                assert_eq!(code, 1, "{what}: {text}");
                assert!(
                    text.contains("\"ok\": false") && text.len() < 1 << 20,
                    "{what}: {} bytes",
                    text.len()
                );
            }
        }
    }
    // Aliases that are used with measure are read.
    let shared = format!("{head}{}", task.replace("{program: x}", "&s {program: x, args: [\"1\"]}"))
        + &task.replace("id: a", "id: b").replace("{program: x}", "*s");
    file(&place, "m.yaml", shared);
    let (text, code) = command(&place, "an alias", &["validate", "m.yaml"]);
    assert_eq!(code, 0, "{text}");
    // A number for a version says what to do.
    file(&place, "m.yaml", format!("{head}{task}").replace("\"0.2\"", "0.2"));
    let (text, code) = command(&place, "a number", &["validate", "m.yaml"]);
    assert!(code == 1 && text.contains("quot"), "{text}");
    assert_unharmed(&place);
}

#[test]
fn manifests_that_are_no_files_are_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path("folder")).unwrap();
    std::os::unix::fs::symlink(place.path("loop"), place.path("loop")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for name in ["folder", "loop", "pipe", "/dev/zero", "/proc/self/mem", "absent", ""] {
        let (text, code) = command(&place, name, &["validate", name]);
        assert_eq!(code, 1, "{name}: {text}");
    }
}
