//! Behaviour out of the ordinary: loops, spikes, leaks, unknown hosts, exfiltration. Of several documents that watch for the same, the
//! smallest numbers, the longest window and the strictest response count.

use proctor_core::action::ActionKind;
use proctor_core::decision::Effect;
use proctor_core::record::Amount;
use rust_decimal::Decimal;

use super::{Gathered, credential_action, is_soft_kind, sections};
use crate::document::{AnomalySection, Document, LeakWatch, LoopWatch, Response, SpikeWatch};
use crate::input::{FoundSecret, Input};
use crate::question::{ActionsPerMinute, Answer, AnswerSource, Question};

/// Minimum of minutes to compare with; with fewer, there is no spike.
const FEWEST_MINUTES: u64 = 10;

/// Judges the action; returns the amounts that its record has to carry so that the next one can be judged.
pub(super) fn judge(
    documents: &[&Document],
    input: &Input,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'_>,
) -> Vec<Amount> {
    if documents.iter().all(|document| document.anomalies.is_none()) {
        return Vec::new();
    }
    let mut watched = Vec::new();
    // A call to a model that does not say what it asks is the same as the one before it.
    let says_something = input.facts.kind != ActionKind::LlmCall || !input.facts.text.is_empty();
    if let Some((watch, source)) = loops(documents).filter(|_| says_something) {
        judge_loops(watch, source, answers, gathered);
        watched.push(amount("repeat", Some(watch.window_secs)));
    }
    if let Some((watch, source)) = spikes(documents) {
        judge_spikes(watch, source, answers, gathered);
        watched.push(amount("pace", None));
    }
    let (_, is_written) = credential_action(documents);
    let counts = |finding: &&FoundSecret| is_written || !is_soft_kind(&finding.kind);
    let findings: Vec<&FoundSecret> = input.findings.iter().filter(counts).collect();
    if let Some((watch, source)) = leaks(documents)
        && u32::try_from(findings.len()).unwrap_or(u32::MAX) >= watch.findings
    {
        let reason = format!("{} secrets in one action", findings.len());
        respond(Anomaly::Leak, source, reason, true, gathered);
    }
    if let Some(source) = strictest(documents, |section| section.unknown_hosts)
        && let Some(host) = unknown_host(documents, input)
    {
        respond(
            Anomaly::UnknownHost,
            source,
            format!("host `{host}` is in no network allowlist"),
            true,
            gathered,
        );
    }
    if let Some(source) = strictest(documents, |section| section.exfiltration)
        && let (Some(host), Some(finding)) = (input.facts.hosts.first(), findings.first())
    {
        let reason = format!("a secret on its way to `{host}`: {} at `{}`", finding.kind, finding.path);
        respond(Anomaly::Exfiltration, source, reason, true, gathered);
    }
    watched
}

/// The rule that an alarm about an anomaly belongs to.
pub(super) fn rule_of(alarm: &str) -> Option<&'static str> {
    Anomaly::ALL.into_iter().find(|anomaly| anomaly.alarm() == alarm).map(Anomaly::rule)
}

#[derive(Clone, Copy)]
enum Anomaly {
    Loop,
    Spike,
    Leak,
    UnknownHost,
    Exfiltration,
}

impl Anomaly {
    const ALL: [Anomaly; 5] =
        [Anomaly::Loop, Anomaly::Spike, Anomaly::Leak, Anomaly::UnknownHost, Anomaly::Exfiltration];

    const fn alarm(self) -> &'static str {
        match self {
            Anomaly::Loop => "loop",
            Anomaly::Spike => "spike",
            Anomaly::Leak => "leak",
            Anomaly::UnknownHost => "unknown_host",
            Anomaly::Exfiltration => "exfiltration",
        }
    }

    const fn rule(self) -> &'static str {
        match self {
            Anomaly::Loop => "anomaly.loops",
            Anomaly::Spike => "anomaly.spikes",
            Anomaly::Leak => "anomaly.leaks",
            Anomaly::UnknownHost => "anomaly.unknown_hosts",
            Anomaly::Exfiltration => "anomaly.exfiltration",
        }
    }
}

/// A response, and the first document that asks for nothing weaker.
#[derive(Clone, Copy)]
struct ResponseSource<'a> {
    then: Response,
    section: &'a AnomalySection,
    document: &'a Document,
}

fn judge_loops(
    watch: LoopWatch,
    source: ResponseSource<'_>,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'_>,
) {
    let Some(Answer::Count(before)) = answers.answer(&Question::Repeats(watch.window_secs)) else {
        return not_known(Anomaly::Loop, source, gathered);
    };
    let count = before.saturating_add(1);
    let threshold = u64::from(watch.count.max(1));
    if count >= threshold {
        let reason = format!("the same action {count} times in about {} seconds", watch.window_secs);
        respond(Anomaly::Loop, source, reason, count % threshold == 0, gathered);
    }
}

fn judge_spikes(
    watch: SpikeWatch,
    source: ResponseSource<'_>,
    answers: &dyn AnswerSource,
    gathered: &mut Gathered<'_>,
) {
    let Some(Answer::ActionsPerMinute(rate)) = answers.answer(&Question::ActionsPerMinute) else {
        return not_known(Anomaly::Spike, source, gathered);
    };
    let count = rate.current.saturating_add(1);
    if is_spike(count, rate, watch) {
        let reason = format!(
            "{count} actions in this minute, after {} in the {} minutes before it",
            rate.sum, rate.minutes
        );
        respond(Anomaly::Spike, source, reason, !is_spike(rate.current, rate, watch), gathered);
    }
}

/// Whether so many actions in a minute are more than the mean and so many standard deviations of the minutes before. Multiplied out, so
/// that it is exact: with `n` minutes, mean and deviation are `sum / n` and `sqrt(n * squares - sum²) / n`.
fn is_spike(count: u64, rate: ActionsPerMinute, watch: SpikeWatch) -> bool {
    if count < u64::from(watch.at_least) || rate.minutes < FEWEST_MINUTES {
        return false;
    }
    let wide = |number: u64| u128::from(number);
    let minutes = wide(rate.minutes);
    let Some(above) = wide(count).saturating_mul(minutes).checked_sub(wide(rate.sum)) else { return false };
    let spread = minutes
        .saturating_mul(wide(rate.squares))
        .saturating_sub(wide(rate.sum).saturating_mul(wide(rate.sum)));
    let tenths = u128::from(watch.sigma_tenths);
    above.saturating_mul(above).saturating_mul(100) > tenths.saturating_mul(tenths).saturating_mul(spread)
}

/// The first host that is in no allowlist; nothing if there is no allowlist.
fn unknown_host<'a>(documents: &[&Document], input: &'a Input) -> Option<&'a str> {
    let lists: Vec<_> =
        documents.iter().filter_map(|document| document.network_allowlist.as_deref()).collect();
    if lists.is_empty() {
        return None;
    }
    let is_known = |host: &str| {
        lists.iter().copied().flatten().any(|pattern| sections::host_matches(&pattern.value, host))
    };
    input.facts.hosts.iter().find(|host| !is_known(host)).map(String::as_str)
}

/// Responds to an anomaly. Alarms without a stronger response are raised once, not at every step: `is_news` says whether this is the step.
fn respond(
    anomaly: Anomaly,
    source: ResponseSource<'_>,
    reason: String,
    is_news: bool,
    gathered: &mut Gathered<'_>,
) {
    if is_news || source.then != Response::Alarm {
        gathered.alarms.push(anomaly.alarm());
    }
    let effect = match source.then {
        Response::Alarm => return,
        Response::Ask => Effect::Ask,
        Response::Deny | Response::Suspend => Effect::Deny,
    };
    gathered.push(effect, anomaly.rule(), reason.as_str(), source.document, source.section.at);
    if source.then == Response::Suspend && gathered.suspend.is_none() {
        gathered.suspend = Some(("anomaly", reason));
    }
}

/// Denies an action whose anomaly cannot be evaluated.
fn not_known(anomaly: Anomaly, source: ResponseSource<'_>, gathered: &mut Gathered<'_>) {
    let reason = "what happened before is not known";
    gathered.push(Effect::Deny, anomaly.rule(), reason, source.document, source.section.at);
}

fn loops<'a>(documents: &[&'a Document]) -> Option<(LoopWatch, ResponseSource<'a>)> {
    let source = strictest(documents, |section| section.loops.map(|watch| watch.then))?;
    let watches = || parts(documents, |section| section.loops);
    let watch = LoopWatch {
        count: watches().map(|watch| watch.count).min()?,
        window_secs: watches().map(|watch| watch.window_secs).max()?,
        then: source.then,
    };
    Some((watch, source))
}

fn spikes<'a>(documents: &[&'a Document]) -> Option<(SpikeWatch, ResponseSource<'a>)> {
    let source = strictest(documents, |section| section.spikes.map(|watch| watch.then))?;
    let watches = || parts(documents, |section| section.spikes);
    let watch = SpikeWatch {
        sigma_tenths: watches().map(|watch| watch.sigma_tenths).min()?,
        at_least: watches().map(|watch| watch.at_least).min()?,
        then: source.then,
    };
    Some((watch, source))
}

fn leaks<'a>(documents: &[&'a Document]) -> Option<(LeakWatch, ResponseSource<'a>)> {
    let source = strictest(documents, |section| section.leaks.map(|watch| watch.then))?;
    let findings = parts(documents, |section| section.leaks).map(|watch| watch.findings).min()?;
    Some((LeakWatch { findings, then: source.then }, source))
}

fn parts<'a, T>(
    documents: &'a [&Document],
    part: impl Fn(&AnomalySection) -> Option<T> + 'a,
) -> impl Iterator<Item = T> + 'a {
    documents.iter().filter_map(move |document| part(document.anomalies.as_ref()?))
}

fn strictest<'a>(
    documents: &[&'a Document],
    response: impl Fn(&AnomalySection) -> Option<Response>,
) -> Option<ResponseSource<'a>> {
    let mut found: Option<ResponseSource<'a>> = None;
    for document in documents {
        let Some(section) = &document.anomalies else { continue };
        let Some(then) = response(section) else { continue };
        if found.is_none_or(|found| strength(then) > strength(found.then)) {
            found = Some(ResponseSource { then, section, document });
        }
    }
    found
}

/// Order of responses.
pub(crate) const fn strength(response: Response) -> u8 {
    match response {
        Response::Alarm => 0,
        Response::Ask => 1,
        Response::Deny => 2,
        Response::Suspend => 3,
    }
}

fn amount(unit: &str, limit: Option<u32>) -> Amount {
    Amount { unit: unit.to_owned(), value: Decimal::ONE, limit }
}

#[cfg(test)]
mod tests;
