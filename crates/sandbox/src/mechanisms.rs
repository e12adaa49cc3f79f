//! Features that a sandbox found working, and why others do not.

use crate::features::{Feature, Features};
use crate::sys;
use std::collections::BTreeMap;

/// Features in use, with the reason for each one that is not.
#[derive(Clone, Debug)]
pub(crate) struct Mechanisms {
    usable: Features,
    absent: BTreeMap<Feature, String>,
    pub(crate) landlock_version: u32,
}

/// Namespaces that an ordinary user gets only together with a user namespace.
const NAMESPACES: [Feature; 4] =
    [Feature::MountNamespace, Feature::PidNamespace, Feature::IpcNamespace, Feature::NetworkNamespace];

impl Mechanisms {
    /// Candidates: what may be used, before anything was tried.
    pub(crate) fn candidates(allowed: Features) -> Self {
        let mut mechanisms = Self { usable: Features::all(), absent: BTreeMap::new(), landlock_version: 0 };
        for feature in Feature::ALL {
            if !allowed.has(feature) {
                mechanisms.remove(feature, "switched off");
            }
        }
        match sys::landlock::version() {
            Ok(version) => mechanisms.landlock_version = version,
            Err(errno) => mechanisms.remove(Feature::Landlock, &std::io::Error::from(errno).to_string()),
        }
        mechanisms.remove_dependent();
        mechanisms
    }

    /// No feature: the sandbox is off.
    pub(crate) fn off() -> Self {
        Self { usable: Features::none(), absent: BTreeMap::new(), landlock_version: 0 }
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.usable.has(feature)
    }

    /// Takes a feature out of use.
    pub(crate) fn remove(&mut self, feature: Feature, reason: &str) {
        if self.usable.has(feature) {
            self.usable = self.usable.without(feature);
            self.absent.insert(feature, reason.to_owned());
        }
    }

    /// Takes features out of use that need another one.
    pub(crate) fn remove_dependent(&mut self) {
        if !self.has(Feature::UserNamespace) && sys::process::user_id() != 0 {
            for feature in NAMESPACES {
                self.remove(feature, "an ordinary user needs a user namespace for it");
            }
        }
        if !NAMESPACES.iter().any(|feature| self.has(*feature)) {
            self.remove(Feature::UserNamespace, "no other namespace to use it for");
        }
        if !self.has(Feature::PidNamespace) {
            self.remove(Feature::PidMax, "it needs a PID namespace");
        }
    }

    /// Text on features that would hold a protection, but are not in use.
    pub(crate) fn why_absent(&self, features: &[Feature]) -> String {
        let mut text = String::new();
        for feature in features {
            if let Some(reason) = self.absent.get(feature) {
                let separator = if text.is_empty() { "" } else { "; " };
                text.push_str(&format!("{separator}no {feature} ({reason})"));
            }
        }
        text
    }

    /// Flags of `clone` for the namespaces in use, except the network's, which is entered.
    pub(crate) fn clone_flags(&self) -> i32 {
        [
            (Feature::UserNamespace, libc::CLONE_NEWUSER),
            (Feature::MountNamespace, libc::CLONE_NEWNS),
            (Feature::PidNamespace, libc::CLONE_NEWPID),
            (Feature::IpcNamespace, libc::CLONE_NEWIPC),
        ]
        .into_iter()
        .filter(|(feature, _)| self.has(*feature))
        .fold(0, |flags, (_, flag)| flags | flag)
    }
}
