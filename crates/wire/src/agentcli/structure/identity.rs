//! Identity blocks.

use super::{Block, Kind, TRUST_LEVELS, block, inline, optional, required};

pub(in super::super) static IDENTITY: Block = block(
    "identity",
    "Identity of a workflow or task, by reference to a profile; values given here override the profile's.",
    &[
        optional("ref", Kind::Text),
        optional("scope", Kind::Text),
        optional("subject", Kind::Block(&SUBJECT)),
        optional("auth", Kind::Block(&AUTH)),
        optional("trust", Kind::Block(&TRUST)),
        optional("presentation", Kind::Block(&PRESENTATION)),
    ],
);

pub(in super::super) static FLAT_IDENTITY: Block = block(
    "flatIdentity",
    "Identity of manifests of version 0.1.",
    &[
        optional("principal", Kind::Token),
        optional("run_as", Kind::Token),
        optional("attestation", Kind::Text),
    ],
);

pub(super) static SUBJECT: Block = block(
    "subject",
    "The principal on whose behalf a task runs.",
    &[
        optional(
            "kind",
            Kind::Word(&["agent", "service", "workload", "user", "composite", "delegated-agent", "unknown"]),
        ),
        optional("principal", Kind::Text),
        optional("display_name", Kind::Text),
        optional("issuer", Kind::Text),
        optional("run_as", Kind::Token),
        optional("delegation_mode", Kind::Word(&["none", "on-behalf-of", "impersonation"])),
        optional("attributes", Kind::Map),
    ],
);

pub(super) static AUTH: Block = block(
    "auth",
    "How credentials are obtained.",
    &[
        optional(
            "mode",
            Kind::Word(&["none", "service", "delegated", "on-behalf-of", "impersonation", "exchange"]),
        ),
        optional("scopes", Kind::List),
        optional("audience", Kind::Text),
        optional("resource", Kind::Text),
        optional("cache", Kind::Word(&["none", "memory", "state"])),
        optional("refresh", Kind::Word(&["never", "manual", "auto"])),
        optional("required", Kind::Boolean),
        optional("delegation_policy", Kind::Block(&DELEGATION_POLICY)),
        optional("provider_config", Kind::Map),
        optional("inputs", Kind::Map),
    ],
);

static DELEGATION_POLICY: Block = block(
    "delegationPolicy",
    "Limits of delegation chains.",
    &[
        optional("max_depth", Kind::Integer(1)),
        optional("allowed_delegators", Kind::List),
        optional("require_grant_per_hop", Kind::Boolean),
    ],
);

pub(super) static TRUST: Block = block(
    "trust",
    "Trust in the identity.",
    &[optional("level", Kind::Word(TRUST_LEVELS)), optional("constraints", Kind::Block(&CONSTRAINTS))],
);

static CONSTRAINTS: Block = inline(
    "trustConstraints",
    "Limits of the trust.",
    &[
        optional("escalation", Kind::Word(&["fail", "human-approval", "log-and-proceed"])),
        optional("max_autonomy", Kind::Word(TRUST_LEVELS)),
        optional("escalation_timeout", Kind::Text),
        optional("require_justification", Kind::Boolean),
    ],
);

pub(super) static PRESENTATION: Block = block(
    "presentation",
    "How credentials are presented to the task's process.",
    &[
        optional("handoff", Kind::Word(&["none", "downscope", "transaction-token"])),
        optional("cleanup", Kind::Word(&["always", "on-success", "on-failure", "never"])),
        optional("default_redaction", Kind::Boolean),
        optional("bindings", Kind::Blocks(&BINDING)),
    ],
);

static BINDING: Block = block(
    "binding",
    "One credential, and where the process finds it.",
    &[
        required("source", Kind::Text),
        optional("target", Kind::Block(&BINDING_TARGET)),
        optional("required", Kind::Boolean),
        optional("redact", Kind::Boolean),
        optional("format", Kind::Word(&["raw", "json", "base64"])),
    ],
);

static BINDING_TARGET: Block = inline(
    "bindingTarget",
    "Where the process finds a credential.",
    &[
        optional("kind", Kind::Word(&["env", "file", "stdin", "none"])),
        optional("name", Kind::Text),
        optional("prefix", Kind::FilePrefix),
        optional("expose_as", Kind::EnvironmentName),
    ],
);
