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

    /// Name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserNamespace => "user-namespace",
            Self::MountNamespace => "mount-namespace",
            Self::PidNamespace => "pid-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::NetworkNamespace => "network-namespace",
            Self::PidMax => "pid-max",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::ResourceLimits => "resource-limits",
            Self::Supervisor => "supervisor",
        }
    }

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

/// Name that is no feature's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no kernel feature that a sandbox uses; the features are {}", known())]
pub struct UnknownFeature {
    /// Name as given.
    pub name: String,
}

fn known() -> String {
    Feature::ALL.map(Feature::name).join(", ")
}

impl std::str::FromStr for Feature {
    type Err = UnknownFeature;

    fn from_str(name: &str) -> Result<Self, UnknownFeature> {
        let found = Self::ALL.into_iter().find(|feature| feature.name() == name);
        found.ok_or_else(|| UnknownFeature { name: name.to_owned() })
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

    /// Every feature but those of a comma-separated list of names.
    pub fn all_but(names: &str) -> Result<Self, UnknownFeature> {
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        names
            .map(str::parse)
            .try_fold(Self::all(), |features, away: Result<Feature, _>| Ok(features.without(away?)))
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
    fn features_are_left_out_by_name() {
        for feature in Feature::ALL {
            assert_eq!(feature.name().parse(), Ok(feature));
        }
        let expected = Features::all().without(Feature::Landlock).without(Feature::PidMax);
        assert_eq!(Features::all_but(" landlock, pid-max,"), Ok(expected));
        let error = Features::all_but("landlock,cgroup").unwrap_err().to_string();
        assert!(error.starts_with(
            "`cgroup` is no kernel feature that a sandbox uses; the features are user-namespace,"
        ));
    }

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
