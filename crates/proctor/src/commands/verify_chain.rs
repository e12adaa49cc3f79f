//! `proctor audit verify-chain`: the hash chain of an Agent Assembly audit log, offline and in constant memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, StdinLock};
use std::path::Path;

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_wire::assembly::chain::{
    Extent, Gaps, MAX_LINE_BYTES, Outcome as ChainOutcome, Start, Tampering, TruncatedLine, Verifier,
};

use super::Context;
use crate::failure::{Failure, NOT_VERIFIED, OK, Outcome, UNDECIDED};
use crate::output;

pub(super) fn run(context: &Context, file: &Path) -> Outcome {
    let (outcome, extent) = if file == Path::new("-") {
        let stdin: StdinLock<'static> = std::io::stdin().lock();
        verify(stdin, 0, "stdin")?
    } else {
        let name = file.display().to_string();
        let handle = File::open(file).map_err(|error| Failure::io(file, &error))?;
        let length = handle.metadata().map_or(0, |metadata| metadata.len());
        verify(BufReader::with_capacity(1 << 16, handle), length, &name)?
    };
    if context.json {
        output::data(json(&outcome, extent))?;
    } else {
        print(&outcome, extent)?;
    }
    Ok(match outcome {
        ChainOutcome::Verified { .. } => OK,
        ChainOutcome::Incomplete { .. } => UNDECIDED,
        ChainOutcome::Tampered { .. } => NOT_VERIFIED,
    })
}

/// Reads the log to its end, or to the first line that was tampered with.
fn verify(
    mut input: impl BufRead,
    length: u64,
    name: &str,
) -> Result<(ChainOutcome, Option<Extent>), Failure> {
    // One byte more than a line with its break may have, so that a longer one is seen to be longer.
    const LIMIT: u64 = MAX_LINE_BYTES as u64 + 2;
    let bar = output::progress(length, "verifying");
    let mut verifier = Verifier::default();
    let mut line = Vec::new();
    let mut done = 0;
    loop {
        line.clear();
        let read = (&mut input)
            .take(LIMIT)
            .read_until(b'\n', &mut line)
            .map_err(|error| Failure::from(format!("{name}: {error}")))?;
        if read == 0 || !verifier.line(&line) {
            break;
        }
        done += line.len() as u64;
        bar.set_position(done);
    }
    bar.finish_and_clear();
    let extent = verifier.extent();
    Ok((verifier.finish(), extent))
}

/// Code word of an outcome.
fn word(outcome: &ChainOutcome) -> &'static str {
    match outcome {
        ChainOutcome::Verified { .. } => "verified",
        ChainOutcome::Incomplete { .. } => "incomplete",
        ChainOutcome::Tampered { .. } => "tampered",
    }
}

fn print(outcome: &ChainOutcome, extent: Option<Extent>) -> Result<(), Failure> {
    let say = |name: &str, text: &str| output::data(format!("  {name:<11} {text}"));
    output::data(word(outcome))?;
    if let ChainOutcome::Tampered { line, seq, why, .. } = outcome {
        let seq = seq.map_or_else(String::new, |seq| format!(", which says that it is entry {seq}"));
        say("line", &format!("{line}{seq}"))?;
        say("problem", &output::shown(&why.to_string(), 300))?;
        if let Some((expected, found)) = difference(why) {
            say("expected", &output::shown(&expected, 100))?;
            say("found", &output::shown(&found, 100))?;
        }
    }
    say("entries", &entries(outcome, extent))?;
    if let Some(extent) = extent {
        say("head", &hex(extent.head))?;
    }
    if let ChainOutcome::Incomplete { start, gaps, truncated: torn, .. } = outcome {
        if let Some(start) = start {
            say("begins", &beginning(start))?;
        }
        if gaps.count > 0 {
            say("missing", &missing(gaps))?;
        }
        if let Some(TruncatedLine { line, why }) = torn {
            say("cut off", &output::shown(&format!("line {line}, the last: {why}"), 300))?;
        }
    }
    say("means", meaning(outcome))
}

/// Number of valid entries, and their range.
fn entries(outcome: &ChainOutcome, extent: Option<Extent>) -> String {
    let (ChainOutcome::Verified { entries }
    | ChainOutcome::Incomplete { entries, .. }
    | ChainOutcome::Tampered { entries, .. }) = outcome;
    let before = if matches!(outcome, ChainOutcome::Tampered { .. }) { " valid before it" } else { "" };
    let which =
        extent.map_or_else(String::new, |extent| format!(", {}", range(extent.first_seq, extent.last_seq)));
    format!("{entries}{before}{which}")
}

fn range(first: u64, last: u64) -> String {
    if first == last { format!("seq {first}") } else { format!("seq {first} to {last}") }
}

fn beginning(start: &Start) -> String {
    let Start { seq, previous_hash, .. } = start;
    if previous_hash.iter().all(|byte| *byte == 0) {
        format!("with seq {seq}: nothing was written before it")
    } else {
        format!("with seq {seq}, after an entry that is not here: {}", hex(*previous_hash))
    }
}

fn missing(gaps: &Gaps) -> String {
    const SHOWN: usize = 8;
    let listed: Vec<String> =
        gaps.listed.iter().take(SHOWN).map(|(first, last)| range(*first, *last)).collect();
    let unit = if gaps.count == 1 { "gap" } else { "gaps" };
    let more = gaps.count.saturating_sub(listed.len() as u64);
    let more = if more > 0 { format!(", and {more} more gaps") } else { String::new() };
    format!("{} in {} {unit}: {}{more}", gaps.missing, gaps.count, listed.join(", "))
}

/// Expected and actual value.
fn difference(why: &Tampering) -> Option<(String, String)> {
    Some(match why {
        Tampering::Hash { computed, stated } => (hex(*computed), hex(*stated)),
        Tampering::Link { expected, stated } => (hex(*expected), hex(*stated)),
        Tampering::Order { seq, after } => (format!("a sequence above {after}"), seq.to_string()),
        Tampering::Label { label, kind, .. } => (label.clone(), kind.clone()),
        Tampering::Unreadable(_) => return None,
    })
}

fn meaning(outcome: &ChainOutcome) -> &'static str {
    match outcome {
        ChainOutcome::Verified { entries: 0 } => "nothing is in it; whether something was, it cannot show",
        ChainOutcome::Verified { .. } => {
            "every entry has its hash and follows the one before; what was cut off at the end leaves no trace"
        }
        ChainOutcome::Incomplete { .. } => {
            "what is here has its hashes and its order, but something never reached the file or is elsewhere"
        }
        ChainOutcome::Tampered { why: Tampering::Hash { .. } | Tampering::Label { .. }, .. } => {
            "this entry was changed after it was written"
        }
        ChainOutcome::Tampered { why: Tampering::Link { .. }, .. } => {
            "entries were removed, added or moved here, or the one before was written anew"
        }
        ChainOutcome::Tampered { why: Tampering::Order { .. }, .. } => {
            "an entry was added or written anew here"
        }
        ChainOutcome::Tampered { why: Tampering::Unreadable(_), .. } => {
            "this line was damaged or added, or a version wrote it that is not known here"
        }
    }
}

fn json(outcome: &ChainOutcome, extent: Option<Extent>) -> Json {
    let (ChainOutcome::Verified { entries }
    | ChainOutcome::Incomplete { entries, .. }
    | ChainOutcome::Tampered { entries, .. }) = outcome;
    let mut out = Json::object()
        .with("verdict", word(outcome))
        .with("entries", *entries)
        .with("first_seq", extent.map(|extent| extent.first_seq))
        .with("last_seq", extent.map(|extent| extent.last_seq))
        .with("head", extent.map(|extent| hex(extent.head)));
    match outcome {
        ChainOutcome::Verified { .. } => {}
        ChainOutcome::Incomplete { start, gaps, truncated: torn, .. } => {
            let listed = gaps.listed.iter();
            let listed: Vec<Json> = listed
                .map(|(first, last)| Json::object().with("first", *first).with("last", *last))
                .collect();
            out.push("begins_late", start.is_some());
            out.push("missing", gaps.missing);
            out.push("gap_count", gaps.count);
            out.push("gaps", listed);
            let torn = torn.as_ref();
            out.push(
                "torn",
                torn.map(|torn| Json::object().with("line", torn.line).with("why", torn.why.to_string())),
            );
        }
        ChainOutcome::Tampered { line, seq, why, .. } => {
            let mut problem = Json::object()
                .with("line", *line)
                .with("seq", *seq)
                .with("kind", kind(why))
                .with("text", why.to_string());
            if let Some((expected, found)) = difference(why) {
                problem.push("expected", expected);
                problem.push("found", found);
            }
            out.push("problem", problem);
        }
    }
    out.with("meaning", meaning(outcome))
}

fn kind(why: &Tampering) -> &'static str {
    match why {
        Tampering::Hash { .. } => "hash",
        Tampering::Link { .. } => "link",
        Tampering::Order { .. } => "order",
        Tampering::Label { .. } => "label",
        Tampering::Unreadable(_) => "unreadable",
    }
}

fn hex(hash: [u8; 32]) -> String {
    Digest::from_bytes(hash).to_string()
}
