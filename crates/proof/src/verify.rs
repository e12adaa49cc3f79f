//! Authorization proofs of workflow tasks: methods `none`, `jwt`, `detached-signature`, `certificate`.
//!
//! Every cryptographic method binds the manifest: by the claim `manifest_digest`, or by a signature over the manifest's canonical text.

mod error;
mod summary;

use std::time::Duration;

use jiff::tz::TimeZone;
use proctor_core::json::Json;
use proctor_core::time::Timestamp;

pub use error::ProofError;

use crate::certificate;
use crate::detached;
use crate::jwt::{self, KeyCache, KeySet, KeySource};
use crate::key::PublicKey;
use crate::secret::Secret;
use crate::sources::ValueSources;
use crate::ssh::{self, AllowedSigners, DEFAULT_NAMESPACE, Request, SshSignature};

/// Tolerated difference between the clocks of a token's issuer and this machine.
const SKEW: Duration = Duration::from_secs(60);

/// Subject of a verification.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Proof of the task, merged with its profile.
    pub proof: &'a Json,
    /// Canonical text of the manifest.
    pub manifest_text: &'a str,
    /// Digest of that text: `sha256:` and 64 hexadecimal digits.
    pub manifest_digest: &'a str,
    /// Hash of the effective task.
    pub task_hash: &'a str,
    /// Present moment.
    pub now: Timestamp,
    /// Zone of times without one in allowed signers, usually [`ssh::local_zone`].
    pub zone: &'a TimeZone,
}

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Summary for answers and records, without secrets.
    pub summary: Json,
    /// Key under which applying the proof is noted, so that it can be applied once only; tokens have one.
    pub replay_key: Option<String>,
}

/// Verifies the proof of a task.
///
/// The method `none` verifies nothing and fails where `verify.required` is true. Any other method must succeed, whether it is required
/// or not: a proof that is declared and fails was forged, expired, or made for another manifest.
pub async fn verify(
    inputs: &Inputs<'_>,
    sources: &dyn ValueSources,
    keys: &KeyCache,
) -> Result<Verified, ProofError> {
    let profile = Profile(inputs.proof);
    match profile.text("method") {
        None => Err(ProofError::NoMethod),
        Some("none") if profile.is_required() => Err(ProofError::RequiredWithoutMethod),
        Some("none") => Ok(Verified { summary: summary::unverified(inputs), replay_key: None }),
        Some("jwt") => token(inputs, &profile, sources, keys).await,
        Some("detached-signature") => signature(inputs, &profile, sources).await,
        Some("certificate") => by_certificate(inputs, &profile, sources).await,
        Some(other) => Err(ProofError::UnknownMethod(other.chars().take(80).collect())),
    }
}

async fn token(
    inputs: &Inputs<'_>,
    profile: &Profile<'_>,
    sources: &dyn ValueSources,
    keys: &KeyCache,
) -> Result<Verified, ProofError> {
    let pinned;
    // A key in the manifest is the narrower trust, and needs no network.
    let source = match (profile.text("public_key"), profile.text("jwks_uri")) {
        (Some(pem), _) => {
            pinned = KeySet::from_pem(pem).map_err(ProofError::PublicKey)?;
            KeySource::Keys(&pinned)
        }
        (None, Some(url)) => KeySource::Url(url),
        (None, None) => return Err(ProofError::Missing("public_key` or `jwks_uri")),
    };
    let value = proof_value(inputs, profile, sources).await?;
    let expected = jwt::Expected {
        issuer: profile.text("issuer"),
        audience: profile.text("audience"),
        now: inputs.now,
        skew: SKEW,
    };
    let token = keys.verify(value.expose(), source, &expected).await?;
    jwt::check_declared(&token.claims, profile.claims(), inputs.manifest_digest)?;
    let summary = summary::verified(inputs)
        .with("algorithm", token.algorithm.name())
        .with("key_id", token.key_id)
        .with("claims", summary::allowed_claims(&token.claims));
    Ok(Verified { summary, replay_key: Some(token.replay_key) })
}

async fn signature(
    inputs: &Inputs<'_>,
    profile: &Profile<'_>,
    sources: &dyn ValueSources,
) -> Result<Verified, ProofError> {
    profile.refuse_claims("detached-signature")?;
    let (pem, signers) = (profile.text("public_key"), profile.text("allowed_signers"));
    if pem.is_none() && signers.is_none() {
        return Err(ProofError::Missing("public_key` or `allowed_signers"));
    }
    let value = proof_value(inputs, profile, sources).await?;
    let text = inputs.manifest_text.as_bytes();
    let summary = if SshSignature::is_armoured(value.expose()) {
        let signers = signers.ok_or(ProofError::Missing("allowed_signers"))?;
        let signers = allowed_signers(signers, inputs, sources).await?;
        let principal = profile.text("principal").ok_or(ProofError::Missing("principal"))?;
        let namespace = profile.text("namespace").unwrap_or(DEFAULT_NAMESPACE);
        let request = Request { principal, namespace, now: inputs.now };
        let signer = ssh::verify(&signers, &request, text, value.expose())?;
        summary::verified(inputs)
            .with("signature_format", "ssh")
            .with("principal", principal)
            .with("namespace", namespace)
            .with("key_fingerprint", signer.key().fingerprint())
    } else {
        let key = PublicKey::from_pem(pem.ok_or(ProofError::Missing("public_key"))?);
        detached::verify(&key.map_err(ProofError::PublicKey)?, text, value.expose())?;
        summary::verified(inputs).with("signature_format", "raw")
    };
    Ok(Verified { summary, replay_key: None })
}

/// Allowed signers from the manifest: their lines, or the path of a file with them. A path has no key in it, so nothing is both.
async fn allowed_signers(
    declared: &str,
    inputs: &Inputs<'_>,
    sources: &dyn ValueSources,
) -> Result<AllowedSigners, ProofError> {
    let inline = AllowedSigners::parse(declared, inputs.zone)?;
    if !inline.is_empty() || declared.trim().contains('\n') {
        return Ok(inline);
    }
    let text = sources.resolve(&Json::object().with("file", declared), &[]).await?;
    Ok(AllowedSigners::parse(text.expose(), inputs.zone)?)
}

async fn by_certificate(
    inputs: &Inputs<'_>,
    profile: &Profile<'_>,
    sources: &dyn ValueSources,
) -> Result<Verified, ProofError> {
    profile.refuse_audience("certificate")?;
    let resolved;
    let authority = match (profile.text("ca_certificate"), profile.member("ca_certificate_from")) {
        (Some(pem), _) => pem,
        (None, Some(source)) => {
            resolved = sources.resolve(source, &variables(inputs)).await?;
            resolved.expose()
        }
        (None, None) => profile
            .text("public_key")
            .ok_or(ProofError::Missing("ca_certificate`, `ca_certificate_from` or `public_key"))?,
    };
    let value = proof_value(inputs, profile, sources).await?;
    let expected =
        certificate::Expected { claims: profile.claims(), issuer: profile.text("issuer"), now: inputs.now };
    let holder = certificate::verify(value.expose(), authority, inputs.manifest_text.as_bytes(), &expected)?;
    let summary = summary::verified(inputs)
        .with("subject", holder.subject)
        .with("certificate_issuer", holder.issuer)
        .with("serial", holder.serial)
        .with("certificate_fingerprint", holder.fingerprint);
    Ok(Verified { summary, replay_key: None })
}

async fn proof_value(
    inputs: &Inputs<'_>,
    profile: &Profile<'_>,
    sources: &dyn ValueSources,
) -> Result<Secret, ProofError> {
    let source = profile.member("proof").and_then(|proof| proof.get("value_from"));
    let source = source.filter(|source| !source.is_null()).ok_or(ProofError::Missing("proof.value_from"))?;
    // A proof in the manifest itself could never cover the manifest, and would be stored with it.
    if source.get("literal").is_some_and(|literal| !literal.is_null()) {
        return Err(ProofError::LiteralProof);
    }
    Ok(sources.resolve(source, &variables(inputs)).await?.trimmed())
}

/// Variables that a proof's command is given.
fn variables<'a>(inputs: &Inputs<'a>) -> [(&'a str, &'a str); 2] {
    [("AGENTCLI_MANIFEST_DIGEST", inputs.manifest_digest), ("AGENTCLI_EFFECTIVE_TASK_HASH", inputs.task_hash)]
}

/// Merged profile of a proof; `null` stands for an absent member.
struct Profile<'a>(&'a Json);

impl<'a> Profile<'a> {
    fn member(&self, name: &str) -> Option<&'a Json> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.member(name).and_then(Json::as_str)
    }

    fn claims(&self) -> &'a Json {
        self.member("claims").unwrap_or(&Json::Null)
    }

    fn is_required(&self) -> bool {
        self.member("verify").and_then(|verify| verify.get("required")).and_then(Json::as_bool) == Some(true)
    }

    /// Refuses declared claims where the method has none to compare them with: passing over them would feign a check.
    fn refuse_claims(&self, method: &'static str) -> Result<(), ProofError> {
        let declares =
            self.claims().as_object().is_some_and(|all| all.iter().any(|(_, value)| !value.is_null()));
        if declares {
            return Err(ProofError::Uncheckable { method, member: "claims" });
        }
        self.refuse_audience(method)
    }

    fn refuse_audience(&self, method: &'static str) -> Result<(), ProofError> {
        match self.member("audience") {
            Some(_) => Err(ProofError::Uncheckable { method, member: "audience" }),
            None => Ok(()),
        }
    }
}
