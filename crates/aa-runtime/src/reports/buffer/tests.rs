use std::os::unix::fs::PermissionsExt;

use super::*;

fn event(index: usize) -> AuditEvent {
    AuditEvent { event_id: format!("event-{index}"), ..AuditEvent::default() }
}

/// Events that are only in the file.
fn rest(buffer: &mut Buffer) -> Vec<String> {
    std::iter::from_fn(|| buffer.next().unwrap()).map(|(event, _)| event.event_id).collect()
}

fn ids(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|index| event(index).event_id).collect()
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("events");
    (folder, path)
}

#[test]
fn what_was_not_taken_is_there_after_the_end_in_order_and_what_was_is_not() {
    let (_folder, path) = place();
    let mut buffer = Buffer::open(&path).unwrap();
    let sizes: Vec<u64> = (0..10).map(|index| buffer.append(&event(index), true).unwrap()).collect();
    assert_eq!(buffer.next().unwrap(), None);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    buffer.acknowledge(sizes.iter().take(3).sum()).unwrap();
    drop(buffer);
    let mut buffer = Buffer::open(&path).unwrap();
    assert_eq!(buffer.unread(), 7);
    buffer.append(&event(10), false).unwrap();
    assert_eq!(rest(&mut buffer), ids(3..11));
    buffer.acknowledge(u64::MAX).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), HEADER);
    drop(buffer);
    assert_eq!(Buffer::open(&path).unwrap().unread(), 0);
}

#[test]
fn a_torn_tail_is_ignored_wherever_it_is_torn() {
    let (_folder, path) = place();
    let mut buffer = Buffer::open(&path).unwrap();
    for index in 0..3 {
        buffer.append(&event(index), true).unwrap();
    }
    drop(buffer);
    let whole = fs::read(&path).unwrap();
    let record = (whole.len() - HEADER_LEN) / 3;
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut buffer = Buffer::open(&path).unwrap();
        assert_eq!(rest(&mut buffer), ids(0..length.saturating_sub(HEADER_LEN) / record), "{length}");
        // What comes next stands where the torn one was.
        buffer.append(&event(7), false).unwrap();
        assert_eq!(rest(&mut buffer), ids(7..8));
    }
    for broken in HEADER_LEN + 2 * record..whole.len() {
        let mut bytes = whole.clone();
        bytes[broken] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(rest(&mut Buffer::open(&path).unwrap()), ids(0..2), "{broken}");
    }
    // A start that is none means the beginning.
    for start in [0, HEADER + 1, u64::MAX] {
        let mut bytes = whole.clone();
        bytes[8..16].copy_from_slice(&start.to_le_bytes());
        fs::write(&path, &bytes).unwrap();
        assert_eq!(rest(&mut Buffer::open(&path).unwrap()), ids(0..3), "{start}");
    }
}

#[test]
fn the_file_is_bounded_and_gives_back_what_was_taken() {
    let (_folder, path) = place();
    let mut buffer = Buffer::with_limit(&path, 3 * MIN_COMPACTION).unwrap();
    let large = |index: usize| AuditEvent { trace_id: "x".repeat(100_000), ..event(index) };
    let mut sizes = Vec::new();
    let full = loop {
        match buffer.append(&large(sizes.len()), true) {
            Ok(size) => sizes.push(size),
            Err(problem) => break problem.to_string(),
        }
    };
    assert!(full.contains("full") && full.contains("events"), "{full}");
    assert!(fs::metadata(&path).unwrap().len() <= 3 * MIN_COMPACTION);
    let taken = sizes.len() * 2 / 3;
    buffer.acknowledge(sizes.iter().take(taken).sum()).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 2 * MIN_COMPACTION);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    buffer.append(&large(sizes.len()), true).unwrap();
    assert!(Buffer::open(&path).unwrap_err().to_string().contains("another runtime"));
    drop(buffer);
    assert_eq!(rest(&mut Buffer::open(&path).unwrap()), ids(taken..sizes.len() + 1));
}

#[test]
fn what_is_no_buffer_of_this_user_is_refused_and_left_as_it_is() {
    let (folder, path) = place();
    fs::create_dir(path.parent().unwrap()).unwrap();
    for text in ["my notes, which are precious", "x"] {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Buffer::open(&path).unwrap_err().to_string().contains("move it away"));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Buffer::open(&path).unwrap_err().to_string().contains("mode 600"));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(Buffer::open(&link).is_err());
    assert!(Buffer::open(folder.path()).is_err());
}
