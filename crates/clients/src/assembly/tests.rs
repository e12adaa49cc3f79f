use std::pin::Pin;

use futures_util::Stream;
use proctor_wire::assembly::proto::common::v1::Decision;
use proctor_wire::assembly::proto::policy::v1::{
    BatchCheckRequest, BatchCheckResponse, CheckActionRequest, CheckActionResponse, OpControlMessage,
    OpControlSubscribeRequest,
};
use tonic::{Code, Request, Response, Status};

use super::services::policy::policy_service_client::PolicyServiceClient;
use super::services::policy::policy_service_server::{PolicyService, PolicyServiceServer};

/// Denies with the trace as its reason.
struct Denies;

#[tonic::async_trait]
impl PolicyService for Denies {
    type OpControlStreamStream = Pin<Box<dyn Stream<Item = Result<OpControlMessage, Status>> + Send>>;

    async fn check_action(
        &self,
        request: Request<CheckActionRequest>,
    ) -> Result<Response<CheckActionResponse>, Status> {
        Ok(Response::new(denied(request.into_inner())))
    }

    async fn batch_check(
        &self,
        request: Request<BatchCheckRequest>,
    ) -> Result<Response<BatchCheckResponse>, Status> {
        let responses = request.into_inner().requests.into_iter().map(denied).collect();
        Ok(Response::new(BatchCheckResponse { responses }))
    }

    async fn op_control_stream(
        &self,
        _: Request<OpControlSubscribeRequest>,
    ) -> Result<Response<Self::OpControlStreamStream>, Status> {
        let messages =
            (0..3).map(|sequence| Ok(OpControlMessage { op_id: "*".into(), sequence, ..Default::default() }));
        Ok(Response::new(Box::pin(futures_util::stream::iter(messages))))
    }
}

fn denied(request: CheckActionRequest) -> CheckActionResponse {
    CheckActionResponse { decision: Decision::Deny.into(), reason: request.trace_id, ..Default::default() }
}

fn asking(trace_id: &str) -> CheckActionRequest {
    CheckActionRequest { trace_id: trace_id.to_owned(), ..Default::default() }
}

/// The client calls the server's service itself, without a network between.
fn client() -> PolicyServiceClient<PolicyServiceServer<Denies>> {
    PolicyServiceClient::new(PolicyServiceServer::new(Denies))
}

#[tokio::test]
async fn client_and_server_understand_each_other() {
    let answer = client().check_action(asking("one")).await.unwrap().into_inner();
    assert_eq!((answer.decision(), answer.reason.as_str()), (Decision::Deny, "one"));
    let batch = BatchCheckRequest { requests: vec![asking("one"), asking("two")] };
    let answers = client().batch_check(batch).await.unwrap().into_inner().responses;
    assert_eq!(answers.iter().map(|answer| answer.reason.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    let mut stream =
        client().op_control_stream(OpControlSubscribeRequest::default()).await.unwrap().into_inner();
    for sequence in 0..3 {
        assert_eq!(stream.message().await.unwrap().map(|message| message.sequence), Some(sequence));
    }
    assert_eq!(stream.message().await.unwrap(), None);
}

#[tokio::test]
async fn a_small_message_that_would_take_much_memory_is_refused() {
    let batch = BatchCheckRequest { requests: vec![CheckActionRequest::default(); 150_000] };
    let refused = client().batch_check(batch).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let batch = BatchCheckRequest { requests: vec![CheckActionRequest::default(); 10_000] };
    assert_eq!(client().batch_check(batch).await.unwrap().into_inner().responses.len(), 10_000);
}
