//! Profile arrays of compiled output, without configuration and without attributes.

use proctor_core::json::Json;

use super::digests::Digests;
use crate::agentcli::canonical::NotCanonical;
use crate::agentcli::effective::members::{items, member, object, set, text};

/// Spelling of a proof's value source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The one member that is declared.
    Declared,
    /// Both members, `null` where one is not declared.
    Columns,
}

/// Appends the profile arrays that have items.
pub(super) fn append(
    output: &mut Json,
    manifest: &Json,
    source: Source,
    digests: &Digests,
) -> Result<(), NotCanonical> {
    let mut append = |name: &str, redacted: Vec<Json>| {
        if !redacted.is_empty() {
            output.push(name, redacted);
        }
    };
    let profiles = |name| items(manifest, name).iter();
    append(
        "identity_profiles",
        profiles("identity_profiles").map(|p| identity(p, digests)).collect::<Result<_, _>>()?,
    );
    append(
        "authorization_proof_profiles",
        profiles("authorization_proof_profiles").map(|profile| proof(profile, source)).collect(),
    );
    append("authorization_profiles", profiles("authorization_profiles").map(without_config).collect());
    append("evidence_profiles", profiles("evidence_profiles").map(without_config).collect());
    Ok(())
}

fn identity(profile: &Json, digests: &Digests) -> Result<Json, NotCanonical> {
    let mut redacted = blanked(profile, &["subject", "auth", "provider_config"]);
    let subject = match member(profile, "subject") {
        None => Json::Null,
        Some(subject) => {
            let mut redacted = blanked(subject, &["attributes"]);
            set(&mut redacted, "attributes_hash", digests.of(member(subject, "attributes"))?.into());
            set(&mut redacted, "attributes", Json::Null);
            redacted
        }
    };
    let auth = member(profile, "auth").map(|auth| {
        let mut redacted = blanked(auth, &["provider_config", "inputs"]);
        set(&mut redacted, "provider_config", Json::Null);
        set(&mut redacted, "inputs", Json::Null);
        redacted
    });
    set(&mut redacted, "subject", subject);
    set(&mut redacted, "auth", auth.into());
    set(&mut redacted, "provider_config", Json::Null);
    Ok(redacted)
}

fn proof(profile: &Json, source: Source) -> Json {
    let mut redacted = blanked(profile, &["proof"]);
    set(&mut redacted, "proof", proof_value(member(profile, "proof"), source));
    redacted
}

/// The `proof` of a profile with its value source reduced to names: a literal or a command may hold the secret itself.
pub(super) fn proof_value(proof: Option<&Json>, source: Source) -> Json {
    let Some(proof) = proof else { return Json::Null };
    let value_from = member(proof, "value_from").map(|from| {
        let (env, file) = (text(from, "env"), text(from, "file"));
        match (source, env, file) {
            (Source::Columns, env, file) => object([("env", env.into()), ("file", file.into())]),
            (Source::Declared, Some(env), _) => object([("env", env.into())]),
            (Source::Declared, None, Some(file)) => object([("file", file.into())]),
            (Source::Declared, None, None) => Json::Null,
        }
    });
    object([("value_from", value_from.into())])
}

fn without_config(profile: &Json) -> Json {
    let mut redacted = blanked(profile, &["provider_config"]);
    set(&mut redacted, "provider_config", Json::Null);
    redacted
}

/// A copy in which these members are `null`.
fn blanked(object: &Json, names: &[&str]) -> Json {
    let Json::Object(members) = object else { return object.clone() };
    let copy = |(name, value): &(String, Json)| {
        let value = if names.contains(&name.as_str()) { Json::Null } else { value.clone() };
        (name.clone(), value)
    };
    Json::Object(members.iter().map(copy).collect())
}
