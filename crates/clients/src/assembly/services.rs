//! Generated services of the wire crate's `proto/assembly`: a client, a server and the server's trait for each.

/// Declares the module of a service.
macro_rules! service {
    ($(#[$doc:meta])* $module:ident, $package:literal) => {
        $(#[$doc])*
        #[allow(
            missing_docs,
            unreachable_pub,
            clippy::all,
            clippy::pedantic,
            clippy::allow_attributes_without_reason,
            reason = "generated"
        )]
        pub mod $module {
            tonic::include_proto!($package);
        }
    };
}

service!(
    /// `AgentLifecycleService`: registration, heartbeats, commands and deregistration of agents.
    agent, "assembly.agent.v1"
);
service!(
    /// `PolicyService`: decisions on actions.
    policy, "assembly.policy.v1"
);
service!(
    /// `AuditService`: events that agents report.
    audit, "assembly.audit.v1"
);
service!(
    /// `ApprovalService`: approvals by people.
    approval, "assembly.approval.v1"
);
service!(
    /// `TopologyService`: lineage, teams and edges of agents.
    topology, "assembly.topology.v1"
);
service!(
    /// `InvalidationService`: invalidation of a runtime's caches.
    invalidation, "assembly.gateway.v1"
);
