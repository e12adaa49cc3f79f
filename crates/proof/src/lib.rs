//! Authorization proofs and evidence: JWT, detached signatures, SSH signatures, certificates.
//!
//! [`verify::verify`] checks the proof of a task before it is applied or run; [`evidence`] signs what a run did. Everything is verified
//! in this process: no `openssl` or `ssh-keygen` is started. Clock, value sources and requests are arguments.

pub mod verify;

pub mod certificate;
pub mod detached;
pub mod evidence;
pub mod jwt;
pub mod key;
pub mod ssh;

pub mod secret;
pub mod sources;

mod pem;
