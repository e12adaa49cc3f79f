//! Random inputs for everything that reads what others wrote: nothing may panic, hang or break its own law.

pub mod agentcli;
#[path = "../../../policy/tests/it/any_input.rs"]
mod any_input;
pub mod assembly;
pub mod atp;
pub mod attest;

use std::time::{Duration, Instant};

use any_input::Violation;

use crate::support::{count, seed};
use proctor_core::json::Json;
use proctor_core::random::{Randomness, SeededRandomness};
use proctor_core::record::Envelope;

/// Inputs for each target in a full run.
const INPUTS: usize = 60_000;
/// An input that takes longer than this is a way to stop the gate.
const SLOWEST: Duration = Duration::from_secs(5);

/// What inputs for a target are made of.
struct Material<'a> {
    /// Words that the target has a meaning for.
    words: &'a [&'a str],
    /// Inputs that the target accepts.
    valid: &'a [&'a [u8]],
}

/// Throws inputs at `target`: bytes, word soup, and changed valid ones. An error of the target says which law was broken.
fn drive(name: &str, material: &Material<'_>, target: impl Fn(&[u8]) -> Result<(), Violation>) {
    let seed = seed();
    let random = SeededRandomness::new(seed);
    let mut slowest = Duration::ZERO;
    for valid in material.valid {
        target(valid).unwrap_or_else(|problem| panic!("{name}: {problem}\n{}", shown(valid)));
    }
    for index in 0..count(INPUTS) {
        let input = match index % 4 {
            0 => noise(&random),
            1 => soup(&random, material.words),
            _ => changed(&random, material),
        };
        let start = Instant::now();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(&input)));
        let took = start.elapsed();
        slowest = slowest.max(took);
        assert!(took < SLOWEST, "{name}: {took:?} for input {index} of seed {seed}\n{}", shown(&input));
        let problem = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(problem)) => problem,
            Err(_) => "a panic".into(),
        };
        panic!("{name}: {problem}: input {index} of seed {seed}\n{}", shown(&input));
    }
    println!("{name}: {} inputs, the slowest took {slowest:?}", count(INPUTS));
}

fn shown(input: &[u8]) -> String {
    let text: String = input.iter().flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
    text.chars().take(4000).collect()
}

fn noise(random: &SeededRandomness) -> Vec<u8> {
    let mut bytes = vec![0; random.below(200) as usize];
    random.fill(&mut bytes);
    if random.below(2) == 0 {
        // Printable bytes get further into a parser.
        for byte in &mut bytes {
            *byte = b' ' + *byte % 95;
        }
    }
    bytes
}

fn pick<'a, T: ?Sized>(random: &SeededRandomness, items: &[&'a T]) -> &'a T {
    items[random.below(items.len() as u64) as usize]
}

fn soup(random: &SeededRandomness, words: &[&str]) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..random.below(60) {
        text.push_str(pick(random, words));
        text.push_str(pick(random, &["", "", " ", "\n", "  "]));
    }
    text.into_bytes()
}

fn changed(random: &SeededRandomness, material: &Material<'_>) -> Vec<u8> {
    let mut bytes = pick(random, material.valid).to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let until = (at + random.below(20) as usize).min(bytes.len());
        match random.below(7) {
            0 => drop(bytes.drain(at..until)),
            1 => bytes.truncate(at),
            2 => drop(bytes.splice(at..at, pick(random, material.words).bytes())),
            3 => {
                let piece = bytes[at..until].to_vec();
                let times = random.below(40) as usize;
                drop(bytes.splice(at..at, piece.repeat(times)));
            }
            4 => {
                let other = pick(random, material.valid);
                let from = random.below(other.len() as u64 + 1) as usize;
                drop(bytes.splice(at..until, other[from..].iter().copied()));
            }
            5 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.next_u64() as u8;
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
        bytes.truncate(100_000);
    }
    bytes
}

const POLICIES: &[&[u8]] = &[
    include_bytes!("../../../../schemas/examples/strict.yaml"),
    include_bytes!("../../../../schemas/examples/balanced.yaml"),
    include_bytes!("../../../../schemas/examples/audit-only.yaml"),
    b"version: '1'\nscope: team:blue\ndefault: ask\nschedule: { active_hours: { start: '09:00', end: '17:30', timezone: Europe/Berlin } }\ncapabilities: { allow: [file_read], deny: [terminal_exec] }\napproval: { timeout_seconds: 60, escalation_role: lead }\n",
    b"{\"version\":\"1\",\"rules\":[{\"id\":\"a\",\"when\":\"true\",\"then\":\"modify\",\"set\":{\"/args/x\":[1,{\"y\":null}]}}]}",
    b"apiVersion: x/v1\nkind: Policy\nmetadata: { name: n }\nspec:\n  rules:\n    - { id: b, when: 'true', then: defer, retry_after: 5s, taint: t }\n",
    b"version: '1'\nobserve: ['trial-*', b]\nanomalies:\n  loops: { count: 3, window: 1m, then: deny }\n  spikes: off\n  leaks: { findings: 2, then: suspend }\n  unknown_hosts: { then: ask }\n  exfiltration: {}\nbudget: { daily_limit_usd: 5, team_monthly_limit_usd: 9.5, calls: { daily: 10 }, window: 1h, action_on_exceed: suspend }\n",
    b"{\"version\":\"1\",\"anomalies\":{\"spikes\":{\"sigma\":2.5,\"at_least\":60,\"then\":\"alarm\"}},\"observe\":[],\"budget\":{\"tokens\":{\"monthly\":1},\"action_on_exceed\":\"deny\"}}",
];

#[test]
fn documents() {
    let words = &[
        "version:",
        "\"1\"",
        "default:",
        "deny",
        "ask",
        "allow",
        "rules:",
        "- id:",
        "when:",
        "then:",
        "set:",
        "{",
        "}",
        "[",
        "]",
        ",",
        "&a",
        "*a",
        "<<:",
        "|",
        ">-",
        "\"",
        "'",
        "#",
        "tools:",
        "network:",
        "allowlist:",
        "data:",
        "budget:",
        "schedule:",
        "scope:",
        "team:x",
        "1e999",
        "0x10",
        "~",
        "null",
        "!!str",
        "---",
        "...",
        "\t",
        "? ",
        ": ",
        "- ",
        "\u{feff}",
        "\u{85}",
        "expires: 1h",
        "observe:",
        "anomalies:",
        "loops:",
        "count: 1",
        "window: 1m",
        "spikes:",
        "sigma: 1e3",
        "at_least:",
        "leaks:",
        "findings: 0",
        "unknown_hosts:",
        "exfiltration:",
        "off",
        "action_on_exceed:",
        "suspend",
    ];
    drive("document", &Material { words, valid: POLICIES }, any_input::document);
}

#[test]
fn expressions() {
    let words = &[
        "path",
        "args.",
        "x",
        "tool",
        "starts_with",
        "ends_with",
        "contains",
        "matches",
        "==",
        "!=",
        "<",
        ">",
        "<=",
        ">=",
        "AND",
        "OR",
        "NOT",
        "in",
        "(",
        ")",
        "[",
        "]",
        "\"",
        "\"a\"",
        "1",
        "0.10",
        "-1",
        "true",
        "false",
        "null",
        ",",
        ".",
        "\\",
        "agent",
        "$",
    ];
    let valid: &[&[u8]] = &[
        b"path starts_with \"/etc\" OR path starts_with \"/usr\"",
        b"args.estimated_cost_usd > 0.10",
        b"tool in [\"a\", \"b\"] AND args.b.c != 3 OR path contains \"y\" AND agent.risk_tier >= High",
        b"args.amount >= 1000 AND args.currency == \"USD\"",
    ];
    drive("expression", &Material { words, valid }, any_input::expression);
}

#[test]
fn conditions() {
    let words = &[
        "action",
        ".",
        "tool",
        "args",
        "commands",
        "paths",
        "session",
        "agent",
        "time",
        ".exists(",
        "c",
        ",",
        ".all(",
        ".map(",
        ".filter(",
        ".size()",
        ".matches(",
        "\"",
        "\"a\"",
        "'b'",
        "r'",
        "&&",
        "||",
        "!",
        "==",
        "!=",
        "<",
        ">",
        "in",
        "?",
        ":",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "1",
        "1u",
        "1.5",
        "0x1",
        "9223372036854775808",
        "null",
        "true",
        "has(",
        "startsWith(",
        "called(",
        "tainted(",
        "+",
        "-",
        "*",
        "/",
        "%",
        "int(",
        "string(",
        "b\"x\"",
        "\\u0000",
        "matches(\"(a+)+$\")",
    ];
    let valid: &[&[u8]] = &[
        br#"action.commands.exists(c, c.matches("^([^ ]*/)?(proctor|agentcli)( |$)"))"#,
        br#"action.tool == "shell" && !action.commands.all(c, c.startsWith("ls"))"#,
        br#"session.called("read_*") && session.count("x") > 3 && !session.tainted("y")"#,
        br#"action.args.items[0] == "a" || has(action.args.price) ? action.args.count > 2 : false"#,
        br#"action.kind in ["llm_call", "prompt"] && size(action.paths) + 1 < 3"#,
        br#"time.hour >= 9 && agent.denied("*") == 0"#,
    ];
    drive("condition", &Material { words, valid }, any_input::condition);
}

#[test]
fn scanned_texts() {
    let words = &[
        "AKIA",
        "IOSFODNN7EXAMPLE",
        "sk-",
        "a1B2c3D4e5F6g7H8i9J0",
        "ghp_",
        "xoxb-",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "eyJ",
        ".",
        "@",
        "example.com",
        "a",
        "4111",
        "1111",
        " ",
        "-",
        "123-45-6789",
        "[REDACTED:OpenAiKey]",
        "[REDACTED:",
        "]",
        "postgres://",
        "user:pass",
        "/",
        "\u{e9}",
        "\u{1f600}",
        "Bearer ",
        "AIza",
        "password=",
        "0",
        "\n",
    ];
    let valid: &[&[u8]] = &[
        b"key sk-a1B2c3D4e5F6g7H8i9J0 and AKIAIOSFODNN7EXAMPLE",
        b"mail a.b@example.com, card 4111 1111 1111 1111, number 123-45-6789",
        b"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n",
        b"postgres://user:secret@db.example.com/x ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    ];
    drive("scan", &Material { words, valid }, any_input::scan);
}

#[test]
fn command_lines() {
    let words = &[
        "rm", "-rf", "/", "$", "${", "}", "$(", ")", "`", "(", "((", "))", "{", "}", ";", "&", "&&", "||",
        "|", "|&", ">", ">>", ">|", "<", "<<", "<<<", "<(", ">(", "2>&1", "EOF", "'", "\"", "\\", "$'",
        "sudo", "env", "xargs", "sh", "-c", "eval", "cd", "tee", "if", "then", "fi", "for", "do", "done",
        "case", "esac", "in", "while", "function", "f()", "[[", "]]", "{a,b}", "{1..9}", "*", "?", "~", "#",
        "!", "x=1", "find", "-exec", "{}", "+", "\u{0}", "\r", "\t",
    ];
    let valid: &[&[u8]] = &[
        b"sudo env X=1 sh -c 'rm -rf \"$HOME\"' && cat <<EOF > out\n$(ls)\nEOF\n",
        b"for f in *.c; do gcc -c \"$f\" || exit 1; done 2>&1 | tee log",
        b"case $1 in a|b) echo {x,y}{1..3};; *) f() { :; };; esac",
        b"find . -name '*.o' -exec rm {} + ; xargs -0 -I{} sh -c 'mv {} /tmp' < list",
        b"if [[ -f a && ! -d b ]]; then ((x++)); fi; eval \"$(cat x)\" <(sort a) >(cat)",
    ];
    drive("shell", &Material { words, valid }, |data| {
        let commands = proctor_facts::shell::parse(&String::from_utf8_lossy(data)).commands;
        let fits = commands.iter().all(|it| !it.words.is_empty() && it.text == it.words.join(" "));
        fits.then_some(()).ok_or_else(|| "a command whose text is not its words".into())
    });
}

/// A small ledger as a bundle, and its checkpoint.
fn bundle_and_note() -> (Vec<u8>, String) {
    use proctor_ledger::bundle::{Selection, export};
    use proctor_test_forges::TestLedger;
    let ledger = TestLedger::new(7, 12).unwrap();
    let mut bundle = Vec::new();
    export(&ledger.at(12).unwrap(), &Selection::Whole, &mut bundle, &mut |_, _| ()).unwrap();
    (bundle, ledger.note(12, 2).unwrap())
}

#[test]
fn bundles() {
    use proctor_ledger::bundle::{
        Check, Selection, closure, export, prove, prove_consistency, verify, verify_consistency_proof,
        verify_proof,
    };
    use proctor_test_forges::TestLedger;
    let ledger = TestLedger::new(8, 9).unwrap();
    let view = ledger.at(9).unwrap();
    let mut part = Vec::new();
    let chosen = closure(&view, &[0, 4]).unwrap().seqs;
    export(&view, &Selection::Part(chosen), &mut part, &mut |_, _| ()).unwrap();
    let record = prove(&view, 3).unwrap();
    let continued =
        prove_consistency(&view, &ledger.note(4, 1).unwrap(), &ledger.note(9, 1).unwrap()).unwrap();
    let (whole, _) = bundle_and_note();
    let words = &[
        "proctor-bundle/1\n",
        "C",
        "L",
        "B",
        "I",
        "E",
        "\u{0}\u{0}\u{0}\u{8}",
        "proctor-proof/1\n",
        "proctor-consistency/1\n",
        "\n\n",
        "{",
        "}",
        "\u{2014} x AAAA\n",
    ];
    let valid: &[&[u8]] = &[&whole, &part, record.as_bytes(), continued.as_bytes()];
    drive("bundle", &Material { words, valid }, |mut data| {
        if let Ok(text) = std::str::from_utf8(data) {
            let _ = verify_proof(text, None);
            let _ = verify_consistency_proof(text, None);
        }
        // The result says nothing here: a changed bundle may even be valid without trusted keys.
        let _ = verify(&mut data, &Check::default(), &mut |_| Ok(()), &mut |_, _| ());
        Ok(())
    });
}

#[test]
fn notes() {
    let (_, note) = bundle_and_note();
    let words = &[
        "\n",
        "\n\n",
        "\u{2014} ",
        "a",
        "example.com/x",
        " ",
        "AAAAAAAA",
        "==",
        "+",
        "9",
        "\u{0}",
        "cosignature/v1",
    ];
    drive("note", &Material { words, valid: &[note.as_bytes()] }, |data| {
        let Ok(note) = proctor_ledger::note::Note::parse(data) else { return Ok(()) };
        let printed = note.to_string();
        if printed.as_bytes() != data {
            return Err(format!("a note was read but prints differently: {printed:?}").into());
        }
        if proctor_ledger::note::Note::parse(printed.as_bytes()).as_ref() != Ok(&note) {
            return Err(format!("a printed note reads differently: {printed:?}").into());
        }
        Ok(())
    });
}

#[test]
fn json_reads_back_as_it_was_printed() {
    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\\u0000",
        "\\ud800",
        "\\udc00",
        "\\n",
        "1",
        "-0",
        "1e400",
        "1.50",
        "0.1E+2",
        "01",
        "true",
        "false",
        "null",
        "nul",
        "\u{e9}",
        "\u{2028}",
        "{\"a\":1,\"a\":2}",
        " ",
        "\t",
    ];
    let valid: &[&[u8]] = &[
        br#"{"tool":"bash","args":{"command":"ls -l","n":[1,2.50,-3e10,null,true]},"x":"\u00e9\ud83d\ude00\n"}"#,
        br#"[[[[{"a":{"b":{"c":[]}}}]]],"",{}]"#,
    ];
    drive("json", &Material { words, valid }, |data| {
        let Ok(value) = Json::parse(data) else { return Ok(()) };
        let printed = value.to_string();
        match Json::parse(printed.as_bytes()) {
            Ok(again) if again == value => Ok(()),
            other => Err(format!("printed as {printed}, read back as {other:?}").into()),
        }
    });
}

#[test]
fn leaves_have_one_spelling() {
    use proctor_test_forges::TestLedger;
    let ledger = TestLedger::new(9, 30).unwrap();
    let leaves: Vec<Vec<u8>> = (0..30).map(|seq| ledger.envelope(seq).unwrap().to_leaf().unwrap()).collect();
    let valid: Vec<&[u8]> = leaves.iter().map(Vec::as_slice).collect();
    let words = &[
        "{",
        "}",
        "\"v\":1",
        ",",
        "\"id\":",
        "\"kind\":\"decision\"",
        "\"links\":[",
        "]",
        "\"time\":",
        "0",
        "-1",
        "9007199254740993",
        "\"once\":",
        "\"\"",
        "\"taints\":[\"a\"]",
        "\"amounts\":[]",
        " ",
        "\\u0041",
    ];
    drive("leaf", &Material { words, valid: &valid }, |data| {
        let Ok(envelope) = Envelope::from_leaf(data) else { return Ok(()) };
        match envelope.to_leaf() {
            Ok(leaf) if leaf == data => Ok(()),
            other => Err(format!("read, but written as {:?}", other.map(|leaf| shown(&leaf))).into()),
        }
    });
}

#[test]
fn gate_lines() {
    use proctor_door_gate::{Content, read_message};
    let words = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "null",
        "true",
        "-1",
        "1e400",
        "\"tool\":",
        "\"kind\":",
        "\"args\":{",
        "\"command\":",
        "\"ref\":",
        "\"session\":",
        "\"agent\":",
        "\"door\":\"x\"",
        "\"outcome\":{",
        "\"observation\":{",
        "\"decision_id\":",
        "\"ok\":",
        "\"result\":",
        "\"tokens\":",
        "\"cost_usd\":",
        "\"code\":",
        "\"data\":",
        "\\ud800",
        "\u{0}",
    ];
    let valid: &[&[u8]] = &[
        br#"{"tool":"bash","args":{"command":"ls -l"},"session":"s","agent":"a","ref":7}"#,
        br#"{"kind":"llm_call","model":"m","text":"t","tokens":3,"cost_usd":"0.5","metadata":{"a":[null]},"cwd":"/"}"#,
        br#"{"outcome":{"decision_id":"01890a5d-ac96-774b-bcce-b302099a8057","ok":false,"result":{"x":1},"tokens":9,"cost_usd":0.25}}"#,
        br#"{"observation":{"code":"note","data":["x"]},"session":"s"}"#,
    ];
    for line in valid {
        assert!(read_message(line, "gate").is_ok(), "{}", shown(line));
    }
    drive("gate line", &Material { words, valid }, |line| {
        match read_message(line, "gate") {
            Ok(message) => {
                if let Content::Action(action) = message.content {
                    assert_eq!(action.door, "gate", "the caller chose its door");
                }
            }
            Err(problem) => assert!(!problem.to_string().is_empty(), "a refusal without a reason"),
        }
        Ok(())
    });
}
