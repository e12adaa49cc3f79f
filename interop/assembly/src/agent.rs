//! An agent with an identity of its own: an Ed25519 key, and the `did:key` that names it.

use aa_proto::assembly::common::v1::AgentId;
use ed25519_dalek::{Signer, SigningKey};
use sha2::{Digest, Sha256};

/// The two bytes that say "Ed25519 public key" in a `did:key`.
const ED25519: [u8; 2] = [0xed, 0x01];

/// An agent. The token is empty until it is registered.
pub struct Agent {
    /// Identifier in messages.
    pub id: AgentId,
    /// Token that the gateway issued.
    pub token: String,
    key: SigningKey,
}

impl Agent {
    /// A new one, in this team.
    pub fn new(team: &str) -> Agent {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).expect("the system has randomness");
        let key = SigningKey::from_bytes(&seed);
        let id = AgentId { org_id: String::new(), team_id: team.into(), agent_id: did(&key) };
        Agent { id, token: String::new(), key }
    }

    /// Public key of the agent, as messages have it: 64 digits.
    pub fn public_key(&self) -> String {
        hex::encode(self.key.verifying_key().to_bytes())
    }

    /// The proof that it has the key.
    pub fn proof(&self, nonce: &[u8]) -> Vec<u8> {
        self.key.sign(nonce).to_bytes().to_vec()
    }

    /// Key in the registry: the first 16 bytes of a hash of organisation, team and id.
    pub fn registry_key(&self) -> [u8; 16] {
        let AgentId { org_id, team_id, agent_id } = &self.id;
        half_hash(&format!("{org_id}/{team_id}/{agent_id}"))
    }

    /// Identifier in policies and in the log: the same of the id alone, as 32 digits.
    pub fn policy_id(&self) -> String {
        hex::encode(half_hash(&self.id.agent_id))
    }

    /// The key as the topology has it: 32 digits.
    pub fn topology_id(&self) -> String {
        hex::encode(self.registry_key())
    }
}

fn half_hash(text: &str) -> [u8; 16] {
    let digest: [u8; 32] = Sha256::digest(text).into();
    let mut half = [0; 16];
    half.copy_from_slice(digest.first_chunk::<16>().expect("a hash has 32 bytes"));
    half
}

fn did(key: &SigningKey) -> String {
    let bytes: Vec<u8> = ED25519.into_iter().chain(key.verifying_key().to_bytes()).collect();
    format!("did:key:z{}", bs58::encode(bytes).into_string())
}
