//! Generated services of the wire crate's `proto/assembly`: a client, a server and the server's trait for each.

generated!(
    /// `AgentLifecycleService`: registration, heartbeats, commands and deregistration of agents.
    agent, "assembly.agent.v1"
);
generated!(
    /// `PolicyService`: decisions on actions.
    policy, "assembly.policy.v1"
);
generated!(
    /// `AuditService`: events that agents report.
    audit, "assembly.audit.v1"
);
generated!(
    /// `ApprovalService`: approvals by people.
    approval, "assembly.approval.v1"
);
generated!(
    /// `TopologyService`: lineage, teams and edges of agents.
    topology, "assembly.topology.v1"
);
generated!(
    /// `InvalidationService`: invalidation of a runtime's caches.
    invalidation, "assembly.gateway.v1"
);
