use super::*;

const EVENT: &str = r#"{"version":"1.0","task_id":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2025-01-21T10:30:45Z","sequence":0,"event_type":"progress","payload":{}}"#;

fn events(text: &str) -> Report {
    validate(Kind::Event, text.as_bytes(), Strictness::Lenient)
}

#[test]
fn lines_are_told_from_one_message_over_many_lines() {
    let pretty = EVENT.replace(",\"", ",\n\"");
    assert_eq!(events(&pretty).verdict(), "valid");
    let broken = pretty.replace(":0,", ":,");
    assert_eq!(events(&broken).lines().len(), 1);
    assert!(events(&broken).reported[0].line.is_none());
    let two = format!("\n{EVENT}\r\n\n{EVENT}\n");
    assert_eq!(events(&two).verdict(), "2 events: 2 valid, 0 valid with warnings, 0 invalid");
    assert_eq!(events(&format!("{EVENT}\n")).verdict(), "valid");
}

#[test]
fn findings_of_lines_carry_the_number_of_the_line() {
    let without_zone = EVENT.replace("45Z", "45");
    let report = events(&format!("{EVENT}\n{without_zone}\n\n{{\"a\"\n{{}}\n"));
    assert_eq!(report.verdict(), "4 events: 1 valid, 1 valid with warnings, 2 invalid");
    let lines = report.lines();
    assert_eq!(lines[0], "line 2: warning: $.timestamp: time has no zone, UTC is assumed");
    assert!(lines[1].starts_with("line 4: invalid: $: message is not valid JSON"), "{lines:?}");
    assert!(
        lines.contains(&"line 5: invalid: $.task_id: required member is missing".to_owned()),
        "{lines:?}"
    );
    let json = report.to_json().to_string();
    assert!(json.starts_with(r#"{"valid":false,"messages":4,"valid_with_warnings":1,"invalid":2,"problems":[{"line":4,"path":"$""#), "{json}");
    assert!(json.contains(r#""kind":"time_without_zone""#), "{json}");
}

#[test]
fn a_file_with_two_requests_is_invalid() {
    let report = validate(Kind::Request, b"{}\n{}", Strictness::Lenient);
    assert_eq!((report.messages, report.invalid), (1, 1));
}

#[test]
fn floods_are_counted_and_not_listed() {
    let report = events(&"{}\n".repeat(MAX_REPORTED + 2));
    assert_eq!((report.invalid, report.reported.len()), (MAX_REPORTED + 2, MAX_REPORTED));
    assert_eq!(report.lines().last().unwrap(), "and 2 more messages with findings");
    let report = events(&format!("{EVENT}\n").repeat(MAX_EVENTS + 1));
    assert_eq!((report.messages, report.invalid, report.is_valid()), (MAX_EVENTS, 0, false));
    assert!(report.lines().last().unwrap().starts_with("invalid: more than 100000 events"));
}
