//! What is sent to the gateway before anybody is known there: challenges and registrations, as bytes, to the program itself.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use bytes::{Buf, BufMut, Bytes};
use proctor_core::digest::Digest;
use proctor_wire::assembly::did;
use proctor_wire::assembly::proto::agent::v1::{
    ChallengeRequest, ChallengeResponse, RegisterRequest, RegisterResponse,
};
use proctor_wire::assembly::proto::common::v1::AgentId;
use proctor_wire::assembly::unpack::unpack;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::{Bound, agent_field, field};
use crate::fuzz::{Material, Violation, drive};

/// Field keys, and the beginnings of what is in the fields.
const WORDS: &[&str] = &[
    "did:key:z",
    "did:key:z6Mk",
    "did:web:x",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0",
    "f",
    "\n",
    "\n\u{0}",
    "\u{12}",
    "\u{12}\u{1}/",
    "\u{1a}\u{1}\u{7f}",
    "2\u{1}t",
    ":@",
    "B\u{4}\n\u{0}\u{12}\u{0}",
    "J\u{0}",
    "J\u{3}did",
    "`\u{0}",
    "h\u{3}",
    "r@",
    "z ",
    "\u{0}",
    "\u{80}",
];

/// A gateway that runs as a program, and a connection to it. It ends with the test.
struct Door {
    gateway: Child,
    runtime: tokio::runtime::Runtime,
    calls: Grpc<Channel>,
    _folder: tempfile::TempDir,
}

impl Door {
    fn open() -> Door {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("aa-gateway");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_proctor"), &program).unwrap();
        std::fs::write(folder.path().join("policy.yaml"), "version: \"1\"\ndefault: deny\n").unwrap();
        let mut command = Command::new(program);
        command.env_clear().current_dir(folder.path());
        command.args(["--policy", "policy.yaml", "--db-path", "gateway.db", "--listen", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut gateway = command.spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(gateway.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let address = ready.split_whitespace().last().unwrap_or_else(|| panic!("not ready: {ready}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = runtime.block_on(endpoint.connect()).unwrap();
        Door { gateway, runtime, calls: Grpc::new(channel), _folder: folder }
    }

    /// The door's answer to these bytes. Input may end its connection (HTTP/2 bounds the streams that a server resets), but the next
    /// connection must answer.
    fn call(&self, method: &str, message: &[u8]) -> Result<Bytes, Status> {
        match self.call_once(method, message) {
            Err(status) if status.code() == Code::Unknown => self.call_once(method, message),
            answer => answer,
        }
    }

    fn call_once(&self, method: &str, message: &[u8]) -> Result<Bytes, Status> {
        let path = format!("/assembly.agent.v1.AgentLifecycleService/{method}");
        let path = PathAndQuery::try_from(path).unwrap();
        let message = Request::new(Bytes::copy_from_slice(message));
        let mut calls = self.calls.clone();
        self.runtime.block_on(async {
            calls.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
            Ok(calls.unary(message, path, AsItIs).await?.into_inner())
        })
    }

    /// A nonce for an identity that may have one.
    fn nonce(&self, bound: &Bound) -> Result<[u8; 32], Violation> {
        let answer = self.call("RequestChallenge", &challenge(bound)).map_err(|status| status.to_string())?;
        let answer = unpack::<ChallengeResponse>(&answer).map_err(|error| error.to_string())?;
        answer.nonce.try_into().map_err(|nonce| format!("a nonce of another length: {nonce:?}").into())
    }

    /// An identity with a nonce that the door has given, well signed.
    fn invited(&self, seed: u8) -> Result<Bound, Violation> {
        Ok(Bound::signed(seed, self.nonce(&Bound::of(seed))?))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

/// Bytes stay bytes.
struct AsItIs;

impl Codec for AsItIs {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = AsItIs;
    type Decoder = AsItIs;

    fn encoder(&mut self) -> AsItIs {
        AsItIs
    }

    fn decoder(&mut self) -> AsItIs {
        AsItIs
    }
}

impl Encoder for AsItIs {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for AsItIs {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}

fn challenge(bound: &Bound) -> Vec<u8> {
    [agent_field(&bound.0[0]), field(2, &bound.0[1])].concat()
}

/// A refusal says what was wrong with the input; anything else says that something is wrong with the door.
fn is_refusal(method: &str, status: &Status, is_message: bool) -> Result<(), Violation> {
    let is_fine = match status.code() {
        Code::InvalidArgument | Code::Unauthenticated | Code::FailedPrecondition => is_message,
        Code::Internal | Code::ResourceExhausted => !is_message,
        _ => false,
    };
    if is_fine { Ok(()) } else { Err(format!("{method}, a message: {is_message}: {status:?}").into()) }
}

/// A registration is refused as a challenge is; besides, a registered key that proves nothing already exists, and nothing else does.
fn is_registration_refusal(status: &Status, request: Option<&RegisterRequest>) -> Result<(), Violation> {
    if status.code() != Code::AlreadyExists {
        return is_refusal("Register", status, request.is_some());
    }
    let is_known = |request: &RegisterRequest| {
        let id = request.agent_id.clone().unwrap_or_default().agent_id;
        [1, 2, 3].iter().any(|seed| Bound::of(*seed).0[0] == id.as_bytes())
    };
    match request {
        Some(request)
            if request.registration_nonce.is_empty()
                && request.possession_proof.is_empty()
                && is_known(request) =>
        {
            Ok(())
        }
        other => Err(format!("{other:?} exists already: {status:?}").into()),
    }
}

/// Whoever asks for a challenge gets one if the key is the identifier's, and each is another.
fn asks(door: &Door, last: &RefCell<Vec<u8>>, data: &[u8]) -> Result<(), Violation> {
    let asked = unpack::<ChallengeRequest>(data);
    let status = match door.call("RequestChallenge", data) {
        Err(status) => status,
        Ok(answer) => {
            let asked = asked.map_err(|error| format!("a challenge for no message: {error}"))?;
            let id = asked.agent_id.unwrap_or_default().agent_id;
            did::bound_key(&id, &asked.public_key)
                .map_err(|error| format!("a challenge for `{id}`: {error}"))?;
            let nonce = unpack::<ChallengeResponse>(&answer).map_err(|error| error.to_string())?.nonce;
            let before = last.replace(nonce.clone());
            return if nonce.len() == 32 && nonce != before {
                Ok(())
            } else {
                Err(format!("{nonce:?} after {before:?}").into())
            };
        }
    };
    is_refusal("RequestChallenge", &status, asked.is_ok())?;
    let Ok(ChallengeRequest { agent_id: Some(AgentId { org_id, team_id, agent_id }), public_key }) = asked
    else {
        return Ok(());
    };
    let is_plain = |name: &str| name.len() < 100 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_plain(&org_id) && is_plain(&team_id) && did::bound_key(&agent_id, &public_key).is_ok() {
        return Err(format!("no challenge for `{agent_id}`: {status}").into());
    }
    Ok(())
}

/// Nobody registers with a nonce that was not given, or that was used, or with anything but what was signed.
fn registers(door: &Door, data: &[u8]) -> Result<(), Violation> {
    match door.call("Register", data) {
        Ok(_) => return Err("registered, and nobody had the nonce".into()),
        Err(status) => is_registration_refusal(&status, unpack::<RegisterRequest>(data).ok().as_ref())?,
    }
    let dice = Digest::of(data);
    let dice = dice.as_bytes();
    if !dice[0].is_multiple_of(8) {
        return Ok(());
    }
    let good = door.invited(1 + dice[1] % 3)?;
    let bytes = match dice[2] % 3 {
        0 => [&good.request(), data].concat(),
        1 => [data, &good.request()].concat(),
        _ => good.changed(data).request(),
    };
    let read = unpack::<RegisterRequest>(&bytes);
    match door.call("Register", &bytes) {
        Err(status) => is_registration_refusal(&status, read.ok().as_ref()),
        Ok(answer) => {
            let read =
                Bound::in_request(&read.map_err(|error| format!("registered by no message: {error}"))?);
            if read != good {
                return Err(format!("{good:?} was signed, {read:?} registered").into());
            }
            has_token(&answer)?;
            match door.call("Register", &bytes) {
                Err(status) if status.code() == Code::Unauthenticated => Ok(()),
                again => Err(format!("a nonce was used twice: {again:?}").into()),
            }
        }
    }
}

fn has_token(answer: &[u8]) -> Result<(), Violation> {
    match unpack::<RegisterResponse>(answer) {
        Ok(answer) if !answer.credential_token.is_empty() => Ok(()),
        other => Err(format!("no token: {other:?}").into()),
    }
}

#[test]
fn assembly_challenges_and_registrations_at_the_door() {
    let door = Door::open();
    let everybody_registers = || {
        for seed in 1..4 {
            let answer = door.call("Register", &door.invited(seed).unwrap().request());
            has_token(&answer.unwrap()).unwrap();
        }
    };
    everybody_registers();
    let known = [1, 2, 3].map(Bound::of);
    let valid = [known.each_ref().map(Bound::request), known.each_ref().map(challenge)].concat();
    let valid: Vec<&[u8]> = valid.iter().map(Vec::as_slice).collect();
    let last = RefCell::default();
    drive("assembly challenge and register", &Material { words: WORDS, valid: &valid }, |data| {
        asks(&door, &last, data)?;
        registers(&door, data)
    });
    everybody_registers();
}
