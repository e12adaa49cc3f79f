//! Delegation chains: who acts for whom, by which grant, and the policy that bounds the chain.

use std::collections::HashSet;

use proctor_core::json::Json;

use proctor_mask::MARK;

/// Depth limit of chains of providers that take part in delegation, where the policy sets none.
pub const DEFAULT_DEPTH: u64 = 10;

/// Hop of a delegation chain.
#[derive(Clone, PartialEq, Eq)]
pub struct Hop {
    /// Kind of the principal.
    pub kind: String,
    /// Principal, as policies compare it.
    pub principal: String,
    /// Whether descriptions hide the principal: some providers identify a caller by a part of its credentials.
    pub is_hidden: bool,
    /// Grant by which the hop was reached; empty if there is none.
    pub grant: String,
    /// Whether the provider validated the hop.
    pub is_validated: bool,
}

impl Hop {
    /// A validated hop.
    pub fn new(kind: impl Into<String>, principal: impl Into<String>, grant: impl Into<String>) -> Hop {
        Hop {
            kind: kind.into(),
            principal: principal.into(),
            is_hidden: false,
            grant: grant.into(),
            is_validated: true,
        }
    }

    /// The hop, with its principal hidden in descriptions.
    #[must_use]
    pub fn hidden(self) -> Hop {
        Hop { is_hidden: true, ..self }
    }

    /// Principal for people.
    pub fn shown_principal(&self) -> &str {
        if self.is_hidden { MARK } else { &self.principal }
    }

    /// The hop as descriptions have it.
    pub fn to_json(&self) -> Json {
        Json::object()
            .with("kind", self.kind.as_str())
            .with("principal", self.shown_principal())
            .with("grant", self.grant.as_str())
            .with("validated", self.is_validated)
    }
}

impl std::fmt::Debug for Hop {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Hop({})", self.to_json())
    }
}

/// Bounds of a delegation chain: `auth.delegation_policy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationPolicy {
    /// Longest chain.
    pub max_depth: Option<u64>,
    /// Principals that may stand in the chain; empty allows all.
    pub allowed_delegators: Vec<String>,
    /// Whether every hop needs a grant that was validated.
    pub requires_grants: bool,
    /// Whether the provider takes part in delegation: a repeated principal is a cycle then, and each hop gets a status.
    pub is_strict: bool,
}

impl DelegationPolicy {
    /// Reads `auth.delegation_policy`, which may be absent.
    pub fn from_json(policy: Option<&Json>) -> DelegationPolicy {
        let member = |name: &str| policy.and_then(|policy| policy.get(name)).filter(|value| !value.is_null());
        let delegators = member("allowed_delegators").and_then(Json::as_array).unwrap_or_default();
        DelegationPolicy {
            max_depth: member("max_depth").and_then(Json::as_u64),
            allowed_delegators: delegators.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
            requires_grants: member("require_grant_per_hop").and_then(Json::as_bool) != Some(false),
            is_strict: false,
        }
    }

    /// The policy for a provider that takes part in delegation, with this depth where none is set.
    #[must_use]
    pub fn strict(self, default_depth: u64) -> DelegationPolicy {
        DelegationPolicy { max_depth: self.max_depth.or(Some(default_depth)), is_strict: true, ..self }
    }
}

/// Verdict on a delegation chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationValidation {
    /// Number of hops.
    pub depth: usize,
    /// Whether no hop repeats.
    pub is_acyclic: bool,
    /// Whether every hop has a grant.
    pub all_grants_present: bool,
    /// Violations of the policy, for people.
    pub errors: Vec<String>,
    /// Verdict on each hop, for providers that take part in delegation.
    pub hop_status: Option<Vec<HopStatus>>,
}

/// Verdict on a hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopStatus {
    /// Principal for people.
    pub principal: String,
    /// Whether the hop breaks no rule.
    pub is_valid: bool,
}

impl DelegationValidation {
    /// Whether the chain breaks no rule.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// The verdict as it is sent.
    pub fn to_json(&self) -> Json {
        let errors: Vec<Json> = self.errors.iter().map(|error| Json::from(error.as_str())).collect();
        let mut json = Json::object()
            .with("valid", self.is_valid())
            .with("depth", self.depth)
            .with("acyclic", self.is_acyclic)
            .with("all_grants_present", self.all_grants_present)
            .with("errors", errors);
        if let Some(statuses) = &self.hop_status {
            let statuses: Vec<Json> = statuses
                .iter()
                .enumerate()
                .map(|(index, status)| {
                    Json::object()
                        .with("hop", index)
                        .with("principal", status.principal.as_str())
                        .with("valid", status.is_valid)
                })
                .collect();
            json.push("hop_status", statuses);
        }
        json
    }
}

/// Checks a chain against its policy.
pub fn validate(chain: &[Hop], policy: &DelegationPolicy) -> DelegationValidation {
    let mut errors = Vec::new();
    if let Some(limit) = policy.max_depth
        && chain.len() as u64 > limit
    {
        errors.push(format!("the chain has {} hops, and at most {limit} are allowed", chain.len()));
    }
    let mut pairs = HashSet::new();
    let mut principals = HashSet::new();
    let mut statuses = Vec::new();
    let (mut is_acyclic, mut all_grants_present) = (true, true);
    for (index, hop) in chain.iter().enumerate() {
        let before = errors.len();
        let shown = hop.shown_principal();
        if !policy.allowed_delegators.is_empty() && !policy.allowed_delegators.contains(&hop.principal) {
            errors.push(format!("hop {index}: `{shown}` is not among the allowed delegators"));
        }
        let is_repeated = !pairs.insert((&hop.principal, &hop.grant));
        // An empty principal names nobody, so it cannot come back.
        let is_known = !principals.insert(&hop.principal) && !hop.principal.is_empty();
        if is_repeated || policy.is_strict && is_known {
            is_acyclic = false;
            errors.push(format!("hop {index}: `{shown}` is in the chain already"));
        }
        if hop.grant.trim().is_empty() {
            all_grants_present = false;
            if policy.requires_grants {
                errors.push(format!("hop {index}: `{shown}` has no grant"));
            }
        } else if policy.requires_grants && !hop.is_validated {
            errors.push(format!("hop {index}: the grant of `{shown}` was not validated"));
        }
        let is_valid = errors.len() == before;
        statuses.push(HopStatus { principal: shown.to_owned(), is_valid });
    }
    DelegationValidation {
        depth: chain.len(),
        is_acyclic,
        all_grants_present,
        errors,
        hop_status: policy.is_strict.then_some(statuses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> DelegationPolicy {
        DelegationPolicy::from_json(Some(&Json::parse(text.as_bytes()).unwrap()))
    }

    #[test]
    fn an_empty_chain_is_valid() {
        let verdict = validate(&[], &policy(r#"{"max_depth":1,"allowed_delegators":["a"]}"#));
        assert_eq!(
            verdict.to_json().to_string(),
            r#"{"valid":true,"depth":0,"acyclic":true,"all_grants_present":true,"errors":[]}"#
        );
    }

    #[test]
    fn each_rule_is_enforced() {
        let two = [Hop::new("a", "one", "g"), Hop::new("a", "two", "g")];
        assert!(validate(&two, &policy("{}")).is_valid());
        assert!(!validate(&two, &policy(r#"{"max_depth":1}"#)).is_valid());
        assert!(!validate(&two, &policy(r#"{"allowed_delegators":["one"]}"#)).is_valid());
        assert!(validate(&two, &policy(r#"{"allowed_delegators":["one","two"]}"#)).is_valid());

        let ungranted = [Hop::new("a", "one", " ")];
        let verdict = validate(&ungranted, &policy("{}"));
        assert!(!verdict.is_valid() && !verdict.all_grants_present);
        let verdict = validate(&ungranted, &policy(r#"{"require_grant_per_hop":false}"#));
        assert!(verdict.is_valid() && !verdict.all_grants_present);

        let unvalidated = [Hop { is_validated: false, ..Hop::new("a", "one", "g") }];
        assert!(!validate(&unvalidated, &policy("{}")).is_valid());
        assert!(validate(&unvalidated, &policy(r#"{"require_grant_per_hop":false}"#)).is_valid());
    }

    #[test]
    fn a_cycle_is_a_repeated_pair_or_for_strict_providers_a_repeated_principal() {
        let pair = [Hop::new("a", "one", "g"), Hop::new("b", "one", "g")];
        assert!(!validate(&pair, &policy("{}")).is_acyclic);
        let principal = [Hop::new("a", "one", "g"), Hop::new("b", "one", "h")];
        assert!(validate(&principal, &policy("{}")).is_acyclic);
        let verdict = validate(&principal, &policy("{}").strict(DEFAULT_DEPTH));
        assert!(!verdict.is_acyclic && !verdict.is_valid());
        let statuses: Vec<bool> = verdict.hop_status.unwrap().iter().map(|status| status.is_valid).collect();
        assert_eq!(statuses, [true, false]);
    }

    #[test]
    fn a_policy_sets_the_depth_of_strict_providers() {
        let chain: Vec<Hop> = (0..11).map(|number| Hop::new("a", number.to_string(), "g")).collect();
        assert!(!validate(&chain, &policy("{}").strict(DEFAULT_DEPTH)).is_valid());
        assert!(validate(&chain, &policy(r#"{"max_depth":11}"#).strict(DEFAULT_DEPTH)).is_valid());
    }

    #[test]
    fn a_hidden_principal_is_compared_but_never_shown() {
        let chain = [Hop::new("caller", "AKIAIOSFODNN7EXAMPLE", "g").hidden()];
        assert!(validate(&chain, &policy(r#"{"allowed_delegators":["AKIAIOSFODNN7EXAMPLE"]}"#)).is_valid());
        let verdict = validate(&chain, &policy(r#"{"allowed_delegators":["x"]}"#).strict(DEFAULT_DEPTH));
        let shown = format!("{verdict:?} {} {chain:?} {}", verdict.to_json(), chain[0].to_json());
        assert!(shown.contains(MARK) && !shown.contains("AKIA"), "{shown}");
    }
}
