//! What is remembered of a session or of a principal: per tool how often it was let through and how often not, and when last;
//! and the marks that were set. Counts stand in buckets of hours; a session has only one bucket, which is never dropped.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;

use super::row::{Items, Row, Text, quoted, unquote};
use crate::glob;

/// How often something happened in one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bucket {
    hour: i64,
    let_through: u64,
    held: u64,
}

/// One tool: its canonical name, and the name as sent where it differs.
#[derive(Debug)]
struct Tool {
    row_key: Arc<str>,
    canonical: Box<str>,
    /// Empty if it is the canonical one.
    sent: Box<str>,
    /// Oldest first; never empty.
    buckets: Vec<Bucket>,
    /// Sequence and time of the last two that were let through, the latest first. The one before is kept so that the
    /// last can be retracted.
    recent: Vec<(u64, Timestamp)>,
}

/// A mark: how often it was set, by hour.
#[derive(Debug)]
struct Mark {
    row_key: Arc<str>,
    /// Oldest first; `held` is not used.
    buckets: Vec<Bucket>,
}

/// One event to remember, or to take back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) seq: u64,
    pub(super) time: Timestamp,
    pub(super) hour: i64,
    pub(super) tool: &'a str,
    pub(super) name: &'a str,
    pub(super) let_through: bool,
}

/// How much may be remembered, and where the rows go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) fold: &'static str,
    /// What all row keys begin with.
    pub(super) prefix: &'a str,
    pub(super) most_tools: usize,
    pub(super) most_marks: usize,
    /// Buckets before this hour are dropped.
    pub(super) keep_from: i64,
}

/// There was no room: what should have been remembered was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full;

/// A changed entry: its row's key, and the hour of its newest bucket before and after.
pub(super) struct Changed {
    pub(super) row_key: Arc<str>,
    pub(super) newest_before: Option<i64>,
    pub(super) newest: i64,
}

/// Up to so many tools are looked for one by one.
const FEW: usize = 12;

/// The memory of one session or principal.
#[derive(Debug, Default)]
pub(super) struct Past {
    tools: Vec<Option<Tool>>,
    free: Vec<usize>,
    /// Lower-cased name (either) to places in `tools`; only kept once there are many.
    places: HashMap<Box<str>, Vec<usize>>,
    marks: BTreeMap<Box<str>, Mark>,
}

impl Past {
    /// Remembers an event.
    pub(super) fn note(
        &mut self,
        place: Place<'_>,
        event: Event<'_>,
        rows: &mut Vec<Row>,
    ) -> Result<Changed, Full> {
        let found = self.find(event.tool, event.name);
        let newest_before = found.and_then(|at| self.tool_at(at)).and_then(Tool::newest);
        let at = match found {
            Some(at) => at,
            None if self.tool_count() >= place.most_tools => return Err(Full),
            None => self.insert(Tool {
                row_key: tool_key(place.prefix, event.tool, event.name),
                canonical: event.tool.into(),
                sent: event.name.into(),
                buckets: Vec::with_capacity(1),
                recent: Vec::new(),
            }),
        };
        let Some(Some(tool)) = self.tools.get_mut(at) else { return Err(Full) };
        drop_old(&mut tool.buckets, place.keep_from);
        let bucket = bucket_mut(&mut tool.buckets, event.hour);
        if event.let_through {
            bucket.let_through = bucket.let_through.saturating_add(1);
            let later = tool.recent.partition_point(|(_, time)| *time > event.time);
            tool.recent.insert(later, (event.seq, event.time));
            tool.recent.truncate(2);
        } else {
            bucket.held = bucket.held.saturating_add(1);
        }
        rows.push(tool.row(place.fold));
        Ok(Changed {
            row_key: Arc::clone(&tool.row_key),
            newest_before,
            newest: tool.newest().unwrap_or(event.hour),
        })
    }

    /// Counts an event that was let through as one that was not.
    pub(super) fn retract(&mut self, place: Place<'_>, event: Event<'_>, rows: &mut Vec<Row>) {
        let Some(at) = self.find(event.tool, event.name) else { return };
        let Some(Some(tool)) = self.tools.get_mut(at) else { return };
        let Some(bucket) = tool.buckets.iter_mut().find(|bucket| bucket.hour == event.hour) else { return };
        if bucket.let_through == 0 {
            return;
        }
        bucket.let_through -= 1;
        bucket.held = bucket.held.saturating_add(1);
        if tool.buckets.iter().all(|bucket| bucket.let_through == 0) {
            tool.recent.clear();
        } else if tool.recent.len() > 1 {
            // Without one before it the time of the last stays: something was let through, and no better time is known.
            tool.recent.retain(|(seq, _)| *seq != event.seq);
        }
        rows.push(tool.row(place.fold));
    }

    /// Sets a mark.
    pub(super) fn mark(
        &mut self,
        place: Place<'_>,
        name: &str,
        hour: i64,
        rows: &mut Vec<Row>,
    ) -> Result<Changed, Full> {
        let is_new = !self.marks.contains_key(name);
        if is_new && self.marks.len() >= place.most_marks {
            return Err(Full);
        }
        let mark = self.marks.entry(name.into()).or_insert_with(|| Mark {
            row_key: mark_key(place.prefix, name),
            buckets: Vec::with_capacity(1),
        });
        let newest_before = mark.buckets.last().map(|bucket| bucket.hour);
        drop_old(&mut mark.buckets, place.keep_from);
        let bucket = bucket_mut(&mut mark.buckets, hour);
        bucket.let_through = bucket.let_through.saturating_add(1);
        rows.push(mark.row(place.fold));
        let newest = mark.buckets.last().map_or(hour, |bucket| bucket.hour);
        Ok(Changed { row_key: Arc::clone(&mark.row_key), newest_before, newest })
    }

    /// Takes back one setting of a mark.
    pub(super) fn unmark(&mut self, place: Place<'_>, name: &str, hour: i64, rows: &mut Vec<Row>) {
        let Some(mark) = self.marks.get_mut(name) else { return };
        let Some(bucket) = mark.buckets.iter_mut().find(|bucket| bucket.hour == hour) else { return };
        // A bucket that comes to nothing stays, so that the row is dropped when it is old, like any other.
        bucket.let_through = bucket.let_through.saturating_sub(1);
        rows.push(mark.row(place.fold));
    }

    /// How many actions since that hour match the glob: let through, and not.
    pub(super) fn counts(&self, pattern: &str, from_hour: i64) -> (u64, u64) {
        let mut sums = (0u64, 0u64);
        self.for_matching(pattern, |tool| {
            for bucket in tool.buckets.iter().filter(|bucket| bucket.hour >= from_hour) {
                sums.0 = sums.0.saturating_add(bucket.let_through);
                sums.1 = sums.1.saturating_add(bucket.held);
            }
        });
        sums
    }

    /// When the last action that matches the glob was let through, if that was in or after that hour.
    pub(super) fn last(
        &self,
        pattern: &str,
        from_hour: i64,
        hour_of: impl Fn(Timestamp) -> i64,
    ) -> Option<Timestamp> {
        let mut last = None;
        self.for_matching(pattern, |tool| {
            let own = tool.recent.first().map(|(_, time)| *time);
            last = last.max(own.filter(|time| hour_of(*time) >= from_hour));
        });
        last
    }

    /// Whether the mark was set in or after that hour.
    pub(super) fn is_marked(&self, name: &str, from_hour: i64) -> bool {
        let Some(mark) = self.marks.get(name) else { return false };
        mark.buckets.iter().any(|bucket| bucket.hour >= from_hour && bucket.let_through > 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tool_count() == 0 && self.marks.is_empty()
    }

    /// All row keys, for deleting them.
    pub(super) fn row_keys(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().flatten().map(|tool| &*tool.row_key);
        tools.chain(self.marks.values().map(|mark| &*mark.row_key))
    }

    /// All row keys with the hour of the newest bucket.
    pub(super) fn newest_hours(&self) -> impl Iterator<Item = (Arc<str>, i64)> {
        let tools = self.tools.iter().flatten().map(|tool| (&tool.row_key, tool.buckets.last()));
        let marks = self.marks.values().map(|mark| (&mark.row_key, mark.buckets.last()));
        tools.chain(marks).filter_map(|(key, bucket)| Some((Arc::clone(key), bucket?.hour)))
    }

    pub(super) fn rows(&self, fold: &'static str, rows: &mut Vec<Row>) {
        rows.extend(self.tools.iter().flatten().map(|tool| tool.row(fold)));
        rows.extend(self.marks.values().map(|mark| mark.row(fold)));
    }

    /// Reads a row; `rest` is its key after the prefix.
    pub(super) fn load(&mut self, prefix: &str, rest: &str, value: &Json) -> Option<()> {
        let mut items = Items::of(value)?;
        let buckets = read_buckets(&items.ints()?)?;
        if let Some(names) = rest.strip_prefix("/t/") {
            let (tool, after) = unquote(names)?;
            let (name, after) = unquote(after)?;
            let recent = read_recent(&items.ints()?)?;
            items.end()?;
            if !after.is_empty() || self.find(&tool, &name).is_some() {
                return None;
            }
            let row_key = tool_key(prefix, &tool, &name);
            self.insert(Tool { row_key, canonical: tool.into(), sent: name.into(), buckets, recent });
        } else {
            let (name, after) = unquote(rest.strip_prefix("/m/")?)?;
            items.end()?;
            let row_key = mark_key(prefix, &name);
            if !after.is_empty() || self.marks.insert(name.into(), Mark { row_key, buckets }).is_some() {
                return None;
            }
        }
        Some(())
    }

    /// Forgets what a row stood for; `rest` is its key after the prefix.
    pub(super) fn forget(&mut self, rest: &str) -> Option<()> {
        if let Some(names) = rest.strip_prefix("/t/") {
            let (tool, after) = unquote(names)?;
            let (name, _) = unquote(after)?;
            let at = self.find(&tool, &name)?;
            self.remove(at);
        } else {
            let (name, _) = unquote(rest.strip_prefix("/m/")?)?;
            self.marks.remove(name.as_str());
        }
        Some(())
    }

    fn for_matching(&self, pattern: &str, mut visit: impl FnMut(&Tool)) {
        if glob::is_literal(pattern) && !self.places.is_empty() {
            let places = self.places.get(&*lower(pattern)).into_iter().flatten();
            places.filter_map(|at| self.tool_at(*at)).for_each(visit);
            return;
        }
        for tool in self.tools.iter().flatten() {
            if glob::matches(pattern, &tool.canonical)
                || (!tool.sent.is_empty() && glob::matches(pattern, &tool.sent))
            {
                visit(tool);
            }
        }
    }

    fn tool_at(&self, at: usize) -> Option<&Tool> {
        self.tools.get(at)?.as_ref()
    }

    fn tool_count(&self) -> usize {
        self.tools.len() - self.free.len()
    }

    fn find(&self, tool: &str, name: &str) -> Option<usize> {
        let same = |at: usize| {
            self.tool_at(at).is_some_and(|entry| &*entry.canonical == tool && &*entry.sent == name)
        };
        if self.places.is_empty() {
            return (0..self.tools.len()).find(|at| same(*at));
        }
        self.places.get(&*lower(tool))?.iter().copied().find(|at| same(*at))
    }

    fn insert(&mut self, tool: Tool) -> usize {
        let at = self.free.pop().unwrap_or(self.tools.len());
        if at == self.tools.len() {
            self.tools.push(None);
        }
        if let Some(slot) = self.tools.get_mut(at) {
            *slot = Some(tool);
        }
        if !self.places.is_empty() {
            self.add_place(at);
        } else if self.tool_count() > FEW {
            for at in 0..self.tools.len() {
                self.add_place(at);
            }
        }
        at
    }

    fn add_place(&mut self, at: usize) {
        let Some(Some(tool)) = self.tools.get(at) else { return };
        for key in place_keys(tool) {
            self.places.entry(key).or_default().push(at);
        }
    }

    fn remove(&mut self, at: usize) {
        let Some(tool) = self.tools.get_mut(at).and_then(Option::take) else { return };
        self.free.push(at);
        for key in place_keys(&tool) {
            if let Some(places) = self.places.get_mut(&key) {
                places.retain(|place| *place != at);
                if places.is_empty() {
                    self.places.remove(&key);
                }
            }
        }
    }
}

impl Tool {
    fn newest(&self) -> Option<i64> {
        self.buckets.last().map(|bucket| bucket.hour)
    }

    fn row(&self, fold: &'static str) -> Row {
        let recent = self.recent.iter();
        let text =
            write_buckets(&self.buckets).list(recent, |text, (seq, time)| text.int(*seq).int(time.micros()));
        Row::put(fold, &self.row_key, text)
    }
}

impl Mark {
    fn row(&self, fold: &'static str) -> Row {
        Row::put(fold, &self.row_key, write_buckets(&self.buckets))
    }
}

/// The names that a tool is found under. One that is its own name is found once.
fn place_keys(tool: &Tool) -> impl Iterator<Item = Box<str>> + use<> {
    let canonical: Box<str> = lower(&tool.canonical).into();
    let sent: Box<str> = lower(&tool.sent).into();
    let second = (!sent.is_empty() && sent != canonical).then_some(sent);
    [Some(canonical), second].into_iter().flatten()
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

fn tool_key(prefix: &str, tool: &str, name: &str) -> Arc<str> {
    format!("{prefix}/t/{}{}", quoted(tool), quoted(name)).into()
}

fn mark_key(prefix: &str, name: &str) -> Arc<str> {
    format!("{prefix}/m/{}", quoted(name)).into()
}

fn drop_old(buckets: &mut Vec<Bucket>, keep_from: i64) {
    let old = buckets.partition_point(|bucket| bucket.hour < keep_from);
    buckets.drain(..old);
}

/// The bucket of that hour, made if need be.
#[expect(clippy::indexing_slicing, reason = "the place was just found or filled")]
fn bucket_mut(buckets: &mut Vec<Bucket>, hour: i64) -> &mut Bucket {
    let at = buckets.partition_point(|bucket| bucket.hour < hour);
    if buckets.get(at).is_none_or(|bucket| bucket.hour != hour) {
        buckets.insert(at, Bucket { hour, ..Bucket::default() });
    }
    &mut buckets[at]
}

fn write_buckets(buckets: &[Bucket]) -> Text {
    Text::new().list(buckets, |text, bucket| text.int(bucket.hour).int(bucket.let_through).int(bucket.held))
}

fn read_buckets(numbers: &[i128]) -> Option<Vec<Bucket>> {
    let read = |triple: &[i128]| match triple {
        [hour, let_through, held] => Some(Bucket {
            hour: i64::try_from(*hour).ok()?,
            let_through: u64::try_from(*let_through).ok()?,
            held: u64::try_from(*held).ok()?,
        }),
        _ => None,
    };
    let buckets: Vec<Bucket> = numbers.chunks(3).map(read).collect::<Option<_>>()?;
    let sorted = buckets.iter().zip(buckets.iter().skip(1)).all(|(left, right)| left.hour < right.hour);
    (sorted && !buckets.is_empty()).then_some(buckets)
}

fn read_recent(numbers: &[i128]) -> Option<Vec<(u64, Timestamp)>> {
    let read = |pair: &[i128]| match pair {
        [seq, time] => Some((u64::try_from(*seq).ok()?, Timestamp::from_micros(i64::try_from(*time).ok()?))),
        _ => None,
    };
    numbers.chunks(2).map(read).collect::<Option<Vec<_>>>().filter(|recent| recent.len() <= 2)
}
