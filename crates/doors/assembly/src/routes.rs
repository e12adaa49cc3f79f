//! Router of all services.

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use proctor_clients::assembly::services::agent::agent_lifecycle_service_server::AgentLifecycleServiceServer;
use proctor_clients::assembly::services::approval::approval_service_server::ApprovalServiceServer;
use proctor_clients::assembly::services::audit::audit_service_server::AuditServiceServer;
use proctor_clients::assembly::services::invalidation::invalidation_service_server::InvalidationServiceServer;
use proctor_clients::assembly::services::policy::policy_service_server::PolicyServiceServer;
use proctor_clients::assembly::services::topology::topology_service_server::TopologyServiceServer;
use proctor_net::grpc::count_messages;
use proctor_wire::assembly::MAX_GRPC_MESSAGE;

use super::AssemblyDoor;

/// Builds the router of all services and the health check.
pub fn routes(door: &AssemblyDoor) -> Router {
    macro_rules! service {
        ($path:literal, $server:ident) => {
            service!($path, $server, door.clone())
        };
        ($path:literal, $server:ident, $service:expr) => {
            (
                concat!("/", $path, "/{*method}"),
                $server::new($service)
                    .max_decoding_message_size(MAX_GRPC_MESSAGE)
                    .max_encoding_message_size(usize::MAX),
            )
        };
    }
    let (lifecycle_path, lifecycle) =
        service!("assembly.agent.v1.AgentLifecycleService", AgentLifecycleServiceServer);
    let (policy_path, policy) =
        service!("assembly.policy.v1.PolicyService", PolicyServiceServer, door.clone());
    let (audit_path, audit) = service!("assembly.audit.v1.AuditService", AuditServiceServer);
    let (approval_path, approval) = service!("assembly.approval.v1.ApprovalService", ApprovalServiceServer);
    let (topology_path, topology) = service!("assembly.topology.v1.TopologyService", TopologyServiceServer);
    let (invalidation_path, invalidation) =
        service!("assembly.gateway.v1.InvalidationService", InvalidationServiceServer);
    Router::new()
        .route_service(lifecycle_path, lifecycle)
        .route_service(policy_path, policy)
        .route_service(audit_path, audit)
        .route_service(approval_path, approval)
        .route_service(topology_path, topology)
        .route_service(invalidation_path, invalidation)
        .merge(proctor_clients::health::routes(door.inner.stop.clone()))
        .layer(from_fn(count_messages))
        .layer(from_fn(only_grpc))
}

/// Rejects requests that are not gRPC. A web page can make a browser post here, but the gRPC content type requires a CORS preflight, which
/// is never granted.
async fn only_grpc(request: Request, next: Next) -> Response {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/grpc") {
        next.run(request).await
    } else {
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, "this is for gRPC\n").into_response()
    }
}
