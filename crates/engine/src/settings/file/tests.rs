use super::*;

use std::net::SocketAddr;

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
struct Sample {
    agent: Option<String>,
    mode: Option<Mode>,
    #[serde(default)]
    gate: Gate,
    tls: Option<Tls>,
    #[serde(default)]
    token: Vec<Token>,
    #[serde(default)]
    agents: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Process,
    Power,
}

#[derive(Debug, Default, Deserialize)]
struct Gate {
    answer_ms: Option<u64>,
    lenient: Option<bool>,
    listen: Option<SocketAddr>,
    events: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Tls {
    certificate: std::path::PathBuf,
    key: std::path::PathBuf,
}

#[derive(Debug, Deserialize)]
struct Token {
    name: String,
}

fn mistakes(text: &str) -> Vec<String> {
    read::<Sample>(text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_without_mistakes_is_read() {
    let text = "agent = \"x\"\nmode = \"power\"\ngate.answer_ms = 0x10\ngate.lenient = true\ngate.listen = \"127.0.0.1:80\"\ngate.events = [\"a\"]\nagents.one = \"nop\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"\n[[token]]\nname = \"t\"\n";
    let read = read::<Sample>(text).unwrap();
    assert!(matches!(read.mode, Some(Mode::Power)) && read.agent.as_deref() == Some("x"), "{read:?}");
    assert_eq!((read.gate.answer_ms, read.gate.lenient), (Some(16), Some(true)));
    assert_eq!(read.gate.listen.map(|address| address.port()), Some(80));
    assert_eq!(read.gate.events.map(|events| events.len()), Some(1));
    assert!(read.tls.is_some_and(|tls| tls.key.as_os_str() == "k" && tls.certificate.as_os_str() == "c"));
    assert_eq!((read.token[0].name.as_str(), read.agents["one"].as_str()), ("t", "nop"));
    assert!(
        super::read::<Sample>("mode = \"process\"")
            .is_ok_and(|read| matches!(read.mode, Some(Mode::Process)))
    );
}

#[test]
fn every_mistake_has_a_position_a_key_and_a_remedy() {
    let text = r#"agnet = "x"
agent = 5
mode = "powr"
colour = "red"
agents = {one = 1, two = "nop"}

[gate]
answer_ms = "soon"
lenient = 1
listen = "here"
events = ["a", 2]
anser_ms = -1

[tls]
key = false
"#;
    assert_eq!(
        mistakes(text),
        [
            "1:1: unknown key `agnet`; did you mean `agent`?",
            "2:9: `agent`: expected a string, found a whole number",
            "3:8: unknown value `powr` for `mode`; did you mean `power`?",
            "4:1: unknown key `colour`; known are agent, mode, gate, tls, token, agents",
            "5:17: `agents.one`: expected a string, found a whole number",
            "8:13: `gate.answer_ms`: expected a whole number, found a string",
            "9:11: `gate.lenient`: expected `true` or `false`, found a whole number",
            "10:10: `gate.listen`: invalid socket address syntax",
            "11:16: `gate.events[1]`: expected a string, found a whole number",
            "12:1: unknown key `anser_ms` in `gate`; did you mean `answer_ms`?",
            "14:1: `tls` needs `certificate`",
            "15:7: `tls.key`: expected a string, found a boolean",
        ]
    );
}

#[test]
fn a_value_that_cannot_be_read_is_not_called_missing() {
    assert_eq!(
        mistakes("[[token]]\nname = 5\n"),
        ["2:8: `token[0].name`: expected a string, found a whole number"]
    );
    assert_eq!(mistakes("gate = 5\n"), ["1:8: `gate`: expected a table, found a whole number"]);
    assert_eq!(mistakes("gate.answer_ms = -5\n"), ["1:18: `gate.answer_ms`: -5 is out of range"]);
}

#[test]
fn what_is_no_toml_is_said_with_all_its_places() {
    let found = mistakes("agent = \nmode = \"x\n");
    assert!(found.len() >= 2 && found[0].starts_with("1:") && found[1].starts_with("2:"), "{found:?}");
}

#[test]
fn mistakes_are_bounded() {
    let many: String = (0..1000).map(|index| format!("key{index} = 1\n")).collect();
    assert_eq!(mistakes(&many).len(), MAX_MISTAKES);
    let many: String = (0..1000).map(|index| format!("a{index} = 1\n")).collect();
    assert_eq!(mistakes(&format!("[agents]\n{many}")).len(), MAX_MISTAKES);
}
