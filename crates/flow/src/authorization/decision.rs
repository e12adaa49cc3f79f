//! Decisions of providers, and the mapping of their results.

use proctor_core::json::Json;

use super::Answer;
use crate::text::readable;

/// Words of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The task may run.
    Permit,
    /// The task may not run.
    Deny,
    /// The task may run after an approval.
    RequireEscalation,
}

impl Word {
    /// The word that is sent.
    pub const fn word(self) -> &'static str {
        match self {
            Word::Permit => "permit",
            Word::Deny => "deny",
            Word::RequireEscalation => "require-escalation",
        }
    }

    fn of_word(word: &str) -> Option<Word> {
        [Word::Permit, Word::Deny, Word::RequireEscalation].into_iter().find(|known| known.word() == word)
    }
}

/// Decision of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The decision.
    pub word: Word,
    /// The provider.
    pub provider: &'static str,
    /// Reason for people, without secrets; may be empty.
    pub reason: String,
    /// The policy that was asked, or those that decided.
    pub policy_ref: Option<String>,
    /// Whether the provider failed and `on_error: warn` permits. Callers record it.
    pub weakened: bool,
}

impl Decision {
    /// The permit of the provider `none`.
    pub(super) fn none() -> Decision {
        Decision {
            word: Word::Permit,
            provider: "none",
            reason: "the provider `none` permits everything".to_owned(),
            policy_ref: None,
            weakened: false,
        }
    }

    /// The permit of a failed provider whose errors only warn.
    pub(super) fn weakened(provider: &'static str, problem: &str) -> Decision {
        Decision {
            word: Word::Permit,
            provider,
            reason: format!("permitted by `on_error: warn` although authorization failed: {problem}"),
            policy_ref: None,
            weakened: true,
        }
    }

    /// Whether the task may run as it is.
    pub fn is_allowed(&self) -> bool {
        self.word == Word::Permit
    }

    /// The member `decision` of `agentcli.authorization.evaluate`.
    pub fn summary(&self) -> Json {
        Json::object().with("allowed", self.is_allowed()).with("reason", self.reason.as_str())
    }

    /// The member `authorization` of results and evidence.
    pub fn to_json(&self) -> Json {
        let escalation = match self.word {
            Word::RequireEscalation => Json::object().with("kind", "approval"),
            Word::Permit | Word::Deny => Json::Null,
        };
        let mut json = Json::object()
            .with("decision", self.word.word())
            .with("provider", self.provider)
            .with("reason", self.reason.as_str())
            .with("policy_ref", self.policy_ref.clone())
            .with("escalation", escalation);
        if self.weakened {
            json.push("weakened", true);
        }
        json
    }
}

impl Answer {
    /// Maps the result to a decision; `mapping` is the member `decision` of the authorization.
    pub(super) fn decide(self, provider: &'static str, mapping: &Json) -> Decision {
        let (word, reason) = match &self.result {
            None => (Word::Deny, "the policy gave no result".to_owned()),
            Some(Json::Bool(truth)) => (of_truth(*truth), String::new()),
            Some(Json::String(text)) => mapped(text, mapping),
            Some(result @ Json::Object(_)) => {
                let reason = result["reason"].as_str().map(readable).unwrap_or_default();
                match &result["allow"] {
                    Json::Bool(truth) => (of_truth(*truth), reason),
                    _ if reason.is_empty() => {
                        (Word::Deny, "the result's `allow` is not a boolean".to_owned())
                    }
                    _ => (Word::Deny, reason),
                }
            }
            Some(other) => (Word::Deny, format!("the result is {}", other.type_name())),
        };
        let reason = match (word, &self.policy_ref) {
            (Word::Deny, Some(policy)) if reason.is_empty() => format!("denied by `{policy}`"),
            (Word::Deny, None) if reason.is_empty() => "no policy permits it".to_owned(),
            _ => reason,
        };
        Decision { word, provider, reason, policy_ref: self.policy_ref, weakened: false }
    }
}

fn of_truth(truth: bool) -> Word {
    if truth { Word::Permit } else { Word::Deny }
}

/// A text by the lists of the mapping; without any list the canonical words count.
fn mapped(text: &str, mapping: &Json) -> (Word, String) {
    let list = |name: &str| mapping[name].as_array().unwrap_or_default();
    let lists = [
        (list("allow_values"), Word::Permit),
        (list("deny_values"), Word::Deny),
        (list("escalate_values"), Word::RequireEscalation),
    ];
    let found = if lists.iter().all(|(values, _)| values.is_empty()) {
        Word::of_word(text)
    } else {
        lists.iter().find(|(values, _)| values.iter().any(|value| *value == text)).map(|(_, word)| *word)
    };
    match found {
        Some(word) => (word, format!("the policy says `{}`", readable(text))),
        None => (Word::Deny, format!("`{}` is no decision of the mapping", readable(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(result: Option<&str>, mapping: &str) -> Word {
        let json = |text: &str| Json::parse(text.as_bytes()).unwrap();
        Answer { result: result.map(json), policy_ref: None }.decide("opa", &json(mapping)).word
    }

    #[test]
    fn only_the_boolean_true_permits() {
        assert_eq!(word(Some("true"), "null"), Word::Permit);
        assert_eq!(word(Some(r#"{"allow":true,"reason":"x"}"#), "null"), Word::Permit);
        for denied in [
            None,
            Some("false"),
            Some("null"),
            Some("1"),
            Some("[true]"),
            Some("{}"),
            Some(r#"{"allow":"false"}"#),
            Some(r#"{"allow":"true"}"#),
            Some(r#"{"allow":1}"#),
            Some(r#"{"allow":[true]}"#),
            Some(r#""allow""#),
            Some(r#""PERMIT""#),
        ] {
            assert_eq!(word(denied, "null"), Word::Deny, "{denied:?}");
        }
    }

    #[test]
    fn texts_are_mapped_by_the_lists_or_are_canonical() {
        assert_eq!(word(Some(r#""permit""#), "null"), Word::Permit);
        assert_eq!(word(Some(r#""require-escalation""#), "{}"), Word::RequireEscalation);
        let mapping = r#"{"allow_values":["yes"],"deny_values":["no","yes"],"escalate_values":["ask"]}"#;
        assert_eq!(word(Some(r#""yes""#), mapping), Word::Permit);
        assert_eq!(word(Some(r#""no""#), mapping), Word::Deny);
        assert_eq!(word(Some(r#""ask""#), mapping), Word::RequireEscalation);
        // With a mapping, the canonical words mean nothing.
        assert_eq!(word(Some(r#""permit""#), mapping), Word::Deny);
        assert_eq!(word(Some(r#""permit""#), r#"{"allow_values":[]}"#), Word::Permit);
    }
}
