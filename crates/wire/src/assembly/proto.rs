//! The messages, generated from `proto/assembly`; one module a package. Unknown fields are skipped, absent ones have their defaults, and
//! maps are sorted, so that a message has one encoding.

/// Declares the module of a package.
macro_rules! package {
    ($(#[$doc:meta])* $package:ident, $name:literal) => {
        $(#[$doc])*
        pub mod $package {
            /// Version 1.
            #[allow(
                missing_docs,
                unreachable_pub,
                clippy::all,
                clippy::pedantic,
                clippy::allow_attributes_without_reason,
                reason = "generated"
            )]
            pub mod v1 {
                include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
            }
        }
    };
}

package!(
    /// Types that all packages share.
    common, "assembly.common.v1"
);
package!(
    /// An agent's life, from registration to its end.
    agent, "assembly.agent.v1"
);
package!(
    /// Asking before an action is taken.
    policy, "assembly.policy.v1"
);
package!(
    /// Audit events, reported by agents.
    audit, "assembly.audit.v1"
);
package!(
    /// The event bus, and the outcome of an approval.
    event, "assembly.event.v1"
);
package!(
    /// People decide what waits for them.
    approval, "assembly.approval.v1"
);
package!(
    /// Lineage and communication between agents.
    topology, "assembly.topology.v1"
);
package!(
    /// Cache invalidation of runtimes.
    gateway, "assembly.gateway.v1"
);
package!(
    /// The first two frames on the local socket.
    ipc, "assembly.ipc.v1"
);

mod debug;
