//! The first two frames on the local socket: the server sends a nonce, and the client answers with it signed.
//!
//! The key follows from the agent's name, which is also the name of the socket. So a proof says that the client speaks this protocol,
//! for this agent, in this version; it does not say who the client is. That is left to the socket's owner and mode.

use std::time::Duration;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

use super::did;
use super::frames::{ClientFrame, ServerFrame};
use super::proto::ipc::v1::{HandshakeChallenge, HandshakeProof};

/// The bytes of a nonce.
pub const NONCE_LEN: usize = 32;

/// Time limit of a client's proof.
pub const PROOF_TIMEOUT: Duration = Duration::from_secs(5);

/// A fresh random number, for one handshake.
pub type Nonce = [u8; NONCE_LEN];

/// Error of a handshake. The connection is closed without another byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HandshakeError {
    /// Unexpected first frame from the client.
    #[error("first frame is a {0}, not a handshake proof")]
    NotAProof(&'static str),
    /// Unexpected first frame from the server.
    #[error("first frame is a {0}, not a handshake challenge")]
    NotAChallenge(&'static str),
    /// The nonce is of another length.
    #[error("handshake nonce has {0} bytes, not {NONCE_LEN}")]
    NonceLength(usize),
    /// The public key is not the agent's.
    #[error("handshake proof is for another key than that of this agent")]
    OtherKey,
    /// The signature is not the key's over the nonce and the version.
    #[error("handshake proof does not verify")]
    BadSignature,
}

/// The key that an agent's library signs with: its seed is the SHA-256 of the agent's name.
pub fn expected_key(agent_id: &str) -> VerifyingKey {
    signing_key(agent_id).verifying_key()
}

/// The proof of an agent's library. The version may be empty.
pub fn prove(agent_id: &str, nonce: &Nonce, sdk_version: &str) -> HandshakeProof {
    let key = signing_key(agent_id);
    let public = key.verifying_key().to_bytes();
    HandshakeProof {
        agent_did: did::encode(&public),
        public_key: did::key_text(&public),
        signature: key.sign(&signed_bytes(nonce, sdk_version)).to_bytes().to_vec(),
        sdk_version: sdk_version.to_owned(),
    }
}

/// Checks a proof: the key is written as the agent's exactly, and the signature holds strictly. The did in it is not looked at.
pub fn verify(agent_id: &str, nonce: &Nonce, proof: &HandshakeProof) -> Result<(), HandshakeError> {
    verify_with(&expected_key(agent_id), nonce, proof)
}

/// The server's side of one handshake: one nonce, one try.
#[derive(Debug)]
pub struct ServerHandshake {
    key: VerifyingKey,
    nonce: Nonce,
}

impl ServerHandshake {
    /// Creates the server's side of a handshake for the runtime of `agent_id`. The nonce must be fresh and random.
    pub fn new(agent_id: &str, nonce: Nonce) -> Self {
        Self { key: expected_key(agent_id), nonce }
    }

    /// The challenge frame, sent right after a connection was accepted.
    pub fn challenge(&self) -> ServerFrame {
        ServerFrame::HandshakeChallenge(HandshakeChallenge { nonce: self.nonce.to_vec() })
    }

    /// Judges the client's first frame. The proof comes back for its did and version, of which only the version was checked.
    pub fn accept(self, first: ClientFrame) -> Result<HandshakeProof, HandshakeError> {
        let ClientFrame::HandshakeProof(proof) = first else {
            return Err(HandshakeError::NotAProof(first.kind()));
        };
        verify_with(&self.key, &self.nonce, &proof)?;
        Ok(proof)
    }
}

/// The client's side: the answer to the server's first frame.
pub fn answer(agent_id: &str, sdk_version: &str, first: &ServerFrame) -> Result<ClientFrame, HandshakeError> {
    let ServerFrame::HandshakeChallenge(challenge) = first else {
        return Err(HandshakeError::NotAChallenge(first.kind()));
    };
    // Nothing but a nonce is signed, whatever the server asks for.
    let nonce: &Nonce = challenge
        .nonce
        .as_slice()
        .try_into()
        .map_err(|_| HandshakeError::NonceLength(challenge.nonce.len()))?;
    Ok(ClientFrame::HandshakeProof(prove(agent_id, nonce, sdk_version)))
}

fn verify_with(key: &VerifyingKey, nonce: &Nonce, proof: &HandshakeProof) -> Result<(), HandshakeError> {
    if proof.public_key != did::key_text(key.as_bytes()) {
        return Err(HandshakeError::OtherKey);
    }
    let signature = Signature::from_slice(&proof.signature).map_err(|_| HandshakeError::BadSignature)?;
    key.verify_strict(&signed_bytes(nonce, &proof.sdk_version), &signature)
        .map_err(|_| HandshakeError::BadSignature)
}

fn signing_key(agent_id: &str) -> SigningKey {
    SigningKey::from_bytes(&Sha256::digest(agent_id.as_bytes()).into())
}

fn signed_bytes(nonce: &Nonce, sdk_version: &str) -> Vec<u8> {
    [nonce.as_slice(), sdk_version.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frames::{ClientDecoder, ServerDecoder};
    use super::*;

    #[test]
    fn the_key_follows_from_the_name() {
        // The digest of nothing as a seed, and the key of that seed, computed by another library.
        assert_eq!(
            hex::encode(Sha256::digest(b"")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert_eq!(did::key_text(expected_key("").as_bytes()), EMPTY_NAME_KEY);
        assert_eq!(did::key_text(expected_key("agent-001").as_bytes()), AGENT_001_KEY);
    }

    const EMPTY_NAME_KEY: &str = "be907b4bac84fee5ce8811db2defc9bf0b2a2a2bbc3d54d8a2257ecd70441962";
    const AGENT_001_KEY: &str = "55d00d1f0d6b3dbc4d7e2c46c1e83df17558ddbd9b5c8871e14fcfb245777d3c";

    #[test]
    fn both_sides_agree_over_the_wire() {
        let server = ServerHandshake::new("agent-001", [9; NONCE_LEN]);
        let mut bytes = Vec::new();
        server.challenge().encode(&mut bytes).unwrap();
        assert_eq!(bytes[..4], [5, 34, 0x0a, 32]);
        let mut decoder = ServerDecoder::new();
        assert!(decoder.feed(&bytes).is_empty());
        let proof = answer("agent-001", "0.0.1", &decoder.next_frame().unwrap().unwrap()).unwrap();
        bytes.clear();
        proof.encode(&mut bytes).unwrap();
        let mut decoder = ClientDecoder::new();
        assert!(decoder.feed(&bytes).is_empty());
        let accepted = server.accept(decoder.next_frame().unwrap().unwrap()).unwrap();
        assert_eq!(accepted.sdk_version, "0.0.1");
    }

    #[test]
    fn every_part_of_a_proof_is_bound() {
        let nonce = [3; NONCE_LEN];
        let good = prove("a", &nonce, "1");
        assert_eq!(verify("a", &nonce, &good), Ok(()));
        assert_eq!(verify("a", &nonce, &prove("a", &nonce, "")), Ok(()));
        // The did is not looked at.
        assert_eq!(verify("a", &nonce, &HandshakeProof { agent_did: "x".into(), ..good.clone() }), Ok(()));
        assert_eq!(verify("b", &nonce, &good), Err(HandshakeError::OtherKey));
        assert_eq!(verify("a", &[4; NONCE_LEN], &good), Err(HandshakeError::BadSignature));
        let broken = [
            (
                HandshakeProof { public_key: good.public_key.to_uppercase(), ..good.clone() },
                HandshakeError::OtherKey,
            ),
            (HandshakeProof { public_key: String::new(), ..good.clone() }, HandshakeError::OtherKey),
            (HandshakeProof { sdk_version: "2".into(), ..good.clone() }, HandshakeError::BadSignature),
            (HandshakeProof { sdk_version: String::new(), ..good.clone() }, HandshakeError::BadSignature),
            (HandshakeProof { signature: vec![], ..good.clone() }, HandshakeError::BadSignature),
            (
                HandshakeProof { signature: good.signature[1..].to_vec(), ..good.clone() },
                HandshakeError::BadSignature,
            ),
            (
                HandshakeProof { signature: [&good.signature[..], &[0]].concat(), ..good.clone() },
                HandshakeError::BadSignature,
            ),
        ];
        for (proof, error) in broken {
            assert_eq!(verify("a", &nonce, &proof), Err(error), "{proof:?}");
        }
    }

    #[test]
    fn a_signature_that_only_a_lenient_check_takes_is_refused() {
        // The group's order added to `s`: the same equation, another signature.
        const ORDER: [u8; 32] = [
            0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
        ];
        let nonce = [3; NONCE_LEN];
        let mut proof = prove("a", &nonce, "1");
        let mut carry = 0_u16;
        for (byte, add) in proof.signature[32..].iter_mut().zip(ORDER) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            *byte = u8::try_from(sum & 0xFF).unwrap();
            carry = sum >> 8;
        }
        assert_eq!(verify("a", &nonce, &proof), Err(HandshakeError::BadSignature));
    }

    #[test]
    fn only_the_right_first_frame_is_taken() {
        let server = || ServerHandshake::new("a", [1; NONCE_LEN]);
        assert_eq!(server().accept(ClientFrame::Heartbeat), Err(HandshakeError::NotAProof("heartbeat")));
        let query = ClientFrame::PolicyQuery(super::super::proto::policy::v1::CheckActionRequest::default());
        assert_eq!(server().accept(query), Err(HandshakeError::NotAProof("policy query")));
        assert_eq!(answer("a", "", &ServerFrame::Ack), Err(HandshakeError::NotAChallenge("ack")));
        for length in [0, 31, 33, 5000] {
            let challenge = ServerFrame::HandshakeChallenge(HandshakeChallenge { nonce: vec![0; length] });
            assert_eq!(answer("a", "", &challenge), Err(HandshakeError::NonceLength(length)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn every_agent_and_version_proves_itself(agent_id: String, version: String, nonce: Nonce) {
            let proof = prove(&agent_id, &nonce, &version);
            prop_assert_eq!(verify(&agent_id, &nonce, &proof), Ok(()));
            let key = did::bound_key(&proof.agent_did, &proof.public_key);
            prop_assert_eq!(key, Ok(expected_key(&agent_id)));
        }
    }
}
