//! `anomalies` and `observe`.

use proctor_core::quoted;
use proctor_yaml::{Node, Value};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::fields::{self, Fields};
use super::problems::Problems;
use super::{AnomalySection, LeakWatch, Located, LoopWatch, Response, SpikeWatch, keys};

const MAX_OBSERVED: usize = 256;
const SECOND_MICROS: u64 = 1_000_000;
const LONGEST_WINDOW_SECS: u64 = 3600;

/// The usual values.
const LOOPS: LoopWatch = LoopWatch { count: 50, window_secs: 300, then: Response::Alarm };
const SPIKES: SpikeWatch = SpikeWatch { sigma_tenths: 30, at_least: 20, then: Response::Alarm };
const LEAKS: LeakWatch = LeakWatch { findings: 3, then: Response::Alarm };
const UNKNOWN_HOSTS: Response = Response::Alarm;
const EXFILTRATION: Response = Response::Deny;

pub(super) fn read_anomalies(node: &Node, problems: &mut Problems) -> Option<AnomalySection> {
    let fields = Fields::closed(node, "anomalies", keys::ANOMALIES, problems)?;
    Some(AnomalySection {
        loops: read_part(&fields, "loops", keys::ANOMALIES_LOOPS, LOOPS, read_loops, problems),
        spikes: read_part(&fields, "spikes", keys::ANOMALIES_SPIKES, SPIKES, read_spikes, problems),
        leaks: read_part(&fields, "leaks", keys::ANOMALIES_LEAKS, LEAKS, read_leaks, problems),
        unknown_hosts: read_part(
            &fields,
            "unknown_hosts",
            keys::ANOMALIES_RESPONSE,
            UNKNOWN_HOSTS,
            read_then,
            problems,
        ),
        exfiltration: read_part(
            &fields,
            "exfiltration",
            keys::ANOMALIES_RESPONSE,
            EXFILTRATION,
            read_then,
            problems,
        ),
        at: fields.at,
    })
}

/// Globs for agents that may ask to be only observed.
pub(super) fn read_observe(fields: &Fields<'_>, problems: &mut Problems) -> Vec<Located<String>> {
    let mut items = fields.list("observe", problems).unwrap_or_default();
    if let Some((_, first_too_many)) = items.get(MAX_OBSERVED) {
        let message = format!("`observe` has {} entries; at most {MAX_OBSERVED} are allowed", items.len());
        problems.add(first_too_many.at, message);
        items.truncate(MAX_OBSERVED);
    }
    let globs = items.into_iter().filter_map(|(name, item)| fields::nonblank(item, &name, problems));
    globs.map(|glob| fields::owned(&glob)).collect()
}

/// A part that is not written is as usual; the word `off` turns it off.
fn read_part<T>(
    fields: &Fields<'_>,
    key: &str,
    own_keys: &[&str],
    usual: T,
    read: impl Fn(&Fields<'_>, T, &mut Problems) -> T,
    problems: &mut Problems,
) -> Option<T> {
    let Some(node) = fields.get(key) else { return Some(usual) };
    match &node.value {
        Value::Text(word) if word == keys::OFF => None,
        Value::Map(_) => {
            let part = Fields::closed(node, fields.name(key), own_keys, problems)?;
            Some(read(&part, usual, problems))
        }
        _ => {
            fields::wrong_type(node, &fields.name(key), "a mapping or the word `off`", problems);
            None
        }
    }
}

fn read_loops(part: &Fields<'_>, usual: LoopWatch, problems: &mut Problems) -> LoopWatch {
    LoopWatch {
        count: read_loop_count(part, problems).unwrap_or(usual.count),
        window_secs: read_window(part, problems).unwrap_or(usual.window_secs),
        then: read_then(part, usual.then, problems),
    }
}

fn read_spikes(part: &Fields<'_>, usual: SpikeWatch, problems: &mut Problems) -> SpikeWatch {
    SpikeWatch {
        sigma_tenths: read_sigma(part, problems).unwrap_or(usual.sigma_tenths),
        at_least: part.count("at_least", problems).unwrap_or(usual.at_least),
        then: read_then(part, usual.then, problems),
    }
}

fn read_leaks(part: &Fields<'_>, usual: LeakWatch, problems: &mut Problems) -> LeakWatch {
    LeakWatch {
        findings: part.count("findings", problems).unwrap_or(usual.findings),
        then: read_then(part, usual.then, problems),
    }
}

fn read_then(part: &Fields<'_>, usual: Response, problems: &mut Problems) -> Response {
    let word = part.word("then", keys::RESPONSES, problems);
    word.map_or(usual, |word| match word.value {
        "ask" => Response::Ask,
        "deny" => Response::Deny,
        "suspend" => Response::Suspend,
        _ => Response::Alarm,
    })
}

/// Reads the count of a loop: at least two, because one call is no loop.
fn read_loop_count(part: &Fields<'_>, problems: &mut Problems) -> Option<u32> {
    let count = part.count("count", problems)?;
    if count < 2 {
        refuse(part, "count", "must be at least 2", &count.to_string(), problems);
        return None;
    }
    Some(count)
}

fn read_window(part: &Fields<'_>, problems: &mut Problems) -> Option<u32> {
    let micros = part.duration("window", problems)?;
    let seconds = micros / SECOND_MICROS;
    if micros % SECOND_MICROS == 0 && (1..=LONGEST_WINDOW_SECS).contains(&seconds) {
        return u32::try_from(seconds).ok();
    }
    let written = part.text("window", problems).map_or("", |text| text.value);
    refuse(part, "window", "must be from 1s to 1h, in whole seconds", written, problems);
    None
}

/// Reads sigma, in tenths.
fn read_sigma(part: &Fields<'_>, problems: &mut Problems) -> Option<u32> {
    let sigma = part.amount("sigma", false, problems)?;
    if (Decimal::ONE..=Decimal::ONE_HUNDRED).contains(&sigma) {
        let tenths = sigma * Decimal::TEN;
        if tenths.fract().is_zero() {
            return tenths.to_u32();
        }
    }
    refuse(part, "sigma", "must be from 1 to 100, with one decimal", &sigma.to_string(), problems);
    None
}

fn refuse(part: &Fields<'_>, key: &str, must: &str, found: &str, problems: &mut Problems) {
    let at = part.get(key).map_or(part.at, |node| node.at);
    problems.add(at, format!("`{}` {must}, found {}", part.name(key), quoted(found)));
}
