//! Comparison of sections, key by key.

use std::collections::BTreeSet;

use proctor_facts::tool::canonical_name;

use super::{Before, Changes};
use crate::document::{
    ActiveHours, AnomalySection, BudgetSection, CapabilitySection, CredentialAction, Document, Located,
    Response, ToolSection,
};
use crate::evaluate::{APPROVAL_SECONDS, response_strength};

/// Compares the sections of a document.
pub(super) fn compare(context: &Before, old: &Document, new: &Document, found: &mut Changes) {
    let mut say = |what: String| found.add(old, what);
    if !network_is_kept(context, old.network_allowlist.as_deref(), new.network_allowlist.as_deref()) {
        say("`network.allowlist` is gone, new or longer".to_owned());
    }
    compare_tools(context, &old.tools, &new.tools, &mut say);
    if !data_is_kept(context, old, new) {
        say("`data` changed".to_owned());
    }
    compare_budget(old.budget.as_ref(), new.budget.as_ref(), &mut say);
    if !hours_are_kept(old.active_hours.as_ref(), new.active_hours.as_ref()) {
        say("`schedule.active_hours` is gone or longer".to_owned());
    }
    compare_capabilities(context, old.capabilities.as_ref(), new.capabilities.as_ref(), &mut say);
    let timeout = |document: &Document| document.approval_timeout_secs.unwrap_or(APPROVAL_SECONDS);
    if timeout(new) > timeout(old) {
        say("approvals wait longer".to_owned());
    }
    if old.escalation_role.is_some() && old.escalation_role != new.escalation_role {
        say("`approval.escalation_role` changed".to_owned());
    }
    let observed = |document: &Document| values(&document.observe, str::to_owned);
    if !observed(new).is_subset(&observed(old)) {
        say("`observe` is new or longer".to_owned());
    }
    if !anomalies_are_kept(context, old.anomalies.as_ref(), new.anomalies.as_ref()) {
        say("`anomalies` watch for less, or respond less strictly".to_owned());
    }
}

fn values(texts: &[Located<String>], normalize: impl Fn(&str) -> String) -> BTreeSet<String> {
    texts.iter().map(|text| normalize(&text.value)).collect()
}

/// An allowlist denies hosts that are not on it, but it also permits those that are: a new one may lift the default, and makes hosts known
/// to `anomalies.unknown_hosts`.
fn network_is_kept(
    context: &Before,
    old: Option<&[Located<String>]>,
    new: Option<&[Located<String>]>,
) -> bool {
    let hosts = |list: &[Located<String>]| values(list, str::to_lowercase);
    match (old, new) {
        (None, None) => true,
        (None, Some(_)) => context.allows_by_default && !context.watches_hosts,
        (Some(_), None) => false,
        (Some(old), Some(new)) => hosts(new).is_subset(&hosts(old)),
    }
}

fn compare_tools(context: &Before, old: &[ToolSection], new: &[ToolSection], say: &mut impl FnMut(String)) {
    let find = |sections: &'_ [ToolSection], name: &str| {
        sections.iter().position(|section| section.name.eq_ignore_ascii_case(name))
    };
    // Of several entries that are the same tool under other names, the first counts.
    let kept: Vec<usize> = old.iter().filter_map(|section| find(new, &section.name)).collect();
    if !kept.is_sorted() {
        say("the entries of `tools` stand in another order".to_owned());
    }
    for before in old {
        match find(new, &before.name).and_then(|index| new.get(index)) {
            Some(after) if tool_is_kept(context, before, after) => {}
            Some(_) => say(format!("`tools.{}` is less strict", before.name)),
            None => {
                // What stands in for an entry that only allowed is not weaker; under another name it may ask, though.
                let same_tool = |section: &ToolSection| {
                    section.name != "*" && canonical_name(&section.name) == canonical_name(&before.name)
                };
                if !is_plain(before) || new.iter().any(same_tool) {
                    say(format!("`tools.{}` is gone", before.name));
                }
            }
        }
    }
    for after in new.iter().filter(|after| find(old, &after.name).is_none()) {
        // It takes the place of the entry `*`, also where that one asks or has a limit. Where there was none, and what nothing mentions
        // is allowed, it permits nothing new; a question may still outrank a deferral.
        let permits_nothing_new = old.is_empty()
            && context.allows_by_default
            && !(context.defers && after.requires_approval_if.is_some());
        if after.allow && !permits_nothing_new {
            say(format!("`tools.{}` is new", after.name));
        }
    }
}

/// Whether an entry permits a tool without any condition.
fn is_plain(section: &ToolSection) -> bool {
    section.allow && section.limit_per_hour.is_none() && section.requires_approval_if.is_none()
}

fn tool_is_kept(context: &Before, old: &ToolSection, new: &ToolSection) -> bool {
    if !new.allow {
        return true;
    }
    let limit = match (old.limit_per_hour, new.limit_per_hour) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(old), Some(new)) => new <= old,
    };
    let asks = match (&old.requires_approval_if, &new.requires_approval_if) {
        (None, None) => true,
        // The entry for the shell also asks about commands of other tools, which the default may deny.
        (None, Some(_)) => !context.ask_may_lift(),
        (old, new) => old == new,
    };
    old.allow && limit && asks
}

fn data_is_kept(context: &Before, old: &Document, new: &Document) -> bool {
    let read = |document: &Document| {
        let data = document.data.clone().unwrap_or_default();
        (values(&data.sensitive_patterns, str::to_owned), data.credential_action)
    };
    let ((patterns, action), (new_patterns, new_action)) = (read(old), read(new));
    // What is cut is hidden from conditions; without any, more may be cut.
    let hides_nothing = patterns == new_patterns || (patterns.is_empty() && !context.has_conditions);
    hides_nothing && (action == new_action || new_action == Some(CredentialAction::Block))
}

fn compare_budget(old: Option<&BudgetSection>, new: Option<&BudgetSection>, say: &mut impl FnMut(String)) {
    let Some(old) = old else { return };
    let Some(new) = new else {
        if !old.limits.is_empty() {
            say("`budget` is gone".to_owned());
        }
        return;
    };
    for limit in &old.limits {
        match new.limits.iter().find(|other| other.key == limit.key) {
            Some(other) if other.most <= limit.most => {}
            Some(_) => say(format!("`budget.{}` is higher", limit.key)),
            None => say(format!("`budget.{}` is gone", limit.key)),
        }
    }
    let zone = |section: &BudgetSection| match section.timezone.as_str() {
        "" => "UTC".to_owned(),
        other => other.to_owned(),
    };
    if !old.limits.is_empty() && (zone(old), old.window_micros) != (zone(new), new.window_micros) {
        say("`budget.timezone` or `budget.window` changed".to_owned());
    }
    if old.suspend && !new.suspend {
        say("`budget.action_on_exceed` does not suspend any more".to_owned());
    }
}

fn hours_are_kept(old: Option<&ActiveHours>, new: Option<&ActiveHours>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return old.is_none() };
    let active = |hours: &ActiveHours, minute: u16| {
        if hours.start <= hours.end {
            (hours.start..hours.end).contains(&minute)
        } else {
            minute >= hours.start || minute < hours.end
        }
    };
    old.timezone == new.timezone && (0..1440).all(|minute| !active(new, minute) || active(old, minute))
}

fn compare_capabilities(
    context: &Before,
    old: Option<&CapabilitySection>,
    new: Option<&CapabilitySection>,
    say: &mut impl FnMut(String),
) {
    let names = |list: &[String]| list.iter().map(|name| name.to_ascii_lowercase()).collect::<BTreeSet<_>>();
    let none = CapabilitySection::default();
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    if !names(&new.deny).is_superset(&names(&old.deny)) {
        say("`capabilities.deny` is shorter".to_owned());
    }
    let is_kept = match (&old.allow, &new.allow) {
        (None, None) => true,
        // What is on the list is permitted, whatever the default says.
        (None, Some(_)) => context.allows_by_default,
        (Some(_), None) => false,
        (Some(old), Some(new)) => names(new).is_subset(&names(old)),
    };
    if !is_kept {
        say("`capabilities.allow` is gone, new or longer".to_owned());
    }
}

fn anomalies_are_kept(context: &Before, old: Option<&AnomalySection>, new: Option<&AnomalySection>) -> bool {
    let none = AnomalySection::default();
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    // Each part: its response and numbers, of which the later must not be greater.
    let loops = |section: &AnomalySection| {
        section.loops.map(|watch| (watch.then, [watch.count, u32::MAX - watch.window_secs]))
    };
    let spikes = |section: &AnomalySection| {
        section.spikes.map(|watch| (watch.then, [watch.sigma_tenths, watch.at_least]))
    };
    let leaks = |section: &AnomalySection| section.leaks.map(|watch| (watch.then, [watch.findings, 0]));
    let plain = |then: Option<Response>| then.map(|then| (then, [0, 0]));
    let pairs = [
        (loops(old), loops(new)),
        (spikes(old), spikes(new)),
        (leaks(old), leaks(new)),
        (plain(old.unknown_hosts), plain(new.unknown_hosts)),
        (plain(old.exfiltration), plain(new.exfiltration)),
    ];
    pairs.into_iter().all(|(old, new)| {
        // A part that asks may ask about what the default denies.
        let lifts =
            old != new && new.is_some_and(|(then, _)| then == Response::Ask) && context.ask_may_lift();
        let is_kept = match (old, new) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some((then, numbers)), Some((new_then, new_numbers))) => {
                response_strength(new_then) >= response_strength(then)
                    && new_numbers.iter().zip(numbers).all(|(new, old)| *new <= old)
            }
        };
        is_kept && !lifts
    })
}
