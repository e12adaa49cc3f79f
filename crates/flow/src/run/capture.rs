//! Output of a run: limits of what is returned, stored and offloaded to a file.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use proctor_core::digest::Digest;
use proctor_core::json::Json;
use proctor_policy::truncated::drop_partial_words;

use super::read::{integer, member, text};

/// Most bytes of a stream that are kept; the rest is counted and dropped.
pub(super) const MAX_CAPTURED: usize = 10 << 20;

/// Smallest preview.
const MIN_PREVIEW: u64 = 64;
/// Preview of a task that names none.
const PREVIEW: u64 = 2000;
/// Bytes that are stored at least, if there are as many.
const MIN_STORED: u64 = 64 << 10;
/// Threshold of tasks whose output always goes to a file.
const ALWAYS: u64 = 128;

/// Limits of a task's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputLimits {
    /// Bytes that are returned.
    returned: usize,
    /// Bytes above which the output goes to a file; `None`: never.
    offload: Option<usize>,
}

impl OutputLimits {
    pub(super) fn of(task: &Json) -> OutputLimits {
        let output = member(task, "output");
        let word = |name: &str| output.and_then(|output| text(output, name));
        let preview = output.and_then(|output| integer(output, "preview_bytes")).unwrap_or(PREVIEW);
        let preview = preview.max(MIN_PREVIEW);
        let is_inline = word("retrieve") == Some("inline");
        let stored = if is_inline { preview.saturating_mul(4) } else { preview }.max(MIN_STORED);
        let offload = match word("offload") {
            Some("always") => Some(ALWAYS),
            Some("never") => None,
            _ => Some(stored.max(preview.saturating_mul(8)).max(MIN_STORED)),
        };
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX).min(MAX_CAPTURED);
        OutputLimits {
            returned: bytes(if is_inline { stored } else { preview }),
            offload: offload.map(bytes),
        }
    }
}

/// Masked output of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Captured {
    /// The first bytes, at most [`MAX_CAPTURED`].
    pub(super) bytes: Vec<u8>,
    /// Bytes altogether.
    pub(super) total: u64,
    /// Whether the stream was given up before its end.
    pub(super) is_cut: bool,
}

impl Captured {
    /// Whether the captured bytes are all of the stream.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_cut && u64::try_from(self.bytes.len()).is_ok_and(|kept| kept == self.total)
    }

    pub(super) fn add(&mut self, masked: &[u8]) {
        let room = MAX_CAPTURED.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(masked.get(..room.min(masked.len())).unwrap_or_default());
        self.total = self.total.saturating_add(u64::try_from(masked.len()).unwrap_or(u64::MAX));
    }

    /// The captured bytes as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Applies the limits: makes the preview, and writes the file if the output is long.
    pub(super) fn keep(&self, limits: OutputLimits, file: &Path) -> std::io::Result<Output> {
        let is_long = limits.offload.is_some_and(|threshold| self.bytes.len() > threshold);
        let path = if is_long {
            write_private(file, &self.bytes)?;
            Some(file.to_owned())
        } else {
            None
        };
        let is_whole = self.bytes.len() <= limits.returned && self.is_whole();
        let digest = format!("sha256:{}", Digest::of(&self.bytes));
        Ok(Output { text: cut(&self.bytes, limits.returned), bytes: self.total, is_whole, path, digest })
    }
}

/// Output as results and records carry it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Output {
    /// The first bytes, as text.
    pub(super) text: String,
    /// Bytes altogether.
    pub(super) bytes: u64,
    /// Whether the text is all of it.
    pub(super) is_whole: bool,
    /// File with the captured output.
    pub(super) path: Option<PathBuf>,
    /// Digest of the captured output.
    pub(super) digest: String,
}

impl Output {
    /// Text for records. Masking has removed presented values whole; a cut may leave half of another secret, which no scanner finds.
    pub(super) fn recorded_text(&self) -> String {
        if self.is_whole { self.text.clone() } else { drop_partial_words(&format!("{}…", self.text)) }
    }
}

/// The first bytes as text, without half a character at the end.
fn cut(bytes: &[u8], limit: usize) -> String {
    let kept = bytes.get(..limit.min(bytes.len())).unwrap_or_default();
    let end = match std::str::from_utf8(kept) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => kept.len(),
    };
    String::from_utf8_lossy(kept.get(..end).unwrap_or_default()).into_owned()
}

fn write_private(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut open = std::fs::OpenOptions::new();
    let mut handle = open.write(true).create_new(true).mode(0o600).open(file)?;
    handle.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(output: &str) -> OutputLimits {
        OutputLimits::of(&Json::parse(format!(r#"{{"output":{output}}}"#).as_bytes()).unwrap())
    }

    #[test]
    fn limits_follow_the_table_of_the_scheduler() {
        let check = |output: &str, returned: usize, offload: Option<usize>| {
            assert_eq!(limits(output), OutputLimits { returned, offload }, "{output}");
        };
        check("null", 2000, Some(65_536));
        check(r#"{"preview_bytes":64}"#, 64, Some(65_536));
        check(r#"{"preview_bytes":20000}"#, 20_000, Some(160_000));
        check(r#"{"retrieve":"inline"}"#, 65_536, Some(65_536));
        check(r#"{"retrieve":"inline","preview_bytes":20000}"#, 80_000, Some(160_000));
        check(r#"{"offload":"always"}"#, 2000, Some(128));
        check(r#"{"offload":"never"}"#, 2000, None);
        check(r#"{"preview_bytes":9007199254740991}"#, MAX_CAPTURED, Some(MAX_CAPTURED));
    }

    #[test]
    fn a_cut_leaves_no_half_characters() {
        assert_eq!(cut("aö".as_bytes(), 2), "a");
        assert_eq!(cut("aö".as_bytes(), 3), "aö");
        assert_eq!(cut(b"a\xff\xffb", 3), "a\u{fffd}\u{fffd}");
    }

    #[test]
    fn long_output_goes_to_a_private_file_and_half_words_to_no_record() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out");
        let mut captured = Captured::default();
        captured.add("word ".repeat(40).as_bytes());
        captured.add(b"sk-live-4eC39HqLyjWDarj");
        let kept = captured.keep(limits(r#"{"offload":"always","preview_bytes":212}"#), &file).unwrap();
        assert_eq!((kept.bytes, kept.is_whole, kept.text.len()), (223, false, 212));
        assert_eq!(std::fs::read(kept.path.as_ref().unwrap()).unwrap(), captured.bytes);
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file).unwrap());
        assert_eq!(mode & 0o777, 0o600);
        assert!(!kept.recorded_text().contains("sk-live"), "{}", kept.recorded_text());
    }

    #[test]
    fn what_is_beyond_the_cap_is_counted() {
        let mut captured = Captured::default();
        captured.add(&vec![b'x'; MAX_CAPTURED]);
        captured.add(b"yy");
        assert_eq!((captured.bytes.len(), captured.total), (MAX_CAPTURED, MAX_CAPTURED as u64 + 2));
        let folder = tempfile::tempdir().unwrap();
        let kept = captured.keep(limits(r#"{"offload":"never"}"#), &folder.path().join("out")).unwrap();
        assert!(!kept.is_whole && kept.path.is_none());
    }
}
