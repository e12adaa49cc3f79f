//! The document's own messages.

use proctor_core::json::Json;
use proctor_wire::atp::{Event, Payload, Request, Response, Strictness, WarningKind};

use super::examples::{ERROR_RESPONSE, REQUEST, RESPONSE, events};

const BOTH: [Strictness; 2] = [Strictness::Lenient, Strictness::Strict];

#[test]
fn the_request_is_valid_in_both_modes() {
    for strictness in BOTH {
        let read = Request::parse(REQUEST.as_bytes(), strictness).unwrap();
        assert!(read.warnings.is_empty());
        assert_eq!(read.message.constraints().budget_usd.unwrap().literal(), "1.0");
        assert_eq!(read.message.context().environment, [("API_KEY", "***")]);
    }
}

#[test]
fn the_response_is_valid_and_its_mismatch_is_a_warning() {
    for strictness in BOTH {
        let read = Response::parse(RESPONSE.as_bytes(), strictness).unwrap();
        let counts: Vec<(WarningKind, u64)> = read.warnings.counts().collect();
        assert_eq!(counts, [(WarningKind::SizeMismatch, 1), (WarningKind::HashMismatch, 1)]);
        assert_eq!(read.message.artifacts().count(), 3);
        assert_eq!(read.message.metrics().llm_calls, Some(25));
        assert_eq!(read.message.error(), None);
    }
    for strictness in BOTH {
        let read = Response::parse(ERROR_RESPONSE.as_bytes(), strictness).unwrap();
        assert!(read.warnings.is_empty());
        assert_eq!(read.message.error_code().unwrap().as_str(), "TOOL_NOT_FOUND");
    }
}

#[test]
fn the_events_are_valid_and_typed() {
    for text in events() {
        for strictness in BOTH {
            let read = Event::parse(text.as_bytes(), strictness).unwrap();
            assert!(read.warnings.is_empty(), "{text}");
            let payload = read.message.payload();
            assert!(!matches!(payload, Payload::Opaque(_)), "{text}");
            // Nothing of the document's payloads is lost in the typed form.
            assert_eq!(&payload.to_json(), read.message.as_json().get("payload").unwrap(), "{text}");
        }
    }
}

#[test]
fn members_come_back_in_their_order_and_numbers_as_they_were_written() {
    let normalised = RESPONSE.replace("\"error\": null,\n", "");
    let expected = Json::parse(normalised.as_bytes()).unwrap();
    let read = Response::parse(RESPONSE.as_bytes(), Strictness::Lenient).unwrap();
    assert_eq!(read.message.as_json(), &expected);
    assert!(read.message.to_string().contains("\"market_share\":0.20"));
}
