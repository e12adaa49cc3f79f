use std::fmt;

use super::ProblemKind;
use crate::atp::limits::MAX_LISTED;

/// A tolerated deviation, at one position of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// JSON path of the position.
    pub path: String,
    /// The deviation.
    pub kind: WarningKind,
    /// For [`WarningKind::RefusedInRuns`], the rule that a run would enforce.
    pub problem: Option<ProblemKind>,
}

/// Kinds of tolerated deviations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WarningKind {
    /// `version` is absent; 1.0 is assumed.
    NoVersion,
    /// A task id that is no UUID.
    TaskIdNotUuid,
    /// A time without its zone; UTC is assumed.
    TimeWithoutZone,
    /// `null` instead of an absent member.
    NullForAbsent,
    /// An expected artifact that is a path, not an object.
    ExpectedArtifactAsText,
    /// A response without `artifacts`.
    NoArtifacts,
    /// A response without `metrics`.
    NoMetrics,
    /// An event without `sequence`.
    NoSequence,
    /// An event without `timestamp`.
    NoTimestamp,
    /// The plan of a reasoning event as text, not as a list.
    PlanAsText,
    /// A tool call's input under its former name `args`.
    LegacyArgs,
    /// A description longer than the document allows.
    LongDescription,
    /// An event type that a higher minor version may have. The event is kept.
    UnknownEventType,
    /// Inline content of another size than `size_bytes` says.
    SizeMismatch,
    /// Inline content with another hash than `content_hash` says.
    HashMismatch,
    /// A `content_hash` that is not `sha256:`, so that it cannot be checked.
    HashNotChecked,
    /// In strict mode: valid by the document's schema, but a run would refuse it.
    RefusedInRuns,
}

/// The warnings of one message or of a conversation: the first ones listed, all counted by kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Warnings {
    listed: Vec<Warning>,
    counts: [u64; WarningKind::ALL.len()],
}

impl WarningKind {
    /// All kinds.
    pub const ALL: [WarningKind; 17] = [
        WarningKind::NoVersion,
        WarningKind::TaskIdNotUuid,
        WarningKind::TimeWithoutZone,
        WarningKind::NullForAbsent,
        WarningKind::ExpectedArtifactAsText,
        WarningKind::NoArtifacts,
        WarningKind::NoMetrics,
        WarningKind::NoSequence,
        WarningKind::NoTimestamp,
        WarningKind::PlanAsText,
        WarningKind::LegacyArgs,
        WarningKind::LongDescription,
        WarningKind::UnknownEventType,
        WarningKind::SizeMismatch,
        WarningKind::HashMismatch,
        WarningKind::HashNotChecked,
        WarningKind::RefusedInRuns,
    ];

    /// The stable name, for reports.
    pub fn name(self) -> &'static str {
        match self {
            WarningKind::NoVersion => "no_version",
            WarningKind::TaskIdNotUuid => "task_id_not_uuid",
            WarningKind::TimeWithoutZone => "time_without_zone",
            WarningKind::NullForAbsent => "null_for_absent",
            WarningKind::ExpectedArtifactAsText => "expected_artifact_as_text",
            WarningKind::NoArtifacts => "no_artifacts",
            WarningKind::NoMetrics => "no_metrics",
            WarningKind::NoSequence => "no_sequence",
            WarningKind::NoTimestamp => "no_timestamp",
            WarningKind::PlanAsText => "plan_as_text",
            WarningKind::LegacyArgs => "legacy_args",
            WarningKind::LongDescription => "long_description",
            WarningKind::UnknownEventType => "unknown_event_type",
            WarningKind::SizeMismatch => "size_mismatch",
            WarningKind::HashMismatch => "hash_mismatch",
            WarningKind::HashNotChecked => "hash_not_checked",
            WarningKind::RefusedInRuns => "refused_in_runs",
        }
    }

    fn text(self) -> &'static str {
        match self {
            WarningKind::NoVersion => "version is absent, 1.0 is assumed",
            WarningKind::TaskIdNotUuid => "task id is not a UUID",
            WarningKind::TimeWithoutZone => "time has no zone, UTC is assumed",
            WarningKind::NullForAbsent => "null instead of an absent member",
            WarningKind::ExpectedArtifactAsText => "expected artifact is a text, not an object",
            WarningKind::NoArtifacts => "artifacts are absent, an empty list is assumed",
            WarningKind::NoMetrics => "metrics are absent",
            WarningKind::NoSequence => "sequence is absent",
            WarningKind::NoTimestamp => "timestamp is absent",
            WarningKind::PlanAsText => "plan is a text, not a list",
            WarningKind::LegacyArgs => "input is named `args`",
            WarningKind::LongDescription => "description is longer than the document's 10000 characters",
            WarningKind::UnknownEventType => "event type is unknown, the event is kept",
            WarningKind::SizeMismatch => "content has another size than `size_bytes`",
            WarningKind::HashMismatch => "content has another hash than `content_hash`",
            WarningKind::HashNotChecked => "hash is not `sha256:`, so it was not checked",
            WarningKind::RefusedInRuns => "valid by the schema, but a run would refuse it",
        }
    }
}

impl Warnings {
    /// The first [`MAX_LISTED`] warnings.
    pub fn listed(&self) -> &[Warning] {
        &self.listed
    }

    /// Number of warnings, listed or not.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Number of warnings of one kind.
    pub fn count(&self, kind: WarningKind) -> u64 {
        self.counts.get(kind as usize).copied().unwrap_or_default()
    }

    /// Kinds that occurred, with their numbers.
    pub fn counts(&self) -> impl Iterator<Item = (WarningKind, u64)> {
        WarningKind::ALL.into_iter().map(|kind| (kind, self.count(kind))).filter(|(_, count)| *count > 0)
    }

    /// Whether there is no warning.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    pub(in crate::atp) fn add(
        &mut self,
        path: impl fmt::Display,
        kind: WarningKind,
        problem: Option<ProblemKind>,
    ) {
        self.increase(kind, 1);
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Warning { path: path.to_string(), kind, problem });
        }
    }

    /// Adds the warnings of one more message.
    pub(in crate::atp) fn extend(&mut self, others: Warnings) {
        for (kind, count) in others.counts() {
            self.increase(kind, count);
        }
        let left = MAX_LISTED.saturating_sub(self.listed.len());
        self.listed.extend(others.listed.into_iter().take(left));
    }

    fn increase(&mut self, kind: WarningKind, by: u64) {
        if let Some(count) = self.counts.get_mut(kind as usize) {
            *count += by;
        }
    }
}

impl fmt::Display for WarningKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.text())
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path, self.kind)?;
        match &self.problem {
            Some(problem) => write!(out, ": {problem}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_their_own_index() {
        for (index, kind) in WarningKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }

    #[test]
    fn warnings_beyond_the_limit_are_counted() {
        let mut one = Warnings::default();
        for index in 0..MAX_LISTED + 5 {
            one.add(format_args!("$[{index}]"), WarningKind::NoVersion, None);
        }
        let mut both = one.clone();
        both.extend(one);
        assert_eq!(both.listed().len(), MAX_LISTED);
        assert_eq!(both.count(WarningKind::NoVersion), 2 * (MAX_LISTED as u64 + 5));
        assert_eq!(both.counts().count(), 1);
    }
}
