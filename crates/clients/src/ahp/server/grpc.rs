//! gRPC: the service `proctor.ahp.v1.Harness`.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use proctor_core::json::Json;
use proctor_net::accept::ConnectionSlot;
use proctor_net::auth::Credentials;
use proctor_net::connection::{self, End, Work};
use proctor_net::grpc::count_messages;
use proctor_net::grpc::server::{CallTransport, Replies};
use proctor_net::lines::MAX_MESSAGE;
use proctor_net::listen::ConnectionInfo;
use proctor_wire::ahp::rpc::{INVALID_REQUEST, MAX_ID, MAX_VALUES, PARSE_ERROR, RpcError};
use tokio_util::sync::PollSender;
use tonic::{Request, Response, Status, Streaming};

use super::{AhpServer, EventHandler, Peer, StreamLimits, safe};
use crate::ahp::grpc::harness_server::{Harness, HarnessServer};
use crate::ahp::grpc::{self as proto, response::Outcome};
use crate::grpc_auth::authenticate;

/// Replies of a stream that wait for the transport.
const UNSENT: usize = 64;

/// The service, as a router for [`proctor_net::listen::serve`]; can be merged with those of other transports.
pub fn routes<H: EventHandler>(server: AhpServer<H>, credentials: Arc<Credentials>) -> Router {
    let service = HarnessServer::new(Service { server })
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(usize::MAX);
    Router::new()
        .route_service("/proctor.ahp.v1.Harness/{*method}", service)
        .route_layer(from_fn(count_messages))
        .route_layer(from_fn_with_state(credentials, authenticate))
}

struct Service<H> {
    server: AhpServer<H>,
}

#[tonic::async_trait]
impl<H: EventHandler> Harness for Service<H> {
    async fn call(&self, mut request: Request<proto::Request>) -> Result<Response<proto::Response>, Status> {
        let peer = peer(&mut request)?;
        let message = request.into_inner();
        let id = message.id.unwrap_or_default();
        let params = self.read(&peer, &id, &message.method, &message.params_json);
        let length = message.params_json.len();
        Ok(Response::new(self.answer(&peer, id, &message.method, params, length).await))
    }

    async fn notify(
        &self,
        mut request: Request<proto::Notification>,
    ) -> Result<Response<proto::Acknowledgement>, Status> {
        let peer = peer(&mut request)?;
        let slot = slot(&mut request);
        let message = request.into_inner();
        let taken = match self.read(&peer, "", &message.method, &message.params_json) {
            Ok(params) => self.server.take_notification(peer, message.method, params, slot).await,
            Err(error) => Err(error),
        };
        Ok(Response::new(proto::Acknowledgement { refusal: taken.err().map(refusal) }))
    }

    type StreamStream = Replies<proto::Response>;

    async fn stream(
        &self,
        mut request: Request<Streaming<proto::Request>>,
    ) -> Result<Response<Replies<proto::Response>>, Status> {
        let peer = peer(&mut request)?;
        let slot = slot(&mut request);
        let (sender, receiver) = tokio::sync::mpsc::channel(UNSENT);
        let mut transport = CallTransport::new(request.into_inner(), PollSender::new(sender.clone()));
        let service = Service { server: self.server.clone() };
        // A separate task: received messages are handled also while the transport takes no replies, and after the caller has left.
        tokio::spawn(async move {
            let (stop, abort) = (slot.stop.clone(), slot.abort.clone());
            let bounds = &service.server.inner.bounds;
            let limits = StreamLimits { idle: None, ..StreamLimits::socket() };
            let begin = |message| service.begin(&peer, message);
            let end = tokio::select! {
                biased;
                () = abort.cancelled() => Ok(End::Stopped),
                end = connection::serve(&mut transport, bounds, &limits, &stop, begin) => end,
            };
            // Not awaited: a caller that does not read its replies does not get this one either.
            if let Some(status) = final_status(end) {
                let _ = sender.try_send(Err(status));
            }
            drop(slot);
        });
        Ok(Response::new(Replies::new(receiver)))
    }
}

impl<H: EventHandler> Service<H> {
    fn begin<'a>(
        &'a self,
        peer: &'a Peer,
        message: proto::Request,
    ) -> Work<impl Future<Output = Option<proto::Response>> + 'a, proto::Response> {
        let proto::Request { id, method, params_json } = message;
        let params = self.read(peer, id.as_deref().unwrap_or_default(), &method, &params_json);
        if let (None, Err(_)) = (&id, &params) {
            return Work::Done;
        }
        let length = params_json.len();
        Work::Pending(async move {
            match (id, params) {
                (Some(id), params) => Some(self.answer(peer, id, &method, params, length).await),
                (None, params) => {
                    // A notification has no reply; the handler is told of violations.
                    let _ = self.server.notify(peer, &method, params.ok()?).await;
                    None
                }
            }
        })
    }

    fn read(&self, peer: &Peer, id: &str, method: &str, params: &[u8]) -> Result<Json, RpcError> {
        let read = if id.len() > MAX_ID {
            Err(RpcError::new(
                INVALID_REQUEST,
                format!("Invalid request: `id` is longer than {MAX_ID} bytes"),
            ))
        } else if params.is_empty() {
            Err(RpcError::new(INVALID_REQUEST, "Invalid request: `params_json` is missing"))
        } else {
            Json::parse_bounded(params, MAX_VALUES)
                .map_err(|error| RpcError::new(PARSE_ERROR, format!("Parse error: {error}")))
        };
        read.inspect_err(|error| self.server.violated(peer, Some(method), error))
    }

    async fn answer(
        &self,
        peer: &Peer,
        id: String,
        method: &str,
        params: Result<Json, RpcError>,
        length: usize,
    ) -> proto::Response {
        let answer = match (params, self.server.inner.bounds.memory.try_reserve_handling(length)) {
            (Ok(params), Some(_reservation)) => self.server.answer(peer, method, params).await,
            (Ok(params), None) => safe::overloaded_result(method, &params),
            (Err(error), _) => Err(error),
        };
        let outcome = match answer {
            Ok(result) => Outcome::ResultJson(result.into_bytes()),
            Err(error) => Outcome::Refusal(refusal(error)),
        };
        // An overlong identifier is not echoed.
        let id = if id.len() > MAX_ID { String::new() } else { id };
        proto::Response { id, outcome: Some(outcome) }
    }
}

/// The status of a stream that the caller did not end.
fn final_status(end: io::Result<End>) -> Option<Status> {
    match end {
        Ok(End::Finished) => None,
        Ok(End::Stopped | End::Idle) => Some(Status::unavailable("the harness stops")),
        Err(error) => Some(match error.downcast::<Status>() {
            Ok(status) => status,
            Err(error) => Status::aborted(error.to_string()),
        }),
    }
}

fn refusal(error: RpcError) -> proto::Refusal {
    let data_json = error.data.map(|data| data.to_string().into_bytes()).unwrap_or_default();
    proto::Refusal { code: error.code, message: error.message, data_json }
}

fn peer<T>(request: &mut Request<T>) -> Result<Peer, Status> {
    request.extensions_mut().remove::<Peer>().ok_or_else(|| Status::internal("the caller was not identified"))
}

fn slot<T>(request: &mut Request<T>) -> Arc<ConnectionSlot> {
    let connection = request.extensions_mut().remove::<ConnectionInfo>();
    connection.map_or_else(|| Arc::new(ConnectionSlot::uncounted()), |it| it.slot())
}

#[cfg(test)]
mod tests;
