//! Media types that negotiate the protocol's version on HTTP.

/// The media type of the protocol's major version on HTTP.
pub const MEDIA_TYPE: &str = "application/vnd.atp.v1+json";

/// The kind of body that a `Content-Type` announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// A message of the supported major version.
    Message,
    /// A message of a major version that must be refused.
    OtherVersion,
    /// Plain JSON, which names no version.
    Json,
    /// Server-sent events.
    EventStream,
    /// Anything else.
    Other,
}

impl MediaType {
    /// Classifies the value of a `Content-Type` header; parameters are ignored.
    pub fn parse(value: &str) -> MediaType {
        let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let version =
            essence.strip_prefix("application/vnd.atp.v").and_then(|rest| rest.strip_suffix("+json"));
        match (version, essence.as_str()) {
            (Some("1"), _) => MediaType::Message,
            (Some(version), _)
                if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                MediaType::OtherVersion
            }
            (_, "application/json") => MediaType::Json,
            (_, "text/event-stream") => MediaType::EventStream,
            _ => MediaType::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_told_apart() {
        for (value, kind) in [
            (MEDIA_TYPE, MediaType::Message),
            ("Application/VND.atp.v1+JSON; charset=utf-8", MediaType::Message),
            ("application/vnd.atp.v2+json", MediaType::OtherVersion),
            ("application/vnd.atp.v10+json", MediaType::OtherVersion),
            ("application/json;charset=utf-8", MediaType::Json),
            ("text/event-stream", MediaType::EventStream),
            ("text/html", MediaType::Other),
            ("application/vnd.atp.v+json", MediaType::Other),
            ("", MediaType::Other),
        ] {
            assert_eq!(MediaType::parse(value), kind, "{value}");
        }
    }
}
