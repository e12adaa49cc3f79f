//! Environment of a task's process.

use std::ffi::OsString;

use proctor_core::json::Json;
use proctor_identity::environment::is_operational;

use super::read::member;

/// Operational variables of the surroundings, overlaid by `shell.env`. Credentials come on top of these.
pub(super) fn environment(
    surroundings: &[(OsString, OsString)],
    shell: Option<&Json>,
) -> Vec<(OsString, OsString)> {
    let own = shell.and_then(|shell| member(shell, "env")).and_then(Json::as_object).unwrap_or_default();
    let own = own.iter().filter_map(|(name, value)| Some((name.into(), value.as_str()?.into())));
    let inherited = surroundings.iter().filter(|(name, _)| is_operational(name)).cloned();
    inherited.chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operational_variables_and_those_of_the_task_are_passed() {
        let around: Vec<(OsString, OsString)> = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("LCD", "no"),
            ("AWS_SECRET_ACCESS_KEY", "no"),
            ("LD_PRELOAD", "no"),
            ("TZ", "UTC"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
        let shell = Json::parse(br#"{"env":{"TZ":"Asia/Tokyo","MODE":"x"}}"#).unwrap();
        let made: std::collections::BTreeMap<_, _> = environment(&around, Some(&shell)).into_iter().collect();
        let text = made
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect::<Vec<_>>();
        assert_eq!(text, ["LC_ALL=C", "MODE=x", "PATH=/bin", "TZ=Asia/Tokyo"]);
    }
}
