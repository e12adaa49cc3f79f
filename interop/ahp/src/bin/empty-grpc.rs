//! A gRPC server that does nothing but say allow: the floor that any gRPC server stands on.

use interop_ahp::grpc::harness_server::{Harness, HarnessServer};
use interop_ahp::grpc::response::Outcome;
use interop_ahp::grpc::{Acknowledgement, Notification, Request, Response};
use tokio::net::TcpListener;
use tonic::Status;
use tonic::codegen::BoxStream;
use tonic::transport::server::TcpIncoming;

struct Empty;

#[tonic::async_trait]
impl Harness for Empty {
    type StreamStream = BoxStream<Response>;

    async fn call(&self, request: tonic::Request<Request>) -> Result<tonic::Response<Response>, Status> {
        let id = request.into_inner().id.unwrap_or_default();
        let outcome = Some(Outcome::ResultJson(br#"{"decision":"allow"}"#.to_vec()));
        Ok(tonic::Response::new(Response { id, outcome }))
    }

    async fn notify(
        &self,
        _request: tonic::Request<Notification>,
    ) -> Result<tonic::Response<Acknowledgement>, Status> {
        Ok(tonic::Response::new(Acknowledgement { refusal: None }))
    }

    async fn stream(
        &self,
        _request: tonic::Request<tonic::Streaming<Request>>,
    ) -> Result<tonic::Response<Self::StreamStream>, Status> {
        Err(Status::unimplemented("only unary calls"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("{}", serde_json::json!({ "address": listener.local_addr()?.to_string() }));
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    tonic::transport::Server::builder()
        .add_service(HarnessServer::new(Empty))
        .serve_with_incoming(incoming)
        .await?;
    Ok(())
}
