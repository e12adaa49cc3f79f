//! Media types of requests and replies.

use axum::http::{HeaderMap, header};
use proctor_wire::atp::MEDIA_TYPE;

pub(super) const JSON: &str = "application/json";

/// The form of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// The response, in this media type.
    Json(&'static str),
    /// Server-sent events.
    Events,
}

impl Form {
    /// This form if the caller accepts it, else the other one; none if it accepts neither.
    pub(super) fn negotiate(self, headers: &HeaderMap) -> Option<Form> {
        let accepted = accepted(headers);
        let accepts = |names: &[&str]| {
            accepted.is_empty() || accepted.iter().any(|accepted| names.contains(&accepted.as_str()))
        };
        let json = if accepted.iter().any(|accepted| accepted == MEDIA_TYPE) {
            Some(Form::Json(MEDIA_TYPE))
        } else {
            accepts(&[JSON, "application/*", "*/*"]).then_some(Form::Json(JSON))
        };
        let events = accepts(&["text/event-stream", "text/*", "*/*"]).then_some(Form::Events);
        match self {
            Form::Json(_) => json.or(events),
            Form::Events => events.or(json),
        }
    }
}

/// Whether the body of a request is JSON, of this version of the protocol if it names one.
pub(super) fn is_supported_body(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = value.map(essence).unwrap_or_default();
    media_type == JSON || media_type == MEDIA_TYPE
}

/// The media types of `Accept`, except those with a weight of zero.
fn accepted(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(','));
    ranges.filter(|range| !range.trim().is_empty() && !is_refused(range)).map(essence).collect()
}

fn is_refused(range: &str) -> bool {
    let mut parameters = range.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    parameters.any(|(name, value)| {
        name.trim().eq_ignore_ascii_case("q") && value.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0)
    })
}

/// A media type without its parameters.
fn essence(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiated(preferred: Form, accept: &[&str]) -> Option<Form> {
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(header::ACCEPT, value.parse().unwrap());
        }
        preferred.negotiate(&headers)
    }

    #[test]
    fn the_path_decides_unless_only_the_other_form_is_accepted() {
        let (json, vendor) = (Form::Json(JSON), Form::Json(MEDIA_TYPE));
        let all = "application/vnd.atp.v1+json, application/json, text/event-stream";
        for (preferred, accept, expected) in [
            (json, &[][..], Some(json)),
            (json, &["*/*"], Some(json)),
            (json, &[all], Some(vendor)),
            (json, &["application/*;q=0.5"], Some(json)),
            (json, &["Application/JSON; charset=utf-8"], Some(json)),
            (json, &["text/event-stream"], Some(Form::Events)),
            (Form::Events, &[], Some(Form::Events)),
            (Form::Events, &[all], Some(Form::Events)),
            (Form::Events, &["application/vnd.atp.v1+json"], Some(vendor)),
            (Form::Events, &["text/html", "application/json"], Some(json)),
            (Form::Events, &["text/event-stream;q=0, application/json"], Some(json)),
            (json, &["application/vnd.atp.v2+json"], None),
            (Form::Events, &["image/png"], None),
        ] {
            assert_eq!(negotiated(preferred, accept), expected, "{preferred:?} {accept:?}");
        }
    }

    #[test]
    fn bodies_are_json_of_this_version() {
        let supported = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, value.parse().unwrap());
            is_supported_body(&headers)
        };
        assert!(supported("application/json") && supported("application/JSON; charset=utf-8"));
        assert!(supported(MEDIA_TYPE));
        assert!(!supported("application/vnd.atp.v2+json") && !supported("text/plain") && !supported(""));
        assert!(!is_supported_body(&HeaderMap::new()));
    }
}
