//! Kernel features that a sandbox may use.

/// Kernel feature, or supervision in its place, that holds protections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// User namespaces, which give ordinary users the others.
    UserNamespace,
    /// Mount namespaces with recursive read-only remounts and masks.
    MountNamespace,
    /// PID namespaces, whose processes end with their first one.
    PidNamespace,
    /// IPC namespaces.
    IpcNamespace,
    /// Network namespaces.
    NetworkNamespace,
    /// `pid_max` of a PID namespace of its own (Linux 6.14).
    PidMax,
    /// Landlock.
    Landlock,
    /// System call filters.
    Seccomp,
    /// Resource limits of processes.
    ResourceLimits,
    /// Samples of memory and process count, taken from `/proc`.
    Supervisor,
}

impl Feature {
    /// All features.
    pub const ALL: [Self; 10] = [
        Self::UserNamespace,
        Self::MountNamespace,
        Self::PidNamespace,
        Self::IpcNamespace,
        Self::NetworkNamespace,
        Self::PidMax,
        Self::Landlock,
        Self::Seccomp,
        Self::ResourceLimits,
        Self::Supervisor,
    ];

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

impl std::fmt::Display for Feature {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::UserNamespace => "user namespace",
            Self::MountNamespace => "mount namespace",
            Self::PidNamespace => "PID namespace",
            Self::IpcNamespace => "IPC namespace",
            Self::NetworkNamespace => "network namespace",
            Self::PidMax => "pid_max of the PID namespace",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
            Self::ResourceLimits => "resource limits",
            Self::Supervisor => "supervisor",
        })
    }
}

/// Set of features that a sandbox may use: what is not in it is treated as if the kernel refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(u16);

impl Features {
    /// Every feature that the kernel grants.
    pub fn all() -> Self {
        Self(Feature::ALL.into_iter().fold(0, |bits, feature| bits | feature.bit()))
    }

    /// No feature at all.
    pub fn none() -> Self {
        Self(0)
    }

    /// The same set without one feature.
    #[must_use]
    pub fn without(self, feature: Feature) -> Self {
        Self(self.0 & !feature.bit())
    }

    /// Whether a feature may be used.
    pub fn has(self, feature: Feature) -> bool {
        self.0 & feature.bit() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Feature, Features};

    #[test]
    fn a_feature_taken_away_takes_no_other_with_it() {
        for away in Feature::ALL {
            let left = Features::all().without(away);
            for feature in Feature::ALL {
                assert_eq!(left.has(feature), feature != away, "{feature} without {away}");
                assert!(!Features::none().has(feature));
            }
        }
    }
}
