//! The standard gRPC health service. Every service is reported as serving until the server stops.

use std::pin::Pin;

use axum::Router;
use futures_util::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use proto::health_check_response::ServingStatus;
use proto::health_server::{Health, HealthServer};
use proto::{HealthCheckRequest, HealthCheckResponse};

generated! {
    /// Generated messages and stubs.
    proto, "grpc.health.v1"
}

/// The service, as a router that [`proctor_net::listen::serve`] takes; can be merged with others. Streams end with `stop`.
pub fn routes(stop: CancellationToken) -> Router {
    Router::new().route_service("/grpc.health.v1.Health/{*method}", HealthServer::new(Serving { stop }))
}

struct Serving {
    stop: CancellationToken,
}

const SERVING: HealthCheckResponse = HealthCheckResponse { status: ServingStatus::Serving as i32 };

#[tonic::async_trait]
impl Health for Serving {
    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(SERVING))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        // The status changes only once, when the server stops.
        let stop = self.stop.clone();
        let ended = futures_util::stream::once(async move {
            stop.cancelled().await;
            Ok(HealthCheckResponse { status: ServingStatus::NotServing.into() })
        });
        let now = futures_util::stream::once(async { Ok(SERVING) });
        Ok(Response::new(Box::pin(futures_util::StreamExt::chain(now, ended))))
    }
}
