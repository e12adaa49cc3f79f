//! Codes of the findings of validation: stable, one for each kind of finding.

/// A required value is absent.
pub const REQUIRED: &str = "required";
/// The value must be a string.
pub const NOT_A_STRING: &str = "not_a_string";
/// A string is empty or blank.
pub const EMPTY: &str = "empty";
/// A string has control characters.
pub const CONTROL_CHARACTERS: &str = "control_characters";
/// A string is no identifier.
pub const INVALID_IDENTIFIER: &str = "invalid_identifier";
/// A string is no token.
pub const INVALID_TOKEN: &str = "invalid_token";
/// A string is no name of an environment variable.
pub const INVALID_ENVIRONMENT_NAME: &str = "invalid_environment_name";
/// A string is no beginning of a file name.
pub const INVALID_PREFIX: &str = "invalid_prefix";
/// The value must be an integer in its range.
pub const NOT_AN_INTEGER: &str = "not_an_integer";
/// The value must be a number in its range.
pub const NOT_A_NUMBER: &str = "not_a_number";
/// The value must be a boolean.
pub const NOT_A_BOOLEAN: &str = "not_a_boolean";
/// The value must be one of a list.
pub const NOT_IN_LIST: &str = "not_in_list";
/// The value must be an object.
pub const NOT_AN_OBJECT: &str = "not_an_object";
/// The value must be an array.
pub const NOT_AN_ARRAY: &str = "not_an_array";
/// An array needs items.
pub const EMPTY_ARRAY: &str = "empty_array";
/// The version is not supported.
pub const UNSUPPORTED_VERSION: &str = "unsupported_version";
/// The key is unknown: an error in 0.2, a warning before.
pub const UNKNOWN_KEY: &str = "unknown_key";
/// An identifier is used twice.
pub const DUPLICATE_ID: &str = "duplicate_id";
/// An identifier is used twice after failure handlers became tasks.
pub const DUPLICATE_EXPANDED_ID: &str = "duplicate_expanded_id";
/// The member belongs to an earlier version.
pub const LEGACY_COMMAND: &str = "legacy_command";
/// Shell tasks have no prompt.
pub const PROMPT_FORBIDDEN: &str = "prompt_forbidden";
/// Prompt tasks have no program.
pub const SHELL_FORBIDDEN: &str = "shell_forbidden";
/// The payload kind does not fit a shell task.
pub const PAYLOAD_KIND_MISMATCH: &str = "payload_kind_mismatch";
/// A task needs either a schedule or a trigger.
pub const SCHEDULE_OR_TRIGGER: &str = "schedule_or_trigger";
/// A condition begins with neither `contains:` nor `regex:`.
pub const INVALID_CONDITION: &str = "invalid_condition";
/// A condition's expression does not compile.
pub const INVALID_REGEX: &str = "invalid_regex";
/// The trigger's parent is no task of the workflow.
pub const UNKNOWN_PARENT: &str = "unknown_parent";
/// The trigger's parent is the task itself.
pub const SELF_PARENT: &str = "self_parent";
/// An announcement needs a receiver.
pub const DELIVERY_TO_REQUIRED: &str = "delivery_to_required";
/// A value source names no source.
pub const NO_VALUE_SOURCE: &str = "no_value_source";
/// A literal must not stand here.
pub const LITERAL_FORBIDDEN: &str = "literal_forbidden";
/// The provider is unknown.
pub const UNKNOWN_PROVIDER: &str = "unknown_provider";
/// The proof method is unknown.
pub const UNKNOWN_METHOD: &str = "unknown_method";
/// A profile asks for what its provider does not support.
pub const UNSUPPORTED_BY_PROVIDER: &str = "unsupported_by_provider";
/// A profile lacks configuration that its provider needs.
pub const PROVIDER_CONFIG_MISSING: &str = "provider_config_missing";
/// A profile's configuration is malformed.
pub const PROVIDER_CONFIG_INVALID: &str = "provider_config_invalid";
/// A binding of the presentation is malformed.
pub const INVALID_BINDING: &str = "invalid_binding";
/// A proof profile lacks what its method needs.
pub const PROOF_CONFIG_MISSING: &str = "proof_config_missing";
/// A member of a proof profile is malformed.
pub const PROOF_CONFIG_INVALID: &str = "proof_config_invalid";
/// A method without verification cannot be required.
pub const PROOF_NOT_VERIFIABLE: &str = "proof_not_verifiable";
/// A reference names no profile.
pub const UNKNOWN_REFERENCE: &str = "unknown_reference";
/// The required trust level is above what the identity allows.
pub const TRUST_UNSATISFIABLE: &str = "trust_unsatisfiable";
/// Warning: both `policy` and `required` of an approval are given.
pub const APPROVAL_POLICY_AND_REQUIRED: &str = "approval_policy_and_required";
/// Warning: two limits of context items differ.
pub const CONTEXT_LIMITS_DIFFER: &str = "context_limits_differ";
/// Warning: a shell task's intent is not enforced.
pub const INTENT_NOT_ENFORCED: &str = "intent_not_enforced";
/// Warning: approval of a task without trigger is not enforced by every scheduler.
pub const ROOT_APPROVAL: &str = "root_approval";
/// There are more findings than are listed.
pub const TOO_MANY_FINDINGS: &str = "too_many_findings";
