//! The services of `proto/assembly` of the wire crate, generated: a client, a server and the server's trait for each.

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
    /// `AgentLifecycleService`: an agent's life, from registration to its end.
    agent, "assembly.agent.v1"
);
service!(
    /// `PolicyService`: asking before an action is taken.
    policy, "assembly.policy.v1"
);
service!(
    /// `AuditService`: what happened, reported by agents.
    audit, "assembly.audit.v1"
);
service!(
    /// `ApprovalService`: people decide what waits for them.
    approval, "assembly.approval.v1"
);
service!(
    /// `TopologyService`: who started whom, and who talks to whom.
    topology, "assembly.topology.v1"
);
service!(
    /// `InvalidationService`: what a runtime remembers and must forget.
    invalidation, "assembly.gateway.v1"
);
