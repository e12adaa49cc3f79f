//! Laws of reading and writing, on messages near valid ones and on anything else.

use proctor_core::json::Json;
use proctor_wire::atp::{Conversation, Event, ReadError, Request, Response, Source, Strictness};
use proptest::prelude::*;

use super::mutation::{Kind, any_message};

fn read(kind: Kind, json: Json, strictness: Strictness) -> Result<Json, ReadError> {
    match kind {
        Kind::Request => Request::read(json, strictness).map(|read| read.message.into_json()),
        Kind::Response => Response::read(json, strictness).map(|read| read.message.into_json()),
        Kind::Event => Event::read(json, strictness).map(|read| read.message.into_json()),
    }
}

/// Whether `after` is `before` without some members that are `null`: the only normalisation.
fn is_without_nulls(before: &Json, after: &Json) -> bool {
    match (before, after) {
        (Json::Object(before), Json::Object(after)) => {
            let mut after = after.iter().peekable();
            before.iter().all(|(name, value)| match after.peek() {
                Some((next, kept)) if next == name => {
                    after.next();
                    is_without_nulls(value, kept)
                }
                _ => value.is_null(),
            }) && after.next().is_none()
        }
        (Json::Array(before), Json::Array(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).all(|(one, other)| is_without_nulls(one, other))
        }
        _ => before == after,
    }
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        "\\PC{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let name = prop_oneof![
            prop::sample::select(vec![
                "version",
                "task_id",
                "task",
                "status",
                "event_type",
                "payload",
                "artifacts",
                "metrics",
                "type",
                "path"
            ])
            .prop_map(str::to_owned),
            "\\PC{0,4}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::btree_map(name, inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reading_and_writing_changes_nothing_but_nulls((kind, json) in any_message()) {
        for strictness in [Strictness::Lenient, Strictness::Strict] {
            let Ok(written) = read(kind, json.clone(), strictness) else { continue };
            prop_assert!(is_without_nulls(&json, &written), "{} became {}", json, written);
            prop_assert_eq!(&Json::parse(written.to_string().as_bytes()).unwrap(), &written);
            let again = read(kind, written.clone(), strictness);
            prop_assert_eq!(again.ok(), Some(written), "normalisation happens once");
        }
    }

    #[test]
    fn messages_never_panic((_, json) in any_message()) {
        if let Ok(valid) = Request::read(json.clone(), Strictness::Lenient) {
            let message = valid.message;
            let _ = (message.constraints(), message.context(), message.timeout_seconds(), format!("{message:?}"));
            prop_assert!(message.expected_artifacts().count() <= 1_000);
        }
        if let Ok(valid) = Response::read(json.clone(), Strictness::Strict) {
            let _ = (valid.message.artifacts().count(), valid.message.metrics(), valid.message.error_code());
        }
        if let Ok(valid) = Event::read(json.clone(), Strictness::Strict) {
            let _ = (valid.message.payload().to_json(), valid.message.time());
        }
    }

    #[test]
    fn any_json_has_a_verdict(json in any_json()) {
        for kind in [Kind::Request, Kind::Response, Kind::Event] {
            for strictness in [Strictness::Lenient, Strictness::Strict] {
                if let Err(error) = read(kind, json.clone(), strictness) {
                    prop_assert!(error.to_string().contains('$'), "{}", error);
                }
            }
        }
    }

    #[test]
    fn any_bytes_have_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Request::parse(&bytes, Strictness::Lenient);
        let _ = Response::parse(&bytes, Strictness::Strict);
        let _ = Event::parse(&bytes, Strictness::Lenient);
        let mut conversation = Conversation::new("t");
        conversation.feed(Source::StderrLine, &bytes);
        conversation.feed(Source::Message, &bytes);
        conversation.feed_output(&bytes);
        let transcript = conversation.finish();
        prop_assert!(transcript.response.is_some() || !transcript.problems.is_empty());
    }
}
