//! Trust level that a contract requires.

use proctor_core::json::Json;
use proctor_identity::session::{Trust, TrustLevel};
use proctor_wire::agentcli::error::{Code, Failure};

use super::read::text;

/// Compares the effective level with the required one. Returns a warning under `advisory`, which also holds if the contract does not say.
pub(super) fn check(contract: &Json, trust: Option<Trust>) -> Result<Option<String>, Failure> {
    let Some(required) = text(contract, "required_trust_level") else { return Ok(None) };
    let effective = trust.filter(|trust| trust.declared.is_some()).map(|trust| trust.effective);
    // A level that no one knows is above all others.
    let is_enough = TrustLevel::of_word(required).is_some_and(|required| effective >= Some(required));
    if is_enough {
        return Ok(None);
    }
    let message = match effective {
        Some(effective) => {
            format!("the trust level `{}` is below the required `{required}`", effective.word())
        }
        None => format!("no trust level is declared, and `{required}` is required"),
    };
    match text(contract, "trust_enforcement") {
        Some("strict") => Err(Failure::new(Code::TrustLevelInsufficient, message)),
        Some("none") => Ok(None),
        _ => Ok(Some(message)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_below_the_required_one_fail_warn_or_pass() {
        let trust = |level: &str, most: &str| {
            let block = Json::object()
                .with("level", level)
                .with("constraints", Json::object().with("max_autonomy", most));
            Some(Trust::from_json(Some(&block)))
        };
        let check = |enforcement: &str, trust: Option<Trust>| {
            let contract = Json::object()
                .with("required_trust_level", "supervised")
                .with("trust_enforcement", enforcement);
            check(&contract, trust)
        };
        assert_eq!(check("strict", trust("supervised", "autonomous")), Ok(None));
        assert_eq!(check("strict", trust("autonomous", "autonomous")), Ok(None));
        let undeclared = Some(Trust::from_json(None));
        for low in [trust("restricted", "autonomous"), trust("autonomous", "restricted"), undeclared, None] {
            assert_eq!(check("strict", low).unwrap_err().code, Code::TrustLevelInsufficient);
            assert!(check("advisory", low).unwrap().is_some());
            assert_eq!(check("none", low), Ok(None));
        }
        assert_eq!(super::check(&Json::object(), None), Ok(None));
    }
}
