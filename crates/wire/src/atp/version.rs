//! Protocol versions: `MAJOR.MINOR`.

/// The supported major version.
const MAJOR: &str = "1";

/// The version of a message, of the supported major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Version {
    /// The minor version; saturates.
    pub minor: u64,
}

/// A version that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionProblem {
    Malformed,
    OtherMajor,
}

impl Version {
    /// Reads `MAJOR.MINOR`; none for another major version and for anything malformed.
    pub fn parse(text: &str) -> Option<Version> {
        Version::read(text).ok()
    }

    /// Whether the minor version is higher than the one that this implementation knows, so that it may have other event types.
    pub fn is_newer(self) -> bool {
        self.minor > 0
    }

    pub(super) fn read(text: &str) -> Result<Version, VersionProblem> {
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        match text.split_once('.') {
            Some((major, minor)) if is_digits(major) && is_digits(minor) => {
                if major.trim_start_matches('0') == MAJOR {
                    Ok(Version { minor: minor.parse().unwrap_or(u64::MAX) })
                } else {
                    Err(VersionProblem::OtherMajor)
                }
            }
            _ => Err(VersionProblem::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_apart() {
        assert_eq!(Version::read("1.0"), Ok(Version { minor: 0 }));
        assert_eq!(Version::read("1.99999999999999999999"), Ok(Version { minor: u64::MAX }));
        assert!(Version { minor: 1 }.is_newer() && !Version::default().is_newer());
        for other in ["0.9", "2.0", "11.0", "10.1"] {
            assert_eq!(Version::read(other), Err(VersionProblem::OtherMajor), "{other}");
        }
        for malformed in ["", "1", "1.", ".0", "1.0.0", "v1.0", "1.x", " 1.0", "1.0\n", "١.٠", "1,0", "-1.0"]
        {
            assert_eq!(Version::read(malformed), Err(VersionProblem::Malformed), "{malformed}");
        }
    }
}
