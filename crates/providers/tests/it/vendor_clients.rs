//! The server that stands in for the vendors, seen by each vendor's own client.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::double;

/// Number of checks on the Python side: one that gets lost there must not go unnoticed.
const CHECKS: usize = 22;

#[test]
fn the_vendors_own_clients_take_the_double_for_the_vendor() {
    let double = double::Double::start();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let prepared = Command::new(here.join("../../scripts/python-vendors"))
        .stderr(Stdio::inherit())
        .output()
        .expect("scripts/python-vendors can be started");
    assert!(prepared.status.success(), "scripts/python-vendors failed: the vendors' clients are needed");
    let said = String::from_utf8(prepared.stdout).unwrap();
    let python = said.lines().last().expect("scripts/python-vendors names the Python executable");

    let mut clients = Command::new(python);
    clients
        .arg(here.join("tests/it/vendor_clients.py"))
        .args([&format!("http://{}", double.address()), double::KEY])
        .env("PYTHONDONTWRITEBYTECODE", "1");
    // The clients would take keys, addresses and settings from there.
    for (name, _) in std::env::vars() {
        if ["OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "OLLAMA_"]
            .iter()
            .any(|vendor| name.starts_with(vendor))
        {
            clients.env_remove(name);
        }
    }
    let output = clients.output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(report.contains(&format!("{CHECKS} of {CHECKS} passed")), "{report}");
}
