//! Profiles, and the blocks that refer to them.

use super::identity::{AUTH, PRESENTATION, SUBJECT, TRUST};
use super::{Block, Kind, block, inline, optional, required};

pub(in super::super) static IDENTITY_PROFILE: Block = block(
    "identityProfile",
    "An identity that workflows and tasks refer to.",
    &[
        required("id", Kind::Identifier),
        required("provider", Kind::Text),
        optional("provider_config", Kind::Map),
        optional("subject", Kind::Block(&SUBJECT)),
        optional("auth", Kind::Block(&AUTH)),
        optional("trust", Kind::Block(&TRUST)),
        optional("presentation", Kind::Block(&PRESENTATION)),
    ],
);

pub(in super::super) static PROOF_PROFILE: Block = block(
    "authorizationProofProfile",
    "A way to prove that a manifest was authorized.",
    &[
        required("id", Kind::Identifier),
        optional("method", Kind::Word(&["jwt", "detached-signature", "certificate", "none"])),
        optional("issuer", Kind::Text),
        optional("audience", Kind::Text),
        optional("jwks_uri", Kind::Text),
        optional("public_key", Kind::Text),
        optional("allowed_signers", Kind::Text),
        optional("principal", Kind::Text),
        optional("namespace", Kind::Text),
        optional("ca_certificate", Kind::Text),
        optional("ca_certificate_from", Kind::Source(&SOURCE)),
        optional("proof", Kind::Block(&PROOF)),
        optional("claims", Kind::Map),
        optional("verify", Kind::Block(&VERIFICATION)),
    ],
);

static PROOF: Block =
    inline("proof", "The proof's value.", &[optional("value_from", Kind::Source(&SOURCE_WITHOUT_LITERAL))]);

static SOURCE: Block = block(
    "valueSource",
    "A source of a value; exactly one member is used.",
    &[
        optional("env", Kind::Text),
        optional("file", Kind::Text),
        optional("literal", Kind::Text),
        optional("command", Kind::Text),
    ],
);

/// A `literal` is a member with a finding of its own, not an unknown one.
static SOURCE_WITHOUT_LITERAL: Block = block(
    "proofSource",
    "A source of a value that must not stand in the manifest; exactly one member is used.",
    &[
        optional("env", Kind::Text),
        optional("file", Kind::Text),
        optional("literal", Kind::Removed),
        optional("command", Kind::Text),
    ],
);

pub(in super::super) static AUTHORIZATION_PROFILE: Block = block(
    "authorizationProfile",
    "A policy engine that decides whether tasks may run.",
    &[
        required("id", Kind::Identifier),
        required("provider", Kind::Text),
        optional("provider_config", Kind::Map),
        optional("on_error", Kind::Word(&["deny", "warn"])),
        optional("request", Kind::Block(&REQUEST)),
        optional("decision", Kind::Block(&DECISION)),
    ],
);

pub(in super::super) static EVIDENCE_PROFILE: Block = block(
    "evidenceProfile",
    "A way to make evidence of runs.",
    &[
        required("id", Kind::Identifier),
        required("provider", Kind::Text),
        optional("methods", Kind::Anything),
        optional("provider_config", Kind::Map),
        optional("payload", Kind::Block(&PAYLOAD)),
        optional("verify", Kind::Block(&VERIFICATION)),
    ],
);

pub(super) static PROOF_REFERENCE: Block = block(
    "authorizationProof",
    "Reference to a proof profile.",
    &[
        required("ref", Kind::Text),
        optional("claims", Kind::Map),
        optional("verify", Kind::Block(&VERIFICATION)),
    ],
);

pub(super) static AUTHORIZATION_REFERENCE: Block = block(
    "authorization",
    "Reference to an authorization profile.",
    &[
        required("ref", Kind::Text),
        optional("provider_config", Kind::Map),
        optional("on_error", Kind::Word(&["deny", "warn"])),
        optional("request", Kind::Block(&REQUEST)),
        optional("decision", Kind::Block(&DECISION)),
    ],
);

pub(super) static EVIDENCE_REFERENCE: Block = block(
    "evidence",
    "Reference to an evidence profile.",
    &[
        optional("ref", Kind::Text),
        optional("payload", Kind::Block(&PAYLOAD)),
        optional("verify", Kind::Block(&VERIFICATION)),
    ],
);

static REQUEST: Block =
    inline("authorizationRequest", "Sections of the request.", &[optional("include", Kind::Texts)]);

static DECISION: Block = inline(
    "authorizationDecision",
    "Mapping of the engine's answers to decisions.",
    &[
        optional("allow_values", Kind::Texts),
        optional("deny_values", Kind::Texts),
        optional("escalate_values", Kind::Texts),
    ],
);

static PAYLOAD: Block = block(
    "evidencePayload",
    "What the evidence covers.",
    &[
        optional("bind", Kind::List),
        optional("context", Kind::Map),
        optional("format", Kind::Word(&["canonical-json", "json"])),
    ],
);

static VERIFICATION: Block =
    inline("verification", "Whether verification is demanded.", &[optional("required", Kind::Boolean)]);
