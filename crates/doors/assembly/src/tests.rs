//! The door as agents and people see it, without a network between.

mod approvals;
mod audit;
mod cancelled;
mod checks;
mod control;
mod invalidation;
mod lifecycle;
mod simulation;

use std::time::Duration;

use proctor_core::json::Json;
use proctor_core::record::RecordKind;
use proctor_ledger::reader::BodyState;
use proctor_ledger::store::{Filter, Order as Direction};
use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::policy::v1::CheckActionResponse;
use tonic::Request;

use super::fixture::{Agent, Gateway, llm, tool};
use proctor_engine::orders::{Order, order};

const ALLOW_ALL: &str = "default: allow\nrules: []\n";

fn decided(response: &CheckActionResponse) -> (Decision, &str) {
    (response.decision(), response.policy_rule.as_str())
}

/// A request that shows a token beside its message.
fn with_token<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-aa-credential-token", token.parse().unwrap());
    request
}

/// All records of a kind, with their bodies.
fn records(gateway: &Gateway, kind: RecordKind) -> Vec<(proctor_core::record::Envelope, Json)> {
    // Alarms stand behind their decision in the queue: all of it is waited for.
    gateway.engine().ledger().checkpoint().unwrap();
    let reader = gateway.engine().ledger().reader();
    let filter = Filter { kinds: vec![kind], ..Filter::default() };
    let found: Vec<_> = reader.records(filter, Direction::Ascending).map(Result::unwrap).collect();
    let body = |seq: u64| match reader.body(seq).unwrap() {
        BodyState::Present { bytes, .. } => Json::parse(&bytes).unwrap(),
        _ => Json::Null,
    };
    found.into_iter().map(|record| (record.envelope, body(record.seq))).collect()
}

fn give_order(gateway: &Gateway, agent: &Agent, what: Order, reason: &str) {
    order(gateway.engine(), &agent.did(), what, reason, "uid:0").unwrap();
}

/// A gateway with one registered agent.
async fn one_agent(policy: &str) -> (Gateway, Agent) {
    let gateway = Gateway::new(policy);
    let mut agent = Agent::new(1);
    gateway.register(&mut agent).await.unwrap();
    (gateway, agent)
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}
