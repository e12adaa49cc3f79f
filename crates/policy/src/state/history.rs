//! History of a session or of a principal: per tool how often it was let through and how often not, and when last;
//! and the taints that were set. Counts are kept in hourly buckets; a session has only one bucket, which is never dropped.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proctor_core::json::Json;
use proctor_core::time::Timestamp;

use super::row::{Items, Row, Text, quoted, unquote};
use crate::glob;

/// Counts of one hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bucket {
    hour: i64,
    let_through: u64,
    held: u64,
}

/// A tool: its canonical name, and the name as sent where it differs.
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

/// Counts of a taint, by hour.
#[derive(Debug)]
struct Taint {
    row_key: Arc<str>,
    /// Oldest first; `held` is not used.
    buckets: Vec<Bucket>,
}

/// Event to record or to retract.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'a> {
    pub(super) seq: u64,
    pub(super) time: Timestamp,
    pub(super) hour: i64,
    pub(super) tool: &'a str,
    pub(super) name: &'a str,
    pub(super) let_through: bool,
}

/// Bounds of a history, and the names of its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retention<'a> {
    pub(super) fold: &'static str,
    /// Prefix of all row keys.
    pub(super) prefix: &'a str,
    pub(super) max_tools: usize,
    pub(super) max_taints: usize,
    /// Buckets before this hour are dropped.
    pub(super) keep_from: i64,
}

/// A bound was reached: the event was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overflow;

/// A changed entry: its row's key, and the hour of its newest bucket before and after.
pub(super) struct Changed {
    pub(super) row_key: Arc<str>,
    pub(super) newest_before: Option<i64>,
    pub(super) newest: i64,
}

/// Most tools that are searched linearly.
const MAX_LINEAR_SEARCH: usize = 12;

/// History of one session or principal.
#[derive(Debug, Default)]
pub(super) struct History {
    tools: Vec<Option<Tool>>,
    free: Vec<usize>,
    /// Lower-cased name (either) to indexes in `tools`; only kept once there are many.
    by_name: HashMap<Box<str>, Vec<usize>>,
    taints: BTreeMap<Box<str>, Taint>,
}

impl History {
    /// Records an event.
    pub(super) fn record(
        &mut self,
        retention: Retention<'_>,
        event: Event<'_>,
        rows: &mut Vec<Row>,
    ) -> Result<Changed, Overflow> {
        let found = self.find(event.tool, event.name);
        let newest_before = found.and_then(|at| self.tool_at(at)).and_then(Tool::newest);
        let at = match found {
            Some(at) => at,
            None if self.tool_count() >= retention.max_tools => return Err(Overflow),
            None => self.insert(Tool {
                row_key: tool_key(retention.prefix, event.tool, event.name),
                canonical: event.tool.into(),
                sent: event.name.into(),
                buckets: Vec::with_capacity(1),
                recent: Vec::new(),
            }),
        };
        let Some(Some(tool)) = self.tools.get_mut(at) else { return Err(Overflow) };
        drop_old(&mut tool.buckets, retention.keep_from);
        let bucket = bucket_mut(&mut tool.buckets, event.hour);
        if event.let_through {
            bucket.let_through = bucket.let_through.saturating_add(1);
            let later = tool.recent.partition_point(|(_, time)| *time > event.time);
            tool.recent.insert(later, (event.seq, event.time));
            tool.recent.truncate(2);
        } else {
            bucket.held = bucket.held.saturating_add(1);
        }
        rows.push(tool.row(retention.fold));
        Ok(Changed {
            row_key: Arc::clone(&tool.row_key),
            newest_before,
            newest: tool.newest().unwrap_or(event.hour),
        })
    }

    /// Counts an event that was let through as one that was not.
    pub(super) fn retract(&mut self, retention: Retention<'_>, event: Event<'_>, rows: &mut Vec<Row>) {
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
        rows.push(tool.row(retention.fold));
    }

    /// Sets a taint.
    pub(super) fn set_taint(
        &mut self,
        retention: Retention<'_>,
        name: &str,
        hour: i64,
        rows: &mut Vec<Row>,
    ) -> Result<Changed, Overflow> {
        let is_new = !self.taints.contains_key(name);
        if is_new && self.taints.len() >= retention.max_taints {
            return Err(Overflow);
        }
        let taint = self.taints.entry(name.into()).or_insert_with(|| Taint {
            row_key: taint_key(retention.prefix, name),
            buckets: Vec::with_capacity(1),
        });
        let newest_before = taint.buckets.last().map(|bucket| bucket.hour);
        drop_old(&mut taint.buckets, retention.keep_from);
        let bucket = bucket_mut(&mut taint.buckets, hour);
        bucket.let_through = bucket.let_through.saturating_add(1);
        rows.push(taint.row(retention.fold));
        let newest = taint.buckets.last().map_or(hour, |bucket| bucket.hour);
        Ok(Changed { row_key: Arc::clone(&taint.row_key), newest_before, newest })
    }

    /// Retracts one setting of a taint.
    pub(super) fn clear_taint(
        &mut self,
        retention: Retention<'_>,
        name: &str,
        hour: i64,
        rows: &mut Vec<Row>,
    ) {
        let Some(taint) = self.taints.get_mut(name) else { return };
        let Some(bucket) = taint.buckets.iter_mut().find(|bucket| bucket.hour == hour) else { return };
        // A bucket that comes to nothing stays, so that the row is dropped when it is old, like any other.
        bucket.let_through = bucket.let_through.saturating_sub(1);
        rows.push(taint.row(retention.fold));
    }

    /// Number of actions since that hour that match the glob: let through, and not.
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

    /// Time of the last action that matches the glob and was let through, if that was in or after that hour.
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

    /// Whether the taint was set in or after that hour.
    pub(super) fn is_tainted(&self, name: &str, from_hour: i64) -> bool {
        let Some(taint) = self.taints.get(name) else { return false };
        taint.buckets.iter().any(|bucket| bucket.hour >= from_hour && bucket.let_through > 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tool_count() == 0 && self.taints.is_empty()
    }

    /// All row keys, for deleting them.
    pub(super) fn row_keys(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().flatten().map(|tool| &*tool.row_key);
        tools.chain(self.taints.values().map(|taint| &*taint.row_key))
    }

    /// All row keys with the hour of the newest bucket.
    pub(super) fn newest_hours(&self) -> impl Iterator<Item = (Arc<str>, i64)> {
        let tools = self.tools.iter().flatten().map(|tool| (&tool.row_key, tool.buckets.last()));
        let taints = self.taints.values().map(|taint| (&taint.row_key, taint.buckets.last()));
        tools.chain(taints).filter_map(|(key, bucket)| Some((Arc::clone(key), bucket?.hour)))
    }

    pub(super) fn rows(&self, fold: &'static str, rows: &mut Vec<Row>) {
        rows.extend(self.tools.iter().flatten().map(|tool| tool.row(fold)));
        rows.extend(self.taints.values().map(|taint| taint.row(fold)));
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
            let row_key = taint_key(prefix, &name);
            if !after.is_empty() || self.taints.insert(name.into(), Taint { row_key, buckets }).is_some() {
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
            self.taints.remove(name.as_str());
        }
        Some(())
    }

    fn for_matching(&self, pattern: &str, mut visit: impl FnMut(&Tool)) {
        if glob::is_literal(pattern) && !self.by_name.is_empty() {
            let by_name = self.by_name.get(&*lower(pattern)).into_iter().flatten();
            by_name.filter_map(|at| self.tool_at(*at)).for_each(visit);
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

    /// The number of tools and taints.
    pub(super) fn entries(&self) -> usize {
        self.tool_count() + self.taints.len()
    }

    fn tool_count(&self) -> usize {
        self.tools.len() - self.free.len()
    }

    fn find(&self, tool: &str, name: &str) -> Option<usize> {
        let same = |at: usize| {
            self.tool_at(at).is_some_and(|entry| &*entry.canonical == tool && &*entry.sent == name)
        };
        if self.by_name.is_empty() {
            return (0..self.tools.len()).find(|at| same(*at));
        }
        self.by_name.get(&*lower(tool))?.iter().copied().find(|at| same(*at))
    }

    fn insert(&mut self, tool: Tool) -> usize {
        let at = self.free.pop().unwrap_or(self.tools.len());
        if at == self.tools.len() {
            self.tools.push(None);
        }
        if let Some(slot) = self.tools.get_mut(at) {
            *slot = Some(tool);
        }
        if !self.by_name.is_empty() {
            self.index_tool(at);
        } else if self.tool_count() > MAX_LINEAR_SEARCH {
            for at in 0..self.tools.len() {
                self.index_tool(at);
            }
        }
        at
    }

    fn index_tool(&mut self, at: usize) {
        let Some(Some(tool)) = self.tools.get(at) else { return };
        for key in index_keys(tool) {
            self.by_name.entry(key).or_default().push(at);
        }
    }

    fn remove(&mut self, at: usize) {
        let Some(tool) = self.tools.get_mut(at).and_then(Option::take) else { return };
        self.free.push(at);
        for key in index_keys(&tool) {
            if let Some(by_name) = self.by_name.get_mut(&key) {
                by_name.retain(|index| *index != at);
                if by_name.is_empty() {
                    self.by_name.remove(&key);
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

impl Taint {
    fn row(&self, fold: &'static str) -> Row {
        Row::put(fold, &self.row_key, write_buckets(&self.buckets))
    }
}

/// The names that a tool is found under. One that is its own name is found once.
fn index_keys(tool: &Tool) -> impl Iterator<Item = Box<str>> + use<> {
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

fn taint_key(prefix: &str, name: &str) -> Arc<str> {
    format!("{prefix}/m/{}", quoted(name)).into()
}

fn drop_old(buckets: &mut Vec<Bucket>, keep_from: i64) {
    let old = buckets.partition_point(|bucket| bucket.hour < keep_from);
    buckets.drain(..old);
}

/// The bucket of that hour, made if need be.
#[expect(clippy::indexing_slicing, reason = "the retention was just found or filled")]
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
