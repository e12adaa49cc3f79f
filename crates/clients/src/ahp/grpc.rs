//! The service of `proto/proctor/ahp/v1/harness.proto`.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated"
)]

tonic::include_proto!("proctor.ahp.v1");
