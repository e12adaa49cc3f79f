//! gRPC: the service `proctor.atp.v1.Agent`.

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use futures_util::{Stream, StreamExt};
use proctor_net::auth::Credentials;
use proctor_wire::atp::limits::MAX_MESSAGE;
use tonic::{Request, Response, Status};

use super::{Agent, AgentServer, Outgoing};
use crate::atp::proto;
use crate::atp::proto::agent_server::{Agent as AgentService, AgentServer as Service};
use crate::atp::proto::message::Kind;
use crate::grpc_auth::authenticate;

/// The service, as a router for [`proctor_net::listen::serve`]; can be merged with those of other services.
///
/// A request that the server refuses is answered with a failed response, as on every transport; only one over 16 MiB is a status.
pub fn routes<A: Agent>(server: AgentServer<A>, credentials: Arc<Credentials>) -> Router {
    let service = Service::new(Calls { server })
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(usize::MAX);
    Router::new()
        .route_service("/proctor.atp.v1.Agent/{*method}", service)
        .route_layer(from_fn_with_state(credentials, authenticate))
}

struct Calls<A> {
    server: AgentServer<A>,
}

type Messages = Pin<Box<dyn Stream<Item = Result<proto::Message, Status>> + Send>>;

#[tonic::async_trait]
impl<A: Agent> AgentService for Calls<A> {
    async fn execute(&self, request: Request<proto::Request>) -> Result<Response<proto::Response>, Status> {
        let text = match self.server.begin(&request.into_inner().request_json) {
            Ok(execution) => execution.response().await,
            Err(refusal) => refusal.response,
        };
        Ok(Response::new(proto::Response { response_json: text.into_bytes() }))
    }

    type ExecuteStreamStream = Messages;

    async fn execute_stream(&self, request: Request<proto::Request>) -> Result<Response<Messages>, Status> {
        let messages: Messages = match self.server.begin(&request.into_inner().request_json) {
            // The stream owns the execution: a caller that goes away drops it.
            Ok(execution) => futures_util::stream::unfold(execution, |mut execution| async move {
                let message = execution.next().await?;
                Some((Ok(envelope(message)), execution))
            })
            .boxed(),
            Err(refusal) => {
                let refused = envelope(Outgoing::Response(refusal.response));
                futures_util::stream::once(async { Ok(refused) }).boxed()
            }
        };
        Ok(Response::new(messages))
    }
}

fn envelope(message: Outgoing) -> proto::Message {
    let kind = match message {
        Outgoing::Event(text) => Kind::EventJson(text.into_bytes()),
        Outgoing::Response(text) => Kind::ResponseJson(text.into_bytes()),
    };
    proto::Message { kind: Some(kind) }
}
