#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use proctor_core::digest::Digest;
use proptest::prelude::*;

use super::*;

/// The hash in another way: the bytes as hexadecimal text, from what the line says rather than from the entry.
fn reference_hash(line: &str) -> [u8; 32] {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let number = |name: &str| value[name].as_u64().unwrap();
    let array = |name: &str| match value.get(name) {
        Some(list) => {
            list.as_array().unwrap().iter().map(|byte| format!("{:02x}", byte.as_u64().unwrap())).collect()
        }
        None => String::new(),
    };
    let sized = |text: &str| format!("{:08x}{}", text.len(), hex(text));
    let text = |name: &str| value.get(name).map(|text| sized(text.as_str().unwrap())).unwrap_or_default();
    let event = NAMES.iter().position(|name| *name == value["event_type"]).unwrap();

    let mut digits = format!("{:016x}{:016x}{event:08x}", number("seq"), number("timestamp_ns"));
    digits += &[array("agent_id"), array("session_id"), array("previous_hash")].concat();
    digits += &hex(value["payload"].as_str().unwrap());
    digits += &[array("root_agent_id"), array("parent_agent_id")].concat();
    digits += &[text("team_id"), text("delegation_reason"), text("spawned_by_tool")].concat();
    if value.get("depth").is_some() {
        digits += &format!("{:08x}", number("depth"));
    }
    digits += &text("org_id");
    let findings =
        value.get("credential_findings").map(|list| list.as_array().unwrap().clone()).unwrap_or_default();
    if !findings.is_empty() || value.get("redacted_payload").is_some() {
        digits += &format!("{:08x}", findings.len());
        for finding in findings {
            let label = sized(finding["matched"].as_str().unwrap());
            digits += &format!("{:016x}{label}", finding["offset"].as_u64().unwrap());
        }
        digits += if value.get("redacted_payload").is_some() { "01" } else { "00" };
        digits += &text("redacted_payload");
    }
    digits += &[text("policy_doc_id"), text("decision_id")].concat();

    let bytes: Vec<u8> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
    *Digest::of(&bytes).as_bytes()
}

/// The names by number, as the protocol lists them.
const NAMES: [&str; 23] = [
    "ToolCallIntercepted",
    "PolicyViolation",
    "CredentialLeakBlocked",
    "ApprovalRequested",
    "ApprovalGranted",
    "ApprovalDenied",
    "BudgetLimitApproached",
    "BudgetLimitExceeded",
    "ApprovalTimedOut",
    "ApprovalRouted",
    "ApprovalEscalated",
    "AgentForceDeregistered",
    "MessageBlocked",
    "ToolDispatched",
    "A2ACallIntercepted",
    "A2AImpersonationAttempted",
    "SandboxStarted",
    "SandboxFilesystemBlocked",
    "SandboxCpuTimeout",
    "SandboxOomKilled",
    "SandboxTerminated",
    "SandboxHostFnRateLimited",
    "GovernanceMutation",
];

fn entry() -> impl Strategy<Value = Entry> {
    let text = || proptest::option::of("\\PC{0,12}");
    let id = || proptest::option::of(any::<[u8; 16]>());
    let finding = ("[A-Za-z]{1,12}", any::<u64>()).prop_map(|(kind, offset)| Finding::new(&kind, offset));
    let fixed = (any::<u64>(), 0..23u32, any::<[u8; 16]>(), any::<[u8; 16]>(), "\\{\"a\":\"\\PC{0,20}\"\\}");
    let lineage = (id(), id(), text(), text(), text(), proptest::option::of(any::<u32>()), text());
    let rest = (proptest::collection::vec(finding, 0..3), text(), text(), text());
    (fixed, lineage, rest).prop_map(|(fixed, lineage, rest)| {
        let mut entry =
            Entry::new(EventType::from_number(fixed.1).unwrap(), fixed.0, fixed.2, fixed.3, fixed.4);
        entry.root_agent_id = lineage.0;
        entry.parent_agent_id = lineage.1;
        entry.team_id = lineage.2;
        entry.delegation_reason = lineage.3;
        entry.spawned_by_tool = lineage.4;
        entry.depth = lineage.5;
        entry.org_id = lineage.6;
        entry.credential_findings = rest.0;
        entry.redacted_payload = rest.1;
        entry.policy_doc_id = rest.2;
        entry.decision_id = rest.3;
        entry
    })
}

fn sealed(entries: Vec<Entry>) -> Vec<Entry> {
    let mut chain = Chain::default();
    let mut out = Vec::new();
    for entry in entries {
        let sealed = chain.seal(entry).unwrap();
        chain.written(&sealed);
        out.push(sealed.entry);
    }
    out
}

fn log() -> impl Strategy<Value = Vec<Entry>> {
    proptest::collection::vec(entry(), 1..5).prop_map(sealed)
}

fn simple(count: u64) -> Vec<Entry> {
    sealed(
        (0..count)
            .map(|at| {
                Entry::new(EventType::ToolCallIntercepted, at, [1; 16], [2; 16], format!("{{\"at\":{at}}}"))
            })
            .collect(),
    )
}

fn verify<L: AsRef<[u8]>>(lines: impl IntoIterator<Item = L>) -> Outcome {
    let mut verifier = Verifier::default();
    for line in lines {
        verifier.line(line);
    }
    verifier.finish()
}

fn verify_entries<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Outcome {
    verify(entries.into_iter().map(Entry::to_line))
}

fn tampering(outcome: &Outcome) -> (u64, &Tampering) {
    let Outcome::Tampered { line, why, .. } = outcome else { panic!("{outcome:?}") };
    (*line, why)
}

/// A member that is an id, and one that is a text.
type Ids = fn(&mut Entry) -> &mut Option<[u8; 16]>;
type Text = fn(&mut Entry) -> Option<&mut String>;

/// Every entry that differs from this one in one byte of one hashed member.
fn changed(entry: &Entry) -> Vec<(String, Entry)> {
    let mut all: Vec<(String, Entry)> = Vec::new();
    let mut add = |name: String, change: &dyn Fn(&mut Entry)| {
        let mut other = entry.clone();
        change(&mut other);
        assert_ne!(other, *entry, "{name}");
        all.push((name, other));
    };
    for byte in 0..8 {
        add(format!("seq {byte}"), &|entry| entry.seq ^= 1 << (8 * byte));
        add(format!("timestamp_ns {byte}"), &|entry| entry.timestamp_ns ^= 1 << (8 * byte));
    }
    for byte in 0..16 {
        add(format!("agent_id {byte}"), &|entry| entry.agent_id[byte] ^= 1);
        add(format!("session_id {byte}"), &|entry| entry.session_id[byte] ^= 0x80);
    }
    for byte in 0..32 {
        add(format!("previous_hash {byte}"), &|entry| entry.previous_hash[byte] ^= 1);
        add(format!("entry_hash {byte}"), &|entry| entry.entry_hash[byte] ^= 1);
    }
    let number = (entry.event_type.number() + 1) % 23;
    add("event_type".to_owned(), &|entry| entry.event_type = EventType::from_number(number).unwrap());
    let ids: [Ids; 2] = [|entry| &mut entry.root_agent_id, |entry| &mut entry.parent_agent_id];
    for (index, id) in ids.into_iter().enumerate() {
        if id(&mut entry.clone()).is_some() {
            for byte in 0..16 {
                add(format!("id {index} {byte}"), &|entry| id(entry).as_mut().unwrap()[byte] ^= 1);
            }
        }
    }
    if entry.depth.is_some() {
        for byte in 0..4 {
            add(format!("depth {byte}"), &|entry| *entry.depth.as_mut().unwrap() ^= 1 << (8 * byte));
        }
    }
    let texts: [Text; 8] = [
        |entry| Some(&mut entry.payload),
        |entry| entry.team_id.as_mut(),
        |entry| entry.delegation_reason.as_mut(),
        |entry| entry.spawned_by_tool.as_mut(),
        |entry| entry.org_id.as_mut(),
        |entry| entry.redacted_payload.as_mut(),
        |entry| entry.policy_doc_id.as_mut(),
        |entry| entry.decision_id.as_mut(),
    ];
    for (index, text) in texts.into_iter().enumerate() {
        let length = text(&mut entry.clone()).map_or(0, |text| text.chars().count());
        for at in 0..length {
            add(format!("text {index} {at}"), &|entry| change_char(text(entry).unwrap(), at));
        }
    }
    for index in 0..entry.credential_findings.len() {
        for byte in 0..8 {
            add(format!("offset {index} {byte}"), &|entry| {
                entry.credential_findings[index].offset ^= 1 << (8 * byte);
            });
        }
        for at in 0..entry.credential_findings[index].matched.len() {
            add(format!("label {index} {at}"), &|entry| {
                change_char(&mut entry.credential_findings[index].matched, at);
            });
        }
        for at in 0..entry.credential_findings[index].kind.len() {
            add(format!("kind {index} {at}"), &|entry| {
                change_char(&mut entry.credential_findings[index].kind, at);
            });
        }
    }
    all
}

fn change_char(text: &mut String, at: usize) {
    *text = text
        .chars()
        .enumerate()
        .map(|(index, old)| match old {
            'x' if index == at => 'y',
            _ if index == at => 'x',
            _ => old,
        })
        .collect();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_hash_is_the_one_of_the_protocol(entry in entry(), seq in any::<u64>(), before in any::<[u8; 32]>()) {
        let entry = Entry { seq, previous_hash: before, ..entry };
        prop_assert_eq!(entry.hash(), reference_hash(&entry.to_line()));
    }

    #[test]
    fn a_line_says_the_whole_entry(entry in entry(), seq in any::<u64>(), hash in any::<[u8; 32]>()) {
        let entry = Entry { seq, entry_hash: hash, ..entry };
        let line = entry.to_line();
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(Entry::parse(&line), Ok(entry));
    }

    #[test]
    fn a_log_is_verified_as_it_was_written(log in log()) {
        prop_assert_eq!(verify_entries(&log), Outcome::Verified { entries: log.len() as u64 });
    }

    #[test]
    fn every_change_of_one_byte_is_found_where_it_is(log in log(), at in any::<prop::sample::Index>()) {
        let at = at.index(log.len());
        for (name, entry) in changed(&log[at]) {
            let mut other = log.clone();
            other[at] = entry;
            let outcome = verify_entries(&other);
            let (line, _) = tampering(&outcome);
            prop_assert_eq!(line, at as u64 + 1, "{}", name);
        }
    }

    /// Bit flips anywhere in a file are detected, and no line panics.
    #[test]
    fn no_flipped_bit_is_verified(log in log(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut bytes: Vec<u8> = log.iter().flat_map(|entry| (entry.to_line() + "\n").into_bytes()).collect();
        // The last line break may be anything that is blank.
        let at = at.index(bytes.len() - 1);
        bytes[at] ^= 1 << bit;
        let outcome = verify(bytes.split_inclusive(|byte| *byte == b'\n'));
        // A list with a blank in it and a text with another escape say the same; anything else does not.
        let same = || {
            let entries = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(Entry::parse);
            entries.collect::<Result<Vec<_>, _>>().is_ok_and(|entries| entries == log)
        };
        prop_assert!(!matches!(outcome, Outcome::Verified { .. }) || same(), "byte {} bit {}", at, bit);
    }

    #[test]
    fn any_bytes_are_read_without_panic(lines in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..5)) {
        verify(&lines);
    }
}

#[test]
fn event_types_have_the_numbers_and_names_of_the_protocol() {
    assert_eq!(EventType::ALL.len(), NAMES.len());
    for ((number, name), event) in (0..).zip(NAMES).zip(EventType::ALL) {
        assert_eq!((event.number(), event.name()), (number, name));
        assert_eq!(EventType::from_name(name), Some(*event));
        assert_eq!(EventType::from_number(number), Some(*event));
        assert_eq!(event.to_string(), name);
    }
    assert_eq!(EventType::from_name("toolcallintercepted"), None);
    assert_eq!(EventType::from_number(23), None);
}

#[test]
fn a_removed_line_breaks_the_link() {
    let log = simple(4);
    let outcome = verify_entries([&log[0], &log[2], &log[3]]);
    let expected = Tampering::Link { expected: log[0].entry_hash, stated: log[1].entry_hash };
    assert_eq!(tampering(&outcome), (2, &expected));
    assert!(matches!(outcome, Outcome::Tampered { seq: Some(2), entries: 1, .. }));
}

#[test]
fn moved_repeated_and_foreign_lines_are_tampering() {
    let log = simple(4);
    for order in [[0, 2, 1, 3], [0, 1, 1, 2], [1, 0, 2, 3]] {
        let outcome = verify_entries(order.map(|at| &log[at]));
        assert!(matches!(tampering(&outcome).1, Tampering::Link { .. }), "{order:?}");
    }
    // Links that fit, with a sequence that repeats or goes back: the released verifier accepts these.
    for (seq, after) in [(1, 1), (0, 1)] {
        let mut chain = Chain::after(&log[1]);
        chain.next_seq = Some(seq);
        let odd = chain.seal(log[2].clone()).unwrap().entry;
        let outcome = verify_entries([&log[0], &log[1], &odd]);
        assert_eq!(tampering(&outcome), (3, &Tampering::Order { seq, after }));
    }
}

#[test]
fn what_was_lost_before_it_was_written_is_a_gap() {
    let mut chain = Chain::default();
    let mut lines = Vec::new();
    for (seq, entry) in (0..).zip(simple(10)) {
        if [2, 3, 6].contains(&seq) {
            chain.lost();
        } else {
            let sealed = chain.seal(entry).unwrap();
            lines.push(sealed.line.clone());
            chain.written(&sealed);
        }
    }
    let gaps = Gaps { count: 2, missing: 3, listed: vec![(2, 3), (6, 6)] };
    assert_eq!(verify(lines), Outcome::Incomplete { entries: 7, start: None, gaps, truncated: None });
}

#[test]
fn gaps_are_counted_without_end_and_listed_up_to_a_limit() {
    let mut chain = Chain::default();
    let mut verifier = Verifier::default();
    for entry in simple(100) {
        let sealed = chain.seal(entry).unwrap();
        assert!(verifier.line(&sealed.line));
        chain.written(&sealed);
        chain.lost();
    }
    let Outcome::Incomplete { gaps, .. } = verifier.finish() else { panic!("there are gaps") };
    assert_eq!((gaps.count, gaps.missing, gaps.listed.len()), (99, 99, MAX_LISTED_GAPS));
}

#[test]
fn a_log_that_begins_elsewhere_is_incomplete() {
    let log = simple(5);
    let start = Start { line: 1, seq: 2, previous_hash: log[1].entry_hash };
    let outcome =
        Outcome::Incomplete { entries: 3, start: Some(start), gaps: Gaps::default(), truncated: None };
    assert_eq!(verify_entries(&log[2..]), outcome);
    // Lost at the beginning: no hash before it, but not the first sequence either.
    let mut chain = Chain::default();
    chain.lost();
    let late = chain.seal(log[0].clone()).unwrap().line;
    assert!(matches!(verify([late]), Outcome::Incomplete { start: Some(Start { seq: 1, .. }), .. }));
    // The first sequence, after something.
    let mut chain = Chain::after(&log[1]);
    chain.next_seq = Some(0);
    let odd = chain.seal(log[0].clone()).unwrap().line;
    assert!(matches!(verify([odd]), Outcome::Incomplete { start: Some(Start { seq: 0, .. }), .. }));
}

#[test]
fn a_last_line_that_was_cut_off_is_incomplete_wherever_it_was_cut() {
    let [first, second] = <[Entry; 2]>::try_from(simple(2)).unwrap();
    let (first, second) = (first.to_line(), second.to_line());
    for cut in 1..second.len() {
        let outcome = verify([&first, &second[..cut]]);
        let Outcome::Incomplete { entries: 1, start: None, truncated: Some(truncated), .. } = outcome else {
            panic!("{cut}: {outcome:?}")
        };
        assert_eq!(truncated.line, 2);
        // Blank lines after it change nothing.
        assert!(matches!(verify([&first, &second[..cut], "", " "]), Outcome::Incomplete { .. }));
        // In the middle it is no truncated write.
        let outcome = verify([&second[..cut], &first]);
        assert!(matches!(tampering(&outcome), (1, Tampering::Unreadable(EntryError::NotJson(_)))));
    }
    assert!(matches!(
        verify([first.as_bytes(), b"\xff\xfe"]),
        Outcome::Incomplete { truncated: Some(_), .. }
    ));
}

/// Manipulations that no chain can show; the documentation says so.
#[test]
fn a_log_that_was_cut_between_lines_is_verified() {
    let log = simple(5);
    assert_eq!(verify_entries(&log[..3]), Outcome::Verified { entries: 3 });
    assert_eq!(verify([""; 0]), Outcome::Verified { entries: 0 });
}

/// Members that this hash does not fix; the documentation says so.
#[test]
fn the_same_bytes_under_another_name_have_the_same_hash() {
    let mut entry = simple(1).remove(0);
    entry.root_agent_id = Some([7; 16]);
    let hash = entry.hash();
    entry.parent_agent_id = entry.root_agent_id.take();
    assert_eq!(entry.hash(), hash);
}

#[test]
fn blank_lines_and_line_breaks_do_not_count() {
    let [first, second] = <[Entry; 2]>::try_from(simple(2)).unwrap();
    let lines = ["\n".to_owned(), first.to_line() + "\r\n", "  \n".to_owned(), second.to_line() + "\n"];
    assert_eq!(verify(&lines), Outcome::Verified { entries: 2 });
}

#[test]
fn whole_json_that_is_no_entry_is_tampering_even_at_the_end() {
    let line = simple(1)[0].to_line();
    let with = |from: &str, to: &str| {
        assert!(line.contains(from), "{from}");
        line.replace(from, to)
    };
    let cases = [
        (with("{\"seq\"", "{\"note\":1,\"seq\""), "unknown field `note`"),
        (with("{\"seq\"", "{\"seq\":0,\"seq\""), "duplicate field `seq`"),
        (with("\"seq\":0,", ""), "missing field `seq`"),
        (with("\"seq\":0", "\"seq\":-1"), "invalid value: integer `-1`"),
        (with("\"seq\":0", "\"seq\":0.0"), "invalid type: floating point `0.0`"),
        (with("\"agent_id\":[1,", "\"agent_id\":["), "invalid length 15"),
        (with("\"agent_id\":[1,", "\"agent_id\":[256,"), "invalid value: integer `256`"),
        (with("ToolCallIntercepted", "Nothing"), "the event type `Nothing` is not known"),
        ("[0]".to_owned(), "it is a list"),
        ("7".to_owned(), "invalid type: integer `7`"),
    ];
    for (line, message) in cases {
        let outcome = verify([&line]);
        let (1, Tampering::Unreadable(EntryError::NotAnEntry(text))) = tampering(&outcome) else {
            panic!("{line}: {outcome:?}")
        };
        assert!(text.starts_with(message), "{text}");
    }
}

#[test]
fn null_is_the_same_as_absent() {
    let line = simple(1)[0].to_line().replace('}', "");
    let line = format!("{line},\"team_id\":null,\"redacted_payload\":null}}")
        .replace("\"{\\\"at\\\":0\"", "\"{\\\"at\\\":0}\"");
    assert_eq!(verify([line]), Outcome::Verified { entries: 1 });
}

#[test]
fn lines_have_a_limit_when_read_and_when_written() {
    let payload =
        |length: usize| Entry::new(EventType::ToolDispatched, 0, [0; 16], [0; 16], "a".repeat(length));
    let around = Chain::default().seal(payload(1000)).unwrap().line.len() - 1000;
    // Hashes have one to three digits a byte, so look for the limit from above.
    let mut length = MAX_LINE_BYTES - around + 60;
    let longest = loop {
        match Chain::default().seal(payload(length)) {
            Ok(sealed) => break sealed.line,
            Err(error) => assert!(matches!(error, SealError::TooLong { bytes } if bytes > MAX_LINE_BYTES)),
        }
        length -= 20;
    };
    assert!(longest.len() > MAX_LINE_BYTES - 200);
    assert_eq!(verify([&longest]), Outcome::Verified { entries: 1 });
    let outcome = verify([vec![b' '; MAX_LINE_BYTES + 1]]);
    assert_eq!(tampering(&outcome), (1, &Tampering::Unreadable(EntryError::TooLong)));
}

#[test]
fn a_log_ends_with_the_last_sequence() {
    let mut last = simple(1).remove(0);
    last.seq = u64::MAX;
    let mut chain = Chain::after(&last);
    assert_eq!(chain.next_seq(), None);
    assert_eq!(chain.seal(last.clone()), Err(SealError::Full));
    chain.lost();
    assert_eq!(chain.seal(last.clone()), Err(SealError::Full));
    // The widest gap there can be.
    let first = simple(1).remove(0);
    let mut chain = Chain::after(&first);
    chain.next_seq = Some(u64::MAX);
    let last = chain.seal(last).unwrap().entry;
    let Outcome::Incomplete { gaps, .. } = verify_entries([&first, &last]) else { panic!("a gap") };
    assert_eq!((gaps.missing, gaps.listed), (u64::MAX - 1, vec![(1, u64::MAX - 1)]));
}

#[test]
fn the_kind_of_a_finding_must_be_the_one_in_its_label() {
    let mut entry = simple(1).remove(0);
    entry.credential_findings = vec![Finding::new("OpenAiKey", 3), Finding::new("GitHubPat", 9)];
    let mut sealed = Chain::default().seal(entry).unwrap().entry;
    assert_eq!(verify_entries([&sealed]), Outcome::Verified { entries: 1 });
    sealed.credential_findings[1].kind = "EmailAddress".to_owned();
    assert_eq!(sealed.hash(), sealed.entry_hash, "the hash does not cover it");
    let outcome = verify_entries([&sealed]);
    assert!(matches!(tampering(&outcome), (1, Tampering::Label { index: 1, .. })));
    assert_eq!(Chain::default().seal(sealed), Err(SealError::Label { index: 1 }));
}

#[test]
fn after_tampering_nothing_more_is_said() {
    let log = simple(3);
    let mut verifier = Verifier::default();
    assert!(verifier.line(log[0].to_line()));
    assert!(!verifier.line("{}"));
    assert!(!verifier.line(log[1].to_line()));
    assert_eq!(verifier.extent(), Some(Extent { first_seq: 0, last_seq: 0, head: log[0].entry_hash }));
    assert_eq!(verifier.chain(), Chain::after(&log[0]));
    assert!(matches!(verifier.finish(), Outcome::Tampered { line: 2, seq: None, entries: 1, .. }));
}
