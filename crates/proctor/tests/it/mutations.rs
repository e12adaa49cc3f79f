//! A bundle that was changed in any way is refused: 10,000 changes to a real, witnessed ledger, none of them undetected.

use std::collections::BTreeMap;

use crate::support::{Folder, Gate, count, lines, seed, text};
use proctor_core::json::Json;
use proctor_core::random::SeededRandomness;
use proctor_ledger::bundle::{Check, HEADER, Signer, verify};
use proctor_ledger::keys::Trust;
use proctor_test_forges::mutate_with;

const POLICY: &str = r#"
version: "1"
default: deny
tools:
  shell: { allow: true }
rules:
  - { id: asked, when: action.tool == "deploy", then: ask, expires: 1h }
"#;

/// A ledger with some of everything under a witnessed checkpoint.
struct Exported {
    folder: Folder,
    bundle: Vec<u8>,
    /// An older checkpoint of the same ledger, as genuine as the last one.
    older: String,
    trust: Trust,
    size: u64,
}

fn exported() -> Exported {
    let folder = Folder::with_approver(POLICY);
    let witness = folder.dir.path().join("witness");
    // The gate owns the ledger meanwhile, as it does in real life.
    let cosign = |folder: &Folder| {
        let mut gate = Gate::start(folder, &[]);
        gate.ask(r#"{"tool":"unknown"}"#);
        let cosigned =
            folder.json(&["audit", "witness", "--witness", witness.to_str().unwrap(), "--json"]).remove(0);
        gate.end();
        cosigned
    };
    let gate = |folder: &Folder, from: usize, to: usize| {
        let input: String = (from..to)
            .map(|index| match index % 10 {
                0 => "not JSON\n".to_owned(),
                1 => format!("{{\"tool\":\"deploy\",\"args\":{{\"n\":{index}}},\"session\":\"s{}\"}}\n", index % 4),
                2 => format!("{{\"tool\":\"unknown\",\"args\":{{\"n\":{index}}},\"agent\":\"a{}\"}}\n", index % 3),
                3 => format!("{{\"observation\":{{\"code\":\"said\",\"data\":{{\"n\":{index}}}}},\"session\":\"s1\"}}\n"),
                _ => format!("{{\"tool\":\"bash\",\"args\":{{\"command\":\"ls {index}\"}},\"session\":\"s{}\"}}\n", index % 4),
            })
            .collect();
        let output = folder.run_with(&["gate"], &input);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        lines(&output)
    };
    let answers = gate(&folder, 0, 60);
    let asked = answers.iter().find(|answer| text(answer, "decision") == "ask").unwrap();
    assert!(folder.run(&["approve", "allow", text(asked, "approval_id")]).status.success());
    cosign(&folder);
    let file = folder.path("older.bundle");
    assert!(folder.run(&["audit", "export", "--output", file.to_str().unwrap()]).status.success());
    let older = note_of(&std::fs::read(file).unwrap());
    gate(&folder, 60, 120);
    let denied = folder.json(&["audit", "tail", "--json", "--kind", "decision", "-n", "5"]);
    let erased = text(&denied[0], "id").to_owned();
    assert!(folder.run(&["audit", "erase", &erased, "--reason", "asked for"]).status.success());
    let cosigned = cosign(&folder);
    let file = folder.path("whole.bundle");
    let report = folder.json(&["audit", "export", "--output", file.to_str().unwrap(), "--json"]).remove(0);
    let size = report.get("size").and_then(Json::as_u64).unwrap();
    let trust_text = format!("log {}\nwitness {}\n", text(&cosigned, "ledger"), text(&cosigned, "witness"));
    folder.write("trust", &trust_text);
    Exported { bundle: std::fs::read(file).unwrap(), older, trust: trust_text.parse().unwrap(), size, folder }
}

/// The checkpoint of a bundle: the payload of its first frame.
fn note_of(bundle: &[u8]) -> String {
    let frame = bundle.strip_prefix(HEADER.as_bytes()).unwrap();
    let length = u32::from_be_bytes(frame[1..5].try_into().unwrap()) as usize;
    String::from_utf8(frame[5..5 + length].to_vec()).unwrap()
}

#[test]
fn no_change_goes_undetected() {
    let ledger = exported();
    let seed = seed();
    let random = SeededRandomness::new(seed);
    let check = Check { trust: Some(&ledger.trust), at_least_size: Some(ledger.size) };
    let verified = |bytes: &[u8]| verify(&mut &*bytes, &check, &mut |_| Ok(()), &mut |_, _| ());
    let report = verified(&ledger.bundle).unwrap();
    assert!(
        matches!(&report.signer, Signer::Trusted { witnesses, .. } if witnesses.len() == 1),
        "{report:?}"
    );
    assert_eq!(report.erased, 1);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut through_the_program = 0;
    let wanted = count(10_000);
    let mut made = 0;
    while made < wanted {
        let (bytes, kind) = mutate_with(&ledger.bundle, std::slice::from_ref(&ledger.older), &random);
        if bytes == ledger.bundle {
            continue;
        }
        made += 1;
        *kinds.entry(kind).or_default() += 1;
        assert!(verified(&bytes).is_err(), "change {made} of seed {seed} (`{kind}`) went undetected");
        if made.is_multiple_of(wanted / 20) && through_the_program < 20 {
            through_the_program += 1;
            refused_by_the_program(&ledger, &bytes, kind);
        }
    }
    assert_eq!(through_the_program, 20);
    for (kind, number) in kinds {
        println!("{number:>6}  {kind}");
    }
    println!("{made} changes, 0 undetected");
}

fn refused_by_the_program(ledger: &Exported, bytes: &[u8], kind: &str) {
    let file = ledger.folder.path("changed.bundle");
    std::fs::write(&file, bytes).unwrap();
    let size = ledger.size.to_string();
    let output = ledger.folder.run(&[
        "audit",
        "verify",
        file.to_str().unwrap(),
        "--trust",
        "trust",
        "--at-least",
        &size,
    ]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(12), "`{kind}`: {said}");
    assert!(output.stdout.is_empty() && !said.is_empty(), "`{kind}`: {said}");
}

#[test]
fn the_unchanged_bundle_is_verified_and_an_older_one_is_not_enough() {
    let ledger = exported();
    let file = ledger.folder.path("whole.bundle");
    let size = ledger.size.to_string();
    let verify = |bundle: &std::path::Path, more: &[&str]| {
        let mut args = vec!["audit", "verify", bundle.to_str().unwrap(), "--trust", "trust"];
        args.extend(more);
        let output = ledger.folder.run(&args);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    // One body is erased, so one decision cannot be derived again; everything else holds.
    assert_eq!(verify(&file, &["--at-least", &size]), (13, String::new()));
    assert_eq!(verify(&file, &["--at-least", &size, "--no-derivation"]), (0, String::new()));
    let older = ledger.folder.path("older.bundle");
    assert_eq!(verify(&older, &[]), (0, String::new()));
    let (code, said) = verify(&older, &["--at-least", &size]);
    assert_eq!(code, 12, "{said}");
}
