//! Connections of a runner to the crates that resolve identities, verify proofs, ask authorization providers and sign evidence.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::random::Randomness;
use proctor_core::time::Clock;
use proctor_identity::environment::Environment;
use proctor_identity::http::Client;
use proctor_identity::presentation::{self, Outcome};
use proctor_identity::session::{Trust, TrustLevel};
use proctor_identity::sources::Sources;
use proctor_identity::{ResolveOptions, Resolver, Session};
use proctor_proof::evidence;
use proctor_proof::jwt::KeyCache;
use proctor_proof::secret::Secret;
use proctor_proof::ssh::{PrivateKey, local_zone};
use proctor_proof::verify::{Inputs, verify};
use proctor_wire::agentcli::effective::EffectiveTask;
use proctor_wire::agentcli::error::{Code, Failure};

use super::describe::{actor_context, step_up_context};
use super::parts::{
    Authorized, Authorizer, BoxFuture, Cleanup, EvidenceSigner, Identities, Presented, Proofs,
    ResolvedIdentity, Subject, Verdict,
};
use super::read::{member, text};
use crate::authorization::{self, SessionView, Word};

/// Verifier of proofs with the value sources of an environment.
pub struct ProofVerifier {
    /// Variables and folder of value sources.
    pub environment: Arc<Environment>,
    /// Key sets that were fetched.
    pub keys: Arc<KeyCache>,
    /// Time that validity is judged by.
    pub clock: Arc<dyn Clock>,
}

impl Proofs for ProofVerifier {
    fn verify<'a>(&'a self, subject: Subject<'a>) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin(async move {
            let Some(proof) = &subject.task.authorization_proof else { return Ok(Json::Null) };
            let zone = local_zone();
            let inputs = Inputs {
                proof,
                manifest_text: &subject.task.manifest_text,
                manifest_digest: &subject.task.manifest_digest,
                task_hash: subject.task_hash,
                now: self.clock.now(),
                zone: &zone,
            };
            let sources = Sources::new(&self.environment, subject.commands);
            let verified = verify(&inputs, &sources, &self.keys).await;
            verified
                .map(|verified| verified.summary)
                .map_err(|error| Failure::new(error.code(), error.to_string()))
        })
    }
}

/// Resolver of identities with the providers of `proctor-identity`.
pub struct IdentityResolver {
    /// The resolver.
    pub resolver: Arc<Resolver>,
    /// Randomness of names of files.
    pub randomness: Arc<dyn Randomness>,
}

impl Identities for IdentityResolver {
    fn resolve<'a>(
        &'a self,
        subject: Subject<'a>,
    ) -> BoxFuture<'a, Result<Box<dyn ResolvedIdentity>, Failure>> {
        Box::pin(async move {
            let identity = subject.task.identity.as_ref().unwrap_or(&Json::Null);
            let options = ResolveOptions { commands: subject.commands, instance: None };
            let session = self.resolver.resolve(identity, &options).await;
            let session = session.map_err(|error| Failure::new(error.code(), error.to_string()))?;
            let resolved: Box<dyn ResolvedIdentity> =
                Box::new(ResolvedSession { session, randomness: Arc::clone(&self.randomness) });
            Ok(resolved)
        })
    }

    fn sweep(&self, folder: &Path) {
        if let Err(error) = presentation::sweep(folder) {
            log::warn!("credentials of earlier runs could not be removed: {error}");
        }
    }
}

struct ResolvedSession {
    session: Session,
    randomness: Arc<dyn Randomness>,
}

impl ResolvedIdentity for ResolvedSession {
    fn describe(&self) -> Json {
        self.session.describe()
    }

    fn principal(&self) -> Option<String> {
        self.session.principal().map(str::to_owned)
    }

    fn trust(&self) -> Trust {
        self.session.trust
    }

    fn token(&self) -> Option<Secret> {
        let mut credentials = self.session.credentials.iter();
        let (_, value) = credentials.find_map(|credential| credential.parts.first())?;
        Some(value.clone())
    }

    fn secrets(&self) -> Vec<Secret> {
        self.session.secrets()
    }

    fn present<'a>(
        &'a self,
        task: &'a EffectiveTask,
        folder: &'a Path,
    ) -> BoxFuture<'a, Result<Presented, Failure>> {
        Box::pin(async move {
            let block = task.identity.as_ref().and_then(|identity| member(identity, "presentation"));
            let block = block.unwrap_or(&Json::Null);
            let mut presented = presentation::prepare(&self.session, block, folder, &*self.randomness)
                .map_err(|error| Failure::new(error.code(), error.to_string()))?;
            Ok(Presented {
                variables: std::mem::take(&mut presented.env),
                stdin: presented.stdin.take(),
                values: presented.secrets().to_vec(),
                description: presented.describe(),
                folder: presented.files.first().and_then(|file| file.parent()).map(Path::to_owned),
                cleanup: Some(Box::new(PresentedFiles(presented))),
            })
        })
    }
}

#[derive(Debug)]
struct PresentedFiles(presentation::Presented);

impl Cleanup for PresentedFiles {
    fn clean(self: Box<Self>, succeeded: bool) {
        let outcome = if succeeded { Outcome::Success } else { Outcome::Failure };
        if let Err(error) = self.0.cleanup(outcome) {
            log::warn!("presented credentials could not be removed: {error}");
        }
    }
}

/// Authorization providers of [`crate::authorization`].
#[derive(Debug)]
pub struct AuthorizationProviders {
    /// Folder that files of the configuration are relative to.
    pub folder: PathBuf,
    /// HTTP client that remote policy engines are asked with.
    pub client: Client,
}

impl Authorizer for AuthorizationProviders {
    fn evaluate<'a>(
        &'a self,
        subject: Subject<'a>,
        identity: Option<&'a dyn ResolvedIdentity>,
        proof: &'a Json,
    ) -> BoxFuture<'a, Result<Authorized, Failure>> {
        Box::pin(async move {
            let declared = subject.task.identity.as_ref().and_then(|identity| member(identity, "subject"));
            let declared = declared.and_then(|subject| text(subject, "principal"));
            let principal = identity.and_then(ResolvedIdentity::principal);
            let trust = identity.map(ResolvedIdentity::trust);
            let token = identity.and_then(ResolvedIdentity::token);
            let (actor, step_up) = (actor_context(proof), step_up_context(proof));
            let session = SessionView {
                principal: principal.as_deref().or(declared),
                declared_trust: trust.and_then(|trust| trust.declared).map(TrustLevel::word),
                effective_trust: trust.map(|trust| trust.effective.word()),
                actor: Some(&actor),
                step_up: Some(&step_up),
                token: token.as_ref().map(Secret::expose),
            };
            let decision = authorization::evaluate(subject.task, &session, &self.folder, &self.client)
                .await
                .map_err(|error| error.to_failure())?;
            let verdict = match decision.word {
                Word::Permit => Verdict::Permit,
                Word::Deny => Verdict::Deny,
                Word::RequireEscalation => Verdict::Escalate,
            };
            let summary = decision.to_json();
            Ok(Authorized { verdict, reason: decision.reason, summary, is_weakened: decision.weakened })
        })
    }
}

/// Signer with SSH keys: the evidence profile's `provider_config.key_file`, else the configured one.
#[derive(Debug, Clone, Default)]
pub struct SshSigner {
    /// Key for profiles that name none.
    pub key_file: Option<PathBuf>,
    /// Principal of the signature, for profiles that name none.
    pub principal: String,
    /// Folder that relative paths start from.
    pub folder: PathBuf,
}

impl SshSigner {
    fn key(&self, block: &Json) -> Result<PrivateKey, Failure> {
        let named = member(block, "provider_config").and_then(|config| text(config, "key_file"));
        let named = named.map(|file| self.folder.join(file));
        let file = named.or_else(|| self.key_file.clone()).ok_or_else(|| {
            let message = "no signing key is configured: name one in `provider_config.key_file`, with `--signing-key` or in AGENTCLI_SIGNING_KEY";
            Failure::new(Code::EvidenceFailed, message)
        })?;
        PrivateKey::load(&file).map_err(|error| unsigned(&error.into()))
    }
}

impl EvidenceSigner for SshSigner {
    fn check<'a>(&'a self, block: &'a Json) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { self.key(block).map(drop) })
    }

    fn sign<'a>(&'a self, payload: &'a Json, block: &'a Json) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin(async move {
            let key = self.key(block)?;
            let principal = member(block, "provider_config").and_then(|config| text(config, "principal"));
            let principal = principal.unwrap_or(&self.principal);
            let format = member(block, "payload").and_then(|payload| text(payload, "format"));
            evidence::sign(payload, format.unwrap_or("canonical-json"), principal, &key)
                .map_err(|error| unsigned(&error))
        })
    }
}

fn unsigned(error: &evidence::EvidenceError) -> Failure {
    Failure::new(error.code(), error.to_string())
}
