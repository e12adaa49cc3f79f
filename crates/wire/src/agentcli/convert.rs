//! Conversion of manifests from version 0.1 to 0.2.
//!
//! Flat identities become profiles and references to them; attestations become proof profiles that nothing verifies.
//! Everything else is copied, also what version 0.2 does not know: the result is validated, and its errors name it.

use std::collections::HashMap;

use proctor_core::digest::Digest;
use proctor_core::json::Json;

use super::effective::Version;
use super::effective::members::{items, member, object, set, text, without};
use super::error::Failure;
use super::validate::validate;

/// Members of the identity shape of version 0.2.
const PROFILED: [&str; 6] = ["ref", "scope", "subject", "auth", "trust", "presentation"];
/// Longest readable part of a generated id.
const LONGEST_SLUG: usize = 32;
/// Hexadecimal digits of a digest in a generated id.
const DIGITS: usize = 10;

/// Converts a valid manifest of version 0.1.
pub fn convert(manifest: &Json) -> Result<Json, Failure> {
    if text(manifest, "version") != Some(Version::V01.word()) {
        return Err(Failure::invalid_argument("only manifests of version 0.1 can be converted"));
    }
    let validation = validate(manifest);
    if !validation.is_ok() {
        return Err(Failure::invalid_manifest(validation));
    }
    let converted = Conversion::of(manifest).run(manifest);
    let validation = validate(&converted);
    if validation.is_ok() { Ok(converted) } else { Err(Failure::invalid_manifest(validation)) }
}

/// Principal and account of a flat identity.
type Pair<'a> = (Option<&'a str>, Option<&'a str>);

/// A flat identity: principal, account, attestation.
#[derive(Clone, Copy, Default)]
struct Flat<'a> {
    pair: Pair<'a>,
    attestation: Option<&'a str>,
}

impl<'a> Flat<'a> {
    /// The flat identity of a block; `None` if the block is absent or has the shape of version 0.2.
    fn of(owner: &'a Json) -> Option<Flat<'a>> {
        let block = member(owner, "identity")?;
        if PROFILED.into_iter().any(|name| member(block, name).is_some()) {
            return None;
        }
        Some(Flat {
            pair: (text(block, "principal"), text(block, "run_as")),
            attestation: text(block, "attestation"),
        })
    }

    fn over(self, outer: Flat<'a>) -> Flat<'a> {
        Flat {
            pair: (self.pair.0.or(outer.pair.0), self.pair.1.or(outer.pair.1)),
            attestation: self.attestation.or(outer.attestation),
        }
    }
}

/// Profiles that are made on the way through a manifest.
struct Conversion<'a> {
    identity_profiles: Vec<Json>,
    proof_profiles: Vec<Json>,
    /// Identity profiles by id, with the pair they were made of; declared ones have none.
    identities: HashMap<String, Option<Pair<'a>>>,
    /// Ids of proof profiles by attestation.
    proofs: HashMap<&'a str, String>,
}

impl<'a> Conversion<'a> {
    fn of(manifest: &'a Json) -> Conversion<'a> {
        let identity_profiles = items(manifest, "identity_profiles").to_vec();
        let ids = identity_profiles.iter().filter_map(|profile| text(profile, "id"));
        Conversion {
            identities: ids.map(|id| (id.to_owned(), None)).collect(),
            identity_profiles,
            proof_profiles: items(manifest, "authorization_proof_profiles").to_vec(),
            proofs: HashMap::new(),
        }
    }

    fn run(mut self, manifest: &'a Json) -> Json {
        let workflows: Vec<Json> =
            items(manifest, "workflows").iter().map(|workflow| self.workflow(workflow)).collect();
        let mut converted = object([("version", Version::V02.word().into())]);
        for (name, profiles) in [
            ("identity_profiles", self.identity_profiles),
            ("authorization_proof_profiles", self.proof_profiles),
        ] {
            if !profiles.is_empty() {
                converted.push(name, profiles);
            }
        }
        for (name, value) in manifest.as_object().unwrap_or_default() {
            let made_here = matches!(
                name.as_str(),
                "version" | "workflows" | "identity_profiles" | "authorization_proof_profiles"
            );
            let empty = matches!(value, Json::Array(items) if items.is_empty());
            if !made_here && !empty {
                converted.push(name, value.clone());
            }
        }
        converted.with("workflows", workflows)
    }

    fn workflow(&mut self, workflow: &'a Json) -> Json {
        let outer = Flat::of(workflow);
        let mut converted = self.owner(workflow.clone(), outer);
        let inherited = outer.unwrap_or_default();
        let tasks: Vec<Json> =
            items(workflow, "tasks").iter().map(|task| self.task(task, inherited)).collect();
        set(&mut converted, "tasks", tasks.into());
        converted
    }

    fn task(&mut self, task: &'a Json, inherited: Flat<'a>) -> Json {
        let mut converted = self.owner(task.clone(), Flat::of(task).map(|own| own.over(inherited)));
        if let Some(handler) = member(task, "on_failure") {
            let own = Flat::of(handler).map(|own| own.over(inherited));
            let handler = self.owner(handler.clone(), own);
            set(&mut converted, "on_failure", handler);
        }
        converted
    }

    /// A workflow, task or handler with references in place of its flat identity.
    fn owner(&mut self, owner: Json, flat: Option<Flat<'a>>) -> Json {
        let Some(Flat { pair, attestation }) = flat else { return owner };
        let mut converted = if pair == (None, None) {
            without(&owner, "identity")
        } else {
            let mut converted = owner;
            let reference = reference(self.identity(pair));
            set(&mut converted, "identity", reference);
            converted
        };
        // A proof that the manifest declares already is not replaced by one that nothing verifies.
        if let Some(attestation) = attestation
            && member(&converted, "authorization_proof").is_none()
        {
            let reference = reference(self.proof(attestation));
            set(&mut converted, "authorization_proof", reference);
        }
        converted
    }

    /// Id of the identity profile of a pair.
    fn identity(&mut self, pair: Pair<'a>) -> String {
        let readable =
            pair.0.map(slug).filter(|slug| !slug.is_empty()).unwrap_or_else(|| "identity".to_owned());
        let id = format!("converted-{readable}");
        let id = match self.identities.get(&id) {
            Some(Some(known)) if *known == pair => return id,
            None => id,
            Some(_) => {
                let text = object([("principal", pair.0.into()), ("run_as", pair.1.into())]).to_string();
                format!("{id}-{}", digits(&text))
            }
        };
        if self.identities.insert(id.clone(), Some(pair)) != Some(Some(pair)) {
            self.identity_profiles.push(identity_profile(&id, pair));
        }
        id
    }

    /// Id of the proof profile of an attestation.
    fn proof(&mut self, attestation: &'a str) -> String {
        if let Some(id) = self.proofs.get(attestation) {
            return id.clone();
        }
        let id = format!("legacy-{}-{}", slug(attestation), digits(attestation));
        self.proof_profiles.push(object([
            ("id", id.as_str().into()),
            ("method", "none".into()),
            ("verify", object([("required", false.into())])),
        ]));
        self.proofs.insert(attestation, id.clone());
        id
    }
}

fn identity_profile(id: &str, (principal, run_as): Pair<'_>) -> Json {
    object([
        ("id", id.into()),
        ("provider", "none".into()),
        (
            "subject",
            object([
                ("kind", "unknown".into()),
                ("principal", principal.into()),
                ("display_name", Json::Null),
                ("run_as", run_as.into()),
                ("delegation_mode", "none".into()),
            ]),
        ),
        ("trust", object([("level", "supervised".into())])),
        ("presentation", object([("handoff", "none".into()), ("cleanup", "always".into())])),
    ])
}

fn reference(id: String) -> Json {
    object([("ref", id.into())])
}

fn digits(text: &str) -> String {
    let mut digits = Digest::of(text.as_bytes()).to_string();
    digits.truncate(DIGITS);
    digits
}

/// Letters and digits of a text, with one dash for everything between them.
fn slug(text: &str) -> String {
    let words =
        text.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-");
    slug.truncate(LONGEST_SLUG);
    slug
}

#[cfg(test)]
mod tests;
