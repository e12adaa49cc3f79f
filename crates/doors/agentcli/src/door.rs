//! The door: everything that methods and commands are answered with.

use std::path::PathBuf;
use std::sync::Arc;

use proctor_core::random::Randomness;
use proctor_core::time::Clock;
use proctor_flow::run::adapters::{AuthorizationProviders, IdentityResolver, ProofVerifier, SshSigner};
use proctor_flow::run::{AgentRuntime, Examiner, Parts, Recorder, Runner, RuntimeTimer};
use proctor_identity::Resolver;
use proctor_identity::environment::Environment;
use proctor_identity::http::Client;
use proctor_identity::presentation;
use proctor_proof::jwt::KeyCache;
use proctor_wire::agentcli::error::{Code, Failure};

use crate::home::Surroundings;

/// Opens the state directory for runs, as its owner or through the owner.
pub type OpenState = Box<dyn Fn() -> Result<Recorder, Failure> + Send + Sync>;

/// The door of the protocol.
pub struct Door {
    /// Folders and variables.
    pub surroundings: Surroundings,
    /// Whether settings name a state directory: only then are failures of questions recorded.
    pub has_state: bool,
    open_state: OpenState,
    agents: Option<Arc<dyn AgentRuntime>>,
    environment: Arc<Environment>,
    keys: Arc<KeyCache>,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
}

/// Parts of a door, given by the binary.
pub struct DoorParts {
    /// Folders and variables.
    pub surroundings: Surroundings,
    /// Whether settings name a state directory.
    pub has_state: bool,
    /// Opens the state directory.
    pub open_state: OpenState,
    /// Agents for prompt tasks.
    pub agents: Option<Arc<dyn AgentRuntime>>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness of identifiers.
    pub randomness: Arc<dyn Randomness>,
}

impl Door {
    /// A door. Credentials that killed runs left are removed; nothing is opened yet.
    pub fn new(parts: DoorParts) -> Door {
        let DoorParts { surroundings, has_state, open_state, agents, clock, randomness } = parts;
        let environment =
            Arc::new(Environment::new(surroundings.variables.clone(), surroundings.working_dir.clone()));
        let presented = surroundings.state.join("flow").join("presented");
        if let Err(error) = presentation::sweep(&presented) {
            log::warn!("credentials of earlier runs could not be removed: {error}");
        }
        let keys = Arc::new(KeyCache::new(Arc::new(Client::new(&environment))));
        Door { surroundings, has_state, open_state, agents, environment, keys, clock, randomness }
    }

    /// Present time.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Value sources and files of manifests.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Key sets that were fetched.
    pub(crate) fn keys(&self) -> &KeyCache {
        &self.keys
    }

    /// Opens the state directory.
    pub(crate) fn recorder(&self) -> Result<Recorder, Failure> {
        (self.open_state)()
    }

    fn proofs(&self) -> Arc<ProofVerifier> {
        let (environment, keys) = (Arc::clone(&self.environment), Arc::clone(&self.keys));
        Arc::new(ProofVerifier { environment, keys, clock: Arc::clone(&self.clock) })
    }

    fn identities(&self) -> Arc<IdentityResolver> {
        let resolver = Resolver::new((*self.environment).clone(), Arc::clone(&self.clock));
        Arc::new(IdentityResolver { resolver: Arc::new(resolver), randomness: Arc::clone(&self.randomness) })
    }

    fn authorizer(&self) -> Arc<AuthorizationProviders> {
        let client = Client::new(&self.environment);
        Arc::new(AuthorizationProviders { folder: self.surroundings.working_dir.clone(), client })
    }

    /// Answers questions about tasks. The state directory is opened if settings name one, or if commands may run.
    pub(crate) fn examiner(&self, allow_commands: bool) -> Result<Examiner, Failure> {
        let recorder = if self.has_state || allow_commands { Some(self.recorder()?) } else { None };
        Ok(Examiner {
            proofs: self.proofs(),
            identities: self.identities(),
            authorizer: self.authorizer(),
            recorder,
            randomness: Arc::clone(&self.randomness),
            directory: self.surroundings.working_dir.clone(),
            local_principal: self.surroundings.user_at_host.clone(),
        })
    }

    /// Runs tasks. `signing_key` is for evidence profiles that name no key.
    pub(crate) fn runner(&self, signing_key: Option<&str>) -> Result<Runner, Failure> {
        let folder = self.surroundings.working_dir.clone();
        let key_file: Option<PathBuf> = signing_key
            .or_else(|| self.surroundings.variable("AGENTCLI_SIGNING_KEY"))
            .map(|key| self.surroundings.path(key));
        let principal = self.surroundings.user_at_host.clone();
        let variables = self.surroundings.variables.iter();
        let parts = Parts {
            recorder: self.recorder()?,
            proofs: self.proofs(),
            identities: self.identities(),
            authorizer: self.authorizer(),
            signer: Arc::new(SshSigner { key_file, principal: principal.clone(), folder: folder.clone() }),
            agents: self.agents.clone(),
            timer: Arc::new(RuntimeTimer::start()),
            clock: Arc::clone(&self.clock),
            randomness: Arc::clone(&self.randomness),
            variables: variables.map(|(name, value)| (name.into(), value.into())).collect(),
            directory: folder,
            state: self.surroundings.state.clone(),
            features: proctor_sandbox::Features::all(),
            local_principal: principal,
        };
        Runner::new(parts).map_err(|error| Failure::new(Code::InternalError, error.to_string()))
    }
}
