//! Tests of answers from the owner.

use super::*;

fn read(text: &str) -> Decided {
    decided(&Json::parse(text.as_bytes()).unwrap())
}

const ID: &str = "01890000-0000-7000-8000-000000000000";

#[test]
fn only_a_complete_recorded_answer_lets_through() {
    let good = read(&format!(
        r#"{{"decision":"modify","decision_id":"{ID}","seq":7,"rule":"r","reason":"x","changes":[{{"path":"$.args.a","replacement":1}}]}}"#
    ));
    assert_eq!(good.record.effect, Effect::Modify);
    assert_eq!(good.record.record.map(|(_, sequence)| sequence), Some(7));
    assert_eq!(good.changes.len(), 1);
    for bad in [
        "{}".to_owned(),
        r#"{"decision":"allow"}"#.to_owned(),
        format!(r#"{{"decision":"allow","decision_id":"{ID}"}}"#),
        r#"{"decision":"allow","decision_id":"x","seq":1}"#.to_owned(),
        format!(r#"{{"decision":"yes","decision_id":"{ID}","seq":7}}"#),
        format!(r#"{{"decision":"modify","decision_id":"{ID}","seq":7,"changes":[{{"path":"$.args.a"}}]}}"#),
    ] {
        assert_eq!(read(&bad).record.effect, Effect::Deny, "{bad}");
    }
}

#[test]
fn answers_without_a_number_belong_to_the_oldest_request() {
    let waiting = Waiting::default();
    let (first, mut first_answer) = oneshot::channel();
    let (second, mut second_answer) = oneshot::channel();
    assert_eq!((waiting.add(first), waiting.add(second)), (Some(0), Some(1)));
    assert!(waiting.settle(Json::object().with("ref", 1u8)));
    assert!(second_answer.try_recv().is_ok() && first_answer.try_recv().is_err());
    assert!(waiting.settle(Json::object()));
    assert!(first_answer.try_recv().is_ok());
    assert!(!waiting.settle(Json::object()) && !waiting.settle(Json::object().with("ref", 9u8)));
    waiting.close();
    assert_eq!(waiting.add(oneshot::channel().0), None);
}

#[test]
fn what_is_not_recorded_is_an_error() {
    let answer = |text: &str| sequence(&Json::parse(text.as_bytes()).unwrap());
    assert_eq!(answer(r#"{"recorded":true,"seq":4}"#).unwrap(), 4);
    assert_eq!(answer(r#"{"recorded":false,"error":"full"}"#).unwrap_err().to_string(), "full");
    assert!(answer("{}").is_err());
}
