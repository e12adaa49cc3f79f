//! Merge of identity blocks.

use proctor_core::json::Json;

use super::layers::Layers;
use super::members::member;

const SUBJECT: [&str; 6] = ["kind", "principal", "display_name", "run_as", "issuer", "delegation_mode"];
const AUTH: [&str; 7] = ["mode", "scopes", "audience", "resource", "cache", "refresh", "required"];
const DELEGATION: [&str; 3] = ["max_depth", "allowed_delegators", "require_grant_per_hop"];
const CONSTRAINTS: [&str; 4] = ["escalation", "max_autonomy", "escalation_timeout", "require_justification"];
const PRESENTATION: [&str; 4] = ["bindings", "handoff", "cleanup", "default_redaction"];
const FLAT: [&str; 3] = ["principal", "run_as", "attestation"];

/// Identity of a task, in the shape that its blocks are written in.
#[derive(Debug, Clone, Copy)]
pub(in crate::agentcli) enum Declared<'a> {
    /// Version 0.1: `principal`, `run_as`, `attestation`. Also the shape where nothing is declared.
    Flat(Layers<'a>),
    /// Version 0.2: reference to a profile, and changes to it.
    Profiled(Layers<'a>),
}

impl<'a> Declared<'a> {
    /// The identity blocks of a task and its workflow. The content decides the shape, not the manifest's version.
    pub(in crate::agentcli) fn of(task: &'a Json, workflow: &'a Json) -> Declared<'a> {
        let layers = Layers::of(task, workflow, "identity");
        let profiled = ["ref", "scope", "subject", "auth", "trust", "presentation"];
        if profiled.into_iter().any(|name| layers.value(name).is_some()) {
            Declared::Profiled(layers)
        } else {
            Declared::Flat(layers)
        }
    }

    /// The profile that the identity refers to.
    pub(in crate::agentcli) fn reference(self) -> Option<&'a str> {
        match self {
            Declared::Flat(_) => None,
            Declared::Profiled(layers) => layers.text("ref"),
        }
    }

    /// The levels of the 0.2 shape; a flat identity has none.
    pub(in crate::agentcli) fn profiled(self) -> Layers<'a> {
        match self {
            Declared::Flat(_) => Layers::default(),
            Declared::Profiled(layers) => layers,
        }
    }

    /// `{principal, run_as, attestation}` of a flat identity.
    pub(in crate::agentcli) fn flat(self) -> Option<Json> {
        match self {
            Declared::Flat(layers) => Some(layers.object(&FLAT)),
            Declared::Profiled(_) => None,
        }
    }
}

/// How values that may hold secrets are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::agentcli) enum Form<'h> {
    /// As they are.
    Full,
    /// Attributes as a digest, configuration and inputs not at all.
    Redacted {
        /// Digest of the merged attributes.
        attributes_hash: Option<&'h str>,
    },
}

/// The merged identity with every member of the protocol, `null` where no level declares it.
pub(in crate::agentcli) fn merged(layers: Layers<'_>, provider: Option<&Json>, form: Form<'_>) -> Json {
    let mut identity = Vec::with_capacity(7);
    let mut push = |name: &str, value: Json| identity.push((name.to_owned(), value));
    push("ref", layers.cloned("ref"));
    push("scope", layers.cloned("scope"));
    if let Some(provider) = provider {
        push("provider", provider.clone());
    }
    push("subject", subject(layers.block("subject"), form));
    push("auth", auth(layers.block("auth"), form));
    let trust = layers.block("trust");
    push(
        "trust",
        trust.object(&["level"]).with("constraints", trust.block("constraints").object(&CONSTRAINTS)),
    );
    push("presentation", layers.block("presentation").object(&PRESENTATION));
    Json::Object(identity)
}

fn subject(layers: Layers<'_>, form: Form<'_>) -> Json {
    let subject = layers.object(&SUBJECT);
    match form {
        Form::Full => subject.with("attributes", layers.cloned("attributes")),
        Form::Redacted { attributes_hash } => {
            subject.with("attributes", Json::Null).with("attributes_hash", attributes_hash)
        }
    }
}

fn auth(layers: Layers<'_>, form: Form<'_>) -> Json {
    let policy = layers.block("delegation_policy");
    let policy = if DELEGATION.into_iter().any(|name| policy.value(name).is_some()) {
        policy.object(&DELEGATION)
    } else {
        Json::Null
    };
    let (provider_config, inputs) = match form {
        Form::Full => (layers.map("provider_config"), layers.map("inputs")),
        Form::Redacted { .. } => (Json::Null, Json::Null),
    };
    layers
        .object(&AUTH)
        .with("delegation_policy", policy)
        .with("provider_config", provider_config)
        .with("inputs", inputs)
}

/// Whether a merged presentation declares nothing.
pub(in crate::agentcli) fn presents_nothing(layers: Layers<'_>) -> bool {
    let presentation = layers.block("presentation");
    PRESENTATION.into_iter().all(|name| presentation.value(name).is_none())
}

/// Name of the provider of a profile; `null` without a profile.
pub(in crate::agentcli) fn provider(profile: Option<&Json>) -> Json {
    profile.and_then(|profile| member(profile, "provider")).cloned().unwrap_or_default()
}
